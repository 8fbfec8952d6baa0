//! Late reads: messages wait for what a view has not at hand (FLOW-30 to FLOW-33).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove_flow::{Helper, HelperStatus, NodeRuntime, Progress, ReadCredit, Sharers};
use mangrove_graph::ErrorKind;
use mangrove_virtual_nodes::{Habits, LateReader};

use crate::simulator::{Plan, check_end, started};
use crate::toys::Numbers;

/// Runs until the run has nothing to do. Returns true if it is complete.
fn run_until_waiting(home: &mut NodeRuntime<Numbers>, results: &mut Vec<Numbers>) -> bool {
    loop {
        match home.run(10).expect("no operator fails") {
            Progress::Results => results.extend(home.take_results()),
            Progress::Yielded => {}
            Progress::Waiting => return false,
            Progress::Complete => return true,
            Progress::Idle => panic!("an end-of-stream is missing"),
        }
    }
}

#[test]
fn a_run_whose_messages_all_wait_takes_no_turn() {
    let reader = LateReader::new(Habits::default(), 1);
    let mut home = started(Plan::Scoped, Plan::Scoped.topology(), 300, Some(reader.clone()));
    home.allow_any_order(Plan::Scoped.stealable());
    let (mut results, mut waits) = (Vec::new(), 0);
    while !run_until_waiting(&mut home, &mut results) {
        let messages = home.messages();
        let is_awake = Arc::new(AtomicBool::new(false));
        let wakes = is_awake.clone();
        assert!(home.sleep(Box::new(move || wakes.store(true, Ordering::Relaxed))), "there is nothing to do");
        assert!(reader.counts().tickets > 0, "it waits for a read");
        assert!(home.control().memory() > 0, "what waits is charged");
        assert!(!is_awake.load(Ordering::Relaxed) && home.messages() == messages);
        assert!(reader.complete_one());
        assert!(is_awake.load(Ordering::Relaxed), "the completion wakes the run");
        waits += 1;
    }
    assert!(waits >= 9, "{waits}");
    check_end(Plan::Scoped, 300, &results, &home);
    assert_eq!(reader.counts().pinned, 0);
}

/// A satisfied `limit` forgets the reads of the messages that it cancels, and does not wait for them.
#[test]
fn canceled_messages_forget_their_reads() {
    let below = 3_000;
    let reader = LateReader::new(Habits::default(), 2);
    let mut home = started(Plan::Limit, Plan::Limit.topology(), below, Some(reader.clone()));
    home.allow_any_order(Arc::from([true; 5]));
    let mut results = Vec::new();
    while !run_until_waiting(&mut home, &mut results) {
        assert!(reader.complete_one());
    }
    check_end(Plan::Limit, below, &results, &home);
    let counts = reader.counts();
    assert_eq!(counts.tickets, 0, "the view was told of every read that is not waited for");
    assert!(counts.forgotten > 0, "{counts:?}");
}

/// A run that is dropped while messages wait.
#[test]
fn a_run_that_is_left_forgets_its_reads() {
    let reader = LateReader::new(Habits { again: 1.0, ..Habits::default() }, 3);
    let mut home = started(Plan::Nested, Plan::Nested.topology(), 300, Some(reader.clone()));
    home.allow_any_order(Plan::Nested.stealable());
    assert!(!run_until_waiting(&mut home, &mut Vec::new()));
    reader.complete_all();
    assert!(!run_until_waiting(&mut home, &mut Vec::new()));
    let waiting = reader.counts().tickets;
    assert!(waiting > 0);
    drop(home);
    let counts = reader.counts();
    assert_eq!((counts.tickets, counts.forgotten, counts.pinned), (0, waiting, 0));
    // The completions of forgotten tickets have no effect.
    (0..10).for_each(|_| {
        reader.complete_one();
    });
    assert_eq!(reader.counts().pinned, 0);
}

