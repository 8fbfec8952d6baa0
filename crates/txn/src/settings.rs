//! What can be changed in a running database.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};

/// The switches of a graph's transactions and of the collection of what they leave behind. Each may be changed at any
/// moment; transactions that are running keep what they began with.
#[derive(Debug)]
pub struct Settings {
    /// Serializable transactions read what validating and freshly committed writers wrote, instead of an older
    /// version that would make them abort.
    pub optimistic_pre_read: AtomicBool,
    /// A validator that conflicts with another validator waits for the other's end, instead of aborting at once.
    pub optimistic_validation: AtomicBool,
    /// Versions that nobody can see any more are collected.
    pub garbage_collection: AtomicBool,
    /// How many threads collect them.
    pub gc_workers: AtomicUsize,
    /// A transaction that has been open for more milliseconds than this may be ended, so that its snapshot no longer
    /// holds collection back; 0, the default: no limit.
    pub max_snapshot_age_ms: AtomicU64,
    /// How many bytes the write sets of recent commits may take, which serializable transactions are checked against. Above
    /// that the oldest ones are dropped, and a running transaction that would need them cannot commit.
    pub commit_history_bytes: AtomicU64,
}

/// Enough for a transaction of a minute beside 100,000 small commits a second.
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
