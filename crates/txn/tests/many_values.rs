//! One property of many vertices, written at once: everybody sees what single writes leave, at every moment.

use mangrove_graph::{ElementKind, ErrorKind, GraphView, IndexRange, Share, Value, VertexId};
use mangrove_store::{IndexOptions, StoreOptions};
use mangrove_testdata::{case_count, first_seed};
use mangrove_txn::Transaction;
use rand::rngs::SmallRng;
use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, check_memory, small_sizes, vertices};

fn graph_of(seed: u64) -> Graph {
    let sizes = small_sizes(seed);
    Graph::with_options(&StoreOptions { tablet_count: 3, sizes, ..StoreOptions::default() })
}

/// What a view shows: the vertices with their balances, as each one is read.
fn shown(graph: &Graph, view: &dyn GraphView) -> Vec<(VertexId, Option<i64>)> {
    let mut shown: Vec<_> = vertices(view).into_iter().map(|id| (id, graph.get(view, id))).collect();
    shown.sort_unstable();
    shown
}

fn index_of(graph: &Graph, ordered: bool, unique: bool) -> mangrove_graph::IndexId {
    let keys = vec![graph.balance];
    let options = IndexOptions { element: ElementKind::Vertex, label: None, keys, ordered, unique };
    graph.manager.create_index(&options).unwrap()
}

/// The vertices that an index finds for each balance are those that are shown with it.
fn check_index(graph: &Graph, view: &dyn GraphView, index: mangrove_graph::IndexId) {
    let shown = shown(graph, view);
    for n in -1..30 {
        let mut found = Vec::new();
        let equal = IndexRange::Equal(vec![Value::I64(n)]);
        view.index_vertices(index, &[], &equal, Share::ALL, &mut found).unwrap();
        found.sort_unstable();
        let expected: Vec<_> = shown.iter().filter(|(_, balance)| *balance == Some(n)).map(|(id, _)| *id).collect();
        assert_eq!(found, expected, "{n}");
    }
}

/// Two graphs get the same transactions, one by single writes and one at once. Snapshots are kept, and read again later.
#[test]
fn values_written_at_once_are_those_of_single_writes_in_every_snapshot() {
    let (first, mut compared) = (first_seed(0), 0);
    let count = case_count(30);
    'graphs: for seed in first..first + count {
        let mut rng = SmallRng::seed_from_u64(seed);
        let graphs = [graph_of(seed), graph_of(seed)];
        let with_index = rng.random_bool(0.5);
        let indexes = graphs.each_ref().map(|graph| with_index.then(|| index_of(graph, seed % 2 == 0, false)));
        let mut ids = graphs.each_ref().map(|graph| graph.persons(60));
        assert_eq!(ids[0], ids[1]);
        let mut kept: Vec<([Transaction; 2], Vec<_>)> = Vec::new();
        for step in 0..25 {
            let txns = graphs.each_ref().map(Graph::begin);
            for _ in 0..rng.random_range(1..4) {
                let known = &ids[0];
                let mut chosen = known.clone();
                // In the order of ids, in any order, and with vertices that come twice.
                match rng.random_range(0..3) {
                    0 => chosen.sort_unstable(),
                    1 => chosen.shuffle(&mut rng),
                    _ => chosen = (0..known.len()).map(|_| known[rng.random_range(0..known.len())]).collect(),
                }
                chosen.truncate(rng.random_range(0..known.len()));
                let values: Vec<_> = chosen.into_iter().map(|id| (id, Value::I64(rng.random_range(0..30)))).collect();
                for (id, value) in &values {
                    let Value::I64(balance) = value else { unreachable!("balances are whole numbers") };
                    graphs[0].set(&txns[0], *id, *balance).unwrap();
                }
                txns[1].set_vertex_properties(graphs[1].balance, &values).unwrap();
                if rng.random_bool(0.3) {
                    // In the running statement, and before the next writes.
                    let new = [0, 1].map(|side| graphs[side].add(&txns[side], step));
                    if new[0] != new[1] {
                        // A slot is used again when no thread of the process may still read it. Another test may hold it back in
                        // one of the graphs, and from then on they have different ids.
                        continue 'graphs;
                    }
                    ids.iter_mut().zip(new).for_each(|(ids, new)| ids.push(new));
                }
                if rng.random_bool(0.5) {
                    txns.iter().for_each(|txn| txn.finish_statement().unwrap());
                    assert_eq!(shown(&graphs[0], &txns[0]), shown(&graphs[1], &txns[1]), "seed {seed}, step {step}");
                }
            }
            let [one, other] = txns;
            if rng.random_bool(0.7) {
                assert_eq!(one.commit().unwrap().timestamp, other.commit().unwrap().timestamp);
            } else {
                one.rollback();
                other.rollback();
                let view = graphs[0].begin();
                ids.iter_mut().for_each(|ids| ids.retain(|id| vertices(&view).contains(id)));
            }
            let now = graphs.each_ref().map(Graph::begin);
            let is = shown(&graphs[0], &now[0]);
            assert_eq!(is, shown(&graphs[1], &now[1]), "seed {seed}, step {step}");
            if rng.random_bool(0.4) {
                kept.push((now, is));
            }
            if rng.random_bool(0.2) {
                graphs.iter().for_each(|graph| graph.manager.compact());
            }
            for (views, is) in &kept {
                assert_eq!(*is, shown(&graphs[1], &views[1]), "an older snapshot, seed {seed}, step {step}");
                for (graph, (view, index)) in graphs.iter().zip(views.iter().zip(indexes)) {
                    index.into_iter().for_each(|index| check_index(graph, view, index));
                }
            }
            if kept.len() > 3 {
                kept.remove(0);
            }
        }
        drop(kept);
        for graph in &graphs {
            graph.manager.compact();
            check_memory(graph.manager.store());
        }
        compared += 1;
    }
    assert!(compared * 2 > count, "{compared} of {count} pairs of graphs were compared to the end");
}

