//! Small durable transactions: their rate and latency, by the number of clients.
//!
//! All systems and the floor take turns in rounds, a slice of time each: the speed of a disk changes from one second to
//! the next, so only neighbors in time are comparable. A rate is the median of the rounds; latencies are those of all
//! rounds. Afterwards the database is closed and opened again, and every acknowledged commit must be there.

use mangrove::{Error, Result};

use super::clients::{Client, Slice, run_for};
use super::rivals::Redb;
#[cfg(feature = "sqlite")]
use super::rivals::Sqlite;
use super::system::{Floor, Mangrove, System, Work};
use super::{NAME, row};
use crate::harness::{REPETITION_COUNT, Timing};
use crate::oltp::histogram::Histogram;
use crate::report::{Growing, Metric, Row};
use crate::run_directory::RunDirectory;
use crate::suites::Context;

/// Numbers of concurrent clients.
const CLIENTS: [u64; 4] = [1, 8, 32, 64];

/// The writes of a transaction.
const WORKS: [Work; 6] = [
    Work::Properties(1),
    Work::Edges(1),
    Work::Properties(16),
    Work::Edges(16),
    Work::Properties(256),
    Work::Edges(256),
];

/// The target for a small commit of one client, as a multiple of the floor.
const TIMES_FLOOR_MAX: f64 = 1.15;

/// The target for shared syncs: this many clients commit this many times as often as one.
const SHARING: (u64, f64) = (32, 10.0);

pub(super) fn run(context: &Context<'_>, run_directory: &RunDirectory, report: &mut Growing<'_>) -> Result<()> {
    let mut floor = Floors::new(run_directory)?;
    for work in WORKS {
        let mut alone = None;
        for clients in CLIENTS {
            let case = Case { work, clients, alone };
            let rate = case.run(context, run_directory, &mut floor, report)?;
            if clients == 1 {
                alone = rate;
            }
        }
    }
    if !cfg!(feature = "sqlite") && context.options.wants("commits", "sqlite") {
        let how = "sqlite: not measured; build mangrove-bench with --features sqlite";
        report.push(row("commits", how, Metric::Count, 0.0, "commits"));
    }
    floor.report(report);
    Ok(())
}

/// The floor, over all cases.
struct Floors {
    client: [Client; 1],
    latency: Histogram,
    medians: Vec<f64>,
}

impl Floors {
    fn new(run_directory: &RunDirectory) -> Result<Self> {
        let client = [Floor::new(run_directory)?.client()?];
        Ok(Floors { client, latency: Histogram::default(), medians: Vec::new() })
    }

    /// Takes its turn and returns the writes a second.
    fn turn(&mut self, seconds: f64) -> Result<f64> {
        let slice = run_for(&mut self.client, seconds)?;
        self.latency.merge(&slice.latency);
        self.medians.push(slice.latency.quantile(0.5) as f64);
        Ok(slice.rate())
    }

    fn report(self, report: &mut Growing<'_>) {
        if self.medians.is_empty() {
            return;
        }
        let row = Row::time(NAME, "floor: 4 KiB written, fdatasync", "bare", Timing::of(self.medians));
        report.push(row.with("p99", self.latency.quantile(0.99) as f64, "ns"));
    }
}

/// One system in one case.
struct Entry {
    system: Box<dyn System>,
    clients: Vec<Client>,
    rates: Vec<f64>,
    latency: Histogram,
    /// Syncs and commits before the rounds.
    before: Option<(u64, u64)>,
}

impl Entry {
    fn new(system: Box<dyn System>, clients: u64) -> Result<Self> {
        let mut clients = (0..clients).map(|number| system.client(number)).collect::<Result<Vec<_>>>()?;
        // The first commits create names, pages and files; this keeps them out of the rounds.
        run_for(&mut clients, 0.0)?;
        let before = system.syncs();
        Ok(Entry { system, clients, rates: Vec::new(), latency: Histogram::default(), before })
    }

    fn turn(&mut self, seconds: f64) -> Result<()> {
        let slice: Slice = run_for(&mut self.clients, seconds)?;
        self.rates.push(slice.rate());
        self.latency.merge(&slice.latency);
        Ok(())
    }
}

