//! Many clients of a small query beside as many of a large one (Banyan, figures 7a and 7b): LDBC's IC1 and IC9.
//!
//! Half of 32, 64 or 128 clients run IC1 again and again, the other half IC9. Each waits for its answer before it asks
//! again. Beside a row of IC1 stands IC1 without the clients of IC9, and the same for IC9. On LDBC's network the answers
//! are the published ones. On a generated network they are those of the same query alone on the thread of its client, so
//! there the suite checks only that load changes no answer.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mangrove::Result;
use mangrove_queries::{JsonParameters, QuerySet, bound, published, to_json};
use serde_json::json;

use super::super::reads;
use super::{Place, QueryClient, SUITE, line_of};
use crate::harness::wrong;
use crate::oltp::histogram::Histogram;
use crate::options::Options;
use crate::plot::Panel;
use crate::queries::asked::{Asked, Run};
use crate::queries::drawn::Drawn;
use crate::queries::network::{Network, Origin};
use crate::queries::station::{self, Station};
use crate::report::{Growing, Metric, Row};
use crate::served::Served;

/// The numbers of clients, both queries together.
const CLIENT_COUNTS: [usize; 3] = [32, 64, 128];

/// The small query and the large one, in LDBC's set.
const NAMES: [&str; 2] = ["IC1", "IC9"];

/// The answers that each query must have in a measurement at least. Tests run for zero seconds, so this is their length.
const ANSWERS_MIN: u64 = 2;

/// The rows that a query asks for on a generated network, as in LDBC's own parameters.
const LIMIT: i64 = 20;

/// Measures the two queries on a network, through each place. Returns the distributions as panels.
pub(super) fn run(options: &Options, network: &Network, report: &mut Growing<'_>) -> Result<Vec<Panel>> {
    let asked = questions(network)?;
    let database = &network.replicas.smallest().database;
    let served = Served::start(database)?;
    let mut panels = Vec::new();
    for place in [Place::Embedded, Place::Server] {
        for count in CLIENT_COUNTS {
            let case = format!("{}, {count} clients", place.name());
            if !options.wants(&case, "IC1") {
                continue;
            }
            let client = |which: usize| QueryClient::new(place, database, &served, &asked[which]);
            let load = Load { asked: &asked, client: &client, seconds: options.seconds };
            let half = count / 2;
            let alone = [load.measure([half, 0])?, load.measure([0, half])?];
            let together = load.measure([half, half])?;
            let mut lines = Vec::new();
            for (which, name) in NAMES.into_iter().enumerate() {
                push(report, &case, name, &together[which], &alone[which][which]);
                lines.push(line_of(format!("{name} alone"), &alone[which][which].latency));
                lines.push(line_of(format!("{name} beside the other"), &together[which].latency));
            }
            panels.push(Panel { title: format!("{case}: share of answers, %"), lines });
        }
    }
    Ok(panels)
}

/// Both queries, with parameters and answers.
fn questions(network: &Network) -> Result<[Asked; 2]> {
    let set = QuerySet::named("ldbc-interactive");
    let read = |name: &str| -> Result<Asked> {
        let query = set.query(name);
        let mut asked = Asked {
            case: format!("{}, LDBC's {name}", network.name),
            text: query.text.trim().to_owned(),
            runs: Vec::new(),
            comparison: published::comparison(query),
            unordered: query.unordered.clone(),
        };
        asked.runs = match &network.origin {
            Origin::Ldbc(folder) => {
                reads::complex(folder)?.iter().filter(|read| read.query == name).map(reads::Read::run).collect()
            }
            Origin::Generated => own_answers(network, &asked.text, &drawn(network, name))?,
        };
        if asked.runs.is_empty() { Err(wrong(format!("{} has no parameters", asked.case))) } else { Ok(asked) }
    };
    Ok([read(NAMES[0])?, read(NAMES[1])?])
}

/// Parameters for a generated network.
fn drawn(network: &Network, name: &str) -> Vec<JsonParameters> {
    let drawn = Drawn::of(&network.reference);
    let renamed = |mut given: JsonParameters| {
        let person = given.remove("person");
        given.extend(person.map(|person| (format!("personIdQ{}", &name[2..]), person)));
        given.insert("limit".into(), json!(LIMIT));
        given
    };
    drawn.of_ldbc(name).into_iter().map(renamed).collect()
}

