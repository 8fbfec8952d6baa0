//! Plans that leave out tests of labels and `dedup()`, since facts about edges answer them (PLAN-13), while edges come that
//! break these facts. Each answer is compared with that of a plan without optimizations in the same transaction.

use std::path::PathBuf;
use std::sync::Barrier;

use mangrove::{
    Database, DatabaseOptions, Isolation, Parameters, PlanOptions, Prepared, Transaction, TransactionOptions,
};
use mangrove_gremlin::Terminal;
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const RULE: &str = "drop label tests";

fn prepared(script: &str, options: PlanOptions) -> Prepared {
    let parsed = parse_one(script, &ParseOptions::default());
    let Ok(Statement::Traversal { bytecode, .. }) = parsed else { panic!("{script}: {parsed:?}") };
    Prepared::with_options(&bytecode, Terminal::None, options).unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// A traversal with its plan, which is kept from run to run, and the plain one.
struct Pair {
    script: String,
    optimized: Prepared,
    plain: Prepared,
}

impl Pair {
    fn new(script: &str) -> Self {
        let optimized = prepared(script, PlanOptions::default());
        Pair { script: script.to_owned(), optimized, plain: prepared(script, PlanOptions::NONE) }
    }

    /// Runs both in a transaction, and returns the number of results.
    #[track_caller]
    fn agree(&self, transaction: &Transaction) -> usize {
        let answer = |prepared: &Prepared| {
            let results = transaction.run(prepared, &Parameters::new()).and_then(|results| results.collect());
            let results = results.unwrap_or_else(|error| panic!("{}: {error}", self.script));
            let mut shown: Vec<String> = results.iter().map(|value| format!("{value:?}")).collect();
            shown.sort();
            shown
        };
        let optimized = answer(&self.optimized);
        assert_eq!(optimized, answer(&self.plain), "{}", self.script);
        optimized.len()
    }

    #[track_caller]
    fn agree_in(&self, db: &Database) -> usize {
        self.agree(&db.begin_read().unwrap())
    }
}

#[track_caller]
fn run(on: &Transaction, script: &str) {
    on.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"));
}

#[track_caller]
fn write(db: &Database, script: &str) {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"));
}

fn is_dropped(db: &Database, script: &str) -> bool {
    db.explain(script).unwrap().contains(RULE)
}

/// Persons with numbers from 0 and things from 100. Each person has two things.
fn graph() -> Database {
    let db = Database::in_memory();
    for n in 0..8 {
        write(&db, &format!("g.addV('person').property('n', {n}).addV('thing').property('n', {})", 100 + n));
    }
    for n in 0..16 {
        let (from, to) = (n % 8, 100 + n / 2);
        write(&db, &format!("g.V().has('n', {from}).addE('has').to(__.V().has('n', {to}))"));
    }
    db
}

const THINGS: &str = "g.V().hasLabel('person').out('has').hasLabel('thing').values('n')";
const OWN: &str = "g.V().has('n', 0).addE('has').to(__.V().has('n', 1))";

#[test]
fn a_plan_is_made_again_after_the_first_edge_of_a_sort() {
    let db = graph();
    let pair = Pair::new(THINGS);
    assert_eq!((pair.agree_in(&db), is_dropped(&db, THINGS)), (16, true));
    // Another edge of a known sort changes nothing.
    write(&db, "g.V().has('n', 0).addE('has').to(__.V().has('n', 107))");
    assert_eq!((pair.agree_in(&db), is_dropped(&db, THINGS)), (17, true));
    // A snapshot from before keeps its answer, with a plan from after.
    let before = db.begin_read().unwrap();
    assert_eq!(pair.agree(&before), 17);
    write(&db, OWN);
    assert_eq!(pair.agree(&before), 17);
    assert_eq!((pair.agree_in(&db), is_dropped(&db, THINGS)), (17, false));
    // Facts are not taken back.
    write(&db, "g.V().has('n', 0).outE('has').where(inV().hasLabel('person')).drop()");
    assert_eq!((pair.agree_in(&db), is_dropped(&db, THINGS)), (17, false));
}

#[test]
fn a_dedup_is_left_out_until_a_vertex_has_a_second_edge() {
    let db = Database::in_memory();
    for n in 0..8 {
        write(&db, &format!("g.addV('person').property('n', {n}).as('p').addV('note').addE('by').to('p')"));
        write(&db, &format!("g.V().has('n', {n}).as('p').addV('note').addE('by').to('p')"));
    }
    let script = "g.V().hasLabel('person').in('by').dedup().count()";
    let pair = Pair::new(&script.replace(".count()", ".id()"));
    let drops = |db: &Database| db.explain(script).unwrap().contains("drop dedup");
    assert_eq!((pair.agree_in(&db), drops(&db)), (16, true));
    // Another vertex with one edge changes nothing.
    write(&db, "g.V().has('n', 3).as('p').addV('note').addE('by').to('p')");
    assert_eq!((pair.agree_in(&db), drops(&db)), (17, true));
    let before = db.begin_read().unwrap();
    write(&db, "g.V().hasLabel('note').limit(1).addE('by').to(__.V().has('n', 0))");
    assert_eq!(pair.agree(&before), 17);
    assert_eq!((pair.agree_in(&db), drops(&db)), (17, false));
    // A transaction meets its own second edges.
    let db = graph();
    let pair = Pair::new("g.V().hasLabel('thing').in('has').dedup().values('n')");
    assert_eq!(pair.agree_in(&db), 8, "each person has two things");
    let transaction = db.begin().unwrap();
    run(&transaction, "g.V().has('n', 1).addE('is').to(__.V().has('n', 101))");
    let own = Pair::new("g.V().hasLabel('person').out('is').dedup().values('n')");
    assert_eq!(own.agree(&transaction), 1);
    run(&transaction, "g.V().has('n', 2).addE('is').to(__.V().has('n', 101))");
    assert_eq!(own.agree(&transaction), 1);
}

#[test]
fn a_scan_before_a_hop_looks_at_vertices_with_such_edges() {
    let db = graph();
    let pair = Pair::new("g.V().where(out('has')).values('n')");
    let narrows = |db: &Database| db.explain(&pair.script).unwrap().contains("scan what has edges");
    assert_eq!((pair.agree_in(&db), narrows(&db)), (8, true));
    let before = db.begin_read().unwrap();
    // A thing has something, too.
    write(&db, "g.V().has('n', 100).addE('has').to(__.V().has('n', 1))");
    assert_eq!((pair.agree_in(&db), narrows(&db)), (9, false));
    assert_eq!(pair.agree(&before), 8);
    // A vertex of a label that had no edges.
    write(&db, "g.addV('rare').property('n', 300).addE('likes').to(__.V().has('n', 2))");
    let likes = Pair::new("g.V().out('likes').values('n')");
    assert_eq!(likes.agree_in(&db), 1);
    assert!(db.explain(&likes.script).unwrap().contains("vertices with label rare"));
    let transaction = db.begin().unwrap();
    run(&transaction, "g.V().has('n', 3).addE('likes').to(__.V().has('n', 4))");
    assert_eq!(likes.agree(&transaction), 2, "a transaction meets its own edges");
}

#[test]
fn an_edge_that_is_rolled_back_leaves_its_facts() {
    let db = graph();
    let pair = Pair::new(THINGS);
    assert_eq!(pair.agree_in(&db), 16);
    let transaction = db.begin().unwrap();
    run(&transaction, OWN);
    drop(transaction);
    assert_eq!((pair.agree_in(&db), is_dropped(&db, THINGS)), (16, false));
}

#[test]
fn a_transaction_meets_its_own_edges_and_those_of_later_commits() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let db = graph();
        let pair = Pair::new(THINGS);
        assert_eq!(pair.agree_in(&db), 16);
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        let transaction = db.begin_with(options).unwrap();
        assert_eq!(pair.agree(&transaction), 16);
        run(&transaction, OWN);
        assert_eq!(pair.agree(&transaction), 16, "its own edge, {isolation:?}");
        drop(transaction);
        // A transaction that has begun before the commit may pre-read the edge.
        let db = graph();
        assert_eq!(pair.agree_in(&db), 16);
        let transaction = db.begin_with(options).unwrap();
        run(&transaction, "g.V().has('n', 3).property('m', 1)");
        write(&db, OWN);
        assert_eq!(pair.agree(&transaction), 16, "an edge of a later commit, {isolation:?}");
    }
}

