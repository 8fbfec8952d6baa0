//! The log under a model checker, which chooses at every operation on its locks, flags and parked threads which thread
//! runs next. Group commit: no commit is acknowledged early, no thread waits for ever, and one flush is in flight.
//! Checkpoints: the snapshot of a checkpoint has all commits of the segments that it releases.
//!
//! `cargo test -p mangrove-durable --features model --test model_check`
#![cfg(feature = "model")]

use mangrove_durable::log::model::{checkpoints_have_what_is_before_their_floor, everybody_goes_on_when_it_is_durable};

/// Random schedules, and ones with few preemptions, which find rare orders sooner.
fn explore(threads: usize, rounds: usize, failing: u64) {
    let count = mangrove_testdata::case_count(1_000);
    shuttle::check_random(move || everybody_goes_on_when_it_is_durable(threads, rounds, failing), count);
    shuttle::check_pct(move || everybody_goes_on_when_it_is_durable(threads, rounds, failing), count, 3);
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
