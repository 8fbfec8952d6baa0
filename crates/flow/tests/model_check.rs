//! The scheduler under a model checker, which chooses the next thread at every operation on locks, atomics and parked
//! threads.
//!
//! `cargo test -p mangrove-flow --features model --test model_check`
#![cfg(feature = "model")]

use mangrove_flow::schedule::model::{closing_ends_every_thread, every_task_gets_its_items};

/// Random schedules, and schedules with few preemptions, which find rare orders sooner.
fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    let count = mangrove_testdata::case_count(1_000);
    shuttle::check_random(model.clone(), count);
    shuttle::check_pct(model, count, 3);
}

#[test]
fn no_wake_of_two_wakers_is_lost() {
    for may_spin in [false, true] {
        explore(move || every_task_gets_its_items(2, 1, 2, 2, may_spin));
    }
}

#[test]
fn tasks_share_executors() {
    for may_spin in [false, true] {
        explore(move || every_task_gets_its_items(2, 3, 1, 2, may_spin));
        explore(move || every_task_gets_its_items(1, 2, 2, 1, may_spin));
        explore(move || every_task_gets_its_items(3, 2, 1, 2, may_spin));
    }
}

#[test]
fn executors_end_when_they_are_closed() {
    explore(|| closing_ends_every_thread(2));
}
