//! Counts of patterns without rows, of all matches and of those of each vertex: they are those of the rows.
//!
//! The test draws patterns that are trees of hops, with conditions, optional hops, tests of degrees, and comparisons of
//! variables, over skewed graphs with self-loops and parallel edges. It writes each pattern as walks in random forms, which
//! have the same count. Every form runs as it is written, in ways to count that a seed forces, and in the way that statistics
//! choose: alone, with helpers, on several nodes, and in a transaction that has changed the graph.

use mangrove::{Database, Isolation, Parameters, PlanOptions, QueryOptions, TransactionOptions, Value};
use mangrove_gremlin::Terminal;

use super::support::{Random, explained, forced, prepared};

const LABELS: [&str; 2] = ["a", "b"];
const EDGES: [&str; 2] = ["x", "y"];

/// A graph whose first vertices have most of the edges. A wide one has several pages of a label, with some edges between
/// them.
fn graph(random: &mut Random, is_wide: bool) -> Database {
    let db = Database::in_memory();
    let catalog = db.catalog();
    let transaction = db.begin().unwrap();
    let mut vertices = Vec::new();
    for (at, label) in LABELS.iter().enumerate() {
        let count = if is_wide { 1_500 } else { 4 + random.below(8) };
        let ids: Vec<_> = (0..count).map(|id| ((10_000 * at + id) as i64).into()).collect();
        vertices.extend(transaction.insert_vertices(catalog.intern_label_text(label), &ids).unwrap());
    }
    let numbers: Vec<_> = vertices.iter().map(|vertex| (*vertex, Value::I32(random.below(6) as i32))).collect();
    transaction.set_vertex_property("n", &numbers).unwrap();
    random.shuffle(&mut vertices);
    if is_wide {
        vertices.truncate(60);
    }
    for label in EDGES {
        let mut ends = Vec::new();
        for _ in 0..10 + random.below(25) {
            let from = vertices[random.skewed(vertices.len())];
            let to = if random.one_in(10) { from } else { vertices[random.skewed(vertices.len())] };
            ends.extend(std::iter::repeat_n((from, to), if random.one_in(5) { 2 } else { 1 }));
        }
        transaction.insert_edges(catalog.intern_label_text(label), &ends).unwrap();
    }
    transaction.commit().unwrap();
    db
}

/// A hop between two variables, seen from the first.
#[derive(Clone, Copy)]
struct Hop {
    from: usize,
    to: usize,
    direction: &'static str,
    label: &'static str,
}

impl Hop {
    /// The step from one of its ends.
    fn step(&self, from: usize) -> String {
        let direction = match self.direction {
            direction if from == self.from => direction,
            "out" => "in",
            "in" => "out",
            direction => direction,
        };
        format!("{direction}('{}')", self.label)
    }
}

/// A comparison of two variables.
#[derive(Clone, Copy)]
enum Comparison {
    Differ(usize, usize),
    /// A hop from the first to the second is there, or is not.
    Closing(Hop, bool),
}

/// A question.
struct Pattern {
    conditions: Vec<String>,
    hops: Vec<Hop>,
    optional: Vec<Hop>,
    comparisons: Vec<Comparison>,
    /// Hops that a variable has, or has not.
    tests: Vec<(Hop, bool)>,
}

