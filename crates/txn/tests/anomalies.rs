//! The anomalies that snapshot isolation prevents, one a test (names as in the catalogs of Adya and of the LDBC ACID
//! suite), and the one that it allows.

use mangrove_graph::ErrorKind;

use crate::common::{Graph, edges, vertices};

#[test]
fn dirty_write_is_prevented() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    let (one, two) = (graph.begin(), graph.begin());
    graph.set(&one, v, 1).unwrap();
    assert_eq!(graph.set(&two, v, 2).unwrap_err().kind(), ErrorKind::Conflict);
    let again = graph.set(&two, v, 2).unwrap_err();
    assert!(again.kind() == ErrorKind::Conflict && again.message().contains("run it again"), "{again}");
    one.commit().unwrap();
    assert_eq!(two.commit().unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(graph.get(&graph.begin(), v), Some(1));
    assert_eq!(graph.manager.counters().conflicts(), 1);
}

#[test]
fn dirty_and_aborted_reads_are_prevented() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    let writer = graph.begin();
    graph.set(&writer, v, 2).unwrap();
    assert_eq!(graph.get(&graph.begin(), v), Some(0));
    writer.rollback();
    assert_eq!(graph.get(&graph.begin(), v), Some(0));
}

#[test]
fn intermediate_reads_are_prevented() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    let writer = graph.begin();
    graph.set(&writer, v, 50).unwrap();
    writer.finish_statement().unwrap();
    let reader = graph.begin();
    graph.set(&writer, v, 51).unwrap();
    writer.commit().unwrap();
    assert_eq!((graph.get(&reader, v), graph.get(&graph.begin(), v)), (Some(0), Some(51)));
}

#[test]
fn lost_update_is_prevented() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    let (one, two) = (graph.begin(), graph.begin());
    let (seen_by_one, seen_by_two) = (graph.get(&one, v).unwrap(), graph.get(&two, v).unwrap());
    graph.set(&one, v, seen_by_one + 1).unwrap();
    one.commit().unwrap();
    assert_eq!(graph.set(&two, v, seen_by_two + 1).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn read_skew_and_fractured_reads_are_prevented() {
    let graph = Graph::new();
    let [a, b] = graph.persons(2)[..] else { unreachable!() };
    let reader = graph.begin();
    assert_eq!(graph.get(&reader, a), Some(0));
    let writer = graph.begin();
    graph.set(&writer, a, 1).unwrap();
    graph.set(&writer, b, 1).unwrap();
    writer.commit().unwrap();
    assert_eq!((graph.get(&reader, b), graph.get(&reader, a)), (Some(0), Some(0)));
}

#[test]
fn phantoms_are_not_read() {
    let graph = Graph::new();
    let [a, b] = graph.persons(2)[..] else { unreachable!() };
    let reader = graph.begin();
    assert_eq!(vertices(&reader).len(), 2);
    let writer = graph.begin();
    graph.add(&writer, 0);
    writer.insert_edge(a, b, graph.knows, None).unwrap();
    writer.commit().unwrap();
    assert_eq!((vertices(&reader).len(), edges(&reader).len()), (2, 0));
}

#[test]
fn a_property_of_what_another_deletes_is_not_written() {
    let graph = Graph::new();
    for setter_first in [false, true] {
        let v = graph.persons(1)[0];
        let (setter, deleter) = (graph.begin(), graph.begin());
        if setter_first {
            graph.set(&setter, v, 1).unwrap();
            assert_eq!(deleter.delete_vertex(v).unwrap_err().kind(), ErrorKind::Conflict);
            setter.commit().unwrap();
        } else {
            deleter.delete_vertex(v).unwrap();
            assert_eq!(graph.set(&setter, v, 1).unwrap_err().kind(), ErrorKind::Conflict);
            deleter.commit().unwrap();
        }
    }
}

#[test]
fn write_skew_is_allowed() {
    // Snapshot isolation allows this: each transaction reads what the other writes, and both commit.
    let graph = Graph::new();
    let [a, b] = graph.persons(2)[..] else { unreachable!() };
    let (one, two) = (graph.begin(), graph.begin());
    graph.set(&one, a, 1 - graph.get(&one, b).unwrap()).unwrap();
    graph.set(&two, b, 1 - graph.get(&two, a).unwrap()).unwrap();
    one.commit().unwrap();
    two.commit().unwrap();
    let after = graph.begin();
    assert_eq!((graph.get(&after, a), graph.get(&after, b)), (Some(1), Some(1)));
}
