//! What is known to be garbage, or will be: the way from a finished transaction to the collector's work.
//!
//! Nothing scans the graph for garbage. A commit hands over its log, which names every version it replaced and every
//! element it ended:
//!
//! ```text
//! Store::retire ──▶ queue, by commit timestamp ──▶ (oldest snapshot has passed it) ──▶ tasks of a tablet, by type
//! Store::retire_aborted ──▶ limbo (readers of the rollback) ──────────────────────────▲
//! ```
//!
//! Tasks are worked off by `reclaim`, a batch of one type at a time.

use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;

use mangrove_graph::{ElementRef, KeyId};

use crate::memory::{Memory, RecordKind};
use crate::sync::{AtomicU64, AtomicUsize, Mutex};
use crate::write::Write;

/// Committers that finish at the same time rarely meet in one of these.
const SHARDS: usize = 8;

/// Logs with the timestamps of their commits.
type Logs = VecDeque<(u64, Vec<Write>)>;

/// Logs of commits that some snapshot may still look behind.
#[derive(Debug)]
pub(crate) struct Queue {
    shards: [Mutex<Logs>; SHARDS],
    writes: AtomicUsize,
}

fn bytes(log: &[Write]) -> usize {
    size_of_val(log) + size_of::<(u64, Vec<Write>)>()
}

impl Queue {
    pub(crate) fn new() -> Self {
        Queue { shards: [const { Mutex::new(VecDeque::new()) }; SHARDS], writes: AtomicUsize::new(0) }
    }

    pub(crate) fn push(&self, ts: u64, mut log: Vec<Write>, memory: &Memory) {
        log.shrink_to_fit();
        memory.add(RecordKind::Log, bytes(&log));
        self.writes.fetch_add(log.len(), Ordering::Relaxed);
        self.shards[ts as usize % SHARDS].lock().push_back((ts, log));
    }

    /// Takes logs whose commit every snapshot sees, of about `limit` writes.
    pub(crate) fn take(&self, oldest: u64, limit: usize, memory: &Memory) -> Vec<Vec<Write>> {
        let (mut taken, mut count) = (Vec::new(), 0);
        for shard in &self.shards {
            let mut shard = shard.lock();
            // Nearly in the order of timestamps: one that was overtaken waits for the next time.
            while count < limit
                && let Some((ts, log)) = shard.front()
                && *ts <= oldest
            {
                memory.remove(RecordKind::Log, bytes(log));
                count += log.len();
                taken.extend(shard.pop_front().map(|(_, log)| log));
            }
        }
        self.writes.fetch_sub(count, Ordering::Relaxed);
        taken
    }

    /// How many writes are waiting.
    pub(crate) fn len(&self) -> usize {
        self.writes.load(Ordering::Relaxed)
    }

    pub(crate) fn bytes(&self) -> usize {
        let shard = |shard: &Mutex<Logs>| shard.lock().iter().map(|(_, log)| bytes(log)).sum::<usize>();
        self.shards.iter().map(shard).sum()
    }
}

/// What is to be done in one tablet.
#[derive(Debug, Default)]
pub(crate) struct Tasks {
    /// Cells with versions that nobody reads.
    pub(crate) cells: Vec<(ElementRef, KeyId)>,
    /// Elements that ended, or never began.
    pub(crate) elements: Vec<ElementRef>,
    /// Pages (of vertices: true) with versions that are settled by now.
    pub(crate) pages: BTreeSet<(bool, u32)>,
}

impl Tasks {
    /// How many tasks are waiting.
    pub(crate) fn len(&self) -> usize {
        self.cells.len() + self.elements.len() + self.pages.len()
    }
}

/// What was reclaimed since the store was made.
#[derive(Debug, Default)]
pub(crate) struct Reclaimed {
    pub(crate) versions: AtomicU64,
    pub(crate) values: AtomicU64,
    pub(crate) vertices: AtomicU64,
    pub(crate) edges: AtomicU64,
    pub(crate) cells: AtomicU64,
    pub(crate) tables: AtomicU64,
    pub(crate) pages: AtomicU64,
}

/// What waits to be reclaimed, and what was, since the store was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct GarbageReport {
    /// Writes of commits that a running snapshot may look behind.
    pub queued_writes: u64,
    /// Tasks that are ready.
    pub tasks: u64,
    /// Things unlinked that wait for readers to leave.
    pub in_limbo: u64,
    /// Older versions of properties reclaimed.
    pub versions: u64,
    /// Records of the value region reclaimed.
    pub values: u64,
    /// Places of vertices reclaimed.
    pub vertices: u64,
    /// Places of edges reclaimed.
    pub edges: u64,
    /// Cells of adjacency lists dropped.
    pub cells: u64,
    /// Adjacency tables compacted.
    pub tables: u64,
    /// Pages that lost their version words.
    pub pages: u64,
}