#[test]
fn another_thread_adds_the_first_edge_of_a_sort_at_any_time() {
    let rounds = mangrove_testdata::case_count(40);
    for round in 0..rounds {
        let db = graph();
        let (pair, start) = (Pair::new(THINGS), Barrier::new(2));
        assert_eq!(pair.agree_in(&db), 16);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                start.wait();
                (0..round % 7).for_each(|_| std::thread::yield_now());
                write(&db, OWN);
                // Another fact: a person has a vertex of a third label.
                write(&db, "g.V().has('n', 1).as('a').addV('rare').property('n', 200).addE('has').from('a')");
            });
            start.wait();
            for _ in 0..12 {
                assert_eq!(pair.agree_in(&db), 16);
            }
        });
        assert_eq!(pair.agree_in(&db), 16);
    }
}

/// A directory for one test, removed at its end.
struct Folder(PathBuf);

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_graph_that_is_opened_again_has_the_facts_of_its_edges() {
    let folder = Folder(std::env::temp_dir().join(format!("mangrove-connections-{}", std::process::id())));
    let _ = std::fs::remove_dir_all(&folder.0);
    let open = || Database::open(folder.0.to_str().unwrap(), &DatabaseOptions::default()).unwrap();
    let pair = Pair::new("g.V().out('has').hasLabel('b').values('n')");
    let db = open();
    write(&db, "g.addV('a').property('n', 1).as('a').addV('b').property('n', 2).addE('has').from('a')");
    write(&db, "g.V().has('n', 1).as('a').addV('c').property('n', 3).addE('has').from('a')");
    assert_eq!((pair.agree_in(&db), is_dropped(&db, &pair.script)), (1, false));
    write(&db, "g.V().has('n', 3).drop()");
    drop(db);
    let db = open();
    assert_eq!((pair.agree_in(&db), is_dropped(&db, &pair.script)), (1, true), "no edge leads to the label any more");
    write(&db, "g.V().has('n', 1).as('a').addV('c').property('n', 3).addE('has').from('a')");
    drop(db);
    let db = open();
    assert_eq!((pair.agree_in(&db), is_dropped(&db, &pair.script)), (1, false));
}

