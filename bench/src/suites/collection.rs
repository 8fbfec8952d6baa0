//! Garbage collection on and off over time: throughput and memory under a steady load of updates.
//!
//! The load is G-Tran's templates, half reads and half writes, on a level population: a thread removes again what it
//! adds. So all growth of memory is old versions and remains of deleted elements.
//!
//! If the machine has no idle processor, the cost of collection shows in the throughput. If it has, or if other
//! programs disturb the run, compare the processor time of a transaction, which includes the collectors'.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove::{Error, Result};

use super::Context;
use super::mixes::{Setting, TRANSACTIONS_MIN, run_counted, workers};
use crate::environment::processor_seconds;
use crate::oltp::audit::{self, Size};
use crate::oltp::draw::Population;
use crate::oltp::driver::{Length, Watch};
use crate::oltp::graph::Blueprint;
use crate::oltp::{Api, Level, Operations, Skew};
use crate::options::Suite;
use crate::plot::{Axes, Line, Panel, svg};
use crate::report::{Growing, Metric, Row};

const NAME: &str = Suite::Collection.name();
const CASE: &str = "lbv half-half, level";

/// The target for the cost of collection: the ratio of the throughput without it, before garbage slows it down, to the
/// throughput with it. Also the ratio of the processor times.
const TIMES_SLOWER_MAX: f64 = 1.0 / 0.97;
/// Memory counts as level if it grows by no more than this fraction over the second half of a run.
const GROWTH_MAX: f64 = 1.05;

/// Observations of a run: one a second, but at least ten.
const LOOKS_MIN: f64 = 10.0;

/// One observation.
struct Sample {
    seconds: f64,
    /// Transactions a second since the last observation.
    rate: f64,
    /// Processor time of all threads since the last observation, in nanoseconds a transaction.
    processor: f64,
    /// Bytes by kind of record.
    bytes: Vec<(&'static str, u64)>,
}

impl Sample {
    fn total_bytes(&self) -> f64 {
        self.bytes.iter().map(|(_, bytes)| *bytes as f64).sum()
    }
}

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let blueprint = Blueprint::kronecker(context.options.scale.log_vertices());
    let (on, size) = watch(context, &blueprint, true)?;
    let (off, _) = watch(context, &blueprint, false)?;
    for (variant, samples) in [("on", &on), ("off", &off)] {
        rows(variant, samples, report);
    }
    let live = (size.vertices + size.edges).max(1) as f64;
    let bytes = on[on.len() - 1].total_bytes() / live;
    report.push(Row::single(NAME, &format!("{CASE}: memory, a live element"), "on", Metric::Size, bytes, "B"));
    compare(&on, &off, report);
    match &context.options.choices.plot {
        Some(path) => std::fs::write(path, plot(&on, &off)).map_err(|e| Error::from(e).context(path.display())),
        None => Ok(()),
    }
}

fn watch(context: &Context<'_>, blueprint: &Blueprint, collecting: bool) -> Result<(Vec<Sample>, Size)> {
    let setting = Setting {
        suite: Suite::Collection,
        operations: Operations::Lbv,
        api: Api::Typed,
        level: Level::Serializable,
        skew: Skew::Uniform,
        population: Population::Level,
    };
    let mix = setting.operations.mix("half-half")?.without_scans();
    let graph = Arc::new(blueprint.load(setting.operations)?);
    graph.database.settings().garbage_collection.store(collecting, Ordering::SeqCst);
    let mut workers = workers(context, &setting, &mix, &graph, None)?;
    // A run of zero seconds is a test and takes a tenth of a second.
    let seconds = if context.options.seconds == 0.0 { 0.1 } else { context.options.choices.churn_seconds };
    let mut samples = Vec::new();
    let mut last = (0.0, 0, processor_seconds());
    let mut look = |seconds: f64, done: u64| {
        let bytes = graph.database.memory().rows.iter().map(|row| (row.name, row.bytes)).collect();
        let (processor_now, since) = (processor_seconds(), (done - last.1) as f64);
        let rate = since / (seconds - last.0).max(1e-9);
        let processor = (processor_now - last.2) * 1e9 / since.max(1.0);
        samples.push(Sample { seconds, rate, processor, bytes });
        last = (seconds, done, processor_now);
    };
    let watch = Watch { interval: Duration::from_secs_f64((seconds / LOOKS_MIN).min(1.0)), look: &mut look };
    let length = Length { seconds, transactions_min: TRANSACTIONS_MIN };
    run_counted(&graph.database, Api::Typed, &mix, length, &mut workers, Some(watch))?;
    drop(workers);
    let size = audit::check(&graph.database)?;
    Ok((samples, size))
}

