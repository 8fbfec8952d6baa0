//! Runs random cases of `conformance/oracle` on both sides, and compares the answers as each case says that they may be
//! compared.
//!
//! TinkerPop inserts barriers between steps, which merge equal traversers when there are many. These barriers are
//! removed from traversals that write, call services or carry sacks. A merged traverser writes once for all traversers
//! that it stands for. A service answers each of them, and every answer counts for all. No document says how often
//! traversers merge.
//!
//! The oracle decides two things; its answer is not used otherwise. It decides if a case stays within its budget. And
//! it decides if a traversal fails when every step reads all its input. If it does, one side may fail alone, because
//! the other side may leave the cause unread.

use std::collections::BTreeMap;
use std::io::Result;

use mangrove::{Database, Error, Value};
use mangrove_gremlin::script::{ParseOptions, Statement, parse_one};
use mangrove_oracle::compare::{Expectation, difference};
use mangrove_oracle::generate::{Case, Options, case};
use mangrove_oracle::harness::{Engine, OracleEngine, may_stop_early};
use mangrove_oracle::interpreter::{Failure, Interpreter};

use crate::known::{self, Known};
use crate::notation::written;
use crate::reference::{Reference, took_too_long};
use crate::rephrase::rephrased;
use crate::{corpus, engine};

/// The counts of a run of random cases.
#[derive(Default)]
pub struct Report {
    /// Cases with the same answer, or an error on both sides.
    pub agreed: usize,
    /// Cases with a known difference, by its name.
    pub known: BTreeMap<&'static str, usize>,
    /// Cases in which only one side failed, because the other may leave the cause unread.
    pub out_of_reach: usize,
    /// The seeds of cases that were not compared, by reason.
    pub skipped: BTreeMap<String, Vec<u64>>,
    /// The number of cases that differ without a known reason.
    pub differed: usize,
}

/// Begins a traversal of the reference in which it inserts no barriers.
const WITHOUT_BARRIERS: &str = "g.withoutStrategies(LazyBarrierStrategy).";
/// Begins a traversal of the reference without its optimizations. They should not change an answer, but sometimes do.
const WITHOUT_OPTIMIZATION: &str = "g.withoutStrategies(LazyBarrierStrategy, PathRetractionStrategy, InlineFilterStrategy, \
     FilterRankingStrategy, IdentityRemovalStrategy, CountStrategy, EarlyLimitStrategy, MatchPredicateStrategy, \
     RepeatUnrollStrategy, IncidentToAdjacentStrategy, AdjacentToIncidentStrategy, ByModulatorOptimizationStrategy, \
     OrderLimitStrategy, TinkerGraphStepStrategy, TinkerGraphCountStrategy).";

/// The outcome of one case.
enum Outcome {
    Agreed,
    /// An error on both sides.
    BothFailed,
    /// Only one side fails; the other may have left the cause unread.
    OutOfReach,
    Skipped(String),
    /// The reference agrees if its optimizations are off.
    Optimizer,
    Differed {
        script: String,
        what: String,
        reference: crate::Answer,
        ours: crate::Answer,
        reason: Option<&'static Known>,
    },
}

/// The side that is compared with the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The engine.
    Engine,
    /// The interpreter of `conformance/oracle`.
    Oracle,
}

/// That side, loaded with the graph of the case.
enum Subject {
    Engine(Database),
    Oracle(Box<OracleEngine>),
}

impl Subject {
    fn ask(&mut self, script: &str) -> std::result::Result<Vec<Value>, Error> {
        match self {
            Subject::Engine(database) => engine::ask(database, script),
            Subject::Oracle(oracle) => match parse_one(script, &ParseOptions::default())? {
                Statement::Traversal { bytecode, .. } => oracle.run(&bytecode),
                other => Err(Error::invalid(format!("{other:?} is no traversal"))),
            },
        }
    }
}

