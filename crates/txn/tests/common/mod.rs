//! A small graph and short forms of queries, shared by the tests.
#![allow(dead_code, reason = "each test program uses its own part")]

pub mod history;
pub mod recount;
pub mod walk;

use std::sync::Arc;

use mangrove_graph::{
    Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, GraphView, KeyId, LabelFilter, LabelSetId, ScanCursor,
    Share, UserId, Value, ValueRows, VertexId,
};
use mangrove_store::{Store, StoreOptions, StoreSizes, WriteCardinality};
use mangrove_txn::{CommitLog, Isolation, RecentOptions, Transaction, TransactionManager, TransactionOptions};

pub struct Graph {
    pub manager: TransactionManager,
    pub person: LabelSetId,
    pub knows: LabelSetId,
    pub name: KeyId,
    pub balance: KeyId,
}

impl Graph {
    pub fn new() -> Self {
        Self::with_options(&StoreOptions { tablet_count: 4, ..StoreOptions::default() })
    }

    pub fn with_options(options: &StoreOptions) -> Self {
        Self::with(options, RecentOptions::default())
    }

    pub fn with_recent(recent: RecentOptions) -> Self {
        Self::with(&StoreOptions { tablet_count: 4, ..StoreOptions::default() }, recent)
    }

    fn with(options: &StoreOptions, recent: RecentOptions) -> Self {
        Self::of(options, |store| TransactionManager::with_options(store, recent))
    }

    /// A graph whose commits go into a log.
    pub fn with_log(recent: RecentOptions, log: Arc<dyn CommitLog>) -> Self {
        let options = StoreOptions { tablet_count: 4, ..StoreOptions::default() };
        Self::of(&options, |store| TransactionManager::with_log(store, recent, 0, log))
    }

    fn of(options: &StoreOptions, manager: impl FnOnce(Arc<Store>) -> TransactionManager) -> Self {
        let store = Arc::new(Store::new(options));
        let catalog = store.catalog();
        let (person, knows) = (catalog.intern_label_text("person"), catalog.intern_label_text("knows"));
        let (name, balance) = (catalog.intern_key("name"), catalog.intern_key("balance"));
        Graph { manager: manager(store), person, knows, name, balance }
    }

    /// Stops background collection, for tests that look twice and expect the same.
    pub fn without_collector(self) -> Self {
        self.manager.settings().gc_workers.store(0, std::sync::atomic::Ordering::Relaxed);
        self
    }

    /// A snapshot transaction.
    pub fn begin(&self) -> Transaction {
        self.manager.begin(TransactionOptions { isolation: Isolation::Snapshot, read_only: false }).unwrap()
    }

    /// A serializable transaction.
    pub fn serializable(&self) -> Transaction {
        self.manager.begin(TransactionOptions::default()).unwrap()
    }

    /// Commits a transaction that adds this many persons with balance 0.
    pub fn persons(&self, count: usize) -> Vec<VertexId> {
        let txn = self.begin();
        let ids = (0..count).map(|_| self.add(&txn, 0)).collect();
        txn.commit().unwrap();
        ids
    }

    pub fn add(&self, txn: &Transaction, balance: i64) -> VertexId {
        let id = txn.insert_vertex(self.person, None).unwrap();
        self.set(txn, id, balance).unwrap();
        id
    }

    pub fn set(&self, txn: &Transaction, id: VertexId, balance: i64) -> mangrove_graph::Result<()> {
        txn.set_vertex_property(id, self.balance, Value::I64(balance), WriteCardinality::Single, Vec::new())
    }

    pub fn get(&self, view: &dyn GraphView, id: VertexId) -> Option<i64> {
        match values(view, id, self.balance).as_slice() {
            [] => None,
            [Value::I64(n)] => Some(*n),
            other => panic!("one long expected, not {other:?}"),
        }
    }
}

/// Sizes at which few elements cross every boundary of the store; a different choice for every number.
pub fn small_sizes(choice: u64) -> StoreSizes {
    let of = |sizes: &[u32], divisor: u64| sizes[(choice / divisor % sizes.len() as u64) as usize];
    StoreSizes {
        // Pages of up to 16 slots have arrays of columns and descriptors at once; larger ones begin with tables, which
        // become arrays after a few more values.
        first_page_slots: of(&[8, 32, 1, 64], 1),
        page_slots_max: of(&[1_024, 32, 8, 64, 1], 4),
        long_list: of(&[3, 1, 8, 4_096], 20),
        run_max: of(&[32_767, 8], 80),
        changes_min: of(&[1, 5], 160) as u16,
    }
}

