//! Optimistic pre-read and optimistic validation, each on and off, in one run.
//!
//! There are four workloads:
//!
//! - G-Tran's templates, half reads and half writes.
//! - *short validation*: a transaction reads four values and writes two of a thousand.
//! - *long validation*: a transaction reads two thousand vertices at once, and writes fifty.
//! - *long validation in steps*: the same, but it reads a hundred vertices at a time, as a traversal does.
//!
//! The first three have hot spots. In the last one, all vertices are equally likely: with hot spots, every step would
//! read what every transaction writes, and no protocol could commit two of them. All variants take turns on one graph,
//! so changes of the graph affect all of them alike. Targets apply to serializable transactions only.
//!
//! The arguments are drawn before the run, because drawing two thousand vertices takes as long as reading them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mangrove::{AbortCause, Isolation, Result, Settings, Value, ValueRows, VertexId};

use super::Context;
use super::mixes::{Measured, Setting, TRANSACTIONS_MIN, run_counted, workers};
use crate::oltp::audit;
use crate::oltp::draw::{Arguments, Draw, Population};
use crate::oltp::driver::{Length, Worker};
use crate::oltp::graph::{Blueprint, Graph, UPDATED};
use crate::oltp::session::{Done, Session, options};
use crate::oltp::skew::Picker;
use crate::oltp::statistics::Estimate;
use crate::oltp::template::{Mix, Parameter, Template, Verb};
use crate::oltp::{Api, Level, Operations, Skew};
use crate::options::Suite;
use crate::report::{Growing, Metric, Row};
use mangrove_generate::random::RandomStream;

const NAME: &str = Suite::Optimizations.name();

/// The skew of the hot spots.
const SKEW: Skew = Skew::Zipf(0.99);

/// Turns of each variant.
const ROUND_COUNT: usize = 3;

/// The optimizations that are on.
#[derive(Clone, Copy)]
struct Variant {
    name: &'static str,
    pre_read: bool,
    validation: bool,
}

/// The first variant has both, the last none.
const VARIANTS: [Variant; 4] = [
    Variant { name: "both", pre_read: true, validation: true },
    Variant { name: "no pre-read", pre_read: false, validation: true },
    Variant { name: "no optimistic validation", pre_read: true, validation: false },
    Variant { name: "none", pre_read: false, validation: false },
];

impl Variant {
    fn switch(self, settings: &Settings) {
        settings.optimistic_pre_read.store(self.pre_read, Ordering::SeqCst);
        settings.optimistic_validation.store(self.validation, Ordering::SeqCst);
    }
}

/// The transactions of a run.
#[derive(Clone, Copy, PartialEq)]
enum Workload {
    Lbv,
    Touch(TouchSpec),
}

/// Transactions that read the values of some vertices and write others'.
#[derive(Clone, Copy, PartialEq)]
struct TouchSpec {
    name: &'static str,
    /// The number of vertices to choose from.
    vertices: u64,
    skew: Skew,
    /// The number of vertices that a transaction reads.
    reads: usize,
    /// The number of vertices in one read.
    step: usize,
    /// The number of vertices that a transaction writes.
    writes: usize,
    /// Targets of the design, as largest ratios: throughput without both optimizations to throughput with both, and
    /// failures with both to failures without.
    targets: (f64, Option<f64>),
}

const SHORT: TouchSpec = TouchSpec {
    name: "short validation",
    vertices: 1_000,
    skew: SKEW,
    reads: 4,
    step: 4,
    writes: 2,
    targets: NEVER_SLOWER,
};
const LONG: TouchSpec = TouchSpec {
    name: "long validation",
    vertices: 1 << 16,
    skew: SKEW,
    reads: 2_000,
    step: 2_000,
    writes: 50,
    targets: (0.8, Some(0.5)),
};
const IN_STEPS: TouchSpec = TouchSpec { name: "long validation in steps", skew: Skew::Uniform, step: 100, ..LONG };

/// Targets that ask only that the optimizations do not slow transactions down.
const NEVER_SLOWER: (f64, Option<f64>) = (1.0, None);