const LABELS: [&str; 4] = ["a", "b", "a::c", "d"];

/// A traversal of hops and tests of labels.
fn walk(rng: &mut StdRng) -> String {
    let mut script = String::from("g.V()");
    let has_label = |rng: &mut StdRng| {
        let names = ["a", "b", "c", "d", "a::c", "none"];
        let chosen: Vec<String> = (0..rng.random_range(1..4)).map(|_| format!("'{}'", pick(rng, &names))).collect();
        format!(".hasLabel({})", chosen.join(", "))
    };
    if rng.random_bool(0.5) {
        script += &has_label(rng);
    }
    let mut names = 0;
    for _ in 0..rng.random_range(1..4) {
        let labels = pick(rng, &["'x'", "'y'", "'x', 'y'", ""]);
        script += &match rng.random_range(0..8) {
            0 => format!(".outE({labels}).inV()"),
            1 => format!(".inE({labels}).has('w', 1).otherV()"),
            2 => format!(".outE({labels}).outV()"),
            way => format!(".{}({labels})", ["out", "in", "both"][way % 3]),
        };
        if rng.random_bool(0.8) {
            script += &has_label(rng);
        }
        script += &match rng.random_range(0..10) {
            0 => ".dedup()".to_owned(),
            1 => ".has('n', gt(3))".to_owned(),
            2 => {
                names += 1;
                format!(".as('s{names}')")
            }
            3 => format!(".where(out('x'){})", has_label(rng)),
            4 => format!(".not(__.in(){})", has_label(rng)),
            5 => format!(".optional(out({labels}){})", has_label(rng)),
            6 => format!(".union(out('x'){0}, __.in('y'){0})", has_label(rng)),
            7 if names > 0 => format!(".select('s{names}')"),
            _ => String::new(),
        };
    }
    script += pick(rng, &["", "", ".count()", ".values('n')", ".groupCount().by('n').unfold()", ".dedup().count()"]);
    script
}

fn pick(rng: &mut StdRng, of: &[&'static str]) -> &'static str {
    of.choose(rng).copied().unwrap()
}

/// Random walks over random graphs, in which edges of a label lead to few labels. Then edges come that lead elsewhere.
#[test]
fn walks_agree_before_and_after_edges_of_new_sorts() {
    let (mut dropped, mut kept, mut without_dedup) = (0, 0, 0);
    for seed in 0..mangrove_testdata::case_count(60) as u64 {
        let rng = &mut StdRng::seed_from_u64(seed);
        let db = Database::in_memory();
        for n in 0..rng.random_range(4..14) {
            write(&db, &format!("g.addV('{}').property('n', {n})", LABELS[n % 4]));
        }
        for label in ["x", "y"] {
            let ends = [pick(rng, &LABELS), pick(rng, &LABELS)];
            if rng.random_bool(0.5) {
                // At most one edge leads to each vertex.
                let from = rng.random_range(0..4);
                write(
                    &db,
                    &format!("g.V().has('n', {from}).as('f').V().hasLabel('{}').addE('{label}').from('f')", ends[1]),
                );
                continue;
            }
            for _ in 0..rng.random_range(0..12) {
                let end = |rng: &mut StdRng, label: &str| {
                    format!("hasLabel('{label}').has('n', gt({}))", rng.random_range(0..6))
                };
                let (from, to) = (end(rng, ends[0]), end(rng, ends[1]));
                write(
                    &db,
                    &format!(
                        "g.V().{from}.limit(1).as('f').V().{to}.limit(1).addE('{label}').from('f').property('w', 1)"
                    ),
                );
            }
        }
        let pairs: Vec<Pair> = (0..24).map(|_| Pair::new(&walk(rng))).collect();
        for _ in 0..4 {
            for pair in &pairs {
                pair.agree_in(&db);
                if is_dropped(&db, &pair.script) {
                    dropped += 1
                } else {
                    kept += 1
                }
                without_dedup += usize::from(db.explain(&pair.script).unwrap().contains("drop dedup"));
            }
            let transaction = db.begin().unwrap();
            let (from, to, label) = (rng.random_range(0..5), rng.random_range(0..5), pick(rng, &["x", "y"]));
            run(&transaction, &format!("g.V().has('n', {from}).as('f').V().has('n', {to}).addE('{label}').from('f')"));
            for pair in &pairs {
                pair.agree(&transaction);
            }
            transaction.commit().unwrap();
        }
    }
    assert!(without_dedup > kept / 100, "{without_dedup} plans have left out a dedup()");
    assert!(dropped > kept / 20 && kept > dropped / 20, "{dropped} plans rely on facts, {kept} do not");
}
