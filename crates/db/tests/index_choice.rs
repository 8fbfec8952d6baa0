//! Sources that find their elements by several indexes: they answer as scans do, and a serializable transaction notices
//! what would change their answer.
//!
//! Graphs, indexes and conditions are drawn at random. Each traversal is planned with all optimizations, and with none.

use mangrove::{
    Database, ElementKind, ErrorKind, IndexDefinition, IndexKind, Isolation, Parameters, PlanOptions, Prepared,
    Transaction, TransactionOptions, Value,
};
use mangrove_gremlin::Terminal;
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};

const VALUES: &[&str] =
    &["0", "1", "2", "3", "2L", "1.5d", "'1'", "''", "'a'", "'ab'", "'abc'", "'b'", "true", "'ä'", "'\\uD83D\\uDE00'"];
const KEYS: &[&str] = &["a", "b", "c"];
/// The vertices of a graph, and its edges.
const SIZE: usize = 150;

fn pick(rng: &mut StdRng, of: &[&'static str]) -> &'static str {
    of.choose(rng).copied().unwrap()
}

fn run(on: &Transaction, script: &str) {
    on.query(script).unwrap_or_else(|error| panic!("{script}: {error}")).collect().unwrap();
}

fn all(db: &Database, script: &str) -> Vec<Value> {
    db.query(script).and_then(|results| results.collect()).unwrap_or_else(|error| panic!("{script}: {error}"))
}

/// Properties of an element: some keys are missing. A vertex may have several values under a key.
fn properties(rng: &mut StdRng, values_of_graph: &[&'static str], is_vertex: bool, number: usize) -> String {
    let mut text = String::new();
    for key in KEYS {
        let values = if is_vertex { rng.random_range(0..=3_usize) } else { rng.random_range(0..=1) };
        for _ in 0..values.min(2) {
            let cardinality = if is_vertex { "list, " } else { "" };
            text += &format!(".property({cardinality}'{key}', {})", pick(rng, values_of_graph));
        }
    }
    if rng.random_bool(0.7) {
        text += &format!(".property('u', {number})");
    }
    text
}

/// A graph of vertices `p` and `q`, and of edges `x` and `y`, and the values in it.
fn random_graph(rng: &mut StdRng) -> (Database, Vec<&'static str>) {
    let db = Database::in_memory();
    let transaction = db.begin().unwrap();
    // Few different values make long lists.
    let values: Vec<&'static str> = (0..rng.random_range(3..9)).map(|_| pick(rng, VALUES)).collect();
    for number in 0..SIZE {
        let (label, properties) = (pick(rng, &["p", "q"]), properties(rng, &values, true, number));
        run(&transaction, &format!("g.addV('{label}').property('n', {number}){properties}"));
    }
    for number in 0..SIZE {
        let (label, properties) = (pick(rng, &["x", "y"]), properties(rng, &values, false, number));
        let at = rng.random_range(0..SIZE);
        let add = format!("g.V().has('n', {at}).as('v').addE('{label}').to('v').property('n', {number}){properties}");
        run(&transaction, &add);
    }
    transaction.commit().unwrap();
    for element in [ElementKind::Vertex, ElementKind::Edge] {
        let labels = if element == ElementKind::Vertex { ["p", "q"] } else { ["x", "y"] };
        for _ in 0..rng.random_range(2..8) {
            let mut keys: Vec<_> = KEYS.iter().map(|key| (*key).into()).collect();
            (0..rng.random_range(1..3)).for_each(|_| drop(keys.remove(rng.random_range(0..keys.len()))));
            let label = rng.random_bool(0.4).then(|| pick(rng, &labels).into());
            let kind = if rng.random_bool(0.6) { IndexKind::Ordered } else { IndexKind::Hash };
            // The same index twice is refused.
            let _ = db.define_index(&IndexDefinition { element, label, keys, kind, unique: false });
        }
        if rng.random_bool(0.5) {
            let keys = vec!["u".into()];
            db.define_index(&IndexDefinition { element, keys, unique: true, ..IndexDefinition::default() }).unwrap();
        }
    }
    (db, values)
}

/// A test of a value.
fn predicate(rng: &mut StdRng) -> String {
    let value = |rng: &mut StdRng| pick(rng, VALUES);
    match rng.random_range(0..12) {
        0..4 => value(rng).to_owned(),
        4 => format!("within({}, {}, {})", value(rng), value(rng), value(rng)),
        5 => format!("gt({})", value(rng)),
        6 => format!("between({}, {})", value(rng), value(rng)),
        7..9 => format!("TextP.startingWith({})", pick(rng, &["''", "'a'", "'ab'", "'ä'", "'\\uD83D\\uDE00'"])),
        9 => format!("eq({}).or(TextP.startingWith('a'))", value(rng)),
        10 => format!("outside({}, {})", rng.random_range(0..3), rng.random_range(0..4)),
        _ => format!("neq({})", value(rng)),
    }
}

fn condition(rng: &mut StdRng, element: ElementKind, depth: usize) -> String {
    let labels = if element == ElementKind::Vertex { ["p", "q"] } else { ["x", "y"] };
    match rng.random_range(0..16) {
        0 => format!("hasLabel('{}')", pick(rng, &labels)),
        1 => format!("hasLabel('{}', '{}')", labels[0], labels[1]),
        2 => format!("has('u', {})", rng.random_range(0..SIZE + 2)),
        3 => format!("has('u', within({}, {}))", rng.random_range(0..SIZE + 2), rng.random_range(0..SIZE + 2)),
        4 => format!("has('{}', '{}', {})", pick(rng, &labels), pick(rng, KEYS), predicate(rng)),
        5 => format!("hasNot('{}')", pick(rng, KEYS)),
        6..10 if depth > 0 => {
            let branches: Vec<_> =
                (0..rng.random_range(1..4)).map(|_| conditions(rng, element, depth - 1, ".")).collect();
            format!("or({})", branches.join(", "))
        }
        10 if depth > 0 => format!("and({})", conditions(rng, element, depth - 1, ", ")),
        _ => format!("has('{}', {})", pick(rng, KEYS), predicate(rng)),
    }
}

/// One to three conditions that hold together.
fn conditions(rng: &mut StdRng, element: ElementKind, depth: usize, between: &str) -> String {
    let all: Vec<_> = (0..rng.random_range(1..4)).map(|_| condition(rng, element, depth)).collect();
    all.join(between)
}

fn traversal(rng: &mut StdRng, values: &[&'static str]) -> String {
    let element = if rng.random_bool(0.6) { ElementKind::Vertex } else { ElementKind::Edge };
    let source = if element == ElementKind::Vertex { "V" } else { "E" };
    if rng.random_bool(0.4) {
        // Values that many elements have, under two keys: mostly an intersection, if the keys have indexes.
        let [one, two] = [["a", "b"], ["b", "c"], ["c", "a"]][rng.random_range(0..3)];
        return format!("g.{source}().has('{one}', {}).has('{two}', {}).id()", pick(rng, values), pick(rng, values));
    }
    format!("g.{source}().{}.id()", conditions(rng, element, 2, "."))
}

fn prepared(script: &str, options: PlanOptions) -> Prepared {
    let parsed = parse_one(script, &ParseOptions::default());
    let Ok(Statement::Traversal { bytecode, .. }) = parsed else { panic!("{script}: {parsed:?}") };
    Prepared::with_options(&bytecode, Terminal::None, options).unwrap()
}

/// The answer of a transaction, sorted. An element that comes twice is there twice.
fn answer(transaction: &Transaction, script: &str, options: PlanOptions) -> Vec<String> {
    let results = transaction.run(&prepared(script, options), &Parameters::new()).and_then(|results| results.collect());
    let results = results.unwrap_or_else(|error| panic!("{script}: {error}"));
    let mut shown: Vec<String> = results.iter().map(|value| format!("{value:?}")).collect();
    shown.sort();
    shown
}

/// Writes of a transaction: properties change, come and go, and so do elements.
fn change(rng: &mut StdRng, values: &[&'static str], transaction: &Transaction, deletes: bool) {
    for _ in 0..40 {
        let (at, key, value) = (rng.random_range(0..SIZE), pick(rng, KEYS), pick(rng, values));
        let script = match rng.random_range(0..5) {
            0 => format!("g.V().has('n', {at}).property(single, '{key}', {value})"),
            1 => format!("g.V().has('n', {at}).property(list, '{key}', {value})"),
            2 => format!("g.E().has('n', {at}).property('{key}', {value})"),
            3 => format!("g.addV('{}').property('{key}', {value})", pick(rng, &["p", "q"])),
            _ => format!("g.V().has('n', {at}).as('v').addE('x').to('v').property('{key}', {value})"),
        };
        run(transaction, &script);
        if deletes {
            let script = match rng.random_range(0..4) {
                0 => format!("g.V().has('n', {at}).drop()"),
                1 => format!("g.E().has('n', {at}).drop()"),
                2 => format!("g.V().has('n', {at}).properties('{key}').drop()"),
                _ => format!("g.E().has('n', {at}).properties('{key}').drop()"),
            };
            run(transaction, &script);
        }
    }
}

#[test]
fn indexes_answer_as_scans_do() {
    let (mut unions, mut intersections, mut answers) = (0, 0, 0);
    for seed in 0..24 {
        let mut rng = StdRng::seed_from_u64(seed);
        let (db, values) = random_graph(&mut rng);
        for isolation in [Isolation::Snapshot, Isolation::Serializable] {
            for changes in [None, Some(false), Some(true)] {
                let transaction = db.begin_with(TransactionOptions { isolation, ..Default::default() }).unwrap();
                if let Some(deletes) = changes {
                    change(&mut rng, &values, &transaction, deletes);
                }
                for _ in 0..60 {
                    let script = traversal(&mut rng, &values);
                    let plain = answer(&transaction, &script, PlanOptions::NONE);
                    let found = answer(&transaction, &script, PlanOptions::default());
                    assert_eq!(found, plain, "seed {seed}, {isolation:?}, {changes:?}: {script}");
                    let explained = db.explain(&script).unwrap();
                    unions += usize::from(explained.contains("by the union of"));
                    intersections += usize::from(explained.contains("by the intersection of"));
                    answers += usize::from(!plain.is_empty());
                }
            }
        }
    }
    let shown = format!("{unions} unions, {intersections} intersections, {answers} answers with elements");
    println!("{shown}");
    assert!(unions > 500 && intersections > 500 && answers > 2_000, "{shown}");
}

/// What a look-up by several indexes reads, and an element that a concurrent transaction adds to its answer.
struct Noticed {
    indexes: &'static [(&'static str, IndexKind)],
    reads: &'static str,
    /// The name that `explain()` has for the access.
    access: &'static str,
    adds: &'static [&'static str],
}

/// What a concurrent transaction writes, and whether that changes the answer.
fn commits_after(db: &Database, reads: &str, write: &str) -> bool {
    let serializable = TransactionOptions { isolation: Isolation::Serializable, ..Default::default() };
    let (reader, writer) = (db.begin_with(serializable).unwrap(), db.begin_with(serializable).unwrap());
    let found = reader.query(&format!("g.V().{reads}.count()")).unwrap().collect().unwrap();
    assert_eq!(found, [Value::I64(0)]);
    run(&reader, "g.addV('seen')");
    run(&writer, write);
    // The writer reads what the reader writes, so neither order of the two has both answers.
    writer.query("g.V().hasLabel('seen').count()").unwrap().collect().unwrap();
    writer.commit().unwrap();
    match reader.commit() {
        Ok(_) => true,
        Err(error) => {
            assert_eq!(error.kind(), ErrorKind::Conflict, "{reads}, {write}: {error}");
            false
        }
    }
}

fn define(db: &Database, indexes: &[(&str, IndexKind)]) {
    for (key, kind) in indexes {
        let keys = vec![(*key).into()];
        db.define_index(&IndexDefinition { keys, kind: *kind, ..IndexDefinition::default() }).unwrap();
    }
}

/// If one of the searches of a union was not in the read set, its case would commit.
#[test]
fn a_serializable_writer_notices_what_would_come_into_a_union() {
    let cases = [
        Noticed {
            indexes: &[("name", IndexKind::Hash), ("email", IndexKind::Hash)],
            reads: "or(has('name', 'ada'), has('email', 'e'))",
            access: "by the union of 2 look-ups in indexes name, email",
            adds: &["name:ada", "email:e"],
        },
        Noticed {
            indexes: &[("name", IndexKind::Ordered), ("age", IndexKind::Ordered)],
            reads: "or(has('name', TextP.startingWith('ad')), has('age', gt(40)))",
            access: "by the union of 2 look-ups in indexes name, age",
            adds: &["name:ad", "name:adz", "age:41"],
        },
        Noticed {
            indexes: &[("name", IndexKind::Hash)],
            reads: "has('name', within('ada', 'bob'))",
            access: "by index name",
            adds: &["name:ada", "name:bob"],
        },
    ];
    for Noticed { indexes, reads, access, adds } in cases {
        for (add, conflicts) in adds.iter().map(|add| (*add, true)).chain([("name:x", false), ("age:40", false)]) {
            let db = Database::in_memory();
            all(&db, "g.addV('person').property('name', 'eve').property('email', 'm').property('age', 7)");
            define(&db, indexes);
            let explained = db.explain(&format!("g.V().{reads}")).unwrap();
            assert!(explained.contains(access), "{explained}");
            let (key, value) = add.split_once(':').unwrap();
            let value = if key == "age" { value.to_owned() } else { format!("'{value}'") };
            let write = format!("g.addV('person').property('{key}', {value})");
            assert_eq!(commits_after(&db, reads, &write), !conflicts, "{reads}, {add}");
        }
    }
}

/// Each of the elements that come into the intersection is in one of its indexes already, so only the other one has news.
#[test]
fn a_serializable_writer_notices_what_would_come_into_an_intersection() {
    let reads = "has('a', 'x').has('b', 'y')";
    for kind in [IndexKind::Hash, IndexKind::Ordered] {
        for (write, conflicts) in [
            ("g.V().has('n', 7).property(single, 'b', 'y')", true),
            ("g.V().has('n', 107).property(single, 'a', 'x')", true),
            ("g.addV().property('a', 'x').property('b', 'y')", true),
            ("g.V().has('n', 207).property(single, 'a', 'q')", false),
        ] {
            let db = Database::in_memory();
            let transaction = db.begin().unwrap();
            for number in 0..300 {
                let [a, b] = [["x", "o"], ["o", "y"], ["o", "o"]][number / 100];
                let add = format!("g.addV().property('n', {number}).property('a', '{a}').property('b', '{b}')");
                run(&transaction, &add);
            }
            transaction.commit().unwrap();
            define(&db, &[("a", kind), ("b", kind), ("n", IndexKind::Hash)]);
            let explained = db.explain(&format!("g.V().{reads}")).unwrap();
            assert!(explained.contains("by the intersection of indexes a (~100), b (~100)"), "{explained}");
            assert_eq!(commits_after(&db, reads, write), !conflicts, "{kind:?}, {write}");
        }
    }
}

/// The second list is longer than the tests that it would save. The planner knows that of a literal. Of a parameter, only
/// the run finds it out. Then values are tested.
#[test]
fn a_list_that_turns_out_long_is_not_read() {
    let db = Database::in_memory();
    let transaction = db.begin().unwrap();
    for number in 0..400 {
        // Most values of `b` are rare, and one is not.
        let b = if number < 391 && number % 100 != 7 { 0 } else { number };
        let a = number % 20;
        run(&transaction, &format!("g.addV().property('n', {number}).property('a', {a}).property('b', {b})"));
    }
    transaction.commit().unwrap();
    define(&db, &[("a", IndexKind::Hash), ("b", IndexKind::Ordered)]);
    let reads = "g.V().has('a', 7).has('b', 0)";
    let explained = db.explain(reads).unwrap();
    assert!(explained.contains("by index a (~20), not b (~387)"), "{explained}");
    assert_eq!(all(&db, &format!("{reads}.count()")), [Value::I64(16)]);
    let reads = "g.V().has('a', 7).has('b', x)";
    let explained = db.explain(reads).unwrap();
    assert!(explained.contains("by the intersection of indexes a (~20), b (~29)"), "{explained}");
    let parameters: Parameters = [("x".into(), Value::I32(0))].into_iter().collect();
    let prepared = db.prepare(&format!("{reads}.count()")).unwrap();
    assert_eq!(db.run(&prepared, &parameters).unwrap().collect().unwrap(), [Value::I64(16)]);
}
