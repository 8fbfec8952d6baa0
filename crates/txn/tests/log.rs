//! Commits and a log: which transactions wait for it, what it may refuse, and what readers see meanwhile.
//!
//! The log here is a gate: it reports commits as durable while it is open, and fails on demand.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{ElementKind, Error, ErrorKind, Remedy, Result, VertexId};
use mangrove_store::Write;
use mangrove_store::schema::RuleEntry;
use mangrove_txn::{AbortCause, CommitLog, IndexChange, IndexOptions, PreparedCommit, RecentOptions, Watermarks};
use parking_lot::{Condvar, Mutex};

use crate::common::Graph;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
enum Gate {
    #[default]
    Open,
    Shut,
    /// Refuses all commits.
    Full,
    Failed,
}

#[derive(Debug, Default)]
struct GateLog {
    gate: Mutex<Gate>,
    changed: Condvar,
    handed_over: Arc<Mutex<Vec<u64>>>,
    /// Commits that have reserved space and are not handed over.
    prepared: Arc<AtomicU64>,
    indexes: Mutex<Vec<IndexChange>>,
    /// The number of rules at each of their changes.
    rules: Mutex<Vec<usize>>,
}

#[derive(Debug)]
struct Prepared(Arc<Mutex<Vec<u64>>>, Arc<AtomicU64>);

impl PreparedCommit for Prepared {
    fn hand_over(self: Box<Self>, ts: u64) {
        self.0.lock().push(ts);
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        self.1.fetch_sub(1, Ordering::SeqCst);
    }
}

impl GateLog {
    fn set(&self, gate: Gate) {
        *self.gate.lock() = gate;
        self.changed.notify_all();
    }

    fn pass(&self) -> Result<()> {
        let mut gate = self.gate.lock();
        while *gate == Gate::Shut {
            self.changed.wait(&mut gate);
        }
        match *gate {
            Gate::Failed => Err(Error::new(ErrorKind::Io, "the disk is gone")),
            _ => Ok(()),
        }
    }
}

impl CommitLog for GateLog {
    fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>> {
        assert!(!writes.is_empty() && txn != 0);
        if *self.gate.lock() == Gate::Full {
            return Err(Error::new(ErrorKind::ReadOnly, "no space"));
        }
        self.prepared.fetch_add(1, Ordering::SeqCst);
        Ok(Box::new(Prepared(self.handed_over.clone(), self.prepared.clone())))
    }

    fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> Result<()> {
        self.pass()?;
        let stable = watermarks.stable();
        assert!(stable >= ts);
        // No other thread flushes in these tests meanwhile.
        watermarks.set_durable(stable);
        Ok(())
    }

    fn change_rules(&self, rules: &[RuleEntry], _: u32, _: &dyn Watermarks) -> Result<()> {
        self.pass()?;
        self.rules.lock().push(rules.len());
        Ok(())
    }

    fn change_index(&self, change: &IndexChange, _: &dyn Watermarks) -> Result<()> {
        self.pass()?;
        self.indexes.lock().push(change.clone());
        Ok(())
    }
}

/// A graph with two persons, and the log of its commits.
fn graph() -> (Arc<GateLog>, Graph, Vec<VertexId>) {
    let log = Arc::new(GateLog::default());
    let graph = Graph::with_log(RecentOptions::default(), log.clone()).without_collector();
    let ids = graph.persons(2);
    (log, graph, ids)
}

#[test]
fn a_commit_is_visible_before_it_is_durable_and_told_after() {
    let (log, graph, ids) = graph();
    log.set(Gate::Shut);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let txn = graph.serializable();
            graph.set(&txn, ids[0], 5).unwrap();
            txn.commit().unwrap()
        });
        while graph.manager.watermark() < 2 {
            std::thread::yield_now();
        }
        // A transaction that may write goes on from it, so a slow disk does not delay writers of hot objects.
        let txn = graph.serializable();
        assert_eq!((txn.begin_ts(), graph.get(&txn, ids[0])), (2, Some(5)));
        // A transaction that only reads sees durable commits, and does not wait.
        let reader = graph.manager.begin_read().unwrap();
        assert_eq!((reader.begin_ts(), graph.get(&reader, ids[0])), (1, Some(0)));
        reader.commit().unwrap();
        assert_eq!((graph.manager.readable(), graph.manager.oldest_snapshot()), (1, 1));
        // Reads beyond that are acknowledged when they are durable.
        let unsure = scope.spawn(|| txn.commit().unwrap());
        std::thread::sleep(std::time::Duration::from_millis(20));
        assert!(!writer.is_finished() && !unsure.is_finished());
        log.set(Gate::Open);
        assert_eq!((writer.join().unwrap().timestamp, unsure.join().unwrap().timestamp), (2, 2));
    });
    assert_eq!((graph.manager.readable(), &*log.handed_over.lock()), (2, &vec![1, 2]));
}

