//! Undo records: older values of cells, which undo chains are made of.
//!
//! ```text
//! head of a cell ──▶ record {begin of the value in place, the value before it, next} ──▶ record … ──▶ 0
//! state of a record:  LINKED ──rollback──▶ ROLLED_BACK ──grace period──▶ ROLLBACK_OVER
//! ```
//!
//! - **STORE-7.** Any number of threads may cut one chain. Heads and links are taken by exchange, so each record is cut
//!   off by exactly one thread. A reader inside a chain needs no link that was taken: it stops at the begin of the
//!   record before it.
//! - **STORE-8.** A record in state LINKED owns its older value. A rolled-back record owns nothing: its older value is
//!   in place again, and the value that its transaction wrote was given up by the rollback.
//!
//! The protocol of `column` says how a chain is linked and cut, and in which order words are written. This file has the
//! parts that do not touch the cell: the records, their states, and the links between them.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use mangrove_reclaim::Pin;
use mangrove_reclaim::sync::{AtomicU8, AtomicU64};

use crate::cell::RawCell;
use crate::memory::Pool;
use crate::version::{BASE_TS, NEVER, claimed_by, happened_for_all};

/// The record owns its older value (STORE-8).
const LINKED: u8 = 0;
/// Rolled back while readers from before the rollback may exist, so it must not be cut off yet. The older value is in
/// place again.
const ROLLED_BACK: u8 = 1;
/// Rolled back, and every reader from before the rollback is gone.
const ROLLBACK_OVER: u8 = 2;

/// An older value of a cell. Invariants: STORE-7, STORE-8.
#[derive(Debug)]
pub(crate) struct UndoRecord {
    /// The begin word of the value that replaced this one.
    begin: AtomicU64,
    old_tag: AtomicU8,
    /// `LINKED`, `ROLLED_BACK` or `ROLLBACK_OVER`.
    state: AtomicU8,
    old_word: AtomicU64,
    /// The number of the next older record, or 0.
    next: AtomicU64,
}

impl Default for UndoRecord {
    fn default() -> Self {
        UndoRecord {
            begin: AtomicU64::new(NEVER),
            old_tag: AtomicU8::new(0),
            state: AtomicU8::new(LINKED),
            old_word: AtomicU64::new(0),
            next: AtomicU64::new(0),
        }
    }
}

impl UndoRecord {
    /// Fills in a record that is not linked yet.
    // Relaxed: the change of the head that links the record publishes it.
    pub(crate) fn fill(&self, claim: u64, old: RawCell, next: u64) {
        self.old_tag.store(old.tag, Ordering::Relaxed);
        self.old_word.store(old.word, Ordering::Relaxed);
        self.next.store(next, Ordering::Relaxed);
        self.begin.store(claim, Ordering::Relaxed);
        self.state.store(LINKED, Ordering::Relaxed);
    }

    /// The value that the record's writer replaced.
    // Relaxed: written before the compare-and-swap that publishes the record, and not changed while it is linked.
    pub(crate) fn old(&self) -> RawCell {
        RawCell { tag: self.old_tag.load(Ordering::Relaxed), word: self.old_word.load(Ordering::Relaxed) }
    }

    /// The number of the next older record, or 0.
    // Relaxed: the record it names was published before this one was; a collector may only make it 0.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// The begin word of the value that replaced the older one.
    pub(crate) fn begin(&self) -> u64 {
        self.begin.load(Ordering::Acquire)
    }

    /// Returns true if the record's transaction was not rolled back.
    pub(crate) fn is_linked(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LINKED
    }
}

/// The undo records of a tablet.
pub(crate) type UndoPool = Pool<UndoRecord, 6>;

/// The undo records of a tablet, for a pinned thread. It may follow a chain from a head that it has read: while the pin
/// lives, no record of the chain becomes one of another cell (STORE-5).
#[derive(Clone, Copy)]
pub(crate) struct UndoReader<'p> {
    pool: &'p UndoPool,
    pin: PhantomData<&'p Pin>,
}

