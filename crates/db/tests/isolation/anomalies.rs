//! The classic anomalies by name, one scripted interleaving each, at both levels.
//!
//! Anomalies that both levels prevent are asserted to be absent at both. Those that snapshot isolation allows are
//! asserted to occur there, which shows that the scripts can detect them, and to be absent at serializable.

use mangrove::{Database, ErrorKind, Isolation, Transaction};

use super::support::{BOTH, begin, committed, database, integers, run, skew_is_decided};

/// The outcome of one transaction of a script.
#[derive(Debug, Default)]
struct Ended {
    committed: bool,
    /// The results of its statements, up to the first conflict.
    results: Vec<Vec<i64>>,
}

/// Runs statements of several transactions in the given order. A transaction begins with its first statement; `commit`
/// and `rollback` end it. Those still open at the end commit in the order of their numbers. A conflict ends a
/// transaction.
fn interleave(database: &Database, isolation: Isolation, script: &[(usize, &str)]) -> Vec<Ended> {
    let count = script.iter().map(|(number, _)| number + 1).max().unwrap_or_default();
    let mut ended: Vec<Ended> = (0..count).map(|_| Ended::default()).collect();
    let mut running: Vec<Option<Transaction>> = (0..count).map(|_| None).collect();
    let mut over = vec![false; count];
    let last = (0..count).map(|number| (number, "commit"));
    for (number, statement) in script.iter().copied().chain(last) {
        if over[number] {
            continue;
        }
        let tx = running[number].take().unwrap_or_else(|| begin(database, isolation));
        let outcome = match statement {
            "begin" => Ok(None),
            "rollback" => {
                over[number] = true;
                continue;
            }
            "commit" => {
                over[number] = true;
                let outcome = tx.commit().map(|_| ());
                ended[number].committed = outcome.is_ok();
                assert!(outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::Conflict) || outcome.is_ok());
                continue;
            }
            statement => tx.query(statement).and_then(|stream| stream.collect()).map(Some),
        };
        match outcome {
            Ok(values) => {
                ended[number].results.extend(values.map(|values| integers(&values)));
                running[number] = Some(tx);
            }
            Err(error) => {
                let expected = matches!(error.kind(), ErrorKind::Conflict | ErrorKind::DuplicateId);
                assert!(expected, "{statement}: {error}");
                over[number] = true;
            }
        }
    }
    ended
}

/// Two vertices 1 and 2 with `value` 0.
fn two() -> Database {
    database(
        "g.addV('account').property(id, 1).property('value', 0).addV('account').property(id, 2).property('value', 0)",
    )
}

const READ_1: &str = "g.V(1).values('value')";
const READ_2: &str = "g.V(2).values('value')";
const SET_1: &str = "g.V(1).property('value', 1).count()";
const SET_2: &str = "g.V(2).property('value', 1).count()";

#[test]
fn dirty_write() {
    for isolation in BOTH {
        let database = two();
        let set = "g.V().property('value', 7).count()";
        let ended = interleave(&database, isolation, &[(0, SET_1), (1, set), (0, SET_2), (1, "g.V(1).count()")]);
        assert!(ended[0].committed && !ended[1].committed, "{isolation:?}: {ended:?}");
        assert_eq!(committed(&database, "g.V().values('value')"), [1, 1]);
    }
}

#[test]
fn dirty_and_aborted_read() {
    for isolation in BOTH {
        for end in ["commit", "rollback"] {
            let database = two();
            let ended = interleave(&database, isolation, &[(0, SET_1), (1, READ_1), (0, end), (1, READ_1)]);
            // Either it comes before the writer, or it does not commit.
            assert!(ended[1].results == [[0], [0]] || !ended[1].committed, "{isolation:?}, {end}: {ended:?}");
            assert_eq!(ended[1].results[0], [0], "{isolation:?}: a dirty read");
            if end == "rollback" {
                assert!(ended[1].committed && ended[1].results[1] == [0], "{isolation:?}: an aborted read: {ended:?}");
            }
        }
    }
}

