//! Short queries beside heavy ones: their latency, alone and beside 1, 4, 8 and 64 heavy queries.
//!
//! - This file: short reads at a fixed pace (Banyan, figure 7c).
//! - `clients`: many clients of a small query beside as many of a large one (figures 7a and 7b).
//! - `instances`: light scope instances beside a heavy one, in one query.
//!
//! One client sends short reads at a fixed pace: G-Tran's templates IS1 (a profile) and IS3 (friends) in turn. Other
//! clients, each in a thread, run a heavy query again and again (a pattern of LSQB). All of them are embedded (their
//! queries begin on the thread of the client and continue on executors), or all of them are connections to a server.
//! The clients are threads of this process, so they share the cores with the database.
//!
//! The short client waits for each answer. If an answer takes longer than the pace, the reads that should have been sent
//! meanwhile count as well, each with the time from its turn to that answer. Otherwise, one long wait would count as one
//! read.
//!
//! A control runs short reads beside tasks of the executors that only add numbers ([`Adder`]), with the priority and the
//! turns of queries. It shows what the system and the machine do to a short read when all cores are used, whatever uses
//! them. For example, the host of a virtual machine stops one of its cores for some milliseconds now and then.
//!
//! Every answer to a short read is compared with the reference's before the first measurement. While time is taken, every
//! answer must have as many rows, and every heavy answer must be the reference's.

mod clients;
mod instances;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use mangrove::{Database, Isolation, Parameters, Prepared, QueryOptions, Result, Value};
use mangrove_flow::schedule::{Executors, TURN_NANOS, Task, TaskStatus, Tenant};
use mangrove_queries::{QuerySet, to_json};

use super::Context;
use crate::client::Client;
use crate::harness::wrong;
use crate::oltp::histogram::Histogram;
use crate::options::{Options, Suite};
use crate::plot::{self, Line, Panel};
use crate::queries::asked::Asked;
use crate::queries::choices::QueryChoices;
use crate::queries::data;
use crate::queries::drawn::Drawn;
use crate::queries::network::Network;
use crate::report::{Growing, Metric, Row};
use crate::served::{Served, source};

const SUITE: Suite = Suite::Isolation;

/// What runs beside short reads. The first is nothing: all others are compared with it.
const LOADS: [Load; 6] =
    [Load::Heavy(0), Load::Adders, Load::Heavy(1), Load::Heavy(4), Load::Heavy(8), Load::Heavy(64)];

/// A measurement takes so many times as long as a case of other suites, because a 99th percentile rests on few reads.
const SECONDS_TIMES: f64 = 5.0;

/// The short reads, in G-Tran's set of templates.
const SHORT: [&str; 2] = ["IS1", "IS3"];

/// The heavy query, in LSQB's set.
const HEAVY: &str = "q5";

/// The time from one short read to the next.
const PACE: Duration = Duration::from_millis(1);

/// The least number of short reads of a measurement. Tests run for zero seconds, so this is their length.
const READS_MIN: u64 = 20;

/// The pass mark of the median, as a multiple of the median alone.
const MEDIAN_TIMES: f64 = 1.5;

/// The pass mark of the 99th percentile: this much above that of the short reads alone.
const ABOVE_ALONE_NS: f64 = 1e6;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let queries = QueryChoices { executors: vec![cores], data: None };
    let options = Options { queries, ..context.options.clone() };
    instances::run(&options, report)?;
    let network = Network::generated(&options)?;
    network.describe(SUITE, report);
    let database = &network.replicas.smallest().database;
    let (short, heavy) = asked(&network)?;
    let served = Served::start(database)?;
    let mut panels = Vec::new();
    for place in [Place::Embedded, Place::Server] {
        if !context.options.wants(place.name(), "short") {
            continue;
        }
        let stand = Stand { place, database, served: &served, short: &short, heavy: &heavy };
        let expected = stand.check()?;
        let mut lines = Vec::new();
        let mut alone: Option<Histogram> = None;
        for load in LOADS {
            let measured = stand.measure(load, context.options.seconds * SECONDS_TIMES, &expected)?;
            push(report, place, load, &measured, alone.as_ref());
            lines.push(line(load, &measured.latency));
            alone.get_or_insert(measured.latency);
        }
        panels.push(Panel { title: format!("{}: share of short reads, %", place.name()), lines });
    }
    report.note(
        SUITE.name(),
        format!("The clients are threads of the process of the database and share its {cores} cores."),
    );
    drop((served, short, heavy));
    panels.extend(beside_clients(context.options, &options, network, report)?);
    if let Some(path) = &context.options.choices.plot {
        let x_title = "latency: powers of ten of a microsecond (1 is 10 µs, 3 is 1 ms)";
        std::fs::write(path, plot::svg(x_title, plot::Axes::Linear, &panels))
            .map_err(|e| mangrove::Error::from(e).context(path.display()))?;
    }
    Ok(())
}

