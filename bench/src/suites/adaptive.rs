//! The number of threads of a query: adaptive, and fixed to 1, 2, 4 or 8 (Grasper, Tables 7 and 8).
//!
//! *Adaptive* is the rule of the database without options: a query runs on one thread, and is opened for helpers when it
//! has taken 8 units of work and another 0.7 ms; then idle executors take from it what they ask for. *At most N* is
//! `with('parallel', N)` on a database with eight executors: the same rule with another bound. At most one thread is the
//! paper's "without adaptive parallelism", and also its "without stealing", because a query of one thread gives nothing
//! away. No option makes a query begin with several threads.
//!
//! Grasper's queries and the walks run alone, where more threads shorten a query, and from 32 clients at a time, where
//! they can only disturb. A client runs one query after the other, as an embedder does (`Database::run_shared`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use mangrove::{Database, Result};
use mangrove_queries::QuerySet;

use super::Context;
use crate::harness::{REPETITION_COUNT, Schedule, Timing, wrong};
use crate::options::{Options, Suite};
use crate::queries::asked::Asked;
use crate::queries::choices::QueryChoices;
use crate::queries::drawn::Drawn;
use crate::queries::network::Network;
use crate::queries::station::{Place, Station};
use crate::report::{Growing, Row};

const SUITE: Suite = Suite::Adaptive;

/// The numbers of clients.
const CLIENT_COUNTS: [u64; 2] = [1, 32];

/// The fixed bounds.
const AT_MOST: [usize; 4] = [1, 2, 4, 8];

/// A case that would take longer than this many seconds is left out: each of many clients runs a heavy query in each way.
/// A run that measures nothing takes all.
const CASE_SECONDS_MAX: f64 = 12.0;

/// The pass mark of the adaptive rule: this many times the throughput of the best fixed bound.
const PART_OF_BEST: f64 = 0.95;

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = AT_MOST[AT_MOST.len() - 1];
    let mut executors = vec![cores, most];
    executors.sort_unstable();
    executors.dedup();
    let queries = QueryChoices { executors, ..context.options.queries.clone() };
    let options = Options { queries, ..context.options.clone() };
    Network::each(&options, SUITE, report, &|network, report| {
        let replicas = network.replicas.all();
        let with = |count: usize| {
            let found = replicas.iter().find(|replica| replica.executors == count);
            found.map(|replica| &replica.database).ok_or_else(|| wrong(format!("no database has {count} executors")))
        };
        let ways = Ways { adaptive: with(cores)?, fixed: with(most)?, cores };
        let drawn = Drawn::of(&network.reference);
        for name in ["grasper", "patterns"] {
            let set = QuerySet::named(name);
            let is_asked = |name: &str| set.name != "patterns" || name.contains("-hop");
            for query in set.queries.iter().filter(|query| is_asked(&query.name) && !query.slow) {
                let case = Asked::case(network, query);
                let wanted: Vec<u64> = CLIENT_COUNTS
                    .into_iter()
                    .filter(|clients| context.options.wants(&name_of(&case, *clients), "adaptive"))
                    .collect();
                if wanted.is_empty() {
                    continue;
                }
                let Some(asked) = Asked::of_paper(network, &drawn, &set, query) else {
                    report.note(SUITE.name(), format!("{case} was left out: there are no parameters."));
                    continue;
                };
                ways.measure(context.options, &asked, &wanted, report)?;
            }
        }
        Ok(())
    })
}

fn name_of(case: &str, clients: u64) -> String {
    format!("{case}, {clients} client{}", if clients == 1 { "" } else { "s" })
}

/// The databases on which a query runs.
struct Ways<'a> {
    /// With an executor for each core.
    adaptive: &'a Database,
    /// With as many executors as the largest fixed bound.
    fixed: &'a Database,
    cores: usize,
}

impl Ways<'_> {
    fn measure(&self, options: &Options, asked: &Asked, client_counts: &[u64], report: &mut Growing<'_>) -> Result<()> {
        let mut stations = vec![Station::new(self.adaptive, &asked.text)?];
        for bound in AT_MOST {
            stations.push(Station::new(self.fixed, &bounded(&asked.text, bound)?)?);
        }
        let counts = stations[0].check(asked, Place::Shared)?;
        for station in &stations[1..] {
            station.check(asked, Place::Shared)?;
        }
        for &clients in client_counts {
            let case = name_of(&asked.case, clients);
            let begin = Instant::now();
            stations[0].pass(asked, &counts, Place::Shared, 1)?;
            let once = begin.elapsed().as_secs_f64();
            // A slice has a pass of each client at least.
            let passes = ((Schedule::of(options).slice_seconds / once.max(1e-9)) as u64).max(clients);
            let all = once * passes as f64 * (stations.len() * REPETITION_COUNT) as f64;
            if all > CASE_SECONDS_MAX && options.seconds > 0.0 {
                report.note(SUITE.name(), format!("{case} was left out: it would take {all:.0} s."));
                continue;
            }
            let mut samples = vec![Vec::with_capacity(REPETITION_COUNT); stations.len()];
            for round in 0..REPETITION_COUNT {
                for turn in 0..stations.len() {
                    let way = (round + turn) % stations.len();
                    let seconds = from_clients(&stations[way], asked, &counts, clients, passes)?;
                    samples[way].push(seconds * 1e9 / (passes * asked.runs.len() as u64) as f64);
                }
            }
            let timings: Vec<Timing> = samples.into_iter().map(Timing::of).collect();
            let best = timings[1..].iter().map(|timing| timing.median).fold(f64::INFINITY, f64::min);
            for (bound, timing) in AT_MOST.iter().zip(&timings[1..]) {
                report.push(Row::time(SUITE.name(), &case, &format!("at most {bound}"), *timing));
            }
            let variant = format!("adaptive, {} executors", self.cores);
            let row = Row::time(SUITE.name(), &case, &variant, timings[0]);
            report.push(row.beside(best).aiming_at(best / PART_OF_BEST));
        }
        Ok(())
    }
}

/// The traversal with a bound on its threads.
fn bounded(text: &str, bound: usize) -> Result<String> {
    let steps = text.strip_prefix("g.").ok_or_else(|| wrong(format!("the query does not begin with `g.`: {text}")))?;
    Ok(format!("g.with('parallel', {bound}).{steps}"))
}

/// Lets clients run a query until it has run with all parameters this many times in all. Returns the seconds.
fn from_clients(station: &Station<'_>, asked: &Asked, counts: &[u64], clients: u64, passes: u64) -> Result<f64> {
    let left = AtomicU64::new(passes);
    let take = || left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_ok();
    let client = || -> Result<()> {
        while take() {
            station.pass(asked, counts, Place::Shared, 1)?;
        }
        Ok(())
    };
    let begin = Instant::now();
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..clients).map(|_| scope.spawn(client)).collect();
        let mine = client();
        for other in others {
            other.join().map_err(|_| wrong("a client of a query panicked while it was timed".into()))??;
        }
        mine
    })?;
    Ok(begin.elapsed().as_secs_f64())
}