/// One kind of transaction, with a number of clients.
struct Case {
    work: Work,
    clients: u64,
    /// The rate of one client in the directory, if it was measured.
    alone: Option<f64>,
}

impl Case {
    fn name(&self) -> String {
        let clients = if self.clients == 1 { "client" } else { "clients" };
        format!("{}, {} {clients}", self.work.name(), self.clients)
    }

    fn systems(&self, context: &Context<'_>, run_directory: &RunDirectory) -> Result<Vec<Entry>> {
        let (work, clients, name) = (self.work, self.clients, self.name());
        let mut entries = Vec::new();
        let mut enter = |variant: &str, make: &dyn Fn() -> Result<Box<dyn System>>| {
            if context.options.wants(&name, variant) {
                entries.push(Entry::new(make()?, clients)?);
            }
            Ok::<_, Error>(())
        };
        enter("memory", &|| Ok(Box::new(Mangrove::new(work, clients, None)?)))?;
        enter("local", &|| Ok(Box::new(Mangrove::new(work, clients, Some(run_directory.fresh("local")))?)))?;
        enter("redb", &|| Ok(Box::new(Redb::new(work, clients, run_directory.fresh("redb"))?)))?;
        #[cfg(feature = "sqlite")]
        enter("sqlite", &|| Ok(Box::new(Sqlite::new(work, clients, run_directory.fresh("sqlite"))?)))?;
        Ok(entries)
    }

    /// Runs the case and returns the rate in the directory.
    fn run(
        &self,
        context: &Context<'_>,
        run_directory: &RunDirectory,
        floor: &mut Floors,
        report: &mut Growing<'_>,
    ) -> Result<Option<f64>> {
        let mut entries = self.systems(context, run_directory)?;
        if entries.is_empty() {
            return Ok(None);
        }
        let seconds = context.schedule.slice_seconds;
        let mut floors = Vec::new();
        // A run of zero seconds is a test.
        let rounds = if seconds > 0.0 { REPETITION_COUNT } else { 1 };
        for _ in 0..rounds {
            floors.push(floor.turn(seconds)?);
            entries.iter_mut().try_for_each(|entry| entry.turn(seconds))?;
        }
        let limit = Timing::of(floors).median;
        let mut rate = None;
        for entry in entries {
            let is_local = entry.system.name() == "local";
            let median = self.report(entry, limit, report)?;
            if is_local {
                rate = Some(median);
            }
        }
        run_directory.clear()?;
        Ok(rate)
    }

    fn report(&self, entry: Entry, limit: f64, report: &mut Growing<'_>) -> Result<f64> {
        let Entry { system, clients, rates, latency, before } = entry;
        let (case, variant, syncs) = (self.name(), system.name(), system.syncs());
        let done: Vec<_> = clients.iter().map(|client| client.done).collect();
        drop(clients);
        system.check(&done).map_err(|error| error.context(format!("{case}, {variant}")))?;
        let rates = Timing::of(rates);
        let is_local = variant == "local";
        let target = self.target(limit).filter(|_| is_local);
        // A system without durability has another limit.
        let limit = Some(limit).filter(|_| variant != "memory");
        let rate = row(&case, variant, Metric::Rate, rates.median, "commits/s").between(rates.min, rates.max);
        report.push(rate.beside(limit).aiming_at(target).with("commits", latency.count() as f64, "count"));
        for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let latency = latency.quantile(quantile) as f64;
            report.push(row(&case, &format!("{variant}, {name}"), Metric::Time, latency, "ns"));
        }
        if let (Some(before), Some(after)) = (before, syncs) {
            let (syncs, commits) = (after.0 - before.0, after.1 - before.1);
            let each = commits as f64 / syncs.max(1) as f64;
            report.push(row(&case, "local, commits a sync", Metric::Count, each, "").with(
                "syncs",
                syncs as f64,
                "count",
            ));
        }
        Ok(rates.median)
    }

    fn target(&self, floor: f64) -> Option<f64> {
        if self.work.count() > 1 {
            return None;
        }
        match self.clients {
            1 => Some(floor / TIMES_FLOOR_MAX),
            clients if clients == SHARING.0 => self.alone.map(|alone| alone * SHARING.1),
            _ => None,
        }
    }
}
