//! Orders of walks and matches: whatever order is chosen, the answers are those of the written one.
//!
//! The test draws patterns as graphs of variables, over skewed graphs with self-loops and parallel edges. It writes each
//! pattern as walks from several variables and as a `match()`, in random forms. One of many endings follows the pattern.
//! Every form runs in the order in which it is written, in orders that a seed forces, and in the order that statistics
//! choose. All forms of a pattern have the same count.

use mangrove::{Database, Isolation, Parameters, PlanOptions, QueryOptions, TransactionOptions, Value};
use mangrove_gremlin::Terminal;

use super::support::{Random, explained, forced, prepared};

const LABELS: [&str; 3] = ["a", "b", "c"];
const EDGES: [&str; 3] = ["x", "y", "z"];

/// A graph whose first vertices have most of the edges. Numbers `n` are not unique, and some vertices have none.
fn graph(random: &mut Random) -> Database {
    let db = Database::in_memory();
    let catalog = db.catalog();
    let transaction = db.begin().unwrap();
    let mut vertices = Vec::new();
    for (at, label) in LABELS.iter().enumerate() {
        let ids: Vec<_> = (0..4 + random.below(8)).map(|id| ((100 * at + id) as i64).into()).collect();
        vertices.extend(transaction.insert_vertices(catalog.intern_label_text(label), &ids).unwrap());
    }
    let mut numbers = Vec::new();
    for vertex in &vertices {
        if !random.one_in(6) {
            numbers.push((*vertex, Value::I32(random.below(6) as i32)));
        }
    }
    transaction.set_vertex_property("n", &numbers).unwrap();
    random.shuffle(&mut vertices);
    for label in EDGES {
        let mut ends = Vec::new();
        for _ in 0..10 + random.below(20) {
            let from = vertices[random.skewed(vertices.len())];
            let to = if random.one_in(12) { from } else { vertices[random.skewed(vertices.len())] };
            ends.extend(std::iter::repeat_n((from, to), if random.one_in(5) { 2 } else { 1 }));
        }
        let edges = transaction.insert_edges(catalog.intern_label_text(label), &ends).unwrap();
        let mut numbers = Vec::new();
        for edge in edges {
            if !random.one_in(5) {
                numbers.push((edge, Value::I32(random.below(4) as i32)));
            }
        }
        transaction.set_edge_property("w", &numbers).unwrap();
    }
    transaction.commit().unwrap();
    db
}

/// An edge between two variables, followed in a direction.
#[derive(Clone)]
struct Edge {
    from: usize,
    to: usize,
    direction: &'static str,
    label: &'static str,
    /// Its conditions, as steps.
    conditions: &'static str,
}

/// Conditions on edges.
const EDGE_CONDITIONS: [&str; 6] = [
    ".has('w', gt(0))",
    ".has('w', 1)",
    ".has('w').has('w', lt(3))",
    ".hasNot('w')",
    ".hasLabel('x')",
    ".or(__.has('w', 2), __.hasNot('w'))",
];

/// The steps before a pattern, and the fence after them.
#[derive(Clone, Copy)]
struct Beginning {
    walk: &'static str,
    fence: &'static str,
}

impl Beginning {
    fn draw(random: &mut Random) -> Self {
        if random.one_in(2) {
            return Beginning { walk: "", fence: "" };
        }
        let walk = random.of(&["", "", ".hasLabel('a', 'b').both('x')", ".out('y').in('z').has('n', lt(4))"]);
        let fence = random.of(&[".dedup()", ".limit(100000)", ".tail(100000)", ".barrier()", ".dedup().barrier()"]);
        Beginning { walk, fence }
    }
}

/// A variable, a predicate, another variable, and the `by()` of both.
type Pair = (usize, &'static str, usize, &'static str);

/// A question.
struct Pattern {
    /// The steps before those of the pattern.
    beginning: Beginning,
    /// The conditions of each variable, as steps.
    conditions: Vec<String>,
    edges: Vec<Edge>,
    /// Comparisons of two variables: the predicate, and its `by()`.
    pairs: Vec<Pair>,
    /// Tests of one variable, as an argument of `where()`, which may name others; with the variables that it names.
    tests: Vec<(usize, String, Vec<usize>)>,
}

