//! Searches from both ends, against a plain breadth-first search in the test: on skewed graphs of some dozens of
//! vertices, in several parts, with loops and parallel edges, and conditions on edges and vertices.
//!
//! Which of several shortest paths a search returns is free. So the test compares the length, and follows the path.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use mangrove::{
    Database, Isolation, Parameters, PlanOptions, Prepared, QueryLimits, QueryOptions, Transaction, TransactionOptions,
    UserId, Value, VertexId,
};
use mangrove_graph::Detached;
use mangrove_gremlin::Terminal;
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use mangrove_virtual_nodes::{Habits, LateView};
use rand::prelude::*;
use rand::rngs::StdRng;

struct Edge {
    from: usize,
    to: usize,
    label: &'static str,
    open: bool,
}

struct Graph {
    /// Whether each vertex is safe.
    safe: Vec<bool>,
    edges: Vec<Edge>,
}

/// The id of the first edge.
const EDGES: usize = 1000;

impl Graph {
    /// Endpoints are drawn so that low numbers have most of the edges. Half of the graphs have two parts.
    fn new(random: &mut StdRng) -> Self {
        let size = random.random_range(2..50);
        let parts = random.random_range(1..3);
        let skew = random.random_range(1..5);
        let safe = (0..size).map(|_| random.random_bool(0.8)).collect();
        let end = |random: &mut StdRng| (random.random::<f64>().powi(skew) * size as f64) as usize;
        let mut edges = Vec::new();
        for _ in 0..random.random_range(0..2 * size) {
            let (from, to) = (end(random), end(random));
            if from % parts == to % parts {
                let label = if random.random_bool(0.8) { "x" } else { "y" };
                edges.push(Edge { from, to, label, open: random.random_bool(0.8) });
            }
        }
        Graph { safe, edges }
    }

    fn database(&self) -> Database {
        let database = Database::in_memory();
        let mut script = String::from("g");
        for (n, safe) in self.safe.iter().enumerate() {
            script += &format!(".addV('v').property(T.id, {n}).property('safe', {safe})");
        }
        database.query(&script).unwrap().collect().unwrap();
        for (at, Edge { from, to, label, open }) in self.edges.iter().enumerate() {
            let id = EDGES + at;
            let script =
                format!("g.addE('{label}').from(V({from})).to(V({to})).property(T.id, {id}).property('open', {open})");
            database.query(&script).unwrap().collect().unwrap();
        }
        database
    }
}

struct Case {
    direction: &'static str,
    label: &'static str,
    over_edges: bool,
    open: bool,
    safe: bool,
    bound: Option<usize>,
    from: usize,
    to: Vec<usize>,
}

impl Case {
    fn new(random: &mut StdRng, size: usize) -> Self {
        // One vertex more than there are.
        let vertex = |random: &mut StdRng| random.random_range(0..=size);
        let targets = if random.random_bool(0.7) { 1 } else { random.random_range(2..5) };
        let over_edges = random.random_bool(0.5);
        Case {
            direction: ["out", "in", "both"][random.random_range(0..3)],
            label: ["", "'x'"][random.random_range(0..2)],
            over_edges,
            open: over_edges && random.random_bool(0.5),
            safe: random.random_bool(0.4),
            bound: random.random_bool(0.3).then(|| random.random_range(1..6)),
            from: vertex(random),
            to: (0..targets).map(|_| vertex(random)).collect(),
        }
    }

    fn script(&self, random: &mut StdRng) -> String {
        let Case { direction, label, from, .. } = self;
        let to = self.to.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        let open = if self.open { ".has('open', true)" } else { "" };
        let hop = match (self.over_edges, *direction) {
            (false, _) => format!("__.{direction}({label})"),
            (true, "both") => format!("__.bothE({label}){open}.otherV()"),
            (true, "out") => format!("__.outE({label}){open}.inV()"),
            (true, _) => format!("__.inE({label}){open}.outV()"),
        };
        let safe = if self.safe { ".has('safe', true)" } else { "" };
        let end = match self.bound {
            None if random.random_bool(0.3) => format!("emit(hasId({to}))"),
            None => format!("until(hasId({to}))"),
            Some(n) if random.random_bool(0.5) => format!("emit(hasId({to})).times({n}).hasId({to})"),
            Some(n) => format!("until(or(hasId({to}), loops().is({n}))).hasId({to})"),
        };
        format!("g.V({from}).repeat({hop}{safe}.simplePath()).{end}.path().limit(1)")
    }

