//! Runs a case on both sides, compares the answers, shrinks a case that differs, and reports it.
//!
//! The engine under test implements [`Engine`]. A [`Loader`] makes an engine that holds a given graph, most simply by
//! running the traversals of [`Graph::script`]. If the answer of a case is not determined well enough to compare, the
//! verdict is [`Verdict::Skipped`] with the reason. The report counts these verdicts, so a generator that avoids hard
//! questions is noticed.
//!
//! Errors: both sides must fail or neither; which error is not compared. If a step may stop reading early (a limit, a
//! test, a `by` that takes the first result), one side may fail alone: the other may not have read the object that
//! causes the error.

use std::fmt::Write as _;

use mangrove_graph::{Result, Value};
use mangrove_gremlin::{Argument, Bytecode, Instruction};

use crate::compare::{Determinism, Expectation, Form, difference};

use crate::generate::{Case, Options, case};
use crate::graph::Graph;
use crate::interpreter::{Failure, Interpreter, Merging};
use crate::script::{bytecode, nested, step, text};

/// The side under test.
pub trait Engine {
    /// Runs a traversal in a transaction of its own, which commits. Elements of the result are detached.
    fn run(&mut self, traversal: &Bytecode) -> Result<Vec<Value>>;
}

/// Makes an engine that holds the graph.
pub type Loader<'a> = dyn FnMut(&Graph) -> Result<Box<dyn Engine>> + 'a;

/// The result of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Both sides gave the same answer.
    Agreed,
    /// Both sides failed.
    BothFailed,
    /// The answers were not compared, with the reason.
    Skipped(String),
    /// The answers differ, with the first difference.
    Differed(String),
}

/// The oracle as an engine: for tests of the harness, and to replay a case.
pub struct OracleEngine(pub Graph);

impl Engine for OracleEngine {
    fn run(&mut self, traversal: &Bytecode) -> Result<Vec<Value>> {
        // If a traversal fails, the graph stays unchanged.
        let mut after = self.0.clone();
        let answer = Interpreter::run(&mut after, traversal).map_err(into_error)?;
        self.0 = after;
        Ok(answer)
    }
}

/// An engine that is correct but differs from the oracle wherever it may: elements come in reverse order, and barriers
/// merge traversers.
pub struct OtherEngine(Graph);

impl OtherEngine {
    /// Makes an engine over a copy of this graph.
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

/// Runs a case on both sides. After a case that writes, this also compares the graphs.
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

/// The beginning of an answer, for a report.
fn shown(answer: &[Value]) -> String {
    crate::show::show_answer(answer, 50)
}

/// Traversals whose answers together are the whole graph.
fn probes() -> [Bytecode; 3] {
    let tokens = Argument::Value(Value::Bool(true));
    let of_property = [nested([step("element", [])]), nested([step("identity", [])])].map(|by| step("by", [by]));
    let properties = [step("V", []), step("properties", []), step("project", [text("of"), text("is")])];
    [
        bytecode([step("V", []), step("valueMap", [tokens])]),
        bytecode([step("E", []), step("elementMap", [])]),
        // Values with their meta-properties.
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

/// Returns true if an engine may leave a part of the stream unread.
pub fn may_stop_early(traversal: &Bytecode) -> bool {
    traversal.steps.iter().any(|instruction| {
        let name = instruction.name.as_str();
        let cuts = matches!(name, "limit" | "range" | "skip" | "tail" | "none" | "discard");
        // Children of these steps run to their end; of all other children, the step takes the first result only.
        let runs_children_out = matches!(name, "union" | "local" | "flatMap" | "sideEffect" | "repeat");
        let nested = |a: &Argument| match a {
            Argument::Traversal(child) => !runs_children_out || may_stop_early(child),
            _ => false,
        };
        cuts || instruction.arguments.iter().any(nested)
    })
}

/// Counts of a run over many seeds.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Cases with the same answer.
    pub agreed: usize,
    /// Cases whose answers were compared by number of results only; part of `agreed`.
    pub count_only: usize,
    /// Cases that failed on both sides.
    pub both_failed: usize,
    /// Cases not compared, by reason.
    pub skipped: std::collections::BTreeMap<String, usize>,
}

/// A difference between the two sides.
#[derive(Clone, Debug)]
pub struct Difference {
    /// The case.
    pub seed: u64,
    /// The traversal as generated, then the shrunk case with both answers.
    pub text: String,
}

/// Runs the cases of these seeds. The first difference is the error.
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

/// Removes steps, vertices, edges and properties from a case as long as the two sides still differ.
///
/// A removed step may have determined the answer (an order before a cut), so only candidates that are still
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

/// Returns true if the oracle agrees with itself, as far as the case's expectation says, when the elements of the graph
/// come in other orders.
pub fn is_well_posed(case: &Case) -> bool {
    // No document says what the branches of a `union()` receive at the very start of a traversal.
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

/// Every traversal with one source instruction or one step fewer, at any depth.
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

/// A shrunk case and its answers, as text that can be read and run again.
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