#[test]
fn what_readers_to_come_need_is_kept() {
    let (log, graph, ids) = graph();
    log.set(Gate::Failed);
    let txn = graph.serializable();
    graph.set(&txn, ids[0], 5).unwrap();
    txn.commit().unwrap_err();
    graph.manager.collect_garbage();
    let reader = graph.manager.begin_read().unwrap();
    assert_eq!(graph.get(&reader, ids[0]), Some(0), "not durable, and the version before is still there");
}

#[test]
fn a_refused_commit_leaves_nothing() {
    let (log, graph, ids) = graph();
    log.set(Gate::Full);
    let txn = graph.serializable();
    graph.set(&txn, ids[0], 5).unwrap();
    let error = txn.commit().unwrap_err();
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::ReadOnly, Remedy::RetryLater));
    assert_eq!((graph.manager.watermark(), graph.get(&graph.begin(), ids[0])), (1, Some(0)));
    let counters = graph.manager.counters();
    assert_eq!((counters.aborted(AbortCause::Refused), counters.conflicts()), (1, 0));
    log.set(Gate::Open);
    let txn = graph.serializable();
    graph.set(&txn, ids[0], 6).unwrap();
    assert_eq!(txn.commit().unwrap().timestamp, 2);
}

#[test]
fn after_a_failure_the_outcome_is_unknown_and_nothing_else_is_claimed() {
    let (log, graph, ids) = graph();
    log.set(Gate::Failed);
    let txn = graph.serializable();
    graph.set(&txn, ids[0], 5).unwrap();
    let error = txn.commit().unwrap_err();
    assert_eq!((error.kind(), error.remedy()), (ErrorKind::OutcomeUnknown, Remedy::CheckOutcome));
    assert!(error.message().contains("the disk is gone"), "{error}");
    let txn = graph.serializable();
    assert_eq!(graph.get(&txn, ids[0]), Some(5));
    assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::ReadOnly);
    graph.manager.begin_read().unwrap().commit().unwrap();
}

#[test]
fn who_aborts_after_all_gives_its_space_back() {
    let (log, graph, ids) = graph();
    let both = [0, 1].map(|who| {
        let txn = graph.serializable();
        graph.get(&txn, ids[1 - who]);
        graph.set(&txn, ids[who], 1).unwrap();
        txn
    });
    let [first, second] = both.map(|txn| txn.enter_validation().unwrap());
    assert_eq!(log.prepared.load(Ordering::SeqCst), 2);
    first.finish().unwrap();
    assert_eq!(second.finish().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((log.prepared.load(Ordering::SeqCst), log.handed_over.lock().len()), (0, 2));
}

#[test]
fn an_index_is_there_when_the_log_says_so() {
    let (log, graph, _) = graph();
    let options = IndexOptions {
        element: ElementKind::Vertex,
        label: None,
        keys: vec![graph.balance],
        ordered: true,
        unique: false,
    };
    log.set(Gate::Failed);
    assert!(graph.manager.create_index(&options).is_err());
    assert!(graph.manager.store().indexes().is_empty());
    log.set(Gate::Open);
    let id = graph.manager.create_index(&options).unwrap();
    log.set(Gate::Failed);
    assert!(graph.manager.drop_index(id).is_err());
    assert_eq!(graph.manager.store().indexes().len(), 1);
    log.set(Gate::Open);
    graph.manager.drop_index(id).unwrap();
    assert_eq!(graph.manager.drop_index(id).unwrap_err().kind(), ErrorKind::NotFound);
    let said = log.indexes.lock();
    assert!(
        matches!(&said[..], [IndexChange::Created(info), IndexChange::Dropped(dropped)] if info.id == id && *dropped == id)
    );
}