    /// The ends of an edge in the directions in which the search may follow it.
    fn ways(&self, graph: &Graph, edge: &Edge) -> Vec<(usize, usize)> {
        let passes = |to: usize| !self.safe || graph.safe[to];
        let (out, back) = ((edge.from, edge.to), (edge.to, edge.from));
        if self.label == "'x'" && edge.label != "x" || self.open && !edge.open {
            return Vec::new();
        }
        let ways = match self.direction {
            "out" => vec![out],
            "in" => vec![back],
            _ => vec![out, back],
        };
        ways.into_iter().filter(|(_, to)| passes(*to)).collect()
    }

    /// The number of edges to the nearest target.
    fn distance(&self, graph: &Graph) -> Option<usize> {
        let mut next: HashMap<usize, Vec<usize>> = HashMap::new();
        for edge in &graph.edges {
            self.ways(graph, edge).into_iter().for_each(|(from, to)| next.entry(from).or_default().push(to));
        }
        let (mut distances, mut queue) = (HashMap::from([(self.from, 0)]), VecDeque::from([self.from]));
        while let Some(at) = queue.pop_front() {
            let distance = distances[&at];
            if distance > 0 && self.to.contains(&at) {
                return Some(distance).filter(|distance| self.bound.is_none_or(|bound| *distance <= bound));
            }
            for to in next.get(&at).into_iter().flatten() {
                if !distances.contains_key(to) {
                    distances.insert(*to, distance + 1);
                    queue.push_back(*to);
                }
            }
        }
        None
    }

    /// Fails unless the ids are a path of this many edges from the beginning to a target.
    fn check(&self, graph: &Graph, path: &[i64], distance: usize) {
        let step = if self.over_edges { 2 } else { 1 };
        assert_eq!(path.len(), 1 + step * distance, "{path:?}");
        assert_eq!(path[0], self.from as i64, "{path:?}");
        assert!(self.to.iter().any(|to| path.last() == Some(&(*to as i64))), "{path:?}");
        for objects in path.windows(step + 1).step_by(step) {
            let way = (objects[0] as usize, objects[step] as usize);
            let leads = |edge: &Edge| self.ways(graph, edge).contains(&way);
            match self.over_edges {
                true => assert!(leads(&graph.edges[objects[1] as usize - EDGES]), "{objects:?} of {path:?}"),
                false => assert!(graph.edges.iter().any(leads), "{way:?} of {path:?}"),
            }
        }
    }
}

fn prepared(script: &str, options: PlanOptions) -> Prepared {
    match parse_one(script, &ParseOptions::default()) {
        Ok(Statement::Traversal { bytecode, .. }) => {
            Prepared::with_options(&bytecode, Terminal::None, options).unwrap()
        }
        other => panic!("{script}: {other:?}"),
    }
}

fn ids(path: &Value) -> Vec<i64> {
    let Value::Path(path) = path else { panic!("{path:?} is no path") };
    let id = |object: &Value| match object {
        Value::Detached(element) => match &**element {
            Detached::Vertex { id, .. } | Detached::Edge { id, .. } => mangrove_graph::numeric::integer(id).unwrap(),
            other => panic!("{other:?}"),
        },
        other => panic!("{other:?}"),
    };
    path.objects.iter().map(id).collect()
}

