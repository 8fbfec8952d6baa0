//! Many threads at once: invariants that hold in every snapshot, whatever the interleaving.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mangrove_graph::{
    AdjacencyRequest, AdjacencyRuns, Direction, EdgeId, ErrorKind, GraphView, LabelFilter, ScanCursor, Share, UserId,
    Value, ValueRows, VertexId,
};
use mangrove_store::{StoreOptions, StoreSizes, WriteCardinality};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, check_consistent, edges, find, small_sizes, vertices};

/// Runs a transaction until it commits. Returns the number of attempts before.
fn until_committed(mut attempt: impl FnMut() -> mangrove_graph::Result<()>) -> usize {
    let mut retries = 0;
    while let Err(error) = attempt() {
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
        retries += 1;
        std::thread::yield_now();
    }
    retries
}

#[test]
fn the_sum_of_all_accounts_is_the_same_in_every_snapshot() {
    const ACCOUNTS: usize = 20;
    let graph = Graph::new();
    let ids = graph.persons(ACCOUNTS);
    let running = AtomicUsize::new(3);
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (graph, ids, running) = (&graph, &ids, &running);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                for _ in 0..3_000 {
                    let (from, to) = (rng.random_range(0..ACCOUNTS), rng.random_range(0..ACCOUNTS));
                    let amount = rng.random_range(1..10);
                    until_committed(|| {
                        let txn = graph.begin();
                        let balance = graph.get(&txn, ids[from]).unwrap();
                        graph.set(&txn, ids[from], balance - amount)?;
                        txn.finish_statement()?;
                        let balance = graph.get(&txn, ids[to]).unwrap();
                        graph.set(&txn, ids[to], balance + amount)?;
                        if amount == 9 {
                            txn.rollback();
                            return Ok(());
                        }
                        txn.commit().map(drop)
                    });
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        let (mut rows, mut checks) = (ValueRows::default(), 0);
        while running.load(Ordering::SeqCst) > 0 || checks == 0 {
            let txn = graph.manager.begin_read().unwrap();
            rows.clear();
            txn.vertex_values(&ids, graph.balance, &mut rows).unwrap();
            let balances = rows.value.iter().map(|v| mangrove_graph::numeric::integer(v).unwrap());
            assert_eq!((rows.value.len(), balances.sum::<i64>()), (ACCOUNTS, 0));
            checks += 1;
        }
    });
    assert_eq!(graph.manager.counters().active, 0);
}

#[test]
fn a_supernode_takes_edges_from_everybody_without_a_conflict() {
    let graph = Graph::new();
    let hub = graph.persons(1)[0];
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..500 {
                    let txn = graph.begin();
                    let v = graph.add(&txn, n);
                    txn.insert_edge(v, hub, graph.knows, None).unwrap();
                    txn.insert_edge(hub, v, graph.knows, None).unwrap();
                    txn.commit().unwrap();
                }
            });
        }
    });
    let txn = graph.begin();
    let mut degrees = Vec::new();
    txn.degrees(&[hub], Direction::Both, &LabelFilter::Any, &mut degrees).unwrap();
    assert_eq!((degrees[0], graph.manager.counters().conflicts()), (4_000, 0));
    check_consistent(&txn);
}

#[test]
fn an_edge_never_dangles_when_adding_it_races_with_deleting_its_end() {
    let graph = Graph::new();
    let done = AtomicBool::new(false);
    let ids = graph.persons(400);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (graph, ids) = (&graph, &ids);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                for window in 0..ids.len() / 2 {
                    for _ in 0..6 {
                        let near = |rng: &mut SmallRng| ids[(2 * window + rng.random_range(0..6)).min(ids.len() - 1)];
                        let (s, t) = (near(&mut rng), near(&mut rng));
                        let txn = graph.begin();
                        let outcome = txn.insert_edge(s, t, graph.knows, None).and_then(|_| txn.commit());
                        if let Err(error) = outcome {
                            assert!(matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound), "{error}");
                        }
                    }
                }
            });
        }
        let deleter = scope.spawn(|| {
            for &v in ids.iter().step_by(2) {
                until_committed(|| {
                    let txn = graph.begin();
                    txn.delete_vertex(v)?;
                    txn.commit().map(drop)
                });
            }
            done.store(true, Ordering::SeqCst);
        });
        while !done.load(Ordering::SeqCst) {
            check_consistent(&graph.begin());
        }
        deleter.join().unwrap();
    });
    let txn = graph.begin();
    check_consistent(&txn);
    let alive = vertices(&txn);
    assert_eq!(alive.len(), 200);
    assert!(edges(&txn).iter().all(|(_, s, t)| alive.contains(s) && alive.contains(t)));
}

