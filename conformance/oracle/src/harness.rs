//! Runs both sides of a case, compares, shrinks what differs, and says it.
//!
//! The engine is behind [`Engine`]; a [`Loader`] makes one that holds a given graph (most simply by running
//! the traversals of [`Graph::script`]). A case whose answer is not fixed well enough to compare is
//! [`Verdict::Skipped`] with the reason, and the report counts those, so that a generator that avoids the
//! questions is noticed.
//!
//! Errors: both sides must fail or neither (which error is not compared). Only where a step may stop reading
//! early (a limit, a test, a `by` that takes the first result) may one side fail alone: what it met, the other
//! need not have looked at.

use std::fmt::Write as _;

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Bytecode, Instruction};

use crate::compare::{Determinism, Expectation, Form, difference};

use crate::generate::{Case, Options, case};
use crate::graph::Graph;
use crate::interpreter::{Failure, Interpreter, Merging};
use crate::script::{bytecode, nested, step, text};

/// What is tested.
pub trait Engine {
    /// Runs a traversal in a transaction of its own, which commits; elements come detached.
    fn run(&mut self, traversal: &Bytecode) -> Result<Vec<Value>>;
}

/// Makes an engine that holds the graph.
pub type Loader<'a> = dyn FnMut(&Graph) -> Result<Box<dyn Engine>> + 'a;

/// How a case went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The same answer.
    Agreed,
    /// Both failed.
    BothFailed,
    /// No comparison, and why.
    Skipped(String),
    /// Different answers, and where.
    Differed(String),
}

/// The oracle as an engine: for testing the harness, and for replaying a case.
pub struct OracleEngine(pub Graph);

impl Engine for OracleEngine {
    fn run(&mut self, traversal: &Bytecode) -> Result<Vec<Value>> {
        // A traversal that fails changes nothing.
        let mut after = self.0.clone();
        let answer = Interpreter::run(&mut after, traversal).map_err(into_error)?;
        self.0 = after;
        Ok(answer)
    }
}

/// An engine as right as the oracle that differs from it wherever it may: elements come the other way round, and traversers
/// are merged at barriers.
pub struct OtherEngine(Graph);

impl OtherEngine {
    /// Over a copy of this graph.
    pub fn new(graph: &Graph) -> Result<OtherEngine> {
        graph.reversed().map(OtherEngine)
    }
}

impl Engine for OtherEngine {
    fn run(&mut self, traversal: &Bytecode) -> Result<Vec<Value>> {
        let mut after = self.0.clone();
        let answer = Interpreter::run_with(&mut after, traversal, Merging::Clustered).map_err(into_error)?;
        self.0 = after;
        Ok(answer)
    }
}

fn into_error(failure: Failure) -> mangrove_graph::Error {
    match failure {
        Failure::Error(error) => error,
        Failure::TooBig => mangrove_graph::Error::new(mangrove_graph::ErrorKind::MemoryLimit, "the budget is spent"),
        Failure::Unsupported(what) => mangrove_graph::Error::unsupported(what),
    }
}

/// Runs a case on both sides. After a case that writes, the graphs are compared too.
pub fn check(case: &Case, load: &mut Loader<'_>) -> Verdict {
    let mut graph = case.graph.clone();
    let ours = match Interpreter::run(&mut graph, &case.traversal) {
        Err(Failure::TooBig) => return Verdict::Skipped("too big".into()),
        Err(Failure::Unsupported(what)) => return Verdict::Skipped(format!("the oracle does not know {what}")),
        ours => ours.map_err(into_error),
    };
    if let Ok(ours) = &ours
        && !ours.iter().all(|value| case.expectation.form.holds(value))
    {
        return Verdict::Skipped("the form cannot hold the answer".into());
    }
    let mut engine = match load(&case.graph) {
        Ok(engine) => engine,
        Err(e) => return Verdict::Differed(format!("the engine does not load the graph: {e}")),
    };
    match (ours, engine.run(&case.traversal)) {
        (Ok(ours), Ok(theirs)) => match difference(&case.expectation, &ours, &theirs) {
            Some(what) => Verdict::Differed({
                let (ours, theirs) = (shown(&ours), shown(&theirs));
                format!("{what}\n  oracle: {ours}\n  engine: {theirs}")
            }),
            None if case.writes => compare_graphs(&mut graph, engine.as_mut(), case.expectation.form),
            None => Verdict::Agreed,
        },
        (Err(_), Err(_)) => Verdict::BothFailed,
        (Ok(_), Err(_)) | (Err(_), Ok(_)) if may_stop_early(&case.traversal) => {
            Verdict::Skipped("an error that may be out of reach".into())
        }
        (Ok(ours), Err(e)) => Verdict::Differed(format!("only the engine fails: {e}\n  oracle: {}", shown(&ours))),
        (Err(e), Ok(theirs)) => Verdict::Differed(format!("only the oracle fails: {e}\n  engine: {}", shown(&theirs))),
    }
}

