//! Shortest paths written as loops, which a rule makes searches: against the plain interpreter, which walks all paths.
//!
//! A traversal is a beginning, a loop, steps after it, and what takes one result. The interpreter gets all but the last,
//! and so has every result that is allowed. The engine must have one if there is any, and no longer one than needed.

use std::sync::Arc;

use mangrove::{Bytecode, Database, Parameters, PlanOptions, Prepared, QueryGauges, QueryLimits, QueryOptions, Value};
use mangrove_graph::Detached;
use mangrove_gremlin::Terminal;
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use mangrove_oracle::graph::Graph;
use mangrove_oracle::interpreter::Interpreter;
use rand::prelude::*;
use rand::rngs::StdRng;

/// Numbers from a seed.
struct Numbers(StdRng);

impl Numbers {
    fn below(&mut self, bound: usize) -> usize {
        self.0.random_range(0..bound)
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

fn parsed(script: &str) -> Bytecode {
    match parse_one(script, &ParseOptions::default()) {
        Ok(Statement::Traversal { bytecode, .. }) => bytecode,
        other => panic!("{script}: {other:?}"),
    }
}

/// Up to seven vertices with numbers, of which some have a name, and edges of two labels, some of them parallel or loops.
/// The scripts that make the graph.
fn graph(numbers: &mut Numbers) -> Vec<String> {
    let size = 2 + numbers.below(6);
    let mut scripts = Vec::new();
    for n in 0..size {
        let name = if numbers.below(5) > 0 { format!(".property('name', 'v{n}')") } else { String::new() };
        scripts.push(format!("g.addV('v').property(T.id, {n}).property('n', {n}){name}"));
    }
    for edge in 0..numbers.below(2 * size) {
        let (from, to, label) = (numbers.below(size), numbers.below(size), numbers.one_of(&["x", "y"]));
        let since = if numbers.below(4) > 0 { ".property('since', 1)" } else { "" };
        scripts.push(format!("g.addE('{label}').from(V({from})).to(V({to})).property(T.id, {}){since}", 100 + edge));
    }
    scripts
}

/// A traversal up to the step that takes one result, that step, and the number of objects on the path before the loop.
fn traversal(numbers: &mut Numbers) -> (String, &'static str, usize) {
    let n = numbers.below(7);
    let (start, before) = match numbers.below(10) {
        0..=3 => (format!("g.V({n})"), 1),
        4 => (format!("g.V({n}, {})", numbers.below(7)), 1),
        5 => (format!("g.V().has('n', lt({n}))"), 1),
        6 => (format!("g.V({n}).as('s').out()"), 2),
        7 => (format!("g.V({n}).as('s').bothE().otherV()"), 3),
        8 => (format!("g.E({}).as('s').outV()", 100 + n), 2),
        _ => (format!("g.V({n}).as('s').both().in()"), 3),
    };
    let is_named = start.contains(".as(");
    let hop = match numbers.below(6) {
        0 | 1 => "both()",
        2 => "out()",
        3 => "both('x')",
        4 => "outE().inV()",
        _ => "bothE().has('since').otherV()",
    };
    let test = match numbers.below(6) {
        0 => ".has('n', neq(3))".to_owned(),
        1 => format!(".where(out('y').has('n', gt({n})))"),
        2 if is_named => ".where(neq('s'))".to_owned(),
        _ => String::new(),
    };
    let body = format!("repeat({hop}{test}.simplePath())");
    let to = numbers.below(8);
    let target = match numbers.below(5) {
        0..=2 => format!("hasId({to})"),
        3 => format!("has('n', gt({to}))"),
        _ => "where(out('y'))".to_owned(),
    };
    let is_simple_target = target.starts_with("has");
    let whole = match numbers.below(9) {
        0..=3 => format!("{body}.until({target})"),
        4 => format!("until({target}).{body}"),
        5 => format!("{body}.emit({target})"),
        6 if is_simple_target && n > 4 => format!("{body}.until(or({target}, loops().is({})))", 2 + n % 3),
        6 if is_simple_target => format!("{body}.until(or({target}, loops().is({}))).{target}", 2 + n % 3),
        7 if is_simple_target => format!("{body}.emit({target}).times({}).{target}", 2 + n % 3),
        _ => format!("{body}.emit().times({}).{target}", 2 + n % 3),
    };
    let after = match numbers.below(8) {
        0 => ".has('name')".to_owned(),
        1 => format!(".has('n', lt({to}))"),
        2 if is_named => ".as('t').where(neq('s'))".to_owned(),
        3 => ".out('x').as('u')".to_owned(),
        _ => String::new(),
    };
    let path = match numbers.below(8) {
        0 => ".path().by(id())",
        1 => ".path().by(T.id)",
        2 if !hop.contains("E()") && !start.contains("E()") => ".path().by('name')",
        3 if hop.contains("E()") => ".path().by('name').by('since')",
        _ => ".path()",
    };
    let sink = match numbers.below(4) {
        0 => ".order().by(count(local)).limit(1)",
        _ => ".limit(1)",
    };
    (format!("{start}.{whole}{after}{path}"), sink, before)
}

/// The objects of a path, as texts.
fn texts(path: &Value) -> Vec<String> {
    let Value::Path(path) = path else { panic!("{path:?} is no path") };
    let text = |object: &Value| match object {
        Value::Detached(element) => match &**element {
            Detached::Vertex { id, .. } | Detached::Edge { id, .. } => format!("{id:?}"),
            other => format!("{other:?}"),
        },
        other => format!("{other:?}"),
    };
    path.objects.iter().map(text).collect()
}

/// Every result that a traversal may have.
fn allowed(graph: &mut Graph, script: &str) -> Vec<Vec<String>> {
    match Interpreter::run(graph, &parsed(script)) {
        Ok(paths) => paths.iter().map(texts).collect(),
        Err(failure) => panic!("{script}: {failure:?}"),
    }
}

/// The ways to run a traversal.
const WAYS: usize = 5;

fn run(database: &Database, script: &str, way: usize, seed: u64) -> Vec<Vec<String>> {
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    let plan = PlanOptions { set_all_apart: way == 3, ..PlanOptions::default() };
    let prepared = Prepared::with_options(&parsed(script), Terminal::None, plan).unwrap();
    let transaction = database.begin().unwrap();
    let results = match way {
        0 => return database.run(&prepared, &parameters).unwrap().collect().unwrap().iter().map(texts).collect(),
        // With literals taken out.
        1 => return database.query(script).unwrap().collect().unwrap().iter().map(texts).collect(),
        2 | 3 => transaction.run_helped(&prepared, &parameters, &options, seed),
        _ => transaction.run_on_nodes(&prepared, &parameters, &options, 3, Some(seed)),
    };
    results.unwrap().iter().map(|(path, _)| texts(path)).collect()
}

#[test]
fn a_search_finds_a_shortest_path_if_there_is_one() {
    let cases = mangrove_testdata::case_count(400);
    let (mut searches, mut found) = (0, 0);
    for seed in 1..=cases {
        let mut numbers = Numbers(StdRng::seed_from_u64(seed));
        let scripts = graph(&mut numbers);
        let (database, mut plain) = (Database::in_memory(), Graph::new());
        for script in &scripts {
            database.query(script).unwrap().collect().unwrap();
            Interpreter::run(&mut plain, &parsed(script)).unwrap_or_else(|failure| panic!("{script}: {failure:?}"));
        }
        for case in 0..8 {
            let (all, sink, before) = traversal(&mut numbers);
            let script = format!("{all}{sink}");
            let about = || format!("seed {seed}, case {case}: {script}\n{}", scripts.join("\n"));
            let explained = database.explain(&script).unwrap();
            searches += usize::from(explained.contains("as a search"));
            let allowed = allowed(&mut plain, &all);
            for way in 0..WAYS {
                let answer = run(&database, &script, way, seed);
                let [path] = &answer[..] else {
                    assert!(answer.is_empty() && allowed.is_empty(), "{answer:?} of {allowed:?}\n{}", about());
                    continue;
                };
                found += 1;
                assert!(allowed.contains(path), "{path:?} is none of {allowed:?}\n{}", about());
                // If several rows begin, the path is a shortest one from its own.
                let shortest = match sink {
                    ".limit(1)" => allowed.iter().filter(|other| other[..before] == path[..before]).map(Vec::len).min(),
                    _ => allowed.iter().map(Vec::len).min(),
                };
                assert_eq!(Some(path.len()), shortest, "{path:?}, way {way}\n{}", about());
            }
        }
    }
    assert!(searches * 2 > cases as usize * 8 && found > cases as usize, "{searches} searches, {found} paths found");
}

/// Every vertex is joined to every other one: there are more simple paths than anybody can walk.
fn clique(size: usize) -> Database {
    let database = Database::in_memory();
    let (catalog, transaction) = (database.catalog(), database.begin().unwrap());
    let ids: Vec<_> = (0..size as i64).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("v"), &ids).unwrap();
    let pairs = |from: usize| {
        vertices[from + 1..].iter().map({
            let from = vertices[from];
            move |to| (from, *to)
        })
    };
    let edges: Vec<_> = (0..size).flat_map(pairs).collect();
    transaction.insert_edges(catalog.intern_label_text("x"), &edges).unwrap();
    transaction.commit().unwrap();
    database
}

/// A search costs the edges in reach: without a way it is over as soon as it has met all vertices.
#[test]
fn a_search_without_a_way_ends() {
    let database = clique(60);
    for script in [
        "g.V(0).repeat(both().simplePath()).until(hasId(1000)).path().limit(1)",
        "g.V(0).repeat(both().simplePath()).until(hasId(1000)).path().order().by(count(local)).limit(1)",
        "g.V(0, 1, 2).repeat(both('x').simplePath()).emit(hasLabel('w')).path().by(T.id).limit(1)",
        "g.V(0).repeat(outE().inV().simplePath()).until(or(hasId(1000), loops().is(50))).hasId(1000).path().limit(1)",
        "g.V().where(repeat(both().simplePath()).until(hasId(1000))).limit(1)",
        // Back at the beginning, which a simple path never is.
        "g.V(0).repeat(both().simplePath()).until(hasId(0)).path().limit(1)",
    ] {
        let gauges = Arc::new(QueryGauges::default());
        let options = QueryOptions { gauges: Some(gauges.clone()), ..QueryOptions::default() };
        let prepared = database.prepare(script).unwrap();
        let results = database.run_with(&prepared, &Parameters::new(), &options).unwrap().collect().unwrap();
        assert!(results.is_empty(), "{script}: {results:?}");
        let messages = gauges.read().messages;
        assert!(messages < 5_000, "{script}: {messages} messages");
    }
}

/// The vertices that a search has reached, and its paths, count for the memory limit of the query.
#[test]
fn a_search_is_charged_for_what_it_keeps() {
    let database = clique(300);
    let script = "g.V(0).repeat(both().simplePath()).until(hasLabel('w')).path().limit(1)";
    let prepared = database.prepare(script).unwrap();
    let run = |memory_bytes| {
        let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        database.run_with(&prepared, &Parameters::new(), &options).and_then(mangrove::ResultStream::collect)
    };
    assert!(run(64 << 20).unwrap().is_empty());
    let error = run(4 << 10).unwrap_err();
    assert!(error.message().contains("memory"), "{error}");
}
