//! Logs of commits that wait for collection.
//!
//! No thread scans the graph for garbage. A commit hands over its log, which names every version that it replaced and
//! every element that it ended. The committer's thread keeps the log in a shard. When every snapshot has passed the
//! commit, the same thread works the log off, many writes at a time, while the cache lines are still in its cache. That
//! is a *sweep*.
//!
//! ```text
//! Store::retire ──▶ shard of the thread, by commit timestamp ──▶ (oldest snapshot has passed it) ──▶ Store::sweep
//! Store::retire_aborted ──▶ limbo (readers of the rollback) ──▶ the thread that empties the limbo
//! ```
//!
//! Work that takes longer, or needs the tablet's turn, becomes a task of the tablet ([`Tasks`](crate::page::Tasks)) for
//! a collector: taking vertices apart, freezing pages, compacting adjacency tables. `garbage` does the work. This file
//! only keeps the logs. It gives out a log once, and not before the oldest snapshot is at or above the log's commit.

use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicUsize, Mutex, thread_local};

use crate::memory::{Memory, RecordKind, Write};

/// The number of shards. Committers that finish at the same time rarely meet in one.
pub(crate) const SHARDS: usize = 8;
/// The most writes of a small log. Small logs are copied into one ring; larger ones are kept as they came.
const SMALL_MAX: usize = 256;
/// The number of writes of a shard may differ from the reported number by less than this.
const UNREPORTED_MAX: usize = 256;
/// From this backlog in all shards on, committers do not keep up with their own garbage, so a collector helps.
pub(crate) const BEHIND_WRITES: usize = 1 << 13;
/// Writes in a shard that are worth a sweep by its thread. While so many come in, what they have touched stays in the core's own caches.
const SWEEP_WRITES: usize = 64;
/// The most writes that a sweep takes: twice as many as come in between two sweeps. More may wait after an old snapshot
/// has ended.
const SWEEP_WRITES_MAX: usize = 2 * SWEEP_WRITES;

thread_local! {
    /// The shard that this thread uses in every queue. Drawn when it is first needed.
    #[allow(clippy::missing_const_for_thread_local, reason = "the model checker's macro takes no const block")]
    static SHARD: Cell<usize> = Cell::new(usize::MAX);
}

/// The logs of one shard. Small and large ones are each nearly in the order of timestamps.
#[derive(Debug, Default)]
struct LogShard {
    /// Timestamp and length of each small log. Their writes are in `writes`, log after log.
    commits: VecDeque<(u64, u32)>,
    writes: VecDeque<Write>,
    /// Timestamp and writes of each large log.
    large: VecDeque<(u64, Vec<Write>)>,
    /// The number of writes of this shard that `LogQueue::waiting` counts.
    reported: usize,
    /// The thread sweeps when `writes` is as long as this.
    sweep_at: usize,
}

impl LogShard {
    /// The bytes of the small logs.
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

    /// Reports that there are `here` writes, if that differs enough from the last report.
    fn report(&mut self, here: usize, waiting: &AtomicUsize) {
        if here.abs_diff(self.reported) >= UNREPORTED_MAX || (here == 0 && self.reported > 0) {
            // The difference may wrap to a subtraction. The sum does not fall below zero, since a shard takes back only
            // what it has reported.
            waiting.fetch_add(here.wrapping_sub(self.reported), Ordering::Relaxed);
            self.reported = here;
        }
    }

    /// Counts a change of the ring's memory.
    fn account(&self, before: usize, memory: &Memory) {
        let after = self.ring_bytes();
        if after != before {
            memory.resize(RecordKind::Log, before, after);
        }
    }

