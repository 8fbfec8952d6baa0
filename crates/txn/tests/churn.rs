//! Guarantees of collection and compaction over time and from many threads: memory stays level, old snapshots stay
//! readable, and a graph after many updates is like one that was just loaded.

mod common;

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};

use common::{Graph, check_consistent, check_memory, edges, expand, find, small_sizes, values, vertices};
use mangrove_graph::{Direction, EdgeId, ErrorKind, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter};
use mangrove_graph::{UserId, Value, VertexId};
use mangrove_store::{RecordKind, StoreOptions, WriteCardinality};
use mangrove_testdata::case_count;
use parking_lot::{Mutex, MutexGuard};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// Retired memory is freed when every reader of the *process* has unpinned. So a test that counts the remaining memory
/// runs alone, or waits for the threads of other tests.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock()
}

fn bytes(graph: &Graph, kind: RecordKind) -> u64 {
    graph.manager.store().memory().rows[kind as usize].bytes
}

fn total(graph: &Graph) -> u64 {
    graph.manager.store().memory().total_bytes()
}

/// A ring of vertices with a short and a long property, and a chosen id on every fourth.
fn fill(graph: &Graph, count: usize, round: usize) -> Vec<VertexId> {
    let txn = graph.begin();
    let ids: Vec<VertexId> = (0..count)
        .map(|n| {
            let chosen = (n % 4 == 0).then(|| UserId::from(format!("round {round}, number {n}").as_str()));
            let id = txn.insert_vertex(graph.person, chosen).unwrap();
            graph.set(&txn, id, n as i64).unwrap();
            let name = Value::from(format!("the name of number {n}"));
            txn.set_vertex_property(id, graph.name, name, WriteCardinality::Single, vec![]).unwrap();
            id
        })
        .collect();
    txn.finish_statement().unwrap();
    for at in 0..count {
        txn.insert_edge(ids[at], ids[(at + 1) % count], graph.knows, None).unwrap();
    }
    txn.commit().unwrap();
    ids
}

#[test]
fn memory_stays_level_under_updates_deletes_and_inserts() {
    let _turn = alone();
    // Otherwise the result would depend on how much happens to be collected within a round.
    let graph = Graph::new().without_collector();
    let mut levels = Vec::new();
    for round in 0..20 {
        let ids = fill(&graph, 1_000, round);
        for update in 0..3 {
            let txn = graph.begin();
            for &id in &ids {
                let name = Value::from(format!("name number {update} of a vertex of round {round}"));
                txn.set_vertex_property(id, graph.name, name, WriteCardinality::Single, vec![]).unwrap();
            }
            match update {
                1 => txn.rollback(),
                _ => assert!(txn.commit().unwrap().write_count >= ids.len()),
            }
        }
        let txn = graph.begin();
        check_consistent(&txn);
        ids.iter().for_each(|&id| txn.delete_vertex(id).unwrap());
        txn.commit().unwrap();
        graph.manager.compact();
        let store = graph.manager.store();
        check_memory(store);
        assert!(store.memory().rows.iter().all(|row| row.live == 0), "{:?}", store.memory());
        assert_eq!(store.free_slots(), store.reserved_slots());
        levels.push(total(&graph));
    }
    // The memory that a round needs was freed by the round before. How much of it is still waiting when a round begins
    // depends on other pinned threads in this process, so a pool may double, and once more. Without any reuse it would
    // be ten times the first level.
    assert!(levels[19] <= 3 * levels[0], "{levels:?}");
}

