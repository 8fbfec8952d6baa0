//! How much of a table has changed: what makes it due for compaction.

use std::sync::atomic::Ordering;

use crate::sync::{AtomicBool, AtomicU32};

/// Something that a compaction clears away, by its weight in halves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u32)]
pub(crate) enum Change {
    /// An edge of a list ended. It leaves its cell, and a run whose edges readers have to ask.
    Ended = 1,
    /// A cell was appended to a list. It leaves a header and a row, eight times as much memory.
    Appended = 2,
}

/// Counts what a compaction of a table would clear away: cells that were appended, and ends of edges.
#[derive(Debug)]
pub(crate) struct Changes {
    /// The weight of those since the last compaction.
    count: AtomicU32,
    /// So much makes the table due: compaction then costs every change of a weight about the same.
    limit: AtomicU32,
    /// The limit is never below this.
    limit_min: u16,
    /// As `count` was when a collector last walked by.
    seen: AtomicU32,
    /// Whether the table is in its tablet's list of those that a collector is to compact.
    is_listed: AtomicBool,
}

impl Changes {
    /// The weight of an appended cell, or of a list that could not be made clean.
    const ONE: u32 = Change::Appended as u32;
    /// Rewriting so many cells costs about as much as making one list of a tail again.
    const CELLS_A_CHANGE: usize = 16;

    /// None so far, of a table that is due after `changes_min` at least.
    pub(super) fn new(changes_min: u16) -> Self {
        let count = || AtomicU32::new(0);
        let limit_min = changes_min * Self::ONE as u16;
        let limit = AtomicU32::new(limit_min.into());
        Changes { count: count(), limit, limit_min, seen: count(), is_listed: AtomicBool::new(false) }
    }

    /// Counts one more. True for one caller, when the table has become due: it lists the table.
    pub(super) fn add(&self, change: Change) -> bool {
        // SeqCst, here, in `count` and on the tablet's flag: counted before the flag is looked at; whoever takes the
        // flag away looks at the count after it.
        let count = self.count.fetch_add(change as u32, Ordering::SeqCst) + change as u32;
        count >= self.limit.load(Ordering::Relaxed) && self.enlist()
    }

    /// The weight of those there were.
    pub(crate) fn weight(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether it is time to compact, however busy the table is.
    pub(crate) fn is_due(&self) -> bool {
        self.weight() >= self.limit.load(Ordering::Relaxed)
    }

    /// Counts anew.
    pub(crate) fn restart(&self) {
        self.count.store(0, Ordering::SeqCst);
    }

    /// Says how many changes make the table due, which has so many lists and cells.
    pub(crate) fn set_limit(&self, lists: usize, cells: usize) {
        let changes = u32::try_from((cells / Self::CELLS_A_CHANGE).max(lists)).unwrap_or(u32::MAX);
        self.limit.store(changes.saturating_mul(Self::ONE).max(self.limit_min.into()), Ordering::Relaxed);
    }

    /// How many ends of edges make the table due.
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed) as usize
    }

    /// Adds lists that a compaction could not make clean.
    pub(crate) fn keep(&self, left: u32) {
        self.count.fetch_add(left * Self::ONE, Ordering::SeqCst);
    }

    /// Whether there were as many, counted as appended cells, as this part of so many lists.
    pub(crate) fn is_part_of(&self, lists: usize, percent: u64) -> bool {
        let weight = u64::from(self.weight());
        weight > 0 && weight * 100 >= percent * lists as u64 * u64::from(Self::ONE)
    }

    /// Whether there were none since the last call.
    pub(crate) fn is_quiet(&self) -> bool {
        let count = self.weight();
        self.seen.swap(count, Ordering::Relaxed) == count
    }

    /// Whether it is the caller's turn to list the table. Relaxed: the list has a lock.
    pub(crate) fn enlist(&self) -> bool {
        !self.is_listed.load(Ordering::Relaxed) && !self.is_listed.swap(true, Ordering::Relaxed)
    }

    /// Says that the table is in the list no more.
    pub(crate) fn delist(&self) {
        self.is_listed.store(false, Ordering::Relaxed);
    }
}