impl Pattern {
    fn draw(random: &mut Random) -> Self {
        let count = 2 + random.below(4);
        let condition = |random: &mut Random| match random.below(8) {
            0..=2 => format!(".hasLabel('{}')", random.of(&LABELS)),
            3 => ".hasLabel('a', 'b')".to_owned(),
            4 => format!(".has('n', lt({}))", 2 + random.below(4)),
            _ => String::new(),
        };
        let conditions = (0..count).map(|_| condition(random)).collect();
        let hop = |from, to, random: &mut Random| Hop {
            from,
            to,
            direction: random.of(&["out", "in", "both", "both"]),
            label: random.of(&EDGES),
        };
        // Mostly chains: variables that are compared are two or three hops apart.
        let near = |to: usize, random: &mut Random| if random.one_in(3) { random.below(to) } else { to - 1 };
        let hops: Vec<Hop> = (1..count).map(|to| hop(near(to, random), to, random)).collect();
        let mut optional = Vec::new();
        while random.one_in(4) {
            optional.push(hop(random.below(count), 0, random));
        }
        let mut comparisons = Vec::new();
        let (a, b) = (random.below(count), random.below(count));
        match random.below(6) {
            0 | 1 => comparisons.push(Comparison::Differ(a, b)),
            2 | 3 => {
                let mut closing = hop(a, b, random);
                if random.one_in(2) {
                    // As one of the hops, by which it is often not there.
                    closing.label = hops[0].label;
                }
                comparisons.push(Comparison::Closing(closing, random.one_in(3)));
                if random.one_in(2) {
                    comparisons.push(Comparison::Differ(if random.one_in(2) { a } else { random.below(count) }, b));
                }
            }
            _ => {}
        }
        let mut tests = Vec::new();
        while random.one_in(4) {
            tests.push((hop(random.below(count), 0, random), random.one_in(2)));
        }
        Pattern { conditions, hops, optional, comparisons, tests }
    }

    /// The hops of the pattern, with all rows that they make.
    fn without_tests(&self) -> Pattern {
        let conditions = self.conditions.iter().map(|_| String::new()).collect();
        let (hops, optional) = (self.hops.clone(), self.optional.clone());
        Pattern { conditions, hops, optional, comparisons: Vec::new(), tests: Vec::new() }
    }

    /// As a walk from a variable.
    fn walk(&self, random: &mut Random) -> String {
        let start = random.below(self.conditions.len());
        let mut text = format!("g.V(){}.as('v{start}')", self.conditions[start]);
        let (mut hops, mut bound, mut current) = (self.hops.clone(), vec![start], Some(start));
        let mut lists = 0;
        let go_to = |text: &mut String, current: &mut Option<usize>, to: usize| {
            if *current != Some(to) {
                *text += &format!(".select('v{to}')");
                *current = Some(to);
            }
        };
        let mut later: Vec<Part> = self.optional.iter().map(|hop| Part::Optional(*hop)).collect();
        later.extend(self.comparisons.iter().map(|comparison| Part::Comparison(*comparison)));
        later.extend(self.tests.iter().map(|(hop, is_there)| Part::Test(*hop, *is_there)));
        while !hops.is_empty() || !later.is_empty() {
            if random.one_in(6) {
                text += ".barrier()";
            }
            random.shuffle(&mut later);
            let is_ready = |part: &Part| part.reads().iter().all(|variable| bound.contains(variable));
            if (hops.is_empty() || random.one_in(2))
                && let Some(at) = later.iter().position(is_ready)
            {
                match later.remove(at) {
                    Part::Optional(hop) => {
                        go_to(&mut text, &mut current, hop.from);
                        text += &format!(".optional(__.{})", hop.step(hop.from));
                        current = None;
                    }
                    Part::Test(hop, is_there) => {
                        go_to(&mut text, &mut current, hop.from);
                        let step = if is_there { "where" } else { "not" };
                        text += &format!(".{step}(__.{})", hop.step(hop.from));
                    }
                    Part::Comparison(Comparison::Differ(a, b)) => {
                        let (a, b) = if random.one_in(2) { (a, b) } else { (b, a) };
                        go_to(&mut text, &mut current, a);
                        text += &format!(".where(neq('v{b}'))");
                    }
                    Part::Comparison(Comparison::Closing(hop, is_there)) => {
                        let (a, b) = if random.one_in(2) { (hop.from, hop.to) } else { (hop.to, hop.from) };
                        if random.one_in(2) {
                            go_to(&mut text, &mut current, a);
                            let step = if is_there { "where" } else { "not" };
                            text += &format!(".{step}(__.{}.where(eq('v{b}')))", hop.step(a));
                        } else {
                            lists += 1;
                            go_to(&mut text, &mut current, a);
                            text += &format!(".map(__.{}.fold()).as('l{lists}')", hop.step(a));
                            current = None;
                            go_to(&mut text, &mut current, b);
                            let test = if is_there { "within" } else { "without" };
                            text += &format!(".where({test}('l{lists}'))");
                        }
                    }
                }
                continue;
            }
            random.shuffle(&mut hops);
            let Some(at) = hops.iter().position(|hop| bound.contains(&hop.from) || bound.contains(&hop.to)) else {
                continue;
            };
            let hop = hops.remove(at);
            let (from, to) = if bound.contains(&hop.from) { (hop.from, hop.to) } else { (hop.to, hop.from) };
            go_to(&mut text, &mut current, from);
            text += &format!(".{}{}.as('v{to}')", hop.step(from), self.conditions[to]);
            current = Some(to);
            bound.push(to);
        }
        text
    }
}

