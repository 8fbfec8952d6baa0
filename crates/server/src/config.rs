//! Where the server listens and how much it takes on. Everything that can grow has its limit here.

use std::net::SocketAddr;
use std::time::Duration;

use mangrove_graph::{Error, Result};

use crate::auth::UsersSource;
use crate::lockout::Lockout;
use crate::origin::Browsers;
use crate::tls::TlsFiles;

/// How a server is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// Address and port; port 0 takes a free one.
    pub listen: SocketAddr,
    /// Whether it may listen where other machines can reach it without TLS or without authentication. That is a
    /// decision somebody has to write down.
    pub allow_remote: bool,
    /// The certificate and key, for TLS.
    pub tls: Option<TlsFiles>,
    /// Who may come in; `None`: everybody, and nobody is asked who they are.
    pub users: Option<UsersSource>,
    /// When wrong logins are refused unseen.
    pub lockout: Lockout,
    /// Which pages and names browsers may use it by.
    pub browsers: Browsers,
    /// The limits.
    pub limits: Limits,
}

/// The limits of a server.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once; more are answered with HTTP status 503. Those that ask for `/health` or `/metrics` are not
    /// counted.
    pub connection_count_max: usize,
    /// Of those, connections of one address. IPv6 addresses are counted by networks of 64 bits.
    pub connection_count_address_max: usize,
    /// Of those, WebSockets of one user.
    pub connection_count_user_max: usize,
    /// What may come over a WebSocket before its client has logged in. More closes the connection.
    pub login_bytes_max: usize,
    /// Size of a request. A larger one is answered with an error up to [`Limits::frame_bytes_max`]; beyond
    /// that the connection is closed.
    pub message_bytes_max: usize,
    /// Size of the body of an HTTP request. A larger one is answered with 413.
    pub body_bytes_max: usize,
    /// How long the body of an HTTP request may take to arrive.
    pub body_timeout: Duration,
    /// Requests of one connection that run or wait; while there are as many, the connection is not read.
    pub in_flight_count_max: usize,
    /// Queries that run at once on the whole server. Each has a thread, which mostly waits where the engine has
    /// executors of its own.
    pub worker_count_max: usize,
    /// How long a query may run and wait for a worker, if the request names no time; `None` for no limit.
    pub evaluation_timeout: Option<Duration>,
    /// The longest time a request may name; `None` for no limit. It never shortens [`Limits::evaluation_timeout`].
    pub evaluation_timeout_max: Option<Duration>,
    /// Results in one response message, unless the request says otherwise.
    pub batch_size: usize,
    /// The largest batch size a request may ask for.
    pub batch_size_max: usize,
    /// About how many bytes of results a response message holds: a batch of fewer results than asked for is sent when it
    /// has as many. One result of more is sent on its own.
    pub batch_bytes_max: usize,
    /// About how many bytes one result may have: it is written as a whole, into memory.
    pub result_bytes_max: usize,
    /// Results of a request that writes, which are held back until the transaction is committed.
    pub held_result_count_max: usize,
    /// About how many bytes those may take.
    pub held_result_bytes_max: usize,
    /// Response messages that wait for a slow client before its queries are held back.
    pub outgoing_count_max: usize,
    /// How long a client may take none of a response before its connection is dropped.
    pub write_stall_max: Duration,
    /// How long a connection may be silent before the server asks (by a ping) whether it is still there.
    pub ping_interval: Duration,
    /// How long a WebSocket may be silent, answers to pings included, before it is taken for gone.
    pub silence_max: Duration,
    /// How long the TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long the head of an HTTP request may take; a connection that is kept open may be idle for as long.
    pub header_timeout: Duration,
    /// How long a WebSocket may go on without proving who it is, where the server asks.
    pub authentication_timeout: Duration,
    /// Sessions at once.
    pub session_count_max: usize,
    /// Of those, sessions of one user. A server without users does not count them.
    pub session_count_user_max: usize,
    /// Of those, sessions of one address.
    pub session_count_address_max: usize,
    /// How long a session may be idle before its transaction is rolled back.
    pub session_idle_max: Duration,
    /// How long a session that expired is remembered at least, however short sessions may be idle: a client that comes
    /// back to one must not begin another unawares, and commit the second half of what was undone.
    pub session_remembered_min: Duration,
    /// How many times a request outside a session is run again after a conflict.
    pub conflict_retry_count_max: u32,
    /// How long a server that is asked to stop goes on taking requests, while `/health` says `closing`: time for a load
    /// balancer to send clients elsewhere.
    pub closing_min: Duration,
    /// How long requests that run after that may go on. Then they are cancelled.
    pub drain_max: Duration,
    /// How long clients may take their answers after that. Then their connections are cut off.
    pub farewell_max: Duration,
    /// How long a shutdown then waits for requests that do not notice that they were cancelled.
    pub shutdown_grace: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connection_count_max: 1_024,
            connection_count_address_max: 512,
            connection_count_user_max: 512,
            login_bytes_max: 256 << 10,
            message_bytes_max: 10 << 20,
            body_bytes_max: 10 << 20,
            body_timeout: Duration::from_secs(60),
            in_flight_count_max: 64,
            worker_count_max: 256,
            evaluation_timeout: Some(Duration::from_secs(30)),
            evaluation_timeout_max: Some(Duration::from_secs(3_600)),
            batch_size: 64,
            batch_size_max: 65_536,
            batch_bytes_max: 1 << 20,
            result_bytes_max: 64 << 20,
            held_result_count_max: 1_000_000,
            held_result_bytes_max: 256 << 20,
            outgoing_count_max: 16,
            write_stall_max: Duration::from_secs(60),
            ping_interval: Duration::from_secs(30),
            silence_max: Duration::from_secs(120),
            handshake_timeout: Duration::from_secs(10),
            header_timeout: Duration::from_secs(20),
            authentication_timeout: Duration::from_secs(20),
            session_count_max: 1_024,
            session_count_user_max: 512,
            session_count_address_max: 512,
            session_idle_max: Duration::from_secs(600),
            session_remembered_min: Duration::from_secs(600),
            conflict_retry_count_max: 10,
            closing_min: Duration::ZERO,
            drain_max: Duration::from_secs(10),
            farewell_max: Duration::from_secs(1),
            shutdown_grace: Duration::from_secs(10),
        }
    }
}

