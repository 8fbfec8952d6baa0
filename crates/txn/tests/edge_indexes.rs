//! Indexes of edges: their answers are those of a scan in every snapshot, they keep values unique, and a search in one
//! is a read that later edges may be in conflict with.

use mangrove_graph::{
    EdgeId, ElementKind, ErrorKind, GraphView, IndexId, IndexRange, LabelFilter, LabelId, LabelSetId, ScanCursor,
    Share, Value, VertexId,
};
use mangrove_store::{BulkColumn, ColumnData, IndexOptions, StoreOptions};
use mangrove_txn::Transaction;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, check_memory, edges, small_sizes, vertices};

fn options(graph: &Graph, label: Option<&str>, ordered: bool, unique: bool) -> IndexOptions {
    let label = label.map(|name| graph.manager.store().catalog().label(name).unwrap());
    IndexOptions { element: ElementKind::Edge, label, keys: vec![graph.balance], ordered, unique }
}

fn look_up(view: &dyn GraphView, index: IndexId, range: &IndexRange) -> Vec<EdgeId> {
    let mut out = Vec::new();
    view.index_edges(index, &[], range, Share::ALL, &mut out).unwrap();
    out.sort_unstable();
    out
}

fn scan(graph: &Graph, view: &dyn GraphView, labels: &LabelFilter, range: &IndexRange) -> Vec<EdgeId> {
    let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
    while !view.scan_edges_where(labels, graph.balance, range, Share::ALL, &mut cursor, 9, &mut out).unwrap() {}
    out.sort_unstable();
    out
}

fn equal(n: i64) -> IndexRange {
    IndexRange::Equal(vec![Value::F64(n as f64)])
}

fn between(low: i64, high: i64) -> IndexRange {
    IndexRange::Between { low: Some((Value::I64(low), true)), high: Some((Value::I64(high), false)) }
}

fn set(graph: &Graph, txn: &Transaction, edge: EdgeId, n: i64) -> mangrove_graph::Result<()> {
    txn.set_edge_property(edge, graph.balance, Value::I64(n))
}

fn add(graph: &Graph, txn: &Transaction, ends: [VertexId; 2], n: i64) -> EdgeId {
    let edge = txn.insert_edge(ends[0], ends[1], graph.knows, None).unwrap();
    set(graph, txn, edge, n).unwrap();
    edge
}

fn entries(graph: &Graph) -> Vec<u64> {
    graph.manager.store().index_reports().iter().map(|report| report.entries).collect()
}

/// A graph that changes at random, with indexes of edges and one of vertices on the same key.
struct History {
    graph: Graph,
    labels: [LabelSetId; 2],
    indexes: Vec<(IndexId, Option<LabelId>, bool)>,
    rng: StdRng,
}

impl History {
    fn new(seed: u64) -> Self {
        let options = StoreOptions { tablet_count: 3, sizes: small_sizes(seed), ..StoreOptions::default() };
        let graph = Graph::with_options(&options).without_collector();
        let labels = [graph.knows, graph.manager.store().catalog().intern_label_text("likes")];
        History { graph, labels, indexes: Vec::new(), rng: StdRng::seed_from_u64(seed) }
    }

    fn create(&mut self, label: Option<&str>, ordered: bool) {
        let options = options(&self.graph, label, ordered, false);
        let id = self.graph.manager.create_index(&options).unwrap();
        self.indexes.push((id, options.label, ordered));
    }

    fn pick<T: Copy>(&mut self, items: &[T]) -> Option<T> {
        (!items.is_empty()).then(|| items[self.rng.random_range(0..items.len())])
    }

