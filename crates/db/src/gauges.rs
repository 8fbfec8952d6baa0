//! The figures of a running query, for views of what runs.
//!
//! The threads of a query write them after each of their turns, so a figure is at most one turn old. An algorithm, which works for
//! one turn, shows its progress meanwhile. They are figures to
//! show: nothing is decided by them, and no other memory is published with them, so all accesses are relaxed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mangrove_flow::{QueryProgress, QueryProgressFigures};

/// Places for the figures of one query ([`crate::QueryOptions::gauges`]).
#[derive(Debug, Default)]
pub struct QueryGauges {
    executor_nanos: AtomicU64,
    threads: AtomicU32,
    helpers: AtomicU32,
    parcels: AtomicU64,
    messages: AtomicU64,
    memory_bytes: AtomicU64,
    memory_peak_bytes: AtomicU64,
    scope_groups: AtomicU64,
    scope_groups_peak: AtomicU64,
    instances_cancelled: AtomicU64,
    lanes: AtomicU64,
    pub(crate) progress: Arc<QueryProgress>,
}

/// The figures of a query at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueryFigures {
    /// The CPU time on executors, in nanoseconds. What runs on the thread of the caller is not in it.
    pub executor_nanos: u64,
    /// The threads that work on the query at the moment.
    pub threads: u32,
    /// The threads that have joined the query as helpers and have not left it.
    pub helpers: u32,
    /// Parcels of messages that helpers have taken over.
    pub parcels: u64,
    /// The messages that the home of the query has processed.
    pub messages: u64,
    /// The bytes that the query holds.
    pub memory_bytes: u64,
    /// The most bytes that it held at a time.
    pub memory_peak_bytes: u64,
    /// The scope groups that it has opened.
    pub scope_groups: u64,
    /// The most scope groups that were open at a time.
    pub scope_groups_peak: u64,
    /// The scope instances that were cancelled early, one by one.
    pub instances_cancelled: u64,
    /// The open scope groups that have inboxes of their own, because a policy orders them.
    pub lanes: u64,
    /// What the query works on and how far it has come, if it runs an algorithm.
    pub progress: Option<QueryProgressFigures>,
}

impl QueryGauges {
    /// Returns the figures.
    pub fn read(&self) -> QueryFigures {
        QueryFigures {
            executor_nanos: self.executor_nanos.load(Ordering::Relaxed),
            threads: self.threads.load(Ordering::Relaxed),
            helpers: self.helpers.load(Ordering::Relaxed),
            parcels: self.parcels.load(Ordering::Relaxed),
            messages: self.messages.load(Ordering::Relaxed),
            memory_bytes: self.memory_bytes.load(Ordering::Relaxed),
            memory_peak_bytes: self.memory_peak_bytes.load(Ordering::Relaxed),
            scope_groups: self.scope_groups.load(Ordering::Relaxed),
            scope_groups_peak: self.scope_groups_peak.load(Ordering::Relaxed),
            instances_cancelled: self.instances_cancelled.load(Ordering::Relaxed),
            lanes: self.lanes.load(Ordering::Relaxed),
            progress: self.progress.read(),
        }
    }

    /// Sets the figures that the home of the query knows; the others are left.
    pub(crate) fn show(&self, figures: &QueryFigures) {
        self.parcels.store(figures.parcels, Ordering::Relaxed);
        self.messages.store(figures.messages, Ordering::Relaxed);
        self.memory_bytes.store(figures.memory_bytes, Ordering::Relaxed);
        self.memory_peak_bytes.store(figures.memory_peak_bytes, Ordering::Relaxed);
        self.scope_groups.store(figures.scope_groups, Ordering::Relaxed);
        self.scope_groups_peak.store(figures.scope_groups_peak, Ordering::Relaxed);
        self.instances_cancelled.store(figures.instances_cancelled, Ordering::Relaxed);
        self.lanes.store(figures.lanes, Ordering::Relaxed);
    }
}

/// A count that goes down when this is dropped.
pub(crate) struct Counted<'a>(&'a AtomicU32);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What a task of a query adds to its figures. Dropping it takes a helper out of the count.
pub(crate) struct TaskGauges {
    gauges: Arc<QueryGauges>,
    is_helper: bool,
    /// The CPU time of the task that is added already.
    added_nanos: u64,
}

impl TaskGauges {
    /// The gauges of the task that runs the query.
    pub fn of_home(gauges: Arc<QueryGauges>) -> Self {
        TaskGauges { gauges, is_helper: false, added_nanos: 0 }
    }

    /// The gauges of a task that helps it.
    pub fn of_helper(gauges: Arc<QueryGauges>) -> Self {
        gauges.helpers.fetch_add(1, Ordering::Relaxed);
        TaskGauges { gauges, is_helper: true, added_nanos: 0 }
    }

    /// Adds the CPU time of a task, given its sum.
    pub fn add_cpu_nanos(&mut self, sum: u64) {
        let nanos = sum.saturating_sub(std::mem::replace(&mut self.added_nanos, sum));
        self.gauges.executor_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Counts the thread of a turn, until the result is dropped.
    pub fn turn(&self) -> Counted<'_> {
        self.gauges.threads.fetch_add(1, Ordering::Relaxed);
        Counted(&self.gauges.threads)
    }
}

impl Drop for TaskGauges {
    fn drop(&mut self) {
        if self.is_helper {
            self.gauges.helpers.fetch_sub(1, Ordering::Relaxed);
        }
    }
}
