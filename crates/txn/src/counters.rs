//! How transactions ended.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering, thread_number};

/// Why a transaction did not commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AbortCause {
    /// Another transaction wrote the same thing first.
    WriteConflict,
    /// Another transaction changed what this one had read.
    ReadConflict,
    /// It hung on another transaction, which ended the other way.
    Dependency,
    /// What others had committed since its begin took more memory than `commit_history_bytes` allows.
    TooOld,
    /// Its owner rolled it back, or dropped it.
    Rollback,
    /// It was open for longer than snapshots are kept (`max_snapshot_age_ms`).
    Expired,
    /// The log took no commits: its disk is full, or has failed.
    Refused,
    /// What it wrote breaks a rule of the schema.
    Rule,
    /// A request in it failed after it had begun to write.
    Failed,
}

impl AbortCause {
    /// All causes.
    pub const ALL: [AbortCause; 9] = [
        AbortCause::WriteConflict,
        AbortCause::ReadConflict,
        AbortCause::Dependency,
        AbortCause::TooOld,
        AbortCause::Rollback,
        AbortCause::Expired,
        AbortCause::Refused,
        AbortCause::Rule,
        AbortCause::Failed,
    ];

    /// A name for tables and metrics.
    pub fn name(self) -> &'static str {
        match self {
            AbortCause::WriteConflict => "write_conflict",
            AbortCause::ReadConflict => "read_conflict",
            AbortCause::Dependency => "dependency",
            AbortCause::TooOld => "too_old",
            AbortCause::Rollback => "rollback",
            AbortCause::Expired => "expired",
            AbortCause::Refused => "refused",
            AbortCause::Rule => "rule",
            AbortCause::Failed => "failed",
        }
    }
}

/// How many transactions ended which way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionCounters {
    /// Committed with writes.
    pub commits: u64,
    /// Ended without having written anything.
    pub read_only: u64,
    /// Aborted, by the order of [`AbortCause::ALL`]; see [`TransactionCounters::aborted`].
    pub aborts: [u64; AbortCause::ALL.len()],
    /// How often a validator waited for another transaction's end.
    pub dependency_waits: u64,
    /// How many items were read at a moment later than their reader's begin: those with newer versions, and those that
    /// were read together with one.
    pub pre_reads: u64,
    /// Running now.
    pub active: u64,
}

impl TransactionCounters {
    /// How many transactions aborted for this cause.
    pub fn aborted(&self, cause: AbortCause) -> u64 {
        self.aborts[cause as usize]
    }

    /// How many transactions aborted because of others: everything but their owners' rollbacks, delays and broken rules,
    /// and a log that takes nothing.
    pub fn conflicts(&self) -> u64 {
        let own = [AbortCause::Rollback, AbortCause::Expired, AbortCause::Refused, AbortCause::Rule];
        self.aborts.iter().sum::<u64>() - own.into_iter().map(|cause| self.aborted(cause)).sum::<u64>()
    }
}

/// Parts of a counter; threads that count at the same time rarely meet in one.
const SHARDS: usize = 8;

/// A counter that every transaction adds to, so it is kept in parts: two cores that add to one word pass it to and fro.
#[derive(Debug, Default)]
pub(crate) struct Sharded([CachePadded<AtomicU64>; SHARDS]);

impl Sharded {
    /// Counts one more.
    #[inline]
    pub(crate) fn add(&self) {
        self.0[thread_number() % SHARDS].fetch_add(1, Ordering::Relaxed);
    }

    fn load(&self) -> u64 {
        self.0.iter().map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

/// The counters as they run.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: Sharded,
    pub(crate) read_only: Sharded,
    aborts: [AtomicU64; AbortCause::ALL.len()],
    pub(crate) dependency_waits: AtomicU64,
    pub(crate) pre_reads: AtomicU64,
}

impl Counters {
    pub(crate) fn count_abort(&self, cause: AbortCause) {
        self.aborts[cause as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn load(&self, active: u64) -> TransactionCounters {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        TransactionCounters {
            commits: self.commits.load(),
            read_only: self.read_only.load(),
            aborts: std::array::from_fn(|cause| load(&self.aborts[cause])),
            dependency_waits: load(&self.dependency_waits),
            pre_reads: load(&self.pre_reads),
            active,
        }
    }
}
