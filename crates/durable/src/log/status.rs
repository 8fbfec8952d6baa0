//! The state and counters of an open log, as metrics and `/health` show them.
//!
//! The counters are relaxed atomics: no decision depends on them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crate::disk::DiskResult;

/// The upper bounds of the classes of [`DurabilityStatus::sync_times`], in microseconds. One more class is above them.
pub const SYNC_TIME_BOUNDS_US: [u64; 12] =
    [50, 100, 200, 500, 1_000, 2_000, 5_000, 10_000, 50_000, 100_000, 500_000, 2_000_000];

/// Says whether the log accepts commits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LogState {
    /// The log accepts commits.
    Running,
    /// No space can be reserved: commits are refused before they are decided. The log goes on by itself when the cause
    /// is gone.
    Refusing {
        /// The error of the disk.
        cause: String,
    },
    /// A write or a sync has failed (LOG-3). Durable commits stay; the log accepts no more until the database is opened
    /// again.
    Failed {
        /// The error of the disk.
        cause: String,
    },
}

impl LogState {
    /// The name in metrics and `/health`.
    pub fn name(&self) -> &'static str {
        match self {
            LogState::Running => "running",
            LogState::Refusing { .. } => "refusing",
            LogState::Failed { .. } => "failed",
        }
    }
}

/// The state and counters of an open log. Counts are since it was opened.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DurabilityStatus {
    /// Says whether the log accepts commits.
    pub state: LogState,
    /// Every commit up to this timestamp is durable.
    pub durable_ts: u64,
    /// Bytes written, headers and padding included.
    pub bytes: u64,
    /// Batches written; each is one sync.
    pub batches: u64,
    /// Commits in these batches.
    pub commits: u64,
    /// Segments begun.
    pub segments: u64,
    /// The segment in which the durable part of the log ends; before the first batch, the segment that it will go to.
    pub segment: u64,
    /// The number of syncs in each class of [`SYNC_TIME_BOUNDS_US`], and one class above.
    pub sync_times: [u64; SYNC_TIME_BOUNDS_US.len() + 1],
    /// The total time of all syncs, in microseconds.
    pub sync_us: u64,
}

/// The live counters of a log.
#[derive(Debug, Default)]
pub(crate) struct LogMeters {
    bytes: AtomicU64,
    batches: AtomicU64,
    commits: AtomicU64,
    segments: AtomicU64,
    sync_times: [AtomicU64; SYNC_TIME_BOUNDS_US.len() + 1],
    sync_us: AtomicU64,
}

impl LogMeters {
    pub(crate) fn count_batch(&self, bytes: u64, commits: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.batches.fetch_add(1, Ordering::Relaxed);
        self.commits.fetch_add(commits, Ordering::Relaxed);
    }

    pub(crate) fn count_segment(&self) {
        self.segments.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a sync and counts the time that it takes.
    pub(crate) fn time_sync(&self, sync: impl FnOnce() -> DiskResult<()>) -> DiskResult<()> {
        #[allow(
            clippy::disallowed_methods,
            reason = "how long a sync takes decides nothing that can be observed in data"
        )]
        let begun = Instant::now();
        let outcome = sync();
        let micros = begun.elapsed().as_micros() as u64;
        let class = SYNC_TIME_BOUNDS_US.partition_point(|bound| *bound < micros);
        self.sync_times[class].fetch_add(1, Ordering::Relaxed);
        self.sync_us.fetch_add(micros, Ordering::Relaxed);
        outcome
    }

    pub(crate) fn status(&self, state: LogState, durable_ts: u64, segment: u64) -> DurabilityStatus {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DurabilityStatus {
            state,
            durable_ts,
            bytes: load(&self.bytes),
            batches: load(&self.batches),
            commits: load(&self.commits),
            segments: load(&self.segments),
            segment,
            sync_times: std::array::from_fn(|class| load(&self.sync_times[class])),
            sync_us: load(&self.sync_us),
        }
    }
}
