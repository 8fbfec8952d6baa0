//! Commits of many thousand writes beside others: readers see them whole or not at all, also while they are finalized.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_graph::{Direction, ErrorKind, GraphView, ValueRows, VertexId};
use mangrove_txn::Transaction;

use crate::common::{Graph, check_consistent, check_memory, expand};

/// More writes than those from which on `commit` treats a commit as large.
const LARGE: usize = 6_000;

/// The value of all balances, and the number of edges from the hub, as of one moment.
fn look(graph: &Graph, txn: &Transaction, ids: &[VertexId], hub: VertexId) -> (i64, usize) {
    let mut rows = ValueRows::default();
    txn.vertex_values(ids, graph.balance, &mut rows).unwrap();
    assert_eq!(rows.value.len(), ids.len());
    assert!(rows.value.windows(2).all(|pair| pair[0] == pair[1]), "a part of a commit was seen");
    let mangrove_graph::Value::I64(balance) = rows.value[0] else { panic!("a long, not {:?}", rows.value[0]) };
    (balance, expand(txn, &[hub], Direction::Out, LARGE).len())
}

/// Sets all balances to n; adds the edges if n is odd, and deletes them if it is even.
fn change_all(graph: &Graph, ids: &[VertexId], hub: VertexId, n: i64) -> mangrove_graph::Result<()> {
    let txn = graph.begin();
    ids.iter().try_for_each(|&id| graph.set(&txn, id, n))?;
    if n % 2 == 1 {
        let ends: Vec<_> = ids.iter().map(|&id| (hub, id)).collect();
        txn.insert_edges(&ends, graph.knows)?;
    } else {
        expand(&txn, &[hub], Direction::Out, LARGE).into_iter().try_for_each(|(.., edge)| txn.delete_edge(edge))?;
    }
    txn.commit().map(drop)
}

#[test]
fn others_see_large_commits_whole_and_go_on_beside_them() {
    let graph = Graph::new();
    let ids = graph.persons(LARGE);
    let [hub, own] = graph.persons(2)[..] else { unreachable!() };
    let (stop, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let (graph, ids, stop, looks) = (&graph, &ids, &stop, &looks);
        scope.spawn(move || {
            for n in 1..=12 {
                // The third thread may hold a claim of the first balance just now.
                while let Err(error) = change_all(graph, ids, hub, n) {
                    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
                }
                // Acknowledged: all claims are finalized, and no writer conflicts.
                let next = graph.begin();
                assert_eq!(look(graph, &next, ids, hub).0, n);
                graph.set(&next, ids[1], n).unwrap();
                next.commit().unwrap();
            }
            stop.store(true, Ordering::Relaxed);
        });
        scope.spawn(move || {
            let mut last = 0;
            while !stop.load(Ordering::Relaxed) {
                let txn = graph.begin();
                let first = look(graph, &txn, ids, hub);
                assert_eq!(first.1, if first.0 % 2 == 1 { LARGE } else { 0 }, "balances and edges are of one commit");
                assert_eq!(look(graph, &txn, ids, hub), first, "a snapshot does not change");
                assert!(first.0 >= last, "time does not go back");
                last = first.0;
                looks.fetch_add(1, Ordering::Relaxed);
            }
        });
        scope.spawn(move || {
            for n in 1.. {
                if stop.load(Ordering::Relaxed) {
                    break;
                }
                // An element that no other transaction writes never conflicts, whatever is being finalized.
                let txn = graph.begin();
                graph.set(&txn, own, n).unwrap();
                txn.commit().unwrap();
                assert_eq!(graph.get(&graph.begin(), own), Some(n));
                // An element that the large transaction writes may conflict.
                let txn = graph.begin();
                let balance = graph.get(&txn, ids[0]).unwrap();
                match graph.set(&txn, ids[0], balance) {
                    Ok(()) => txn.rollback(),
                    Err(error) => assert_eq!(error.kind(), ErrorKind::Conflict, "{error}"),
                }
                if n % 64 == 0 {
                    graph.manager.collect_garbage();
                }
            }
        });
    });
    assert!(looks.into_inner() > 0);
    graph.manager.compact();
    let now = graph.begin();
    check_consistent(&now);
    assert_eq!(look(&graph, &now, &ids, hub), (12, 0));
    let store = graph.manager.store();
    check_memory(store);
}
