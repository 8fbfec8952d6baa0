//! Graphs in homes of objects: small commits, the write amplification of checkpoints, and openings.
//!
//! A home in memory stands for an object store, with a delay for each request. With `--home`, real stores are measured
//! beside it. Every request is counted, and its price added up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mangrove::{Database, DatabaseOptions, Durability, ErrorKind, Result, Value};
use mangrove_durable::home::counting::{CountingHome, RequestKind};
use mangrove_durable::home::delay::DelayHome;
use mangrove_durable::home::{Home, MemoryHome, address};
use mangrove_generate::random::RandomStream;

use super::clients::{Client, run_beside, run_for};
use super::graph::Graph;
use super::system::{VERTICES_A_CLIENT, Work, check, client_of, load_people};
use super::{NAME, row};
use crate::harness::{Timing, wrong};
use crate::oltp::skew::{Picker, Skew};
use crate::report::{Growing, Metric, Row};
use crate::suites::Context;

/// Delays of requests, in milliseconds. Object stores answer in 10 to 30.
const DELAYS_MS: [u64; 4] = [0, 3, 10, 25];

/// Numbers of concurrent clients.
const CLIENTS: [u64; 3] = [1, 32, 256];

/// The clients for whom puts are also spaced out by [`INTERVAL`].
const SPACED_CLIENTS: u64 = 32;
const INTERVAL: Duration = Duration::from_millis(50);

/// Prices of S3 (standard) in dollars, as the thesis has them (§2.1, 2024): of 1,000 puts or lists, and of 1,000 reads.
const DOLLARS_A_PUT: f64 = 0.005 / 1e3;
const DOLLARS_A_READ: f64 = 0.0004 / 1e3;

/// Checkpoints in a case of write amplification.
const CHECKPOINTS: u64 = 3;

/// Openings of each home.
const OPENINGS: usize = 3;

/// The distributions of updates whose write amplification is measured.
const SKEWS: [Skew; 2] = [Skew::Uniform, Skew::Zipf(0.99)];

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    for place in places(context) {
        for clients in CLIENTS {
            commits(context, &place, clients, Duration::ZERO, report)?;
            if clients == SPACED_CLIENTS {
                commits(context, &place, clients, INTERVAL, report)?;
            }
        }
        openings(context, &place, report)?;
    }
    for skew in SKEWS {
        amplification(context, skew, report)?;
    }
    Ok(())
}

/// Where homes are.
struct Place {
    /// The name in reports.
    name: String,
    /// An address; `None`: memory.
    address: Option<String>,
    delay: Duration,
}

fn places(context: &Context<'_>) -> Vec<Place> {
    // A run of zero seconds is a test.
    let delays = if context.schedule.slice_seconds > 0.0 { &DELAYS_MS[..] } else { &DELAYS_MS[..2] };
    let memory = delays.iter().map(|&millis| Place {
        name: format!("home, {millis} ms a request"),
        address: None,
        delay: Duration::from_millis(millis),
    });
    let real = context.options.choices.homes.iter().map(|address| Place {
        name: format!("home in {address}"),
        address: Some(address.clone()),
        delay: Duration::ZERO,
    });
    memory.chain(real).collect()
}

/// A home, with its requests counted.
struct Counted {
    counting: Arc<CountingHome>,
    /// As the database sees it: with delays.
    home: Arc<dyn Home>,
}

impl Counted {
    /// An empty home. In a store, it is a directory that no other one has.
    fn new(place: &Place) -> Result<Self> {
        let home: Arc<dyn Home> = match &place.address {
            None => Arc::new(MemoryHome::new()),
            Some(address) => {
                let name = uuid::Uuid::new_v4();
                address::open(&format!("{}/bench-{name}", address.trim_end_matches('/')))?
            }
        };
        let counting = Arc::new(CountingHome::new(home));
        let home: Arc<dyn Home> = Arc::new(DelayHome::new(counting.clone(), place.delay, 1)?);
        Ok(Counted { counting, home })
    }

    fn requests(&self) -> Requests {
        let mut requests = Requests::default();
        for kind in RequestKind::ALL {
            let count = self.counting.count(kind);
            match kind {
                RequestKind::PutNew | RequestKind::PutUnique => {
                    requests.puts += count.requests;
                    requests.put_bytes += count.bytes;
                }
                // It is priced like a put.
                RequestKind::List => requests.puts += count.requests,
                RequestKind::Get | RequestKind::Ranges | RequestKind::Head => requests.reads += count.requests,
                // Free.
                RequestKind::Delete => {}
            }
        }
        requests
    }
}

/// Requests, by what they cost.
#[derive(Clone, Copy, Default)]
struct Requests {
    puts: u64,
    put_bytes: u64,
    reads: u64,
}

impl Requests {
    fn since(self, before: Requests) -> Requests {
        Requests {
            puts: self.puts - before.puts,
            put_bytes: self.put_bytes - before.put_bytes,
            reads: self.reads - before.reads,
        }
    }

    fn dollars(self) -> f64 {
        self.puts as f64 * DOLLARS_A_PUT + self.reads as f64 * DOLLARS_A_READ
    }
}

