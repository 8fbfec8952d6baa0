//! Scenarios for the model checker: small runs of the store whose interleavings shuttle tries out.
//!
//! `main.rs` runs them, with the feature `model`. Each scenario makes its data, starts a few threads, and
//! asserts properties that must hold in every interleaving. Scenarios use only what the store offers to other crates.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Direction, EdgeId, ElementKind, ExpandCursor, ExpandRequest, Expansion,
    GraphChanges, GraphView, IndexRange, KeyId, LabelFilter, LabelSetId, ScanCursor, Share, Value, ValueRows, VertexId,
};
use mangrove_reclaim::{EpochCell, Limbo, Retired, Unlinked};
use mangrove_store::{
    BulkLoader, Effort, IndexOptions, RunningTransactions, Snapshot, Store, StoreOptions, StoreSizes, Write,
    WriteCardinality, Writer,
};
use shuttle::thread;

/// Memory that waits in a limbo.
struct UnlinkedMemory(Retired);

impl From<Retired> for UnlinkedMemory {
    fn from(memory: Retired) -> Self {
        UnlinkedMemory(memory)
    }
}

impl Unlinked for UnlinkedMemory {
    fn into_memory(self) -> Result<Retired, Self> {
        Ok(self.0)
    }
}

/// A value that notes when it is dropped.
struct Tracked(Arc<AtomicBool>);

impl Drop for Tracked {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A pinned reader against a thread that retires memory: the memory is not freed under the pin.
pub fn a_pinned_reader_keeps_what_it_found() {
    let cell = Arc::new(EpochCell::new(Tracked(Arc::default())));
    let limbo = Arc::new(Limbo::<UnlinkedMemory>::default());
    let readers: Vec<_> = (0..2)
        .map(|_| {
            let cell = cell.clone();
            thread::spawn(move || {
                let found = cell.load().expect("there is always something");
                let freed = found.0.clone();
                thread::yield_now();
                assert!(!freed.load(Ordering::SeqCst), "freed under a pin");
                drop(found);
            })
        })
        .collect();
    for _ in 0..2 {
        limbo.retire(cell.swap(Some(Tracked(Arc::default()))));
        limbo.release(usize::MAX, |_| unreachable!("only memory was retired"));
    }
    readers.into_iter().for_each(|reader| reader.join().expect("a reader that asserts ends the model"));
}

/// Running transactions that never change.
struct Still {
    oldest: u64,
    next: u64,
}

impl RunningTransactions for Still {
    fn oldest_snapshot(&self) -> u64 {
        self.oldest
    }
    fn oldest_transaction(&self) -> u64 {
        self.next
    }
    fn next_transaction(&self) -> u64 {
        self.next
    }
}

/// Slots of the first page of a label set: enough that columns and adjacency tables begin sparse. A sparse column has
/// up to four values and a sparse table up to seven lists; with one more they are dense.
const PAGE_SLOTS: u32 = 32;

/// A store with one tablet, and its content after the first commit.
struct Graph {
    store: Store,
    knows: LabelSetId,
    age: KeyId,
    vertices: Vec<VertexId>,
    edges: Vec<EdgeId>,
}

impl Graph {
    /// Vertices with an edge from the first to every other, committed at 1 and packed.
    fn new(vertices: usize) -> Self {
        let sizes = StoreSizes { first_page_slots: PAGE_SLOTS, ..StoreSizes::default() };
        let options = StoreOptions { tablet_count: 1, sizes, ..StoreOptions::default() };
        let store = Store::new(&options);
        let person = store.catalog().intern_label_text("person");
        let knows = store.catalog().intern_label_text("knows");
        let age = store.catalog().intern_key("age");
        let mut log = Vec::new();
        let mut writer = Writer::new(&store, Snapshot::new(0, 1, 0), 1, &mut log);
        let vertices: Vec<_> = (0..vertices).map(|_| writer.insert_vertex(person, None).unwrap()).collect();
        let edges = vertices[1..].iter().map(|&v| writer.insert_edge(vertices[0], v, knows, None).unwrap()).collect();
        drop(writer);
        store.install(&log, 1);
        let graph = Graph { store, knows, age, vertices, edges };
        graph.freeze(1);
        graph
    }

    /// Collects and packs until nothing is left to do.
    fn freeze(&self, oldest: u64) {
        let running = Still { oldest, next: 100 };
        while self.store.collect(&running, usize::MAX, true) + self.store.compact(&running, Effort::All) > 0 {}
    }

