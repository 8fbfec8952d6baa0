//! Mixes of operations: LinkBench, read-mostly, read-intensive, write-intensive; G-Tran's query templates.
//!
//! Every requested combination of interface, isolation level and skew runs on a freshly loaded graph.

use std::sync::Arc;

use mangrove::{AbortCause, Database, Result, TransactionCounters};

use super::Context;
use crate::harness::wrong;
use crate::oltp::audit::{self, Size};
use crate::oltp::draw::{Draw, Population};
use crate::oltp::driver::{Length, RunRecord, Watch, Worker, drive};
use crate::oltp::graph::{Blueprint, Graph};
use crate::oltp::histogram::Histogram;
use crate::oltp::session::session;
use crate::oltp::skew::Picker;
use crate::oltp::template::{Mix, Verb};
use crate::oltp::{Api, Level, Operations, Skew};
use crate::options::Suite;
use crate::report::{Growing, Metric, Row};
use crate::served::Served;

/// Transactions a second of GDI-RMA, which keeps neither versions nor a log, with one rank and with two, on a similar
/// machine at scale 18.
const GDI_RMA: [(&str, [f64; 2]); 4] = [
    ("linkbench", [131_014.0, 330_286.0]),
    ("read-mostly", [286_548.0, 630_440.0]),
    ("read-intensive", [275_780.0, 491_791.0]),
    ("write-intensive", [50_272.0, 210_725.0]),
];
/// The scale of [`GDI_RMA`]'s figures.
const GDI_RMA_LOG_VERTICES: u32 = 18;
/// GDI-RMA's median latencies of LinkBench's operations at scale 16, one rank, in nanoseconds.
const GDI_RMA_LATENCIES: [(&str, f64); 6] = [
    ("get vertex", 1_850.0),
    ("get edges", 2_700.0),
    ("add vertex", 2_500.0),
    ("add edge", 3_600.0),
    ("update vertex", 2_700.0),
    ("delete vertex", 11_500.0),
];
/// The scale of those latencies.
const GDI_RMA_LATENCY_LOG_VERTICES: u32 = 16;
/// The target, as a multiple of GDI-RMA's throughput.
const TIMES_GDI_RMA: f64 = 2.0;

/// The least number of transactions of a thread in a run. Tests run for zero seconds, so this is their length.
pub(super) const TRANSACTIONS_MIN: u64 = 200;

pub(super) fn run(context: &Context<'_>, suite: Suite, report: &mut Growing<'_>) -> Result<()> {
    let choices = &context.options.choices;
    let operations = choices.operations_of(suite)?;
    let blueprint = Blueprint::kronecker(context.options.scale.log_vertices());
    let mixes = if suite == Suite::Lbv { operations.mixes()? } else { vec![operations.mix(suite.name())?] };
    for (mix, scans) in mixes.iter().flat_map(|mix| forms(mix, operations)) {
        for &api in &choices.apis {
            for &level in &choices.levels {
                // The duration of a template that scans depends only on the size of the graph, so it runs once.
                if scans && (level, api) != (Level::Serializable, Api::Typed) {
                    continue;
                }
                for &skew in &choices.skews {
                    let setting = Setting { suite, operations, api, level, skew, population: Population::Free };
                    if context.options.wants(&mix.name, &setting.variant()) {
                        measure(context, &setting, &mix, &blueprint, report)?;
                    }
                }
            }
        }
    }
    Ok(())
}

/// A mix, with true if it has scans; for LBV also the mix without them, as scans take so long that they hide everything
/// else.
fn forms(mix: &Mix, operations: Operations) -> Vec<(Mix, bool)> {
    match operations {
        Operations::Gdi => vec![(mix.clone(), false)],
        Operations::Lbv => vec![(mix.clone(), true), (mix.without_scans(), false)],
    }
}

/// The setting of a run on one graph.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub suite: Suite,
    pub operations: Operations,
    pub api: Api,
    pub level: Level,
    pub skew: Skew,
    pub population: Population,
}

impl Setting {
    /// The name in reports.
    pub fn variant(&self) -> String {
        format!("{}, {}, {}", self.api.name(), self.level.name(), self.skew)
    }
}

/// The outcomes of a run, as counted here and by the database.
pub(super) struct Measured {
    pub record: RunRecord,
    pub before: TransactionCounters,
    pub after: TransactionCounters,
}

impl Measured {
    /// The number of transactions that were aborted for this cause.
    pub fn aborted(&self, cause: AbortCause) -> u64 {
        self.after.aborted(cause) - self.before.aborted(cause)
    }
}