/// The mean over some samples.
fn mean(samples: &[Sample], of: impl Fn(&Sample) -> f64) -> f64 {
    samples.iter().map(of).sum::<f64>() / samples.len().max(1) as f64
}

fn quarter(samples: &[Sample]) -> usize {
    samples.len().div_ceil(4)
}

fn rows(variant: &str, samples: &[Sample], report: &mut Growing<'_>) {
    let quarter = quarter(samples);
    let (first, last) = (&samples[..quarter], &samples[samples.len() - quarter..]);
    let row = |what: &str, metric: Metric, value: f64, unit: &'static str| {
        Row::single(NAME, &format!("{CASE}: {what}"), variant, metric, value, unit)
    };
    report.push(row("throughput, first quarter", Metric::Rate, mean(first, |sample| sample.rate), "tx/s"));
    let series = row("throughput, last quarter", Metric::Rate, mean(last, |sample| sample.rate), "tx/s");
    let at = |sample: &Sample, what: &str| format!("{what}_at_{:.1}_s", sample.seconds);
    report.push(samples.iter().fold(series, |row, sample| row.with(at(sample, "rate"), sample.rate, "tx/s")));
    for (when, samples) in [("first", first), ("last", last)] {
        let what = format!("processor time a transaction, {when} quarter");
        report.push(row(&what, Metric::Time, mean(samples, |sample| sample.processor), "ns"));
    }
    report.push(row("memory, first look", Metric::Size, samples[0].total_bytes(), "B"));
    let mut memory = row("memory, last look", Metric::Size, samples[samples.len() - 1].total_bytes(), "B");
    for sample in samples {
        memory = memory.with(at(sample, "bytes"), sample.total_bytes(), "B");
        for (kind, bytes) in &sample.bytes {
            memory = memory.with(at(sample, &format!("bytes_of_{}", kind.replace(' ', "_"))), *bytes as f64, "B");
        }
    }
    report.push(memory);
    for (kind, bytes) in &samples[samples.len() - 1].bytes {
        let before = samples[0].bytes.iter().find(|(name, _)| name == kind).map_or(0, |(_, bytes)| *bytes);
        if *bytes > before {
            report.push(row(&format!("growth, {kind}"), Metric::Size, (*bytes - before) as f64, "B"));
        }
    }
}

fn compare(on: &[Sample], off: &[Sample], report: &mut Growing<'_>) {
    let ratio = |what: &str, value: f64| Row::single(NAME, CASE, what, Metric::Ratio, value, "");
    let last = &on[on.len() - quarter(on)..];
    let slower = mean(&off[..quarter(off)], |sample| sample.rate) / mean(last, |sample| sample.rate).max(1e-9);
    report.push(ratio("throughput, off at first / on at last", slower).aiming_at(TIMES_SLOWER_MAX));
    let dearer =
        mean(last, |sample| sample.processor) / mean(&off[..quarter(off)], |sample| sample.processor).max(1e-9);
    report.push(ratio("processor time, on at last / off at first", dearer).aiming_at(TIMES_SLOWER_MAX));
    for (name, samples, target) in [("on", on, Some(GROWTH_MAX)), ("off", off, None)] {
        let growth = samples[samples.len() - 1].total_bytes() / samples[samples.len() / 2].total_bytes();
        report.push(ratio(&format!("memory, last / middle, {name}"), growth).aiming_at(target));
    }
}

fn plot(on: &[Sample], off: &[Sample]) -> String {
    let line = |name: &str, samples: &[Sample], of: &dyn Fn(&Sample) -> f64| Line {
        name: format!("collection {name}"),
        points: samples.iter().map(|sample| (sample.seconds, of(sample))).collect(),
    };
    let panel = |title: &str, of: &dyn Fn(&Sample) -> f64| Panel {
        title: title.to_owned(),
        lines: vec![line("on", on, of), line("off", off, of)],
    };
    let throughput = panel("transactions a second", &|sample| sample.rate);
    svg("seconds", Axes::Linear, &[throughput, panel("bytes", &Sample::total_bytes)])
}