/// As much of an answer as a person reads.
fn shown(answer: &[Value]) -> String {
    crate::show::show_answer(answer, 50)
}

/// The traversals whose answers together are the whole graph.
fn probes() -> [Bytecode; 3] {
    let tokens = Argument::Value(Value::Bool(true));
    let of_property = [nested([step("element", [])]), nested([step("identity", [])])].map(|by| step("by", [by]));
    let properties = [step("V", []), step("properties", []), step("project", [text("of"), text("is")])];
    [
        bytecode([step("V", []), step("valueMap", [tokens])]),
        bytecode([step("E", []), step("elementMap", [])]),
        // With their meta-properties.
        bytecode([&properties[..], &of_property[..]].concat()),
    ]
}

fn compare_graphs(graph: &mut Graph, engine: &mut dyn Engine, form: Form) -> Verdict {
    let expectation = Expectation { form, ..Expectation::default() };
    for probe in probes() {
        let ours = match Interpreter::run(graph, &probe) {
            Ok(ours) => ours,
            Err(e) => return Verdict::Skipped(format!("the oracle cannot read its graph back: {e:?}")),
        };
        if !ours.iter().all(|value| form.holds(value)) {
            continue;
        }
        match engine.run(&probe) {
            Err(e) => return Verdict::Differed(format!("the engine cannot read its graph back: {e}")),
            Ok(theirs) => {
                if let Some(what) = difference(&expectation, &ours, &theirs) {
                    return Verdict::Differed(format!("the graphs differ afterwards: {what}"));
                }
            }
        }
    }
    Verdict::Agreed
}

/// Whether an engine may leave part of the stream unread.
pub fn may_stop_early(traversal: &Bytecode) -> bool {
    traversal.steps.iter().any(|instruction| {
        let name = instruction.name.as_str();
        let cuts = matches!(name, "limit" | "range" | "skip" | "tail" | "none" | "discard");
        // Children of these run to their end; those of all others are asked for a first result only.
        let runs_children_out = matches!(name, "union" | "local" | "flatMap" | "sideEffect" | "repeat");
        let nested = |a: &Argument| match a {
            Argument::Traversal(child) => !runs_children_out || may_stop_early(child),
            _ => false,
        };
        cuts || instruction.arguments.iter().any(nested)
    })
}

/// What a run over many seeds came to.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cases with the same answer.
    pub agreed: usize,
    /// Of these, those of which only the number of results was compared.
    pub count_only: usize,
    /// Cases that failed on both sides.
    pub both_failed: usize,
    /// Cases not compared, by reason.
    pub skipped: std::collections::BTreeMap<String, usize>,
}

/// Where the two sides differ.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The case.
    pub seed: u64,
    /// The traversal as it was generated; the case, shrunk, with both answers, in words.
    pub text: String,
}

/// Runs the cases of these seeds; the first difference is the error.
pub fn run(
    seeds: std::ops::Range<u64>,
    options: &Options,
    load: &mut Loader<'_>,
) -> std::result::Result<Report, Difference> {
    let mut report = Report::default();
    for seed in seeds {
        let case = case(seed, options);
        match check(&case, load) {
            Verdict::Agreed => {
                report.agreed += 1;
                report.count_only += usize::from(case.expectation.rows == Determinism::CountOnly);
            }
            Verdict::BothFailed => report.both_failed += 1,
            Verdict::Skipped(why) => *report.skipped.entry(why).or_default() += 1,
            Verdict::Differed(_) => {
                let mut text = format!("seed {seed}: {}\n", case.traversal);
                text += &explain(&shrink(case, load), load);
                return Err(Difference { seed, text });
            }
        }
    }
    Ok(report)
}