#[test]
fn places_are_used_again_under_ids_that_were_never_given_before() {
    let _turn = alone();
    let graph = Graph::new();
    let mut given = std::collections::HashSet::new();
    for round in 0..5 {
        let ids = fill(&graph, 50, round);
        let txn = graph.begin();
        let edges: Vec<EdgeId> = edges(&txn).into_iter().map(|(edge, ..)| edge).collect();
        assert_eq!((ids.len(), edges.len()), (50, 50));
        for bits in ids.iter().map(|v| v.to_bits()).chain(edges.iter().map(|e| e.to_bits() ^ u64::MAX)) {
            assert!(given.insert(bits), "an id was given twice");
        }
        let external = ids[1].external();
        assert_eq!(find(&txn, external), Some(ids[1]));
        ids.iter().for_each(|&id| txn.delete_vertex(id).unwrap());
        txn.commit().unwrap();
        graph.manager.compact();
        let again = fill(&graph, 50, round + 100);
        // Handles from before name nothing, though their slots have elements again.
        let txn = graph.begin();
        assert_eq!(graph.manager.store().reserved_slots(), 100);
        assert_eq!((find(&txn, external), graph.get(&txn, ids[1])), (None, None));
        let (mut kept, mut kept_edges) = (ids.clone(), edges.clone());
        txn.retain_vertices(&mut kept).unwrap();
        txn.retain_edges(&mut kept_edges).unwrap();
        assert!(kept.is_empty() && kept_edges.is_empty() && expand(&txn, &ids, Direction::Both, 9).is_empty());
        assert_eq!(txn.set_edge_property(edges[0], graph.name, Value::I32(1)).unwrap_err().kind(), ErrorKind::NotFound);
        for bits in again.iter().map(|v| v.to_bits()) {
            assert!(given.insert(bits), "an id was given twice");
        }
        for (edge, ..) in common::edges(&txn) {
            assert!(given.insert(edge.to_bits() ^ u64::MAX), "an id was given twice");
        }
        again.iter().for_each(|&id| txn.delete_vertex(id).unwrap());
        txn.commit().unwrap();
        graph.manager.compact();
    }
}

#[test]
fn an_old_snapshot_keeps_what_it_sees_and_holds_nothing_else_back() {
    let _turn = alone();
    let graph = Graph::new();
    let ids = fill(&graph, 200, 0);
    let old = graph.begin();
    let before = (edges(&old), expand(&old, &ids, Direction::Both, 1_000));
    for round in 1..4_i64 {
        let txn = graph.begin();
        for &id in &ids {
            graph.set(&txn, id, 1_000 * round).unwrap();
        }
        if round == 3 {
            ids[..100].iter().for_each(|&id| txn.delete_vertex(id).unwrap());
        }
        txn.commit().unwrap();
        graph.manager.compact();
        assert_eq!((edges(&old), expand(&old, &ids, Direction::Both, 1_000)), before);
        assert!(ids.iter().enumerate().all(|(n, &id)| graph.get(&old, id) == Some(n as i64)));
        assert_eq!(values(&old, ids[7], graph.name), [Value::from("the name of number 7")]);
        assert_eq!(find(&old, "round 0, number 8"), Some(ids[8]));
    }
    assert!(graph.manager.garbage().queued_writes > 0, "the old snapshot holds the later commits' logs");
    drop(old);
    graph.manager.compact();
    let now = graph.begin();
    assert_eq!((vertices(&now).len(), graph.manager.garbage().queued_writes), (100, 0));
    assert_eq!(graph.get(&now, ids[150]), Some(3_000));
    check_consistent(&now);
}

#[test]
fn a_cursor_inside_a_list_goes_on_when_the_list_is_compacted() {
    let _turn = alone();
    let graph = Graph::new();
    let ids = graph.persons(100);
    let hub = ids[0];
    let txn = graph.begin();
    // Not in the order of neighbors, so that packing reorders them.
    for n in 1..100 {
        txn.insert_edge(hub, ids[n * 37 % 100], graph.knows, None).unwrap();
    }
    txn.commit().unwrap();
    let reader = graph.begin();
    let expected: Vec<_> = expand(&reader, &[hub], Direction::Out, 1_000);
    let request = ExpandRequest { direction: Direction::Out, labels: LabelFilter::Any, edges: true, limit: 7 };
    let (mut cursor, mut out, mut seen) = (ExpandCursor::default(), Expansion::default(), Vec::new());
    loop {
        let done = reader.expand(&[hub], &request, &mut cursor, &mut out).unwrap();
        seen.append(&mut out.edge);
        out.clear();
        let writer = graph.begin();
        writer.insert_edge(hub, ids[seen.len() % 100], graph.knows, None).unwrap();
        if seen.len().is_multiple_of(2) {
            writer.delete_edge(seen[seen.len() / 2]).unwrap();
        }
        writer.commit().unwrap();
        graph.manager.compact();
        if done {
            break;
        }
    }
    seen.sort_unstable();
    let mut expected: Vec<EdgeId> = expected.into_iter().map(|(.., edge)| edge).collect();
    expected.sort_unstable();
    assert_eq!(seen, expected, "each edge of the snapshot once, whatever became of the list");
}