#[test]
fn intermediate_read() {
    for isolation in BOTH {
        let database = two();
        let script = [
            (0, "g.V(1).property('value', 50).count()"),
            (1, READ_1),
            (0, SET_1),
            (1, READ_1),
            (0, "commit"),
            (2, READ_1),
        ];
        let ended = interleave(&database, isolation, &script);
        assert_eq!((&ended[1].results[..], &ended[2].results[..]), (&[vec![0], vec![0]][..], &[vec![1]][..]));
    }
}

#[test]
fn fuzzy_read() {
    for isolation in BOTH {
        let database = two();
        let ended = interleave(&database, isolation, &[(0, READ_1), (1, SET_1), (1, "commit"), (0, READ_1)]);
        assert_eq!(ended[0].results, [[0], [0]], "{isolation:?}");
        assert!(ended[0].committed && ended[1].committed, "{isolation:?}: {ended:?}");
    }
}

#[test]
fn lost_update() {
    for isolation in BOTH {
        let (one, two_more) = ("g.V(1).property('value', 1).count()", "g.V(1).property('value', 2).count()");
        for script in [
            [(0, READ_1), (1, READ_1), (0, one), (0, "commit"), (1, two_more)],
            [(0, READ_1), (1, READ_1), (0, one), (1, two_more), (0, "commit")],
        ] {
            let database = two();
            let ended = interleave(&database, isolation, &script);
            assert!(ended[0].committed && !ended[1].committed, "{isolation:?}: {ended:?}");
            assert_eq!(committed(&database, READ_1), [1]);
        }
    }
}

#[test]
fn read_skew() {
    for isolation in BOTH {
        // The reader writes something of its own, so that it is no read-only transaction.
        for writes in ["g.V().count()", "g.addV('other').count()"] {
            let database = two();
            let script = [(0, READ_1), (0, writes), (1, SET_1), (1, SET_2), (1, "commit"), (0, READ_2), (0, READ_1)];
            let ended = interleave(&database, isolation, &script);
            let reads: Vec<i64> = [0, 2, 3].iter().filter_map(|&i| ended[0].results.get(i)?.first().copied()).collect();
            let one_state = reads == [0, 0, 0] || reads == [1, 1, 1];
            assert!(one_state || !ended[0].committed, "{isolation:?}: {ended:?}");
            if isolation == Isolation::Snapshot {
                assert!(ended[0].committed && one_state, "{ended:?}");
            }
        }
    }
}

#[test]
fn circular_information_flow() {
    for isolation in BOTH {
        let database = two();
        let ended = interleave(&database, isolation, &[(0, SET_1), (1, SET_2), (0, READ_2), (1, READ_1)]);
        let saw = |number: usize| ended[number].committed && ended[number].results[1] == [1];
        assert!(!(saw(0) && saw(1)), "{isolation:?}: {ended:?}");
    }
}

#[test]
fn long_fork() {
    for isolation in BOTH {
        // Reader 2 begins when the first writer has committed, reader 3 before it; both read after both commits.
        for late in [2, 3] {
            let database = two();
            let script = [
                (0, SET_1),
                (1, SET_2),
                (5 - late, "begin"),
                (0, "commit"),
                (late, "begin"),
                (1, "commit"),
                (2, READ_1),
                (2, READ_2),
                (3, READ_2),
                (3, READ_1),
            ];
            let ended = interleave(&database, isolation, &script);
            let (first, second) = (&ended[2], &ended[3]);
            let forked = first.results == [[1], [0]] && second.results == [[1], [0]];
            assert!(!(forked && first.committed && second.committed), "{isolation:?}: {ended:?}");
            assert!(first.committed && second.committed, "{isolation:?}: readers never abort: {ended:?}");
        }
    }
}

#[test]
fn write_skew() {
    for isolation in BOTH {
        let database = two();
        let ended = interleave(&database, isolation, &[(0, READ_1), (1, READ_2), (0, SET_2), (1, SET_1)]);
        let skewed = ended[0].committed && ended[1].committed;
        assert!(!skew_is_decided(isolation) || skewed == (isolation == Isolation::Snapshot), "{ended:?}");
        assert!(ended[0].committed || ended[1].committed, "one of the two goes through");
    }
}