/// A part of a pattern that comes after the variables that it reads.
#[derive(Clone, Copy)]
enum Part {
    Optional(Hop),
    Test(Hop, bool),
    Comparison(Comparison),
}

impl Part {
    fn reads(&self) -> Vec<usize> {
        match self {
            Part::Optional(hop) | Part::Test(hop, _) => vec![hop.from],
            Part::Comparison(Comparison::Differ(a, b)) => vec![*a, *b],
            Part::Comparison(Comparison::Closing(hop, _)) => vec![hop.from, hop.to],
        }
    }
}

/// The endings: what follows the count does not matter.
const SINKS: [&str; 3] = [".count()", ".count().as('n').select('n').is(gte(0))", ".count().fold()"];

/// Endings that read the vertices of a variable, each as often as it has matches.
const VERTEX_SINKS: [&str; 6] = [
    ".groupCount().by('n').order(local).by(keys)",
    ".values('n').sum()",
    ".dedup().count()",
    ".order().by('n').by(id).limit(4).id().fold()",
    ".group().by(label).by(__.values('n').mean()).order(local).by(keys)",
    ".has('n', gt(1)).both('y').as('z').groupCount().by(__.select('z').label()).order(local).by(keys)",
];

/// Changes that leave tails, ended edges and deleted vertices.
const CHANGES: [&str; 5] = [
    "g.V().has('n', lt(3)).limit(5).as('v').addE('x').to(__.V().limit(1)).addE('y').from('v').to('v')",
    "g.addV('a').property('n', 2).as('v').addE('x').to(__.V().hasLabel('a').limit(1))",
    "g.E().hasLabel('y').limit(4).drop()",
    "g.V().hasLabel('b').has('n', 5).limit(1).drop()",
    "g.V().has('n', 2).limit(3).property('n', 4)",
];

/// Who works on a query.
#[derive(Clone, Copy, Debug)]
enum Workers {
    One,
    Helped(u64),
    Nodes(u64),
}

fn answer(transaction: &mangrove::Transaction, script: &str, options: PlanOptions, workers: Workers) -> String {
    let (prepared, parameters) = (prepared(script, Terminal::None, options), Parameters::new());
    let query = QueryOptions::default();
    let results = match workers {
        Workers::One => transaction.run(&prepared, &parameters).and_then(mangrove::ResultStream::collect_bulked),
        Workers::Helped(seed) => transaction.run_helped(&prepared, &parameters, &query, seed),
        Workers::Nodes(seed) => transaction.run_on_nodes(&prepared, &parameters, &query, 3, Some(seed)),
    };
    format!("{:?}", results.unwrap_or_else(|error| panic!("{script}: {error}")))
}

/// The most rows of a pattern whose rows are made.
const ROWS_MAX: u64 = 200_000;

