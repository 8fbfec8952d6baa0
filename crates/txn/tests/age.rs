//! The limit on the age of snapshots: an older transaction is refused with that reason, never reads anything wrong, and
//! holds nothing back.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mangrove_graph::{
    AdjacencyRequest, Direction, Error, ErrorKind, GraphView, LabelFilter, Remedy, ScanCursor, Share, Value, ValueRows,
    VertexId,
};
use mangrove_txn::{AbortCause, Transaction};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::common::{Graph, check_consistent, check_memory};

fn limit(graph: &Graph, ms: u64) {
    graph.manager.settings().max_snapshot_age_ms.store(ms, Ordering::Relaxed);
}

/// Lets all running snapshots pass the limit, and collects.
fn expire_all(graph: &Graph) {
    limit(graph, 1);
    std::thread::sleep(Duration::from_millis(5));
    graph.manager.compact();
    limit(graph, 0);
}

fn update(graph: &Graph, ids: &[VertexId], balance: i64) {
    let txn = graph.begin();
    ids.iter().for_each(|&id| graph.set(&txn, id, balance).unwrap());
    txn.commit().unwrap();
}

fn walk(txn: &Transaction) -> mangrove_graph::Result<usize> {
    let request = AdjacencyRequest {
        edges: true,
        direction: Direction::Out,
        vertices: LabelFilter::Any,
        labels: LabelFilter::Any,
        share: Share::ALL,
        pages: ScanCursor::default(),
    };
    let mut count = 0;
    txn.for_each_adjacency(&request, &mut |runs| {
        count += runs.iter().map(|(_, _, edges)| edges.len()).sum::<usize>();
        Ok(())
    })?;
    Ok(count)
}

#[test]
fn an_expired_reader_is_told_so_and_holds_nothing_back() {
    let graph = Graph::new();
    let ids = graph.persons(10);
    let old = graph.manager.begin_read().unwrap();
    (1..=3).for_each(|n| update(&graph, &ids, n));
    graph.manager.collect_garbage();
    assert_eq!(graph.manager.garbage().versions, 0, "versions are kept for the reader");
    assert_eq!(graph.get(&old, ids[0]), Some(0));
    std::thread::sleep(Duration::from_millis(3));
    assert!(graph.manager.oldest_snapshot_age_ms() >= 2);
    expire_all(&graph);
    assert!(graph.manager.garbage().versions >= 30, "{:?}", graph.manager.garbage());
    assert_eq!(graph.manager.oldest_snapshot(), graph.manager.watermark());
    assert_eq!(graph.manager.oldest_snapshot_age_ms(), 0);
    for _ in 0..2 {
        let error = old.count_vertices(&LabelFilter::Any, Share::ALL).unwrap_err();
        assert_eq!((error.kind(), error.remedy()), (ErrorKind::Expired, Remedy::RetryLater));
        assert!(error.message().contains("max_snapshot_age_ms"), "{error}");
    }
    assert_eq!(walk(&old).unwrap_err().kind(), ErrorKind::Expired);
    assert_eq!(old.commit().unwrap_err().kind(), ErrorKind::Expired);
    assert_eq!(graph.manager.counters().aborted(AbortCause::Expired), 1);
    let young = graph.begin();
    assert_eq!(graph.get(&young, ids[0]), Some(3));
}

#[test]
fn an_expired_walk_without_anything_to_show_is_no_answer() {
    let graph = Graph::new();
    let ids = graph.persons(4);
    let txn = graph.begin();
    txn.insert_edge(ids[0], ids[1], graph.knows, None).unwrap();
    txn.commit().unwrap();
    let old = graph.begin();
    assert_eq!(walk(&old).unwrap(), 1);
    let txn = graph.begin();
    ids.iter().for_each(|&id| txn.delete_vertex(id).unwrap());
    txn.commit().unwrap();
    expire_all(&graph);
    assert_eq!(graph.manager.garbage().vertices, 4);
    assert_eq!(walk(&old).unwrap_err().kind(), ErrorKind::Expired);
}

#[test]
fn an_expired_writer_keeps_its_claims_until_it_notices() {
    for serializable in [false, true] {
        let graph = Graph::new();
        let ids = graph.persons(3);
        let old = if serializable { graph.serializable() } else { graph.begin() };
        graph.set(&old, ids[0], 7).unwrap();
        let created = graph.add(&old, 8);
        old.finish_statement().unwrap();
        update(&graph, &ids[1..], 1);
        expire_all(&graph);
        let other = graph.begin();
        assert_eq!(graph.set(&other, ids[0], 9).unwrap_err().kind(), ErrorKind::Conflict, "the claim stands");
        assert_eq!(graph.set(&old, ids[1], 9).unwrap_err().kind(), ErrorKind::Expired);
        // The earlier call rolled it back, not its end.
        let other = graph.begin();
        assert_eq!((graph.get(&other, ids[0]), graph.get(&other, created)), (Some(0), None));
        graph.set(&other, ids[0], 9).unwrap();
        other.commit().unwrap();
        for result in [old.finish_statement(), old.commit().map(|_| ())] {
            assert_eq!(result.unwrap_err().kind(), ErrorKind::Expired);
        }
        assert_eq!(graph.manager.counters().aborted(AbortCause::Expired), 1);
        graph.manager.compact();
        let store = graph.manager.store();
        check_memory(store);
        let now = graph.begin();
        check_consistent(&now);
        assert_eq!(graph.get(&now, ids[0]), Some(9));
    }
}

