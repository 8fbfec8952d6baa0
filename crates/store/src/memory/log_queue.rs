//! What is known to be garbage, or will be: the way from a finished transaction to the work that it leaves.
//!
//! Nothing scans the graph for garbage. A commit hands over its log, which names every version it replaced and every
//! element it ended. Its thread keeps it in a shard and works it off itself, a batch at a time, once every snapshot
//! has passed it: the lines that the commits wrote are in its cache still.
//!
//! ```text
//! Store::retire ──▶ shard of the thread, by commit timestamp ──▶ (oldest snapshot has passed it) ──▶ Store::sweep
//! Store::retire_aborted ──▶ limbo (readers of the rollback) ──▶ whoever empties limbo
//! ```
//!
//! What takes longer, or needs a tablet to itself, becomes one of the tablet's [`Tasks`] for a collector: vertices to
//! be taken apart, pages to be frozen, adjacency tables to be compacted. `reclaim` does the work.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicUsize, Mutex, thread_local};

use crate::memory::{Memory, RecordKind, Write};

/// Committers that finish at the same time rarely meet in one of these.
const SHARDS: usize = 8;
/// A log of more writes than this is kept as it came; smaller ones are copied together.
const SMALL_MAX: usize = 256;
/// A shard may have so many writes more or fewer than it has told everybody.
const UNTOLD_MAX: usize = 256;
/// So many writes in all shards are more than threads leave that clear up behind themselves.
pub(crate) const BEHIND_WRITES: usize = 1 << 13;
/// Writes in a shard that are worth a sweep by its thread: as many as leave its cache to the transactions.
const SWEEP_WRITES: usize = 256;
/// A sweep takes no more than this, though more may wait since an old snapshot has gone: twice what comes in meanwhile.
const SWEEP_WRITES_MAX: usize = 2 * SWEEP_WRITES;

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
    /// How many writes `Queue::waiting` counts here.
    told: usize,
    /// The thread sweeps when `writes` is as long as this.
    sweep_at: usize,
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
        let (before, len) = (self.ring_bytes(), self.writes.len());
        self.writes.extend(log.iter().filter(|write| leaves_garbage(write)));
        self.commits.push_back((ts, (self.writes.len() - len) as u32));
        self.account(before, memory);
    }

    /// Tells everybody about `here` writes, where that differs enough from what was told.
    fn tell(&mut self, here: usize, waiting: &AtomicUsize) {
        if here.abs_diff(self.told) >= UNTOLD_MAX || (here == 0 && self.told > 0) {
            // It wraps around to a subtraction, and never below zero: every shard takes back only what it has told.
            waiting.fetch_add(here.wrapping_sub(self.told), Ordering::Relaxed);
            self.told = here;
        }
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

/// A new element leaves nothing behind. (Its page notes that it has come: `ending`.)
fn leaves_garbage(write: &Write) -> bool {
    !matches!(write, Write::Begin(_))
}

fn large_bytes(log: &[Write]) -> usize {
    size_of_val(log) + size_of::<(u64, Vec<Write>)>()
}

/// What is to be done after a commit has handed over its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backlog {
    /// Nothing yet.
    Small,
    /// The thread should clear up behind itself: [`crate::Store::sweep`].
    Sweep,
    /// So much at once that it is a collector's work.
    Large,
}

/// Logs of commits that some snapshot may still look behind.
#[derive(Debug)]
pub(crate) struct Queue {
    shards: [CachePadded<Mutex<Shard, rank::FinishedLogs>>; SHARDS],
    /// About how many writes are waiting.
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
    fn own_shard(&self) -> &Mutex<Shard, rank::FinishedLogs> {
        let number = SHARD.try_with(|shard| {
            if shard.get() == usize::MAX {
                shard.set(self.next_shard.fetch_add(1, Ordering::Relaxed));
            }
            shard.get()
        });
        // A thread that is about to end has no number any more.
        &self.shards[number.unwrap_or(0) % SHARDS]
    }

    /// Takes over the log of a commit.
    pub(crate) fn push(&self, ts: u64, mut log: Vec<Write>, memory: &Memory) -> Backlog {
        if !log.iter().any(leaves_garbage) {
            return Backlog::Small;
        }
        let mut shard = self.own_shard().lock();
        let is_small = log.len() <= SMALL_MAX;
        if is_small {
            shard.push_small(ts, &log, memory);
        } else {
            log.retain(leaves_garbage);
            log.shrink_to_fit();
            memory.add(RecordKind::Log, large_bytes(&log));
            shard.large.push_back((ts, log));
        }
        let here = if shard.large.is_empty() { shard.writes.len() } else { shard.len() };
        shard.tell(here, &self.waiting);
        if !is_small {
            Backlog::Large
        } else if shard.writes.len() >= shard.sweep_at.max(SWEEP_WRITES) {
            Backlog::Sweep
        } else {
            Backlog::Small
        }
    }

    /// Takes what small logs the calling thread has handed over and every snapshot sees by now: enough for a sweep.
    pub(crate) fn take_own(&self, oldest: u64, memory: &Memory) -> Vec<Write> {
        let mut shard = self.own_shard().lock();
        let mut taken = Vec::new();
        shard.take_small(oldest, SWEEP_WRITES_MAX, &mut taken, memory);
        // What is too young is not looked at again after every commit.
        shard.sweep_at = if taken.len() < SWEEP_WRITES_MAX { shard.writes.len() + SWEEP_WRITES } else { SWEEP_WRITES };
        let here = shard.len();
        shard.tell(here, &self.waiting);
        taken
    }

    /// Takes logs whose commit every snapshot sees, of about `limit` writes: each shard's together. Small logs are left
    /// to the threads that they came from, unless `all` are wanted or those threads are behind.
    pub(crate) fn take(&self, oldest: u64, limit: usize, all: bool, memory: &Memory) -> Vec<Vec<Write>> {
        let (mut taken, mut count) = (Vec::new(), 0);
        let with_small = all || self.len_about() >= BEHIND_WRITES;
        for shard in &self.shards {
            if count >= limit {
                break;
            }
            let mut shard = shard.lock();
            let mut writes = Vec::new();
            // `limit - count` would release the buffers of the first shards only.
            let left = if limit == usize::MAX { limit } else { limit - count };
            if with_small {
                shard.take_small(oldest, left, &mut writes, memory);
            }
            count += writes.len();
            taken.push(writes);
            while count < limit
                && let Some((ts, log)) = shard.large.front()
                && *ts <= oldest
            {
                memory.remove(RecordKind::Log, large_bytes(log));
                count += log.len();
                taken.extend(shard.large.pop_front().map(|(_, log)| log));
            }
            let here = shard.len();
            shard.tell(here, &self.waiting);
        }
        taken
    }

    /// About how many writes are waiting.
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
