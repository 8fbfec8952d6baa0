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

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use mangrove_graph::{Direction, ElementRef, KeyId, LabelSetId};

use crate::memory::{Memory, RecordKind};
use crate::sync::{AtomicU64, AtomicUsize, Mutex, thread_local};
use crate::write::Write;

/// Committers that finish at the same time rarely meet in one of these.
const SHARDS: usize = 8;
/// A log of more writes than this is kept as it came; smaller ones are copied together.
const SMALL_MAX: usize = 256;
/// So many writes a shard keeps to itself before it counts them in for all.
const UNCOUNTED_MAX: usize = 64;

thread_local! {
    /// Which shard this thread uses, whatever the queue; drawn when it is first needed.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro takes no const block")]
    static SHARD: Cell<usize> = Cell::new(usize::MAX);
}

/// Logs of one shard, each kind nearly in the order of timestamps.
#[derive(Debug, Default)]
struct Shard {
    /// Timestamps and lengths of small logs, whose writes follow one another in `writes`.
    commits: VecDeque<(u64, u32)>,
    writes: VecDeque<Write>,
    large: VecDeque<(u64, Vec<Write>)>,
    /// Writes that `Queue::waiting` does not know of yet.
    uncounted: usize,
}

impl Shard {
    /// What the small logs take.
    fn ring_bytes(&self) -> usize {
        self.commits.capacity() * size_of::<(u64, u32)>() + self.writes.capacity() * size_of::<Write>()
    }

    fn bytes(&self) -> usize {
        self.ring_bytes() + self.large.iter().map(|(_, log)| large_bytes(log)).sum::<usize>()
    }

    fn len(&self) -> usize {
        self.writes.len() + self.large.iter().map(|(_, log)| log.len()).sum::<usize>()
    }

    fn push_small(&mut self, ts: u64, log: &[Write], memory: &Memory) {
        let before = self.ring_bytes();
        self.commits.push_back((ts, log.len() as u32));
        self.writes.extend(log);
        self.account(before, memory);
    }

    fn account(&self, before: usize, memory: &Memory) {
        let after = self.ring_bytes();
        if after != before {
            memory.resize(RecordKind::Log, before, after);
        }
    }

    /// Takes small logs up to a timestamp, of about `limit` writes.
    fn take_small(&mut self, oldest: u64, limit: usize, taken: &mut Vec<Write>, memory: &Memory) {
        let mut count = 0;
        // One that was overtaken by a later commit waits for the next time.
        while count < limit
            && let Some(&(ts, len)) = self.commits.front()
            && ts <= oldest
        {
            self.commits.pop_front();
            count += len as usize;
        }
        taken.extend(self.writes.drain(..count));
        if self.writes.is_empty() && limit == usize::MAX {
            let before = self.ring_bytes();
            (self.commits, self.writes) = Default::default();
            self.account(before, memory);
        }
    }
}

fn large_bytes(log: &[Write]) -> usize {
    size_of_val(log) + size_of::<(u64, Vec<Write>)>()
}

/// Logs of commits that some snapshot may still look behind.
#[derive(Debug)]
pub(crate) struct Queue {
    shards: [CachePadded<Mutex<Shard>>; SHARDS],
    /// How many writes are waiting, but for a few in each shard.
    waiting: CachePadded<AtomicUsize>,
    next_shard: AtomicUsize,
}

impl Queue {
    pub(crate) fn new() -> Self {
        Queue {
            shards: std::array::from_fn(|_| CachePadded::default()),
            waiting: CachePadded::new(AtomicUsize::new(0)),
            next_shard: AtomicUsize::new(0),
        }
    }

    /// A thread keeps to one shard, so that committers on several cores do not pass its lines to and fro.
    fn own_shard(&self) -> &Mutex<Shard> {
        let number = SHARD.try_with(|shard| {
            if shard.get() == usize::MAX {
                shard.set(self.next_shard.fetch_add(1, Ordering::Relaxed));
            }
            shard.get()
        });
        // A thread that is about to end has no number any more.
        &self.shards[number.unwrap_or(0) % SHARDS]
    }

    pub(crate) fn push(&self, ts: u64, mut log: Vec<Write>, memory: &Memory) {
        let count = log.len();
        let mut shard = self.own_shard().lock();
        if count <= SMALL_MAX {
            shard.push_small(ts, &log, memory);
        } else {
            log.shrink_to_fit();
            memory.add(RecordKind::Log, large_bytes(&log));
            shard.large.push_back((ts, log));
        }
        shard.uncounted += count;
        if shard.uncounted >= UNCOUNTED_MAX {
            self.waiting.fetch_add(std::mem::take(&mut shard.uncounted), Ordering::Relaxed);
        }
    }

    /// Takes logs whose commit every snapshot sees, of about `limit` writes: each shard's together.
    pub(crate) fn take(&self, oldest: u64, limit: usize, memory: &Memory) -> Vec<Vec<Write>> {
        let (mut taken, mut count) = (Vec::new(), 0);
        for shard in &self.shards {
            if count >= limit {
                break;
            }
            let mut shard = shard.lock();
            let uncounted = std::mem::take(&mut shard.uncounted);
            let mut writes = Vec::new();
            // `limit - count` would release the buffers of the first shards only.
            let left = if limit == usize::MAX { limit } else { limit - count };
            shard.take_small(oldest, left, &mut writes, memory);
            let mut here = writes.len();
            taken.push(writes);
            while count + here < limit
                && let Some((ts, log)) = shard.large.front()
                && *ts <= oldest
            {
                memory.remove(RecordKind::Log, large_bytes(log));
                here += log.len();
                taken.extend(shard.large.pop_front().map(|(_, log)| log));
            }
            // The sum first: the counter never falls below what is there.
            self.waiting.fetch_add(uncounted, Ordering::Relaxed);
            self.waiting.fetch_sub(here, Ordering::Relaxed);
            count += here;
        }
        taken
    }

    /// How many writes are waiting, but for a few of each thread.
    pub(crate) fn len_about(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// How many writes are waiting.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }
}

/// An adjacency table of a tablet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TableName {
    /// The page of its vertices.
    pub(crate) page: u32,
    pub(crate) direction: Direction,
    pub(crate) label: LabelSetId,
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
    /// Adjacency tables that have become due for compaction, each once.
    pub(crate) tables: Vec<TableName>,
    /// Tables with a layout that compaction has replaced, in the order in which the layouts may go: when no
    /// transaction with a smaller number is running.
    pub(crate) layouts: VecDeque<(u64, TableName)>,
}

impl Tasks {
    /// How many tasks are ready.
    pub(crate) fn len(&self) -> usize {
        self.cells.len() + self.elements.len() + self.pages.len() + self.tables.len()
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
