//! Random graphs, searches in them, and a plain breadth-first search.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use mangrove::{
    Database, Isolation, Parameters, PlanOptions, Prepared, QueryOptions, Transaction, TransactionOptions, Value,
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

pub struct Graph {
    pub vertices: Vec<Vertex>,
    edges: Vec<Edge>,
}

pub struct Vertex {
    pub label: &'static str,
    safe: bool,
    /// The name is an `n` and this number.
    pub name: usize,
    pub code: usize,
}

/// The id of the first edge.
const EDGES: usize = 1000;

impl Graph {
    /// Endpoints are drawn so that low numbers have most of the edges. Half of the graphs have two parts.
    pub fn new(random: &mut StdRng, size: usize) -> Self {
        let parts = random.random_range(1..3);
        let skew = random.random_range(1..5);
        // In a third of the graphs, a name is that of one vertex; in another third, it is that of many.
        let names = match random.random_range(0..3) {
            0 => size,
            1 => random.random_range(1..size + 1),
            _ => random.random_range(1..4).min(size),
        };
        let vertex = |number: usize| Vertex {
            label: if random.random_bool(0.8) { "v" } else { "w" },
            safe: random.random_bool(0.8),
            name: number % names,
            code: random.random_range(0..8),
        };
        let vertices = (0..size).map(vertex).collect();
        let end = |random: &mut StdRng| (random.random::<f64>().powi(skew) * size as f64) as usize;
        let mut edges = Vec::new();
        for _ in 0..random.random_range(0..2 * size) {
            let (from, to) = (end(random), end(random));
            if from % parts == to % parts {
                let label = if random.random_bool(0.8) { "x" } else { "y" };
                edges.push(Edge { from, to, label, open: random.random_bool(0.8) });
            }
        }
        Graph { vertices, edges }
    }

