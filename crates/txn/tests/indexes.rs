//! Property indexes: finding values, uniqueness, and building beside running transactions.

use mangrove_graph::{ElementKind, ErrorKind, GraphView, IndexId, IndexLookup, IndexRange, Share, Value, VertexId};
use mangrove_store::{IndexOptions, WriteCardinality};
use mangrove_txn::Transaction;

use crate::common::{Graph, check_memory, vertices};

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

/// Several look-ups find what each of them does: also if the list of the second one is too long to be read, if only the
/// second one is of a label, and if entries are older than the values that the transaction sees.
#[test]
fn several_look_ups_find_what_all_of_them_find() {
    let graph = Graph::new();
    let catalog = graph.manager.store().catalog();
    let (rank, other) = (catalog.intern_key("rank"), catalog.intern_label_text("other"));
    let set_rank = |txn: &Transaction, id, n| {
        txn.set_vertex_property(id, rank, Value::I64(n), WriteCardinality::Single, Vec::new()).unwrap();
    };
    let txn = graph.begin();
    let mut ids: Vec<_> = (0..300).map(|n| graph.add(&txn, n % 3)).collect();
    for n in 0..100 {
        let id = txn.insert_vertex(other, None).unwrap();
        graph.set(&txn, id, n % 3).unwrap();
        ids.push(id);
    }
    (0..).zip(&ids).for_each(|(n, id)| set_rank(&txn, *id, if n % 50 == 0 { 1 } else { n / 100 }));
    txn.commit().unwrap();
    let (all, one) = (None, catalog.label("person"));
    let made = |key, label, ordered| {
        let keys = vec![key];
        let options = IndexOptions { element: ElementKind::Vertex, label, keys, ordered, unique: false };
        graph.manager.create_index(&options).unwrap()
    };
    let by_balance = [made(graph.balance, all, false), made(graph.balance, one, true)];
    let by_rank = [made(rank, all, true), made(rank, one, false)];
    let txn = graph.begin();
    [150, 351].into_iter().for_each(|at| graph.set(&txn, ids[at], 7).unwrap());
    set_rank(&txn, ids[151], 9);
    txn.delete_vertex(ids[152]).unwrap();
    txn.finish_statement().unwrap();
    let value = |n: i64| IndexRange::Equal(vec![Value::I64(n)]);
    for balance in [0, 1, 2, 7] {
        for rank in [0, 1, 2, 3, 9] {
            for (first, second) in by_balance.iter().flat_map(|a| by_rank.iter().map(move |b| (*a, *b))) {
                let of_first = look_up(&txn, first, value(balance));
                let of_second = look_up(&txn, second, value(rank));
                let both: Vec<_> = of_first.into_iter().filter(|id| of_second.contains(id)).collect();
                let (balances, ranks) = (value(balance), value(rank));
                let mut look_ups = [
                    IndexLookup { index: first, prefix: &[], range: &balances },
                    IndexLookup { index: second, prefix: &[], range: &ranks },
                ];
                for _ in 0..2 {
                    let mut found = Vec::new();
                    txn.intersect_vertices(&look_ups, Share::ALL, &mut found).unwrap();
                    found.sort_unstable();
                    assert_eq!(found, both, "{balance}, {rank}, indexes {first:?} and {second:?}");
                    look_ups.reverse();
                }
            }
        }
    }
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
