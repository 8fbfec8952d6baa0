//! What a query may use, and what it shares between its nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_graph::{Error, ErrorKind, Result};

use crate::clock::Clock;

/// Limits of one query. Exceeding one ends that query alone, with an error that names the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// How long it may run, in nanoseconds; `None`: as long as it likes.
    pub time_nanos: Option<u64>,
    /// How many bytes its operators may hold at a time.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { time_nanos: None, memory_bytes: 2 << 30 }
    }
}

/// What the nodes of one running query share.
pub struct QueryContext {
    limits: Limits,
    clock: Arc<dyn Clock>,
    started: u64,
    cancelled: Arc<AtomicBool>,
    memory: AtomicU64,
    memory_peak: AtomicU64,
}

impl QueryContext {
    /// A query that starts now. Setting `cancelled` ends it at its next message.
    pub fn new(limits: Limits, clock: Arc<dyn Clock>, cancelled: Arc<AtomicBool>) -> Self {
        let started = clock.now_nanos();
        QueryContext { limits, clock, started, cancelled, memory: AtomicU64::new(0), memory_peak: AtomicU64::new(0) }
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Nanoseconds since the query started.
    pub fn elapsed_nanos(&self) -> u64 {
        self.clock.now_nanos().saturating_sub(self.started)
    }

    /// The most bytes held at a time so far.
    pub fn memory_peak(&self) -> u64 {
        self.memory_peak.load(Ordering::Relaxed)
    }

    /// Fails when the query was cancelled or its time is over.
    pub fn check(&self) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        match self.limits.time_nanos {
            Some(limit) if self.elapsed_nanos() > limit => Err(Error::new(
                ErrorKind::Timeout,
                format!(
                    "the query ran longer than its time limit of {} ms; narrow it, or raise the limit \
                     (`evaluationTimeout` of the request)",
                    limit / 1_000_000
                ),
            )),
            _ => Ok(()),
        }
    }

    /// Accounts for bytes that an operator now holds; fails when that is more than the query may.
    pub fn charge(&self, bytes: u64) -> Result<()> {
        // Too many bytes to count end the query like any other amount that is too large.
        let held = self.memory.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.memory_peak.fetch_max(held, Ordering::Relaxed);
        if held > self.limits.memory_bytes {
            return Err(Error::new(
                ErrorKind::MemoryLimit,
                format!(
                    "the query holds more than its memory limit of {} bytes; narrow it (limit(), dedup(), a \
                     filter nearer to its start), or raise the limit",
                    self.limits.memory_bytes
                ),
            ));
        }
        Ok(())
    }

    /// Gives back what was charged.
    pub fn release(&self, bytes: u64) {
        self.memory.fetch_sub(bytes, Ordering::Relaxed);
    }
}