/// Small commits of some clients, with a time between two puts at least.
fn commits(
    context: &Context<'_>,
    place: &Place,
    clients: u64,
    interval: Duration,
    report: &mut Growing<'_>,
) -> Result<()> {
    let work = Work::Properties(1);
    let people = if clients == 1 { "client" } else { "clients" };
    let spaced = if interval.is_zero() { String::new() } else { format!(", log_interval {} ms", interval.as_millis()) };
    let case = format!("{}, {clients} {people}{spaced}", work.name());
    if !context.options.wants(&case, &place.name) {
        return Ok(());
    }
    let counted = Counted::new(place)?;
    let mut options = DatabaseOptions::default();
    options.durability.object_log.log_interval = interval;
    let database = Database::open_in(counted.home.clone(), &options)?;
    load_people(&database, clients)?;
    let mut running: Vec<_> = (0..clients).map(|number| Client::new(client_of(&database, work, number))).collect();
    run_for(&mut running, 0.0)?;
    let before = counted.requests();
    let slice = run_for(&mut running, context.options.seconds)?;
    let requests = counted.requests().since(before);
    let done: Vec<_> = running.iter().map(|client| client.done).collect();
    drop((running, database));
    check(&Database::open_in(counted.home, &options)?, work, &done).map_err(|error| error.context(&case))?;

    let commits = slice.latency.count() as f64;
    let rate = row(&case, &place.name, Metric::Rate, slice.rate(), "commits/s");
    report.push(rate.with("commits", commits, "count").with("puts", requests.puts as f64, "count"));
    for (name, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let latency = slice.latency.quantile(quantile) as f64;
        report.push(row(&case, &format!("{}, {name}", place.name), Metric::Time, latency, "ns"));
    }
    let each = |what: &str, metric, value: f64, unit| {
        row(&case, &format!("{}, {what}", place.name), metric, value / commits, unit)
    };
    report.push(each("requests a commit", Metric::Count, (requests.puts + requests.reads) as f64, ""));
    report.push(each("bytes a commit", Metric::Size, requests.put_bytes as f64, "B"));
    report.push(each("a million commits", Metric::Count, requests.dollars() * 1e6, "$"));
    Ok(())
}

/// The bytes that a home takes for each byte of log, with the checkpoints that the default policy takes.
fn amplification(context: &Context<'_>, skew: Skew, report: &mut Growing<'_>) -> Result<()> {
    let case = format!("write amplification, {skew}");
    let variant = "home, 0 ms a request";
    if !context.options.wants(&case, variant) {
        return Ok(());
    }
    let counted = Counted::new(&Place { name: String::new(), address: None, delay: Duration::ZERO })?;
    let graph =
        Graph::load_into(Database::open_in(counted.home.clone(), &DatabaseOptions::default())?, context.options.scale)?;
    let vertices = graph.vertices.len() as u64;
    let picker = Picker::new(skew, vertices);
    let mut clients: Vec<_> = (0..context.options.threads.max(1) as u64)
        .map(|client| {
            let (database, vertices, picker) = (graph.database.clone(), graph.vertices.clone(), picker.clone());
            let mut random = RandomStream::from_seed(client);
            Client::new(Box::new(move |number| {
                loop {
                    let picked = (0..VERTICES_A_CLIENT)
                        .map(|_| vertices[picker.pick(&mut random, vertices.len() as u64) as usize]);
                    let values: Vec<_> = picked.map(|vertex| (vertex, Value::I64(number as i64))).collect();
                    let transaction = database.begin()?;
                    match transaction.set_vertex_property("updated", &values).and_then(|_| transaction.commit()) {
                        Err(error) if error.kind() == ErrorKind::Conflict => {}
                        outcome => return outcome.map(drop),
                    }
                }
            }))
        })
        .collect();
    run_for(&mut clients, 0.0)?;
    let durability = || graph.database.durability().ok_or_else(|| wrong("a graph in a home is durable".to_owned()));
    let taken = |durability: &Durability| durability.checkpoint.taken;
    let (before, first) = (counted.requests(), durability()?);
    let is_test = context.schedule.slice_seconds == 0.0;
    run_beside(&mut clients, || {
        // The rates are not measured, so nothing but checkpoints ends this.
        while !is_test && taken(&durability()?) < taken(&first) + CHECKPOINTS {
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    })?;
    if is_test {
        graph.database.checkpoint()?;
    }
    let last = durability()?;
    let log = (last.log.bytes() - first.log.bytes()) as f64;
    let all = counted.requests().since(before).put_bytes as f64;
    let amplified = row(&case, variant, Metric::Ratio, all / log.max(1.0), "");
    report.push(amplified.with("log_bytes", log, "B").with("checkpoint_bytes", all - log, "B").with(
        "live_bytes",
        last.checkpoint.last.map_or(0, |last| last.live_bytes) as f64,
        "B",
    ));
    Ok(())
}

/// Openings of a home, each of which takes the graph over from an owner that was closed.
fn openings(context: &Context<'_>, place: &Place, report: &mut Growing<'_>) -> Result<()> {
    let case = format!("opening, 2^{} vertices", context.options.scale.log_vertices());
    if !context.options.wants(&case, &place.name) {
        return Ok(());
    }
    let counted = Counted::new(place)?;
    let graph =
        Graph::load_into(Database::open_in(counted.home.clone(), &DatabaseOptions::default())?, context.options.scale)?;
    let edges = graph.edges.len() as u64;
    drop(graph);
    let mut times = Vec::new();
    let mut requests = Requests::default();
    for _ in 0..OPENINGS {
        let (before, start) = (counted.requests(), Instant::now());
        let database = Database::open_in(counted.home.clone(), &DatabaseOptions::default())?;
        times.push(start.elapsed().as_nanos() as f64);
        requests = counted.requests().since(before);
        let found = database.recovery().map(|found| found.graph.edges);
        if found != Some(edges) {
            return Err(wrong(format!("{found:?} edges are recovered from {}, not {edges}", place.name)));
        }
    }
    let times = Timing::of(times);
    report.push(Row::time(NAME, &case, &place.name, times));
    let rate = Row::rate(NAME, &case, &format!("{}, edges", place.name), times, edges as f64, "edges/s");
    report.push(rate.with("puts", requests.puts as f64, "count").with("reads", requests.reads as f64, "count"));
    Ok(())
}
