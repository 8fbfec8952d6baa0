//! The server's own counts for `/metrics`: requests with their outcome and time, connections, logins.
//!
//! Counters are relaxed atomics: each stands alone, and a reader only has to see them grow. Label values are few: an
//! operation, a path or a method that the client made up counts as `other`.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

use crate::metrics::exposition::MetricKind::{Counter, Gauge};
use crate::metrics::exposition::{Exposition, Histogram, MetricKind};

/// The operations with a label of their own. `malformed` is a request that could not be decoded.
const OPERATIONS: [&str; 7] = ["eval", "bytecode", "session", "http", "authentication", "malformed", "other"];

/// The paths with a label of their own.
const PATHS: [&str; 5] = ["/gremlin", "/gremlin/status", "/changes", "/health", "/metrics"];

/// The methods with a label of their own.
const METHODS: [&str; 3] = ["GET", "POST", "OPTIONS"];

/// The label of all other operations, paths and methods.
const OTHER: &str = "other";

/// The counters of a server.
#[derive(Debug, Default)]
pub struct Meters {
    /// By operation.
    times: [Histogram; OPERATIONS.len()],
    /// By operation and status, which are the protocol's and so are few.
    statuses: Mutex<BTreeMap<(usize, u16), u64>>,
    /// Requests of HTTP by path, method and status.
    http: Mutex<BTreeMap<(&'static str, &'static str, u16), u64>>,
    connections_accepted: AtomicU64,
    connections_unheard: AtomicU64,
    handshakes: AtomicU64,
    handshakes_failed: AtomicU64,
    pages_refused: AtomicU64,
    logins: AtomicU64,
    logins_failed: AtomicU64,
    logins_refused_by_address: AtomicU64,
    logins_refused_by_user: AtomicU64,
}

/// The current values of the server's gauges.
#[derive(Clone, Copy, Debug, Default)]
pub struct GaugeValues {
    /// Connections with a permit.
    pub connections: usize,
    /// Permits for connections.
    pub connections_max: usize,
    /// Open sessions.
    pub sessions: usize,
    /// Workers in use.
    pub workers: usize,
    /// Workers in all.
    pub workers_max: usize,
    /// Addresses and names whose logins are refused now.
    pub lockouts: (usize, usize),
}

fn up(counter: &AtomicU64) {
    counter.fetch_add(1, Ordering::Relaxed);
}