impl Pattern {
    fn draw(random: &mut Random) -> Self {
        let count = 2 + random.below(4);
        let condition = |random: &mut Random| match random.below(7) {
            0..=2 => format!(".hasLabel('{}')", random.of(&LABELS)),
            3 => format!(".has('n', lt({}))", 2 + random.below(4)),
            4 => format!(".hasLabel('{}').has('n', {})", random.of(&LABELS), random.below(5)),
            _ => String::new(),
        };
        let conditions = (0..count).map(|_| condition(random)).collect();
        let edge = |from, to, random: &mut Random| Edge {
            from,
            to,
            direction: random.of(&["out", "in", "both"]),
            label: random.of(&EDGES),
            conditions: if random.one_in(3) { random.of(&EDGE_CONDITIONS) } else { "" },
        };
        let mut edges: Vec<Edge> = (1..count).map(|to| edge(random.below(to), to, random)).collect();
        for _ in 0..random.below(3) {
            edges.push(edge(random.below(count), random.below(count), random));
        }
        let mut pairs = Vec::new();
        while random.one_in(3) {
            let (predicate, by) =
                random.of(&[("neq", ""), ("neq", ""), ("lt", ".by('n')"), ("gte", ".by(id)"), ("eq", ".by('n')")]);
            pairs.push((random.below(count), predicate, random.below(count), by));
        }
        let mut tests = Vec::new();
        if random.one_in(3) {
            let (of, other) = (random.below(count), random.below(count));
            let label = random.of(&EDGES);
            let text = match random.below(8) {
                0 => format!("__.out('{label}')"),
                1 => format!("__.not(__.in('{label}'))"),
                2 => format!("__.both('{label}').count().is(gt(1))"),
                3 => format!("__.not(__.out('{label}').where(eq('v{other}')))"),
                4 => format!("__.select('v{other}').out('{label}').where(eq('v{of}'))"),
                5 => format!("__.as('v{other}').both('{label}').as('v{of}')"),
                6 => format!("__.both('{label}').has('n', gt(1)).where(neq('v{other}'))"),
                _ => format!("__.or(__.values('n').is(gt(2)), __.outE('{label}').inV().where(eq('v{other}')))"),
            };
            let names = if text.contains("'v") { vec![other] } else { Vec::new() };
            tests.push((of, text, names));
        }
        Pattern { beginning: Beginning::draw(random), conditions, edges, pairs, tests }
    }

    /// The steps of a hop along an edge from one of its ends.
    fn hop(edge: &Edge, from: usize, random: &mut Random) -> (String, usize) {
        let (direction, to) = match edge.direction {
            direction if from == edge.from => (direction, edge.to),
            "out" => ("in", edge.from),
            "in" => ("out", edge.from),
            direction => (direction, edge.from),
        };
        let Edge { label, conditions, .. } = edge;
        let hop = match direction {
            direction if conditions.is_empty() => format!("{direction}('{label}')"),
            "out" => format!("outE('{label}'){conditions}.{}V()", random.of(&["in", "other"])),
            "in" => format!("inE('{label}'){conditions}.{}V()", random.of(&["out", "other"])),
            _ if random.one_in(2) => format!("bothE('{label}'){conditions}.otherV()"),
            _ => format!("union(__.outE('{label}'){conditions}.inV(), __.inE('{label}'){conditions}.outV())"),
        };
        (hop, to)
    }

    /// The edges in a random order in which each touches a variable before it, with the variable it is followed from.
    fn in_order(&self, start: usize, random: &mut Random) -> Vec<(Edge, usize)> {
        let (mut left, mut bound, mut ordered) = (self.edges.clone(), vec![start], Vec::new());
        while !left.is_empty() {
            random.shuffle(&mut left);
            let next = left.iter().position(|edge| bound.contains(&edge.from) || bound.contains(&edge.to)).unwrap();
            let edge = left.remove(next);
            // The first variable is the end of no hop, so that a match() begins there.
            let is_bound = bound.contains(&edge.from) && edge.to != start;
            let from = if is_bound || !bound.contains(&edge.to) { edge.from } else { edge.to };
            bound.extend([edge.from, edge.to]);
            ordered.push((edge, from));
        }
        ordered
    }

