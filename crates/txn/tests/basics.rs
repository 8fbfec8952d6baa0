//! One transaction after another: the effect of each kind of write, and what later transactions see of it.

use mangrove_graph::{Direction, EdgeId, ErrorKind, GraphView, PropertyRow, UserId, Value};
use mangrove_store::{RecordKind, StoreOptions, WriteCardinality};
use mangrove_txn::AbortCause;

use crate::common::{Graph, check_consistent, check_memory, edges, expand, find, values, vertices};

#[test]
fn what_is_committed_is_seen_by_those_who_begin_later() {
    let graph = Graph::new();
    let before = graph.begin();
    let txn = graph.begin();
    let (a, b) = (graph.add(&txn, 1), graph.add(&txn, 2));
    let edge = txn.insert_edge(a, b, graph.knows, None).unwrap();
    txn.set_edge_property(edge, graph.balance, Value::from("a longer string")).unwrap();
    assert!(vertices(&txn).is_empty(), "a statement does not see its own writes");
    txn.finish_statement().unwrap();
    assert_eq!((vertices(&txn).len(), graph.get(&txn, b)), (2, Some(2)));
    check_consistent(&txn);
    assert!(vertices(&graph.begin()).is_empty(), "nobody sees it before the commit");
    let info = txn.commit().unwrap();
    assert_eq!((info.timestamp, graph.manager.watermark()), (1, 1));
    assert!(vertices(&before).is_empty(), "an older snapshot stays what it was");

    let after = graph.begin();
    check_consistent(&after);
    assert_eq!(edges(&after), [(edge, a, b)]);
    let mut rows = mangrove_graph::ValueRows::default();
    after.edge_values(&[edge], graph.balance, &mut rows).unwrap();
    assert_eq!(rows.value, [Value::from("a longer string")]);
    assert_eq!(find(&after, a.external()), Some(a), "automatic ids are found");
}

#[test]
fn a_rollback_leaves_no_trace() {
    let graph = Graph::new();
    let [a, b] = graph.persons(2)[..] else { unreachable!() };
    for by_drop in [false, true] {
        let txn = graph.begin();
        graph.set(&txn, a, 5).unwrap();
        txn.finish_statement().unwrap();
        graph.set(&txn, a, 6).unwrap();
        txn.insert_edge(a, b, graph.knows, None).unwrap();
        txn.insert_vertex(graph.person, Some(UserId::from("x"))).unwrap();
        txn.delete_vertex(b).unwrap();
        if by_drop {
            drop(txn)
        } else {
            txn.rollback()
        }
        let after = graph.begin();
        assert_eq!((graph.get(&after, a), graph.get(&after, b)), (Some(0), Some(0)));
        assert!(edges(&after).is_empty() && find(&after, "x").is_none());
    }
    assert_eq!(graph.manager.counters().aborted(mangrove_txn::AbortCause::Rollback), 2);
    let txn = graph.begin();
    txn.insert_vertex(graph.person, Some(UserId::from("x"))).unwrap();
    txn.commit().unwrap();
}

/// The ids name slots of the page of an edge, up to the last that a page may have. The page is smaller, and has properties and ended edges.
#[test]
fn to_delete_an_edge_that_is_not_there_does_nothing() {
    let graph = Graph::new();
    let ids = graph.persons(2);
    let txn = graph.begin();
    let [first, second] = [0, 1].map(|_| txn.insert_edge(ids[0], ids[1], graph.knows, None).unwrap());
    for edge in [first, second] {
        txn.set_edge_property(edge, graph.balance, Value::I32(1)).unwrap();
    }
    txn.commit().unwrap();
    let txn = graph.begin();
    txn.delete_edge(first).unwrap();
    txn.commit().unwrap();
    graph.manager.compact();
    let txn = graph.begin();
    for offset in 0..1_024 {
        let edge = EdgeId::from_bits(second.to_bits() & !1_023 | offset);
        if edge != second {
            txn.delete_edge(edge).unwrap();
        }
    }
    txn.commit().unwrap();
    assert_eq!(edges(&graph.begin()), [(second, ids[0], ids[1])]);
    check_memory(graph.manager.store());
}