#[test]
fn a_race_for_an_id_has_one_winner() {
    let graph = Graph::new();
    for round in 0..200_i64 {
        let id = if round % 2 == 0 { UserId::int(-round - 1) } else { UserId::from(format!("id {round}").as_str()) };
        let wins = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    let txn = graph.begin();
                    match txn.insert_vertex(graph.person, Some(id.clone())) {
                        Ok(_) => {
                            txn.commit().unwrap();
                            wins.fetch_add(1, Ordering::SeqCst);
                        }
                        Err(error) => {
                            assert!(matches!(error.kind(), ErrorKind::Conflict | ErrorKind::DuplicateId), "{error}");
                        }
                    }
                });
            }
        });
        assert_eq!(wins.load(Ordering::SeqCst), 1, "{id}");
        assert!(find(&graph.begin(), id).is_some());
    }
    assert_eq!(vertices(&graph.begin()).len(), 200);
}

#[test]
fn counting_up_one_value_loses_no_update() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                for _ in 0..400 {
                    until_committed(|| {
                        let txn = graph.begin();
                        let n = graph.get(&txn, v).unwrap();
                        graph.set(&txn, v, n + 1)?;
                        txn.commit().map(drop)
                    });
                }
            });
        }
    });
    assert_eq!(graph.get(&graph.begin(), v), Some(1_200));
}

#[test]
fn a_value_is_never_torn_between_types_versions_and_rollbacks() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    // Numbers written as an integer, a short string and a long one, so that a mixture would not parse.
    let shape = |n: i64| match n % 3 {
        0 => Value::I64(n),
        1 => Value::from(format!("s{n}")),
        _ => Value::from(format!("a long string that ends in {n}")),
    };
    let write = |txn: &mangrove_txn::Transaction, n: i64| {
        txn.set_vertex_property(v, graph.name, shape(n), WriteCardinality::Single, vec![])?;
        txn.finish_statement()?;
        graph.set(txn, v, n)
    };
    let first = graph.begin();
    write(&first, 0).unwrap();
    first.commit().unwrap();
    let running = AtomicUsize::new(2);
    std::thread::scope(|scope| {
        for seed in 0..2 {
            let (graph, write, running) = (&graph, &write, &running);
            scope.spawn(move || {
                let mut rng = SmallRng::seed_from_u64(seed);
                for _ in 0..4_000 {
                    let txn = graph.begin();
                    let rounds = rng.random_range(1..4);
                    let written = (0..rounds).try_for_each(|_| {
                        write(&txn, rng.random_range(0..1_000))?;
                        txn.finish_statement()
                    });
                    match written {
                        Ok(()) if rng.random_bool(0.5) => drop(txn.commit().unwrap()),
                        _ => txn.rollback(),
                    }
                }
                running.fetch_sub(1, Ordering::SeqCst);
            });
        }
        while running.load(Ordering::SeqCst) > 0 {
            let txn = graph.begin();
            let n = graph.get(&txn, v).unwrap();
            for _ in 0..20 {
                assert_eq!(crate::common::values(&txn, v, graph.name), [shape(n)]);
                assert_eq!(graph.get(&txn, v), Some(n));
            }
        }
    });
}

/// The edges of a view as its lists have them: in the direction of the edges and against it.
fn edges_of_lists(view: &dyn GraphView, direction: Direction) -> Vec<(VertexId, VertexId, EdgeId)> {
    let request = AdjacencyRequest {
        vertices: LabelFilter::Any,
        direction,
        labels: LabelFilter::Any,
        share: Share::ALL,
        pages: ScanCursor::default(),
        edges: true,
    };
    let mut found = Vec::new();
    let mut take = |runs: &AdjacencyRuns<'_>| {
        for (vertex, neighbors, edges) in runs.iter() {
            found.extend(neighbors.iter().zip(edges).map(|(neighbor, edge)| match direction {
                Direction::In => (*neighbor, vertex, *edge),
                _ => (vertex, *neighbor, *edge),
            }));
        }
        Ok(())
    };
    view.for_each_adjacency(&request, &mut take).unwrap();
    found.sort_unstable();
    found
}