/// Runs over a view whose reads are late.
fn run_late(database: &Database, prepared: &Prepared, seed: u64) -> Vec<Value> {
    let habits = Habits { at_hand: 0.3, full: 0.1, early: 0.2, again: 0.2, fails: 0.0, room: 0 };
    let mut transaction = database.begin_read().unwrap();
    let mut view = None;
    transaction.read_instead(|whole| view.insert(Arc::new(LateView::new(whole, habits, seed))).clone());
    let view = view.expect("the view was made");
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    let results = transaction.run_late(prepared, &parameters, &options, view.reader(), seed).unwrap();
    results.into_iter().map(|(path, _)| path).collect()
}

fn run(database: &Database, transaction: &Transaction, script: &str, way: usize, seed: u64) -> Vec<Value> {
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    let plan = match way {
        // From one end.
        0 => PlanOptions { fuse: false, ..PlanOptions::default() },
        _ => PlanOptions::default(),
    };
    let prepared = prepared(script, plan);
    let results = match way {
        0 | 1 => return transaction.run(&prepared, &parameters).unwrap().collect().unwrap(),
        2 => transaction.run_helped(&prepared, &parameters, &options, seed),
        3 => return run_late(database, &prepared, seed),
        _ => transaction.run_on_nodes(&prepared, &parameters, &options, 3, Some(seed)),
    };
    results.unwrap().into_iter().map(|(path, _)| path).collect()
}

#[test]
fn a_path_from_both_ends_is_a_shortest_one() {
    let (mut far, mut none) = (0, 0);
    for seed in 1..=mangrove_testdata::case_count(150) {
        let random = &mut StdRng::seed_from_u64(seed);
        let graph = Graph::new(random);
        let database = graph.database();
        for isolation in [Isolation::Serializable, Isolation::Snapshot] {
            let transaction =
                database.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() }).unwrap();
            for _ in 0..10 {
                let case = Case::new(random, graph.safe.len());
                let script = case.script(random);
                let explained = database.explain(&script).unwrap();
                assert!(explained.contains("search from both ends"), "{script}\n{explained}");
                let distance = if case.from < graph.safe.len() { case.distance(&graph) } else { None };
                let (is_far, is_none) = (distance.is_some_and(|distance| distance > 3), distance.is_none());
                (far, none) = (far + usize::from(is_far), none + usize::from(is_none));
                for way in 0..5 {
                    let found = run(&database, &transaction, &script, way, seed);
                    assert_eq!(found.len(), usize::from(distance.is_some()), "seed {seed}, way {way}: {script}");
                    if let ([path], Some(distance)) = (&found[..], distance) {
                        println!("seed {seed}, way {way}: {script}");
                        case.check(&graph, &ids(path), distance);
                    }
                }
            }
        }
    }
    assert!(far > 20 && none > 20, "{far} long paths, {none} without a path");
}

/// `layers` hops lead from vertex 0 to vertex 1, each over so many vertices. A third of the vertices lead nowhere.
fn wide(layers: usize, width: usize) -> Database {
    let database = Database::in_memory();
    let (catalog, transaction) = (database.catalog(), database.begin().unwrap());
    let count = (2 + layers * width) as i64;
    let user_ids: Vec<UserId> = (0..count).map(Into::into).collect();
    let vertices = transaction.insert_vertices(catalog.intern_label_text("v"), &user_ids).unwrap();
    let layer = |at: usize| &vertices[2 + at * width..2 + (at + 1) * width];
    let mut edges: Vec<(VertexId, VertexId)> = layer(0).iter().map(|to| (vertices[0], *to)).collect();
    for at in 1..layers {
        let pairs = layer(at - 1).iter().flat_map(|from| layer(at).iter().map(|to| (*from, *to)));
        edges.extend(pairs);
    }
    edges.extend(layer(layers - 1).iter().map(|from| (*from, vertices[1])));
    transaction.insert_edges(catalog.intern_label_text("x"), &edges).unwrap();
    transaction.commit().unwrap();
    database
}

fn search(from: usize, to: usize) -> String {
    format!("g.V({from}).repeat(both().simplePath()).until(hasId({to})).path().limit(1)")
}