    pub fn database(&self) -> Database {
        let database = Database::in_memory();
        let mut script = String::from("g");
        for (n, Vertex { label, safe, name, code }) in self.vertices.iter().enumerate() {
            script += &format!(".addV('{label}').property(T.id, {n}).property('safe', {safe})");
            script += &format!(".property('name', 'n{name}').property('code', {code})");
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

/// Vertices to search for.
pub struct Target {
    /// The conditions that they meet.
    pub conditions: String,
    pub vertices: Vec<usize>,
}

/// A search.
pub struct Case {
    direction: &'static str,
    label: &'static str,
    over_edges: bool,
    open: bool,
    safe: bool,
    bound: Option<usize>,
    from: usize,
    pub to: Target,
}

impl Target {
    /// Vertices with some ids. One more vertex may be named than there are.
    pub fn ids(random: &mut StdRng, size: usize) -> Self {
        let count = if random.random_bool(0.7) { 1 } else { random.random_range(2..5) };
        let vertices: Vec<usize> = (0..count).map(|_| random.random_range(0..=size)).collect();
        let ids = vertices.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        Target { conditions: format!("hasId({ids})"), vertices }
    }
}

impl Case {
    pub fn new(random: &mut StdRng, size: usize, to: Target) -> Self {
        let over_edges = random.random_bool(0.5);
        Case {
            direction: ["out", "in", "both"][random.random_range(0..3)],
            label: ["", "'x'"][random.random_range(0..2)],
            over_edges,
            open: over_edges && random.random_bool(0.5),
            safe: random.random_bool(0.4),
            bound: random.random_bool(0.3).then(|| random.random_range(1..6)),
            // One vertex more than there are.
            from: random.random_range(0..=size),
            to,
        }
    }

    pub fn script(&self, random: &mut StdRng) -> String {
        let Case { direction, label, from, .. } = self;
        let to = &self.to.conditions;
        let open = if self.open { ".has('open', true)" } else { "" };
        let hop = match (self.over_edges, *direction) {
            (false, _) => format!("__.{direction}({label})"),
            (true, "both") => format!("__.bothE({label}){open}.otherV()"),
            (true, "out") => format!("__.outE({label}){open}.inV()"),
            (true, _) => format!("__.inE({label}){open}.outV()"),
        };
        let safe = if self.safe { ".has('safe', true)" } else { "" };
        let end = match self.bound {
            None if random.random_bool(0.3) => format!("emit({to})"),
            None => format!("until({to})"),
            Some(n) if random.random_bool(0.5) => format!("emit({to}).times({n}).{to}"),
            Some(n) => format!("until(or({to}, loops().is({n}))).{to}"),
        };
        format!("g.V({from}).repeat({hop}{safe}.simplePath()).{end}.path().limit(1)")
    }

    /// True if the conditions of the target are tested again after the loop.
    pub fn is_tested_again(&self) -> bool {
        self.bound.is_some()
    }

    /// The ends of an edge in the directions in which the search may follow it.
    fn ways(&self, graph: &Graph, edge: &Edge) -> Vec<(usize, usize)> {
        let passes = |to: usize| !self.safe || graph.vertices[to].safe;
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
    pub fn distance(&self, graph: &Graph) -> Option<usize> {
        if self.from >= graph.vertices.len() {
            return None;
        }
        let mut next: HashMap<usize, Vec<usize>> = HashMap::new();
        for edge in &graph.edges {
            self.ways(graph, edge).into_iter().for_each(|(from, to)| next.entry(from).or_default().push(to));
        }
        let (mut distances, mut queue) = (HashMap::from([(self.from, 0)]), VecDeque::from([self.from]));
        while let Some(at) = queue.pop_front() {
            let distance = distances[&at];
            if distance > 0 && self.to.vertices.contains(&at) {
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

    /// Fails unless the ids are a path from the beginning to a target. It has this many edges, or more unless it is to be
    /// a shortest one.
    pub fn check(&self, graph: &Graph, path: &[i64], distance: usize, is_shortest: bool) {
        let step = if self.over_edges { 2 } else { 1 };
        let edges = (path.len() - 1) / step;
        assert_eq!(path.len(), 1 + step * edges, "{path:?}");
        assert!(edges == distance || edges > distance && !is_shortest, "{path:?} of {distance} edges");
        assert!(self.bound.is_none_or(|bound| edges <= bound), "{path:?}");
        assert_eq!(path[0], self.from as i64, "{path:?}");
        assert!(self.to.vertices.iter().any(|to| path.last() == Some(&(*to as i64))), "{path:?}");
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

/// Runs random searches for the targets that `draw` draws, in every way, and checks what they find. Calls `each` with the
/// plan of each, its case and the number of edges to the nearest target. It returns true if the first path must be a
/// shortest one in every way. It may be a longer one if messages overtake each other, as those of a search from one end
/// do, or at a test after the loop.
pub fn check_searches(
    random: &mut StdRng,
    (graph, database, seed): (&Graph, &Database, u64),
    draw: &dyn Fn(&mut StdRng) -> Target,
    each: &mut dyn FnMut(&str, &Case, Option<usize>) -> bool,
) {
    for isolation in [Isolation::Serializable, Isolation::Snapshot] {
        let transaction =
            database.begin_with(TransactionOptions { isolation, ..TransactionOptions::default() }).unwrap();
        for _ in 0..10 {
            let to = draw(random);
            let case = Case::new(random, graph.vertices.len(), to);
            let script = case.script(random);
            let distance = case.distance(graph);
            let is_shortest = each(&database.explain(&script).unwrap(), &case, distance);
            for way in 0..5 {
                let found = run(database, &transaction, &script, way, seed);
                assert_eq!(found.len(), usize::from(distance.is_some()), "seed {seed}, way {way}: {script}");
                if let ([path], Some(distance)) = (&found[..], distance) {
                    println!("seed {seed}, way {way}: {script}");
                    case.check(graph, &ids(path), distance, way < 2 || is_shortest);
                }
            }
        }
    }
}
