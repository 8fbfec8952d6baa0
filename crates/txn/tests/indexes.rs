//! Property indexes: finding values, uniqueness, and building beside running transactions.

mod common;

use common::{Graph, check_memory, vertices};
use mangrove_graph::{ElementKind, ErrorKind, GraphView, IndexId, IndexRange, Share, Value, VertexId};
use mangrove_store::IndexOptions;

fn options(graph: &Graph, ordered: bool, unique: bool) -> IndexOptions {
    IndexOptions {
        element: ElementKind::Vertex,
        label: graph.manager.store().catalog().label("person"),
        keys: vec![graph.balance],
        ordered,
        unique,
    }
}

fn look_up(view: &dyn GraphView, index: IndexId, range: IndexRange) -> Vec<VertexId> {
    let mut out = Vec::new();
    view.index_vertices(index, &[], &range, Share::ALL, &mut out).unwrap();
    out.sort_unstable();
    out
}

fn equal(n: i64) -> IndexRange {
    IndexRange::Equal(vec![Value::F64(n as f64)])
}

#[test]
fn an_index_answers_as_a_scan_would_in_every_snapshot() {
    let graph = Graph::new();
    let txn = graph.begin();
    let ids: Vec<_> = (0..500).map(|n| graph.add(&txn, n % 10)).collect();
    txn.commit().unwrap();
    let too_old = graph.begin();
    let txn = graph.begin();
    graph.set(&txn, ids[0], 77).unwrap();
    txn.commit().unwrap();
    for ordered in [false, true] {
        let index = graph.manager.create_index(&options(&graph, ordered, false)).unwrap();
        assert!(too_old.indexes().is_empty());
        let old = graph.begin();
        assert!(old.indexes().iter().any(|info| info.id == index && info.ordered == ordered));
        let txn = graph.begin();
        graph.set(&txn, ids[1], 2).unwrap();
        txn.delete_vertex(ids[2]).unwrap();
        let new = graph.add(&txn, 2);
        txn.finish_statement().unwrap();
        let compare = |view: &dyn GraphView, n: i64| {
            let mut scanned = vertices(view);
            scanned.retain(|&v| graph.get(view, v) == Some(n));
            scanned.sort_unstable();
            assert_eq!(look_up(view, index, equal(n)), scanned, "{n}");
            if ordered {
                let range =
                    IndexRange::Between { low: Some((Value::I64(n), true)), high: Some((Value::I64(n + 1), false)) };
                assert_eq!(look_up(view, index, range), scanned, "{n}");
            }
        };
        for n in [0, 1, 2, 77] {
            compare(&old, n);
            compare(&txn, n);
        }
        assert!(look_up(&txn, index, equal(2)).contains(&new));
        txn.rollback();
        for n in [0, 1, 2, 77] {
            compare(&graph.begin(), n);
        }
    }
    let twin = graph.manager.create_index(&options(&graph, false, false)).unwrap_err();
    assert_eq!(twin.kind(), ErrorKind::DuplicateId);
    let store = graph.manager.store();
    check_memory(store);
    graph.manager.drop_index(IndexId(0)).unwrap();
    check_memory(store);
    assert_eq!(graph.manager.drop_index(IndexId(0)).unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn a_unique_index_has_one_owner_a_value() {
    let graph = Graph::new();
    let txn = graph.begin();
    let [a, b, c] = [1, 2, 3].map(|n| graph.add(&txn, n));
    txn.commit().unwrap();
    graph.manager.create_index(&options(&graph, false, true)).unwrap();

    let txn = graph.begin();
    let error = graph.set(&txn, b, 1).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateId);
    assert!(error.message().contains("'balance' = 1"), "{error}");
    graph.set(&txn, a, 1).unwrap();
    graph.set(&txn, a, 10).unwrap();
    graph.set(&txn, b, 1).unwrap();
    txn.commit().unwrap();

    // Two running transactions write one value: the second one conflicts.
    let (one, two) = (graph.begin(), graph.begin());
    graph.set(&one, a, 99).unwrap();
    assert_eq!(graph.set(&two, c, 99).unwrap_err().kind(), ErrorKind::Conflict);
    one.rollback();
    let three = graph.begin();
    graph.set(&three, c, 99).unwrap();
    three.commit().unwrap();
}

#[test]
fn a_unique_index_is_not_made_of_duplicates() {
    let graph = Graph::new();
    let txn = graph.begin();
    graph.add(&txn, 5);
    let twin = graph.add(&txn, 5);
    txn.commit().unwrap();
    let error = graph.manager.create_index(&options(&graph, true, true)).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::DuplicateId);
    assert!(graph.manager.store().indexes().is_empty());
    let txn = graph.begin();
    txn.delete_vertex(twin).unwrap();
    txn.commit().unwrap();
    graph.manager.create_index(&options(&graph, true, true)).unwrap();
}

#[test]
fn an_index_built_beside_writers_misses_nothing() {
    let graph = Graph::new();
    let ids = graph.persons(2_000);
    let index = std::thread::scope(|scope| {
        for part in 0..2 {
            let (graph, ids) = (&graph, &ids);
            scope.spawn(move || {
                for round in 0..20 {
                    for chunk in ids[part * 1_000..(part + 1) * 1_000].chunks(50) {
                        let txn = graph.begin();
                        chunk.iter().for_each(|&v| graph.set(&txn, v, round).unwrap());
                        txn.commit().unwrap();
                    }
                }
            });
        }
        graph.manager.create_index(&options(&graph, true, false)).unwrap()
    });
    let txn = graph.begin();
    assert_eq!(look_up(&txn, index, equal(19)).len(), 2_000);
    assert!((0..19).all(|n| look_up(&txn, index, equal(n)).is_empty()));
}