/// Two transactions write and a third only reads; the reads of the third make the anomaly (Fekete, O'Neil and O'Neil
/// 2004).
#[test]
fn read_only_transaction_anomaly() {
    for isolation in BOTH {
        let database = two();
        let script = [
            (0, READ_1),
            (0, READ_2),
            (1, READ_2),
            (1, SET_2),
            (1, "commit"),
            (2, READ_1),
            (2, READ_2),
            (2, "commit"),
            (0, "g.V(1).property('value', -11).count()"),
        ];
        let ended = interleave(&database, isolation, &script);
        assert!(ended[1].committed && ended[2].committed && ended[2].results == [[0], [1]], "{ended:?}");
        let skewed = ended[0].committed;
        assert!(!skew_is_decided(isolation) || skewed == (isolation == Isolation::Snapshot), "{ended:?}");
    }
}

#[test]
fn dangling_edge() {
    for isolation in BOTH {
        let (add, delete) = ("g.V(1).as('a').V(2).addE('knows').from('a').count()", "g.V(2).drop().count()");
        for script in [
            vec![(0, add), (1, delete)],
            vec![(0, delete), (1, add)],
            vec![(0, add), (1, "g.V(1).count()"), (0, "commit"), (1, delete)],
            vec![(0, delete), (1, "g.V(2).count()"), (0, "commit"), (1, add)],
        ] {
            let database = two();
            let ended = interleave(&database, isolation, &script);
            assert!(!(ended[0].committed && ended[1].committed), "{isolation:?} {script:?}: {ended:?}");
            let (vertices, edges) = (committed(&database, "g.V().count()"), committed(&database, "g.E().count()"));
            let ends = committed(&database, "g.E().bothV().count()");
            assert!(ends[0] == 2 * edges[0], "{isolation:?} {script:?}: an edge without an end");
            assert!(vertices[0] == 2 || edges[0] == 0, "{isolation:?} {script:?}: an edge of a deleted vertex");
        }
    }
}

/// A predicate, and a write that changes what it holds for.
struct Phantom {
    name: &'static str,
    /// Both scripts with `#` where the number of one of two disjoint predicates stands.
    read: &'static str,
    write: &'static str,
}

/// The graph that phantoms are written into: items 10 and 20, joined by edges, and two vertices without edges. The catalog gets
/// the labels and keys of the scripts in `known`: they are run and rolled back.
fn phantom_graph(known: &[String]) -> Database {
    let database = Database::in_memory();
    super::support::create_indexes(&database);
    let item = "g.addV('item').property(id, #0).property('value', #0).property('spare', #0)\
                .addV('solo').property(id, 40#).property('alone', #0)";
    for number in ["1", "2"] {
        database.query(&item.replace('#', number)).unwrap().collect().unwrap();
    }
    for id in [30, 51, 52] {
        let edge = format!("g.V(10).as('a').V(20).addE('to').from('a').property(id, {id})");
        database.query(&edge).unwrap().collect().unwrap();
    }
    let tx = database.begin().unwrap();
    known.iter().for_each(|script| drop(run(&tx, script).unwrap()));
    tx.rollback();
    database
}

