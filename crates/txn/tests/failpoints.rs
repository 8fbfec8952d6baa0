//! Collectors with faults at points that a test chooses (`mangrove_failpoint`).
#![cfg(debug_assertions)]

mod common;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use common::Graph;
use mangrove_failpoint::{Point, Scenario, set};

/// Changes one property until a condition holds.
fn write_until(graph: &Graph, is_so: impl Fn() -> bool) {
    let vertex = graph.persons(1)[0];
    for round in 0..20_000 {
        if is_so() {
            return;
        }
        let txn = graph.begin();
        graph.set(&txn, vertex, round).unwrap();
        txn.commit().unwrap();
        if round % 100 == 0 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    }
    panic!("nothing happened in 20,000 commits");
}

#[test]
fn a_collector_that_could_not_be_started_is_started_by_a_later_commit() {
    let _scenario = Scenario::new();
    let (tries, is_collecting) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicBool::new(false)));
    let (tried, collecting) = (tries.clone(), is_collecting.clone());
    let _starting = set(Point::CollectorStart, move || match tried.fetch_add(1, Ordering::SeqCst) {
        0..3 => Err(io::Error::other("no more threads")),
        _ => Ok(()),
    });
    let _compacting = set(Point::Compaction, move || {
        collecting.store(true, Ordering::SeqCst);
        Ok(())
    });
    let graph = Graph::new();
    write_until(&graph, || is_collecting.load(Ordering::SeqCst));
    assert!(tries.load(Ordering::SeqCst) > 3);
}

#[test]
fn a_collector_goes_on_after_a_round_that_panicked() {
    let _scenario = Scenario::new();
    let rounds = Arc::new(AtomicU64::new(0));
    let counted = rounds.clone();
    let _compacting = set(Point::Compaction, move || match counted.fetch_add(1, Ordering::SeqCst) {
        0 => panic!("a test panics in the first round"),
        _ => Ok(()),
    });
    let graph = Graph::new();
    graph.manager.settings().gc_workers.store(1, Ordering::Relaxed);
    write_until(&graph, || rounds.load(Ordering::SeqCst) > 2);
}