/// Runs `clients` on LDBC's network if its data set is there, else on the generated one.
fn beside_clients(
    given: &Options,
    options: &Options,
    generated: Network,
    report: &mut Growing<'_>,
) -> Result<Vec<Panel>> {
    let network = match data::find(given, data::LDBC)? {
        Ok(data) => {
            drop(generated);
            let network = Network::ldbc(options, &data)?;
            network.describe(SUITE, report);
            return clients::run(options, &network, report);
        }
        Err(_) => generated,
    };
    let why = "IC1 and IC9 ran on the generated network, because --data names no directory with LDBC's.";
    report.note(SUITE.name(), why.into());
    clients::run(options, &network, report)
}

/// The short reads, and the heavy query.
fn asked(network: &Network) -> Result<(Vec<Asked>, Asked)> {
    let drawn = Drawn::of(&network.reference);
    let (templates, patterns) = (QuerySet::named("gtran-templates"), QuerySet::named("lsqb"));
    let none = || wrong("the generated network has no persons for short reads".into());
    let short = SHORT.iter().map(|name| {
        let case = format!("{}, {name}", network.name);
        let persons = drawn.many_starts();
        Asked::with_reference(&network.reference, case, &templates, templates.query(name), &persons).ok_or_else(none)
    });
    let heavy = Asked::of_paper(network, &drawn, &patterns, patterns.query(HEAVY)).ok_or_else(none)?;
    Ok((short.collect::<Result<_>>()?, heavy))
}

/// What runs beside short reads.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Load {
    /// Clients, each of which runs the heavy query again and again.
    Heavy(usize),
    /// A task for each executor that only adds numbers.
    Adders,
}

impl Load {
    fn name(self) -> String {
        match self {
            Load::Heavy(0) => "alone".to_owned(),
            Load::Heavy(count) => format!("beside {count} heavy"),
            Load::Adders => "beside added numbers".to_owned(),
        }
    }
}

/// A task that adds numbers until it is stopped.
struct Adder(Arc<AtomicBool>);

impl Task for Adder {
    fn run(&mut self, _: usize) -> TaskStatus {
        let begin = Instant::now();
        let mut sum = 0_u64;
        while begin.elapsed().as_nanos() < u128::from(TURN_NANOS) {
            (0..1_000).for_each(|n| sum = std::hint::black_box(sum.wrapping_add(n)));
        }
        if self.0.load(Ordering::Relaxed) { TaskStatus::Done } else { TaskStatus::Again }
    }
}

/// The place where queries run, and the way from the client to it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the process of the client.
    Embedded,
    /// In a server on the loopback interface.
    Server,
}

impl Place {
    fn name(self) -> &'static str {
        match self {
            Place::Embedded => "embedded",
            Place::Server => "server",
        }
    }
}

/// A client of one query.
enum QueryClient<'a> {
    Embedded(&'a Database, Prepared),
    Server(Box<Client>, &'a str),
}

impl<'a> QueryClient<'a> {
    fn new(place: Place, database: &'a Database, served: &Served, asked: &'a Asked) -> Result<Self> {
        Ok(match place {
            Place::Embedded => QueryClient::Embedded(database, database.prepare(&asked.text)?),
            Place::Server => {
                let client = Client::connect(served.address(), source(Isolation::Serializable))?;
                QueryClient::Server(Box::new(client), &asked.text)
            }
        })
    }

    /// Runs the query and passes on its results, each with the number of times that it occurs.
    fn run(&mut self, parameters: &Parameters, each: &mut dyn FnMut(&Value, u64)) -> Result<()> {
        match self {
            QueryClient::Embedded(database, prepared) => {
                database.run_shared(prepared, parameters, &QueryOptions::default(), &mut |batch| {
                    batch.iter().for_each(|(value, bulk)| each(value, *bulk));
                    Ok(())
                })
            }
            QueryClient::Server(client, text) => client.evaluate(text, parameters, each),
        }
    }

    /// The rows of the answer.
    fn rows(&mut self, parameters: &Parameters) -> Result<Vec<serde_json::Value>> {
        let mut rows = Vec::new();
        self.run(parameters, &mut |value, bulk| rows.extend(std::iter::repeat_n(to_json(value), bulk as usize)))?;
        Ok(rows)
    }
}

/// The queries and the place where they run.
struct Stand<'a> {
    place: Place,
    database: &'a Database,
    served: &'a Served,
    short: &'a [Asked],
    heavy: &'a Asked,
}

