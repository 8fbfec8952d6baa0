//! The wire: requests a second and their latency, against connections, encodings and the size of results.
//!
//! Every connection has a thread that sends a request, waits for the end of the answer, and sends again ([`speaker`]).
//! Server and clients share the machine, as in every suite. A row is a rate. A row `latency` follows it: the median,
//! with its range up to the 99th percentile. Programs get the latencies as `p50` and `p99`.
//!
//! The floor of each official client is measured by `conformance/drivers/floor.sh`.

mod speaker;

use std::net::SocketAddr;
use std::sync::Barrier;
use std::time::{Duration, Instant};

use mangrove::{Error, Result};
use mangrove_gremlin::Encoding;
use mangrove_gremlin::graphson::{Dialect, Version};

use self::speaker::{RequestForm, Speaker, Transport, TraversalForm};
use super::Context;
use crate::oltp::histogram::Histogram;
use crate::options::Suite;
use crate::people::{self, PeopleContent};
use crate::report::{Growing, Metric, Row};
use crate::served::Served;

const NAME: &str = Suite::Wire.name();

/// A request that costs the database next to nothing.
const ECHO: &str = "g.inject(1)";

/// Numbers of concurrent connections.
const CONNECTIONS: [usize; 5] = [1, 2, 8, 32, 100];

/// Numbers of results of an answer.
const RESULTS: [usize; 4] = [1, 100, 10_000, 1_000_000];

/// Results in one message, if there are many.
const BATCH_SIZE: i32 = 1_024;

const fn json(version: Version, typed: bool) -> Encoding {
    Encoding::GraphSon(Dialect { version, typed })
}

const ENCODINGS: [Encoding; 5] = [
    Encoding::GraphBinary,
    json(Version::V3, true),
    json(Version::V3, false),
    json(Version::V2, true),
    json(Version::V2, false),
];

const PLAIN: RequestForm =
    RequestForm { encoding: Encoding::GraphBinary, transport: Transport::WebSocket, sent: TraversalForm::Text };

pub(super) fn run(context: &Context<'_>, report: &mut Growing<'_>) -> Result<()> {
    let people = context.options.scale.people();
    let database = people::database(people, PeopleContent::TwoProperties)?;
    let served = Served::start(&database)?;
    let asked = MeasuredServer { context, address: served.address() };

    for connections in CONNECTIONS {
        let case = format!("echo, {connections} connections");
        for transport in [Transport::WebSocket, Transport::Http] {
            asked.measure(report, &case, RequestForm { transport, ..PLAIN }, ECHO, 1, connections)?;
        }
    }
    let point = "g.V(7L).values('born', 'name')";
    for connections in CONNECTIONS {
        asked.measure(report, &format!("point, {connections} connections"), PLAIN, point, 2, connections)?;
    }
    for encoding in ENCODINGS {
        for transport in [Transport::WebSocket, Transport::Http] {
            for sent in [TraversalForm::Text, TraversalForm::Bytecode] {
                asked.measure(report, "echo", RequestForm { encoding, transport, sent }, ECHO, 1, 1)?;
            }
        }
    }
    for count in RESULTS.into_iter().filter(|count| *count <= people) {
        let script = format!("g.V().limit({count}).values('name')");
        for encoding in ENCODINGS {
            for transport in [Transport::WebSocket, Transport::Http] {
                // The server holds a whole answer back here, and a million results exceed the default limit.
                let is_held = !encoding.is_json() && transport == Transport::Http && count > 100_000;
                if !is_held {
                    let manner = RequestForm { encoding, transport, sent: TraversalForm::Text };
                    asked.measure(report, &format!("{count} results"), manner, &script, count as u64, 1)?;
                }
            }
        }
    }
    Ok(())
}

/// The server under test.
struct MeasuredServer<'a> {
    context: &'a Context<'a>,
    address: SocketAddr,
}

impl MeasuredServer<'_> {
    /// Checks the answer to a question, then sends it on this many connections.
    fn measure(
        &self,
        report: &mut Growing<'_>,
        case: &str,
        manner: RequestForm,
        script: &str,
        result_count: u64,
        connections: usize,
    ) -> Result<()> {
        let variant = manner.name();
        if !self.context.options.wants(case, &variant) {
            return Ok(());
        }
        let connect = || Speaker::connect(self.address, manner, script, BATCH_SIZE);
        let mut speakers = (0..connections).map(|_| connect()).collect::<Result<Vec<_>>>()?;
        for speaker in &mut speakers {
            let found = speaker.count()?;
            if found != result_count {
                return Err(Error::bug(format!("{script}, {variant}: {found} results, not {result_count}")));
            }
        }
        let (latencies, seconds) = together(&mut speakers, Duration::from_secs_f64(self.context.options.seconds))?;
        let rate = latencies.count() as f64 / seconds;
        let (p50, p99) = (latencies.quantile(0.5) as f64, latencies.quantile(0.99) as f64);
        let row = Row::single(NAME, case, &variant, Metric::Rate, rate, "requests/s");
        let row = row.with("p50", p50, "ns").with("p99", p99, "ns");
        report.push(row.with("results", rate * result_count as f64, "results/s"));
        let latency = format!("{variant}: latency");
        report.push(Row::single(NAME, case, &latency, Metric::Time, p50, "ns").between(p50, p99));
        Ok(())
    }
}

/// Lets all connections send for this time, each on a thread. Returns their latencies in nanoseconds, and the elapsed
/// time.
fn together(speakers: &mut [Speaker], time: Duration) -> Result<(Histogram, f64)> {
    let begin = Barrier::new(speakers.len() + 1);
    std::thread::scope(|scope| {
        let asking: Vec<_> = speakers
            .iter_mut()
            .map(|speaker| {
                let begin = &begin;
                scope.spawn(move || {
                    begin.wait();
                    ask(speaker, time)
                })
            })
            .collect();
        begin.wait();
        let since = Instant::now();
        let mut latencies = Histogram::default();
        for asking in asking {
            latencies.merge(&asking.join().map_err(|_| Error::bug("a client panicked"))??);
        }
        Ok((latencies, since.elapsed().as_secs_f64()))
    })
}

/// Sends requests until the time is over, at least one.
fn ask(speaker: &mut Speaker, time: Duration) -> Result<Histogram> {
    let (mut latencies, since) = (Histogram::default(), Instant::now());
    loop {
        let begin = Instant::now();
        speaker.ask(&mut |_| Ok(()))?;
        latencies.add(u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX));
        if since.elapsed() >= time {
            return Ok(latencies);
        }
    }
}
