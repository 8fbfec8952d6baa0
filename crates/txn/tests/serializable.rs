//! The anomalies that serializable transactions prevent, one a test. Each runs with and without optimistic pre-read. If
//! snapshot isolation allows the anomaly, the test shows that, too.

use std::sync::atomic::Ordering;

use mangrove_graph::{
    Direction, ElementKind, Error, ErrorKind, GraphView, IndexRange, LabelFilter, Result, ScanCursor, Share, Value,
    VertexId,
};
use mangrove_txn::{AbortCause, CommitInfo, IndexOptions, RecentOptions, Transaction, WriteCardinality};

use crate::common::{Graph, expand, find, values, vertices};

/// Runs a scenario with the optimizations on and off.
fn with_and_without_pre_read(scenario: impl Fn(&Graph)) {
    for pre_read in [true, false] {
        let graph = Graph::new();
        graph.manager.settings().optimistic_pre_read.store(pre_read, Ordering::Relaxed);
        scenario(&graph);
    }
}

/// Two transactions read, then write, and commit one after the other. The second must fail if both are serializable,
/// and both succeed at snapshot isolation.
fn check_skew(setup: impl Fn(&Graph) -> Vec<VertexId>, step: impl Fn(&Graph, &Transaction, &[VertexId], usize)) {
    with_and_without_pre_read(|graph| {
        for is_serializable in [true, false] {
            let begin = || if is_serializable { graph.serializable() } else { graph.begin() };
            let ids = setup(graph);
            let both = [begin(), begin()];
            for (who, txn) in both.iter().enumerate() {
                step(graph, txn, &ids, who);
            }
            let outcomes = both.map(Transaction::commit);
            let expected = if is_serializable { [true, false] } else { [true, true] };
            assert_eq!([outcomes[0].is_ok(), outcomes[1].is_ok()], expected, "serializable: {is_serializable}");
            if is_serializable {
                check_conflict(outcomes.into_iter().last().unwrap());
            }
        }
        assert_eq!(graph.manager.counters().aborted(AbortCause::ReadConflict), 1);
    });
}

#[track_caller]
fn check_conflict(outcome: Result<CommitInfo>) {
    let error: Error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(error.message().contains("run "), "{error}");
}

fn named(graph: &Graph, txn: &Transaction, name: &str) -> VertexId {
    let id = graph.add(txn, 0);
    set_name(graph, txn, id, name);
    id
}

fn set_name(graph: &Graph, txn: &Transaction, id: VertexId, name: &str) {
    txn.set_vertex_property(id, graph.name, Value::from(name), WriteCardinality::Single, Vec::new()).unwrap();
}

fn with_name(graph: &Graph, txn: &Transaction, name: &str) -> usize {
    with_name_and_labels(graph, txn, name, &LabelFilter::Sets([graph.person].into()))
}

fn with_name_and_labels(graph: &Graph, txn: &Transaction, name: &str, labels: &LabelFilter) -> usize {
    let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
    let range = IndexRange::Equal(vec![Value::from(name)]);
    while !txn.scan_vertices_where(labels, graph.name, &range, Share::ALL, &mut cursor, 100, &mut out).unwrap() {}
    out.len()
}

#[test]
fn write_skew() {
    check_skew(
        |graph| graph.persons(2),
        |graph, txn, ids, who| {
            let seen = graph.get(txn, ids[1 - who]).unwrap();
            graph.set(txn, ids[who], 1 - seen).unwrap();
        },
    );
}

#[test]
fn phantom_in_a_scan() {
    check_skew(
        |graph| graph.persons(1),
        |graph, txn, _, _| {
            let count = vertices(txn).len();
            graph.add(txn, count as i64);
        },
    );
}

#[test]
fn phantom_in_a_count_of_one_label() {
    check_skew(
        |graph| graph.persons(1),
        |graph, txn, _, _| {
            let count = txn.count_vertices(&LabelFilter::Sets([graph.person].into()), Share::ALL).unwrap();
            graph.add(txn, count as i64);
        },
    );
}

#[test]
fn phantom_in_an_adjacency_list() {
    check_skew(
        |graph| graph.persons(3),
        |graph, txn, ids, who| {
            // Each adds an edge to the list that the other has read.
            assert!(expand(txn, &[ids[1 - who]], Direction::Out, 10).is_empty());
            txn.insert_edge(ids[who], ids[2], graph.knows, None).unwrap();
        },
    );
}

