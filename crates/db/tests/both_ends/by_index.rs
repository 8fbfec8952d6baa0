//! Searches from both ends whose targets indexes find.

use mangrove::{
    Database, IndexDefinition, IndexKind, Isolation, OperatorMetrics, Parameters, Transaction, TransactionOptions,
    Value,
};
use rand::prelude::*;
use rand::rngs::StdRng;

use super::graph::{Graph, Target, Vertex, check_searches};

const BOTH_ENDS: &str = "search from both ends";

/// The targets of a search that begins at so many vertices at most ([`mangrove_plan::physical::TARGETS_MAX`]).
const TARGETS_MAX: usize = 64;

fn index(keys: &[&str], label: Option<&str>, kind: IndexKind, unique: bool) -> IndexDefinition {
    let keys = keys.iter().map(|key| (*key).into()).collect();
    IndexDefinition { keys, label: label.map(Into::into), kind, unique, ..IndexDefinition::default() }
}

/// Makes up to four indexes, mostly one of names.
fn make_indexes(random: &mut StdRng, graph: &Graph, database: &Database) {
    let size = graph.vertices.len();
    let names_are_unique = graph.vertices.iter().map(|vertex| vertex.name).max() == Some(size - 1);
    for number in 0..random.random_range(0..5) {
        let kind = if random.random_bool(0.5) { IndexKind::Ordered } else { IndexKind::Hash };
        let label = random.random_bool(0.3).then_some("v");
        let definition = match if number == 0 { 0 } else { random.random_range(0..4) } {
            0 => index(&["name"], label, kind, names_are_unique && random.random_bool(0.5)),
            1 => index(&["code"], label, kind, false),
            2 => index(&["name", "code"], label, kind, false),
            _ => index(&["code", "name"], label, kind, false),
        };
        // The same index twice is refused.
        let _ = database.define_index(&definition);
    }
}

type VertexTest = Box<dyn Fn(&Vertex) -> bool>;

/// The vertices that meet random conditions, and these.
fn draw(random: &mut StdRng, graph: &Graph) -> Target {
    // One name and one code more than there are.
    let names = graph.vertices.iter().map(|vertex| vertex.name).max().map_or(1, |last| last + 2);
    let [name, other] = [0; 2].map(|_| random.random_range(0..names));
    let code = random.random_range(0..9);
    let is_named = |vertex: &Vertex, name: usize| vertex.name == name;
    let (conditions, is_met): (String, VertexTest) = match random.random_range(0..9) {
        0 | 1 => (format!("has('name', 'n{name}')"), Box::new(move |v| is_named(v, name))),
        2 => (format!("has('v', 'name', 'n{name}')"), Box::new(move |v| v.label == "v" && is_named(v, name))),
        3 => (
            format!("has('name', within('n{name}', 'n{other}'))"),
            Box::new(move |v| is_named(v, name) || is_named(v, other)),
        ),
        4 => (
            format!("has('code', {code}).has('name', 'n{name}')"),
            Box::new(move |v| v.code == code && is_named(v, name)),
        ),
        5 => (
            format!("or(has('name', 'n{name}'), has('code', {code}))"),
            Box::new(move |v| v.code == code || is_named(v, name)),
        ),
        6 => (
            format!("has('name', TextP.startingWith('n{}'))", name % 10),
            Box::new(move |v| v.name.to_string().starts_with(&(name % 10).to_string())),
        ),
        7 => (format!("has('code', gt({code})).hasLabel('v', 'w')"), Box::new(move |v| v.code > code)),
        _ => (
            format!("hasLabel('v').has('code', P.between({code}, 7))"),
            Box::new(move |v| v.label == "v" && v.code >= code && v.code < 7),
        ),
    };
    let vertices = graph.vertices.iter().enumerate().filter(|(_, vertex)| is_met(vertex)).map(|(at, _)| at).collect();
    Target { conditions, vertices }
}

