//! The running transactions, by their begin timestamps.
//!
//! A transaction claims a slot *before* it reads the watermark, with the watermark it saw earlier as a lower
//! bound, and puts its begin timestamp there afterwards. So [`ActiveSnapshots::oldest`], which reads the
//! watermark first and the slots second, is never above the begin of any transaction, running or about to:
//! what no snapshot at or above it sees may be collected.
//!
//! A slot also names its transaction's number, 0 while that is not known: so [`ActiveSnapshots::oldest_number`] says
//! which transactions may still be running, whatever they read at.
//!
//! Slots are claimed by compare-and-swap, from a start that differs by transaction; the table doubles when it
//! is full.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use crossbeam_utils::CachePadded;

use crate::watermark::Watermark;

const FIRST_SLOTS: usize = 64;
const LEVELS: usize = 20;
const PROBES: usize = 8;

/// One transaction's entry.
#[derive(Debug, Default)]
struct Slot {
    /// 0 when free, else the begin timestamp + 1.
    begin: AtomicU64,
    /// The transaction's number; 0 when free, and for a moment at the beginning.
    number: AtomicU64,
}

type Slots = Box<[CachePadded<Slot>]>;

/// See the module.
#[derive(Debug)]
pub(crate) struct ActiveSnapshots {
    /// Level `k` has `FIRST_SLOTS << k` slots.
    levels: [OnceLock<Slots>; LEVELS],
    level_count: AtomicUsize,
}

/// A slot of the table; freed with [`ActiveSnapshots::release`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotId {
    level: usize,
    at: usize,
}

impl ActiveSnapshots {
    pub(crate) fn new() -> Self {
        ActiveSnapshots { levels: [const { OnceLock::new() }; LEVELS], level_count: AtomicUsize::new(1) }
    }

    fn level(&self, level: usize) -> &Slots {
        self.levels[level].get_or_init(|| (0..FIRST_SLOTS << level).map(|_| CachePadded::default()).collect())
    }

    /// Registers a transaction by its number, which also spreads transactions over slots, and returns its begin
    /// timestamp.
    pub(crate) fn register(&self, number: u64, watermark: &Watermark) -> (SlotId, u64) {
        let lower_bound = watermark.stable();
        let id = self.claim(number as usize, lower_bound + 1);
        self.slot(id).number.store(number, Ordering::Release);
        let begin_ts = watermark.stable();
        if begin_ts != lower_bound {
            self.slot(id).begin.store(begin_ts + 1, Ordering::SeqCst);
        }
        (id, begin_ts)
    }

    fn claim(&self, hint: usize, word: u64) -> SlotId {
        loop {
            let count = self.level_count.load(Ordering::Acquire);
            for level in 0..count {
                let slots = self.level(level);
                let probes = if level + 1 == count { slots.len() } else { PROBES };
                for at in (0..probes).map(|i| (hint + i) % slots.len()) {
                    // SeqCst: published before the watermark is read again.
                    let begin = &slots[at].begin;
                    if begin.load(Ordering::Relaxed) == 0
                        && begin.compare_exchange(0, word, Ordering::SeqCst, Ordering::Relaxed).is_ok()
                    {
                        return SlotId { level, at };
                    }
                }
            }
            if count < LEVELS {
                // Losing the race means that another thread added a level.
                let _ = self.level_count.compare_exchange(count, count + 1, Ordering::AcqRel, Ordering::Acquire);
            } else {
                std::thread::yield_now();
            }
        }
    }

    fn slot(&self, id: SlotId) -> &Slot {
        &self.level(id.level)[id.at]
    }

    /// Says that the transaction in the slot reads no more.
    pub(crate) fn release(&self, id: SlotId) {
        let slot = self.slot(id);
        // The number first: the slot's next owner is never mistaken for this one.
        slot.number.store(0, Ordering::Release);
        slot.begin.store(0, Ordering::SeqCst);
    }

    fn slots(&self) -> impl Iterator<Item = &Slot> {
        let levels = self.level_count.load(Ordering::SeqCst);
        (0..levels).filter_map(|level| self.levels[level].get()).flat_map(|slots| slots.iter().map(|slot| &**slot))
    }

    fn running(&self) -> impl Iterator<Item = u64> {
        self.slots().filter_map(|slot| slot.begin.load(Ordering::SeqCst).checked_sub(1))
    }

    /// No running transaction has a number below this; `next` is the number of the next one to begin.
    pub(crate) fn oldest_number(&self, next: u64) -> u64 {
        let busy = self.slots().filter(|slot| slot.begin.load(Ordering::SeqCst) != 0);
        busy.map(|slot| slot.number.load(Ordering::Acquire)).fold(next, u64::min)
    }

    /// How many transactions are running.
    pub(crate) fn count(&self) -> usize {
        self.running().count()
    }

    /// No running or future transaction has a begin timestamp below this.
    pub(crate) fn oldest(&self, watermark: &Watermark) -> u64 {
        let stable = watermark.stable();
        self.running().fold(stable, u64::min)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_grows_and_slots_come_back() {
        let (snapshots, watermark) = (ActiveSnapshots::new(), Watermark::new());
        let ids: Vec<SlotId> = (0..1_000).map(|n| snapshots.register(n, &watermark).0).collect();
        assert_eq!(snapshots.count(), 1_000);
        ids.into_iter().for_each(|id| snapshots.release(id));
        assert_eq!(snapshots.count(), 0);
    }

    #[test]
    fn the_oldest_snapshot_holds_the_bound() {
        let (snapshots, watermark) = (ActiveSnapshots::new(), Watermark::new());
        drop(watermark.draw());
        let (old, begin) = snapshots.register(0, &watermark);
        drop(watermark.draw());
        let (new, later) = snapshots.register(0, &watermark);
        assert_eq!((begin, later, snapshots.oldest(&watermark)), (1, 2, 1));
        snapshots.release(old);
        assert_eq!(snapshots.oldest(&watermark), 2);
        snapshots.release(new);
    }
}
