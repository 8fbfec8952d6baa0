//! Who collects garbage, and when.
//!
//! The store knows what is garbage and how it is reclaimed; this part lends it threads.
//!
//! - *Committers* clear up behind themselves: every few hundred writes a thread works off what its own commits have left
//!   meanwhile, some ten microseconds in one go. It pays for what it writes, nothing is passed between cores, and what a
//!   collector could fall behind with does not pile up.
//! - *Workers* do what needs longer: compaction, vertices to be taken apart, pages to be settled, and the leavings of
//!   huge transactions, of threads that rest, and of snapshots that were old. A worker is started when there is
//!   something for it, and stays: it is woken by committers that find tasks waiting, and looks around on its own now
//!   and then for what trickled in. It works in short rounds and rests after each for as long as the round took, so
//!   that it never has more than half a core; only when commits outrun it does it work without rest. An idle database
//!   in which nothing was ever worth a worker has no thread, and keeps what each thread's last few hundred writes have
//!   left until it writes more.
//!
//! How many workers there are is a setting (`gc_workers`), as is whether anybody collects at all: with
//! `garbage_collection` off the logs of commits stay in the queue, are counted against the memory limit, and are worked
//! off when it is switched on again. With no workers, only [`crate::TransactionManager::collect_garbage`] collects.
//! Workers hold the graph weakly: they end with its last handle.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_failpoint::{Point, reach};
use mangrove_store::{Backlog, Effort, Horizon, Write};

use crate::shared::Shared;
use crate::workers::{Rounds, Workers};

/// Writes in the queue from which on workers do not rest.
const HURRY_WRITES: usize = 1 << 16;
/// Writes that one round takes from the queue.
const ROUND_WRITES: usize = 1 << 10;
/// A round of a worker that was woken, and that found less than this to do, was its last.
const ROUND_WORTH: usize = 256;
/// A pass takes all there is, and what it takes apart is free a few passes later: more of them only chase after
/// transactions that go on meanwhile.
const PASSES_MAX: usize = 64;
/// How long [`Shared::collect_all`] waits for readers: so many times it yields, then sleeps.
const PATIENCE_YIELDS: usize = 64;
const PATIENCE_SLEEPS: usize = 1_000;
const PATIENCE_SLEEP: Duration = Duration::from_millis(1);

impl RunningTransactions for Shared {
    fn oldest_snapshot(&self) -> u64 {
        self.status.oldest(&self.recent)
    }

    fn oldest_transaction(&self) -> u64 {
        // The next number first: a transaction with a smaller one has claimed its slot before, and is found there.
        let next = self.next_transaction();
        self.status.oldest_ordinal(next)
    }

    fn next_transaction(&self) -> u64 {
        self.status.next_ordinal()
    }
}

impl Shared {
    /// Hands the log of an installed commit over to the collector.
    pub(crate) fn hand_over(self: &Arc<Self>, log: Vec<Write>, timestamp: u64) {
        let backlog = self.store.retire(log, timestamp);
        if backlog == Backlog::Small || !self.settings.garbage_collection.load(Ordering::Relaxed) {
            return;
        }
        // Nobody collects behind the back of who asked for no workers.
        if backlog == Backlog::Sweep && self.settings.gc_workers.load(Ordering::Relaxed) > 0 {
            self.store.sweep(self.oldest_snapshot());
        }
        if backlog == Backlog::Large || self.store.is_collector_wanted() || !self.workers.are_started() {
            self.workers.wake(self);
        }
    }

    /// Collects everything that can be collected now; with `compact`, packs what can be packed too.
    pub(crate) fn collect_all(&self, compact: bool) {
        let _alone = self.workers.pause_rounds();
        let (mut passes, mut waits) = (PASSES_MAX, 0);
        while passes > 0 {
            let is_one_leaving = self.expire_old();
            let collected = self.store.collect(self, usize::MAX, true);
            reach(Point::Compaction);
            let compacted = if compact { self.store.compact(self, Effort::All) } else { 0 };
            if collected + compacted > 0 {
                passes -= 1;
                continue;
            }
            let is_nothing_held = self.store.garbage().in_limbo == 0 && !is_one_leaving;
            if is_nothing_held || waits == PATIENCE_YIELDS + PATIENCE_SLEEPS {
                return;
            }
            waits += 1;
            if waits <= PATIENCE_YIELDS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PATIENCE_SLEEP);
            }
        }
    }

    /// One round, on the calling thread; whether another one is worth it.
    pub(crate) fn collect_some(&self, all: bool) -> bool {
        let _round = self.workers.round();
        self.expire_old();
        if all {
            let collected = self.store.collect(self, ROUND_WRITES, true);
            reach(Point::Compaction);
            return collected + self.store.compact(self, Effort::Worthwhile) > 0;
        }
        let collected = self.store.collect(self, ROUND_WRITES, false);
        reach(Point::Compaction);
        collected + self.store.compact(self, Effort::Due) >= ROUND_WORTH
    }
}

impl Rounds for Shared {
    fn workers(&self) -> &Workers {
        &self.workers
    }

    fn workers_wanted(&self) -> usize {
        self.settings.gc_workers.load(Ordering::Relaxed)
    }

    fn is_enabled(&self) -> bool {
        self.settings.garbage_collection.load(Ordering::Relaxed)
    }

    fn is_in_hurry(&self) -> bool {
        self.store.garbage_waiting() >= HURRY_WRITES
    }

    fn work(&self, all: bool) -> bool {
        self.collect_some(all)
    }
}