#[test]
fn deleting_a_vertex_takes_its_edges_along() {
    let graph = Graph::new();
    let ids = graph.persons(4);
    let txn = graph.begin();
    for (s, t) in [(0, 1), (1, 0), (1, 1), (1, 2), (2, 3)] {
        txn.insert_edge(ids[s], ids[t], graph.knows, None).unwrap();
    }
    txn.commit().unwrap();
    let old = graph.begin();
    let txn = graph.begin();
    txn.delete_vertex(ids[1]).unwrap();
    txn.delete_vertex(ids[1]).unwrap();
    txn.commit().unwrap();
    let new = graph.begin();
    check_consistent(&old);
    check_consistent(&new);
    assert_eq!((edges(&old).len(), edges(&new).len(), vertices(&new).len()), (5, 1, 3));
    assert_eq!(expand(&old, &[ids[1]], Direction::Both, 100).len(), 5, "a loop is met twice");
    assert!(expand(&new, &[ids[1]], Direction::Both, 100).is_empty());
    assert_eq!(graph.get(&new, ids[1]), None);
    assert_eq!(new.live_counts().vertices[0].1, 3);
}

#[test]
fn ids_are_unique_until_their_element_is_gone() {
    let graph = Graph::new();
    let uuid = UserId::from_value(&Value::Uuid(uuid::Uuid::from_u128(77))).unwrap();
    let ids = [UserId::int(7), UserId::from("seven"), uuid];
    for id in ids {
        let txn = graph.begin();
        let first = txn.insert_vertex(graph.person, Some(id.clone())).unwrap();
        let again = txn.insert_vertex(graph.person, Some(id.clone())).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::DuplicateId);
        txn.commit().unwrap();
        let txn = graph.begin();
        assert_eq!(find(&txn, id.clone()), Some(first));
        let again = txn.insert_vertex(graph.person, Some(id.clone())).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::DuplicateId);
        txn.delete_vertex(first).unwrap();
        let second = txn.insert_vertex(graph.person, Some(id.clone())).unwrap();
        txn.commit().unwrap();
        assert_eq!(find(&graph.begin(), id), Some(second));
        assert_ne!(first, second);
    }
}

#[test]
fn chosen_integers_and_automatic_ids_keep_out_of_each_others_way() {
    let graph = Graph::new();
    let [automatic, ..] = graph.persons(3)[..] else { unreachable!() };
    let txn = graph.begin();
    let taken = txn.insert_vertex(graph.person, Some(UserId::int(automatic.external()))).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::DuplicateId);
    // The chosen ids are the numbers of slots that come next.
    let next = automatic.external() + 65_536 * 5;
    let chosen = txn.insert_vertex(graph.person, Some(UserId::int(next))).unwrap();
    let others: Vec<_> = (0..20).map(|_| txn.insert_vertex(graph.person, None).unwrap()).collect();
    assert!(others.iter().all(|v| v.external() != next));
    txn.commit().unwrap();
    assert_eq!(find(&graph.begin(), next), Some(chosen));
}

#[test]
fn whoever_asks_an_aborted_transaction_again_is_told_why() {
    let graph = Graph::new();
    let [a] = graph.persons(1)[..] else { unreachable!() };
    let (first, second) = (graph.begin(), graph.begin());
    graph.set(&first, a, 1).unwrap();
    let refused = graph.set(&second, a, 2).unwrap_err();
    assert_eq!((refused.kind(), refused.reason()), (ErrorKind::Conflict, Some(AbortCause::WriteConflict.name())));
    first.rollback();
    for again in [graph.set(&second, a, 2), second.finish_statement(), second.commit().map(drop)] {
        let again = again.unwrap_err();
        assert_eq!((again.kind(), again.reason()), (refused.kind(), refused.reason()));
    }
}