#[test]
fn the_first_updater_wins_against_a_writer_of_many() {
    let graph = Graph::new();
    let ids = graph.persons(300);
    let values: Vec<_> = ids.iter().map(|id| (*id, Value::I64(9))).collect();
    // A single writer came first.
    let (first, second) = (graph.begin(), graph.begin());
    graph.set(&first, ids[250], 5).unwrap();
    let refused = second.set_vertex_properties(graph.balance, &values).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    assert_eq!(second.finish_statement().unwrap_err().kind(), ErrorKind::Conflict, "the transaction is rolled back");
    drop(second);
    first.commit().unwrap();
    let now = graph.begin();
    assert!(ids.iter().all(|id| graph.get(&now, *id) == Some(if *id == ids[250] { 5 } else { 0 })));
    // The writer of many came first.
    let (first, second) = (graph.begin(), graph.begin());
    first.set_vertex_properties(graph.balance, &values).unwrap();
    assert_eq!(graph.set(&second, ids[7], 1).unwrap_err().kind(), ErrorKind::Conflict);
    let third = graph.begin();
    assert_eq!(third.delete_vertex(ids[8]).map(|()| third.commit()).unwrap_err().kind(), ErrorKind::Conflict);
    first.commit().unwrap();
    assert!(ids.iter().all(|id| graph.get(&graph.begin(), *id) == Some(9)));
    assert!(ids.iter().all(|id| graph.get(&now, *id) != Some(9)), "an older snapshot");
    // Another transaction is deleting one of the vertices.
    let (first, second) = (graph.begin(), graph.begin());
    first.delete_vertex(ids[100]).unwrap();
    let refused = second.set_vertex_properties(graph.balance, &values).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
}

#[test]
fn what_is_refused_changes_nothing() {
    let graph = Graph::new();
    let ids = graph.persons(50);
    let txn = graph.begin();
    txn.delete_vertex(ids[40]).unwrap();
    txn.commit().unwrap();
    let txn = graph.begin();
    let values: Vec<_> = ids.iter().map(|id| (*id, Value::I64(3))).collect();
    assert_eq!(txn.set_vertex_properties(graph.balance, &values).unwrap_err().kind(), ErrorKind::NotFound);
    let unfit = [(ids[0], Value::I64(3)), (ids[1], Value::Vertex(ids[2]))];
    assert_eq!(txn.set_vertex_properties(graph.balance, &unfit).unwrap_err().kind(), ErrorKind::InvalidArgument);
    txn.set_vertex_properties(graph.balance, &[]).unwrap();
    txn.finish_statement().unwrap();
    assert!(ids.iter().all(|id| graph.get(&txn, *id).is_none_or(|balance| balance == 0)));
    assert_eq!(txn.commit().unwrap().write_count, 0);
}

#[test]
fn unique_values_stay_unique() {
    let graph = Graph::new();
    let txn = graph.begin();
    let ids: Vec<_> = (0..40).map(|n| graph.add(&txn, n)).collect();
    txn.commit().unwrap();
    let index = index_of(&graph, false, true);
    let txn = graph.begin();
    let new = |n: i64| Value::I64(100 + n);
    let values: Vec<_> = ids.iter().zip(0..).map(|(id, n)| (*id, new(n))).collect();
    txn.set_vertex_properties(graph.balance, &values).unwrap();
    txn.commit().unwrap();
    let txn = graph.begin();
    let twice = [(ids[0], Value::I64(7)), (ids[1], Value::I64(7))];
    let refused = txn.set_vertex_properties(graph.balance, &twice).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::DuplicateId, "{refused}");
    drop(txn);
    check_index(&graph, &graph.begin(), index);
}

/// Several writers of many values at once, and readers that must see all values of one of them.
#[test]
fn readers_see_all_values_of_one_writer() {
    let graph = Graph::new();
    let ids = graph.persons(2_500);
    std::thread::scope(|scope| {
        for writer in 1..3_i64 {
            let (graph, ids) = (&graph, &ids);
            scope.spawn(move || {
                for round in 0..12 {
                    let txn = graph.begin();
                    let values: Vec<_> = ids.iter().map(|id| (*id, Value::I64(writer * 100 + round))).collect();
                    match txn.set_vertex_properties(graph.balance, &values) {
                        Ok(()) => drop(txn.commit().unwrap()),
                        Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict),
                    }
                }
            });
        }
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..30 {
                    let view = graph.begin();
                    let first = graph.get(&view, ids[0]);
                    assert!(ids.iter().all(|id| graph.get(&view, *id) == first));
                }
            });
        }
    });
    graph.manager.compact();
    check_memory(graph.manager.store());
}
