//! Whole transactions under a model checker, which chooses at every operation on the concurrent core (status table,
//! ring, clock, watermark, locks of a transaction) who goes on. The store's own operations are taken as one step each;
//! they have models of their own.
//!
//! `cargo test -p mangrove-txn --features model --test model_check`
#![cfg(feature = "model")]

mod common;

use std::sync::Arc;

use common::Graph;
use mangrove_graph::VertexId;
use mangrove_txn::{RecentOptions, Transaction};
use shuttle::sync::Mutex;
use shuttle::thread;

/// Schedules a model is run with: random ones, and ones with few preemptions, which find rare orders sooner.
fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    let count = std::env::var("MANGROVE_CASES").ok().and_then(|n| n.parse().ok()).unwrap_or(600);
    shuttle::check_random(model.clone(), count);
    shuttle::check_pct(model, count, 3);
}

struct Setting {
    graph: Graph,
    ids: Vec<VertexId>,
}

fn setting(vertices: usize) -> Arc<Setting> {
    let graph = Graph::with_recent(RecentOptions { entries: 16, ..RecentOptions::default() });
    let ids = graph.persons(vertices);
    Arc::new(Setting { graph, ids })
}

/// Runs bodies as threads and collects what they return.
fn race<T: Send + 'static>(bodies: Vec<Box<dyn FnOnce() -> T + Send>>) -> Vec<T> {
    let threads: Vec<_> = bodies.into_iter().map(thread::spawn).collect();
    threads.into_iter().map(|thread| thread.join().unwrap()).collect()
}

impl Setting {
    fn get(&self, txn: &Transaction, at: usize) -> i64 {
        self.graph.get(txn, self.ids[at]).unwrap()
    }

    fn set(&self, txn: &Transaction, at: usize, balance: i64) -> bool {
        self.graph.set(txn, self.ids[at], balance).is_ok()
    }
}

/// Each of `count` transactions reads the next one's place and writes its own: not all may commit on the old state.
fn skew(count: usize) {
    explore(move || {
        let setting = setting(count);
        let bodies = (0..count)
            .map(|who| {
                let setting = setting.clone();
                Box::new(move || {
                    let txn = setting.graph.serializable();
                    let seen = setting.get(&txn, (who + 1) % count);
                    let set = setting.set(&txn, who, 1);
                    set && txn.commit().is_ok() && seen == 0
                }) as Box<dyn FnOnce() -> bool + Send>
            })
            .collect();
        let on_old_state = race(bodies).into_iter().filter(|committed| *committed).count();
        assert!(on_old_state < count, "a cycle of {count} committed");
    });
}

#[test]
fn write_skew_of_two() {
    skew(2);
}

#[test]
fn write_skew_of_three() {
    skew(3);
}

#[test]
fn increments_are_not_lost() {
    explore(|| {
        let setting = setting(1);
        let bodies = (0..3)
            .map(|_| {
                let setting = setting.clone();
                Box::new(move || {
                    let txn = setting.graph.serializable();
                    let seen = setting.get(&txn, 0);
                    setting.set(&txn, 0, seen + 1) && txn.commit().is_ok()
                }) as Box<dyn FnOnce() -> bool + Send>
            })
            .collect();
        let committed = race(bodies).into_iter().filter(|committed| *committed).count();
        assert!(committed > 0, "the first updater wins, so somebody does");
        assert_eq!(setting.get(&setting.graph.begin(), 0), committed as i64);
    });
}

#[test]
fn no_reader_sees_half_a_commit_and_commits() {
    explore(|| {
        let setting = setting(3);
        let writer = {
            let setting = setting.clone();
            Box::new(move || {
                let txn = setting.graph.serializable();
                setting.set(&txn, 0, 1);
                setting.set(&txn, 1, 1);
                // Sometimes it fails, so that those who relied on it must.
                let guard = setting.get(&txn, 2);
                let _ = txn.commit();
                guard == 0
            }) as Box<dyn FnOnce() -> bool + Send>
        };
        let disturber = {
            let setting = setting.clone();
            Box::new(move || {
                let txn = setting.graph.serializable();
                setting.set(&txn, 2, 1) && txn.commit().is_ok()
            }) as Box<dyn FnOnce() -> bool + Send>
        };
        let reader = {
            let setting = setting.clone();
            Box::new(move || {
                let txn = setting.graph.serializable();
                let (a, b) = (setting.get(&txn, 0), setting.get(&txn, 1));
                let snapshot = setting.graph.begin();
                assert_eq!(setting.get(&snapshot, 0), setting.get(&snapshot, 1), "a snapshot is one moment");
                txn.commit().is_err() || a == b
            }) as Box<dyn FnOnce() -> bool + Send>
        };
        assert!(race(vec![writer, disturber, reader])[2], "half a commit was committed on");
    });
}

#[test]
fn a_commit_is_seen_by_whoever_begins_after_it() {
    explore(|| {
        let setting = setting(2);
        let done = Arc::new(Mutex::new([false; 2]));
        let bodies = (0..2)
            .map(|who| {
                let (setting, done) = (setting.clone(), done.clone());
                Box::new(move || {
                    let before = *done.lock().unwrap();
                    let txn = setting.graph.serializable();
                    if before[1 - who] {
                        assert_eq!(setting.get(&txn, 1 - who), 1);
                    }
                    assert!(setting.set(&txn, who, 1));
                    txn.commit().unwrap();
                    done.lock().unwrap()[who] = true;
                }) as Box<dyn FnOnce() + Send>
            })
            .collect();
        race(bodies);
    });
}

#[test]
fn slots_and_ring_entries_change_hands_under_readers() {
    // A small ring, short transactions one after the other in few slots, and readers that meet their claims.
    explore(|| {
        let setting = setting(2);
        let writers = {
            let setting = setting.clone();
            Box::new(move || {
                for n in 1..4 {
                    let txn = setting.graph.serializable();
                    setting.set(&txn, 0, n);
                    setting.set(&txn, 1, n);
                    if n != 2 {
                        txn.commit().unwrap();
                    }
                }
            }) as Box<dyn FnOnce() + Send>
        };
        let readers = {
            let setting = setting.clone();
            Box::new(move || {
                for _ in 0..3 {
                    let txn = setting.graph.serializable();
                    let (a, b) = (setting.get(&txn, 0), setting.get(&txn, 1));
                    assert!(a != 2 && b != 2, "a version that never committed");
                    assert!(txn.commit().is_err() || a == b);
                }
            }) as Box<dyn FnOnce() + Send>
        };
        race(vec![writers, readers]);
        assert_eq!(setting.get(&setting.graph.begin(), 0), 3);
    });
}