#[test]
fn phantom_in_degrees() {
    check_skew(
        |graph| graph.persons(3),
        |graph, txn, ids, who| {
            let mut degrees = Vec::new();
            txn.degrees(&[ids[1 - who]], Direction::Both, &LabelFilter::Any, &mut degrees).unwrap();
            assert_eq!(degrees, [0]);
            txn.insert_edge(ids[2], ids[who], graph.knows, None).unwrap();
        },
    );
}

#[test]
fn absent_ids_are_reads() {
    check_skew(
        |graph| graph.persons(1),
        |graph, txn, _, who| {
            let base = 1_000 * graph.manager.counters().commits as i64;
            let taken = (0..).find(|n| find(&graph.begin(), -base - n * 10 - 1).is_none()).unwrap();
            let id = |who: usize| -base - taken * 10 - 1 - who as i64;
            assert_eq!(find(txn, id(1 - who)), None);
            txn.insert_vertex(graph.person, Some(id(who).into())).unwrap();
        },
    );
}

#[test]
fn equality_predicates_without_an_index() {
    check_skew(
        |graph| graph.persons(2),
        |graph, txn, ids, who| {
            let name = |who: usize| format!("{:?}-{who}", ids[0]);
            assert_eq!(with_name(graph, txn, &name(1 - who)), 0);
            set_name(graph, txn, ids[who], &name(who));
        },
    );
}

#[test]
fn what_leaves_a_predicate_counts_too() {
    // The before-image of the write meets the predicate, the after-image does not.
    let graph = Graph::new();
    let setup = graph.begin();
    let (a, b) = (named(&graph, &setup, "x"), graph.add(&setup, 0));
    setup.commit().unwrap();
    let (reader, renamer) = (graph.serializable(), graph.serializable());
    assert_eq!(with_name(&graph, &reader, "x"), 1);
    graph.set(&reader, b, 1).unwrap();
    set_name(&graph, &renamer, a, "y");
    renamer.commit().unwrap();
    check_conflict(reader.commit());
}

#[test]
fn other_values_are_no_conflict_with_a_predicate() {
    let graph = Graph::new();
    let ids = graph.persons(3);
    let (reader, writer) = (graph.serializable(), graph.serializable());
    assert_eq!(with_name(&graph, &reader, "x"), 0);
    graph.set(&reader, ids[0], 1).unwrap();
    set_name(&graph, &writer, ids[1], "y");
    graph.set(&writer, ids[2], 1).unwrap();
    writer.commit().unwrap();
    reader.commit().unwrap();
}

#[test]
fn ranges_by_scan_and_by_index() {
    for is_indexed in [false, true] {
        let graph = Graph::new();
        let ids = graph.persons(3);
        let index = is_indexed.then(|| {
            let options = IndexOptions {
                element: ElementKind::Vertex,
                label: None,
                keys: vec![graph.balance],
                ordered: true,
                unique: false,
            };
            graph.manager.create_index(&options).unwrap()
        });
        let range = IndexRange::Between { low: Some((Value::I64(10), true)), high: Some((Value::I64(20), false)) };
        let look = |txn: &Transaction| {
            let mut out = Vec::new();
            match index {
                Some(index) => txn.index_vertices(index, &[], &range, Share::ALL, &mut out).unwrap(),
                None => {
                    let mut cursor = ScanCursor::default();
                    let any = LabelFilter::Any;
                    let key = graph.balance;
                    while !txn.scan_vertices_where(&any, key, &range, Share::ALL, &mut cursor, 9, &mut out).unwrap() {}
                }
            }
            out.len()
        };
        for (balance, is_conflict) in [(20, false), (15, true), (9, true), (8, false)] {
            let (reader, writer) = (graph.serializable(), graph.serializable());
            look(&reader);
            set_name(&graph, &reader, ids[0], "x");
            // 15 enters the range, 9 leaves it.
            graph.set(&writer, ids[1], balance).unwrap();
            writer.commit().unwrap();
            assert_eq!(reader.commit().is_err(), is_conflict, "{balance}, index: {is_indexed}");
        }
    }
}