#[test]
fn an_expired_transaction_neither_commits_nor_ends_a_statement() {
    let graph = Graph::new();
    let ids = graph.persons(1);
    let (one, two, dropped) = (graph.serializable(), graph.begin(), graph.begin());
    graph.set(&one, ids[0], 5).unwrap();
    graph.add(&dropped, 5);
    expire_all(&graph);
    assert_eq!(one.commit().unwrap_err().kind(), ErrorKind::Expired);
    assert_eq!(two.finish_statement().unwrap_err().kind(), ErrorKind::Expired);
    drop(dropped);
    let now = graph.begin();
    assert_eq!((graph.get(&now, ids[0]), crate::common::vertices(&now).len()), (Some(0), 1));
}

#[test]
fn who_has_entered_validation_does_not_expire() {
    let graph = Graph::new();
    let ids = graph.persons(1);
    let txn = graph.serializable();
    graph.set(&txn, ids[0], 5).unwrap();
    let validating = txn.enter_validation().unwrap();
    expire_all(&graph);
    validating.finish().unwrap();
    assert_eq!(graph.get(&graph.begin(), ids[0]), Some(5));
}

/// Accounts whose sum never changes, an edge from each to the next, and readers that read for longer than the limit.
/// Readers may be refused at any moment, but never see another sum or a dangling edge.
#[test]
fn readers_race_with_their_expiry_and_are_never_wrong() {
    const ACCOUNTS: usize = 40;
    let graph = Graph::new();
    let ids = graph.persons(ACCOUNTS);
    limit(&graph, 1);
    let (stop, refused, answered) = (AtomicBool::new(false), AtomicU64::new(0), AtomicU64::new(0));
    let refusal = |error: Error| assert_eq!(error.kind(), ErrorKind::Expired, "{error}");
    let refusal_or_conflict =
        |error: Error| assert!(matches!(error.kind(), ErrorKind::Expired | ErrorKind::Conflict), "{error}");
    let check = |seen: (usize, i64, usize)| assert_eq!((seen.0, seen.1, seen.2 % 2), (ACCOUNTS, 0, 0));
    std::thread::scope(|scope| {
        for seed in 0..3 {
            let (graph, ids, stop, refused, answered) = (&graph, &ids, &stop, &refused, &answered);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if seed == 0 {
                        // The reads of a serializable reader are certain after its commit.
                        let txn = graph.serializable();
                        let seen = look(&txn, ids).and_then(|seen| txn.commit().map(|_| seen));
                        seen.map_or_else(refusal_or_conflict, check);
                        continue;
                    }
                    let txn = graph.begin();
                    while !stop.load(Ordering::Relaxed) {
                        let Ok(seen) = look(&txn, ids).map_err(refusal) else {
                            refused.fetch_add(1, Ordering::Relaxed);
                            break;
                        };
                        check(seen);
                        answered.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        let (graph, ids, stop) = (&graph, &ids, &stop);
        scope.spawn(move || {
            let mut random = SmallRng::seed_from_u64(7);
            for _ in 0..5_000 {
                let txn = graph.begin();
                let (from, to) = (random.random_range(0..ACCOUNTS), random.random_range(0..ACCOUNTS));
                let done = transfer(graph, &txn, ids[from], ids[to]).and_then(|()| txn.commit());
                let _ = done.map_err(refusal);
                graph.manager.compact();
            }
            stop.store(true, Ordering::Relaxed);
        });
    });
    limit(&graph, 0);
    assert!(refused.into_inner() > 0 && answered.into_inner() > 0);
    check_consistent(&graph.begin());
}

/// The number of balances, their sum, and the number of edges.
fn look(txn: &Transaction, ids: &[VertexId]) -> mangrove_graph::Result<(usize, i64, usize)> {
    let mut rows = ValueRows::default();
    txn.vertex_values(ids, txn.catalog().intern_key("balance"), &mut rows)?;
    let sum = rows.value.iter().map(|v| if let Value::I64(n) = v { *n } else { 0 }).sum();
    Ok((rows.value.len(), sum, walk(txn)?))
}

/// Moves 1 from one balance to another, and adds or removes two edges.
fn transfer(graph: &Graph, txn: &Transaction, from: VertexId, to: VertexId) -> mangrove_graph::Result<()> {
    let (mut edges, mut rows) = (Vec::new(), ValueRows::default());
    while !txn.scan_edges(&LabelFilter::Any, Share::ALL, &mut ScanCursor::default(), 100, &mut edges)? {}
    match edges.as_slice() {
        [one, two, ..] if edges.len() > 8 => {
            txn.delete_edge(*one)?;
            txn.delete_edge(*two)?;
        }
        _ => drop(txn.insert_edges(&[(from, to), (to, from)], graph.knows)?),
    }
    txn.vertex_values(&[from, to], graph.balance, &mut rows)?;
    let [Value::I64(of_from), Value::I64(of_to)] = rows.value[..] else { panic!("two balances, not {rows:?}") };
    if from != to {
        graph.set(txn, from, of_from - 1)?;
        graph.set(txn, to, of_to + 1)?;
    }
    Ok(())
}
