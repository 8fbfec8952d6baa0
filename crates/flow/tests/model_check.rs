//! The scheduler, and a run with helpers, under a model checker, which chooses the next thread at every operation on locks, atomics and parked
//! threads.
//!
//! `cargo test -p mangrove-flow --features model --test model_check`

#[allow(dead_code, reason = "other tests use the rest")]
mod simulator;
mod toys;

use std::sync::Arc;

use mangrove_flow::schedule::model::{closing_ends_every_thread, every_task_gets_its_items};
use mangrove_flow::{Helper, HelperStatus, NodeRuntime, Progress, QueryLimits, Sharers};
use mangrove_virtual_nodes::{Habits, LateReader};
use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::thread;
use simulator::Plan;
use toys::{Numbers, control};

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

/// A run with helpers on threads: it finds what it must, it ends, and no thread sleeps beside work (FLOW-20 to FLOW-23).
/// The checker reports a deadlock otherwise.
fn helped(plan: Plan, helpers: usize, below: i64) {
    run(plan, helpers, below, None);
}

/// As [`helped`], with late reads that another thread completes (FLOW-30 to FLOW-33).
fn helped_late(plan: Plan, helpers: usize, below: i64) {
    let habits = Habits { at_hand: 0.2, full: 0.2, early: 0.2, again: 0.2, fails: 0.0, room: 12 };
    let reader = LateReader::new(habits, 1);
    let is_over = Arc::new(AtomicBool::new(false));
    let completer = {
        let (reader, is_over) = (reader.clone(), is_over.clone());
        thread::spawn(move || {
            while !is_over.load(Ordering::Relaxed) {
                reader.complete_one();
                thread::yield_now();
            }
        })
    };
    run(plan, helpers, below, Some(reader));
    is_over.store(true, Ordering::Relaxed);
    completer.join().unwrap();
}

fn run(plan: Plan, helpers: usize, below: i64, reader: Option<LateReader>) {
    let mut home =
        NodeRuntime::new(0, 1, Arc::new(plan.topology()), plan.operators(below), control(QueryLimits::default()));
    home.begin(reader).expect("a run begins");
    home.start(Numbers(vec![(0, 0)])).expect("a run starts");
    let run = home.open(Sharers { stealable: plan.stealable(), shares_all: true });
    let threads: Vec<_> = (0..helpers)
        .map(|_| {
            let mut helper = Helper::new(&run, plan.operators(below));
            thread::spawn(move || {
                loop {
                    match helper.turn(2) {
                        HelperStatus::Busy => {}
                        HelperStatus::Over => return,
                        HelperStatus::Idle | HelperStatus::Full => {
                            let thread = thread::current();
                            if helper.sleep(Box::new(move || thread.unpark())) {
                                thread::park();
                            }
                        }
                    }
                }
            })
        })
        .collect();
    let mut found = Vec::new();
    loop {
        match home.run(2).expect("no operator fails") {
            Progress::Results => {
                found.extend(home.take_results().expect("there are results").0.iter().map(|(_, n)| *n))
            }
            Progress::Complete => break,
            Progress::Yielded => {}
            Progress::Waiting => {
                let thread = thread::current();
                if home.sleep(Box::new(move || thread.unpark())) {
                    thread::park();
                }
            }
            Progress::Idle => panic!("an end-of-stream is missing"),
        }
    }
    plan.check(&found, below);
    home.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(home.control().memory(), 0, "nothing is charged after the run");
}

#[test]
fn a_run_with_helpers_ends_with_its_results() {
    for plan in [Plan::Scoped, Plan::Where, Plan::Limit, Plan::Distinct, Plan::Rounds, Plan::Parts] {
        explore(move || helped(plan, 1, 9));
        explore(move || helped(plan, 2, 9));
    }
}

#[test]
fn a_run_with_late_reads_ends_with_its_results() {
    for plan in [Plan::Scoped, Plan::Where, Plan::Limit, Plan::Ordered] {
        explore(move || helped_late(plan, 0, 9));
        explore(move || helped_late(plan, 1, 9));
    }
}
