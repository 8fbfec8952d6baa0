//! The log under a model checker, which chooses the next thread at every operation on locks, flags and parked threads.
//!
//! Group commit: no commit is acknowledged early, no thread waits for ever, and at most one flush is in flight.
//! Checkpoints: every commit in the released part of the log is in the snapshot.
//!
//! `cargo test -p mangrove-durable --features model --test model_check`

use mangrove_durable::log::model::{checkpoints_have_what_is_before_their_floor, committers_go_on_once_durable};

/// Random schedules, and schedules with few preemptions, which find rare orders sooner.
fn explore(threads: usize, rounds: usize, failing: u64) {
    let count = mangrove_testdata::case_count(1_000);
    shuttle::check_random(move || committers_go_on_once_durable(threads, rounds, failing), count);
    shuttle::check_pct(move || committers_go_on_once_durable(threads, rounds, failing), count, 3);
}

#[test]
fn committers_wait_for_one_another() {
    explore(2, 2, 0);
    explore(4, 1, 0);
    explore(3, 3, 0);
}

#[test]
fn a_failure_is_told_to_all() {
    for failing in 1..=3 {
        explore(4, 2, failing);
    }
}

#[test]
fn a_checkpoint_lets_go_of_nothing_that_it_does_not_have() {
    let count = mangrove_testdata::case_count(400);
    for (threads, rounds) in [(1, 2), (2, 2), (3, 1)] {
        shuttle::check_random(move || checkpoints_have_what_is_before_their_floor(threads, rounds), count);
        shuttle::check_pct(move || checkpoints_have_what_is_before_their_floor(threads, rounds), count, 3);
    }
}
