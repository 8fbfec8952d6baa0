//! The rounds of garbage collection, and the division of the work between committers and workers.
//!
//! The store finds garbage and reclaims it (`mangrove_store`). This module decides when, and `workers` has the threads.
//!
//! | thread | when | work |
//! |---|---|---|
//! | committers | every few dozen writes | the garbage of their own commits, in steps of some ten microseconds |
//! | workers | woken by committers; on their own now and then | compaction, deleted vertices, pages to freeze, the garbage of huge transactions, idle threads, old snapshots; steps of statistics |
//! | callers of `collect_garbage` and `compact` | on request | everything, on their own thread |
//!
//! A committer pays for what it writes, no garbage passes between cores, and no backlog builds up that a collector
//! could not work off. With the setting `garbage_collection` off, the logs of commits stay in the queue, count against
//! the memory limit, and are worked off when it is switched on again. With `gc_workers` 0, only
//! [`crate::TransactionManager::collect_garbage`] collects.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_failpoint::{Point, reach};
use mangrove_graph::ElementId;
use mangrove_store::{Backlog, Effort, RunningTransactions, Write};

use crate::shared::Shared;
use crate::workers::{Rounds, Workers};

/// Writes in the queue above which workers do not rest: commits outrun them.
const HURRY_WRITES: usize = 1 << 16;
/// Writes that one round takes from the queue.
const ROUND_WRITES: usize = 1 << 10;
/// If a woken worker found less than this to do in a round, it stops.
const ROUND_WORTH: usize = 256;
/// Passes of an explicit collection. Each takes all there is, and what it takes apart is free a few passes later. More
/// passes would only follow transactions that go on meanwhile.
const PASSES_MAX: usize = 64;
/// How long [`Shared::collect_all`] waits for readers: so many yields, then so many sleeps.
const PATIENCE_YIELDS: usize = 64;
const PATIENCE_SLEEPS: usize = 1_000;
const PATIENCE_SLEEP: Duration = Duration::from_millis(1);

impl RunningTransactions for Shared {
    fn oldest_snapshot(&self) -> u64 {
        self.status.oldest(&self.recent)
    }

    fn oldest_transaction(&self) -> u64 {
        // The next ordinal first: a transaction with a smaller one has claimed its entry before, and is found there.
        let next = self.next_transaction();
        self.status.oldest_ordinal(next)
    }

    fn next_transaction(&self) -> u64 {
        self.status.next_ordinal()
    }
}

impl Shared {
    /// Hands the log of an installed commit to the collector.
    pub(crate) fn hand_over(self: &Arc<Self>, log: Vec<Write>, timestamp: u64) {
        let backlog = self.store.retire(log, timestamp);
        if backlog == Backlog::Small || !self.settings.garbage_collection.load(Ordering::Relaxed) {
            return;
        }
        // With no workers, only explicit calls collect.
        if backlog == Backlog::Sweep && self.settings.gc_workers.load(Ordering::Relaxed) > 0 {
            self.store.sweep(self.oldest_snapshot());
        }
        if backlog == Backlog::Large || self.store.is_collector_wanted() || !self.workers.are_started() {
            self.workers.wake(self);
        }
    }

    /// Collects everything that can be collected. With `compact`, also packs everything that can be packed.
    pub(crate) fn collect_all(&self, compact: bool) {
        let _alone = self.workers.pause_rounds();
        // Its snapshot would keep versions from being collected.
        self.give_up_statistics();
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

    /// Collects what holds the slots of these elements, which have ended. Returns how much it collected.
    pub(crate) fn collect_slots(&self, elements: &[ElementId]) -> usize {
        // Its snapshot would keep versions from being collected.
        self.give_up_statistics();
        self.expire_old();
        let edges = elements.iter().filter_map(|element| match element {
            ElementId::Edge(id) => Some(*id),
            ElementId::Vertex(_) => None,
        });
        // Ended edges are taken apart first, so that compaction drops their cells.
        self.store.collect(self, usize::MAX, true) + self.store.compact_lists_of(self, edges)
    }

    /// Works one round on the calling thread. Returns true if another one is worth it.
    pub(crate) fn collect_some(&self, all: bool) -> bool {
        let _round = self.workers.round();
        self.expire_old();
        // During a pass, rounds follow one another so fast that writers have no time to write between two of them.
        // Compaction would take every page for one that writers have left alone.
        let all = all && !self.statistics.is_running();
        let is_garbage_left = if all {
            let collected = self.store.collect(self, ROUND_WRITES, true);
            reach(Point::Compaction);
            collected + self.store.compact(self, Effort::Worthwhile) > 0
        } else {
            let collected = self.store.collect(self, ROUND_WRITES, false);
            reach(Point::Compaction);
            collected + self.store.compact(self, Effort::Due) >= ROUND_WORTH
        };
        self.work_on_statistics() || is_garbage_left
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

    fn committed(&self) -> u64 {
        self.recent.stable()
    }

    fn work(&self, all: bool) -> bool {
        self.collect_some(all)
    }
}
