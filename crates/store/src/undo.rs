//! Older values of cells: the records that undo chains are made of.
//!
//! What a chain means, who links and cuts it and in which order words are written is the protocol of the module
//! `column`. Here is what can be said of a record and of a chain of them without knowing the cell.

use std::marker::PhantomData;
use std::sync::atomic::Ordering;

use crate::cell::RawCell;
use crate::epoch::Pin;
use crate::segments::Pool;
use crate::sync::{AtomicU8, AtomicU64};
use crate::version::{BASE_TS, NEVER, claimed_by};

/// The record owns its older value: when it goes, so does the value.
const LINKED: u8 = 0;
/// Rolled back while readers of that time may be about: not to be cut off yet. The older value is in place again.
const ROLLED_BACK: u8 = 1;
/// Rolled back long enough ago.
const SETTLED: u8 = 2;

/// An older value of a cell.
#[derive(Debug)]
pub(crate) struct UndoRecord {
    /// When the value this one was replaced by came to be.
    begin: AtomicU64,
    old_tag: AtomicU8,
    /// `LINKED`, or where the rollback of its transaction stands.
    state: AtomicU8,
    old_word: AtomicU64,
    /// The record before, or 0.
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
    /// Fills in a record that nobody has yet.
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

    /// The record before this one, or 0.
    // Relaxed: the record it names was published before this one was; a collector may only make it 0.
    pub(crate) fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }

    /// When the value after the older one came to be.
    pub(crate) fn begin(&self) -> u64 {
        self.begin.load(Ordering::Acquire)
    }

    /// Whether nobody has rolled the record's transaction back.
    pub(crate) fn is_linked(&self) -> bool {
        self.state.load(Ordering::Relaxed) == LINKED
    }
}

/// The undo records of a tablet.
pub(crate) type UndoPool = Pool<UndoRecord, 6>;

/// The undo records of a tablet for a thread that is pinned. It may follow a chain from a head that it has read: as long as
/// the pin lives, no record of the chain becomes that of another cell (`column`, 1).
#[derive(Clone, Copy)]
pub(crate) struct UndoReader<'p> {
    pool: &'p UndoPool,
    pin: PhantomData<&'p Pin>,
}

impl<'p> UndoReader<'p> {
    /// A reader of these records under this pin, which began before any head was read.
    pub(crate) fn new(pool: &'p UndoPool, _pin: &'p Pin) -> Self {
        UndoReader { pool, pin: PhantomData }
    }

    /// The record of a number.
    pub(crate) fn record(self, index: u64) -> &'p UndoRecord {
        record(self.pool, index)
    }
}

/// The record of a number. For the owner of the record, and for writers and collectors; readers have an [`UndoReader`].
pub(crate) fn record(pool: &UndoPool, index: u64) -> &UndoRecord {
    pool.get(index).expect("a head and a record name only records that were allocated")
}

/// The older value that a record cut off takes with it; absent where it is in place again.
pub(crate) fn old_value(index: u64, pool: &UndoPool) -> RawCell {
    let undo = record(pool, index);
    if undo.is_linked() { undo.old() } else { RawCell::ABSENT }
}

/// Says that the readers of the time when a record was rolled back are gone: it may be cut off.
pub(crate) fn settle(index: u64, pool: &UndoPool) {
    record(pool, index).state.store(SETTLED, Ordering::Relaxed);
}

/// Second part of a rollback: the record begins when the newest version below that is not `txn`'s did.
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
    // Release: whoever sees the version happen sees the value that was put back in place, and the state.
    undo.begin.store(begin, Ordering::Release);
}

/// Replaces the claim of a record by a commit timestamp or another claim of the same transaction.
pub(crate) fn stamp(index: u64, word: u64, pool: &UndoPool) {
    record(pool, index).begin.store(word, Ordering::Release);
}

/// Cuts behind the last record that a snapshot at or above `oldest` may look past: the next one's begin is what
/// everybody stops at, and without it they stop at the end of the chain, which says the same.
pub(crate) fn cut_behind(newest: &UndoRecord, oldest: u64, pool: &UndoPool, each: impl FnMut(u64)) {
    let mut current = newest;
    loop {
        let next = current.next();
        if next == 0 {
            return;
        }
        let following = record(pool, next);
        if following.begin() <= oldest {
            if is_waiting(next, pool) {
                return;
            }
            // Relaxed, here and below: the record was published long ago; who gets its number cut it off.
            return each_record(current.next.swap(0, Ordering::Relaxed), pool, each);
        }
        current = following;
    }
}

/// Whether a record from this one on was rolled back just now. Its collector comes back for the chain then.
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

/// Calls `each` with the numbers of a chain that was cut off. Another thread may be cutting behind one of the records,
/// which then gets what follows. Readers that are inside know by the begin of the record before that they go no further.
pub(crate) fn each_record(mut index: u64, pool: &UndoPool, mut each: impl FnMut(u64)) {
    while index != 0 {
        let next = record(pool, index).next.swap(0, Ordering::Relaxed);
        each(index);
        index = next;
    }
}
