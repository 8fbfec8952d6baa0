//! Steps of a query that reads much and sends nothing.

use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_graph::{ErrorKind, UserId};

use super::*;
use crate::options::Materialize;
use crate::query::execution::TurnOutcome;

/// The edges of the vertex that is walked, and of the one that is searched. The list of the latter is too long to be
/// read instead.
const NEAR: usize = 300_000;
const FAR: usize = 700_000;

/// Two hubs with other neighbors.
fn hubs() -> Database {
    let database = Database::in_memory();
    let transaction = database.begin().unwrap();
    let [hub, edge] = ["hub", "e"].map(|name| database.catalog().intern_label_text(name));
    let ids: Vec<UserId> = (0..1_002_i64).map(UserId::from).collect();
    let vertices = transaction.insert_vertices(hub, &ids).unwrap();
    let (near, far, leaves) = (vertices[0], vertices[1], &vertices[2..]);
    let from_near: Vec<_> = (0..NEAR).map(|n| (near, leaves[n % 1_000])).collect();
    let into_far: Vec<_> = (0..FAR).map(|n| (leaves[n % 1_000], far)).collect();
    transaction.insert_edges(edge, &from_near).unwrap();
    transaction.insert_edges(edge, &into_far).unwrap();
    transaction.commit().unwrap();
    database
}

/// Runs a query on one thread, a message at a time, and cancels it after so many. Returns the messages until its end, and its error.
fn messages(transaction: &Transaction, script: &str, cancel_after: usize) -> (usize, Option<ErrorKind>) {
    let prepared = transaction.database.prepare(script).unwrap();
    let (parameters, cancel) = (Parameters::new(), Arc::new(AtomicBool::new(false)));
    let options = QueryOptions { cancel: cancel.clone(), workers_max: 1, ..QueryOptions::default() };
    let mut execution = transaction.execution(&prepared, &parameters, &options, false).unwrap();
    for messages in 1.. {
        match execution.turn(1, Materialize::default()) {
            Ok(TurnOutcome::Complete) => return (messages, None),
            Ok(TurnOutcome::Results(results)) => panic!("unexpected {results:?}"),
            Ok(_) => {}
            Err(error) => return (messages, Some(error.kind())),
        }
        cancel.store(messages >= cancel_after, Ordering::Relaxed);
    }
    unreachable!("a query ends")
}

/// A call does a bounded part of the work (FLOW-2), also if it sends nothing. So a query is cancelled before its next
/// part.
#[test]
fn a_search_that_finds_nothing_is_done_in_parts() {
    let database = hubs();
    let transaction = database.begin_read().unwrap();
    for script in ["g.V(1).as('a').V(0).out('e').where(eq('a'))", "g.V(1).as('a').V(0).where(out('e').where(eq('a')))"]
    {
        // The other hub has no such edges.
        let (light, none) = messages(&transaction, &script.replace("V(0)", "V(1)"), usize::MAX);
        assert_eq!(none, None);
        let (all, none) = messages(&transaction, script, usize::MAX);
        assert_eq!(none, None);
        // A part is 32 messages' worth of edges.
        assert_eq!(all - light, NEAR.div_ceil(32 * 1_024) - 1, "{script}: {all} and {light} messages");
        assert_eq!(messages(&transaction, script, light), (light + 1, Some(ErrorKind::Cancelled)), "{script}");
    }
}