const WORKLOADS: [Workload; 4] =
    [Workload::Lbv, Workload::Touch(SHORT), Workload::Touch(LONG), Workload::Touch(IN_STEPS)];

impl Workload {
    fn name(self) -> &'static str {
        match self {
            Workload::Lbv => "lbv half-half",
            Workload::Touch(touches) => touches.name,
        }
    }

    fn operations(self) -> Operations {
        if self == Workload::Lbv { Operations::Lbv } else { Operations::Gdi }
    }

    fn mix(self) -> Result<Mix> {
        match self {
            Workload::Lbv => Ok(self.operations().mix("half-half")?.without_scans()),
            Workload::Touch(TouchSpec { name, .. }) => {
                let template = Template {
                    name: name.to_owned(),
                    verb: Verb::SetVertexProperty,
                    gremlin: String::new(),
                    uses: vec![Parameter::Number],
                    is_scan: false,
                };
                Ok(Mix { name: name.to_owned(), entries: vec![(template, 100.0)] })
            }
        }
    }

    fn targets(self) -> (f64, Option<f64>) {
        match self {
            Workload::Lbv => NEVER_SLOWER,
            Workload::Touch(touches) => touches.targets,
        }
    }
}

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let blueprint = Blueprint::kronecker(context.options.scale.log_vertices());
    for workload in WORKLOADS {
        for &level in &context.options.choices.levels {
            if context.options.wants(workload.name(), level.name()) {
                measure(context, workload, level, &blueprint, report)?;
            }
        }
    }
    Ok(())
}

fn measure(
    context: &Context<'_>,
    workload: Workload,
    level: Level,
    blueprint: &Blueprint,
    report: &mut Growing<'_>,
) -> Result<()> {
    let mix = workload.mix()?;
    let graph = Arc::new(blueprint.load(workload.operations())?);
    let mut workers = make_workers(context, workload, level, &mix, &graph)?;
    let length = Length {
        seconds: context.options.seconds / ROUND_COUNT as f64,
        transactions_min: if context.options.seconds == 0.0 { TRANSACTIONS_MIN / 20 } else { 1 },
    };
    let mut measured: Vec<Vec<Measured>> = VARIANTS.iter().map(|_| Vec::new()).collect();
    for _ in 0..ROUND_COUNT {
        for (variant, rounds) in VARIANTS.iter().zip(&mut measured) {
            variant.switch(graph.database.settings());
            rounds.push(run_counted(&graph.database, Api::Typed, &mix, length, &mut workers, None)?);
        }
    }
    drop(workers);
    audit::check(&graph.database)?;
    let summaries: Vec<Summary> = measured.iter().map(|rounds| Summary::of(rounds)).collect();
    let case = format!("{}, {}", workload.name(), level.name());
    for (variant, summary) in VARIANTS.iter().zip(&summaries) {
        summary.rows(&case, variant.name, report);
    }
    if let (Level::Serializable, [both, .., none]) = (level, &summaries[..]) {
        let (slower, aborts) = workload.targets();
        let ratio = |what: &str, value: f64| Row::single(NAME, &case, what, Metric::Ratio, value, "");
        report.push(ratio("throughput, none / both", none.rate.mean / both.rate.mean.max(1e-9)).aiming_at(slower));
        if none.failed > 0.0 {
            report.push(ratio("failed, both / none", both.failed / none.failed).aiming_at(aborts));
        }
    }
    Ok(())
}

fn make_workers(
    context: &Context<'_>,
    workload: Workload,
    level: Level,
    mix: &Mix,
    graph: &Arc<Graph>,
) -> Result<Vec<Worker>> {
    let operations = workload.operations();
    let population = Population::Level;
    let setting = Setting { suite: Suite::Optimizations, operations, api: Api::Typed, level, skew: SKEW, population };
    let Workload::Touch(touches) = workload else {
        return workers(context, &setting, mix, graph, None);
    };
    let vertices = touched(graph, touches.vertices)?;
    let picker = Picker::new(touches.skew, vertices.len() as u64);
    let worker = |seed: usize| {
        let mut random = RandomStream::from_seed(mangrove_generate::random::mix(seed as u64));
        let mut pick = |count: usize| -> Vec<VertexId> {
            (0..count).map(|_| vertices[picker.pick(&mut random, vertices.len() as u64) as usize]).collect()
        };
        let mut drawn = || TouchArguments { read: pick(touches.reads), written: pick(touches.writes) };
        Worker {
            session: Box::new(TouchSession {
                graph: graph.clone(),
                isolation: level.isolation(),
                step: touches.step,
                drawn: (0..DRAWN).map(|_| drawn()).collect(),
                next: 0,
                values: ValueRows::default(),
            }),
            draw: Draw::new(graph, operations, mix, Picker::new(SKEW, 1), population, seed as u64),
        }
    };
    Ok((0..context.options.threads).map(worker).collect())
}