    /// Takes small logs of commits up to `oldest`, until they have `limit` writes or more.
    fn take_small(&mut self, oldest: u64, limit: usize, taken: &mut Vec<Write>, memory: &Memory) {
        let mut count = 0;
        // A log that comes after one of a later commit waits for the next time.
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

/// Returns true if a committed write leaves garbage. A new element leaves none.
fn leaves_garbage(write: &Write) -> bool {
    !matches!(write, Write::Begin(_))
}

fn large_bytes(log: &[Write]) -> usize {
    size_of_val(log) + size_of::<(u64, Vec<Write>)>()
}

/// The work that waits after a commit has handed over its log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Backlog {
    /// Too little to do anything now.
    Small,
    /// Enough for the committer's thread to call [`crate::Store::sweep`].
    Sweep,
    /// A log so large that a collector should work it off.
    Large,
}

/// Logs of commits whose older versions some snapshot may still see.
#[derive(Debug)]
pub(crate) struct LogQueue {
    shards: [CachePadded<Mutex<LogShard, rank::FinishedLogs>>; SHARDS],
    /// The approximate number of writes that wait.
    waiting: CachePadded<AtomicUsize>,
    next_shard: AtomicUsize,
}

impl LogQueue {
    pub(crate) fn new() -> Self {
        LogQueue {
            shards: std::array::from_fn(|_| CachePadded::default()),
            waiting: CachePadded::new(AtomicUsize::new(0)),
            next_shard: AtomicUsize::new(0),
        }
    }

    /// The number of the shard of the calling thread. A thread keeps to one shard, so that its cache lines stay with one core.
    pub(crate) fn own_shard_number(&self) -> usize {
        let number = SHARD.try_with(|shard| {
            if shard.get() == usize::MAX {
                shard.set(self.next_shard.fetch_add(1, Ordering::Relaxed));
            }
            shard.get()
        });
        // A thread that is about to end has lost its number.
        number.unwrap_or(0) % SHARDS
    }

    fn own_shard(&self) -> &Mutex<LogShard, rank::FinishedLogs> {
        &self.shards[self.own_shard_number()]
    }

    /// Takes over the log of a commit at `ts`.
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
        shard.report(here, &self.waiting);
        if !is_small {
            Backlog::Large
        } else if shard.writes.len() >= shard.sweep_at.max(SWEEP_WRITES) {
            Backlog::Sweep
        } else {
            Backlog::Small
        }
    }

    /// Takes small logs for a sweep: those that the calling thread has handed over, and whose commits every snapshot
    /// sees.
    pub(crate) fn take_own(&self, oldest: u64, memory: &Memory) -> Vec<Write> {
        let mut shard = self.own_shard().lock();
        let mut taken = Vec::new();
        shard.take_small(oldest, SWEEP_WRITES_MAX, &mut taken, memory);
        // So the thread does not look again after every commit at logs that some snapshot does not see yet.
        shard.sweep_at = if taken.len() < SWEEP_WRITES_MAX { shard.writes.len() + SWEEP_WRITES } else { SWEEP_WRITES };
        let here = shard.len();
        shard.report(here, &self.waiting);
        taken
    }

    /// Takes logs whose commits every snapshot sees, until they have `limit` writes or more. The small logs of a shard
    /// come as one list. Small logs are left to the threads that they came from, unless `all` are wanted or the backlog
    /// has reached [`BEHIND_WRITES`].
    pub(crate) fn take(&self, oldest: u64, limit: usize, all: bool, memory: &Memory) -> Vec<Vec<Write>> {
        let (mut taken, mut count) = (Vec::new(), 0);
        let with_small = all || self.len_about() >= BEHIND_WRITES;
        for shard in &self.shards {
            if count >= limit {
                break;
            }
            let mut shard = shard.lock();
            let mut writes = Vec::new();
            // An unlimited take also frees the buffers of the shards, which `take_small` recognizes by the limit.
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
            shard.report(here, &self.waiting);
        }
        taken
    }

    /// The approximate number of writes that wait. Takes no lock.
    pub(crate) fn len_about(&self) -> usize {
        self.waiting.load(Ordering::Relaxed)
    }

    /// The number of writes that wait.
    pub(crate) fn len(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().len()).sum()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.shards.iter().map(|shard| shard.lock().bytes()).sum()
    }
}
