//! The engine against a plain interpreter, on random traversals over random graphs.
//!
//! The interpreter (`conformance/oracle`) is as simple as the language allows and shares with the engine only the
//! vocabulary of values. A failure prints its seed, the shrunk graph and traversal, and both answers. `MANGROVE_CASES`
//! sets the number of cases of each test, or `MANGROVE_TIMES` how many times as many as in CI (and goes before),
//! `MANGROVE_FIRST` the first seed, `MANGROVE_DIFFERENCES` after how many differences a test gives up (1).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mangrove::{
    Bytecode, Database, DatabaseOptions, ElementKind, IndexDefinition, IndexKind, Parameters, PlanOptions, Planner,
    Prepared, QueryLimits, QueryOptions, Result, ResultStream, Value,
};
use mangrove_gremlin::{Argument, Instruction, Predicate, Terminal};
use mangrove_oracle::generate::Options;
use mangrove_oracle::graph::Graph;
use mangrove_oracle::harness::{self, Engine};
use mangrove_virtual_nodes::{Habits, LateView};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// A way to run a traversal.
#[derive(Clone, Copy)]
enum Way {
    /// On the caller's thread.
    Inline,
    /// With a plan without any optimization.
    Plain,
    /// With indexes over the keys of vertices and of edges.
    Indexed,
    /// With the steps of walks and matches in an order that a seed chooses.
    Ordered(u64),
    /// With the steps of walks and matches in the order that statistics choose.
    Measured,
    /// Printed as a script, and parsed again.
    Script,
    /// With the plan of traversals that differ in literals, which a seed chooses. The plan cache knows them before.
    Cached(u64),
    /// On the database's executors.
    Shared,
    /// Over virtual nodes, every message serialized, frames delivered in the order of a seed.
    Nodes(u16, Option<u64>),
    /// With one to four helpers, in turns that a seed chooses; all threads share what they can.
    Helped(u64),
    /// As [`Way::Helped`], over a view whose reads are late: completed in any order, early, twice, or refused for a while.
    Late(u64),
    /// With this policy for all scopes, and at most so many instances of a scope at a time; 0 for no limit. On one
    /// thread, over nodes, with helpers, and over late reads in turn.
    Policy(&'static str, i64),
    /// With helpers and over nodes in turn; every instance of a scope that may begin again does so.
    Apart(u64),
    /// On the caller's thread, several times at once: some runs are cancelled, some fail, some are abandoned. No run
    /// may see rows or state of another one. The answer is that of one complete run.
    Again,
}

/// Runs a traversal over a view whose reads are late, by a seed.
fn run_late(database: &Database, prepared: &Prepared, seed: u64) -> Result<Vec<(Value, u64)>> {
    let habits = Habits {
        at_hand: [0.0, 0.3, 0.9][seed as usize % 3],
        full: [0.0, 0.2][seed as usize % 2],
        early: 0.2,
        again: 0.2,
        fails: 0.0,
        room: [0, 0, 5, 500][seed as usize / 2 % 4],
    };
    let mut transaction = database.begin_read()?;
    let mut view = None;
    transaction.read_instead(|whole| view.insert(Arc::new(LateView::new(whole, habits, seed))).clone());
    let view = view.expect("the view was made");
    let (parameters, options) = (Parameters::new(), QueryOptions::default());
    let results = transaction.run_late(prepared, &parameters, &options, view.reader(), seed);
    let counts = view.reader().counts();
    assert_eq!((counts.tickets, counts.pinned), (0, 0), "reads are under way or at hand after the run");
    results
}

struct Mangrove {
    database: Database,
    way: Way,
    asked: usize,
}

/// A traversal with options of its source.
fn with(traversal: &Bytecode, options: &[(&str, Value)]) -> Bytecode {
    let mut traversal = traversal.clone();
    let instruction = |(key, value): &(&str, Value)| {
        let key = Argument::Value(Value::String((*key).into()));
        Instruction::new("with", vec![key, Argument::Value(value.clone())])
    };
    traversal.source.splice(0..0, options.iter().map(instruction));
    traversal
}

/// The results that are read of a traversal with other literals.
const CHANGED_RESULTS_MAX: usize = 10_000;

/// How often [`Way::Cached`] found a plan.
static CACHED: AtomicU64 = AtomicU64::new(0);

/// Replaces literals of a traversal and of those nested in it. `share` is the part that is replaced.
fn change_literals(traversal: &mut Bytecode, share: f64, rng: &mut SmallRng) {
    let steps = traversal.steps.iter_mut();
    for argument in steps.flat_map(|step| &mut step.arguments) {
        change_argument(argument, share, rng);
    }
}

fn change_argument(argument: &mut Argument, share: f64, rng: &mut SmallRng) {
    match argument {
        Argument::Value(value) if rng.random_bool(share) => change_value(value, rng),
        Argument::Traversal(nested) => change_literals(nested, share, rng),
        Argument::Predicate(predicate) => change_predicate(predicate, share, rng),
        Argument::List(members) => members.iter_mut().for_each(|member| change_argument(member, share, rng)),
        Argument::Map(entries) => entries.iter_mut().for_each(|(_, value)| change_argument(value, share, rng)),
        Argument::CardinalityValue(_, value) => change_argument(value, share, rng),
        _ => {}
    }
}

fn change_predicate(predicate: &mut Predicate, share: f64, rng: &mut SmallRng) {
    match predicate {
        Predicate::Compare(_, operand) | Predicate::Text(_, operand) => change_argument(operand, share, rng),
        Predicate::Within(members) | Predicate::Without(members) => {
            // Lists of any length have one shape.
            let length = if rng.random_bool(share) { rng.random_range(1..4) } else { members.len() };
            let last = members.last().cloned();
            members.resize_with(length, || last.clone().unwrap_or(Argument::Value(Value::I32(1))));
            members.iter_mut().for_each(|member| change_argument(member, share, rng));
        }
        Predicate::And(members) | Predicate::Or(members) => {
            members.iter_mut().for_each(|member| change_predicate(member, share, rng));
        }
        Predicate::Not(inner) => change_predicate(inner, share, rng),
        Predicate::TypeOf(_) => {}
    }
}

/// Replaces a number, mostly by a small one, which plans may depend on. Texts are mostly names, which stay.
fn change_value(value: &mut Value, rng: &mut SmallRng) {
    match value {
        Value::I32(number) => *number = rng.random_range(-1..6),
        Value::I64(number) => *number = rng.random_range(-1..6),
        Value::F64(number) => *number = f64::from(rng.random_range(-1..6)),
        Value::Bool(truth) => *truth = rng.random(),
        Value::Map(entries) => {
            let change = |(key, value): &(Value, Value)| {
                let mut value = value.clone();
                change_value(&mut value, rng);
                (key.clone(), value)
            };
            *value = Value::Map(Arc::new(entries.iter().map(change).collect()));
        }
        _ => {}
    }
}

impl Mangrove {
    /// Prepares a traversal with a policy. One that writes, or whose side effects show the order of its traversers,
    /// refuses it, and has only the limit.
    fn prepare_with_policy(&self, traversal: &Bytecode, policy: &str, max: i64) -> Result<Prepared> {
        let mut options = vec![("policy", Value::String(policy.into()))];
        if max > 0 {
            options.push(("maxInstances", Value::I64(max)));
        }
        match self.database.prepare_bytecode(&with(traversal, &options)) {
            Err(error) if error.to_string().contains("leave the policy out") => {
                self.database.prepare_bytecode(&with(traversal, &options[1..]))
            }
            prepared => prepared,
        }
    }

