//! Bulk loading: the loaded elements are read back, they are clean, and transactions go on from there.

use mangrove_graph::{Direction, ElementKind, Error, ErrorKind, GraphView, UserId, Value, VertexId};
use mangrove_store::{BulkColumn, ColumnData, MultiProperty, MultiValue, StoreOptions};
use mangrove_txn::IndexOptions;
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, check_consistent, check_memory, edges, expand, find, vertices};

fn random_ends(vertices: &[VertexId], count: usize) -> Vec<(VertexId, VertexId)> {
    let mut rng = SmallRng::seed_from_u64(1);
    // Squared, so that a few vertices have many edges.
    let mut pick = || vertices[(rng.random::<f64>().powi(2) * vertices.len() as f64) as usize];
    (0..count).map(|_| (pick(), pick())).collect()
}

#[test]
fn what_was_loaded_is_read_back_from_both_sides() {
    let graph = Graph::new();
    let mut load = graph.manager.bulk_load().unwrap();
    assert_eq!(graph.manager.begin_read().unwrap_err().kind(), ErrorKind::Closed);
    let names: Vec<Option<Value>> =
        (0..5_000).map(|n| (n % 3 == 0).then(|| Value::from(format!("name {n}")))).collect();
    let columns = [
        BulkColumn { key: graph.balance, values: ColumnData::I64((0..5_000).collect()) },
        BulkColumn { key: graph.name, values: ColumnData::Any(names) },
    ];
    let ids: Vec<UserId> = (0..5_000).map(|n| UserId::int(n * 10)).collect();
    let people = load.vertices(graph.person, 5_000, Some(&ids), &columns).unwrap();
    let ends = random_ends(&people, 40_000);
    let weights = BulkColumn { key: graph.balance, values: ColumnData::F64((0..40_000).map(f64::from).collect()) };
    let loaded = load.edges(graph.knows, &ends, None, &[weights]).unwrap();
    let likes = graph.manager.store().catalog().intern_label_text("likes");
    load.edges(likes, &[(people[0], people[0]), (people[0], people[1])], None, &[]).unwrap();
    load.finish().unwrap();

    let txn = graph.begin();
    check_consistent(&txn);
    assert_eq!((vertices(&txn).len(), edges(&txn).len()), (5_000, 40_002));
    assert_eq!((find(&txn, 70), find(&txn, 71)), (Some(people[7]), None));
    assert_eq!(graph.get(&txn, people[4_321]), Some(4_321));
    assert_eq!(crate::common::values(&txn, people[3], graph.name), [Value::from("name 3")]);
    assert!(crate::common::values(&txn, people[4], graph.name).is_empty());
    let (mut sources, mut targets, mut rows) = (vec![], vec![], mangrove_graph::ValueRows::default());
    txn.edge_ends(&loaded, &mut sources, &mut targets).unwrap();
    assert!(sources.into_iter().zip(targets).eq(ends));
    txn.edge_values(&loaded, graph.balance, &mut rows).unwrap();
    assert!(rows.value.iter().enumerate().all(|(row, value)| *value == Value::F64(row as f64)));
    let neighbors: Vec<_> = expand(&txn, &people[..1], Direction::Out, 1_000_000).iter().map(|(_, v, _)| *v).collect();
    assert!(neighbors[..neighbors.len() - 2].is_sorted(), "runs are sorted");

    let store = graph.manager.store();
    check_memory(store);
    let report = store.memory();
    let versions = report.rows.iter().find(|row| row.name == "version words").unwrap();
    assert_eq!(versions.bytes, 0, "nothing loaded in bulk has version words");
}