impl Limits {
    /// How long a query may run whose request names this many milliseconds. Zero asks for as long as the server allows.
    pub fn time_limit(&self, named_ms: Option<u64>) -> Option<Duration> {
        let Some(named_ms) = named_ms else { return self.evaluation_timeout };
        // A request that names a time is not worse off than one that names none.
        let longest = self.evaluation_timeout.and_then(|own| Some(self.evaluation_timeout_max?.max(own)));
        match named_ms {
            0 => longest,
            named_ms => {
                let named = Duration::from_millis(named_ms);
                Some(longest.map_or(named, |longest| named.min(longest)))
            }
        }
    }

    /// The size beyond which a message is not even read in order to answer it.
    pub fn frame_bytes_max(&self) -> usize {
        self.message_bytes_max.saturating_mul(4)
    }
}

impl Config {
    /// The defaults at an address.
    pub fn new(listen: SocketAddr) -> Self {
        Config {
            listen,
            allow_remote: false,
            tls: None,
            users: None,
            lockout: Lockout::default(),
            browsers: Browsers::default(),
            limits: Limits::default(),
        }
    }

    /// What is wrong with letting other machines reach the server as it is set up, if they can.
    pub fn risk(&self) -> Option<&'static str> {
        if self.listen.ip().is_loopback() {
            return None;
        }
        match (&self.tls, &self.users) {
            (Some(_), Some(_)) => None,
            (None, Some(_)) => Some("passwords and data would cross the network in clear, for want of TLS"),
            (Some(_), None) => Some("anybody may read and change everything, for want of authentication"),
            (None, None) => Some("there is neither TLS nor authentication"),
        }
    }

    /// Refuses what would only fail later, or expose the graph unasked.
    pub fn check(&self) -> Result<()> {
        if let Some(risk) = self.risk()
            && !self.allow_remote
        {
            return Err(Error::invalid(format!(
                "{} can be reached from other machines and {risk}: give it tls_certificate, tls_key and users_file, \
                 listen on 127.0.0.1 or [::1], or set allow_remote to accept that",
                self.listen
            )));
        }
        self.browsers.check()?;
        if self.lockout.user_max == 0 || self.lockout.address_max == 0 {
            return Err(Error::invalid(
                "login_failures_user_max and login_failures_address_max are 1 or more: with 0 nobody could log in; \
                 login_lockout = \"0s\" refuses nobody",
            ));
        }
        let limits = &self.limits;
        if limits.silence_max <= limits.ping_interval {
            return Err(Error::invalid(
                "silence_max is not longer than ping_interval: every quiet client would be dropped before it is asked",
            ));
        }
        for (name, value) in [
            ("connection_count_max", limits.connection_count_max),
            ("message_bytes_max", limits.message_bytes_max),
            ("body_bytes_max", limits.body_bytes_max),
            ("batch_bytes_max", limits.batch_bytes_max),
            ("in_flight_count_max", limits.in_flight_count_max),
            ("worker_count_max", limits.worker_count_max),
            ("batch_size", limits.batch_size),
            ("batch_size_max", limits.batch_size_max),
            ("outgoing_count_max", limits.outgoing_count_max),
        ] {
            if value == 0 {
                return Err(Error::invalid(format!(
                    "the limit {name} is 0: the server could serve nobody; use 1 or more"
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(listen: &str) -> Config {
        Config::new(listen.parse().unwrap())
    }

    #[test]
    fn other_machines_are_let_in_only_when_asked_for() {
        config("127.0.0.1:8182").check().unwrap();
        config("[::1]:8182").check().unwrap();
        let message = config("0.0.0.0:8182").check().unwrap_err().to_string();
        assert!(message.contains("allow_remote"), "{message}");
        let asked = Config { allow_remote: true, ..config("0.0.0.0:8182") };
        asked.check().unwrap();
    }

    #[test]
    fn no_request_gets_past_the_longest_time_limit() {
        let seconds = |seconds: u64| Some(Duration::from_secs(seconds));
        let limit = |own, longest, named_ms| {
            let limits = Limits { evaluation_timeout: own, evaluation_timeout_max: longest, ..Limits::default() };
            limits.time_limit(named_ms)
        };
        for (named_ms, expected) in
            [(None, seconds(30)), (Some(0), seconds(60)), (Some(45_000), seconds(45)), (Some(u64::MAX), seconds(60))]
        {
            assert_eq!(limit(seconds(30), seconds(60), named_ms), expected, "{named_ms:?}");
        }
        // The operator's own limit is longer than what requests may name: none is cut by naming a time.
        assert_eq!(limit(seconds(90), seconds(60), Some(0)), seconds(90));
        // Only an operator's word lets a query run without end.
        for (own, longest) in [(None, seconds(60)), (seconds(30), None), (None, None)] {
            assert_eq!(limit(own, longest, Some(0)), None, "{own:?} {longest:?}");
            assert_eq!(limit(own, longest, Some(100_000)), seconds(100), "{own:?} {longest:?}");
        }
        assert_eq!(Limits::default().time_limit(Some(0)), seconds(3_600));
    }

    #[test]
    fn a_limit_of_zero_is_named() {
        let mut none = config("127.0.0.1:0");
        none.limits.worker_count_max = 0;
        assert!(none.check().unwrap_err().message().contains("worker_count_max"));
    }
}
