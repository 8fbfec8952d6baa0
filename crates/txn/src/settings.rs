//! The settings of transactions and garbage collection that can be changed while a graph is open.
//!
//! Each is one atomic, read with relaxed ordering where it takes effect.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// Settings of one graph. A change of `optimistic_pre_read` takes effect for transactions that begin after it. The
/// other settings take effect at their next use, for running transactions too.
#[derive(Debug)]
pub struct Settings {
    /// Serializable transactions read the versions of validating and freshly committed writers, instead of older
    /// versions that would make them abort.
    pub optimistic_pre_read: AtomicBool,
    /// A validator that conflicts with another validator waits for the other's outcome, instead of aborting at once.
    pub optimistic_validation: AtomicBool,
    /// Versions that no snapshot can see are collected.
    pub garbage_collection: AtomicBool,
    /// Number of collector threads; at most [`GC_WORKERS_MAX`](crate::GC_WORKERS_MAX) run. 0: only explicit calls
    /// collect.
    pub gc_workers: AtomicUsize,
    /// Milliseconds after which an open transaction may expire, so that its snapshot stops holding collection back. 0,
    /// the default: no limit.
    pub max_snapshot_age_ms: AtomicU64,
    /// Bytes that the write sets of recent commits may take. Serializable transactions are validated against them.
    /// Above the limit the oldest write sets are dropped, and a running transaction that needs one of them cannot
    /// commit.
    pub commit_history_bytes: AtomicU64,
}

/// Enough for a transaction of one minute beside 100,000 small commits a second.
const COMMIT_HISTORY_BYTES: u64 = 1 << 30;

impl Default for Settings {
    fn default() -> Self {
        Settings {
            optimistic_pre_read: AtomicBool::new(true),
            optimistic_validation: AtomicBool::new(true),
            garbage_collection: AtomicBool::new(true),
            gc_workers: AtomicUsize::new(1),
            max_snapshot_age_ms: AtomicU64::new(0),
            commit_history_bytes: AtomicU64::new(COMMIT_HISTORY_BYTES),
        }
    }
}