#[test]
fn a_label_set_that_came_later_is_a_phantom_too() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    let reader = graph.serializable();
    let persons = reader.label_filter(&["person".into()]);
    assert_eq!(reader.count_vertices(&persons, Share::ALL).unwrap(), 1);
    graph.set(&reader, v, 1).unwrap();
    let writer = graph.serializable();
    let both = writer.catalog().intern_label_text("person::employee");
    writer.insert_vertex(both, None).unwrap();
    writer.commit().unwrap();
    check_conflict(reader.commit());
}

#[test]
fn a_label_that_nobody_has_yet_is_a_read() {
    let graph = Graph::new();
    let both = [graph.serializable(), graph.serializable()];
    for txn in &both {
        let none = txn.label_filter(&["nobody".into()]);
        assert_eq!(txn.count_vertices(&none, Share::ALL).unwrap(), 0);
    }
    let outcomes = both.map(|txn| {
        let label = txn.catalog().intern_label_text("nobody");
        txn.insert_vertex(label, None).unwrap();
        txn.commit()
    });
    assert_eq!(outcomes.map(|outcome| outcome.is_ok()), [true, false]);
}

#[test]
fn removing_nothing_is_a_read() {
    // Serially, the second would have removed the value that the first wrote.
    let graph = Graph::new();
    let ids = graph.persons(2);
    let (remover, writer) = (graph.serializable(), graph.serializable());
    remover.remove_vertex_property(ids[0], graph.name, None).unwrap();
    graph.set(&remover, ids[1], 1).unwrap();
    set_name(&graph, &writer, ids[0], "x");
    writer.commit().unwrap();
    check_conflict(remover.commit());
}

#[test]
fn a_long_fork_is_prevented() {
    // Two readers see two writes in different orders. Transactions that only read cannot: each sees one moment.
    let graph = Graph::new();
    let [x, y] = graph.persons(2)[..] else { unreachable!() };
    let (set_x, set_y) = (graph.serializable(), graph.serializable());
    graph.set(&set_x, x, 1).unwrap();
    graph.set(&set_y, y, 1).unwrap();
    let early = graph.serializable();
    set_x.commit().unwrap();
    let middle = graph.serializable();
    set_y.commit().unwrap();
    let read = |txn: Transaction| {
        let seen = (graph.get(&txn, x).unwrap(), graph.get(&txn, y).unwrap());
        txn.commit().ok().map(|_| seen)
    };
    let seen = [read(early), read(middle)];
    assert!(!seen.contains(&Some((0, 1))), "{seen:?}");
}

#[test]
fn circular_information_flow_is_prevented() {
    check_skew(
        |graph| graph.persons(2),
        |graph, txn, ids, who| {
            graph.set(txn, ids[who], 7).unwrap();
            txn.finish_statement().unwrap();
            assert_ne!(graph.get(txn, ids[1 - who]), Some(8));
        },
    );
}

#[test]
fn lost_updates_are_prevented_whoever_is_first() {
    with_and_without_pre_read(|graph| {
        let v = graph.persons(1)[0];
        let (one, two) = (graph.serializable(), graph.serializable());
        let [seen_by_one, seen_by_two] = [&one, &two].map(|txn| graph.get(txn, v).unwrap());
        graph.set(&one, v, seen_by_one + 1).unwrap();
        one.commit().unwrap();
        assert!(graph.set(&two, v, seen_by_two + 1).is_err());
        assert_eq!(graph.get(&graph.begin(), v), Some(1));
    });
}

#[test]
fn a_fractured_read_does_not_commit() {
    let graph = Graph::new();
    let [a, b] = graph.persons(2)[..] else { unreachable!() };
    let reader = graph.serializable();
    assert_eq!(graph.get(&reader, a), Some(0));
    let writer = graph.serializable();
    graph.set(&writer, a, 1).unwrap();
    graph.set(&writer, b, 1).unwrap();
    writer.commit().unwrap();
    assert_eq!((graph.get(&reader, b), graph.get(&reader, a)), (Some(1), Some(0)), "reads are repeatable");
    check_conflict(reader.commit());
}