    /// Prepares a traversal. Before that, this prepares some others with other literals, and reads with them.
    fn prepare_after_others(&mut self, traversal: &Bytecode, seed: u64) -> Result<Prepared> {
        for other in 0..4 {
            self.asked += 1;
            let mut rng = SmallRng::seed_from_u64(seed + self.asked as u64);
            let mut changed = traversal.clone();
            // Most others differ in one or two literals, and one has other literals everywhere.
            change_literals(&mut changed, if other == 0 { 1.0 } else { 0.3 }, &mut rng);
            let Ok(prepared) = self.database.prepare_bytecode(&changed) else { continue };
            if !prepared.is_mutating() {
                // Its plan is made when it runs. Its answer does not matter. A changed number of loops may ask for more
                // results than there is memory.
                if let Ok(results) = self.database.run(&prepared, &Parameters::new()) {
                    results.take(CHANGED_RESULTS_MAX).for_each(drop);
                }
            }
        }
        let hits = self.database.plan_cache().hits;
        let prepared = self.database.prepare_bytecode(traversal)?;
        CACHED.fetch_add(self.database.plan_cache().hits - hits, Ordering::Relaxed);
        Ok(prepared)
    }

    /// Runs it as [`Way::Again`] says.
    fn run_again(&mut self, prepared: &Prepared) -> Result<Vec<Value>> {
        let (database, parameters) = (&self.database, Parameters::new());
        let whole = || database.run(prepared, &parameters)?.collect();
        if prepared.is_mutating() {
            return whole();
        }
        let mut slow = database.run(prepared, &parameters);
        let head = slow.as_mut().ok().and_then(Iterator::next);
        let beside = whole();
        drop(database.run(prepared, &parameters).map(|mut left| left.next()));
        let options = QueryOptions {
            limits: QueryLimits { memory_bytes: 64, ..QueryLimits::default() },
            ..QueryOptions::default()
        };
        drop(database.run_with(prepared, &parameters, &options).and_then(ResultStream::collect));
        let options = QueryOptions::default();
        if let Ok(mut cancelled) = database.run_with(prepared, &parameters, &options) {
            cancelled.next();
            options.cancel.store(true, Ordering::Relaxed);
            drop(cancelled.collect());
        }
        let after = whole();
        let slow = slow.and_then(|rest| head.into_iter().chain(rest).collect());
        self.asked += 1;
        match self.asked % 3 {
            0 => slow,
            1 => beside,
            _ => after,
        }
    }
}

impl Engine for Mangrove {
    fn run(&mut self, traversal: &Bytecode) -> Result<Vec<Value>> {
        let prepared = match self.way {
            Way::Plain => Prepared::with_options(traversal, Terminal::None, PlanOptions::NONE)?,
            Way::Script => self.database.prepare(&traversal.to_string())?,
            Way::Policy(policy, max) => self.prepare_with_policy(traversal, policy, max)?,
            Way::Ordered(seed) => {
                self.asked += 1;
                let planner = Planner::Forced(seed + self.asked as u64);
                let options = PlanOptions { planner, ..PlanOptions::default() };
                Prepared::with_options(traversal, Terminal::None, options)?
            }
            Way::Apart(_) => {
                let options = PlanOptions { set_all_apart: true, ..PlanOptions::default() };
                Prepared::with_options(traversal, Terminal::None, options)?
            }
            Way::Cached(seed) => self.prepare_after_others(traversal, seed)?,
            _ => self.database.prepare_bytecode(traversal)?,
        };
        self.run_prepared(&prepared, self.way)
    }
}

impl Mangrove {
    /// Runs a traversal in one of the ways.
    fn run_prepared(&mut self, prepared: &Prepared, way: Way) -> Result<Vec<Value>> {
        let (parameters, options) = (Parameters::new(), QueryOptions::default());
        let expand = |(value, times): (Value, u64)| std::iter::repeat_n(value, times as usize);
        match way {
            Way::Again => self.run_again(prepared),
            Way::Inline
            | Way::Plain
            | Way::Indexed
            | Way::Ordered(_)
            | Way::Measured
            | Way::Script
            | Way::Cached(_) => self.database.run(prepared, &parameters)?.collect(),
            Way::Shared => {
                // No message runs on this thread; [`Way::Inline`] does that.
                let options = QueryOptions { inline_messages: 0, ..QueryOptions::default() };
                let mut all = Vec::new();
                self.database.run_shared(prepared, &parameters, &options, &mut |batch| {
                    all.extend(batch.into_iter().flat_map(expand));
                    Ok(())
                })?;
                Ok(all)
            }
            Way::Helped(seed) | Way::Apart(seed) => {
                self.asked += 1;
                let transaction = self.database.begin()?;
                let is_on_nodes = matches!(way, Way::Apart(_)) && self.asked % 2 == 1;
                let seed = seed + self.asked as u64;
                let results = match is_on_nodes {
                    true => transaction.run_on_nodes(prepared, &parameters, &options, 3, Some(seed))?,
                    false => transaction.run_helped(prepared, &parameters, &options, seed)?,
                };
                transaction.commit()?;
                Ok(results.into_iter().flat_map(expand).collect())
            }
            Way::Policy(..) => {
                self.asked += 1;
                let seed = self.asked as u64;
                let way = match self.asked % 4 {
                    _ if prepared.is_mutating() => Way::Inline,
                    0 => Way::Inline,
                    1 => Way::Nodes(3, Some(seed)),
                    2 => Way::Helped(seed),
                    _ => Way::Late(seed),
                };
                self.run_prepared(prepared, way)
            }
            Way::Late(_) if prepared.is_mutating() => self.database.run(prepared, &parameters)?.collect(),
            Way::Late(seed) => {
                self.asked += 1;
                let seed = seed + self.asked as u64;
                let results = run_late(&self.database, prepared, seed)?;
                Ok(results.into_iter().flat_map(expand).collect())
            }
            Way::Nodes(count, seed) => {
                let transaction = self.database.begin()?;
                let results = transaction.run_on_nodes(prepared, &parameters, &options, count, seed)?;
                transaction.commit()?;
                Ok(results.into_iter().flat_map(expand).collect())
            }
        }
    }
}

/// Hash and ordered indexes, for one label and for all elements of a kind, over values of one type and of many.
const INDEXES: [(ElementKind, Option<&str>, &str, IndexKind); 8] = [
    (ElementKind::Vertex, None, "name", IndexKind::Hash),
    (ElementKind::Vertex, Some("person"), "age", IndexKind::Ordered),
    (ElementKind::Vertex, None, "mix", IndexKind::Ordered),
    (ElementKind::Vertex, None, "part", IndexKind::Hash),
    (ElementKind::Edge, None, "since", IndexKind::Ordered),
    (ElementKind::Edge, Some("knows"), "weight", IndexKind::Ordered),
    (ElementKind::Edge, Some("likes"), "weight", IndexKind::Hash),
    (ElementKind::Edge, None, "mix", IndexKind::Hash),
];

fn load(graph: &Graph, way: Way) -> Result<Box<dyn Engine>> {
    // Few tablets, so that each of several nodes has some elements.
    let options = DatabaseOptions { tablet_count: 4, executor_count: 1, ..DatabaseOptions::default() };
    let mut engine = Mangrove { database: Database::with_options(&options), way: Way::Inline, asked: 0 };
    for statement in graph.script() {
        engine.run(&statement)?;
    }
    if matches!(way, Way::Indexed) {
        for (element, label, key, kind) in INDEXES {
            let (label, keys) = (label.map(Into::into), vec![key.into()]);
            engine.database.define_index(&IndexDefinition { element, label, keys, kind, unique: false })?;
        }
    }
    if matches!(way, Way::Measured) {
        engine.database.measure_statistics(&mut || Ok(()))?;
    }
    engine.way = way;
    Ok(Box::new(engine))
}

fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|n| n.parse().ok()).unwrap_or(default)
}

