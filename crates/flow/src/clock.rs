//! The clock of queries. Code that runs queries measures time only by this clock (`clippy.toml` forbids other ways), so
//! a test that moves a [`ManualClock`] controls every time limit.

use std::sync::atomic::{AtomicU64, Ordering};

/// A monotonic clock. Only differences between its readings mean anything.
pub trait Clock: Send + Sync {
    /// Returns nanoseconds since a fixed time before the first call.
    fn now_nanos(&self) -> u64;
}

/// The machine's monotonic clock.
pub struct MonotonicClock {
    start: std::time::Instant,
}

impl Default for MonotonicClock {
    #[expect(clippy::disallowed_methods, reason = "this is the one place that reads the machine's clock")]
    fn default() -> Self {
        MonotonicClock { start: std::time::Instant::now() }
    }
}

impl Clock for MonotonicClock {
    fn now_nanos(&self) -> u64 {
        // 2^64 nanoseconds are 584 years.
        self.start.elapsed().as_nanos() as u64
    }
}

/// A clock that a test moves.
#[derive(Default)]
pub struct ManualClock(AtomicU64);

impl ManualClock {
    /// Moves the clock forward by this many nanoseconds.
    pub fn advance(&self, nanos: u64) {
        self.0.fetch_add(nanos, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    fn now_nanos(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}
