//! How much of a table has changed: what makes it due for compaction.

use std::sync::atomic::Ordering;

use crate::sync::{AtomicBool, AtomicU32};

/// Counts what a compaction of a table would clear away: cells that were appended, and ends of edges.
#[derive(Debug)]
pub(crate) struct Changes {
    /// Since the last compaction.
    count: AtomicU32,
    /// So many make the table due: compaction then costs every change about the same.
    limit: AtomicU32,
    /// As `count` was when a collector last walked by.
    seen: AtomicU32,
    /// Whether the table is in its tablet's list of those that a collector is to compact.
    is_listed: AtomicBool,
}

impl Changes {
    /// Fewer are not worth a block.
    const LIMIT_MIN: u32 = 128;
    /// Rewriting so many cells costs about as much as making one list of a tail again.
    const CELLS_A_CHANGE: usize = 16;

    pub(super) fn new() -> Self {
        let count = || AtomicU32::new(0);
        let limit = AtomicU32::new(Self::LIMIT_MIN);
        Changes { count: count(), limit, seen: count(), is_listed: AtomicBool::new(false) }
    }

    /// Counts one more. True for one caller, when the table has become due: it lists the table.
    pub(super) fn add(&self) -> bool {
        // SeqCst, here, in `count` and on the tablet's flag: counted before the flag is looked at; whoever takes the
        // flag away looks at the count after it.
        let count = self.count.fetch_add(1, Ordering::SeqCst) + 1;
        count >= self.limit.load(Ordering::Relaxed) && self.enlist()
    }

    /// How many there were.
    pub(crate) fn count(&self) -> u32 {
        self.count.load(Ordering::SeqCst)
    }

    /// Whether it is time to compact, however busy the table is.
    pub(crate) fn is_due(&self) -> bool {
        self.count() >= self.limit.load(Ordering::Relaxed)
    }

    /// Counts anew.
    pub(crate) fn restart(&self) {
        self.count.store(0, Ordering::SeqCst);
    }

    /// Says how many changes make the table due, which has so many lists and cells.
    pub(crate) fn set_limit(&self, lists: usize, cells: usize) {
        let limit = u32::try_from((cells / Self::CELLS_A_CHANGE).max(lists)).unwrap_or(u32::MAX);
        self.limit.store(limit.max(Self::LIMIT_MIN), Ordering::Relaxed);
    }

    /// How many changes make the table due.
    pub(super) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed) as usize
    }

    /// Adds lists that a compaction could not make clean.
    pub(crate) fn keep(&self, left: u32) {
        self.count.fetch_add(left, Ordering::SeqCst);
    }

    /// Whether there were none since the last call.
    pub(crate) fn is_quiet(&self) -> bool {
        let count = self.count();
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