#[test]
fn after_churn_and_compaction_a_graph_is_as_small_as_when_it_was_loaded() {
    let _turn = alone();
    const VERTICES: usize = 4_096;
    let graph = Graph::new();
    let ids = graph.persons(VERTICES);
    let mut rng = SmallRng::seed_from_u64(1);
    let mut pairs = || (ids[rng.random_range(0..VERTICES)], ids[rng.random_range(0..VERTICES)]);
    let insert = |ends: Vec<(VertexId, VertexId)>| {
        let txn = graph.begin();
        txn.insert_edges(&ends, graph.knows).unwrap();
        txn.commit().unwrap();
    };
    (0..16).for_each(|_| insert((0..8_192).map(|_| pairs()).collect()));
    graph.manager.compact();
    let count = edges(&graph.begin()).len() as u64;
    let adjacency = |graph: &Graph| {
        let report = graph.manager.store().memory();
        let live: u64 = report.rows.iter().map(|row| row.bytes - row.free_bytes).sum();
        (live, report.rows[RecordKind::Version as usize].bytes, report.rows[RecordKind::ListHeader as usize].live)
    };
    let (_, versions, headers) = adjacency(&graph);
    assert_eq!(headers, 0, "every list is a packed run");
    // Full pages have no version words; pages that are being filled keep theirs.
    assert!(versions < 16 * 1_024 * 70, "{versions} bytes of version words");
    let edge_bytes = bytes(&graph, RecordKind::EdgePage) + bytes(&graph, RecordKind::Block);
    assert!(edge_bytes / count <= 64, "{} bytes an edge", edge_bytes / count);

    // Every fifth edge is deleted, and as many are added.
    for _ in 0..3 {
        let txn = graph.begin();
        let gone: Vec<EdgeId> = edges(&txn).into_iter().map(|(edge, ..)| edge).step_by(5).collect();
        gone.iter().for_each(|&edge| txn.delete_edge(edge).unwrap());
        txn.commit().unwrap();
        graph.manager.compact();
        insert(gone.iter().map(|_| pairs()).collect());
        graph.manager.compact();
    }
    let now = graph.begin();
    check_consistent(&now);
    assert_eq!(edges(&now).len() as u64, count);
    let (_, versions_after, headers_after) = adjacency(&graph);
    assert_eq!(headers_after, 0, "every list is a packed run");
    // Two cells of 16 bytes an edge, and a bit for each cell. Every block may have a part of a word too much.
    let (blocks, packed) = (graph.manager.store().memory().rows[RecordKind::Block as usize].allocations, 32 * count);
    let bits = bytes(&graph, RecordKind::Block) - packed;
    assert!((2 * count / 8..2 * count / 8 + 8 * blocks).contains(&bits), "{bits} bytes beside {packed}");
    // The version words are gone again, except on the few pages where the free slots have gathered; there are
    // generations, two bytes a slot.
    let (generations, some_pages) = (2 * graph.manager.store().reserved_slots(), 12 * 16 * 1_024);
    assert!(versions_after <= versions + generations + some_pages, "{versions_after} after {versions}");
}

