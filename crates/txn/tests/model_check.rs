//! Whole transactions under a model checker, which chooses at every operation on the concurrent core (status table,
//! ring, clock, watermark, locks of a transaction) which thread runs next. An operation of the store is one step; the
//! store has models of its own.
//!
//! `cargo test -p mangrove-txn --features model --test model_check`

mod common;

use std::sync::Arc;

use common::Graph;
use mangrove_graph::{Direction, ErrorKind, GraphView, Value, ValueRows, VertexId};
use mangrove_store::Write;
use mangrove_txn::{
    AbortCause, CommitLog, IndexChange, PreparedCommit, RecentOptions, Transaction, TransactionOptions, Watermarks,
};
use shuttle::sync::Mutex;
use shuttle::thread;

/// The schedules of a model: random ones, and ones with few preemptions, which find rare orders sooner.
fn explore(model: impl Fn() + Send + Sync + Clone + 'static) {
    let count = mangrove_testdata::case_count(600);
    shuttle::check_random(model.clone(), count);
    shuttle::check_pct(model, count, 3);
}

struct Setting {
    graph: Graph,
    ids: Vec<VertexId>,
}

fn setting(vertices: usize) -> Arc<Setting> {
    let graph = Graph::with_recent(RecentOptions::small(16));
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

/// Each of `count` transactions reads the next one's object and writes its own: not all may commit on the old state.
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

/// As [`skew`] of two, while a third thread's commits push the writes of the two out of the ring. Each finds the
/// other's write in the ring, in the history, or between the two.
#[test]
fn write_skew_beside_commits_that_are_merged() {
    explore(move || {
        let graph = Graph::with_recent(RecentOptions { entries: 4, merge_after: 1 });
        let ids = graph.persons(3);
        let setting = Arc::new(Setting { graph, ids });
        let mut bodies: Vec<Box<dyn FnOnce() -> bool + Send>> = Vec::new();
        for who in 0..2 {
            let setting = setting.clone();
            bodies.push(Box::new(move || {
                let txn = setting.graph.serializable();
                let seen = setting.get(&txn, 1 - who);
                let set = setting.set(&txn, who, 1);
                thread::yield_now();
                set && txn.commit().is_ok() && seen == 0
            }));
        }
        let third = setting.clone();
        bodies.push(Box::new(move || {
            for n in 0..4 {
                let txn = third.graph.begin();
                assert!(third.set(&txn, 2, n));
                txn.commit().unwrap();
            }
            false
        }));
        let on_old_state = race(bodies).into_iter().filter(|committed| *committed).count();
        assert!(on_old_state < 2, "both committed");
        assert_eq!(setting.graph.manager.counters().aborted(AbortCause::TooOld), 0);
    });
}

/// The way in which a thread reads whether the writer of [`readers_of_one_transaction`] has committed.
#[derive(Clone, Copy, Debug)]
enum Look {
    /// By one property.
    Single,
    /// By properties of several vertices together.
    Together,
    /// By lists of edges.
    Lists,
}

impl Setting {
    /// All 0 before the writer's commit, all 1 after it.
    fn look(&self, txn: &Transaction, how: Look) -> Vec<i64> {
        match how {
            Look::Single => vec![self.get(txn, 0)],
            Look::Together => {
                let mut rows = ValueRows::default();
                txn.vertex_values(&self.ids[..2], self.graph.balance, &mut rows).unwrap();
                rows.value.iter().map(|value| i64::from(*value == Value::I64(1))).collect()
            }
            Look::Lists => vec![common::expand(txn, &self.ids[..2], Direction::Out, 5).len() as i64],
        }
    }

    /// A transaction that has changed everything that the readers read.
    fn change(&self, looks: [Look; 2]) -> Transaction {
        let txn = self.graph.begin();
        assert!(self.set(&txn, 0, 1));
        if looks.iter().any(|look| matches!(look, Look::Together)) {
            assert!(self.set(&txn, 1, 1));
        }
        if looks.iter().any(|look| matches!(look, Look::Lists)) {
            txn.insert_edge(self.ids[0], self.ids[1], self.graph.knows, None).unwrap();
        }
        txn
    }
}

/// Two threads read in one transaction, beside a writer that writes meanwhile, or that has written and only commits. If
/// the transaction commits, both have read as of one moment.
fn readers_of_one_transaction(looks: [Look; 2], has_written: bool) {
    explore(move || {
        let setting = setting(3);
        let txn = Arc::new(setting.graph.serializable());
        let written = has_written.then(|| setting.change(looks));
        let mut bodies: Vec<Box<dyn FnOnce() -> Vec<i64> + Send>> = Vec::new();
        for how in looks {
            let (setting, txn) = (setting.clone(), txn.clone());
            bodies.push(Box::new(move || setting.look(&txn, how)));
        }
        let writer = setting.clone();
        bodies.push(Box::new(move || {
            let txn = written.unwrap_or_else(|| writer.change(looks));
            txn.commit().expect("no other transaction writes the same");
            Vec::new()
        }));
        let seen = race(bodies).concat();
        let txn = Arc::into_inner(txn).expect("its readers are done");
        let is_committed = setting.set(&txn, 2, 1) && txn.commit().is_ok();
        assert!(!is_committed || seen.iter().all(|value| *value == seen[0]), "{looks:?} saw {seen:?} and committed");
    });
}

#[test]
fn threads_that_read_in_one_transaction_read_at_one_moment() {
    use Look::{Lists, Single, Together};
    for looks in [[Single, Single], [Single, Together], [Together, Together], [Lists, Lists], [Together, Lists]] {
        readers_of_one_transaction(looks, false);
        readers_of_one_transaction(looks, true);
    }
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
                // Sometimes it fails, so that its dependents must fail, too.
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
    // A small ring, short transactions in few status entries, and readers that meet their claims.
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

/// In a model two writes make a large commit, whose claims are finalized one by one while readers see it already.
#[test]
fn no_transaction_begins_that_is_older_than_the_oldest() {
    explore(|| {
        let setting = setting(1);
        let (beginning, looking) = (setting.clone(), setting.clone());
        let begin = thread::spawn(move || beginning.graph.begin());
        let look = thread::spawn(move || looking.graph.manager.oldest_transaction());
        let (_running, found) = (begin.join().unwrap(), look.join().unwrap());
        // The layouts that no transaction from `found` on has read from may have been given up.
        assert!(found <= setting.graph.manager.oldest_transaction());
    });
}

#[test]
fn a_large_commit_is_seen_whole_while_it_is_stamped() {
    explore(|| {
        let setting = setting(5);
        let all_alike = |setting: &Setting, txn: &Transaction| {
            let seen = [0, 1, 2].map(|at| setting.get(txn, at));
            assert!(seen == [seen[0]; 3], "{seen:?} are not of one moment");
            seen[0]
        };
        let large = {
            let setting = setting.clone();
            Box::new(move || {
                let txn = setting.graph.begin();
                // The second thread may hold a claim just now.
                if !(0..3).all(|at| setting.set(&txn, at, 1)) {
                    return;
                }
                txn.commit().unwrap();
                assert_eq!(all_alike(&setting, &setting.graph.begin()), 1);
                // Nothing of it is left that would make a writer conflict.
                let next = setting.graph.begin();
                assert!(setting.set(&next, 0, 1));
                next.commit().unwrap();
            }) as Box<dyn FnOnce() + Send>
        };
        let small = {
            let setting = setting.clone();
            Box::new(move || {
                let txn = setting.graph.begin();
                assert!(setting.set(&txn, 3, 1));
                txn.commit().unwrap();
                // The reader began after the commit, and reads twice: finalization in between makes no difference.
                let reader = setting.graph.begin();
                assert_eq!(setting.get(&reader, 3), 1);
                let first = all_alike(&setting, &reader);
                assert_eq!(all_alike(&setting, &reader), first);
                // A writer may conflict, and then it undoes everything.
                let writer = setting.graph.begin();
                let seen = setting.get(&writer, 1);
                if setting.set(&writer, 1, seen) && setting.set(&writer, 2, seen) {
                    drop(writer);
                }
            }) as Box<dyn FnOnce() + Send>
        };
        let serializable = {
            let setting = setting.clone();
            Box::new(move || {
                let txn = setting.graph.serializable();
                let (a, b) = (setting.get(&txn, 0), setting.get(&txn, 2));
                assert!(setting.set(&txn, 4, a));
                assert!(txn.commit().is_err() || a == b, "half a commit was committed on");
                setting.graph.manager.collect_round();
            }) as Box<dyn FnOnce() + Send>
        };
        race(vec![large, small, serializable]);
        setting.graph.manager.collect_round();
        all_alike(&setting, &setting.graph.begin());
    });
}

/// A collector that ends old transactions (the model's time advances at every reading of the clock), a writer, and
/// readers. A reader is refused or sees one moment, and a refused reader stays refused.
#[test]
fn an_expired_reader_is_refused_or_sees_its_moment() {
    explore(|| {
        let setting = setting(2);
        setting.graph.manager.settings().max_snapshot_age_ms.store(2, std::sync::atomic::Ordering::Relaxed);
        let collector = {
            let setting = setting.clone();
            Box::new(move || (0..4).for_each(|_| setting.graph.manager.collect_round())) as Box<dyn FnOnce() + Send>
        };
        let writer = {
            let setting = setting.clone();
            Box::new(move || {
                for n in 1..4 {
                    let txn = setting.graph.begin();
                    let written = (0..2).try_for_each(|at| setting.graph.set(&txn, setting.ids[at], n));
                    if let Err(error) = written.and_then(|()| txn.commit().map(drop)) {
                        assert_eq!(error.kind(), ErrorKind::Expired, "{error}");
                    }
                }
            }) as Box<dyn FnOnce() + Send>
        };
        let reader = |is_serializable: bool| {
            let setting = setting.clone();
            Box::new(move || {
                let txn = match is_serializable {
                    true => setting.graph.serializable(),
                    false => setting.graph.begin(),
                };
                let (mut refused, mut seen) = (false, Vec::new());
                for at in [0, 1, 0, 1] {
                    let mut rows = ValueRows::default();
                    match txn.vertex_values(&[setting.ids[at]], setting.graph.balance, &mut rows) {
                        Ok(()) => {
                            assert!(!refused, "it was refused before");
                            seen.append(&mut rows.value);
                        }
                        Err(error) => {
                            assert!(matches!(error.kind(), ErrorKind::Expired | ErrorKind::Conflict), "{error}");
                            refused = true;
                        }
                    }
                }
                let committed = txn.commit().is_ok();
                assert!(!(refused && committed));
                // The reads of a serializable reader are certain after its commit.
                let is_certain = committed || !is_serializable;
                assert!(!is_certain || seen.windows(2).all(|pair| pair[0] == pair[1]), "{seen:?} of several moments");
            }) as Box<dyn FnOnce() + Send>
        };
        let (one, two) = (reader(false), reader(true));
        race(vec![collector, writer, one, two]);
        setting.graph.manager.settings().max_snapshot_age_ms.store(0, std::sync::atomic::Ordering::Relaxed);
        let now = setting.graph.begin();
        assert_eq!(setting.get(&now, 0), setting.get(&now, 1));
    });
}

/// A log that records which commits it had at each report of a durable watermark.
#[derive(Debug, Default)]
struct ModelLog {
    handed_over: Arc<Mutex<Vec<u64>>>,
    /// The watermarks, and the commits handed over by each.
    flushed: Mutex<Vec<(u64, Vec<u64>)>>,
}

#[derive(Debug)]
struct ModelCommit(Arc<Mutex<Vec<u64>>>);

impl PreparedCommit for ModelCommit {
    fn hand_over(self: Box<Self>, ts: u64) {
        self.0.lock().unwrap().push(ts);
    }
}

impl CommitLog for ModelLog {
    fn prepare(&self, _: &[Write], _: u64) -> mangrove_graph::Result<Box<dyn PreparedCommit>> {
        Ok(Box::new(ModelCommit(self.handed_over.clone())))
    }

    fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> mangrove_graph::Result<()> {
        let mut flushed = self.flushed.lock().unwrap();
        if flushed.last().is_none_or(|(durable, _)| *durable < ts) {
            let stable = watermarks.stable();
            assert!(stable >= ts, "whoever waits for {ts} has waited for the watermark, which is {stable}");
            flushed.push((stable, self.handed_over.lock().unwrap().clone()));
            watermarks.set_durable(stable);
        }
        Ok(())
    }

    fn change_rules(
        &self,
        _: &[mangrove_store::schema::RuleEntry],
        _: u32,
        _: &dyn Watermarks,
    ) -> mangrove_graph::Result<()> {
        Ok(())
    }

    fn change_index(&self, _: &IndexChange, _: &dyn Watermarks) -> mangrove_graph::Result<()> {
        Ok(())
    }
}

impl ModelLog {
    fn durable(&self) -> u64 {
        self.flushed.lock().unwrap().last().map_or(0, |(durable, _)| *durable)
    }

    /// Every report of a durable watermark had all commits up to it.
    fn check(&self) {
        let committed = self.handed_over.lock().unwrap();
        for (durable, had) in self.flushed.lock().unwrap().iter() {
            for ts in committed.iter().filter(|ts| *ts <= durable) {
                assert!(had.contains(ts), "{ts} was handed over after a flush up to {durable}");
            }
        }
    }
}

#[test]
fn what_was_acknowledged_or_read_is_durable() {
    explore(|| {
        let log = Arc::new(ModelLog::default());
        let recent = RecentOptions::small(16);
        let graph = Graph::with_log(recent, log.clone());
        let ids = graph.persons(2);
        let setting = Arc::new(Setting { graph, ids });
        let writer = |at: usize| {
            let (setting, log) = (setting.clone(), log.clone());
            Box::new(move || {
                let txn = setting.graph.serializable();
                let seen = setting.get(&txn, 1 - at);
                if setting.set(&txn, at, seen + 1)
                    && let Ok(info) = txn.commit()
                {
                    assert!(info.timestamp <= log.durable());
                    // A transaction that only reads, and begins after the acknowledgment, sees it.
                    let reader = setting.graph.manager.begin_read().unwrap();
                    assert!(reader.begin_ts() >= info.timestamp && reader.begin_ts() <= log.durable());
                    assert!(setting.get(&reader, at) > 0);
                }
            }) as Box<dyn FnOnce() + Send>
        };
        let reader = {
            let (setting, log) = (setting.clone(), log.clone());
            Box::new(move || {
                let txn = setting.graph.manager.begin(TransactionOptions::default()).unwrap();
                let seen = setting.get(&txn, 0);
                let begin = txn.begin_ts();
                if txn.commit().is_ok() {
                    assert!(seen == 0 || begin > 1 || log.durable() > 1);
                    assert!(begin <= log.durable(), "it was told of what is not durable");
                }
                let read_only = setting.graph.manager.begin_read().unwrap();
                assert!(read_only.begin_ts() <= log.durable());
                // The entries kept for later readers are not above their read timestamp.
                assert!(setting.graph.manager.oldest_snapshot() <= read_only.begin_ts());
            }) as Box<dyn FnOnce() + Send>
        };
        race(vec![writer(0), writer(1), reader]);
        log.check();
    });
}