/// Runs the cases of these seeds. Passes a difference to `tell` if it has no known reason, or one of these reasons.
pub fn run(
    reference: &mut Reference,
    seeds: std::ops::Range<u64>,
    options: &Options,
    side: Side,
    reasons: &[String],
    tell: &mut dyn FnMut(String),
) -> Result<Report> {
    let mut report = Report::default();
    for seed in seeds {
        match one(reference, &case(seed, options), side)? {
            Outcome::Agreed | Outcome::BothFailed => report.agreed += 1,
            Outcome::Optimizer => *report.known.entry("optimizer").or_default() += 1,
            Outcome::OutOfReach => report.out_of_reach += 1,
            Outcome::Skipped(why) => report.skipped.entry(why).or_default().push(seed),
            Outcome::Differed { script, what, reference, ours, reason } => {
                match reason {
                    Some(known) => *report.known.entry(known.name).or_default() += 1,
                    None => report.differed += 1,
                }
                if reason.is_none_or(|known| reasons.iter().any(|asked| asked == known.name)) {
                    let name = reason.map_or("no known reason", |known| known.name);
                    let sides = corpus::beside(&reference, &ours);
                    tell(format!("seed {seed}, {name}: {script}\n  {what}\n{sides}"));
                }
            }
        }
    }
    Ok(report)
}

/// Runs one case on both sides, and finds the reason of a difference.
fn one(reference: &mut Reference, case: &Case, side: Side) -> Result<Outcome> {
    let whole = Interpreter::run(&mut case.graph.clone(), &case.traversal);
    if let Err(Failure::TooBig) = whole {
        return Ok(Outcome::Skipped("too big".into()));
    }
    let mut subject = loaded(reference, case, side)?;
    let script = case.traversal.to_string();
    let merges_show = case.writes || script.contains("withSack(") || script.contains(".call(");
    let theirs = if merges_show { script.replacen("g.", WITHOUT_BARRIERS, 1) } else { script.clone() };
    let outcome = ask(reference, &mut subject, [&theirs, &script], &case.expectation)?;
    let outcome = judged(reference, &mut subject, case, &whole, outcome)?;
    match outcome {
        Outcome::Differed { script, what, reference: theirs, ours, .. } => {
            let reason = reason(reference, case, side, [&theirs, &ours])?;
            Ok(Outcome::Differed { script, what, reference: theirs, ours, reason })
        }
        outcome => Ok(outcome),
    }
}

/// Loads the case's graph on both sides, as it was before the case.
fn loaded(reference: &mut Reference, case: &Case, side: Side) -> Result<Subject> {
    let database = Database::in_memory();
    for statement in case.graph.script() {
        let prepared = database.prepare_bytecode(&statement).map_err(std::io::Error::other)?;
        let run = database.run(&prepared, &mangrove::Parameters::new()).and_then(mangrove::ResultStream::collect);
        run.map_err(std::io::Error::other)?;
    }
    reference.load(engine::elements(&database).map_err(std::io::Error::other)?)?;
    Ok(match side {
        Side::Engine => Subject::Engine(database),
        Side::Oracle => Subject::Oracle(Box::new(OracleEngine(case.graph.clone()))),
    })
}

/// The final outcome of a case, by further checks that depend on the first outcome.
fn judged(
    reference: &mut Reference,
    subject: &mut Subject,
    case: &Case,
    whole: &std::result::Result<Vec<Value>, Failure>,
    outcome: Outcome,
) -> Result<Outcome> {
    let script = case.traversal.to_string();
    match outcome {
        Outcome::Differed { reference: ref theirs, ref ours, .. }
            if theirs.is_err() != ours.is_err() && may_stop_early(&case.traversal) =>
        {
            match whole {
                Err(Failure::Error(_)) => Ok(Outcome::OutOfReach),
                Err(_) => Ok(Outcome::Skipped("an error that may be out of reach".into())),
                Ok(_) => Ok(outcome),
            }
        }
        Outcome::Differed { ours: Ok(_), .. } if !case.writes => {
            let plain = script.replacen("g.", WITHOUT_OPTIMIZATION, 1);
            match ask(reference, subject, [&plain, &script], &case.expectation)? {
                Outcome::Agreed => Ok(Outcome::Optimizer),
                _ => Ok(outcome),
            }
        }
        Outcome::Agreed if case.writes => compare_graphs(reference, subject, &script, &case.expectation),
        // TinkerGraph keeps the writes before an error; the engine rolls them back.
        Outcome::BothFailed if case.writes && matches!(subject, Subject::Engine(_)) => {
            loaded(reference, case, Side::Engine)?;
            compare_graphs(reference, subject, &script, &case.expectation)
        }
        outcome => Ok(outcome),
    }
}