    /// One change, of what the finished statements show. Vertices get values under the same key, so that an entry of a
    /// wrong kind would be seen.
    fn change(&mut self, txn: &Transaction) -> mangrove_graph::Result<()> {
        let (all, known) = (edges(txn), vertices(txn));
        let edge = self.pick(&all).map(|(edge, ..)| edge);
        let (from, to) = (self.pick(&known), self.pick(&known));
        let (n, balance) = (self.rng.random_range(0..6), self.graph.balance);
        match (self.rng.random_range(0..14), edge, from, to) {
            (0 | 1, ..) | (_, _, None, _) => {
                self.graph.add(txn, n);
            }
            (2..6, _, Some(from), Some(to)) => {
                let label = self.labels[self.rng.random_range(0..2)];
                let edge = txn.insert_edge(from, to, label, None)?;
                // Sometimes none, sometimes one after another in the same statement.
                for n in (0..6).filter(|_| self.rng.random_ratio(1, 3)) {
                    set(&self.graph, txn, edge, n)?;
                }
            }
            (6, _, Some(vertex), _) if self.rng.random_ratio(1, 3) => txn.delete_vertex(vertex)?,
            (7, Some(edge), ..) => txn.delete_edge(edge)?,
            (8, Some(edge), ..) => txn.remove_edge_property(edge, balance)?,
            (_, Some(edge), ..) => set(&self.graph, txn, edge, n)?,
            _ => {}
        }
        if self.rng.random() { txn.finish_statement() } else { Ok(()) }
    }

    fn transaction(&mut self) {
        let txn = self.graph.begin();
        for _ in 0..self.rng.random_range(1..6) {
            if let Err(error) = self.change(&txn) {
                // The running statement has deleted the element.
                assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
            }
        }
        txn.finish_statement().unwrap();
        self.compare(&txn);
        match self.rng.random_ratio(3, 4) {
            true => txn.commit().map(drop).unwrap(),
            false => txn.rollback(),
        }
    }

    fn compare(&self, view: &dyn GraphView) {
        let usable = view.indexes();
        for (index, label, ordered) in &self.indexes {
            if !usable.iter().any(|info| info.id == *index) {
                continue;
            }
            let labels = match label {
                None => LabelFilter::Any,
                Some(label) => LabelFilter::Sets(view.catalog().label_sets_with_any(&[*label]).into()),
            };
            let mut ranges: Vec<IndexRange> = (0..6).map(equal).collect();
            if *ordered {
                ranges.extend([between(1, 4), between(2, 3), IndexRange::Between { low: None, high: None }]);
            }
            for range in &ranges {
                assert_eq!(look_up(view, *index, range), scan(&self.graph, view, &labels, range), "{range:?}");
            }
        }
    }
}

#[test]
fn indexes_of_edges_answer_as_scans_do_in_every_snapshot() {
    for seed in 0..mangrove_testdata::case_count(40) {
        let mut history = History::new(seed);
        let on_vertices = IndexOptions { element: ElementKind::Vertex, ..options(&history.graph, None, false, false) };
        history.graph.manager.create_index(&on_vertices).unwrap();
        history.create(Some("knows"), false);
        (0..8).for_each(|_| history.transaction());
        // Built over existing versions, not only maintained from the beginning.
        let too_old = history.graph.begin();
        history.graph.persons(1);
        history.create(None, true);
        history.create(Some("likes"), true);
        assert_eq!(too_old.indexes().len(), 2);
        let mut old: Vec<Transaction> = vec![too_old];
        for round in 0..12 {
            old.push(history.graph.begin());
            history.transaction();
            match round % 4 {
                1 => history.graph.manager.collect_garbage(),
                2 => history.graph.manager.compact(),
                3 => drop(old.remove(0)),
                _ => {}
            }
            old.iter().for_each(|view| history.compare(view));
            check_memory(history.graph.manager.store());
        }
        // An index has no entry of an element that is gone.
        old.clear();
        let txn = history.graph.begin();
        vertices(&txn).into_iter().for_each(|vertex| txn.delete_vertex(vertex).unwrap());
        txn.commit().unwrap();
        history.graph.manager.collect_garbage();
        assert_eq!(entries(&history.graph), [0; 4]);
        check_memory(history.graph.manager.store());
    }
}