/// A copy of another graph, freshly loaded.
fn loaded_afresh(graph: &Graph) -> Graph {
    let fresh = Graph::new();
    let txn = graph.begin();
    let (old, links) = (vertices(&txn), edges(&txn));
    let mut load = fresh.manager.bulk_load().unwrap();
    let new = load.vertices(fresh.person, old.len(), None, &[]).unwrap();
    let place: HashMap<VertexId, VertexId> = old.into_iter().zip(new).collect();
    let ends: Vec<_> = links.iter().map(|(_, source, target)| (place[source], place[target])).collect();
    load.edges(fresh.knows, &ends, None, &[]).unwrap();
    load.finish().unwrap();
    fresh
}

/// Deletes vertices with their edges and inserts others with as many edges, so that every slot is used several times.
/// The new edges are scattered over the pages of the deleted ones.
#[test]
fn after_vertices_are_churned_memory_is_that_of_a_fresh_load() {
    let _turn = alone();
    const VERTICES: usize = 4_096;
    const DEGREE: usize = 16;
    let graph = Graph::new().without_collector();
    let txn = graph.begin();
    let mut ids: Vec<VertexId> = (0..VERTICES).map(|_| txn.insert_vertex(graph.person, None).unwrap()).collect();
    txn.commit().unwrap();
    let mut rng = SmallRng::seed_from_u64(7);
    let txn = graph.begin();
    for _ in 0..VERTICES * DEGREE / 2 {
        let ends = (ids[rng.random_range(0..VERTICES)], ids[rng.random_range(0..VERTICES)]);
        txn.insert_edge(ends.0, ends.1, graph.knows, None).unwrap();
    }
    txn.commit().unwrap();
    for _ in 0..2 * VERTICES {
        let txn = graph.begin();
        let at = rng.random_range(0..VERTICES);
        txn.delete_vertex(ids[at]).unwrap();
        txn.finish_statement().unwrap();
        ids[at] = txn.insert_vertex(graph.person, None).unwrap();
        txn.finish_statement().unwrap();
        for n in 0..DEGREE {
            let other = ids[rng.random_range(0..VERTICES)];
            let (source, target) = if n % 2 == 0 { (ids[at], other) } else { (other, ids[at]) };
            txn.insert_edge(source, target, graph.knows, None).unwrap();
        }
        txn.commit().unwrap();
        graph.manager.collect_garbage();
    }
    graph.manager.compact();
    let fresh = loaded_afresh(&graph);
    let (txn, store) = (graph.begin(), graph.manager.store());
    check_consistent(&txn);
    check_memory(store);
    let (now, then) = (total(&graph), total(&fresh));
    assert!(
        now * 10 <= then * 13,
        "{now} bytes, {then} afresh: {:#?} {:#?}",
        store.memory(),
        fresh.manager.store().memory()
    );

    // Nine of ten elements are deleted: the others take no more than their share, on whatever pages they are. A slot
    // keeps its generation, two bytes, with or without an element.
    drop(txn);
    let txn = graph.begin();
    ids.iter().enumerate().filter(|(n, _)| n % 10 != 0).for_each(|(_, &id)| txn.delete_vertex(id).unwrap());
    txn.commit().unwrap();
    graph.manager.compact();
    check_memory(store);
    let left = total(&graph) - 2 * store.reserved_slots();
    assert!(left * 4 <= then, "{left} bytes of {then}: {:#?}", store.memory());
    // Of the 163,840 edges and 12,288 vertices in all, many had the slot of an earlier one.
    assert!(store.reserved_slots() < 96 * 1_024, "{} places", store.reserved_slots());
    check_consistent(&graph.begin());
    // And their slots are used before new ones.
    let places = store.reserved_slots();
    let again = graph.persons(VERTICES / 2);
    let txn = graph.begin();
    for pair in again.windows(2) {
        txn.insert_edge(pair[0], pair[1], graph.knows, None).unwrap();
    }
    txn.commit().unwrap();
    assert_eq!(store.reserved_slots(), places);
    check_consistent(&graph.begin());
    graph.manager.compact();
    check_consistent(&graph.begin());
}