#[test]
fn lists_sets_and_meta_properties() {
    let graph = Graph::new();
    let txn = graph.begin();
    let v = txn.insert_vertex(graph.person, None).unwrap();
    let (key, meta) = (graph.name, graph.balance);
    let add = |value: &str, cardinality, metas: Vec<_>| {
        txn.set_vertex_property(v, key, Value::from(value), cardinality, metas).unwrap();
    };
    add("a", WriteCardinality::List, vec![]);
    add("b", WriteCardinality::List, vec![(meta, Value::I32(1))]);
    add("b", WriteCardinality::Set, vec![(meta, Value::I32(2))]);
    add("c", WriteCardinality::Set, vec![]);
    txn.finish_statement().unwrap();
    assert_eq!(values(&txn, v, key), ["a", "b", "c"].map(Value::from));
    let rows = |txn: &dyn GraphView| {
        let mut rows = Vec::new();
        txn.vertex_properties(&[v], None, &mut rows).unwrap();
        rows.into_iter()
            .map(|PropertyRow { ordinal, value, meta, .. }| (ordinal, value, meta.len()))
            .collect::<Vec<_>>()
    };
    assert_eq!(rows(&txn), [(0, Value::from("a"), 0), (1, Value::from("b"), 1), (2, Value::from("c"), 0)]);
    txn.remove_meta_property(v, key, 1, meta).unwrap();
    txn.set_meta_property(v, key, 2, meta, Value::I32(3)).unwrap();
    txn.remove_vertex_property(v, key, Some(0)).unwrap();
    txn.finish_statement().unwrap();
    assert_eq!(rows(&txn), [(1, Value::from("b"), 0), (2, Value::from("c"), 1)]);
    assert_eq!(txn.set_meta_property(v, key, 9, meta, Value::I32(3)).unwrap_err().kind(), ErrorKind::NotFound);
    add("d", WriteCardinality::Single, vec![]);
    txn.finish_statement().unwrap();
    assert_eq!(rows(&txn), [(0, Value::from("d"), 0)]);
    txn.remove_vertex_property(v, key, None).unwrap();
    txn.finish_statement().unwrap();
    assert_eq!(rows(&txn), []);
}

#[test]
fn a_transaction_has_as_many_statements_as_it_likes() {
    let graph = Graph::new();
    let txn = graph.begin();
    let v = graph.add(&txn, 0);
    txn.finish_statement().unwrap();
    for n in 1..70_000 {
        graph.set(&txn, v, n).unwrap();
        assert_eq!(graph.get(&txn, v), Some(n - 1));
        txn.finish_statement().unwrap();
    }
    assert_eq!(graph.get(&txn, v), Some(69_999));
    txn.commit().unwrap();
    assert_eq!(graph.get(&graph.begin(), v), Some(69_999));
}