/// The first vertices of the graph by id, as many as are to be touched.
fn touched(graph: &Graph, count: u64) -> Result<Vec<VertexId>> {
    let ids: Vec<_> = (0..count.min(graph.vertex_count)).map(crate::people::id).collect();
    let mut found = Vec::new();
    graph.database.begin_read()?.view().find_vertices(&ids, &mut found)?;
    Ok(found.into_iter().flatten().collect())
}

/// A thread's arguments for this many transactions, drawn before it begins and used in rotation.
const DRAWN: usize = 64;

/// The arguments of a transaction.
struct TouchArguments {
    read: Vec<VertexId>,
    written: Vec<VertexId>,
}

/// Runs the transactions of [`TouchSpec`].
struct TouchSession {
    graph: Arc<Graph>,
    isolation: Isolation,
    step: usize,
    drawn: Vec<TouchArguments>,
    next: usize,
    values: ValueRows,
}

impl Session for TouchSession {
    fn perform(&mut self, _: usize, arguments: &Arguments) -> Result<Done> {
        let TouchArguments { read, written } = &self.drawn[self.next];
        self.next = (self.next + 1) % self.drawn.len();
        let transaction = self.graph.database.begin_with(options(self.isolation))?;
        let key = transaction.view().catalog().intern_key(UPDATED);
        self.values.clear();
        for step in read.chunks(self.step) {
            transaction.view().vertex_values(step, key, &mut self.values)?;
        }
        let value = Value::I64(arguments.number);
        let written: Vec<_> = written.iter().map(|&vertex| (vertex, value.clone())).collect();
        transaction.set_vertex_property(UPDATED, &written)?;
        let info = transaction.commit()?;
        Ok(Done {
            rows: self.values.value.len() as u64,
            writes: info.write_count,
            reads: info.read_count,
            created: None,
        })
    }
}

/// The outcomes of a variant's rounds.
struct Summary {
    rate: Estimate,
    /// Failed transactions, as a share of all, in percent.
    failed: f64,
    /// Aborts by cause, as shares of all transactions, in percent.
    causes: Vec<(AbortCause, f64)>,
}

impl Summary {
    fn of(rounds: &[Measured]) -> Self {
        let rates: Vec<f64> = rounds.iter().flat_map(|round| round.record.rates()).collect();
        let failed: u64 = rounds.iter().map(|round| round.record.failed()).sum();
        let all = failed + rounds.iter().map(|round| round.record.done()).sum::<u64>();
        let percent = |count: u64| 100.0 * count as f64 / all.max(1) as f64;
        let of_cause = |cause| (cause, percent(rounds.iter().map(|round| round.aborted(cause)).sum()));
        Summary {
            rate: Estimate::of(&rates).expect("every round has slices or is one"),
            failed: percent(failed),
            causes: AbortCause::ALL.map(of_cause).to_vec(),
        }
    }

    fn rows(&self, case: &str, variant: &str, report: &mut Growing<'_>) {
        let rate = Row::single(NAME, case, variant, Metric::Rate, self.rate.mean, "tx/s");
        report.push(rate.between(self.rate.low, self.rate.high));
        let failed = Row::single(NAME, &format!("{case}: failed"), variant, Metric::Share, self.failed, "%");
        let causes = self.causes.iter().filter(|(_, share)| *share > 0.0);
        report
            .push(causes.fold(failed, |row, (cause, share)| row.with(format!("failed_{}", cause.name()), *share, "%")));
    }
}