pub fn values(view: &dyn GraphView, id: VertexId, key: KeyId) -> Vec<Value> {
    let mut rows = ValueRows::default();
    view.vertex_values(&[id], key, &mut rows).unwrap();
    rows.value
}

/// All visible vertices, scanned a few at a time.
pub fn vertices(view: &dyn GraphView) -> Vec<VertexId> {
    let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 7, &mut out).unwrap() {}
    assert_eq!(view.count_vertices(&LabelFilter::Any, Share::ALL).unwrap(), out.len() as u64);
    out
}

/// All visible edges with their ends, scanned a few at a time.
pub fn edges(view: &dyn GraphView) -> Vec<(EdgeId, VertexId, VertexId)> {
    let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 7, &mut out).unwrap() {}
    assert_eq!(view.count_edges(&LabelFilter::Any, Share::ALL).unwrap(), out.len() as u64);
    let (mut sources, mut targets) = (Vec::new(), Vec::new());
    view.edge_ends(&out, &mut sources, &mut targets).unwrap();
    out.iter().zip(sources).zip(targets).map(|((&e, s), t)| (e, s, t)).collect()
}

/// The results of an expansion in portions of `limit`, as (row, neighbor, edge).
pub fn expand(
    view: &dyn GraphView,
    ids: &[VertexId],
    direction: Direction,
    limit: usize,
) -> Vec<(u32, VertexId, EdgeId)> {
    let request = ExpandRequest { direction, labels: LabelFilter::Any, edges: true, limit };
    let (mut out, mut cursor, mut all) = (Expansion::default(), ExpandCursor::default(), Vec::new());
    loop {
        let done = view.expand(ids, &request, &mut cursor, &mut out).unwrap();
        assert!(out.row.is_sorted());
        all.extend((0..out.len()).map(|i| (out.row[i], out.neighbor[i], out.edge[i])));
        out.clear();
        if done {
            assert!(all.is_sorted_by_key(|(row, _, _)| *row));
            return all;
        }
    }
}

/// The laws of a view: adjacency is exactly the visible edges, from both sides, and no edge dangles.
#[track_caller]
pub fn check_consistent(view: &dyn GraphView) {
    let (vertices, edges) = (vertices(view), edges(view));
    for (direction, flip) in [(Direction::Out, false), (Direction::In, true)] {
        let mut seen: Vec<_> = expand(view, &vertices, direction, 5)
            .into_iter()
            .map(|(row, neighbor, edge)| (edge, vertices[row as usize], neighbor))
            .collect();
        let mut expected: Vec<_> = edges.iter().map(|&(e, s, t)| if flip { (e, t, s) } else { (e, s, t) }).collect();
        seen.sort_unstable();
        expected.sort_unstable();
        assert_eq!(seen, expected, "{direction:?}");
    }
    let mut degrees = Vec::new();
    view.degrees(&vertices, Direction::Both, &LabelFilter::Any, &mut degrees).unwrap();
    assert_eq!(degrees.iter().sum::<u64>(), 2 * edges.len() as u64);
}

pub fn find(view: &dyn GraphView, id: impl Into<UserId>) -> Option<VertexId> {
    let mut out = Vec::new();
    view.find_vertices(&[id.into()], &mut out).unwrap();
    out[0]
}

/// The store's report of its memory equals the result of a walk over it. A background collector may change both, so the
/// report before the walk must equal the one after it, too. And an allocation has at least a byte.
#[track_caller]
pub fn check_memory(store: &Store) {
    for row in store.memory().rows {
        assert!(row.allocations <= row.bytes, "{} allocations of {} bytes: {}", row.allocations, row.bytes, row.name);
    }
    for _ in 0..10_000 {
        let (before, walked, after) = (store.memory().total_bytes(), store.memory_walk(), store.memory().total_bytes());
        if before == after {
            return assert_eq!(before, walked);
        }
    }
    panic!("the store's memory changes all the time");
}