impl<'p> UndoReader<'p> {
    /// A reader of these records. The pin must have begun before any head was read.
    pub(crate) fn new(pool: &'p UndoPool, _pin: &'p Pin) -> Self {
        UndoReader { pool, pin: PhantomData }
    }

    /// The record of a number.
    pub(crate) fn record(self, index: u64) -> &'p UndoRecord {
        record(self.pool, index)
    }
}

/// The record of a number, for the owner of the record, writers and collectors. Readers have an [`UndoReader`].
pub(crate) fn record(pool: &UndoPool, index: u64) -> &UndoRecord {
    pool.get(index).expect("a head and a record name only records that were allocated")
}

/// The older value that a record owns when it is cut off (STORE-8); absent if the record was rolled back.
pub(crate) fn old_value(index: u64, pool: &UndoPool) -> RawCell {
    let undo = record(pool, index);
    if undo.is_linked() { undo.old() } else { RawCell::ABSENT }
}

/// Notes that all readers from before the rollback of a record are gone, so that the record may be cut off.
pub(crate) fn end_rollback(index: u64, pool: &UndoPool) {
    record(pool, index).state.store(ROLLBACK_OVER, Ordering::Relaxed);
}

/// Second part of a rollback: gives the record the begin of the newest older version that is not `txn`'s.
pub(crate) fn forget(index: u64, txn: u64, pool: &UndoPool) {
    let undo = record(pool, index);
    let mut next = undo.next();
    let begin = loop {
        if next == 0 {
            break BASE_TS;
        }
        let older = record(pool, next);
        let begin = older.begin();
        if claimed_by(begin) != Some(txn) {
            break begin;
        }
        next = older.next();
    };
    undo.state.store(ROLLED_BACK, Ordering::Relaxed);
    // Release: a reader that sees the version begun sees the value that was put back in place, and the state.
    undo.begin.store(begin, Ordering::Release);
}

/// Replaces the claim of a record by a commit timestamp or another claim of the same transaction.
pub(crate) fn finalize(index: u64, word: u64, pool: &UndoPool) {
    record(pool, index).begin.store(word, Ordering::Release);
}

/// Cuts the chain after the first record whose successor began at or before `oldest`. Every snapshot at or above
/// `oldest` stops at that begin. Without the successor it stops at the end of the chain, with the same answer.
pub(crate) fn cut_unseen(newest: &UndoRecord, oldest: u64, pool: &UndoPool, each: impl FnMut(u64)) {
    let mut current = newest;
    loop {
        let next = current.next();
        if next == 0 {
            return;
        }
        let following = record(pool, next);
        if happened_for_all(following.begin(), oldest) {
            if is_waiting(next, pool) {
                return;
            }
            // Relaxed, here and in `each_record`: the record was published long ago. STORE-7: the thread that gets its
            // number cut it off.
            return each_record(current.next.swap(0, Ordering::Relaxed), pool, each);
        }
        current = following;
    }
}

/// Returns true if a record from this one on is in state ROLLED_BACK. The collector comes back for the chain when the
/// rollback's grace period is over.
pub(crate) fn is_waiting(mut index: u64, pool: &UndoPool) -> bool {
    while index != 0 {
        let undo = record(pool, index);
        if undo.state.load(Ordering::Relaxed) == ROLLED_BACK {
            return true;
        }
        index = undo.next();
    }
    false
}

/// Calls `each` with the numbers of a chain that was cut off. Another thread may cut the chain after one of the
/// records, and then gets the records that follow it. Readers inside know by the begin of the record before that they
/// go no further (STORE-7).
pub(crate) fn each_record(mut index: u64, pool: &UndoPool, mut each: impl FnMut(u64)) {
    while index != 0 {
        let next = record(pool, index).next.swap(0, Ordering::Relaxed);
        each(index);
        index = next;
    }
}