#[test]
fn a_path_to_what_indexes_find_is_a_shortest_one() {
    let (mut from_one_end, mut far, mut none, mut many) = (0, 0, 0, 0);
    for seed in 1..=mangrove_testdata::case_count(150) {
        let random = &mut StdRng::seed_from_u64(seed);
        let size = if random.random_bool(0.6) { random.random_range(2..50) } else { random.random_range(100..200) };
        let graph = Graph::new(random, size);
        let database = graph.database();
        make_indexes(random, &graph, &database);
        check_searches(
            random,
            (&graph, &database, seed),
            &|random| draw(random, &graph),
            &mut |plan, case, distance| {
                if !plan.contains(BOTH_ENDS) {
                    from_one_end += 1;
                    return false;
                }
                assert!(plan.contains("by index") || plan.contains("by the "), "{plan}");
                far += usize::from(distance.is_some_and(|distance| distance > 3));
                none += usize::from(distance.is_none());
                many += usize::from(distance.is_some() && case.to.vertices.len() > TARGETS_MAX);
                size <= TARGETS_MAX && !case.is_tested_again()
            },
        );
    }
    assert!(
        from_one_end > 100 && far > 10 && none > 20 && many > 20,
        "{from_one_end} without an index, {far} long paths, {none} without a path, {many} with many targets"
    );
}

/// A chain 0 → 1 → … → 6 of vertices with the names `n0` to `n6`, an index of these, and a hundred more vertices with
/// the name `many`, one of which comes after vertex 6.
fn chain() -> Database {
    let database = Database::in_memory();
    database.define_index(&index(&["name"], None, IndexKind::Hash, false)).unwrap();
    let mut script = String::from("g");
    (0..7).for_each(|n| script += &format!(".addV('v').property(T.id, {n}).property('name', 'n{n}')"));
    (0..100).for_each(|n| script += &format!(".addV('v').property(T.id, {}).property('name', 'many')", 100 + n));
    run(&database, &script);
    for (from, to) in (0..6).map(|n| (n, n + 1)).chain([(6, 100)]) {
        run(&database, &format!("g.addE('x').from(V({from})).to(V({to}))"));
    }
    database
}

fn run(database: &Database, script: &str) -> Vec<Value> {
    database.query(script).and_then(mangrove::ResultStream::collect).unwrap_or_else(|e| panic!("{script}: {e}"))
}

fn run_in(transaction: &Transaction, script: &str) -> Vec<Value> {
    transaction.query(script).and_then(mangrove::ResultStream::collect).unwrap_or_else(|e| panic!("{script}: {e}"))
}

/// A search whose result is the number of vertices on the path.
fn search(name: &str) -> String {
    format!("g.V(0).repeat(out('x').simplePath()).until(has('name', {name})).path().count(local).limit(1)")
}

/// A serializable transaction that writes depends on the vertices that the index finds, also if it finds none. If it
/// finds too many, the transaction depends on the vertices that the search from one end meets.
#[test]
fn a_vertex_that_becomes_a_target_conflicts() {
    let insert = |name: &str| format!("g.addV('v').property('name', '{name}')");
    for (name, length, meanwhile, conflicts) in [
        ("n5", Some(6), insert("n5"), true),
        ("n5", Some(6), insert("other"), false),
        ("n5", Some(6), "g.V(101).property('name', 'n5')".to_owned(), true),
        ("n5", Some(6), "g.V(101).property('name', 'other')".to_owned(), false),
        ("n5", Some(6), "g.V(5).property('name', 'other')".to_owned(), true),
        ("nobody", None, insert("nobody"), true),
        ("nobody", None, insert("other"), false),
        ("many", Some(8), insert("many"), false),
        ("many", Some(8), "g.V(3).property('name', 'many')".to_owned(), true),
        ("many", Some(8), "g.V(100).property('name', 'other')".to_owned(), true),
    ] {
        let database = chain();
        let transaction = database.begin().unwrap();
        let script = search(&format!("'{name}'"));
        assert!(database.explain(&script).unwrap().contains(BOTH_ENDS));
        let expected: Vec<Value> = length.map(Value::I64).into_iter().collect();
        assert_eq!(run_in(&transaction, &script), expected, "{name}");
        run_in(&transaction, "g.addV('way').property('length', 6)");
        run(&database, &meanwhile);
        assert_eq!(transaction.commit().is_err(), conflicts, "{name}: {meanwhile}");
    }
}