/// A search that is over on one side does not go on with the other: what the other side keeps stays small.
#[test]
fn a_search_ends_when_either_side_has_met_everything() {
    let database = wide(4, 200);
    database.query("g.addV('v').property(T.id, 100000)").unwrap().collect().unwrap();
    for (from, to) in [(0, 100_000), (100_000, 0), (0, 200_000)] {
        let limits = QueryLimits { memory_bytes: 20 << 10, ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        let prepared = database.prepare(&search(from, to)).unwrap();
        let results = database.run_with(&prepared, &Parameters::new(), &options).unwrap().collect().unwrap();
        assert!(results.is_empty(), "{from} to {to}: {results:?}");
    }
}

/// What both sides have reached counts for the memory limit.
#[test]
fn both_sides_are_charged() {
    let database = wide(6, 200);
    let run = |memory_bytes| {
        let limits = QueryLimits { memory_bytes, ..QueryLimits::default() };
        let options = QueryOptions { limits, ..QueryOptions::default() };
        let prepared = database.prepare(&search(0, 1)).unwrap();
        database.run_with(&prepared, &Parameters::new(), &options).and_then(mangrove::ResultStream::collect)
    };
    assert_eq!(run(64 << 20).unwrap().len(), 1);
    let error = run(16 << 10).unwrap_err();
    assert!(error.message().contains("memory"), "{error}");
}

/// A chain 0 → 1 → … → 6, from which a serializable transaction writes the length of the way to vertex 6.
#[test]
fn an_edge_that_makes_a_shorter_path_conflicts() {
    for (from, to, conflicts) in [(0, 5, true), (1, 6, true), (2, 5, true), (20, 21, false)] {
        let database = Database::in_memory();
        let run = |script: &str| database.query(script).unwrap().collect().unwrap();
        run("g.addV('v').property(T.id, 20).addV('v').property(T.id, 21)");
        for n in 0..7 {
            run(&format!("g.addV('v').property(T.id, {n})"));
        }
        for n in 1..7 {
            run(&format!("g.addE('x').from(V({})).to(V({n}))", n - 1));
        }
        let transaction = database.begin().unwrap();
        let script = "g.V(0).repeat(out('x').simplePath()).until(hasId(6)).path().limit(1)";
        assert!(database.explain(script).unwrap().contains("search from both ends"));
        assert_eq!(transaction.query(script).unwrap().collect().unwrap().len(), 1);
        transaction.query("g.addV('way').property('length', 6)").unwrap().collect().unwrap();
        run(&format!("g.addE('x').from(V({from})).to(V({to}))"));
        assert_eq!(transaction.commit().is_err(), conflicts, "an edge from {from} to {to}");
    }
}

/// Targets are found by every value that `hasId()` takes for their id, in the search as in a filter.
#[test]
fn targets_are_named_by_numbers_of_any_type_by_vertices_and_by_parameters() {
    let database = wide(3, 5);
    for id in ["1", "1L", "1.0", "1.0d", "1.0m", "1n", "1, 100", "1, 1", "within(1, 100)"] {
        let script = format!("g.V(0).repeat(both().simplePath()).until(hasId({id})).path().count(local).limit(1)");
        assert!(database.explain(&script).unwrap().contains("search from both ends"), "{id}");
        let found = database.query(&script).unwrap().collect().unwrap();
        assert_eq!(found, [Value::I64(5)], "{id}");
    }
    let prepared = database.prepare("g.V(0).repeat(both().simplePath()).until(hasId(x)).path().limit(1)").unwrap();
    let run = |value: &Value| {
        let parameters: Parameters = [("x".into(), value.clone())].into_iter().collect();
        database.run(&prepared, &parameters).unwrap().collect().unwrap()
    };
    for value in [Value::I32(1), Value::I64(1), Value::F64(1.0)] {
        assert_eq!(run(&value).len(), 1, "{value:?}");
    }
    for value in [Value::I32(100), Value::F64(1.5), Value::from("1")] {
        assert!(run(&value).is_empty(), "{value:?}");
    }
}
