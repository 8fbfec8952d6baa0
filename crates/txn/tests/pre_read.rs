//! Optimistic pre-read and optimistic validation, by scripted interleavings: a transaction is stopped between the entry
//! into its validation and its end, where others meet it.

use std::sync::atomic::Ordering;

use mangrove_graph::{
    Direction, ErrorKind, ExpandCursor, ExpandRequest, Expansion, GraphView, LabelFilter, Value, ValueRows, VertexId,
};
use mangrove_txn::{AbortCause, Transaction, Validating};

use crate::common::{Graph, expand, find};

fn setter(graph: &Graph, v: VertexId, balance: i64) -> Transaction {
    let txn = graph.serializable();
    graph.set(&txn, v, balance).unwrap();
    txn
}

fn validating(graph: &Graph, v: VertexId, balance: i64) -> Validating {
    setter(graph, v, balance).enter_validation().unwrap()
}

/// Reads `x`, then writes an object of its own: a transaction whose reads must be validated.
fn reader(graph: &Graph, x: VertexId, own: VertexId, expected: i64) -> Transaction {
    let txn = graph.serializable();
    graph.set(&txn, own, 9).unwrap();
    // After the write, which would wait for the transactions that the read depends on.
    assert_eq!(graph.get(&txn, x), Some(expected));
    txn
}

fn aborts(graph: &Graph, cause: AbortCause) -> u64 {
    graph.manager.counters().aborted(cause)
}

#[test]
fn a_running_writers_version_is_not_read() {
    let graph = Graph::new();
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let writer = setter(&graph, x, 1);
    let reader = reader(&graph, x, own, 0);
    // The reader commits first, so it comes before the writer.
    reader.commit().unwrap();
    writer.commit().unwrap();
    assert_eq!(graph.manager.counters().pre_reads, 0);
}

#[test]
fn a_reader_of_a_running_writers_old_version_fails_behind_it() {
    let graph = Graph::new();
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let writer = setter(&graph, x, 1);
    let reader = reader(&graph, x, own, 0);
    writer.commit().unwrap();
    assert_eq!(reader.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(aborts(&graph, AbortCause::ReadConflict), 1);
}

#[test]
fn a_validating_writers_version_is_read_and_its_commit_awaited() {
    let graph = Graph::new();
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let writer = validating(&graph, x, 1);
    let reader = reader(&graph, x, own, 1);
    assert_eq!(graph.manager.counters().pre_reads, 1);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| reader.commit());
        while graph.manager.counters().dependency_waits == 0 {
            std::thread::yield_now();
        }
        let first = writer.finish().unwrap().timestamp;
        assert!(reader.join().unwrap().unwrap().timestamp > first);
    });
}