/// A worker for each thread, with a session and a random draw of its own.
pub(super) fn workers(
    context: &Context<'_>,
    setting: &Setting,
    mix: &Mix,
    graph: &Arc<Graph>,
    served: Option<&Served>,
) -> Result<Vec<Worker>> {
    let picker = Picker::new(setting.skew, graph.vertex_count);
    let worker = |seed: usize| {
        let session = session(setting.api, graph, mix, setting.level.isolation(), served)?;
        let draw = Draw::new(graph, setting.operations, mix, picker.clone(), setting.population, seed as u64);
        Ok(Worker { session, draw })
    };
    (0..context.options.threads).map(worker).collect()
}

/// Runs a mix. Fails if the database counts other aborts than the driver.
pub(super) fn run_counted(
    database: &Database,
    api: Api,
    mix: &Mix,
    length: Length,
    workers: &mut [Worker],
    watch: Option<Watch<'_>>,
) -> Result<Measured> {
    let before = database.transaction_counters();
    let record = drive(mix, length, workers, watch)?;
    let after = database.transaction_counters();
    let measured = Measured { record, before, after };
    let failed = after.conflicts() - before.conflicts();
    // A server retries by itself.
    if api != Api::Server && failed != measured.record.failed() {
        let message = format!("{} transactions failed and {failed} aborts were counted", measured.record.failed());
        return Err(wrong(message));
    }
    Ok(measured)
}

/// Loads a graph, runs a mix on it, checks the graph, and reports.
fn measure(
    context: &Context<'_>,
    setting: &Setting,
    mix: &Mix,
    blueprint: &Blueprint,
    report: &mut Growing<'_>,
) -> Result<()> {
    let graph = Arc::new(blueprint.load(setting.operations)?);
    let served = (setting.api == Api::Server).then(|| Served::start(&graph.database)).transpose()?;
    let mut workers = workers(context, setting, mix, &graph, served.as_ref())?;
    let length = Length { seconds: context.options.seconds, transactions_min: TRANSACTIONS_MIN };
    let measured = run_counted(&graph.database, setting.api, mix, length, &mut workers, None)?;
    drop(workers);
    let size = audit::check(&graph.database)?;
    if setting.api == Api::Typed {
        check_vertices(blueprint.vertex_count(), mix, &measured.record, size)?;
    }
    Reporter { context, setting, mix, case: &mix.name }.all(&measured, report);
    Ok(())
}

/// Returns an error if the graph has not grown by the vertices added less those deleted. Works for the typed interface
/// only: there a deletion tells whether the vertex existed.
fn check_vertices(loaded: u64, mix: &Mix, record: &RunRecord, size: Size) -> Result<()> {
    let effective = |which: fn(Verb) -> bool| {
        let of = mix.entries.iter().zip(&record.outcomes).filter(|((template, _), _)| which(template.verb));
        of.map(|(_, outcome)| outcome.done - outcome.missing).sum::<u64>()
    };
    let expected = loaded + effective(Verb::adds_vertex) - effective(|verb| verb == Verb::DeleteVertex);
    if size.vertices == expected {
        return Ok(());
    }
    Err(wrong(format!("{}: expected {expected} vertices, found {}", mix.name, size.vertices)))
}

/// Makes the rows of a run.
struct Reporter<'a> {
    context: &'a Context<'a>,
    setting: &'a Setting,
    mix: &'a Mix,
    case: &'a str,
}