/// Readers, writers, collection and compaction at once, until each writer has tried this many transactions
/// (`MANGROVE_CASES`, `MANGROVE_TIMES`).
#[test]
fn everything_at_once_stays_consistent() {
    let _turn = alone();
    let (writer_count, transaction_count) = (2, case_count(10_000));
    let graph =
        Graph::with_options(&StoreOptions { tablet_count: 4, sizes: small_sizes(0), ..StoreOptions::default() });
    let ids = fill(&graph, 300, 0);
    let writing = AtomicUsize::new(writer_count);
    std::thread::scope(|scope| {
        for seed in 0..writer_count as u64 {
            let (graph, ids, writing) = (&graph, &ids, &writing);
            scope.spawn(move || {
                let _done = Done(writing);
                let mut rng = SmallRng::seed_from_u64(seed);
                (0..transaction_count).for_each(|_| churn(graph, ids, &mut rng));
            });
        }
        let (graph, writing) = (&graph, &writing);
        scope.spawn(move || {
            while writing.load(Ordering::Relaxed) > 0 {
                graph.manager.collect_garbage();
                graph.manager.compact();
            }
        });
        while writing.load(Ordering::Relaxed) > 0 {
            let old = graph.begin();
            let first = (edges(&old), vertices(&old).len());
            check_consistent(&old);
            let again = (edges(&old), vertices(&old).len());
            assert_eq!(first, again, "a snapshot does not change");
            for &(_, source, _) in first.0.iter().step_by(17) {
                if let [Value::String(name)] = values(&old, source, graph.name).as_slice() {
                    assert!(name.starts_with("the name of number "), "{name}");
                }
            }
        }
    });
    let txn = graph.begin();
    check_consistent(&txn);
    vertices(&txn).into_iter().for_each(|id| txn.delete_vertex(id).unwrap());
    txn.commit().unwrap();
    graph.manager.compact();
    let store = graph.manager.store();
    check_memory(store);
    assert!(store.memory().rows.iter().all(|row| row.live == 0), "{:?}", store.memory());
    assert_eq!(store.free_slots(), store.reserved_slots(), "{:?}", store.garbage());
}

/// Counts a writer down, however it ends.
struct Done<'a>(&'a AtomicUsize);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// One random transaction, which may end in a conflict.
fn churn(graph: &Graph, ids: &[VertexId], rng: &mut SmallRng) {
    let txn = graph.begin();
    let outcome = (0..rng.random_range(1..6)).try_for_each(|_| {
        let (a, b) = (ids[rng.random_range(0..ids.len())], ids[rng.random_range(0..ids.len())]);
        match rng.random_range(0..8) {
            0..3 => txn.insert_edge(a, b, graph.knows, None).map(drop),
            3 => {
                let near = expand(&txn, &[a], Direction::Out, 3);
                near.first().map_or(Ok(()), |&(.., edge)| txn.delete_edge(edge))
            }
            4 => graph.set(&txn, a, rng.random_range(0..1_000)),
            5 => {
                let name = Value::from(format!("the name of number {}", rng.random_range(0..1_000)));
                txn.set_vertex_property(a, graph.name, name, WriteCardinality::Single, vec![])
            }
            6 => {
                let new = txn.insert_vertex(graph.person, None)?;
                txn.finish_statement()?;
                txn.insert_edge(new, a, graph.knows, None).map(drop)
            }
            _ => {
                let near = expand(&txn, &[a], Direction::In, 3);
                // Only vertices that this test adds: the others are in `ids`.
                match near.iter().find(|(_, v, _)| !ids.contains(v)) {
                    Some(&(_, v, _)) => txn.delete_vertex(v),
                    None => Ok(()),
                }
            }
        }?;
        txn.finish_statement()
    });
    match outcome {
        Ok(()) if rng.random_bool(0.8) => match txn.commit() {
            Ok(_) => {}
            Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
        },
        Ok(()) => txn.rollback(),
        Err(error) => assert!(matches!(error.kind(), ErrorKind::Conflict | ErrorKind::NotFound), "{error}"),
    }
}