const PHANTOMS: [Phantom; 29] = [
    Phantom { name: "label scan", read: "g.V().hasLabel('kind#').count()", write: "g.addV('kind#')" },
    Phantom { name: "label scan, ids", read: "g.V().hasLabel('kind#').id()", write: "g.addV('kind#')" },
    Phantom { name: "unindexed has", read: "g.V().has('plain', #).count()", write: "g.addV('x').property('plain', #)" },
    Phantom {
        name: "unindexed has after an update",
        read: "g.V().hasLabel('item').has('plain', #).count()",
        write: "g.V(#0).property('plain', #)",
    },
    Phantom { name: "value taken away", read: "g.V().has('value', #0).count()", write: "g.V(#0).property('value', 0)" },
    Phantom {
        name: "property taken away",
        read: "g.V().has('value', #0).count()",
        write: "g.V(#0).properties('value').drop()",
    },
    Phantom { name: "key present", read: "g.V().has('key#').count()", write: "g.V(10).property('key#', 5)" },
    Phantom { name: "key absent", read: "g.V().hasNot('key#').count()", write: "g.V(10).property('key#', 5)" },
    Phantom {
        name: "index equality",
        read: "g.V().has('hashed', #).count()",
        write: "g.addV('x').property('hashed', #)",
    },
    Phantom {
        name: "index equality after an update",
        read: "g.V().has('hashed', #).count()",
        write: "g.V(#0).property('hashed', #)",
    },
    Phantom {
        name: "index range",
        read: "g.V().has('sorted', between(#0, #9)).count()",
        write: "g.addV('x').property('sorted', #5)",
    },
    Phantom {
        name: "index range, label",
        read: "g.V().hasLabel('item').has('sorted', gt(#0).and(lt(#9))).id()",
        write: "g.V(#0).property('sorted', #5)",
    },
    Phantom {
        name: "index of edges, equality",
        read: "g.E().has('hashed', #).count()",
        write: "g.V(10).as('a').V(20).addE('x').from('a').property('hashed', #)",
    },
    Phantom {
        name: "index of edges, equality after an update",
        read: "g.E().has('hashed', within(#, #0)).count()",
        write: "g.E(5#).property('hashed', #)",
    },
    Phantom {
        name: "index of edges, range",
        read: "g.E().has('sorted', between(#0, #9)).count()",
        write: "g.V(10).as('a').V(20).addE('x').from('a').property('sorted', #5)",
    },
    Phantom {
        name: "index of edges, range, label",
        read: "g.E().hasLabel('to').has('sorted', gt(#0).and(lt(#9))).id()",
        write: "g.E(5#).property('sorted', #5)",
    },
    Phantom {
        name: "unindexed range of edges",
        read: "g.E().has('rank', between(#0, #9)).count()",
        write: "g.E(5#).property('rank', #5)",
    },
    Phantom {
        name: "unindexed range",
        read: "g.V().has('rank', between(#0, #9)).count()",
        write: "g.addV('x').property('rank', #5)",
    },
    Phantom {
        name: "adjacency list",
        read: "g.V(#0).out('likes').count()",
        write: "g.V(#0).as('a').V(20).addE('likes').from('a')",
    },
    Phantom {
        name: "adjacency list, inward",
        read: "g.V(#0).in('likes').id()",
        write: "g.V(#0).as('a').V(10).addE('likes').to('a')",
    },
    Phantom {
        name: "adjacency lists of any label",
        read: "g.V(#0).outE('e1', 'e2').hasLabel('e#').count()",
        write: "g.V(#0).as('a').V(20).addE('e#').from('a')",
    },
    Phantom {
        name: "edge scan",
        read: "g.E().hasLabel('e#').count()",
        write: "g.V(10).as('a').V(20).addE('e#').from('a')",
    },
    Phantom { name: "absent id", read: "g.V(10#).count()", write: "g.addV('x').property(id, 10#)" },
    Phantom {
        name: "absent edge id",
        read: "g.E(10#).count()",
        write: "g.V(10).as('a').V(20).addE('x').from('a').property(id, 10#)",
    },
    Phantom { name: "count of everything", read: "g.V().count()", write: "g.addV('kind#')" },
    Phantom { name: "deletion", read: "g.V().has('alone', #0).count()", write: "g.V(40#).drop()" },
    Phantom { name: "all values", read: "g.V(#0).properties().count()", write: "g.V(#0).property('key', 5)" },
    Phantom {
        name: "list of values",
        read: "g.V(#0).values('list').count()",
        write: "g.V(#0).property(list, 'list', 5)",
    },
    Phantom { name: "degree", read: "g.V(#0).bothE().count()", write: "g.V(#0).as('a').addE('self').to('a')" },
];

/// A script about one of the two predicates.
fn numbered(script: &str, number: usize) -> String {
    script.replace('#', &number.to_string())
}

/// Each reads one predicate and then writes into the other's: write skew over a predicate.
fn skew_over(phantom: &Phantom, isolation: Isolation, names_are_known: bool) {
    let [read1, read2] = [1, 2].map(|n| numbered(phantom.read, n));
    let writes = [1, 2].map(|n| format!("{}.count()", numbered(phantom.write, n)));
    let database = phantom_graph(if names_are_known { &writes } else { &[] });
    let script = [(0, &*read1), (1, &*read2), (0, &*writes[1]), (1, &*writes[0])];
    let ended = interleave(&database, isolation, &script);
    let skewed = ended[0].committed && ended[1].committed;
    let as_promised = skewed == (isolation == Isolation::Snapshot);
    assert!(!skew_is_decided(isolation) || as_promised, "{isolation:?}, {}: {ended:?}", phantom.name);
    assert!(ended[0].committed || ended[1].committed, "{isolation:?}, {}: neither went through", phantom.name);
    // The test is effective: the first transaction's predicate has changed.
    if skewed {
        let after = committed(&database, &read1);
        assert_ne!(after, ended[0].results[0], "{}: the write changed nothing", phantom.name);
    }
}