#[test]
fn a_transaction_finds_its_own_targets() {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let database = chain();
        let transaction =
            database.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() }).unwrap();
        let script = search("'own'");
        assert!(database.explain(&script).unwrap().contains(BOTH_ENDS));
        let found = |expected: &[i64]| {
            let expected: Vec<Value> = expected.iter().map(|length| Value::I64(*length)).collect();
            assert_eq!(run_in(&transaction, &script), expected);
        };
        found(&[]);
        run_in(&transaction, "g.addV('v').property(T.id, 7).property('name', 'own')");
        found(&[]);
        run_in(&transaction, "g.addE('x').from(V(4)).to(V(7))");
        found(&[6]);
        run_in(&transaction, "g.V(2).property('name', 'own')");
        found(&[3]);
        run_in(&transaction, "g.V(2).property('name', 'n2')");
        found(&[6]);
        run_in(&transaction, "g.V(7).drop()");
        found(&[]);
        assert!(run(&database, &script).is_empty());
        transaction.rollback();
    }
}

/// The value may be a literal, which is no part of the plan, or a parameter, which may be a list. Each run looks up its own.
#[test]
fn a_plan_serves_all_values() {
    let database = chain();
    for (value, length) in
        [("'n1'", Some(2)), ("'n6'", Some(7)), ("'many'", Some(8)), ("'n0'", None), ("7", None), ("'n5'", Some(6))]
    {
        let expected: Vec<Value> = length.map(Value::I64).into_iter().collect();
        assert_eq!(run(&database, &search(value)), expected, "{value}");
    }
    let names = |names: &[&str]| Value::list(names.iter().map(|name| Value::from(*name)).collect::<Vec<_>>());
    for (test, cases) in [
        ("x", vec![(Value::from("n4"), Some(5)), (Value::from("many"), Some(8)), (Value::I64(4), None)]),
        (
            "within(x)",
            vec![(names(&["n4", "n6", "n2"]), Some(3)), (names(&["many", "n4"]), Some(5)), (names(&[]), None)],
        ),
    ] {
        let prepared = database.prepare(&search(test)).unwrap();
        for (value, length) in cases {
            let parameters: Parameters = [("x".into(), value.clone())].into_iter().collect();
            let found = database.run(&prepared, &parameters).unwrap().collect().unwrap();
            assert_eq!(found, length.map(Value::I64).into_iter().collect::<Vec<_>>(), "{value:?}");
        }
    }
}

/// The plan of a prepared traversal is made anew if the indexes change. A run whose index is dropped after it was
/// planned goes on from one end.
#[test]
fn a_plan_does_without_an_index_that_was_dropped() {
    let database = chain();
    let prepared = database.prepare(&search("'n5'")).unwrap();
    let length = || {
        let results = database.run(&prepared, &Parameters::new()).unwrap();
        results.collect().unwrap()
    };
    let has_plan = |expected: bool| {
        assert_eq!(database.explain(&search("'n5'")).unwrap().contains(BOTH_ENDS), expected);
        assert_eq!(length(), [Value::I64(6)]);
    };
    has_plan(true);
    let results = database.run(&prepared, &Parameters::new()).unwrap();
    database.drop_index(database.indexes()[0].id).unwrap();
    assert_eq!(results.collect().unwrap(), [Value::I64(6)]);
    has_plan(false);
    database.define_index(&index(&["v", "name"], None, IndexKind::Hash, false)).unwrap();
    has_plan(false);
    database.define_index(&index(&["name"], Some("v"), IndexKind::Hash, false)).unwrap();
    has_plan(false);
    database.define_index(&index(&["name"], None, IndexKind::Ordered, true)).unwrap_err();
    database.define_index(&index(&["name"], None, IndexKind::Ordered, false)).unwrap();
    has_plan(true);
}

/// The loop that goes on from one end gets the row only if the index finds many targets.
#[test]
fn many_targets_are_searched_for_from_one_end() {
    let database = chain();
    for (name, is_one_sided) in [("'n5'", false), ("'nobody'", false), ("'many'", true)] {
        let profile = run(&database, &format!("{}.profile()", search(name)));
        let [Value::TraversalMetrics(profile)] = &profile[..] else { panic!("{profile:?}") };
        let operators = profile.flat();
        let rows_in = |name: &str| {
            let named = |operator: &&OperatorMetrics| operator.name.starts_with(name);
            let found = operators.iter().map(|(_, operator)| *operator).find(named);
            let operator = found.unwrap_or_else(|| panic!("there is no {name}: {profile:?}"));
            operator.annotation(OperatorMetrics::ROWS_IN).cloned()
        };
        assert_eq!(rows_in(BOTH_ENDS), Some(Value::I64(1)), "{name}");
        assert_eq!(rows_in("repeat") != Some(Value::I64(0)), is_one_sided, "{name}");
    }
}