fn known<const N: usize>(names: [&'static str; N], name: &str) -> &'static str {
    names.into_iter().find(|known| *known == name).unwrap_or(OTHER)
}

impl Meters {
    /// All counters at zero.
    pub fn new() -> Self {
        Meters::default()
    }

    /// Counts a request that was answered completely.
    pub fn request(&self, operation: &str, status: u16, elapsed: Duration) {
        let at = OPERATIONS.iter().position(|known| *known == operation).unwrap_or(OPERATIONS.len() - 1);
        self.times[at].add(elapsed);
        *self.statuses.lock().entry((at, status)).or_default() += 1;
    }

    /// Counts a request that could not be decoded, and was answered with this status.
    pub fn malformed(&self, status: u16) {
        self.request("malformed", status, Duration::ZERO);
    }

    /// Counts an HTTP request whose status is known; its body may still be on its way.
    pub fn http(&self, path: &str, method: &str, status: u16) {
        *self.http.lock().entry((known(PATHS, path), known(METHODS, method), status)).or_default() += 1;
    }

    /// Counts an accepted connection.
    pub fn accepted(&self) {
        up(&self.connections_accepted);
    }

    /// Counts a connection that was dropped without an answer, because too many waited for their first request.
    pub fn dropped_unheard(&self) {
        up(&self.connections_unheard);
    }

    /// Counts a TLS handshake; one that took too long has failed.
    pub fn handshake(&self, succeeded: bool) {
        up(if succeeded { &self.handshakes } else { &self.handshakes_failed });
    }

    /// Counts a request that was refused for its origin or host.
    pub fn page_refused(&self) {
        up(&self.pages_refused);
    }

    /// Counts a checked password.
    pub fn login(&self, succeeded: bool) {
        up(if succeeded { &self.logins } else { &self.logins_failed });
    }

    /// Counts a login refused without a check, because of its address.
    pub fn login_refused_by_address(&self) {
        up(&self.logins_refused_by_address);
    }

    /// Counts a login refused without a check, because of its user name.
    pub fn login_refused_by_user(&self) {
        up(&self.logins_refused_by_user);
    }

    /// All metrics of the server, in Prometheus' text format.
    pub fn exposition(&self, now: GaugeValues) -> String {
        let mut text = Exposition::default();
        self.requests(&mut text);
        self.connections(&mut text, now);
        self.logins(&mut text, now);
        text.into_text()
    }

    fn requests(&self, text: &mut Exposition) {
        let meaning = "Requests answered, by operation and the protocol's status.";
        let mut family = text.family("mangrove_requests_total", Counter, meaning);
        for ((at, status), count) in self.statuses.lock().iter() {
            family.sample(&[("op", OPERATIONS[*at]), ("status", &status.to_string())], count);
        }
        let meaning = "From a request's arrival to the end of its answer.";
        let mut family = text.family("mangrove_request_seconds", MetricKind::Histogram, meaning);
        for (histogram, operation) in self.times.iter().zip(OPERATIONS) {
            family.histogram(&[("op", operation)], histogram);
        }
        let meaning = "Requests of HTTP, by path, method and status of HTTP.";
        let mut family = text.family("mangrove_http_requests_total", Counter, meaning);
        for ((path, method, status), count) in self.http.lock().iter() {
            family.sample(&[("path", path), ("method", method), ("status", &status.to_string())], count);
        }
    }

    fn connections(&self, text: &mut Exposition, now: GaugeValues) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        for (name, kind, meaning, value) in [
            ("mangrove_connections", Gauge, "Connections now.", now.connections as u64),
            ("mangrove_connections_max", Gauge, "Permits for connections, free or taken.", now.connections_max as u64),
            ("mangrove_sessions", Gauge, "Sessions now.", now.sessions as u64),
            ("mangrove_workers_busy", Gauge, "Threads that run a query now.", now.workers as u64),
            ("mangrove_workers_max", Gauge, "Threads that may run queries.", now.workers_max as u64),
            ("mangrove_connections_accepted_total", Counter, "Connections accepted.", load(&self.connections_accepted)),
            (
                "mangrove_connections_unheard_total",
                Counter,
                "Connections dropped before their first request, because too many were pending.",
                load(&self.connections_unheard),
            ),
            ("mangrove_handshakes_total", Counter, "TLS handshakes that succeeded.", load(&self.handshakes)),
            ("mangrove_handshakes_failed_total", Counter, "TLS handshakes that failed.", load(&self.handshakes_failed)),
            (
                "mangrove_pages_refused_total",
                Counter,
                "Requests refused for their Origin, Host or Sec-Fetch-Site.",
                load(&self.pages_refused),
            ),
        ] {
            text.single(name, kind, meaning, value);
        }
    }

    fn logins(&self, text: &mut Exposition, now: GaugeValues) {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        text.single("mangrove_logins_total", Counter, "Passwords that were right.", load(&self.logins));
        text.single("mangrove_logins_failed_total", Counter, "Passwords that were wrong.", load(&self.logins_failed));
        let meaning = "Logins refused unseen after too many wrong ones, by what they have in common.";
        let mut family = text.family("mangrove_logins_refused_total", Counter, meaning);
        family.sample(&[("by", "address")], load(&self.logins_refused_by_address));
        family.sample(&[("by", "user")], load(&self.logins_refused_by_user));
        let mut family = text.family("mangrove_lockouts", Gauge, "Addresses and names whose logins are refused now.");
        let (addresses, users) = now.lockouts;
        family.sample(&[("by", "address")], addresses);
        family.sample(&[("by", "user")], users);
    }
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
        meters.malformed(498);
        meters.http("/gremlin", "POST", 200);
        meters.http("/made/up", "BREW", 404);
        let text = meters.exposition(GaugeValues { connections: 2, sessions: 1, ..GaugeValues::default() });
        for line in [
            "mangrove_requests_total{op=\"eval\",status=\"200\"} 1",
            "mangrove_requests_total{op=\"other\",status=\"498\"} 1",
            "mangrove_requests_total{op=\"malformed\",status=\"498\"} 1",
            "mangrove_http_requests_total{path=\"other\",method=\"other\",status=\"404\"} 1",
            "mangrove_http_requests_total{path=\"/gremlin\",method=\"POST\",status=\"200\"} 1",
            "mangrove_request_seconds_bucket{op=\"eval\",le=\"0.0005\"} 1",
            "mangrove_request_seconds_count{op=\"eval\"} 2",
            "mangrove_connections 2",
        ] {
            assert!(text.contains(&format!("{line}\n")), "{line}\n{text}");
        }
    }
}