impl Reporter<'_> {
    fn all(&self, measured: &Measured, report: &mut Growing<'_>) {
        report.push(self.throughput(&measured.record));
        report.push(self.failed(&measured.record));
        for cause in AbortCause::ALL {
            let count = measured.aborted(cause);
            if count > 0 && cause != AbortCause::Rollback {
                let share = 100.0 * count as f64 / (measured.record.done() + measured.record.failed()).max(1) as f64;
                let case = format!("{}: aborts, {}", self.case, cause.name().replace('_', " "));
                report.push(self.row(&case, Metric::Share, share, "%").with("aborts", count as f64, "count"));
            }
        }
        self.templates(&measured.record, report);
        let writing = |outcome: &crate::oltp::driver::Outcome| outcome.writes.max() > 0;
        if measured.record.outcomes.iter().any(writing) {
            report.push(self.sizes("write set", &measured.record.merged(|outcome| &outcome.writes)));
            report.push(self.sizes("read set", &measured.record.merged(|outcome| &outcome.reads)));
        }
    }

    fn row(&self, case: &str, metric: Metric, value: f64, unit: &'static str) -> Row {
        Row::single(self.setting.suite.name(), case, &self.setting.variant(), metric, value, unit)
    }

    fn throughput(&self, record: &RunRecord) -> Row {
        let rate = record.throughput();
        let threads = self.context.options.threads;
        let rival = GDI_RMA.iter().find(|(name, _)| *name == self.mix.name).and_then(|(_, rates)| {
            let comparable = self.setting.operations == Operations::Gdi
                && self.context.options.scale.log_vertices() == GDI_RMA_LOG_VERTICES;
            rates.get(threads.wrapping_sub(1)).filter(|_| comparable).copied()
        });
        let is_aimed = self.setting.api == Api::Typed && self.setting.level == Level::Serializable;
        let latency = record.latency();
        self.row(self.case, Metric::Rate, rate.mean, "tx/s")
            .between(rate.low, rate.high)
            .beside(rival)
            .aiming_at(rival.filter(|_| is_aimed).map(|rate| TIMES_GDI_RMA * rate))
            .with("transactions", record.done() as f64, "count")
            .with("threads", threads as f64, "count")
            .with("latency_mean", latency.mean(), "ns")
    }

    /// The paper reports fewer than 0.2 % failed transactions for mostly reading mixes, and fewer than 2 % for the
    /// others.
    fn failed(&self, record: &RunRecord) -> Row {
        let bound = match (self.setting.operations, self.mix.name.as_str()) {
            (Operations::Lbv, _) => None,
            (_, "read-mostly" | "read-intensive") => Some(0.2),
            _ => Some(2.0),
        };
        self.row(&format!("{}: failed", self.case), Metric::Share, record.failed_percent(), "%").aiming_at(bound)
    }

    /// One row a template: the median latency, with the 5th and the 99th percentile as its range.
    fn templates(&self, record: &RunRecord, report: &mut Growing<'_>) {
        let total = (record.done() + record.failed()).max(1) as f64;
        for ((template, share), outcome) in self.mix.entries.iter().zip(&record.outcomes) {
            let latency = &outcome.latency;
            let quantile = |quantile: f64| latency.quantile(quantile) as f64;
            let percent = 100.0 * (outcome.done + outcome.failed) as f64 / total;
            let paper = 100.0 * share / self.mix.total();
            let case = format!("{}: {} ({percent:.1} %, paper {paper:.1} %)", self.case, template.name);
            let mut row = self
                .row(&case, Metric::Time, quantile(0.5), "ns")
                .beside(self.rival_latency(&template.name))
                .between(quantile(0.05), quantile(0.99))
                .with("share", percent, "%")
                .with("share_in_paper", paper, "%")
                .with("done", outcome.done as f64, "count")
                .with("missing", outcome.missing as f64, "count")
                .with("failed", outcome.failed as f64, "count")
                .with("latency_mean", latency.mean(), "ns")
                .with("latency_p999", quantile(0.999), "ns")
                .with("latency_max", latency.max() as f64, "ns");
            for (up_to, count) in latency.by_power() {
                row = row.with(format!("latency_up_to_{up_to}"), count as f64, "count");
            }
            for (what, sizes) in [("write_set", &outcome.writes), ("read_set", &outcome.reads)] {
                if sizes.max() > 0 {
                    row = row.with(format!("{what}_mean"), sizes.mean(), "count");
                    row = row.with(format!("{what}_max"), sizes.max() as f64, "count");
                }
            }
            report.push(row);
        }
    }

    /// The median latency of GDI-RMA for this operation, in nanoseconds, if the runs are comparable.
    fn rival_latency(&self, operation: &str) -> Option<f64> {
        let comparable = self.setting.suite == Suite::LinkBench
            && self.context.options.scale.log_vertices() == GDI_RMA_LATENCY_LOG_VERTICES;
        let known = GDI_RMA_LATENCIES.iter().find(|(name, _)| comparable && *name == operation);
        known.map(|(_, nanos)| *nanos)
    }

    /// The distribution of the sizes of sets.
    fn sizes(&self, what: &str, sizes: &Histogram) -> Row {
        let case = format!("{}: {what}, mean (min–max)", self.case);
        let (mean, max) = (sizes.mean(), sizes.max() as f64);
        let row = self.row(&case, Metric::Count, mean, "").between(mean.min(sizes.quantile(0.0) as f64), max);
        sizes
            .by_power()
            .into_iter()
            .fold(row, |row, (up_to, count)| row.with(format!("sets_up_to_{up_to}"), count as f64, "count"))
    }
}