#[test]
fn an_index_has_elements_of_one_kind() {
    let graph = Graph::new();
    let of_edges = graph.manager.create_index(&options(&graph, None, false, false)).unwrap();
    let of_vertices = IndexOptions { element: ElementKind::Vertex, ..options(&graph, None, false, false) };
    let of_vertices = graph.manager.create_index(&of_vertices).unwrap();
    let txn = graph.begin();
    let vertex = graph.add(&txn, 1);
    let edge = add(&graph, &txn, [vertex, vertex], 1);
    txn.finish_statement().unwrap();
    assert_eq!(vertex.to_bits(), edge.to_bits(), "the first of each kind have the same bits");
    assert_eq!(look_up(&txn, of_edges, &equal(1)), [edge]);
    txn.delete_edge(edge).unwrap();
    txn.commit().unwrap();
    graph.manager.collect_garbage();
    assert_eq!(entries(&graph), [0, 1]);
    let (txn, mut found) = (graph.begin(), Vec::new());
    let error = txn.index_vertices(of_edges, &[], &equal(1), Share::ALL, &mut found).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Bug);
    txn.index_vertices(of_vertices, &[], &equal(1), Share::ALL, &mut found).unwrap();
    assert_eq!(found, [vertex]);
}

#[test]
fn a_unique_index_of_edges_has_one_owner_a_value() {
    for ordered in [false, true] {
        let graph = Graph::new();
        let people = graph.persons(2);
        let txn = graph.begin();
        let [a, b] = [1, 2].map(|n| add(&graph, &txn, [people[0], people[1]], n));
        txn.commit().unwrap();
        graph.manager.create_index(&options(&graph, Some("knows"), ordered, true)).unwrap();

        let txn = graph.begin();
        let error = set(&graph, &txn, b, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateId);
        assert!(error.message().contains("an edge with 'balance' = 1 exists already"), "{error}");
        let likes = graph.manager.store().catalog().intern_label_text("likes");
        let other = txn.insert_edge(people[0], people[1], likes, None).unwrap();
        set(&graph, &txn, other, 1).unwrap();
        // A vertex may have the value, too.
        graph.set(&txn, people[0], 1).unwrap();
        set(&graph, &txn, a, 10).unwrap();
        set(&graph, &txn, b, 1).unwrap();
        txn.commit().unwrap();

        // Two running transactions write one value: the second one conflicts.
        let (one, two) = (graph.begin(), graph.begin());
        set(&graph, &one, a, 99).unwrap();
        assert_eq!(set(&graph, &two, b, 99).unwrap_err().kind(), ErrorKind::Conflict);
        one.rollback();
        let three = graph.begin();
        set(&graph, &three, b, 99).unwrap();
        three.commit().unwrap();

        // A deleted vertex takes its edges with it, and their values are free.
        let txn = graph.begin();
        txn.delete_vertex(people[0]).unwrap();
        let [from, to] = [graph.add(&txn, 0), people[1]];
        for n in [10, 99] {
            add(&graph, &txn, [from, to], n);
        }
        txn.commit().unwrap();
    }
}

