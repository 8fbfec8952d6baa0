//! Counters of how transactions ended, and the causes of aborts by name.
//!
//! Counting must not make cores share a cache line, so the two counters that every transaction adds to are sharded by
//! thread. All counters are relaxed: they order nothing.

use crossbeam_utils::CachePadded;

use crate::sync::{AtomicU64, Ordering, thread_number};

/// Why a transaction did not commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum AbortCause {
    /// Another transaction wrote the same version first.
    WriteConflict,
    /// Another transaction changed what this one had read.
    ReadConflict,
    /// It depended on the outcome of another transaction, which ended the other way.
    Dependency,
    /// The write sets since its begin exceeded `commit_history_bytes`, so it could not be validated.
    TooOld,
    /// The client rolled it back, or dropped it.
    Rollback,
    /// It was open for longer than `max_snapshot_age_ms`.
    Expired,
    /// The log accepted no commits: its disk is full or has failed.
    Refused,
    /// Its writes break a rule of the schema.
    Rule,
    /// A request in it failed after it had begun to write.
    Failed,
}

impl AbortCause {
    /// All causes, in the order of [`TransactionCounters::aborts`].
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

    /// The name in tables and metrics.
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

/// How many transactions ended which way since the graph was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionCounters {
    /// Transactions that wrote and committed.
    pub commits: u64,
    /// Transactions that ended without a write.
    pub read_only: u64,
    /// Aborted transactions by cause, in the order of [`AbortCause::ALL`]; [`TransactionCounters::aborted`] looks one
    /// up.
    pub aborts: [u64; AbortCause::ALL.len()],
    /// How often a validator waited for the outcome of another transaction.
    pub dependency_waits: u64,
    /// Items that were read at a timestamp later than their reader's begin: items with newer versions, and items that
    /// were read together with one.
    pub pre_reads: u64,
    /// Transactions that are running.
    pub active: u64,
}

impl TransactionCounters {
    /// Returns the number of transactions that aborted for this cause.
    pub fn aborted(&self, cause: AbortCause) -> u64 {
        self.aborts[cause as usize]
    }

    /// Returns the number of transactions that aborted because of other transactions: all but rollbacks by the client,
    /// expiry, broken rules, and a log that accepts nothing.
    pub fn conflicts(&self) -> u64 {
        let own = [AbortCause::Rollback, AbortCause::Expired, AbortCause::Refused, AbortCause::Rule];
        self.aborts.iter().sum::<u64>() - own.into_iter().map(|cause| self.aborted(cause)).sum::<u64>()
    }
}

/// Shards of a counter. Threads that count at the same time rarely share one.
const SHARDS: usize = 8;

/// A counter in shards, one cache line each. Two cores that add to one word would pass its line to and fro.
#[derive(Debug, Default)]
pub(crate) struct ShardedCounter([CachePadded<AtomicU64>; SHARDS]);

impl ShardedCounter {
    /// Adds one to the shard of the calling thread.
    #[inline]
    pub(crate) fn add(&self) {
        self.0[thread_number() % SHARDS].fetch_add(1, Ordering::Relaxed);
    }

    fn load(&self) -> u64 {
        self.0.iter().map(|part| part.load(Ordering::Relaxed)).sum()
    }
}

/// The live counters of one graph.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) commits: ShardedCounter,
    pub(crate) read_only: ShardedCounter,
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
