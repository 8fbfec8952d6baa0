//! The limits of a server.
//!
//! - **SERVER-1.** Nothing that a client sends makes anything grow without a limit named in [`Limits`] or in a constant
//!   beside the code that holds it.

use std::time::Duration;

/// The limits of a server. They may be replaced while it runs, except for the counts of connections, workers and
/// sessions.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Connections at once. The server answers further ones with HTTP status 503. Connections that only ask for
    /// `/health` or `/metrics` do not count.
    pub connection_count_max: usize,
    /// Connections of one address. IPv6 addresses count by networks of 64 bits.
    pub connection_count_address_max: usize,
    /// WebSockets of one user.
    pub connection_count_user_max: usize,
    /// Bytes that a client may send over a WebSocket before it has logged in. More closes the connection.
    pub login_bytes_max: usize,
    /// Bytes of a request. The server answers a larger one with an error; beyond [`Limits::frame_bytes_max`] it closes
    /// the connection.
    pub message_bytes_max: usize,
    /// Bytes of the body of an HTTP request. The server answers a larger one with 413.
    pub body_bytes_max: usize,
    /// How long the body of an HTTP request may take to arrive.
    pub body_timeout: Duration,
    /// Requests of one connection that run or wait. At this number the server stops reading the connection.
    pub in_flight_count_max: usize,
    /// Queries that run at once on the whole server. Each has a worker thread. The thread mostly waits if the engine
    /// runs the query on executors of its own.
    pub worker_count_max: usize,
    /// How long a query may wait for a worker and run, if the request names no time; `None` for no limit.
    pub evaluation_timeout: Option<Duration>,
    /// The longest time that a request may name; `None` for no limit. It never shortens [`Limits::evaluation_timeout`].
    pub evaluation_timeout_max: Option<Duration>,
    /// Results in one response message, unless the request names a batch size.
    pub batch_size: usize,
    /// The largest batch size that a request may name.
    pub batch_size_max: usize,
    /// About how many bytes of results a response message holds. A batch that has reached this size is sent early. A
    /// larger result is sent alone.
    pub batch_bytes_max: usize,
    /// About how many bytes one result may have. The server encodes a result as a whole, in memory.
    pub result_bytes_max: usize,
    /// Results of a writing request. The server holds them back until the transaction is committed.
    pub held_result_count_max: usize,
    /// About how many bytes the results held back may take.
    pub held_result_bytes_max: usize,
    /// Response messages that may wait for a slow client. When the queue is full, the client's queries wait.
    pub outgoing_count_max: usize,
    /// How long a client may read nothing of a response before the server drops its connection.
    pub write_stall_max: Duration,
    /// The interval of the server's pings on a WebSocket.
    pub ping_interval: Duration,
    /// How long a WebSocket may send nothing, not even answers to pings, before the server considers it lost.
    pub silence_max: Duration,
    /// How long the TLS handshake may take.
    pub handshake_timeout: Duration,
    /// How long the head of an HTTP request may take. A kept-alive connection may be idle for as long.
    pub header_timeout: Duration,
    /// How long a WebSocket may stay open without a login, if the server has users.
    pub authentication_timeout: Duration,
    /// Sessions at once.
    pub session_count_max: usize,
    /// Sessions of one user. A server without users does not count them.
    pub session_count_user_max: usize,
    /// Sessions of one address.
    pub session_count_address_max: usize,
    /// How long a session may be idle before its transaction is rolled back.
    pub session_idle_max: Duration,
    /// How long the server remembers an expired session at least. Otherwise a client that returns would begin another
    /// session unawares, and commit the second half of an undone transaction.
    pub session_remembered_min: Duration,
    /// How many times the server runs a request outside a session again after a conflict.
    pub conflict_retry_count_max: u32,
    /// How long a stopping server goes on taking requests while `/health` says `closing`. A load balancer uses this
    /// time to send clients elsewhere.
    pub closing_min: Duration,
    /// How long running requests may go on after that, before the server cancels them.
    pub drain_max: Duration,
    /// How long clients may read their answers after that, before the server cuts their connections off.
    pub farewell_max: Duration,
    /// How long the shutdown then waits for requests that have not noticed their cancellation.
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
    /// The time limit of a query whose request names this many milliseconds. Zero asks for the longest time that the
    /// server allows.
    pub fn time_limit(&self, named_ms: Option<u64>) -> Option<Duration> {
        let Some(named_ms) = named_ms else { return self.evaluation_timeout };
        // A request that names a time must not get less than one that names none.
        let longest = self.evaluation_timeout.and_then(|own| Some(self.evaluation_timeout_max?.max(own)));
        match named_ms {
            0 => longest,
            named_ms => {
                let named = Duration::from_millis(named_ms);
                Some(longest.map_or(named, |longest| named.min(longest)))
            }
        }
    }

    /// The size, in bytes, above which the server does not even read a message in order to answer it.
    pub fn frame_bytes_max(&self) -> usize {
        self.message_bytes_max.saturating_mul(4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // The operator's own limit is longer than the longest that requests may name: naming a time shortens no
        // request.
        assert_eq!(limit(seconds(90), seconds(60), Some(0)), seconds(90));
        // Only the operator can let a query run without a limit.
        for (own, longest) in [(None, seconds(60)), (seconds(30), None), (None, None)] {
            assert_eq!(limit(own, longest, Some(0)), None, "{own:?} {longest:?}");
            assert_eq!(limit(own, longest, Some(100_000)), seconds(100), "{own:?} {longest:?}");
        }
        assert_eq!(Limits::default().time_limit(Some(0)), seconds(3_600));
    }
}