    /// Writes as a transaction that began at 1. Returns its log, or `None` if it was in conflict and is rolled back.
    fn write(&self, txn: u64, write: impl FnOnce(&mut Writer<'_>) -> mangrove_graph::Result<()>) -> Option<Vec<Write>> {
        self.write_at(1, txn, write)
    }

    /// As [`Graph::write`], as a transaction that began at a timestamp.
    fn write_at(
        &self,
        begin: u64,
        txn: u64,
        write: impl FnOnce(&mut Writer<'_>) -> mangrove_graph::Result<()>,
    ) -> Option<Vec<Write>> {
        let mut log = Vec::new();
        let outcome = write(&mut Writer::new(&self.store, Snapshot::new(begin, txn, 0), 1, &mut log));
        match outcome {
            Ok(()) => Some(log),
            Err(_) => {
                self.store.rollback(&log, txn);
                self.store.retire_aborted(log);
                None
            }
        }
    }

    /// The edges of vertices at a timestamp, in the order of their ids.
    fn degree(&self, ts: u64, direction: Direction, of: &[VertexId]) -> Vec<EdgeId> {
        let view = self.store.view(Snapshot::committed(ts));
        let request = ExpandRequest { direction, labels: LabelFilter::Any, edges: true, limit: 100 };
        let mut out = Expansion::default();
        assert!(view.expand(of, &request, &mut ExpandCursor::default(), &mut out).unwrap());
        out.edge.sort_unstable();
        out.edge
    }
}

/// Compaction against a deleter, an appender and a reader of one list.
pub fn a_list_is_replaced_while_it_changes() {
    let graph = Arc::new(Graph::new(4));
    let hub = graph.vertices[0];
    // A deleted edge, so that there is a list to compact.
    let log = graph.write(2, |w| w.delete_edge(graph.edges[0])).expect("no other transaction writes");
    graph.store.install(&log, 2);
    graph.store.retire(log, 2);
    let before = graph.degree(2, Direction::Out, &[hub]);
    let (one, two, three) = (graph.clone(), graph.clone(), graph.clone());
    let deleter = thread::spawn(move || one.write(3, |w| w.delete_edge(one.edges[1])));
    let appender = thread::spawn(move || {
        two.write(4, |w| w.insert_edge(two.vertices[0], two.vertices[1], two.knows, None).map(drop))
    });
    let reader = thread::spawn({
        let before = before.clone();
        move || assert_eq!(three.degree(2, Direction::Out, &[hub]), before)
    });
    let running = Still { oldest: 2, next: 100 };
    graph.store.compact(&running, Effort::All);
    reader.join().expect("the reader asserts");
    let (deleted, added) = (deleter.join().expect("no panic"), appender.join().expect("no panic"));
    let (deleted, added) = (deleted.expect("no conflict"), added.expect("no conflict"));
    graph.store.install(&deleted, 3);
    graph.store.install(&added, 4);
    assert_eq!(graph.degree(2, Direction::Out, &[hub]), before);
    let now = graph.degree(4, Direction::Out, &[hub]);
    assert!(now.len() == before.len() && !now.contains(&graph.edges[1]), "{now:?} after {before:?}");
    assert_eq!(graph.degree(4, Direction::In, &graph.vertices), now);
    graph.store.retire(deleted, 3);
    graph.store.retire(added, 4);
    graph.freeze(4);
    assert_eq!(graph.degree(4, Direction::Out, &[hub]), now);
}

/// Compaction against transactions that end an edge of the run and one of the tail of a list, commit, and read the list.
pub fn edges_of_run_and_tail_end_while_their_list_is_packed() {
    let graph = Arc::new(Graph::new(4));
    let hub = graph.vertices[0];
    let commit = |log: Option<Vec<Write>>, ts| {
        let log = log.expect("no other transaction writes");
        graph.store.install(&log, ts);
        graph.store.retire(log, ts);
    };
    // A list with an ended edge and a tail, so that there is a list to compact.
    commit(graph.write(2, |w| w.delete_edge(graph.edges[0])), 2);
    let mut added = None;
    commit(
        graph.write_at(2, 3, |w| w.insert_edge(hub, graph.vertices[2], graph.knows, None).map(|id| added = Some(id))),
        3,
    );
    let (of_run, of_tail) = (graph.edges[1], added.expect("the edge was added"));
    let before = graph.degree(3, Direction::Out, &[hub]);
    assert!(before.len() == 3 && before.contains(&of_tail));
    let deleter = |edge: EdgeId, ts: u64| {
        let graph = graph.clone();
        thread::spawn(move || {
            let log = graph.write_at(3, ts, |w| w.delete_edge(edge)).expect("no conflict");
            graph.store.install(&log, ts);
            // The transactions that begin after the commit find the list as it is now.
            for direction in [Direction::Out, Direction::In] {
                assert!(!graph.degree(ts, direction, &graph.vertices).contains(&edge));
            }
            log
        })
    };
    let (first, second) = (deleter(of_run, 4), deleter(of_tail, 5));
    let reader = thread::spawn({
        let (graph, before) = (graph.clone(), before.clone());
        move || assert_eq!(graph.degree(3, Direction::Out, &[hub]), before)
    });
    let running = Still { oldest: 3, next: 100 };
    graph.store.compact(&running, Effort::All);
    reader.join().expect("the reader asserts");
    let logs = [first, second].map(|deleter| deleter.join().expect("no panic"));
    for _ in 0..3 {
        for direction in [Direction::Out, Direction::In] {
            let left =
                |edges: &[EdgeId]| before.iter().copied().filter(|edge| !edges.contains(edge)).collect::<Vec<_>>();
            assert_eq!(graph.degree(3, direction, &graph.vertices), before);
            assert_eq!(graph.degree(4, direction, &graph.vertices), left(&[of_run]));
            assert_eq!(graph.degree(5, direction, &graph.vertices), left(&[of_run, of_tail]));
        }
        // The lists are packed again while the edges are not taken apart.
        let _ = graph.store.compact(&running, Effort::All);
    }
    for (log, ts) in logs.into_iter().zip([4, 5]) {
        graph.store.retire(log, ts);
    }
    graph.freeze(5);
    assert_eq!(graph.degree(5, Direction::Out, &[hub]).len(), 1);
    assert_eq!(graph.store.memory().total_bytes(), graph.store.memory_walk());
}

/// The neighbors of all vertices of a graph at a timestamp, as a walk over whole lists shows them: source and target of each edge.
fn walked(store: &Store, ts: u64) -> Vec<(VertexId, VertexId)> {
    let request = AdjacencyRequest {
        vertices: LabelFilter::Any,
        direction: Direction::Out,
        labels: LabelFilter::Any,
        share: Share::ALL,
        pages: ScanCursor::default(),
        edges: false,
    };
    let mut found = Vec::new();
    let mut each = |runs: &AdjacencyRuns<'_>| {
        runs.iter().for_each(|(source, targets, _)| found.extend(targets.iter().map(|target| (source, *target))));
        Ok(())
    };
    store.view(Snapshot::committed(ts)).for_each_adjacency(&request, &mut each).expect("nothing ends the walk");
    found.sort_unstable();
    found
}

/// Walks over the lists of a bulk load against the first transactions that change them, and the first compaction.
pub fn lists_of_a_load_are_walked_while_they_change() {
    let sizes = StoreSizes { page_slots_max: 4, ..StoreSizes::default() };
    let store = Arc::new(Store::new(&StoreOptions { tablet_count: 1, sizes, ..StoreOptions::default() }));
    let person = store.catalog().intern_label_text("person");
    let knows = store.catalog().intern_label_text("knows");
    let mut load = BulkLoader::new(store.clone()).unwrap();
    let vertices = load.vertices(person, 4, None, &[]).unwrap();
    let ends = [(0, 1), (0, 2), (1, 2), (3, 0)].map(|(source, target)| (vertices[source], vertices[target]));
    let edges = load.edges(knows, &ends, None, &[]).unwrap();
    load.finish().unwrap();
    let before = walked(&store, 1);
    assert_eq!(before, ends);
    // Two edges of one list end, so that one transaction may meet the list as the other has left it.
    let deleter = |edge: usize, ts: u64| {
        let (store, id, ends) = (store.clone(), edges[edge], ends[edge]);
        thread::spawn(move || {
            let mut log = Vec::new();
            Writer::new(&store, Snapshot::new(1, ts, 0), 1, &mut log).delete_edge(id).expect("no conflict");
            store.install(&log, ts);
            // A transaction that begins after the commit does not see the edge.
            assert!(!walked(&store, ts).contains(&ends));
            log
        })
    };
    let (first, second) = (deleter(0, 2), deleter(1, 3));
    let reader = thread::spawn({
        let (store, before) = (store.clone(), before.clone());
        move || assert_eq!(walked(&store, 1), before)
    });
    let added = (vertices[2], vertices[3]);
    let mut log = Vec::new();
    let mut writer = Writer::new(&store, Snapshot::new(1, 4, 0), 1, &mut log);
    writer.insert_edge(added.0, added.1, knows, None).expect("no conflict");
    drop(writer);
    store.install(&log, 4);
    assert!(walked(&store, 4).contains(&added));
    let running = Still { oldest: 1, next: 100 };
    store.compact(&running, Effort::All);
    reader.join().expect("the reader asserts");
    let logs = [first, second].map(|deleter| deleter.join().expect("the deleter asserts"));
    let after = [ends[2], added, ends[3]];
    for _ in 0..3 {
        assert_eq!((walked(&store, 1), walked(&store, 4)), (before.clone(), after.to_vec()));
        store.compact(&running, Effort::All);
    }
    for (log, ts) in logs.into_iter().chain([log]).zip(2..) {
        store.retire(log, ts);
    }
    let running = Still { oldest: 4, next: 100 };
    while store.collect(&running, usize::MAX, true) + store.compact(&running, Effort::All) > 0 {}
    assert_eq!(walked(&store, 4), after);
    assert_eq!(store.memory().total_bytes(), store.memory_walk());
}

/// Compaction against the deletion of a vertex, which ends whole lists at once, and a reader of them.
pub fn lists_are_replaced_while_their_vertex_is_deleted() {
    let graph = Arc::new(Graph::new(4));
    let hub = graph.vertices[0];
    let log = graph.write(2, |w| w.delete_edge(graph.edges[0])).expect("no other transaction writes");
    graph.store.install(&log, 2);
    graph.store.retire(log, 2);
    let before = graph.degree(2, Direction::Out, &[hub]);
    let (one, two) = (graph.clone(), graph.clone());
    let deleter = thread::spawn(move || one.write_at(2, 3, |w| w.delete_vertex(hub)));
    let reader = thread::spawn({
        let before = before.clone();
        move || assert_eq!(two.degree(2, Direction::In, &two.vertices), before)
    });
    let running = Still { oldest: 2, next: 100 };
    graph.store.compact(&running, Effort::All);
    reader.join().expect("the reader asserts");
    let deleted = deleter.join().expect("no panic").expect("no conflict");
    graph.store.install(&deleted, 3);
    // The tables are packed again while the vertex is not taken apart: no run with an ended edge may become clean.
    for _ in 0..3 {
        let _ = graph.store.compact(&running, Effort::All);
    }
    for direction in [Direction::Out, Direction::In] {
        assert_eq!(graph.degree(2, direction, &graph.vertices), before);
        assert_eq!(graph.degree(3, direction, &graph.vertices), []);
    }
    graph.store.retire(deleted, 3);
    graph.freeze(3);
    assert_eq!(graph.degree(3, Direction::In, &graph.vertices), []);
    assert_eq!(graph.store.memory().total_bytes(), graph.store.memory_walk());
}

/// Freezing a page against a transaction that deletes an element of it.
pub fn version_words_go_while_an_element_is_deleted() {
    // The page is full, since others keep their version words.
    let graph = Arc::new(Graph::new(PAGE_SLOTS as usize));
    let (one, two) = (graph.clone(), graph.clone());
    // A rolled-back deletion brings the words back.
    let log = graph.write(2, |w| w.delete_vertex(graph.vertices[5])).expect("no other transaction writes");
    graph.store.rollback(&log, 2);
    graph.store.retire_aborted(log);
    let deleter = thread::spawn(move || one.write(3, |w| w.delete_vertex(one.vertices[9])));
    let reader = thread::spawn(move || {
        let view = two.store.view(Snapshot::committed(1));
        let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
        while !view.scan_vertices(&LabelFilter::Any, Share::ALL, &mut cursor, 100, &mut out).unwrap() {}
        assert_eq!(out.len(), PAGE_SLOTS as usize);
    });
    let running = Still { oldest: 1, next: 100 };
    for _ in 0..3 {
        graph.store.collect(&running, usize::MAX, true);
    }
    reader.join().expect("the reader asserts");
    let deleted = deleter.join().expect("no panic").expect("no conflict");
    graph.store.install(&deleted, 3);
    let count = |ts| {
        let view = graph.store.view(Snapshot::committed(ts));
        view.count_vertices(&LabelFilter::Any, Share::ALL).unwrap()
    };
    assert_eq!((count(1), count(3)), (u64::from(PAGE_SLOTS), u64::from(PAGE_SLOTS) - 1));
}

/// Cutting undo chains against a writer, a rollback and a reader of one cell.
pub fn a_chain_is_cut_while_the_cell_is_written() {
    let graph = Arc::new(Graph::new(2));
    let v = graph.vertices[0];
    let set = move |graph: &Graph, txn: u64, value: Value| {
        graph.write(txn, |w| w.set_vertex_property(v, graph.age, value, WriteCardinality::Single, vec![]))
    };
    let first = set(&graph, 2, Value::from("the first value, in a record")).expect("no other transaction writes");
    graph.store.install(&first, 1);
    graph.store.retire(first, 1);
    let (one, two) = (graph.clone(), graph.clone());
    let writers = thread::spawn(move || {
        if let Some(undone) = set(&one, 3, Value::I64(7)) {
            one.store.rollback(&undone, 3);
            one.store.retire_aborted(undone);
        }
        set(&one, 4, Value::Bool(true))
    });
    let reader = thread::spawn(move || {
        let mut rows = ValueRows::default();
        for _ in 0..2 {
            two.store.view(Snapshot::committed(1)).vertex_values(&[v], two.age, &mut rows).unwrap();
        }
        let first = Value::from("the first value, in a record");
        assert_eq!(rows.value, [first.clone(), first]);
    });
    let running = Still { oldest: 1, next: 100 };
    for _ in 0..4 {
        graph.store.collect(&running, usize::MAX, true);
    }
    reader.join().expect("the reader asserts");
    let last = writers.join().expect("no panic").expect("no conflict");
    graph.store.install(&last, 5);
    let mut rows = ValueRows::default();
    graph.store.view(Snapshot::committed(5)).vertex_values(&[v], graph.age, &mut rows).unwrap();
    assert_eq!(rows.value, [Value::Bool(true)]);
}

/// Making an index against a collector that cuts the chain of a value, and a writer that gets the record that was cut
/// off and is rolled back.
pub fn an_index_is_built_while_a_record_is_used_again() {
    // Enough values that the column is dense.
    let graph = Arc::new(Graph::new(6));
    let [v, other] = [graph.vertices[0], graph.vertices[1]];
    let set = move |graph: &Graph, txn: u64, of: &[VertexId], value: i64| {
        let write = |w: &mut Writer<'_>| {
            let mut set = |v: &VertexId| {
                w.set_vertex_property(*v, graph.age, Value::I64(value), WriteCardinality::Single, vec![])
            };
            of.iter().try_for_each(&mut set)
        };
        graph.write_at(txn - 1, txn, write).expect("no other transaction writes")
    };
    for (txn, of) in [(2, &graph.vertices[..]), (3, &[v])] {
        let log = set(&graph, txn, of, txn as i64);
        graph.store.install(&log, txn);
        graph.store.retire(log, txn);
        if txn == 2 {
            graph.freeze(2);
        }
    }
    let (one, two) = (graph.clone(), graph.clone());
    let builder = thread::spawn(move || {
        let options = IndexOptions {
            element: ElementKind::Vertex,
            label: None,
            keys: vec![one.age],
            ordered: false,
            unique: false,
        };
        one.store.create_index(&options, || 3).expect("there is no other index")
    });
    let writer = thread::spawn(move || {
        let running = Still { oldest: 3, next: 100 };
        for _ in 0..3 {
            two.store.collect(&running, usize::MAX, true);
        }
        let undone = set(&two, 4, &[other], 4);
        two.store.rollback(&undone, 4);
        two.store.retire_aborted(undone);
    });
    writer.join().expect("no panic");
    let index = builder.join().expect("the builder asserts");
    let mut found = Vec::new();
    let view = graph.store.view(Snapshot::committed(3));
    view.index_vertices(index, &[], &IndexRange::Equal(vec![Value::I64(3)]), Share::ALL, &mut found).unwrap();
    assert_eq!(found, [v]);
}

/// A column that becomes dense, by one writer, against another writer, a rollback, a collector and a reader of its
/// cells.
pub fn a_column_becomes_dense_while_a_cell_is_written() {
    let graph = Arc::new(Graph::new(6));
    let set = |graph: &Graph, txn: u64, at: usize, value: i64| {
        let (v, value) = (graph.vertices[at], Value::I64(value));
        graph.write(txn, |w| w.set_vertex_property(v, graph.age, value, WriteCardinality::Single, vec![]))
    };
    let ages = |graph: &Graph, ts: u64| {
        let mut rows = ValueRows::default();
        graph.store.view(Snapshot::committed(ts)).vertex_values(&graph.vertices, graph.age, &mut rows).unwrap();
        rows.value
    };
    // As many values as the sparse table takes.
    for at in 0..4 {
        let log = set(&graph, 10 + at as u64, at, at as i64).expect("no other transaction writes");
        graph.store.install(&log, 1);
        graph.store.retire(log, 1);
    }
    let first: Vec<_> = (0..4).map(Value::I64).collect();
    let (one, two, three) = (graph.clone(), graph.clone(), graph.clone());
    let fifth = thread::spawn(move || set(&one, 2, 4, 4));
    let rewriter = thread::spawn(move || {
        if let Some(undone) = set(&two, 3, 0, 70) {
            two.store.rollback(&undone, 3);
            two.store.retire_aborted(undone);
        }
        set(&two, 4, 1, 71)
    });
    let reader = thread::spawn({
        let first = first.clone();
        move || (0..2).for_each(|_| assert_eq!(ages(&three, 1), first))
    });
    let running = Still { oldest: 1, next: 100 };
    for _ in 0..2 {
        graph.store.collect(&running, usize::MAX, true);
    }
    reader.join().expect("the reader asserts");
    for (ts, writer) in [(5, fifth), (6, rewriter)] {
        let log = writer.join().expect("no panic").expect("no conflict");
        graph.store.install(&log, ts);
        graph.store.retire(log, ts);
    }
    assert_eq!(ages(&graph, 1), first);
    graph.freeze(6);
    assert_eq!(ages(&graph, 6), [0, 71, 2, 3, 4].map(Value::I64));
    assert_eq!(graph.store.memory().total_bytes(), graph.store.memory_walk());
}

/// A table of lists that becomes dense, by one writer, against a deleter, a compaction and a reader of its lists.
pub fn a_table_becomes_dense_while_its_lists_change() {
    // Seven lists of incoming edges: as many as the sparse table takes.
    let graph = Arc::new(Graph::new(8));
    let log = graph.write(2, |w| w.delete_edge(graph.edges[0])).expect("no other transaction writes");
    graph.store.install(&log, 2);
    graph.store.retire(log, 2);
    let before = graph.degree(2, Direction::In, &graph.vertices);
    let (one, two, three) = (graph.clone(), graph.clone(), graph.clone());
    let eighth = thread::spawn(move || {
        one.write(3, |w| w.insert_edge(one.vertices[1], one.vertices[0], one.knows, None).map(drop))
    });
    let deleter = thread::spawn(move || two.write(4, |w| w.delete_edge(two.edges[6])));
    let reader = thread::spawn({
        let before = before.clone();
        move || assert_eq!(three.degree(2, Direction::In, &three.vertices), before)
    });
    let running = Still { oldest: 2, next: 100 };
    graph.store.compact(&running, Effort::All);
    reader.join().expect("the reader asserts");
    for (ts, writer) in [(5, eighth), (6, deleter)] {
        let log = writer.join().expect("no panic").expect("no conflict");
        graph.store.install(&log, ts);
        graph.store.retire(log, ts);
    }
    assert_eq!(graph.degree(2, Direction::In, &graph.vertices), before);
    graph.freeze(6);
    let now = graph.degree(6, Direction::In, &graph.vertices);
    assert!(now.len() == before.len() && !now.contains(&graph.edges[6]), "{now:?} after {before:?}");
    assert_eq!(graph.degree(6, Direction::Out, &graph.vertices), now);
    assert_eq!(graph.store.memory().total_bytes(), graph.store.memory_walk());
}

/// The log of changes begins while a commit adds an edge, and another writes a property of one (STORE-38): the log has both, or says that it does not know.
pub fn a_log_of_changes_begins_while_edges_are_written() {
    let graph = Arc::new(Graph::new(3));
    let ask = |graph: &Graph, since: u64, ts: u64| {
        let mut changes = GraphChanges::default();
        let view = graph.store.view(Snapshot::committed(ts));
        view.changes_since(since, true, 10, &mut changes).unwrap().then_some(changes.edges.len())
    };
    let (one, two) = (graph.clone(), graph.clone());
    let writer = thread::spawn(move || {
        for ts in [2, 3] {
            let log = one.write_at(ts - 1, ts, |w| match ts {
                2 => w.insert_edge(one.vertices[0], one.vertices[1], one.knows, None).map(drop),
                _ => w.set_edge_property(one.edges[0], one.age, Value::I64(1)),
            });
            let log = log.expect("no other transaction writes");
            one.store.install(&log, ts);
            one.store.retire(log, ts);
        }
    });
    let reader = thread::spawn(move || {
        assert_eq!(ask(&two, 1, 1), None, "there is no log yet");
        assert!(matches!(ask(&two, 1, 1), None | Some(0)));
    });
    reader.join().expect("the reader asserts");
    writer.join().expect("no panic");
    assert!(matches!(ask(&graph, 1, 3), None | Some(2)), "{:?}", ask(&graph, 1, 3));
    assert!(matches!(ask(&graph, 2, 3), None | Some(1)), "{:?}", ask(&graph, 2, 3));
    assert_eq!(ask(&graph, 3, 3), Some(0));
    graph.freeze(3);
    assert_eq!(graph.store.memory().total_bytes(), graph.store.memory_walk());
}

/// A table that is emptied, with its array, against a writer that begins another list, a rollback and a reader of its
/// lists.
pub fn a_table_is_emptied_while_a_list_begins() {
    // Incoming edges of eight vertices: one more than a small table takes, so that there is an array.
    let graph = Arc::new(Graph::new(9));
    let log = graph.write(2, |w| graph.edges.iter().try_for_each(|&edge| w.delete_edge(edge)));
    let log = log.expect("no other transaction writes");
    graph.store.install(&log, 2);
    graph.store.retire(log, 2);
    let running = Still { oldest: 2, next: 100 };
    // The lists go. A previous layout is left, and when it goes the tables are empty.
    graph.store.compact(&running, Effort::All);
    let link = |graph: &Graph, txn: u64, from: usize, to: usize| {
        let (from, to) = (graph.vertices[from], graph.vertices[to]);
        graph.write_at(2, txn, |w| w.insert_edge(from, to, graph.knows, None).map(drop))
    };
    let (one, two, three) = (graph.clone(), graph.clone(), graph.clone());
    let first = thread::spawn(move || {
        let log = link(&one, 3, 0, 1).expect("no conflict");
        one.store.install(&log, 3);
        // Committed: from here on every later reader finds the list, in whichever form it is.
        let found = one.degree(3, Direction::In, &one.vertices);
        assert_eq!((found.len(), one.degree(3, Direction::Out, &one.vertices)), (1, found));
        log
    });
    let second = thread::spawn(move || {
        let undone = link(&two, 4, 2, 3).expect("no conflict");
        two.store.rollback(&undone, 4);
        two.store.retire_aborted(undone);
    });
    let reader = thread::spawn(move || {
        for direction in [Direction::In, Direction::Out] {
            assert_eq!(three.degree(2, direction, &three.vertices), []);
        }
    });
    for _ in 0..2 {
        graph.store.compact(&running, Effort::All);
    }
    reader.join().expect("the reader asserts");
    second.join().expect("no panic");
    let first = first.join().expect("the writer asserts");
    graph.store.retire(first, 3);
    graph.freeze(3);
    let left = graph.degree(3, Direction::In, &graph.vertices);
    assert_eq!((left.len(), graph.degree(3, Direction::Out, &graph.vertices)), (1, left.clone()));
    let last = graph.write_at(3, 5, |w| w.delete_edge(left[0])).expect("no other transaction writes");
    graph.store.install(&last, 5);
    graph.store.retire(last, 5);
    graph.freeze(5);
    assert_eq!(graph.degree(5, Direction::In, &graph.vertices), []);
    assert_eq!(graph.store.memory().total_bytes(), graph.store.memory_walk());
}

/// Freezing a page of edges with free slots against a transaction that uses one, a transaction that deletes another
/// edge there, and a reader. At first the page has version words, or it is frozen with packed ends (`is_frozen`).
fn a_free_slot_is_used(is_frozen: bool) {
    let graph = Graph::new(PAGE_SLOTS as usize);
    // As many edges as the page has slots, and then fewer.
    let log = graph.write(2, |w| w.insert_edge(graph.vertices[1], graph.vertices[2], graph.knows, None).map(drop));
    let more = log.expect("no other transaction writes");
    graph.store.install(&more, 2);
    graph.store.retire(more, 2);
    let log = graph.write_at(2, 3, |w| graph.edges[..6].iter().try_for_each(|&edge| w.delete_edge(edge)));
    let log = log.expect("no other transaction writes");
    graph.store.install(&log, 3);
    graph.store.retire(log, 3);
    let running = Still { oldest: 3, next: 100 };
    if is_frozen {
        graph.freeze(3);
    } else {
        // Its slots are free, and no collector has looked at the page yet.
        while graph.store.collect(&running, usize::MAX, true) + graph.store.compact(&running, Effort::Due) > 0 {}
    }
    let graph = Arc::new(graph);
    let edges = |graph: &Graph, ts: u64| {
        let view = graph.store.view(Snapshot::committed(ts));
        let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
        while !view.scan_edges(&LabelFilter::Any, Share::ALL, &mut cursor, 100, &mut out).unwrap() {}
        assert_eq!(view.count_edges(&LabelFilter::Any, Share::ALL).unwrap(), out.len() as u64);
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        view.edge_ends(&out, &mut sources, &mut targets).unwrap();
        out.into_iter().zip(sources).zip(targets).collect::<Vec<_>>()
    };
    let before = edges(&graph, 3);
    assert_eq!(before.len(), PAGE_SLOTS as usize - 6);
    let (one, two, three) = (graph.clone(), graph.clone(), graph.clone());
    let inserter = thread::spawn(move || {
        one.write_at(3, 4, |w| w.insert_edge(one.vertices[7], one.vertices[8], one.knows, None).map(drop))
    });
    let deleter = thread::spawn(move || two.write_at(3, 5, |w| w.delete_edge(two.edges[20])));
    let reader = thread::spawn({
        let before = before.clone();
        move || (0..2).for_each(|_| assert_eq!(edges(&three, 3), before))
    });
    for _ in 0..2 {
        graph.store.collect(&running, usize::MAX, true);
        graph.store.compact(&running, Effort::All);
    }
    reader.join().expect("the reader asserts");
    for (ts, writer) in [(6, inserter), (7, deleter)] {
        let log = writer.join().expect("no panic").expect("no conflict");
        graph.store.install(&log, ts);
        graph.store.retire(log, ts);
    }
    assert_eq!(edges(&graph, 3), before);
    let mut expected = before;
    expected.retain(|((edge, _), _)| *edge != graph.edges[20]);
    let ends = (graph.vertices[7], graph.vertices[8]);
    let check = |found: Vec<((EdgeId, VertexId), VertexId)>| {
        let (new, old): (Vec<_>, Vec<_>) = found.into_iter().partition(|((_, from), to)| (*from, *to) == ends);
        assert_eq!((new.len(), old), (1, expected.clone()));
    };
    check(edges(&graph, 7));
    graph.freeze(7);
    check(edges(&graph, 7));
    assert_eq!(graph.store.memory().total_bytes(), graph.store.memory_walk());
    // Six, or seven if the inserter came while the page's slots were withdrawn, and took one of another page. Each is
    // given once.
    let elements = PAGE_SLOTS as usize + expected.len() + 1;
    let free = graph.store.reserved_slots() as usize - elements;
    assert_eq!(graph.store.free_slots() as usize, free);
    let log = graph.write_at(7, 8, |w| {
        (0..free).try_for_each(|_| w.insert_edge(graph.vertices[7], graph.vertices[8], graph.knows, None).map(drop))
    });
    graph.store.install(&log.expect("no other transaction writes"), 8);
    assert_eq!((edges(&graph, 8).len(), graph.store.free_slots()), (expected.len() + 1 + free, 0));
}

/// As [`a_free_slot_is_used`], for a page that has version words at first.
pub fn a_page_is_frozen_while_a_free_slot_is_used() {
    a_free_slot_is_used(false);
}

/// As [`a_free_slot_is_used`], for a page that is frozen at first.
pub fn a_frozen_page_is_opened_while_it_is_frozen_again() {
    a_free_slot_is_used(true);
}

/// Two writers add the first edges of a sort at once, and a reader comes after the commit of one of them: the facts that
/// it is offered cover the edge (STORE-36).
pub fn facts_come_before_the_edges_that_they_are_about() {
    let graph = Arc::new(Graph::new(3));
    let likes = graph.store.catalog().intern_label_text("likes");
    let epoch = graph.store.connection_epoch().expect("the graph is small");
    // The commit timestamp of the last writer that is finished: the watermark.
    let stable = Arc::new(AtomicU64::new(1));
    let writers: Vec<_> = (0..2)
        .map(|n| {
            let (graph, stable) = (graph.clone(), stable.clone());
            thread::spawn(move || {
                let ts = 2 + n as u64;
                let ends = (graph.vertices[n], graph.vertices[2]);
                let log = graph.write(ts, |w| w.insert_edge(ends.0, ends.1, likes, None).map(drop));
                graph.store.install(&log.expect("different edges are no conflict"), ts);
                stable.fetch_max(ts, Ordering::SeqCst);
            })
        })
        .collect();
    let reader = thread::spawn({
        let graph = graph.clone();
        move || {
            if stable.load(Ordering::SeqCst) == 1 {
                return;
            }
            assert!(graph.store.connection_epoch() > Some(epoch), "an edge is visible before its facts are counted");
            let facts = graph.store.connections().expect("the graph is small");
            let of_likes = facts.lists().iter().filter(|lists| lists.table.label == likes);
            assert_eq!(of_likes.count(), 2, "{facts:?}");
        }
    });
    reader.join().expect("the reader asserts");
    writers.into_iter().for_each(|writer| writer.join().expect("no panic"));
    let facts = graph.store.connections().expect("the graph is small");
    let of_likes = |direction| {
        let mut lists = facts.lists().iter();
        lists.find(|lists| (lists.table.direction, lists.table.label) == (direction, likes)).expect("there is an edge")
    };
    assert!(of_likes(Direction::Out).is_functional);
    assert!(!of_likes(Direction::In).is_functional, "a vertex has two such edges");
}