#[test]
fn who_relied_on_an_aborted_writer_fails() {
    let graph = Graph::new();
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let writer = validating(&graph, x, 1);
    let reader = reader(&graph, x, own, 1);
    drop(writer);
    assert_eq!(reader.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(aborts(&graph, AbortCause::Dependency), 1);
    assert_eq!(graph.get(&graph.begin(), x), Some(0));
}

#[test]
fn a_version_committed_after_the_begin_is_read() {
    let graph = Graph::new();
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let txn = graph.serializable();
    setter(&graph, x, 1).commit().unwrap();
    assert_eq!(graph.get(&txn, x), Some(1));
    graph.set(&txn, own, 1).unwrap();
    txn.commit().unwrap();
}

#[test]
fn an_aborted_writers_version_is_not_read() {
    let graph = Graph::new();
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    drop(validating(&graph, x, 1));
    reader(&graph, x, own, 0).commit().unwrap();
    assert_eq!(graph.manager.counters().pre_reads, 0);
}

#[test]
fn a_pre_read_reader_without_writes_waits_too() {
    let graph = Graph::new();
    let x = graph.persons(1)[0];
    for is_committed in [true, false] {
        let before = graph.get(&graph.begin(), x).unwrap();
        let writer = validating(&graph, x, before + 1);
        let reader = graph.serializable();
        assert_eq!(graph.get(&reader, x), Some(before + 1));
        if is_committed {
            writer.finish().unwrap();
        } else {
            drop(writer);
        }
        assert_eq!(reader.commit().is_ok(), is_committed);
    }
}

#[test]
fn one_that_read_old_and_new_of_one_writer_fails() {
    let graph = Graph::new();
    let [x, y] = graph.persons(2)[..] else { unreachable!() };
    let fractured = graph.serializable();
    assert_eq!(graph.get(&fractured, x), Some(0));
    let writer = setter(&graph, x, 1);
    graph.set(&writer, y, 1).unwrap();
    let writer = writer.enter_validation().unwrap();
    assert_eq!((graph.get(&fractured, y), graph.get(&fractured, x)), (Some(1), Some(0)));
    writer.finish().unwrap();
    assert_eq!(fractured.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn what_was_pre_read_can_be_written() {
    // Two transactions add to a counter one after the other; the second begins before the end of the first.
    let graph = Graph::new();
    let x = graph.persons(1)[0];
    let second = graph.serializable();
    let first = validating(&graph, x, 1);
    assert_eq!(graph.get(&second, x), Some(1));
    first.finish().unwrap();
    graph.set(&second, x, 2).unwrap();
    second.finish_statement().unwrap();
    assert_eq!(graph.get(&second, x), Some(2));
    second.commit().unwrap();
    assert_eq!(graph.get(&graph.begin(), x), Some(2));
}

#[test]
fn what_was_pre_read_and_changed_since_can_not() {
    let graph = Graph::new();
    let x = graph.persons(1)[0];
    let second = graph.serializable();
    setter(&graph, x, 1).commit().unwrap();
    assert_eq!(graph.get(&second, x), Some(1));
    setter(&graph, x, 5).commit().unwrap();
    assert_eq!(graph.set(&second, x, 2).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn a_write_after_relying_on_an_aborted_writer_fails_at_once() {
    let graph = Graph::new();
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let txn = graph.serializable();
    let writer = validating(&graph, x, 1);
    assert_eq!(graph.get(&txn, x), Some(1));
    drop(writer);
    assert_eq!(graph.set(&txn, own, 2).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(aborts(&graph, AbortCause::Dependency), 1);
}

#[test]
fn edges_to_what_was_pre_read() {
    // A vertex found by its id, and one found in a list; neither existed at the begin.
    let graph = Graph::new();
    let a = graph.persons(1)[0];
    let txn = graph.serializable();
    let writer = graph.serializable();
    let found = writer.insert_vertex(graph.person, Some((-5).into())).unwrap();
    let met = writer.insert_vertex(graph.person, None).unwrap();
    writer.insert_edge(a, met, graph.knows, None).unwrap();
    let writer = writer.enter_validation().unwrap();
    assert_eq!(find(&txn, -5), Some(found));
    let list = expand(&txn, &[a], Direction::Out, 10);
    assert_eq!(list.iter().map(|(_, v, _)| *v).collect::<Vec<_>>(), [met]);
    writer.finish().unwrap();
    txn.insert_edge(found, met, graph.knows, None).unwrap();
    graph.set(&txn, met, 3).unwrap();
    txn.finish_statement().unwrap();
    assert_eq!(graph.get(&txn, met), Some(3));
    txn.commit().unwrap();
    assert_eq!(expand(&graph.begin(), &[found], Direction::Out, 10).len(), 1);
}

#[test]
fn an_id_that_was_freed_can_be_taken() {
    let graph = Graph::new();
    let setup = graph.begin();
    let old = setup.insert_vertex(graph.person, Some((-5).into())).unwrap();
    setup.commit().unwrap();
    let taker = graph.serializable();
    let deleter = graph.serializable();
    deleter.delete_vertex(old).unwrap();
    let deleter = deleter.enter_validation().unwrap();
    assert_eq!(find(&taker, -5), None);
    deleter.finish().unwrap();
    let new = taker.insert_vertex(graph.person, Some((-5).into())).unwrap();
    taker.commit().unwrap();
    assert_eq!(find(&graph.begin(), -5), Some(new));
}

#[test]
fn a_conflict_with_a_validator_depends_on_its_end() {
    for is_committed in [true, false] {
        let graph = Graph::new();
        let [x, own] = graph.persons(2)[..] else { unreachable!() };
        let reader = reader(&graph, x, own, 0);
        let writer = validating(&graph, x, 1);
        let reader = reader.enter_validation().unwrap();
        if is_committed {
            writer.finish().unwrap();
        } else {
            drop(writer);
        }
        assert_eq!(reader.finish().is_ok(), !is_committed);
        assert_eq!(
            aborts(&graph, AbortCause::ReadConflict) + aborts(&graph, AbortCause::Dependency),
            u64::from(is_committed)
        );
    }
}

#[test]
fn without_optimistic_validation_a_conflict_with_a_validator_is_final() {
    let graph = Graph::new();
    graph.manager.settings().optimistic_validation.store(false, Ordering::Relaxed);
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let reader = reader(&graph, x, own, 0);
    let writer = validating(&graph, x, 1);
    assert_eq!(reader.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!((aborts(&graph, AbortCause::ReadConflict), graph.manager.counters().dependency_waits), (1, 0));
    drop(writer);
}

#[test]
fn without_pre_read_the_begin_is_read() {
    let graph = Graph::new();
    graph.manager.settings().optimistic_pre_read.store(false, Ordering::Relaxed);
    let [x, own] = graph.persons(2)[..] else { unreachable!() };
    let txn = graph.serializable();
    setter(&graph, x, 1).commit().unwrap();
    assert_eq!(graph.get(&txn, x), Some(0));
    graph.set(&txn, own, 1).unwrap();
    assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn deletions_are_pre_read() {
    let graph = Graph::new();
    let [a, b, own] = graph.persons(3)[..] else { unreachable!() };
    let setup = graph.begin();
    setup.insert_edge(a, b, graph.knows, None).unwrap();
    setup.commit().unwrap();
    let txn = graph.serializable();
    let deleter = graph.serializable();
    deleter.delete_vertex(b).unwrap();
    let deleter = deleter.enter_validation().unwrap();
    assert!(expand(&txn, &[a], Direction::Both, 10).is_empty());
    assert_eq!(graph.get(&txn, b), None);
    // A write waits for the transactions that its own depends on, so they end first.
    deleter.finish().unwrap();
    graph.set(&txn, own, 1).unwrap();
    txn.commit().unwrap();
}

/// A hundred vertices, one of them with a version in validation, read in one batch by a transaction that writes.
/// Returns the number of items that were pre-read for that. `before` is read first, by itself.
fn long_batch(graph: &Graph, before: Option<usize>) -> (Vec<VertexId>, Transaction, u64) {
    let persons = graph.persons(101);
    let (own, read) = persons.split_first().unwrap();
    let reader = graph.serializable();
    if let Some(row) = before {
        assert_eq!(graph.get(&reader, read[row]), Some(0));
    }
    let writer = validating(graph, read[50], 1);
    graph.set(&reader, *own, 9).unwrap();
    let mut values = ValueRows::default();
    reader.vertex_values(read, graph.balance, &mut values).unwrap();
    assert!(values.row.iter().copied().eq(0..100), "{:?}", values.row);
    let expected = (0..100).map(|row| Value::I64(i64::from(row == 50)));
    assert!(values.value.iter().cloned().eq(expected), "{:?}", values.value);
    writer.finish().unwrap();
    (read.to_vec(), reader, graph.manager.counters().pre_reads)
}

#[test]
fn a_batch_with_a_newer_version_is_read_again_as_a_whole() {
    let graph = Graph::new();
    let (read, reader, pre_reads) = long_batch(&graph, None);
    // The element's existence and its cell, or the cell alone.
    assert!((100..=200).contains(&pre_reads), "{pre_reads}");
    // Each as of that moment, and again.
    assert_eq!([0, 50, 99].map(|row| graph.get(&reader, read[row])), [0, 1, 0].map(Some));
    reader.commit().unwrap();
}

#[test]
fn a_batch_that_meets_what_was_read_before_is_read_again_in_portions() {
    let graph = Graph::new();
    let (_, reader, pre_reads) = long_batch(&graph, Some(3));
    assert!((1..=64).contains(&pre_reads), "{pre_reads}");
    reader.commit().unwrap();
    // In the batch with the newer version the rows are read one by one.
    let (_, reader, more) = long_batch(&graph, Some(51));
    assert!((1..=2).contains(&(more - pre_reads)), "{more} after {pre_reads}");
    reader.commit().unwrap();
}

#[test]
fn what_was_pre_read_in_a_batch_and_changed_since_is_a_conflict() {
    for row in [7, 50] {
        let graph = Graph::new();
        let (read, reader, _) = long_batch(&graph, None);
        let writer = graph.begin();
        graph.set(&writer, read[row], 5).unwrap();
        writer.commit().unwrap();
        let error = reader.commit().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    }
}

/// Vertices with an edge each. Another transaction adds a second edge to some of them while a reader is under way.
struct Fans {
    graph: Graph,
    hubs: Vec<VertexId>,
    leaf: VertexId,
}

impl Fans {
    fn new(count: usize) -> Self {
        let graph = Graph::new();
        let mut hubs = graph.persons(count + 1);
        let leaf = hubs.pop().expect("one more than hubs");
        let txn = graph.begin();
        for hub in &hubs {
            txn.insert_edge(*hub, leaf, graph.knows, None).unwrap();
        }
        txn.commit().unwrap();
        Fans { graph, hubs, leaf }
    }

    fn add(&self, hub: usize) -> Transaction {
        let txn = self.graph.serializable();
        txn.insert_edge(self.hubs[hub], self.leaf, self.graph.knows, None).unwrap();
        txn
    }

    /// The number of edges that a transaction finds at each hub, in calls of this size.
    fn degrees(&self, txn: &Transaction, hubs: std::ops::Range<usize>, limit: usize) -> Vec<usize> {
        let mut degrees = vec![0; hubs.len()];
        for (row, ..) in expand(txn, &self.hubs[hubs], Direction::Out, limit) {
            degrees[row as usize] += 1;
        }
        degrees
    }
}

#[test]
fn lists_of_many_vertices_are_pre_read_together() {
    for limit in [1, 2, 7, 64, 1_000] {
        let fans = Fans::new(200);
        let txn = fans.graph.serializable();
        fans.graph.set(&txn, fans.leaf, 1).unwrap();
        for hub in [3, 4, 70, 199] {
            fans.add(hub).commit().unwrap();
        }
        let running = fans.add(5);
        let expected: Vec<usize> = (0..200).map(|hub| 1 + usize::from([3, 4, 70, 199].contains(&hub))).collect();
        let found = fans.degrees(&txn, 0..200, limit);
        // A call that stops in a list before it meets the newer edge has read the list as of the begin, and keeps to
        // that.
        assert!(limit < 64 || found == expected, "limit {limit}");
        // Again in other batches: the same result.
        assert_eq!(fans.degrees(&txn, 0..200, 1_000), found, "limit {limit}");
        assert_eq!(fans.degrees(&txn, 3..5, limit), found[3..5], "limit {limit}");
        running.rollback();
        assert_eq!(txn.commit().is_ok(), found == expected, "limit {limit}");
    }
}

#[test]
fn lists_that_grow_after_they_were_pre_read_are_a_conflict() {
    for (grown, limit) in [(3, 1), (3, 1_000), (150, 7), (0, 1_000)] {
        let fans = Fans::new(200);
        let txn = fans.graph.serializable();
        fans.graph.set(&txn, fans.leaf, 1).unwrap();
        fans.add(3).commit().unwrap();
        let before = fans.degrees(&txn, 0..200, limit);
        fans.add(grown).commit().unwrap();
        assert_eq!(fans.degrees(&txn, 0..200, limit), before, "reads are repeatable");
        assert_eq!(txn.commit().unwrap_err().kind(), ErrorKind::Conflict);
    }
}

#[test]
fn a_call_that_ends_before_a_row_has_not_read_it() {
    let fans = Fans::new(3);
    let txn = fans.graph.serializable();
    fans.graph.set(&txn, fans.leaf, 1).unwrap();
    fans.add(0).commit().unwrap();
    let request = ExpandRequest { direction: Direction::Out, labels: LabelFilter::Any, edges: true, limit: 2 };
    let (mut cursor, mut found) = (ExpandCursor::default(), Expansion::default());
    // The edges of the first row, and not yet those of the second, which then changes without a conflict.
    assert!(!txn.expand(&fans.hubs, &request, &mut cursor, &mut found).unwrap());
    assert_eq!(found.row, [0, 0]);
    fans.add(1).commit().unwrap();
    let request = ExpandRequest { limit: 1_000, ..request };
    assert!(txn.expand(&fans.hubs, &request, &mut cursor, &mut found).unwrap());
    assert_eq!(found.row, [0, 0, 1, 1, 2]);
    txn.commit().unwrap();
}