#[test]
fn a_failed_read_ends_the_run_with_its_error() {
    let reader = LateReader::new(Habits { fails: 1.0, ..Habits::default() }, 4);
    let mut home = started(Plan::Scoped, Plan::Scoped.topology(), 10, Some(reader.clone()));
    assert_eq!(home.run(100).expect("nothing has failed yet"), Progress::Waiting);
    assert!(reader.complete_one());
    let error = home.run(100).expect_err("the read has failed");
    assert_eq!((error.kind(), error.message()), (ErrorKind::Evaluation, "a read has failed"));
    assert_eq!(home.failed_operator(), Some(2), "the first operator that reads");
}

#[test]
fn a_run_keeps_to_its_credit() {
    let reader = LateReader::new(Habits::default(), 5);
    let mut home = started(Plan::Scoped, Plan::Scoped.topology(), 300, Some(reader.clone()));
    home.allow_any_order(Plan::Scoped.stealable());
    home.limit_reads(ReadCredit { reads: 1, bytes: u64::MAX });
    let mut results = Vec::new();
    while !run_until_waiting(&mut home, &mut results) {
        assert!(reader.complete_one());
    }
    check_end(Plan::Scoped, 300, &results, &home);
    assert_eq!(reader.counts().tickets_max, 1, "a second ticket waits for the first one");
}

/// Thousands of tickets are under way at a time, with helpers on threads, and the results are right.
#[test]
fn thousands_of_reads_are_under_way() {
    let plan = Plan::Nested;
    let below = 40_000;
    let reader = LateReader::new(Habits { at_hand: 0.05, early: 0.05, again: 0.1, ..Habits::default() }, 6);
    let mut home = started(plan, plan.topology(), below, Some(reader.clone()));
    home.limit_reads(ReadCredit { reads: u32::MAX, bytes: u64::MAX });
    let run = home.open(Sharers { stealable: plan.stealable(), shares_all: false });
    let helpers: Vec<_> = (0..2).map(|_| spawn_helper(Helper::new(&run, plan.operators(below)))).collect();
    let is_over = Arc::new(AtomicBool::new(false));
    let completer = {
        let (reader, is_over) = (reader.clone(), is_over.clone());
        let work = move || {
            let (mut before, mut quiet) = (0, 0);
            while !is_over.load(Ordering::Relaxed) {
                std::thread::sleep(Duration::from_millis(1));
                let tickets = reader.counts().tickets;
                quiet = if tickets == before { quiet + 1 } else { 0 };
                // Enough are under way, or the run waits.
                let completed = if tickets >= 2_500 { tickets / 2 } else { usize::from(quiet > 20) * tickets };
                (0..completed).for_each(|_| {
                    reader.complete_one();
                });
                before = reader.counts().tickets;
            }
        };
        std::thread::Builder::new().name("completer".to_owned()).spawn(work).unwrap()
    };
    let mut results = Vec::new();
    while !run_until_waiting(&mut home, &mut results) {
        home.wait(Duration::from_secs(60));
    }
    check_end(plan, below, &results, &home);
    let helped = home.close();
    is_over.store(true, Ordering::Relaxed);
    completer.join().unwrap();
    helpers.into_iter().for_each(|helper| helper.join().unwrap());
    let counts = reader.counts();
    assert!(counts.tickets_max >= 2_000, "{counts:?}");
    assert_eq!((counts.tickets, counts.pinned), (0, 0));
    assert!(helped.parcels > 0, "helpers have helped");
}

fn spawn_helper(mut helper: Helper<Numbers>) -> std::thread::JoinHandle<()> {
    let work = move || {
        loop {
            match helper.turn(4) {
                HelperStatus::Busy => {}
                HelperStatus::Idle | HelperStatus::Full => {
                    let thread = std::thread::current();
                    if helper.sleep(Box::new(move || thread.unpark())) {
                        std::thread::park();
                    }
                }
                HelperStatus::Over => return,
            }
        }
    };
    std::thread::Builder::new().name("helper".to_owned()).spawn(work).unwrap()
}