/// STORE-15: readers check the edges that are named, and take all others of a packed run.
#[test]
fn lists_have_the_edges_of_their_snapshot_while_edges_move() {
    const VERTICES: usize = 24;
    const EDGES: usize = 900;
    for (seed, sizes) in
        [(0, StoreSizes { long_list: 16, changes_min: 8, ..StoreSizes::default() }), (1, small_sizes(1))]
    {
        let graph = Graph::with_options(&StoreOptions { tablet_count: 2, sizes, ..StoreOptions::default() });
        let vertices = graph.persons(VERTICES);
        let txn = graph.begin();
        let mut rng = SmallRng::seed_from_u64(seed);
        for _ in 0..EDGES {
            // A few vertices have most edges, so that their lists are long.
            let ends = [0, 1].map(|_| vertices[rng.random_range(0..VERTICES).min(rng.random_range(0..VERTICES))]);
            txn.insert_edge(ends[0], ends[1], graph.knows, None).unwrap();
        }
        txn.commit().unwrap();
        graph.manager.compact();
        let running = AtomicUsize::new(2);
        std::thread::scope(|scope| {
            for writer in 0..2 {
                let (graph, vertices, running) = (&graph, &vertices, &running);
                let mut rng = SmallRng::seed_from_u64(seed + 10 + writer);
                scope.spawn(move || {
                    let mut mine: Vec<EdgeId> = edges(&graph.begin()).into_iter().map(|(edge, ..)| edge).collect();
                    for _ in 0..20_000 {
                        until_committed(|| {
                            let txn = graph.begin();
                            let at = rng.random_range(0..mine.len());
                            let to = [0, 1].map(|_| vertices[rng.random_range(0..VERTICES)]);
                            let mut is_there = vec![mine[at]];
                            txn.retain_edges(&mut is_there)?;
                            if is_there.is_empty() {
                                // The other writer has moved it.
                                mine = edges(&txn).into_iter().map(|(edge, ..)| edge).collect();
                                return Ok(());
                            }
                            txn.delete_edge(mine[at])?;
                            mine[at] = txn.insert_edge(to[0], to[1], graph.knows, None)?;
                            if rng.random_ratio(1, 10) {
                                txn.rollback();
                                mine = edges(&graph.begin()).into_iter().map(|(edge, ..)| edge).collect();
                                return Ok(());
                            }
                            txn.commit().map(drop)
                        });
                    }
                    running.fetch_sub(1, Ordering::SeqCst);
                });
            }
            let mut checks = 0;
            while running.load(Ordering::SeqCst) > 0 || checks == 0 {
                let txn = graph.manager.begin_read().unwrap();
                let mut expected: Vec<_> =
                    edges(&txn).into_iter().map(|(edge, source, target)| (source, target, edge)).collect();
                expected.sort_unstable();
                assert_eq!(expected.len(), EDGES, "every transaction moves an edge");
                // Several times, so that lists are compacted while the snapshot is read.
                for _ in 0..8 {
                    for direction in [Direction::Out, Direction::In] {
                        let found = edges_of_lists(&txn, direction);
                        let other = found.iter().zip(&expected).find(|(found, expected)| found != expected);
                        assert!(found == expected, "seed {seed}, {direction:?}: {} edges, {other:?}", found.len());
                        let has = |(source, target, _): &&(VertexId, VertexId, EdgeId), vertex| match direction {
                            Direction::In => *target == vertex,
                            _ => *source == vertex,
                        };
                        let degree = |vertex| expected.iter().filter(|edge| has(edge, vertex)).count() as u64;
                        let mut degrees = Vec::new();
                        txn.degrees(&vertices, direction, &LabelFilter::Any, &mut degrees).unwrap();
                        assert_eq!(degrees, vertices.iter().map(|&vertex| degree(vertex)).collect::<Vec<_>>());
                    }
                    checks += 1;
                }
            }
            assert!(checks > 50, "{checks} looks");
        });
    }
}