/// The outcomes beside a number of heavy queries.
struct Measured {
    /// Nanoseconds of the short reads.
    latency: Histogram,
    /// Answers of heavy queries while short reads were measured.
    heavy_done: usize,
    seconds: f64,
}

impl Stand<'_> {
    fn client<'b>(&'b self, asked: &'b Asked) -> Result<QueryClient<'b>> {
        QueryClient::new(self.place, self.database, self.served, asked)
    }

    /// Checks all answers. Returns the number of rows of each run of each short read.
    fn check(&self) -> Result<Vec<Vec<u64>>> {
        let check = |asked: &Asked| -> Result<Vec<u64>> {
            let mut client = self.client(asked)?;
            let mut counts = Vec::new();
            for (at, run) in asked.runs.iter().enumerate() {
                let rows = client.rows(&run.parameters)?;
                asked.check(at, &rows)?;
                counts.push(rows.len() as u64);
            }
            Ok(counts)
        };
        check(self.heavy)?;
        self.short.iter().map(check).collect()
    }

    /// Runs short reads for this time beside the load.
    fn measure(&self, load: Load, seconds: f64, expected: &[Vec<u64>]) -> Result<Measured> {
        match load {
            Load::Heavy(count) => self.beside_heavy(count, seconds, expected),
            Load::Adders => {
                let executors = Executors::shared()?;
                let stop = Arc::new(AtomicBool::new(false));
                for _ in 0..executors.count() {
                    executors.spawn(&Tenant::default(), |_| Box::new(Adder(stop.clone())));
                }
                let latency = self.short_client(seconds, expected);
                stop.store(true, Ordering::Relaxed);
                Ok(Measured { latency: latency?, heavy_done: 0, seconds })
            }
        }
    }

    /// See [`Stand::measure`]. The short reads begin when every heavy client has had its first answer.
    fn beside_heavy(&self, heavy_count: usize, seconds: f64, expected: &[Vec<u64>]) -> Result<Measured> {
        let (stop, begun, done) = (AtomicBool::new(false), AtomicUsize::new(0), AtomicUsize::new(0));
        std::thread::scope(|scope| {
            let heavy = || scope.spawn(|| self.heavy_client(&stop, &begun, &done));
            let running: Vec<_> = (0..heavy_count).map(|_| heavy()).collect();
            while begun.load(Ordering::Acquire) < heavy_count {
                std::thread::sleep(PACE);
            }
            let before = (done.load(Ordering::Relaxed), Instant::now());
            let latency = self.short_client(seconds, expected);
            let (heavy_done, seconds) = (done.load(Ordering::Relaxed) - before.0, before.1.elapsed().as_secs_f64());
            stop.store(true, Ordering::Relaxed);
            for thread in running {
                thread.join().map_err(|_| wrong("a client of a heavy query panicked".into()))??;
            }
            Ok(Measured { latency: latency?, heavy_done, seconds })
        })
    }

    /// Runs the heavy query until `stop` is set.
    fn heavy_client(&self, stop: &AtomicBool, begun: &AtomicUsize, done: &AtomicUsize) -> Result<()> {
        let first = self.client(self.heavy).and_then(|mut client| self.heavy_run(&mut client).map(|()| client));
        begun.fetch_add(1, Ordering::Release);
        let mut client = first?;
        while !stop.load(Ordering::Relaxed) {
            self.heavy_run(&mut client)?;
            done.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Runs the heavy query once and checks its answer.
    fn heavy_run(&self, client: &mut QueryClient<'_>) -> Result<()> {
        let rows = client.rows(&self.heavy.runs[0].parameters)?;
        self.heavy.check(0, &rows)
    }

    /// Sends short reads at the fixed pace, for this time and at least [`READS_MIN`].
    fn short_client(&self, seconds: f64, expected: &[Vec<u64>]) -> Result<Histogram> {
        let mut clients = self.short.iter().map(|asked| self.client(asked)).collect::<Result<Vec<_>>>()?;
        let (mut latency, mut number) = (Histogram::default(), 0);
        let begin = Instant::now();
        let mut due = begin;
        while number < READS_MIN as usize || begin.elapsed().as_secs_f64() < seconds {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            let (which, run) = (number % self.short.len(), number / self.short.len());
            let runs = &self.short[which].runs;
            let run = run % runs.len();
            let (mut count, sent) = (0, Instant::now());
            clients[which].run(&runs[run].parameters, &mut |_, bulk| count += bulk)?;
            let took = sent.elapsed();
            if count != expected[which][run] {
                let wanted = expected[which][run];
                return Err(wrong(format!("{}: {count} rows instead of {wanted}", self.short[which].case)));
            }
            due += PACE * add_with_missed(&mut latency, took);
            number += 1;
        }
        Ok(latency)
    }
}

/// Adds a latency, and those of the reads that should have been sent meanwhile. Returns their number.
fn add_with_missed(latency: &mut Histogram, took: Duration) -> u32 {
    let mut left = took;
    let mut count = 0;
    loop {
        latency.add(left.as_nanos() as u64);
        count += 1;
        match left.checked_sub(PACE) {
            Some(rest) if !rest.is_zero() => left = rest,
            _ => return count,
        }
    }
}

/// Reports a measurement; `alone` is that without heavy queries, unless this is it.
fn push(report: &mut Growing<'_>, place: Place, load: Load, measured: &Measured, alone: Option<&Histogram>) {
    let case = format!("{}, {}", place.name(), load.name());
    let row = |variant, quantile, mark: fn(f64) -> f64| {
        let value = measured.latency.quantile(quantile) as f64;
        let row = Row::single(SUITE.name(), &case, variant, Metric::Time, value, "ns");
        let alone = alone.map(|alone| alone.quantile(quantile) as f64);
        row.beside(alone).aiming_at(alone.map(mark))
    };
    let median = row("short, p50", 0.5, |alone| alone * MEDIAN_TIMES);
    report.push(median.with("reads", measured.latency.count() as f64, ""));
    report.push(row("short, p99", 0.99, |alone| alone + ABOVE_ALONE_NS));
    if measured.heavy_done > 0 {
        let rate = measured.heavy_done as f64 / measured.seconds;
        report.push(Row::single(SUITE.name(), &case, "heavy", Metric::Rate, rate, "queries/s"));
    }
}

/// The distribution function, with latencies as powers of ten of a microsecond.
fn line(load: Load, latency: &Histogram) -> Line {
    line_of(load.name(), latency)
}

/// See [`line`].
fn line_of(name: String, latency: &Histogram) -> Line {
    let point = |(nanos, share): (u64, f64)| ((nanos as f64 / 1e3).log10().max(0.0), share * 100.0);
    Line { name, points: latency.cumulative().into_iter().map(point).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_that_were_due_meanwhile_count() {
        let mut latency = Histogram::default();
        assert_eq!(add_with_missed(&mut latency, PACE / 2), 1);
        assert_eq!(add_with_missed(&mut latency, PACE), 1);
        assert_eq!(add_with_missed(&mut latency, PACE * 7 / 2), 4);
        assert_eq!((latency.count(), latency.max()), (6, 3_500_000));
        // 3.5, 2.5, 1.5 and 0.5 ms, beside 1 ms and 0.5 ms.
        assert!((latency.mean() - 9_500_000.0 / 6.0).abs() < 1.0);
    }

    #[test]
    fn a_line_ascends_to_all_reads() {
        let mut latency = Histogram::default();
        [500, 10_000, 10_000, 1_000_000].into_iter().for_each(|nanos| latency.add(nanos));
        let points = line(Load::Heavy(4), &latency).points;
        assert_eq!((points.first().unwrap().0, points.last().unwrap().1), (0.0, 100.0));
        assert!(points.is_sorted_by(|a, b| a.0 <= b.0 && a.1 < b.1), "{points:?}");
        assert_eq!(line(Load::Heavy(0), &latency).name, "alone");
    }
}