#[test]
fn wrong_requests_are_refused_and_change_nothing() {
    let graph = Graph::new();
    let [a, b] = graph.persons(2)[..] else { unreachable!() };
    let reader = graph.manager.begin_read().unwrap();
    assert!(reader.is_read_only());
    assert_eq!(reader.delete_vertex(a).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let txn = graph.begin();
    let bad = txn.set_vertex_property(a, graph.name, Value::Vertex(b), WriteCardinality::Single, vec![]);
    assert_eq!(bad.unwrap_err().kind(), ErrorKind::InvalidArgument);
    txn.delete_vertex(b).unwrap();
    assert_eq!(txn.insert_edge(a, b, graph.knows, None).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(graph.set(&txn, b, 1).unwrap_err().kind(), ErrorKind::NotFound);
    let nowhere = mangrove_graph::VertexId::from_bits(u64::MAX);
    assert_eq!(graph.set(&txn, nowhere, 1).unwrap_err().kind(), ErrorKind::NotFound);
    txn.delete_vertex(nowhere).unwrap();
    assert!(expand(&txn, &[nowhere], Direction::Both, 10).is_empty());
    txn.commit().unwrap();
}

#[test]
fn over_the_memory_limit_writes_fail_and_reads_go_on() {
    let graph =
        Graph::with_options(&StoreOptions { tablet_count: 1, memory_limit_bytes: 1 << 20, ..StoreOptions::default() });
    let txn = graph.begin();
    let error = loop {
        if let Err(error) = txn.insert_vertex(graph.person, None) {
            break error;
        }
    };
    assert_eq!(error.kind(), ErrorKind::MemoryLimit);
    txn.commit().unwrap();
    assert!(vertices(&graph.begin()).len() > 1_000);
}

#[test]
fn the_memory_report_is_what_a_walk_finds() {
    let graph = Graph::new().without_collector();
    let ids = graph.persons(3_000);
    let txn = graph.begin();
    for (i, pair) in ids.windows(2).enumerate() {
        txn.insert_edge(pair[0], pair[1], graph.knows, Some(UserId::from(format!("edge number {i}").as_str())))
            .unwrap();
        graph.set(&txn, pair[0], 1).unwrap();
        let long = Value::from("x".repeat(i % 60));
        txn.set_vertex_property(pair[1], graph.name, long, WriteCardinality::List, vec![]).unwrap();
    }
    txn.commit().unwrap();
    let store = graph.manager.store();
    check_memory(store);
}

/// A chosen integer may be the number of an element that has an automatic id.
#[test]
fn an_id_that_is_refused_leaves_no_entry() {
    let graph = Graph::new().without_collector();
    let ids = graph.persons(2);
    let txn = graph.begin();
    let edge = txn.insert_edge(ids[0], ids[1], graph.knows, None).unwrap();
    txn.commit().unwrap();
    let bytes = || graph.manager.store().memory().rows[RecordKind::IdIndex as usize].bytes;
    let before = bytes();
    for _ in 0..1_000 {
        let txn = graph.begin();
        let vertex_id = UserId::int(ids[0].external());
        assert_eq!(txn.insert_vertex(graph.person, Some(vertex_id)).unwrap_err().kind(), ErrorKind::DuplicateId);
        let edge_id = UserId::int(edge.external());
        let refused = txn.insert_edge(ids[0], ids[1], graph.knows, Some(edge_id));
        assert_eq!(refused.unwrap_err().kind(), ErrorKind::DuplicateId);
        txn.commit().unwrap();
    }
    assert_eq!(bytes(), before);
    graph.manager.collect_garbage();
    check_memory(graph.manager.store());
    let txn = graph.begin();
    assert_eq!(find(&txn, ids[0].external()), Some(ids[0]));
    txn.delete_vertex(ids[0]).unwrap();
    txn.finish_statement().unwrap();
    let new = txn.insert_vertex(graph.person, Some(UserId::int(ids[0].external()))).unwrap();
    txn.finish_statement().unwrap();
    assert_eq!(find(&txn, ids[0].external()), Some(new));
}

#[test]
fn edges_are_inserted_all_or_none() {
    let graph = Graph::new();
    let ids = graph.persons(3);
    let txn = graph.begin();
    txn.delete_vertex(ids[2]).unwrap();
    txn.finish_statement().unwrap();
    let ends = [(ids[0], ids[1]), (ids[1], ids[0]), (ids[0], ids[2])];
    assert_eq!(txn.insert_edges(&ends, graph.knows).unwrap_err().kind(), ErrorKind::NotFound);
    txn.finish_statement().unwrap();
    assert_eq!(edges(&txn), []);
    assert_eq!(txn.insert_edges(&ends[..2], graph.knows).unwrap().len(), 2);
    txn.commit().unwrap();
    assert_eq!(edges(&graph.begin()).len(), 2);
}