/// The number in the answer to a count.
fn number(answer: &str) -> u64 {
    let digits = answer.split(['(', ')']).find(|part| part.starts_with(|c: char| c.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).unwrap_or_else(|| panic!("{answer} is no count"))
}

#[test]
fn a_count_without_rows_is_that_of_the_rows() {
    let cases = mangrove_testdata::case_count(400);
    let (mut counted, mut of_comparisons, mut by_vertex, mut compared) = (0, 0, 0, 0);
    let first = mangrove_testdata::first_seed(0);
    for seed in first..first + cases {
        let mut random = Random::new(seed);
        let is_wide = random.one_in(20);
        let db = graph(&mut random, is_wide);
        db.measure_statistics(&mut || Ok(())).unwrap();
        let pattern = Pattern::draw(&mut random);
        let isolation = random.of(&[Isolation::Snapshot, Isolation::Serializable]);
        let options = TransactionOptions { isolation, ..TransactionOptions::default() };
        let transaction = db.begin_with(options).unwrap();
        if random.one_in(2) {
            for change in CHANGES {
                transaction.query(change).unwrap().collect().unwrap();
            }
        }
        // Hops and optional hops alone are counted without a row. No form makes more rows.
        let rows = format!("{}.count()", pattern.without_tests().walk(&mut Random::new(seed)));
        if number(&answer(&transaction, &rows, PlanOptions::default(), Workers::One)) > ROWS_MAX {
            continue;
        }
        compared += 1;
        let mut counts = Vec::new();
        for form in 0..3 {
            let text = pattern.walk(&mut random);
            counts.push(answer(&transaction, &format!("{text}.count()"), PlanOptions::NONE, Workers::One));
            assert_eq!(counts[0], counts[form], "seed {seed}: another form of the same pattern, {text}");
            let at_vertex = text.rsplit('.').next().is_some_and(|last| last.starts_with("as('v"));
            let back = match at_vertex && random.one_in(2) {
                true => String::new(),
                false => format!(".select('v{}')", random.below(pattern.conditions.len())),
            };
            for script in [format!("{text}{}", random.of(&SINKS)), format!("{text}{back}{}", random.of(&VERTEX_SINKS))]
            {
                every_way_agrees(&db, &transaction, &script, (seed, is_wide));
            }
            let ways = |ending: &str| explained(&db, &format!("{text}{ending}"), forced(1));
            let without_rows = ways(".count()").contains("count: by seed");
            counted += usize::from(without_rows);
            of_comparisons += usize::from(without_rows && !pattern.comparisons.is_empty());
            by_vertex += usize::from(ways(&format!("{back}.groupCount()")).contains("count a pattern by vertex"));
        }
    }
    assert!(compared * 20 > cases * 19, "of {cases} patterns, {compared} make few rows");
    let forms = compared as usize * 3;
    assert!(counted * 5 > forms * 2, "of {forms} traversals, {counted} were counted without rows");
    assert!(of_comparisons * 10 > forms, "of {forms} traversals, {of_comparisons} were so that compare variables");
    assert!(by_vertex * 3 > forms, "of {forms} traversals, {by_vertex} had a row for each vertex");
}

/// Runs a traversal with a row for each match, in the way to count that the planner chooses, and in four ways that seeds
/// force: on one thread, with helpers, and on several nodes. All results are the same.
fn every_way_agrees(db: &Database, transaction: &mangrove::Transaction, script: &str, (seed, is_wide): (u64, bool)) {
    let plain = answer(transaction, script, PlanOptions::NONE, Workers::One);
    assert_eq!(answer(transaction, script, PlanOptions::default(), Workers::One), plain, "{seed}: {script}");
    for way in 0..4 {
        let options = forced(2 * (seed + way) + 1);
        let helped = [Workers::One, Workers::Helped(seed), Workers::Helped(seed + 1), Workers::Nodes(seed)];
        let workers = helped[way as usize];
        if matches!(workers, Workers::Nodes(_)) && is_wide {
            continue;
        }
        assert_eq!(
            answer(transaction, script, options, workers),
            plain,
            "seed {seed}, way {way}, {workers:?}: {script}\n{}",
            explained(db, script, options)
        );
    }
}

/// A count that does not fit is an error, with and without rows. One that fits is none, whatever is large on the way.
#[test]
fn a_count_that_overflows_is_an_error() {
    let db = Database::in_memory();
    db.query("g.addV('hub').property('n', 0).as('h').addV('end').as('e').addE('x').from('h').to('e')")
        .unwrap()
        .collect()
        .unwrap();
    for _ in 0..10 {
        db.query("g.V().hasLabel('hub').as('h').addE('x').to('h')").unwrap().collect().unwrap();
    }
    db.measure_statistics(&mut || Ok(())).unwrap();
    let (hops, options) = (".both('x')".repeat(16), forced(1));
    let count = |script: &str, options: PlanOptions| {
        db.run(&prepared(script, Terminal::None, options), &Parameters::new()).and_then(|results| results.collect())
    };
    let overflows = format!("g.V(){hops}.count()");
    for options in [options, PlanOptions::default()] {
        let error = count(&overflows, options).unwrap_err().to_string();
        assert!(error.contains("long overflow"), "{error}");
    }
    assert!(explained(&db, &overflows, options).contains("count: by seed"));
    // The large weights are those of vertices that no walk from the root reaches.
    let fits = format!("g.V().hasLabel('end').out('x'){hops}.count()");
    assert_eq!(count(&fits, options).unwrap(), [Value::I64(0)]);
    let text = format!("g.V().hasLabel('hub').as('a').out('x').hasLabel('end').in('x').where(neq('a')){hops}.count()");
    assert_eq!(count(&text, options).unwrap(), [Value::I64(0)]);
}

/// Neither the planner that keeps the order of the steps, nor a graph without statistics, counts without rows.
#[test]
fn whether_rows_are_made_is_chosen() {
    let mut random = Random::new(7);
    let db = graph(&mut random, true);
    let script = "g.V().hasLabel('a').both('x').both('x').both('y').count()";
    assert!(!explained(&db, script, PlanOptions::default()).contains("count:"), "without statistics");
    db.measure_statistics(&mut || Ok(())).unwrap();
    let written = "g.with('planner', 'written').V().hasLabel('a').both('x').both('x').both('y').count()";
    assert!(!explained(&db, written, forced(1)).contains("count:"));
    assert!(explained(&db, script, forced(1)).contains("count: by seed"));
    let without = PlanOptions { weigh: false, ..forced(1) };
    assert!(!explained(&db, script, without).contains("count:"));
}

/// A serializable transaction counts a pattern without rows, and writes. Meanwhile another transaction commits. If that has
/// changed the count, the first one cannot commit.
#[test]
fn a_changed_count_is_a_conflict() {
    let cases = mangrove_testdata::case_count(200);
    let mut changed = 0;
    for seed in 0..cases {
        let mut random = Random::new(seed);
        let db = graph(&mut random, false);
        let script = format!("{}.count()", Pattern::draw(&mut random).walk(&mut random));
        let options = forced(2 * seed + 1);
        let workers = random.of(&[Workers::One, Workers::Helped(seed)]);
        let counter = db
            .begin_with(TransactionOptions { isolation: Isolation::Serializable, ..TransactionOptions::default() })
            .unwrap();
        let writes_first = random.one_in(2);
        let write = || counter.query("g.addV('witness')").unwrap().collect().unwrap();
        if writes_first {
            write();
        }
        let count = answer(&counter, &script, options, workers);
        db.query(random.of(&CHANGES)).unwrap().collect().unwrap();
        if !writes_first {
            write();
        }
        let is_changed = answer(&db.begin().unwrap(), &script, options, Workers::One) != count;
        let committed = counter.commit();
        if is_changed {
            let plan = explained(&db, &script, options);
            changed += u64::from(plan.contains("count: by seed"));
            let error = committed.expect_err(&format!("seed {seed}, {workers:?}: {script}\n{plan}"));
            assert_eq!(error.kind(), mangrove::ErrorKind::Conflict, "{error}");
        }
    }
    assert!(changed * 10 > cases, "of {cases} transactions, {changed} had counted without rows what was changed");
}