/// Also if the property was read at the begin, where no such element has it.
#[test]
fn a_property_set_on_a_newer_element_is_read_again() {
    let graph = Graph::new();
    let txn = graph.serializable();
    let other = graph.begin();
    let newer = other.insert_vertex(graph.person, None).unwrap();
    other.commit().unwrap();
    let mut seen = vec![newer];
    txn.retain_vertices(&mut seen).unwrap();
    assert_eq!(seen, [newer], "a pre-read");
    assert_eq!(graph.get(&txn, newer), None);
    graph.set(&txn, newer, 7).unwrap();
    txn.finish_statement().unwrap();
    assert_eq!(graph.get(&txn, newer), Some(7));
    txn.commit().unwrap();
    assert_eq!(graph.get(&graph.begin(), newer), Some(7));
}

/// A vertex that the transaction adds did not come after its begin, also while the adding statement runs.
#[test]
fn a_search_after_an_own_insertion_is_no_scan() {
    let graph = Graph::new();
    let txn = graph.serializable();
    let other = graph.begin();
    let newer = other.insert_vertex(graph.person, None).unwrap();
    other.commit().unwrap();
    txn.retain_vertices(&mut vec![newer]).unwrap();
    named(&graph, &txn, "own");
    txn.finish_statement().unwrap();
    assert_eq!(with_name(&graph, &txn, "own"), 1);
    txn.commit().unwrap();
}

/// Adding an edge reads its ends, also if the edge is deleted again before the commit.
#[test]
fn an_end_of_an_edge_that_was_added_and_deleted_again_is_not_deleted_before() {
    for with_its_vertex in [true, false] {
        let graph = Graph::new();
        let ids = graph.persons(2);
        let (one, other) = (graph.serializable(), graph.serializable());
        let edge = one.insert_edge(ids[0], ids[1], graph.knows, None).unwrap();
        if with_its_vertex { one.delete_vertex(ids[0]) } else { one.delete_edge(edge) }.unwrap();
        // If it committed, it would come first in the serial order, where the edge could not have been added.
        assert_eq!(other.delete_vertex(ids[1]).unwrap_err().kind(), ErrorKind::Conflict);
        drop(other);
        one.commit().unwrap();
        let after = graph.serializable();
        after.delete_vertex(ids[1]).unwrap();
        after.commit().unwrap();
    }
}

#[test]
fn inserts_at_one_vertex_commute() {
    let graph = Graph::new();
    let ids = graph.persons(5);
    let inserts: Vec<Transaction> = (1..5)
        .map(|n| {
            let txn = graph.serializable();
            txn.insert_edge(ids[0], ids[n], graph.knows, None).unwrap();
            txn
        })
        .collect();
    for txn in inserts {
        txn.commit().unwrap();
    }
    assert_eq!(expand(&graph.begin(), &ids[..1], Direction::Out, 10).len(), 4);
}

#[test]
fn readers_alone_never_fail() {
    let graph = Graph::new();
    let v = graph.persons(1)[0];
    let (reader, only) = (graph.serializable(), graph.manager.begin_read().unwrap());
    assert_eq!((graph.get(&reader, v), graph.get(&only, v)), (Some(0), Some(0)));
    let writer = graph.serializable();
    graph.set(&writer, v, 1).unwrap();
    writer.commit().unwrap();
    assert_eq!((graph.get(&reader, v), graph.get(&only, v)), (Some(0), Some(0)));
    reader.commit().unwrap();
    only.commit().unwrap();
}

/// Few entries in the table of recent commits, so that a few commits fill it.
fn small_ring() -> Graph {
    Graph::with_recent(RecentOptions::small(16))
}

/// Commits this many transactions that set the balance of one vertex.
fn commit_others(graph: &Graph, vertex: VertexId, count: i64) {
    for n in 0..count {
        let txn = graph.begin();
        graph.set(&txn, vertex, n).unwrap();
        txn.commit().unwrap();
    }
}

#[test]
fn a_writer_beside_two_hundred_thousand_commits_commits() {
    let graph = Graph::new();
    let ids = graph.persons(2);
    let old = graph.serializable();
    assert_eq!(graph.get(&old, ids[0]), Some(0));
    set_name(&graph, &old, ids[0], "x");
    commit_others(&graph, ids[1], 200_000);
    old.commit().unwrap();
    assert_eq!(graph.manager.counters().aborted(AbortCause::TooOld), 0);
    // After its end, nothing is kept for it.
    commit_others(&graph, ids[1], 1_000);
    assert!(graph.manager.commit_history_bytes() < 1 << 20, "{} bytes", graph.manager.commit_history_bytes());
}