fn check(first_seed: u64, count: u64, options: &Options, way: Way) {
    let mut first = mangrove_testdata::first_seed(first_seed);
    let end = first + mangrove_testdata::case_count(count);
    let mut differences = Vec::new();
    loop {
        match harness::run(first..end, options, &mut |graph| load(graph, way)) {
            Ok(report) => break println!("{report:?}"),
            Err(difference) => {
                first = difference.seed + 1;
                differences.push(difference.text);
            }
        }
        if differences.len() as u64 >= number("MANGROVE_DIFFERENCES", 1) {
            break;
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n\n"));
}

#[test]
fn reads_and_writes_inline() {
    check(0, 3_000, &Options::default(), Way::Inline);
}

#[test]
fn many_writes() {
    check(1_000_000, 1_000, &Options { write_share: 0.5, ..Options::default() }, Way::Inline);
}

#[test]
fn without_optimization() {
    check(6_000_000, 1_000, &Options::default(), Way::Plain);
}

#[test]
fn with_indexes() {
    check(7_000_000, 1_000, &Options::default(), Way::Indexed);
}

#[test]
fn in_orders_that_a_seed_chooses() {
    check(13_000_000, 2_000, &Options { step_count_max: 10, write_share: 0.05, ..Options::default() }, Way::Ordered(5));
}

#[test]
fn in_orders_that_statistics_choose() {
    check(14_000_000, 1_000, &Options::default(), Way::Measured);
}

#[test]
fn with_plans_of_traversals_with_other_literals() {
    let count = 2_000;
    check(15_000_000, count, &Options::default(), Way::Cached(15));
    let (cached, cases) = (CACHED.load(Ordering::Relaxed), mangrove_testdata::case_count(count));
    assert!(cached * 2 > cases, "a plan was found for {cached} of {cases} traversals");
}

#[test]
fn as_scripts() {
    check(8_000_000, 300, &Options::default(), Way::Script);
}

#[test]
fn on_executors() {
    check(2_000_000, 300, &Options::default(), Way::Shared);
}

#[test]
fn on_two_nodes() {
    check(3_000_000, 1_000, &Options::default(), Way::Nodes(2, None));
}

#[test]
fn on_four_nodes_with_shuffled_frames() {
    check(4_000_000, 1_000, &Options::default(), Way::Nodes(4, Some(7)));
}

#[test]
fn with_helpers_in_any_order_of_turns() {
    check(9_000_000, 1_000, &Options::default(), Way::Helped(9));
}

/// No policy changes a result.
#[test]
fn with_policies_of_scopes() {
    let all = [
        ("dfs", 0),
        ("bfs", 0),
        ("fifo", 2),
        ("dfs", 7),
        ("bfs/dfs", 1),
        ("dfs/bfs", 2),
        ("fifo/dfs", 7),
        ("by age", 0),
        ("by age desc/bfs", 2),
        ("by nick/fifo", 7),
    ];
    for (first, (policy, max)) in (10_000_000..).step_by(100_000).zip(all) {
        check(first, 200, &Options::default(), Way::Policy(policy, max));
    }
}

#[test]
fn with_every_instance_set_apart() {
    check(11_000_000, 1_000, &Options::default(), Way::Apart(11));
}

#[test]
fn with_late_reads_in_any_order_of_completions() {
    check(12_000_000, 1_000, &Options::default(), Way::Late(12));
}

#[test]
fn one_after_the_other_and_interleaved() {
    check(5_000_000, 400, &Options::default(), Way::Again);
}