#[test]
fn transactions_go_on_where_the_load_ended() {
    let graph = Graph::new();
    let mut load = graph.manager.bulk_load().unwrap();
    let people = load.vertices(graph.person, 2_000, None, &[]).unwrap();
    // A list too long for a packed descriptor, and many short ones.
    let mut ends: Vec<_> = (0..40_000).map(|n| (people[0], people[n % 2_000])).collect();
    ends.extend(random_ends(&people, 10_000));
    let loaded = load.edges(graph.knows, &ends, None, &[]).unwrap();
    load.finish().unwrap();

    let old = graph.begin();
    let txn = graph.begin();
    let mut rng = SmallRng::seed_from_u64(2);
    for _ in 0..2_000 {
        match rng.random_range(0..3) {
            0 => drop(txn.insert_edge(people[rng.random_range(2..2_000)], people[0], graph.knows, None).unwrap()),
            1 => txn.delete_edge(loaded[rng.random_range(0..loaded.len())]).unwrap(),
            _ => graph.set(&txn, people[rng.random_range(2..2_000)], 1).unwrap(),
        }
    }
    txn.delete_vertex(people[1]).unwrap();
    txn.commit().unwrap();
    check_consistent(&old);
    check_consistent(&graph.begin());
    assert_eq!((vertices(&old).len(), edges(&old).len()), (2_000, 50_000));
    assert_eq!(vertices(&graph.begin()).len(), 1_999);
    let store = graph.manager.store();
    check_memory(store);
}

#[test]
fn a_load_that_is_dropped_leaves_the_graph_empty() {
    let graph = Graph::new();
    let before = graph.manager.store().memory().total_bytes();
    let mut load = graph.manager.bulk_load().unwrap();
    let ids = ["a", "b"].map(UserId::from);
    let people = load.vertices(graph.person, 2, Some(&ids), &[]).unwrap();
    load.edges(graph.knows, &[(people[0], people[1])], None, &[]).unwrap();
    drop(load);
    assert_eq!(graph.manager.store().memory().total_bytes(), before);
    assert!(vertices(&graph.begin()).is_empty() && find(&graph.begin(), "a").is_none());
    let mut load = graph.manager.bulk_load().unwrap();
    load.vertices(graph.person, 2, Some(&ids), &[]).unwrap();
    load.finish().unwrap();
    assert!(find(&graph.begin(), "b").is_some());
}

/// The graph is as good as new, whenever the end of the load is cancelled.
#[test]
fn a_load_that_is_cancelled_leaves_the_graph_empty() {
    let graph = Graph::with_options(&StoreOptions { tablet_count: 1, ..StoreOptions::default() });
    let likes = graph.manager.store().catalog().intern_label_text("likes");
    let run = |asks_max: usize| {
        let mut load = graph.manager.bulk_load().unwrap();
        let ids: Vec<UserId> = (0..2_000).map(UserId::int).collect();
        let people = load.vertices(graph.person, 2_000, Some(&ids), &[]).unwrap();
        // A list too long for a packed descriptor has a header.
        let ends: Vec<_> = (0..40_000).map(|n| (people[0], people[n % 2_000])).collect();
        load.edges(graph.knows, &ends, None, &[]).unwrap();
        load.edges(likes, &ends[..5_000], None, &[]).unwrap();
        let mut asks = 0;
        let outcome = load.finish_unless(&mut || {
            asks += 1;
            if asks > asks_max { Err(Error::new(ErrorKind::Cancelled, "enough")) } else { Ok(()) }
        });
        (outcome.map_err(|error| error.kind()), asks)
    };
    let (mut asks_max, mut bytes) = (0, Vec::new());
    while let (Err(kind), asks) = run(asks_max) {
        assert_eq!((kind, asks), (ErrorKind::Cancelled, asks_max + 1));
        assert!(vertices(&graph.begin()).is_empty() && find(&graph.begin(), 7).is_none());
        let store = graph.manager.store();
        assert_eq!(store.memory().total_bytes(), store.memory_walk());
        bytes.push(store.memory().total_bytes());
        asks_max += 7;
    }
    assert!(asks_max > 70, "{asks_max}");
    // A chunk is kept for other headers, and no more from one load to the next.
    bytes.dedup();
    assert!(bytes.len() <= 2, "{bytes:?}");
    check_consistent(&graph.begin());
    assert_eq!((vertices(&graph.begin()).len(), edges(&graph.begin()).len()), (2_000, 45_000));
}