#[test]
fn a_unique_index_is_not_made_of_duplicates_and_names_them() {
    let graph = Graph::new();
    let people = graph.persons(2);
    let txn = graph.begin();
    add(&graph, &txn, [people[0], people[1]], 5);
    let [one, two] = [1, 2].map(|id| txn.insert_edge(people[1], people[0], graph.knows, Some(id.into())).unwrap());
    [one, two].iter().for_each(|&edge| set(&graph, &txn, edge, 7).unwrap());
    txn.commit().unwrap();
    for ordered in [false, true] {
        let error = graph.manager.create_index(&options(&graph, None, ordered, true)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateId);
        let message = error.message();
        assert!(message.contains("two edges have 'balance' = 7"), "{message}");
        let ids = [1, 2].map(|id| format!("ids are {id} and {}", 3 - id));
        assert!(ids.iter().any(|ids| message.contains(ids)), "{message}");
        assert!(graph.manager.store().indexes().is_empty());
    }
    // A running transaction is about to make duplicates.
    let running = graph.begin();
    let txn = graph.begin();
    txn.delete_edge(two).unwrap();
    txn.commit().unwrap();
    let rival = running.insert_edge(people[0], people[1], graph.knows, None).unwrap();
    set(&graph, &running, rival, 7).unwrap();
    let error = graph.manager.create_index(&options(&graph, None, false, true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    running.rollback();
    graph.manager.create_index(&options(&graph, None, false, true)).unwrap();
}

#[test]
fn an_index_of_edges_built_beside_writers_misses_nothing() {
    let graph = Graph::new();
    let people = graph.persons(20);
    let txn = graph.begin();
    let ids: Vec<EdgeId> = (0..2_000).map(|n| add(&graph, &txn, [people[n % 20], people[n / 20 % 20]], 0)).collect();
    txn.commit().unwrap();
    let index = std::thread::scope(|scope| {
        for part in 0..2 {
            let (graph, ids, people) = (&graph, &ids, &people);
            scope.spawn(move || {
                for round in 0..20 {
                    for chunk in ids[part * 1_000..(part + 1) * 1_000].chunks(50) {
                        let txn = graph.begin();
                        chunk.iter().for_each(|&edge| set(graph, &txn, edge, round).unwrap());
                        // A new edge with the value.
                        add(graph, &txn, [people[part], people[part + 2]], 100);
                        txn.commit().unwrap();
                    }
                }
            });
        }
        graph.manager.create_index(&options(&graph, Some("knows"), true, false)).unwrap()
    });
    let txn = graph.begin();
    assert_eq!(look_up(&txn, index, &equal(19)).len(), 2_000);
    assert_eq!(look_up(&txn, index, &equal(100)).len(), 2 * 20 * 20);
    assert!((0..19).all(|n| look_up(&txn, index, &equal(n)).is_empty()));
}

/// Two edges, one of which has a value that is searched for.
struct Two {
    graph: Graph,
    ends: [VertexId; 2],
    other: VertexId,
    without: EdgeId,
    with: EdgeId,
    index: IndexId,
}

impl Two {
    fn new() -> Self {
        let graph = Graph::new();
        let [from, to, other] = *graph.persons(3) else { panic!("three were added") };
        let txn = graph.begin();
        let [without, with] = [5, 12].map(|n| add(&graph, &txn, [from, to], n));
        txn.commit().unwrap();
        let index = graph.manager.create_index(&options(&graph, Some("knows"), true, false)).unwrap();
        // A label that comes into the catalog later could be one of any edge, so it would be a conflict.
        graph.manager.store().catalog().intern_label_text("likes");
        Two { graph, ends: [from, to], other, without, with, index }
    }

    fn add(&self, txn: &Transaction, n: i64) {
        add(&self.graph, txn, self.ends, n);
    }

    fn add_liking(&self, txn: &Transaction) {
        let likes = self.graph.manager.store().catalog().intern_label_text("likes");
        let edge = txn.insert_edge(self.ends[0], self.ends[1], likes, None).unwrap();
        set(&self.graph, txn, edge, 12).unwrap();
    }
}

#[test]
fn a_search_in_an_index_of_edges_is_a_read() {
    /// A write, and whether it is a conflict with a search for 12, and with one from 10 to 20.
    type Case = (fn(&Two, &Transaction), bool, bool);
    let cases: [Case; 8] = [
        (|two, txn| two.add(txn, 12), true, true),
        (|two, txn| two.add(txn, 15), false, true),
        (|two, txn| two.add(txn, 20), false, false),
        (|two, txn| set(&two.graph, txn, two.without, 12).unwrap(), true, true),
        (|two, txn| txn.remove_edge_property(two.with, two.graph.balance).unwrap(), true, true),
        (|two, txn| txn.delete_edge(two.with).unwrap(), true, true),
        (|two, txn| txn.delete_vertex(two.ends[0]).unwrap(), true, true),
        (Two::add_liking, false, false),
    ];
    for (at, (write, of_value, of_range)) in cases.into_iter().enumerate() {
        for (range, expected) in [(equal(12), of_value), (between(10, 20), of_range)] {
            let two = Two::new();
            let (reader, writer) = (two.graph.serializable(), two.graph.serializable());
            assert_eq!(look_up(&reader, two.index, &range), [two.with]);
            two.graph.set(&reader, two.other, 7).unwrap();
            write(&two, &writer);
            writer.commit().unwrap();
            assert_eq!(reader.commit().is_err(), expected, "case {at}, {range:?}");
        }
    }
}

#[test]
fn a_refusal_by_a_unique_index_of_edges_is_a_read() {
    let graph = Graph::new();
    let people = graph.persons(3);
    let ends = [people[0], people[1]];
    let txn = graph.begin();
    let [one, two] = [add(&graph, &txn, ends, 1), add(&graph, &txn, ends, 2)];
    txn.commit().unwrap();
    graph.manager.create_index(&options(&graph, Some("knows"), false, true)).unwrap();
    let (reader, writer) = (graph.serializable(), graph.serializable());
    assert_eq!(set(&graph, &reader, two, 1).unwrap_err().kind(), ErrorKind::DuplicateId);
    graph.set(&reader, people[2], 7).unwrap();
    set(&graph, &writer, one, 3).unwrap();
    writer.commit().unwrap();
    assert!(reader.commit().is_err(), "serially, the value would have been free");
}

#[test]
fn a_bulk_load_of_duplicates_is_refused_by_a_unique_index() {
    for (element, ordered, is_refused) in [
        (ElementKind::Edge, false, true),
        (ElementKind::Edge, true, true),
        (ElementKind::Vertex, true, false),
        (ElementKind::Vertex, false, false),
    ] {
        let graph = Graph::new();
        let unique = IndexOptions { element, ..options(&graph, None, ordered, true) };
        graph.manager.create_index(&unique).unwrap();
        let load = |balances: [Option<i64>; 3], values: [Option<Value>; 3]| {
            let mut load = graph.manager.bulk_load().unwrap();
            let of_vertices = balances.map(|balance| balance.map(Value::I64)).to_vec();
            let column = BulkColumn { key: graph.balance, values: ColumnData::Any(of_vertices) };
            let people = load.vertices(graph.person, 3, None, &[column]).unwrap();
            let column = BulkColumn { key: graph.balance, values: ColumnData::Any(values.to_vec()) };
            let ids = [71, 72, 73].map(Into::into);
            load.edges(graph.knows, &[(people[0], people[1]); 3], Some(&ids), &[column]).unwrap();
            load.finish()
        };
        let nan = Some(Value::F64(f64::NAN));
        let twice = load([Some(1), None, Some(2)], [Some(7.into()), None, Some(Value::F64(7.0))]);
        assert_eq!(twice.is_err(), is_refused, "{element:?}");
        if let Err(error) = twice {
            assert_eq!(error.kind(), ErrorKind::DuplicateId);
            assert!(error.message().contains("two edges of the load have 'balance' = 7"), "{error}");
            assert!(error.message().contains("ids are 71 and 73"), "{error}");
            assert_eq!(vertices(&graph.begin()), [], "the graph stays empty");
            let error = load([Some(4), Some(4), Some(4)], [nan.clone(), None, nan]);
            error.unwrap();
            assert_eq!(edges(&graph.begin()).len(), 3);
        }
        check_memory(graph.manager.store());
    }
    let graph = Graph::new();
    graph
        .manager
        .create_index(&IndexOptions { element: ElementKind::Vertex, ..options(&graph, None, false, true) })
        .unwrap();
    let mut load = graph.manager.bulk_load().unwrap();
    let column = BulkColumn { key: graph.balance, values: ColumnData::I64(vec![4, 5, 4]) };
    load.vertices(graph.person, 3, None, &[column]).unwrap();
    let error = load.finish().unwrap_err();
    assert!(error.message().contains("two vertices of the load have 'balance' = 4"), "{error}");
}

#[test]
fn a_bulk_load_fills_indexes_of_edges() {
    let graph = Graph::new();
    let index = graph.manager.create_index(&options(&graph, Some("knows"), true, false)).unwrap();
    let mut load = graph.manager.bulk_load().unwrap();
    let people = load.vertices(graph.person, 3, None, &[]).unwrap();
    let values = (0..4).map(|n| (n != 2).then_some(Value::I64(n))).collect();
    let column = BulkColumn { key: graph.balance, values: ColumnData::Any(values) };
    let ends = [(people[0], people[1]), (people[1], people[2]), (people[2], people[0]), (people[0], people[2])];
    let loaded = load.edges(graph.knows, &ends, None, &[column]).unwrap();
    load.finish().unwrap();
    let txn = graph.begin();
    assert_eq!(look_up(&txn, index, &equal(3)), [loaded[3]]);
    assert_eq!(look_up(&txn, index, &between(0, 9)).len(), 3);
    check_memory(graph.manager.store());
}