/// Removes from a case what it can while the two sides still differ: steps, vertices, edges, properties.
///
/// A step may have been what fixed the answer (an order before a cut), so only candidates that are still
/// [`is_well_posed`] count.
pub fn shrink(mut case: Case, load: &mut Loader<'_>) -> Case {
    loop {
        let mut smaller = smaller_traversals(&case).into_iter().chain(smaller_graphs(&case));
        let fails =
            |c: &Case, load: &mut Loader<'_>| is_well_posed(c) && matches!(check(c, load), Verdict::Differed(_));
        match smaller.find(|candidate| fails(candidate, load)) {
            Some(candidate) => case = candidate,
            None => return case,
        }
    }
}

/// Whether the oracle agrees with itself, as far as the case's expectation goes, when the elements of the
/// graph come in other orders.
pub fn is_well_posed(case: &Case) -> bool {
    // What the branches of a `union()` at the very start are given, no document says.
    let sources = ["V", "E", "inject", "addV", "addE", "mergeV", "mergeE", "call"];
    if !case.traversal.steps.first().is_some_and(|step| sources.contains(&step.name.as_str())) {
        return false;
    }
    [case.graph.reversed(), case.graph.rotated()].into_iter().all(|graph| {
        let Ok(graph) = graph else { return false };
        let itself: &mut Loader<'_> = &mut |_| Ok(Box::new(OracleEngine(graph.clone())));
        matches!(check(case, itself), Verdict::Agreed | Verdict::BothFailed)
    })
}

/// Every traversal with one source instruction or one step less, at any depth.
fn smaller_traversals(case: &Case) -> Vec<Case> {
    let plainer = (0..case.traversal.source.len()).map(|at| {
        let mut plainer = case.traversal.clone();
        plainer.source.remove(at);
        plainer
    });
    let less = plainer.chain(without_one_step(&case.traversal)).filter(|t| !t.steps.is_empty());
    less.map(|traversal| Case { traversal, ..case.clone() }).collect()
}

fn without_one_step(traversal: &Bytecode) -> Vec<Bytecode> {
    let mut found = Vec::new();
    for at in 0..traversal.steps.len() {
        let mut less = traversal.clone();
        less.steps.remove(at);
        found.push(less);
        for (n, argument) in traversal.steps[at].arguments.iter().enumerate() {
            if let Argument::Traversal(child) = argument {
                for child in without_one_step(child) {
                    let mut less = traversal.clone();
                    let instruction: &mut Instruction = &mut less.steps[at];
                    instruction.arguments[n] = Argument::Traversal(child);
                    found.push(less);
                }
            }
        }
    }
    found
}

fn smaller_graphs(case: &Case) -> Vec<Case> {
    let vertices = case.graph.vertices().map(|(v, _)| Value::Vertex(v));
    let edges = case.graph.edges().map(|(e, _)| Value::Edge(e));
    let elements: Vec<Value> = vertices.chain(edges).collect();
    let properties = elements.iter().flat_map(|element| case.graph.properties(element).unwrap_or_default());
    let properties: Vec<Value> = properties.collect();
    elements
        .into_iter()
        .chain(properties)
        .filter_map(|element| {
            let mut graph = case.graph.clone();
            graph.remove(&element).ok()?;
            Some(Case { graph, ..case.clone() })
        })
        .collect()
}

/// A case that was shrunk and how it goes, for a person to read and to run again.
pub fn explain(case: &Case, load: &mut Loader<'_>) -> String {
    let mut text = format!("shrunk; compared as {:?}\n", case.expectation);
    for statement in case.graph.script() {
        writeln!(text, "{statement}").expect("a string takes every write");
    }
    writeln!(text, "traversal: {}", case.traversal).expect("a string takes every write");
    match check(case, load) {
        Verdict::Differed(what) => text.push_str(&what),
        other => write!(text, "{other:?}").expect("a string takes every write"),
    }
    text
}