    /// As a walk from a variable; all variables have names.
    fn walk(&self, random: &mut Random) -> String {
        let start = random.below(self.conditions.len());
        let (Beginning { walk, fence }, conditions) = (self.beginning, &self.conditions[start]);
        // A name from before the fence stays with the rows.
        let text = match random.one_in(3) {
            true => format!("g.V(){walk}.as('v{start}'){fence}{conditions}"),
            false => format!("g.V(){walk}{fence}{conditions}.as('v{start}')"),
        };
        let (pairs, tests) = (self.pairs.clone(), self.tests.clone());
        let mut walk = Walk { text, current: start, bound: vec![start], late: Vec::new(), pairs, tests };
        for (edge, from) in self.in_order(start, random) {
            walk.make_some_tests(random);
            walk.go_to(from);
            let (hop, to) = Self::hop(&edge, from, random);
            walk.text += &format!(".{hop}");
            walk.current = to;
            if walk.bound.contains(&to) {
                if let Some(at) = walk.late.iter().position(|late| *late == to) {
                    walk.late.remove(at);
                    walk.text += &self.conditions[to];
                }
                walk.text += &format!(".where(eq('v{to}'))");
                continue;
            }
            if random.one_in(4) {
                walk.late.push(to);
            } else {
                walk.text += &self.conditions[to];
            }
            walk.text += &format!(".as('v{to}')");
            walk.bound.push(to);
        }
        for late in std::mem::take(&mut walk.late) {
            walk.go_to(late);
            walk.text += &self.conditions[late];
        }
        while !walk.pairs.is_empty() || !walk.tests.is_empty() {
            walk.make_some_tests(random);
        }
        walk.text
    }

    /// As a `match()`, if there is a variable for it to begin at.
    fn matched(&self, random: &mut Random) -> String {
        let has_loop = |of: &usize| self.edges.iter().any(|edge| (edge.from, edge.to) == (*of, *of));
        let mut starts: Vec<usize> = (0..self.conditions.len()).filter(|at| !has_loop(at)).collect();
        random.shuffle(&mut starts);
        let Some(start) = starts.pop() else { return self.walk(random) };
        let mut conditions = self.conditions.clone();
        let mut patterns = Vec::new();
        for (edge, from) in self.in_order(start, random) {
            let (hop, to) = Self::hop(&edge, from, random);
            let inside = if random.one_in(2) { std::mem::take(&mut conditions[from]) } else { String::new() };
            patterns.push(format!("__.as('v{from}'){inside}.{hop}.as('v{to}')"));
        }
        for (at, condition) in conditions.iter().enumerate().filter(|(_, condition)| !condition.is_empty()) {
            patterns.push(format!("__.as('v{at}'){condition}"));
        }
        for (a, predicate, b, by) in &self.pairs {
            patterns.push(format!("__.where('v{a}', {predicate}('v{b}')){by}"));
        }
        let mut after = String::new();
        for (of, test, _) in &self.tests {
            // A test of no edge between two variables may be a pattern, too.
            let negated = test.strip_prefix("__.not(__.out(").and_then(|rest| rest.split_once(").where(eq('v"));
            let other = negated.and_then(|(label, other)| Some((label, other.strip_suffix("')))")?)));
            match other {
                Some((label, other)) if *other != of.to_string() && random.one_in(2) => {
                    patterns.push(format!("__.not(__.as('v{of}').out({label}).as('v{other}'))"));
                }
                _ => after += &format!(".select('v{of}').where({test})"),
            }
        }
        random.shuffle(&mut patterns);
        let Beginning { walk, fence } = self.beginning;
        format!("g.V(){walk}{fence}.match({}){after}", patterns.join(", "))
    }
}

/// A walk that is being written.
struct Walk {
    text: String,
    current: usize,
    bound: Vec<usize>,
    /// The bound variables whose conditions are still to come.
    late: Vec<usize>,
    /// What is not tested yet.
    pairs: Vec<Pair>,
    tests: Vec<(usize, String, Vec<usize>)>,
}

impl Walk {
    fn go_to(&mut self, variable: usize) {
        if self.current != variable {
            self.text += &format!(".select('v{variable}')");
            self.current = variable;
        }
    }

    /// Adds about half of the tests whose variables are bound.
    fn make_some_tests(&mut self, random: &mut Random) {
        for (a, predicate, b, by) in std::mem::take(&mut self.pairs) {
            if ![a, b].iter().all(|end| self.bound.contains(end)) || random.one_in(2) {
                self.pairs.push((a, predicate, b, by));
            } else if random.one_in(2) {
                self.text += &format!(".where('v{a}', {predicate}('v{b}')){by}");
            } else {
                self.go_to(a);
                self.text += &format!(".where({predicate}('v{b}')){by}");
            }
        }
        for (of, test, names) in std::mem::take(&mut self.tests) {
            if !names.iter().chain([&of]).all(|name| self.bound.contains(name)) || random.one_in(2) {
                self.tests.push((of, test, names));
            } else {
                self.go_to(of);
                self.text += &format!(".where({test})");
            }
        }
    }
}