/// Runs with the answers of the database itself, on one thread.
fn own_answers(network: &Network, text: &str, parameters: &[JsonParameters]) -> Result<Vec<Run>> {
    let station = Station::new(&network.replicas.smallest().database, text)?;
    let answer = |given: &JsonParameters| {
        let (parameters, mut expected) = (bound(given), Vec::new());
        station.each(&parameters, station::Place::Client, &mut |value, bulk| {
            expected.extend(std::iter::repeat_n(to_json(value), bulk as usize));
        })?;
        Ok(Run { parameters, expected })
    };
    parameters.iter().map(answer).collect()
}

/// The answers to one of the queries in a measurement.
#[derive(Default)]
struct Measured {
    latency: Histogram,
    seconds: f64,
}

/// Clients of both queries.
struct Load<'a> {
    asked: &'a [Asked; 2],
    client: &'a (dyn Fn(usize) -> Result<QueryClient<'a>> + Sync),
    seconds: f64,
}

impl Load<'_> {
    /// Runs so many clients of each query for the time of the measurement, and until each query has been answered often
    /// enough. Answers that came before all clients had begun do not count.
    fn measure(&self, counts: [usize; 2]) -> Result<[Measured; 2]> {
        let (stop, begun) = (AtomicBool::new(false), AtomicU64::new(0));
        let answered = [AtomicU64::new(0), AtomicU64::new(0)];
        let run = |which: usize, number: usize| -> Result<Histogram> {
            let client = (self.client)(which);
            begun.fetch_add(1, Ordering::AcqRel);
            let (mut client, asked, mut latency) = (client?, &self.asked[which], Histogram::default());
            let mut at = number;
            while !stop.load(Ordering::Relaxed) {
                let run = at % asked.runs.len();
                let sent = Instant::now();
                let rows = client.rows(&asked.runs[run].parameters)?;
                let took = sent.elapsed();
                asked.check(run, &rows)?;
                latency.add(took.as_nanos() as u64);
                answered[which].fetch_add(1, Ordering::Relaxed);
                at += 1;
            }
            Ok(latency)
        };
        std::thread::scope(|scope| {
            let mut running = Vec::new();
            for (which, count) in counts.into_iter().enumerate() {
                for number in 0..count {
                    let run = &run;
                    running.push((which, scope.spawn(move || run(which, number))));
                }
            }
            while begun.load(Ordering::Acquire) < (counts[0] + counts[1]) as u64 {
                std::thread::sleep(Duration::from_millis(1));
            }
            let begin = Instant::now();
            let is_enough = |which: usize| counts[which] == 0 || answered[which].load(Ordering::Relaxed) >= ANSWERS_MIN;
            let has_failed = |running: &[(usize, std::thread::ScopedJoinHandle<'_, Result<Histogram>>)]| {
                running.iter().any(|(_, thread)| thread.is_finished())
            };
            while begin.elapsed().as_secs_f64() < self.seconds || !(is_enough(0) && is_enough(1)) {
                if has_failed(&running) {
                    break;
                }
                std::thread::sleep(Duration::from_millis(1));
            }
            let seconds = begin.elapsed().as_secs_f64();
            stop.store(true, Ordering::Relaxed);
            let mut measured = [Measured::default(), Measured::default()];
            for (which, thread) in running {
                let latency = thread.join().map_err(|_| wrong("a client of a query panicked".into()))??;
                measured[which].latency.merge(&latency);
                measured[which].seconds = seconds;
            }
            Ok(measured)
        })
    }
}

/// Reports a query beside the other one, and alone.
fn push(report: &mut Growing<'_>, case: &str, name: &str, together: &Measured, alone: &Measured) {
    for (variant, quantile) in [("p50", 0.5), ("p99", 0.99)] {
        let of = |measured: &Measured| measured.latency.quantile(quantile) as f64;
        let row = Row::single(SUITE.name(), case, &format!("{name}, {variant}"), Metric::Time, of(together), "ns");
        let row = row.with("mean", together.latency.mean(), "ns").with("answers", together.latency.count() as f64, "");
        report.push(row.beside(of(alone)));
    }
    let rate = |measured: &Measured| measured.latency.count() as f64 / measured.seconds.max(1e-9);
    let row = Row::single(SUITE.name(), case, &format!("{name}, rate"), Metric::Rate, rate(together), "queries/s");
    report.push(row.beside(rate(alone)));
}
