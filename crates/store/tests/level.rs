//! Memory stays level while a graph is written to without a pause, and no thread walks the graph to find garbage.

#![cfg(not(feature = "model"))]

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use mangrove_graph::{EdgeId, KeyId, LabelSetId, Result, Value, VertexId};
use mangrove_store::{
    Backlog, Effort, RecordKind, RunningTransactions, Snapshot, Store, StoreOptions, WriteCardinality, Writer,
};

/// Held by the test that runs. A pinned thread of another test would hold back the reuse of memory.
static ALONE: Mutex<()> = Mutex::new(());

/// No transaction runs, and every snapshot from now on sees all commits up to this timestamp.
struct NoneRunning(u64);

impl RunningTransactions for NoneRunning {
    fn oldest_snapshot(&self) -> u64 {
        self.0
    }
    fn oldest_transaction(&self) -> u64 {
        self.0 + 1
    }
    fn next_transaction(&self) -> u64 {
        self.0 + 1
    }
}

/// A store that takes one commit after another.
struct Graph {
    store: Store,
    person: LabelSetId,
    knows: LabelSetId,
    age: KeyId,
    last_ts: u64,
    sweeps: usize,
}

impl Graph {
    fn new() -> Self {
        let store = Store::new(&StoreOptions { tablet_count: 1, ..StoreOptions::default() });
        let (person, knows) = (store.catalog().intern_label_text("person"), store.catalog().intern_label_text("knows"));
        let age = store.catalog().intern_key("age");
        Graph { store, person, knows, age, last_ts: 0, sweeps: 0 }
    }

    fn commit<T>(&mut self, write: impl FnOnce(&mut Writer<'_>) -> Result<T>) -> T {
        let ts = self.last_ts + 1;
        let mut log = Vec::new();
        let written = write(&mut Writer::new(&self.store, Snapshot::new(ts - 1, ts, 0), 1, &mut log));
        self.store.install(&log, ts);
        self.last_ts = ts;
        if self.store.retire(log, ts) == Backlog::Sweep {
            self.sweeps += 1;
            self.store.sweep(ts);
        }
        written.expect("no other transaction writes")
    }

    fn live(&self, kind: RecordKind) -> u64 {
        self.store.memory().rows[kind as usize].live
    }
}

#[test]
fn a_table_that_is_never_left_alone_is_compacted_as_it_becomes_due() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    const VERTICES: usize = 50;
    const EDGES: usize = 20;
    let mut graph = Graph::new();
    let (person, knows) = (graph.person, graph.knows);
    let vertices: Vec<VertexId> =
        graph.commit(|w| (0..VERTICES).map(|_| w.insert_vertex(person, None)).collect::<Result<_>>());
    let mut edges: VecDeque<EdgeId> = VecDeque::new();
    let mut totals = Vec::new();
    for n in 0..16_000 {
        let (from, to) = (vertices[n * 7 % VERTICES], vertices[n * 11 % VERTICES]);
        edges.push_back(graph.commit(|w| w.insert_edge(from, to, knows, None)));
        if edges.len() > EDGES {
            let oldest = edges.pop_front().expect("there are some");
            graph.commit(|w| w.delete_edge(oldest));
        }
        if n % 64 == 0 {
            let now = NoneRunning(graph.last_ts);
            graph.store.collect(&now, 1_024, false);
            graph.store.compact(&now, Effort::Due);
        }
        if n % 4_000 == 3_999 {
            totals.push(graph.store.memory().total_bytes());
        }
    }
    let garbage = graph.store.garbage();
    assert!(garbage.tables > 100, "{garbage:?}");
    // Two lists a vertex: the replaced one and the new one.
    assert!(graph.live(RecordKind::ListHeader) <= 4 * VERTICES as u64, "{:?}", graph.store.memory());
    assert!(graph.store.reserved_slots() < 2_000, "{garbage:?}");
    assert!(totals[3] <= totals[1] + totals[1] / 20, "{totals:?}");
    // Pages of edges, and a table in each direction.
    assert!(garbage.tasks < 16, "a table is listed once: {garbage:?}");
}

#[test]
fn a_committer_collects_its_own_garbage() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let mut graph = Graph::new();
    let (person, age) = (graph.person, graph.age);
    let vertices: Vec<VertexId> =
        graph.commit(|w| (0..10).map(|_| w.insert_vertex(person, None)).collect::<Result<_>>());
    for n in 0..4_000 {
        let value = Value::from(format!("the value of a record, number {n}"));
        graph.commit(|w| w.set_vertex_property(vertices[n % 10], age, value, WriteCardinality::Single, vec![]));
    }
    assert!(graph.sweeps >= 4_000 / 512, "{} sweeps", graph.sweeps);
    // The writes of the next sweep, and three sweeps that wait for a grace period: of a version, of a value's name, and
    // of a value's content.
    assert!(graph.live(RecordKind::Undo) <= 2 * 512, "{:?}", graph.store.garbage());
    assert!(graph.live(RecordKind::Value) <= 4 * 512, "{:?}", graph.store.garbage());
    // An old snapshot holds back the work, and the thread does not look again after every commit.
    let (ts, sweeps) = (graph.last_ts, graph.sweeps);
    let hold = |graph: &mut Graph, n: usize| {
        let value = Value::I64(n as i64);
        let mut log = Vec::new();
        let snapshot = Snapshot::new(graph.last_ts, graph.last_ts + 1, 0);
        let mut writer = Writer::new(&graph.store, snapshot, 1, &mut log);
        writer.set_vertex_property(vertices[n % 10], age, value, WriteCardinality::Single, vec![]).unwrap();
        drop(writer);
        graph.last_ts += 1;
        graph.store.install(&log, graph.last_ts);
        if graph.store.retire(log, graph.last_ts) == Backlog::Sweep {
            graph.sweeps += 1;
            graph.store.sweep(ts);
        }
    };
    (0..2_000).for_each(|n| hold(&mut graph, n));
    assert!(graph.sweeps - sweeps <= 2_000 / 64 + 1, "{} sweeps", graph.sweeps - sweeps);
    assert!(graph.live(RecordKind::Undo) >= 2_000);
    let now = NoneRunning(graph.last_ts);
    while graph.store.collect(&now, usize::MAX, true) > 0 {}
    assert_eq!((graph.live(RecordKind::Undo), graph.live(RecordKind::Value)), (0, 0));
}
