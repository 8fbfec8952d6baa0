//! Composite indexes, and indexes that are made and dropped: their answers are always those of a scan at the same
//! snapshot.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use mangrove_graph::{ElementKind, ErrorKind, GraphView, IndexId, IndexRange, KeyId, Share, Value, VertexId};
use mangrove_store::{IndexOptions, WriteCardinality};
use mangrove_txn::Transaction;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, values, vertices};

fn composite(graph: &Graph, ordered: bool, unique: bool) -> IndexOptions {
    let label = graph.manager.store().catalog().label("person");
    IndexOptions { element: ElementKind::Vertex, label, keys: vec![graph.name, graph.balance], ordered, unique }
}

fn set(txn: &Transaction, vertex: VertexId, key: KeyId, value: i64) -> mangrove_graph::Result<()> {
    txn.set_vertex_property(vertex, key, Value::I64(value), WriteCardinality::Single, Vec::new())
}

fn look_up(view: &dyn GraphView, index: IndexId, prefix: &[Value], range: &IndexRange) -> Option<Vec<VertexId>> {
    let mut out = Vec::new();
    match view.index_vertices(index, prefix, range, Share::ALL, &mut out) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => panic!("{error}"),
    }
    out.sort_unstable();
    Some(out)
}

/// Compares one index with a scan, for a few values of each key. Returns false if the index was dropped meanwhile.
fn agrees(graph: &Graph, view: &dyn GraphView, index: IndexId, ordered: bool) -> bool {
    let all = vertices(view);
    let pairs: Vec<_> = all.iter().map(|&v| (v, values(view, v, graph.name), values(view, v, graph.balance))).collect();
    let scan = |test: &dyn Fn(&[Value], &[Value]) -> bool| {
        let mut found: Vec<_> = pairs.iter().filter(|(_, a, b)| test(a, b)).map(|(v, ..)| *v).collect();
        found.sort_unstable();
        found
    };
    for a in (0..4).map(Value::I64) {
        for b in 0..4_i64 {
            let equal = IndexRange::Equal(vec![Value::I64(b)]);
            let Some(found) = look_up(view, index, std::slice::from_ref(&a), &equal) else { return false };
            assert_eq!(found, scan(&|x, y| x == [a.clone()] && y == [Value::I64(b)]), "{a:?} {b}");
        }
        if ordered {
            let range = IndexRange::Between { low: Some((Value::I64(1), false)), high: Some((Value::I64(3), true)) };
            let Some(found) = look_up(view, index, std::slice::from_ref(&a), &range) else { return false };
            let inside = |y: &Value| matches!(y, Value::I64(2 | 3));
            assert_eq!(found, scan(&|x, y| x == [a.clone()] && y.iter().any(inside)));
            let Some(found) = look_up(view, index, &[], &IndexRange::Equal(vec![a.clone()])) else { return false };
            assert_eq!(found, scan(&|x, _| x == [a.clone()]), "with vertices that lack the second key");
        }
    }
    true
}

/// One random change of one vertex; conflicts are rolled back.
fn change(graph: &Graph, vertices: &[VertexId], rng: &mut StdRng) {
    let txn = graph.begin();
    let vertex = vertices[rng.random_range(0..vertices.len())];
    let mut write = || {
        for key in [graph.name, graph.balance] {
            match rng.random_range(0..10) {
                0..6 => set(&txn, vertex, key, rng.random_range(0..4))?,
                6 => txn.remove_vertex_property(vertex, key, None)?,
                _ => {}
            }
        }
        txn.finish_statement()
    };
    let outcome = write();
    if outcome.is_ok() && rng.random_bool(0.8) {
        let _ = txn.commit();
    }
}

#[test]
fn composite_indexes_answer_as_scans_do_while_one_key_or_both_change() {
    let graph = Graph::new();
    let ids = graph.persons(60);
    let mut rng = StdRng::seed_from_u64(5);
    let hash = graph.manager.create_index(&composite(&graph, false, false)).unwrap();
    (0..200).for_each(|_| change(&graph, &ids, &mut rng));
    // Built over existing versions, not only maintained from the beginning.
    let ordered = graph.manager.create_index(&composite(&graph, true, false)).unwrap();
    for _ in 0..40 {
        let old = graph.begin();
        (0..10).for_each(|_| change(&graph, &ids, &mut rng));
        for view in [&old, &graph.begin()] {
            assert!(agrees(&graph, view, hash, false));
            assert!(agrees(&graph, view, ordered, true));
        }
    }
}

#[test]
fn a_unique_combination_has_one_owner() {
    let graph = Graph::new();
    let ids = graph.persons(3);
    for ordered in [false, true] {
        let index = graph.manager.create_index(&composite(&graph, ordered, true)).unwrap();
        let txn = graph.begin();
        set(&txn, ids[0], graph.name, 1).unwrap();
        // The balance of all of them is 0, so the pair (1, 0) is taken.
        let error = set(&txn, ids[1], graph.name, 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::DuplicateId);
        assert!(error.message().contains("'name' = 1 and 'balance' = 0"), "{error}");
        set(&txn, ids[1], graph.balance, 7).unwrap();
        set(&txn, ids[1], graph.name, 1).unwrap();
        // Two running transactions write one pair: at most one commits.
        let rival = graph.begin();
        let stolen = set(&rival, ids[2], graph.name, 1);
        assert_eq!(stolen.unwrap_err().kind(), ErrorKind::Conflict);
        txn.rollback();
        graph.manager.drop_index(index).unwrap();
    }
    assert_eq!(graph.manager.store().index_reports(), []);
}

/// Tells the other threads to end when it is dropped.
struct Ending<'a>(&'a AtomicBool);

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn indexes_come_and_go_beside_writers_and_readers() {
    let graph = Graph::new();
    let ids = graph.persons(80);
    let (stop, checked) = (AtomicBool::new(false), AtomicU32::new(0));
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (graph, ids, stop) = (&graph, &ids, &stop);
            scope.spawn(move || {
                let mut rng = StdRng::seed_from_u64(seed);
                // A bounded number: without garbage collection long chains of versions are long to read.
                for _ in 0..4_000 {
                    change(graph, ids, &mut rng);
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let txn = graph.begin();
                for info in txn.indexes() {
                    if agrees(&graph, &txn, info.id, info.ordered) {
                        checked.fetch_add(1, Ordering::Relaxed);
                    }
                }
            }
        });
        // The other threads end, however the rounds end.
        let ending = Ending(&stop);
        for round in 0..30 {
            let before = graph.begin();
            graph.persons(1);
            let index = graph.manager.create_index(&composite(&graph, round % 2 == 0, false)).unwrap();
            assert!(before.indexes().is_empty(), "a snapshot older than the index does not use it");
            assert!(agrees(&graph, &graph.begin(), index, round % 2 == 0));
            // The reader has met this one, too.
            let seen = checked.load(Ordering::Relaxed);
            while checked.load(Ordering::Relaxed) == seen {
                std::thread::yield_now();
            }
            graph.manager.drop_index(index).unwrap();
        }
        drop(ending);
    });
    let bytes = graph.manager.store().memory().rows.iter().find(|row| row.name == "property index").unwrap().bytes;
    assert_eq!(bytes, 0, "dropped indexes give their memory back");
}

#[test]
fn an_index_has_some_keys_and_each_once() {
    let graph = Graph::new();
    for keys in [vec![], vec![graph.name, graph.name], (0..9).map(KeyId).collect()] {
        let options = IndexOptions { element: ElementKind::Vertex, label: None, keys, ordered: false, unique: false };
        let error = graph.manager.create_index(&options).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidArgument, "{error}");
    }
}