#[test]
fn mistakes_are_named() {
    let graph = Graph::new();
    let running = graph.begin();
    assert_eq!(graph.manager.bulk_load().unwrap_err().kind(), ErrorKind::Closed);
    drop(running);
    let mut load = graph.manager.bulk_load().unwrap();
    assert_eq!(graph.manager.bulk_load().unwrap_err().kind(), ErrorKind::Closed);
    let short = BulkColumn { key: graph.name, values: ColumnData::Bool(vec![true]) };
    assert_eq!(load.vertices(graph.person, 2, None, &[short]).unwrap_err().kind(), ErrorKind::InvalidArgument);
    let nowhere = VertexId::from_bits(77);
    let error = load.edges(graph.knows, &[(nowhere, nowhere)], None, &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    let twice = [UserId::int(4), UserId::int(4)];
    assert_eq!(load.vertices(graph.person, 2, Some(&twice), &[]).unwrap_err().kind(), ErrorKind::DuplicateId);
    assert_eq!(load.finish().unwrap_err().kind(), ErrorKind::InvalidArgument);
    graph.persons(1);
    assert_eq!(graph.manager.bulk_load().unwrap_err().kind(), ErrorKind::InvalidArgument);
    graph.begin();
}

#[test]
fn chosen_numbers_leave_holes_among_automatic_ids() {
    let graph = Graph::with_options(&StoreOptions { tablet_count: 1, ..StoreOptions::default() });
    let mut load = graph.manager.bulk_load().unwrap();
    // The first page gets the chosen ids; the automatic ones are on the second.
    let wanted = VertexId::new(mangrove_graph::TabletId(1), 1_024 + 2).external();
    let chosen = load.vertices(graph.person, 1, Some(&[UserId::int(wanted)]), &[]).unwrap()[0];
    let other = graph.manager.store().catalog().intern_label_text("other");
    let automatic = load.vertices(other, 5, None, &[]).unwrap();
    load.edges(graph.knows, &[(automatic[4], chosen)], None, &[]).unwrap();
    load.finish().unwrap();
    let txn = graph.begin();
    assert_eq!(vertices(&txn).len(), 6);
    assert_eq!(find(&txn, wanted), Some(chosen));
    assert!(automatic.iter().all(|v| find(&txn, v.external()) == Some(*v)));
    check_consistent(&txn);
}

#[test]
fn multi_properties_and_indexes_are_loaded_too() {
    let graph = Graph::new();
    let store = graph.manager.store();
    let options = IndexOptions {
        element: ElementKind::Vertex,
        label: None,
        keys: vec![graph.name],
        ordered: false,
        unique: false,
    };
    let index = graph.manager.create_index(&options).unwrap();
    let mut load = graph.manager.bulk_load().unwrap();
    let value = |ordinal, text: &str| MultiValue { ordinal, value: text.into(), meta: Default::default() };
    let multi = MultiProperty { values: vec![value(0, "a"), value(1, "b")] };
    let column = BulkColumn { key: graph.name, values: ColumnData::Multi(vec![multi, MultiProperty::default()]) };
    let people = load.vertices(graph.person, 2, None, &[column]).unwrap();
    load.finish().unwrap();
    let txn = graph.begin();
    assert_eq!(crate::common::values(&txn, people[0], graph.name), ["a", "b"].map(Value::from));
    let mut out = Vec::new();
    let range = mangrove_graph::IndexRange::Equal(vec!["b".into()]);
    txn.index_vertices(index, &[], &range, mangrove_graph::Share::ALL, &mut out).unwrap();
    assert_eq!(out, people[..1]);
    check_memory(store);
}