/// The known reason of a difference. Its test covers the case and, if there is a rephrased script for it, both sides
/// agree on that. If several reasons hold only together, this returns the first.
fn reason(
    reference: &mut Reference,
    case: &Case,
    side: Side,
    [theirs, ours]: [&crate::Answer; 2],
) -> Result<Option<&'static Known>> {
    let script = case.traversal.to_string();
    let covering: Vec<&'static Known> = known::covering(&script, theirs, ours).collect();
    for known in &covering {
        let holds = match rephrased(known.name, &script) {
            Some([theirs, ours]) => agree(reference, case, side, [&theirs, &ours])?,
            None => true,
        };
        if holds {
            return Ok(Some(known));
        }
    }
    let [mut theirs, mut ours] = [script.clone(), script];
    for known in &covering {
        if let (Some([words, _]), Some([_, other])) = (rephrased(known.name, &theirs), rephrased(known.name, &ours)) {
            (theirs, ours) = (words, other);
        }
    }
    let together = covering.len() > 1 && agree(reference, case, side, [&theirs, &ours])?;
    Ok(covering.first().copied().filter(|_| together))
}

/// Returns true if both sides give the same answer to these scripts, with the reference's optimizations or without, or
/// if the answers cannot be compared.
fn agree(reference: &mut Reference, case: &Case, side: Side, [theirs, ours]: [&str; 2]) -> Result<bool> {
    let plain = if case.writes { WITHOUT_BARRIERS } else { WITHOUT_OPTIMIZATION };
    for theirs in [&theirs.replacen("g.", plain, 1), theirs] {
        let mut subject = loaded(reference, case, side)?;
        let mut outcome = ask(reference, &mut subject, [theirs, ours], &case.expectation)?;
        if case.writes && matches!(outcome, Outcome::Agreed) {
            outcome = compare_graphs(reference, &mut subject, ours, &case.expectation)?;
        }
        // A script that takes the reference too long does not refute the reason.
        if let Outcome::Agreed | Outcome::Skipped(_) = outcome {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Runs a script on each side and compares the answers.
fn ask(
    reference: &mut Reference,
    subject: &mut Subject,
    [theirs, script]: [&str; 2],
    expectation: &Expectation,
) -> Result<Outcome> {
    let theirs = reference.ask(theirs)?;
    if took_too_long(&theirs) {
        return Ok(Outcome::Skipped("takes the reference too long".into()));
    }
    let ours = subject.ask(script);
    if let (Subject::Oracle(_), Err(error)) = (&*subject, &ours)
        && error.kind() == mangrove::ErrorKind::Unsupported
    {
        return Ok(Outcome::Skipped(format!("the oracle does not know {}", error.message())));
    }
    let what = match (&theirs, &ours) {
        (Ok(theirs), Ok(ours)) => difference(expectation, theirs, ours),
        (Err(_), Err(_)) => return Ok(Outcome::BothFailed),
        (Ok(_), Err(_)) => Some("only we fail".into()),
        (Err(_), Ok(_)) => Some("only the reference fails".into()),
    };
    Ok(match what {
        None => Outcome::Agreed,
        Some(what) => Outcome::Differed {
            script: script.to_owned(),
            what,
            reference: theirs.map(|results| written(&results, true)),
            ours: ours.map(|results| written(&results, true)).map_err(|error| error.to_string()),
            reason: None,
        },
    })
}

/// Compares the graphs after a case that wrote.
fn compare_graphs(
    reference: &mut Reference,
    subject: &mut Subject,
    script: &str,
    expectation: &Expectation,
) -> Result<Outcome> {
    let expectation = Expectation { form: expectation.form, ..Expectation::default() };
    for probe in ["g.V().valueMap(true)", "g.E().elementMap()"] {
        match ask(reference, subject, [probe; 2], &expectation)? {
            Outcome::Differed { what, reference, ours, reason, .. } => {
                let what = format!("afterwards, {probe}: {what}");
                return Ok(Outcome::Differed { script: script.to_owned(), what, reference, ours, reason });
            }
            outcome => drop(outcome),
        }
    }
    Ok(Outcome::Agreed)
}