#[test]
fn a_conflict_is_found_however_many_commits_came_before_and_after_it() {
    for (before, after) in [(0, 3), (0, 40), (0, 2_000), (3, 2_000), (1_000, 1_000), (2_000, 3), (2_000, 0)] {
        for pre_read in [true, false] {
            let graph = small_ring();
            graph.manager.settings().optimistic_pre_read.store(pre_read, Ordering::Relaxed);
            let ids = graph.persons(3);
            commit_others(&graph, ids[1], 5);
            let old = graph.serializable();
            assert_eq!(graph.get(&old, ids[0]), Some(0));
            set_name(&graph, &old, ids[2], "x");
            commit_others(&graph, ids[1], before);
            commit_others(&graph, ids[0], 1);
            commit_others(&graph, ids[1], after);
            check_conflict(old.commit());
            assert_eq!(graph.manager.counters().aborted(AbortCause::ReadConflict), 1);
        }
    }
}

#[test]
fn what_changed_before_the_begin_is_no_conflict_however_old_the_writer_is() {
    // The begin lies among commits whose write sets are merged.
    for before in 1..40 {
        let graph = small_ring();
        let ids = graph.persons(3);
        let holder = graph.serializable();
        commit_others(&graph, ids[1], before);
        let old = graph.serializable();
        let found = with_name_and_labels(&graph, &old, "none", &LabelFilter::Any);
        assert_eq!((graph.get(&old, ids[1]), found), (Some(before - 1), 0));
        set_name(&graph, &old, ids[0], "x");
        commit_others(&graph, ids[2], 3_000);
        old.commit().unwrap();
        drop(holder);
    }
}

#[test]
fn an_old_writer_loses_to_what_it_searched_for_and_to_nothing_else() {
    for (value, conflicts) in [(50, true), (10, true), (9, false), (60, false)] {
        let graph = small_ring();
        let ids = graph.persons(3);
        let old = graph.serializable();
        let range = IndexRange::Between { low: Some((Value::I64(10), true)), high: Some((Value::I64(60), false)) };
        let (mut out, mut cursor) = (Vec::new(), ScanCursor::default());
        let any = LabelFilter::Any;
        while !old.scan_vertices_where(&any, graph.balance, &range, Share::ALL, &mut cursor, 9, &mut out).unwrap() {}
        assert_eq!(out.len(), 0);
        set_name(&graph, &old, ids[0], "x");
        commit_others(&graph, ids[1], 5);
        let txn = graph.begin();
        graph.set(&txn, ids[1], value).unwrap();
        txn.commit().unwrap();
        // Values on both sides of the range, and none in it.
        for n in 0..2_000 {
            let txn = graph.begin();
            graph.set(&txn, ids[2], if n % 2 == 0 { n % 9 } else { 100 + n }).unwrap();
            txn.commit().unwrap();
        }
        match conflicts {
            true => check_conflict(old.commit()),
            false => drop(old.commit().unwrap()),
        }
    }
}

#[test]
fn an_old_writer_meets_large_commits_and_new_names() {
    let large = |graph: &Graph, count: usize| {
        let txn = graph.begin();
        for _ in 0..count {
            graph.add(&txn, 0);
        }
        txn.commit().unwrap();
    };
    for (reads_all, count, conflicts) in [(true, 1, true), (true, 5_000, true), (false, 5_000, false)] {
        let graph = small_ring();
        let ids = graph.persons(2);
        let old = graph.serializable();
        match reads_all {
            true => assert_eq!(vertices(&old).len(), 2),
            false => assert_eq!(graph.get(&old, ids[0]), Some(0)),
        }
        set_name(&graph, &old, ids[0], "x");
        large(&graph, count);
        commit_others(&graph, ids[1], 100);
        match conflicts {
            true => check_conflict(old.commit()),
            false => drop(old.commit().unwrap()),
        }
    }
    let graph = small_ring();
    let ids = graph.persons(2);
    let old = graph.serializable();
    assert_eq!(old.key_of("new key"), None);
    set_name(&graph, &old, ids[0], "x");
    let key = graph.manager.store().catalog().intern_key("new key");
    let writer = graph.begin();
    writer.set_vertex_property(ids[1], key, Value::I64(1), WriteCardinality::Single, Vec::new()).unwrap();
    writer.commit().unwrap();
    commit_others(&graph, ids[1], 100);
    check_conflict(old.commit());
}

