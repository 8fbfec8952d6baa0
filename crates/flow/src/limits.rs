//! What a query may use, and what it shares between its nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::clock::Clock;

/// How many messages pass between two looks at the clock. A message is worked off in well under a millisecond.
const CLOCK_MESSAGES: u64 = 16;

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
    /// Absent where nobody counts the time: reading a clock costs as much as a message of a few rows.
    started: Option<u64>,
    cancelled: Arc<AtomicBool>,
    memory: AtomicU64,
    memory_peak: AtomicU64,
}

impl QueryContext {
    /// A query that starts now. Setting `cancelled` ends it at its next message.
    pub fn new(limits: Limits, clock: Arc<dyn Clock>, cancelled: Arc<AtomicBool>) -> Self {
        let started = limits.time_nanos.map(|_| clock.now_nanos());
        QueryContext { limits, clock, started, cancelled, memory: AtomicU64::new(0), memory_peak: AtomicU64::new(0) }
    }

    /// Makes this the context of another query, which starts now; in place where nobody else has it any more.
    pub fn renew(self: &mut Arc<Self>, limits: Limits, clock: &Arc<dyn Clock>, cancelled: &Arc<AtomicBool>) {
        let Some(context) = Arc::get_mut(self) else {
            *self = Arc::new(QueryContext::new(limits, clock.clone(), cancelled.clone()));
            return;
        };
        context.limits = limits;
        if !Arc::ptr_eq(&context.clock, clock) {
            context.clock = clock.clone();
        }
        if !Arc::ptr_eq(&context.cancelled, cancelled) {
            context.cancelled = cancelled.clone();
        }
        context.started = context.limits.time_nanos.map(|_| context.clock.now_nanos());
        *context.memory.get_mut() = 0;
        *context.memory_peak.get_mut() = 0;
    }

    /// Counts the time from now on, also where no limit asks for it.
    pub fn count_time(self: &mut Arc<Self>) {
        if let Some(context) = Arc::get_mut(self) {
            context.started.get_or_insert_with(|| context.clock.now_nanos());
        }
    }

    /// The clock.
    pub fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// Nanoseconds since the query started; 0 where they are not counted ([`QueryContext::count_time`]).
    pub fn elapsed_nanos(&self) -> u64 {
        self.started.map_or(0, |started| self.clock.now_nanos().saturating_sub(started))
    }

    /// The bytes that are charged now.
    pub fn memory(&self) -> u64 {
        self.memory.load(Ordering::Relaxed)
    }

    /// The most bytes held at a time so far.
    pub fn memory_peak(&self) -> u64 {
        self.memory_peak.load(Ordering::Relaxed)
    }

    /// Fails when the query was cancelled or its time is over.
    pub fn check(&self) -> Result<()> {
        self.check_at(CLOCK_MESSAGES)
    }

    /// As [`QueryContext::check`] before a message of this number, but looks at the clock only before every
    /// [`CLOCK_MESSAGES`]th: a light query reads it once, to know when it started.
    pub fn check_at(&self, message: u64) -> Result<()> {
        if self.cancelled.load(Ordering::Relaxed) {
            return Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"));
        }
        if message == 0 || !message.is_multiple_of(CLOCK_MESSAGES) {
            return Ok(());
        }
        match self.limits.time_nanos {
            Some(limit) if self.elapsed_nanos() > limit => Err(Error::time_limit(Duration::from_nanos(limit))),
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
                     filter nearer to its start), or raise the limit (`query_memory_limit` of a server)",
                    self.limits.memory_bytes
                ),
            ));
        }
        Ok(())
    }

    /// Gives back what was charged.
    pub fn release(&self, bytes: u64) {
        if bytes > 0 {
            self.memory.fetch_sub(bytes, Ordering::Relaxed);
        }
    }
}