/// The endings: steps that may follow a pattern. They begin at any variable.
const SINKS: &[&str] = &[
    ".count()",
    ".select('v0').dedup().count()",
    ".select('v1').values('n').sum()",
    ".select('v0').groupCount().by('n').unfold()",
    ".select('v0', 'v1').by('n')",
    ".select('v1').out('x').count()",
    ".select('v1').barrier().both('y').dedup().values('n')",
    ".select('v1').local(__.out('y').where(neq('v0')).count()).sum()",
    ".dedup('v0', 'v1').count()",
    ".select('v0').order().by('n', desc).by(id).limit(3).values('n')",
    ".select('v1').outE('z').inV().where(eq('v0')).count()",
    ".select('v0').union(__.out('x'), __.select('v1')).id()",
];

/// Where a traversal runs.
#[derive(Clone, Copy)]
enum Place {
    Alone,
    Transaction(Isolation),
    /// On virtual nodes, by a seed.
    Nodes(u64),
}

/// The answer, sorted.
fn answer(db: &Database, script: &str, options: PlanOptions, place: Place) -> Vec<String> {
    let prepared = prepared(script, Terminal::None, options);
    let parameters = Parameters::new();
    let results = match place {
        Place::Alone => db.run(&prepared, &parameters).and_then(mangrove::ResultStream::collect_bulked),
        Place::Transaction(isolation) => {
            let options = TransactionOptions { isolation, ..TransactionOptions::default() };
            let transaction = db.begin_with(options).unwrap();
            transaction.run(&prepared, &parameters).and_then(mangrove::ResultStream::collect_bulked)
        }
        Place::Nodes(seed) => {
            let transaction = db.begin().unwrap();
            transaction.run_on_nodes(&prepared, &parameters, &QueryOptions::default(), 3, Some(seed))
        }
    };
    let results = results.unwrap_or_else(|error| panic!("{script}: {error}"));
    let shown = |(value, times): (Value, u64)| vec![format!("{value:?}"); times as usize];
    let mut shown: Vec<String> = results.into_iter().flat_map(shown).collect();
    shown.sort();
    shown
}

#[test]
fn no_order_changes_an_answer() {
    let cases = mangrove_testdata::case_count(300);
    let (mut reordered, mut joined, mut of_edges, mut of_segments) = (0, 0, 0, 0);
    for seed in 0..cases {
        let mut random = Random::new(seed);
        let db = graph(&mut random);
        if random.one_in(3) {
            db.create_index(Some("b"), "n", random.one_in(2), false).unwrap();
        }
        db.measure_statistics(&mut || Ok(())).unwrap();
        let pattern = Pattern::draw(&mut random);
        let mut counts = Vec::new();
        for form in 0..3 {
            let text = if form == 2 { pattern.matched(&mut random) } else { pattern.walk(&mut random) };
            counts.push(answer(&db, &format!("{text}.count()"), PlanOptions::NONE, Place::Alone));
            // Forms begin at different variables.
            if pattern.beginning.walk.is_empty() {
                assert_eq!(counts[0], counts[form], "seed {seed}: another form of the same pattern, {text}");
            }
            let script = format!("{text}{}", random.of(SINKS));
            let plain = answer(&db, &script, PlanOptions::NONE, Place::Alone);
            assert_eq!(answer(&db, &script, PlanOptions::default(), Place::Alone), plain, "seed {seed}: {script}");
            for order in 1..=4 {
                let place = match order {
                    2 => Place::Transaction(Isolation::Snapshot),
                    3 => Place::Transaction(Isolation::Serializable),
                    4 => Place::Nodes(seed),
                    _ => Place::Alone,
                };
                let options = forced(seed + order);
                assert_eq!(
                    answer(&db, &script, options, place),
                    plain,
                    "seed {seed}, order {order}: {script}\n{}",
                    explained(&db, &script, options)
                );
            }
            let plan = explained(&db, &script, forced(seed));
            let is_segment = plan.lines().any(|line| line.starts_with("order after") && line.contains("by seed"));
            let is_reordered = is_segment || plan.contains("order: by seed");
            of_segments += usize::from(is_segment);
            reordered += usize::from(is_reordered);
            of_edges += usize::from(is_reordered && plan.contains(" edges "));
            joined += usize::from(plan.contains("join of two walks"));
        }
    }
    assert!(reordered as u64 > cases * 2, "of {} traversals, {reordered} had another order", cases * 3);
    assert!(of_segments as u64 * 2 > cases, "of {} traversals, {of_segments} had segments", cases * 3);
    assert!(of_edges as u64 > cases, "of {} traversals, {of_edges} followed edges that are tested", cases * 3);
    assert!(joined as u64 * 4 > cases, "of {} traversals, {joined} had joins", cases * 3);
}