/// A predicate that is read twice gives the same result, whatever was committed between the reads; or its reader does
/// not commit.
fn read_again(phantom: &Phantom, isolation: Isolation, names_are_known: bool) {
    let (read, write) = (numbered(phantom.read, 1), format!("{}.count()", numbered(phantom.write, 1)));
    let database = phantom_graph(if names_are_known { std::slice::from_ref(&write) } else { &[] });
    let script = [(0, &*read), (1, &*write), (1, "commit"), (0, &*read)];
    let ended = interleave(&database, isolation, &script);
    let same = ended[0].results[0] == ended[0].results[1];
    assert!(same || !ended[0].committed, "{isolation:?}, {}: a phantom: {ended:?}", phantom.name);
    assert!(ended[1].committed, "{isolation:?}, {}: {ended:?}", phantom.name);
    if isolation == Isolation::Snapshot {
        assert!(same && ended[0].committed, "{}: {ended:?}", phantom.name);
    }
}

fn over_all(check: impl Fn(&Phantom, Isolation, bool), names_are_known: bool) {
    BOTH.iter().for_each(|&isolation| PHANTOMS.iter().for_each(|phantom| check(phantom, isolation, names_are_known)));
}

#[test]
fn write_skew_over_predicates() {
    over_all(skew_over, true);
}

#[test]
fn predicate_many_preceders() {
    over_all(read_again, true);
}

/// Reads of labels and keys that the catalog does not know yet are reads, too.
#[test]
fn write_skew_over_names_never_used() {
    over_all(skew_over, false);
}

#[test]
fn names_never_used_are_read_again() {
    over_all(read_again, false);
}

/// A write that does not concern a predicate does not abort its reader.
#[test]
fn writes_beside_a_predicate_are_no_conflict() {
    for (read, write) in [
        ("g.V().has('plain', 1).count()", "g.addV('x').property('plain', 2)"),
        ("g.V().has('hashed', 1).count()", "g.addV('x').property('hashed', 2)"),
        ("g.V().has('sorted', between(0, 5)).count()", "g.addV('x').property('sorted', 5)"),
        ("g.E().has('hashed', 1).count()", "g.E(51).property('hashed', 2)"),
        ("g.E().has('sorted', between(0, 5)).count()", "g.E(51).property('sorted', 5)"),
        ("g.E().has('hashed', 1).count()", "g.V(10).property('hashed', 1)"),
        ("g.V().has('hashed', 1).count()", "g.E(51).property('hashed', 1)"),
        ("g.V().hasLabel('kind1').count()", "g.addV('kind2')"),
        ("g.V(10).out('likes').count()", "g.V(20).as('a').V(10).addE('likes').from('a')"),
        ("g.V(10).values('value')", "g.V(10).property('spare', 1)"),
        ("g.V(101).count()", "g.addV('x').property(id, 102)"),
    ] {
        let write = format!("{write}.count()");
        // New names would be a conflict, because a new label may belong to any label set.
        let database = phantom_graph(&[write.clone(), "g.addV('own')".to_owned()]);
        // Both write something, so both are validated.
        let script = [(0, read), (1, &*write), (0, "g.addV('own').count()"), (1, "commit")];
        let ended = interleave(&database, Isolation::Serializable, &script);
        assert!(ended[0].committed && ended[1].committed, "{read} beside {write}: {ended:?}");
    }
    // Nor do edges of one vertex conflict with one another.
    let database = phantom_graph(&[]);
    let add = "g.V(10).as('a').V(20).addE('likes').from('a').count()";
    let ended = interleave(&database, Isolation::Serializable, &[(0, add), (1, add), (2, add)]);
    assert!(ended.iter().all(|e| e.committed), "{ended:?}");
    assert_eq!(committed(&database, "g.V(10).out('likes').count()"), [3]);
}
