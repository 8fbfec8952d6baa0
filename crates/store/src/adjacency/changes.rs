//! The changes of an adjacency table since it was last compacted, and the limit at which it is due again.
//!
//! Writers count changes without a lock. The writer whose change makes the table due lists it for the collector, once.
//! The limit is set so that compaction costs every change of a weight about the same.

use std::sync::atomic::Ordering;

use mangrove_reclaim::sync::{AtomicBool, AtomicU32};

/// A change that a compaction clears away, with its weight in halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Change {
    /// An edge of a list ended. It leaves its cell, and a run whose edges readers have to check.
    Ended = 1,
    /// A cell was appended to a list. It leaves a header and a row, eight times as much memory.
    Appended = 2,
}

/// The weight of the changes since the last compaction, and the limit at which the table is due.
#[derive(Debug)]
pub(crate) struct Changes {
    /// The weight of the changes since the last compaction, in halves.
    count: AtomicU32,
    /// The weight that makes the table due.
    limit: AtomicU32,
    /// The limit is never below this.
    limit_min: u16,
    /// The value of `count` when a collector last walked over the table.
    seen: AtomicU32,
    /// True while the table is in its tablet's list of tables to be compacted.
    is_listed: AtomicBool,
}

impl Changes {
    /// The weight of an appended cell, or of a list that could not be made clean.
    const ONE: u32 = Change::Appended as u32;
    /// Rewriting this many cells costs about as much as making one list of a tail.
    const CELLS_A_CHANGE: usize = 16;

    /// No changes yet, for a table that is due after `changes_min` or more.
    pub(super) fn new(changes_min: u16) -> Self {
        let count = || AtomicU32::new(0);
        let limit_min = changes_min * Self::ONE as u16;
        let limit = AtomicU32::new(limit_min.into());
        Changes { count: count(), limit, limit_min, seen: count(), is_listed: AtomicBool::new(false) }
    }

    /// Counts a change. Returns true to one caller when the table has become due: that caller lists the table
    /// (STORE-31).
    pub(super) fn add(&self, change: Change) -> bool {
        // SeqCst, here, in `weight` and on the tablet's flag. The change is counted before the flag is looked at. A
        // collector takes the flag away before it looks at the count.
        let count = self.count.fetch_add(change as u32, Ordering::SeqCst) + change as u32;
        count >= self.limit.load(Ordering::Relaxed) && self.enlist()
    }

    /// The weight of the changes.
    pub(crate) fn weight(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Returns true if the table is due, however busy it is.
    pub(crate) fn is_due(&self) -> bool {
        self.weight() >= self.limit.load(Ordering::Relaxed)
    }

    /// Sets the count to zero.
    pub(crate) fn restart(&self) {
        self.count.store(0, Ordering::SeqCst);
    }

    /// Sets the limit for a table with this many lists and cells.
    pub(crate) fn set_limit(&self, lists: usize, cells: usize) {
        let changes = u32::try_from((cells / Self::CELLS_A_CHANGE).max(lists)).unwrap_or(u32::MAX);
        self.limit.store(changes.saturating_mul(Self::ONE).max(self.limit_min.into()), Ordering::Relaxed);
    }

    /// Sets the first limit of the `nth` of many tables that are loaded together: a part of the limit of a table with
    /// this many lists and cells. The parts differ from table to table. With the same limit, a writer that changes all
    /// tables alike would make all of them due at the same moment, again and again.
    pub(crate) fn set_first_limit(&self, nth: usize, lists: usize, cells: usize) {
        self.set_limit(lists, cells);
        let limit = self.limit.load(Ordering::Relaxed);
        // Numbers one after another become fractions of 2^32 that are spread evenly, however many there are.
        let part = (u64::from(limit) * u64::from((nth as u32).reverse_bits())) >> u32::BITS;
        self.limit.store((part as u32).max(self.limit_min.into()), Ordering::Relaxed);
    }

    /// Adds lists that a compaction could not make clean.
    pub(crate) fn keep(&self, left: u32) {
        self.count.fetch_add(left * Self::ONE, Ordering::SeqCst);
    }

    /// Returns true if the changes, counted as appended cells, reach this part of the number of lists.
    pub(crate) fn is_part_of(&self, lists: usize, percent: u64) -> bool {
        let weight = u64::from(self.weight());
        weight > 0 && weight * 100 >= percent * lists as u64 * u64::from(Self::ONE)
    }

    /// Returns true if nothing has changed since the last call.
    pub(crate) fn is_quiet(&self) -> bool {
        let count = self.weight();
        self.seen.swap(count, Ordering::Relaxed) == count
    }

    /// Returns true if the caller is the one that must list the table. Relaxed: the list has a lock.
    pub(crate) fn enlist(&self) -> bool {
        !self.is_listed.load(Ordering::Relaxed) && !self.is_listed.swap(true, Ordering::Relaxed)
    }

    /// Notes that the table left the list.
    pub(crate) fn delist(&self) {
        self.is_listed.store(false, Ordering::Relaxed);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn tables_that_are_loaded_together_become_due_one_after_another() {
        let due_after = |nth: usize, lists: usize| {
            let changes = Changes::new(100);
            changes.set_first_limit(nth, lists, 16 * lists);
            (1..).find(|_| changes.add(Change::Appended)).expect("it becomes due")
        };
        let mut all: Vec<usize> = (0..64).map(|nth| due_after(nth, 6_400)).collect();
        all.sort_unstable();
        assert!(all.windows(2).all(|two| two[1] - two[0] <= 100), "{all:?}");
        assert!(all[0] >= 100 && all[63] <= 6_400 && all[63] >= 6_300, "{all:?}");
        assert_eq!((0..64).map(|nth| due_after(nth, 50)).max(), Some(100), "no table is due earlier than a small one");
    }
}
