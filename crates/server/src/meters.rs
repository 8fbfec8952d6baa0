//! What the server counts of itself, for `/metrics`: requests with their outcome and time, connections, logins.
//!
//! Counters are relaxed atomics: each stands for itself, and a reader wants only to see them grow.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Upper bounds of the buckets of request times, in seconds. The last bucket has no bound.
const BOUNDS: [f64; 14] = [0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1.0, 5.0, 30.0];

/// The operations that are told apart. Names that clients make up must not become labels without end.
const OPERATIONS: [&str; 6] = ["eval", "bytecode", "session", "http", "authentication", "other"];

/// The counters of a server.
#[derive(Debug)]
pub struct Meters {
    /// By operation.
    times: [Histogram; OPERATIONS.len()],
    /// By operation and status. Few: statuses are the protocol's.
    statuses: Mutex<BTreeMap<(usize, u16), u64>>,
    connections_accepted: AtomicU64,
    connections_unheard: AtomicU64,
    handshakes_failed: AtomicU64,
    logins: AtomicU64,
    logins_failed: AtomicU64,
}

#[derive(Debug)]
struct Histogram {
    buckets: [AtomicU64; BOUNDS.len() + 1],
    sum_nanos: AtomicU64,
}

impl Histogram {
    fn new() -> Self {
        Histogram { buckets: std::array::from_fn(|_| AtomicU64::new(0)), sum_nanos: AtomicU64::new(0) }
    }

    fn add(&self, elapsed: Duration) {
        let seconds = elapsed.as_secs_f64();
        let bucket = BOUNDS.iter().position(|bound| seconds <= *bound).unwrap_or(BOUNDS.len());
        self.buckets[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_nanos.fetch_add(u64::try_from(elapsed.as_nanos()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    fn write(&self, text: &mut String, name: &str, operation: &str) {
        let mut count = 0;
        for (bucket, bound) in self.buckets.iter().zip(BOUNDS.map(Some).into_iter().chain([None])) {
            count += bucket.load(Ordering::Relaxed);
            let bound = bound.map_or("+Inf".to_owned(), |seconds| seconds.to_string());
            let _ = writeln!(text, "{name}_bucket{{op=\"{operation}\",le=\"{bound}\"}} {count}");
        }
        let sum = self.sum_nanos.load(Ordering::Relaxed) as f64 / 1e9;
        let _ = writeln!(text, "{name}_sum{{op=\"{operation}\"}} {sum}\n{name}_count{{op=\"{operation}\"}} {count}");
    }
}

/// What is true now, for gauges.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// Places taken by connections.
    pub connections: usize,
    /// Open sessions.
    pub sessions: usize,
    /// Workers in use.
    pub workers: usize,
}

impl Meters {
    /// All at zero.
    pub fn new() -> Self {
        Meters {
            times: std::array::from_fn(|_| Histogram::new()),
            statuses: Mutex::default(),
            connections_accepted: AtomicU64::new(0),
            connections_unheard: AtomicU64::new(0),
            handshakes_failed: AtomicU64::new(0),
            logins: AtomicU64::new(0),
            logins_failed: AtomicU64::new(0),
        }
    }

    /// A request was answered for good.
    pub fn request(&self, operation: &str, status: u16, elapsed: Duration) {
        let at = OPERATIONS.iter().position(|known| *known == operation).unwrap_or(OPERATIONS.len() - 1);
        self.times[at].add(elapsed);
        *self.statuses.lock().entry((at, status)).or_default() += 1;
    }

    /// A connection was taken.
    pub fn accepted(&self) {
        self.connections_accepted.fetch_add(1, Ordering::Relaxed);
    }

    /// A connection was dropped without a word, because the server is more than full.
    pub fn dropped_unheard(&self) {
        self.connections_unheard.fetch_add(1, Ordering::Relaxed);
    }

    /// A TLS handshake failed or took too long.
    pub fn failed_handshake(&self) {
        self.handshakes_failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Somebody tried to log in.
    pub fn login(&self, succeeded: bool) {
        let counter = if succeeded { &self.logins } else { &self.logins_failed };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    /// All of it, in Prometheus' text format.
    pub fn exposition(&self, now: Now) -> String {
        let mut text = String::new();
        let name = "mangrove_requests_total";
        head(&mut text, name, "counter", "Requests answered, by operation and the protocol's status.");
        for ((at, status), count) in self.statuses.lock().iter() {
            let _ = writeln!(text, "{name}{{op=\"{}\",status=\"{status}\"}} {count}", OPERATIONS[*at]);
        }
        let name = "mangrove_request_seconds";
        head(&mut text, name, "histogram", "From a request's arrival to the end of its answer.");
        for (histogram, operation) in self.times.iter().zip(OPERATIONS) {
            histogram.write(&mut text, name, operation);
        }
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, kind, meaning, value) in [
            ("mangrove_connections", "gauge", "Connections now.", now.connections as u64),
            ("mangrove_sessions", "gauge", "Sessions now.", now.sessions as u64),
            ("mangrove_workers_busy", "gauge", "Threads that run a query now.", now.workers as u64),
            ("mangrove_connections_total", "counter", "Connections taken.", load(&self.connections_accepted)),
            (
                "mangrove_connections_unheard_total",
                "counter",
                "Connections dropped because the server was more than full.",
                load(&self.connections_unheard),
            ),
            (
                "mangrove_handshakes_failed_total",
                "counter",
                "TLS handshakes that failed.",
                load(&self.handshakes_failed),
            ),
            ("mangrove_logins_total", "counter", "Passwords that were right.", load(&self.logins)),
            ("mangrove_logins_failed_total", "counter", "Passwords that were wrong.", load(&self.logins_failed)),
        ] {
            head(&mut text, name, kind, meaning);
            let _ = writeln!(text, "{name} {value}");
        }
        text
    }
}

fn head(text: &mut String, name: &str, kind: &str, meaning: &str) {
    let _ = writeln!(text, "# HELP {name} {meaning}\n# TYPE {name} {kind}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_operation_and_status() {
        let meters = Meters::new();
        meters.request("eval", 200, Duration::from_micros(300));
        meters.request("eval", 597, Duration::from_secs(60));
        meters.request("made up by a client", 498, Duration::ZERO);
        let text = meters.exposition(Now { connections: 2, sessions: 1, workers: 0 });
        for line in [
            "mangrove_requests_total{op=\"eval\",status=\"200\"} 1",
            "mangrove_requests_total{op=\"other\",status=\"498\"} 1",
            "mangrove_request_seconds_bucket{op=\"eval\",le=\"0.0005\"} 1",
            "mangrove_request_seconds_bucket{op=\"eval\",le=\"30\"} 1",
            "mangrove_request_seconds_bucket{op=\"eval\",le=\"+Inf\"} 2",
            "mangrove_request_seconds_count{op=\"eval\"} 2",
            "mangrove_connections 2",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
    }
}