#[test]
fn how_a_writer_that_was_pre_read_ended_is_known_however_old_the_reader_is() {
    for commits in [true, false] {
        let graph = small_ring();
        let ids = graph.persons(3);
        let old = graph.serializable();
        let writer = graph.serializable();
        graph.set(&writer, ids[0], 7).unwrap();
        let validating = writer.enter_validation().unwrap();
        assert_eq!(graph.get(&old, ids[0]), Some(7));
        match commits {
            true => drop(validating.finish().unwrap()),
            false => drop(validating),
        }
        commit_others(&graph, ids[1], 500);
        let set = graph.set(&old, ids[2], 1);
        assert_eq!(set.is_ok(), commits, "{set:?}");
        commit_others(&graph, ids[1], 500);
        assert_eq!(old.commit().is_ok(), commits);
        assert_eq!(graph.manager.counters().aborted(AbortCause::TooOld), 0);
    }
}

#[test]
fn above_its_memory_the_oldest_writer_is_too_old_and_a_younger_one_is_not() {
    let graph = small_ring();
    graph.manager.settings().commit_history_bytes.store(60_000, Ordering::Relaxed);
    let ids = graph.persons(3);
    let old = graph.serializable();
    graph.get(&old, ids[0]);
    set_name(&graph, &old, ids[0], "x");
    commit_others(&graph, ids[2], 5_000);
    let young = graph.serializable();
    graph.get(&young, ids[0]);
    set_name(&graph, &young, ids[1], "x");
    commit_others(&graph, ids[2], 500);
    assert!(graph.manager.commit_history_bytes() <= 61_000, "{} bytes", graph.manager.commit_history_bytes());
    let error = old.commit().unwrap_err();
    assert!(error.message().contains("commit_history_bytes"), "{error}");
    assert_eq!(graph.manager.counters().aborted(AbortCause::TooOld), 1);
    young.commit().unwrap();
}

#[test]
fn blind_writes_need_no_memory_of_commits() {
    let graph = Graph::with_recent(RecentOptions::small(16));
    let ids = graph.persons(2);
    let old = graph.serializable();
    set_name(&graph, &old, ids[0], "x");
    (0..20).for_each(|_| drop(graph.persons(1)));
    old.commit().unwrap();
    assert_eq!(values(&graph.begin(), ids[0], graph.name), [Value::from("x")]);
}

#[test]
fn a_value_given_to_a_new_vertex_does_not_hide_a_later_search_for_it() {
    // A value that the transaction sets is none that it has searched for, whatever moment it was set at.
    let graph = Graph::new();
    let setup = graph.begin();
    let [watched, other] = [0, 1].map(|_| named(&graph, &setup, "old"));
    setup.commit().unwrap();
    let searcher = graph.serializable();
    let writer = graph.serializable();
    set_name(&graph, &writer, watched, "new");
    graph.set(&writer, other, 7).unwrap();
    writer.commit().unwrap();
    // A read as of a later moment than the begin, then a new vertex with the value, then a search as of the begin.
    assert_eq!(graph.get(&searcher, other), Some(7));
    named(&graph, &searcher, "old");
    searcher.finish_statement().unwrap();
    assert_eq!(with_name_and_labels(&graph, &searcher, "old", &LabelFilter::Any), 3);
    check_conflict(searcher.commit());
}

#[test]
fn a_key_that_nobody_has_used_yet_is_a_read() {
    with_and_without_pre_read(|graph| {
        let setup = graph.begin();
        let ids = [0, 1].map(|_| graph.add(&setup, 0));
        setup.commit().unwrap();
        let reader = graph.serializable();
        assert_eq!(reader.key_of("new key"), None);
        graph.set(&reader, ids[0], 1).unwrap();
        let writer = graph.serializable();
        let key = graph.manager.store().catalog().intern_key("new key");
        writer.set_vertex_property(ids[1], key, Value::I64(1), WriteCardinality::Single, Vec::new()).unwrap();
        writer.commit().unwrap();
        check_conflict(reader.commit());
    });
}
