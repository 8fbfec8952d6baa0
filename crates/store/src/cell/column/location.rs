//! One cell, wherever it lies, and the protocol of its versions.
//!
//! The protocol (drawn up in `column`) is written once, over the [`CellLocation`] of a cell. A dense cell lies in the
//! arrays of its column, and several threads change it by compare-and-swap. A sparse cell lies in a table, and a thread
//! that changes it holds the latch (STORE-10).

use std::sync::atomic::Ordering;

use mangrove_reclaim::sync::{AtomicU64, spin_loop};
use mangrove_reclaim::{CellArrays, OnceSlice};

use crate::cell::RawCell;
use crate::cell::sparse::{SIDE_MAX, SparseCell};
use crate::cell::undo::{UndoPool, UndoReader, cut_unseen, each_record, is_waiting, record};
use crate::memory::{Memory, RecordKind};
use crate::version::{BASE_TS, Snapshot, claimed_by, contested, happened, happened_for_all, still_happened};

use super::{Contested, WriteClaim, Written};

/// Where a cell lies: how its value in place and the head of its undo chain are loaded and stored.
pub(super) trait CellLocation: Copy {
    /// The value in place. The loads are Acquire: the head is looked at again after them (STORE-4).
    fn load(self) -> RawCell;
    /// Puts a value in place. The stores are Release: a reader that sees any part of it sees the head that was stored
    /// before.
    fn store(self, cell: RawCell);
    /// The number of the newest record, or 0.
    fn head(self) -> u64;
    /// Replaces the head by a record and so publishes the record. Returns false if the head is not `old`.
    fn link(self, old: u64, new: u64, memory: &Memory) -> bool;
    /// Replaces the head, which names a record, by 0. Returns false if the head is not `old`.
    fn unlink(self, old: u64) -> bool;
}

/// A cell of the arrays over all slots.
#[derive(Clone, Copy)]
pub(super) struct Dense<'a> {
    pub(super) cells: CellArrays<'a>,
    pub(super) heads: &'a OnceSlice<AtomicU64>,
    pub(super) at: usize,
}

impl CellLocation for Dense<'_> {
    #[inline]
    fn load(self) -> RawCell {
        let word = &self.cells.words[self.at];
        RawCell { tag: self.cells.tags[self.at].load(Ordering::Acquire), word: word.load(Ordering::Acquire) }
    }

    #[inline]
    fn store(self, cell: RawCell) {
        self.cells.words[self.at].store(cell.word, Ordering::Release);
        self.cells.tags[self.at].store(cell.tag, Ordering::Release);
    }

    #[inline]
    fn head(self) -> u64 {
        self.heads.get().map_or(0, |heads| heads[self.at].load(Ordering::Acquire))
    }

    fn link(self, old: u64, new: u64, memory: &Memory) -> bool {
        let head = &heads(self.heads, memory)[self.at];
        // Release publishes the record; its partner is every Acquire load of a head.
        head.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire).is_ok()
    }

    fn unlink(self, old: u64) -> bool {
        let heads = self.heads.get();
        let exchange = |head: &AtomicU64| head.compare_exchange(old, 0, Ordering::AcqRel, Ordering::Acquire).is_ok();
        heads.is_some_and(|heads| exchange(&heads[self.at]))
    }
}

/// The heads of a column, which are made if they are missing.
pub(super) fn heads<'a>(heads: &'a OnceSlice<AtomicU64>, memory: &Memory) -> &'a [AtomicU64] {
    let (array, is_new) = heads.get_or_init(|| (0..heads.len()).map(|_| AtomicU64::new(0)).collect());
    if is_new {
        memory.add(RecordKind::Undo, size_of_val(array));
    }
    array
}

/// Beside the slot of a sparse cell: the tag in 8 bits, the head in 40.
const TAG_SHIFT: u32 = 40;
const HEAD_MAX: u64 = (1 << TAG_SHIFT) - 1;
const _: () = assert!(SIDE_MAX >> TAG_SHIFT == u8::MAX as u64, "a tag and a head fill the side of a cell");

fn side(tag: u8, head: u64) -> u64 {
    assert!(head <= HEAD_MAX, "2^40 undo records are 32 TiB");
    (u64::from(tag) << TAG_SHIFT) | head
}

impl CellLocation for &SparseCell {
    #[inline]
    fn load(self) -> RawCell {
        RawCell { tag: (self.side() >> TAG_SHIFT) as u8, word: self.word() }
    }

    fn store(self, cell: RawCell) {
        self.set_word(cell.word);
        self.set_side(side(cell.tag, self.head()));
    }

    #[inline]
    fn head(self) -> u64 {
        self.side() & HEAD_MAX
    }

    fn link(self, old: u64, new: u64, _: &Memory) -> bool {
        // STORE-10: the caller holds the latch.
        debug_assert_eq!(self.head(), old, "the head of a cell is changed under the latch");
        self.set_side(side((self.side() >> TAG_SHIFT) as u8, new));
        true
    }

    fn unlink(self, old: u64) -> bool {
        debug_assert_eq!(self.head(), old, "the head of a cell is changed under the latch");
        self.set_side(side((self.side() >> TAG_SHIFT) as u8, 0));
        true
    }
}

/// A cell of either form.
#[derive(Clone, Copy)]
pub(super) enum Either<'a> {
    Dense(Dense<'a>),
    Sparse(&'a SparseCell),
}

impl CellLocation for Either<'_> {
    #[inline]
    fn load(self) -> RawCell {
        match self {
            Either::Dense(location) => location.load(),
            Either::Sparse(location) => location.load(),
        }
    }

    #[inline]
    fn store(self, cell: RawCell) {
        match self {
            Either::Dense(location) => location.store(cell),
            Either::Sparse(location) => location.store(cell),
        }
    }

    #[inline]
    fn head(self) -> u64 {
        match self {
            Either::Dense(location) => location.head(),
            Either::Sparse(location) => location.head(),
        }
    }

    fn link(self, old: u64, new: u64, memory: &Memory) -> bool {
        match self {
            Either::Dense(location) => location.link(old, new, memory),
            Either::Sparse(location) => location.link(old, new, memory),
        }
    }

    fn unlink(self, old: u64) -> bool {
        match self {
            Either::Dense(location) => location.unlink(old),
            Either::Sparse(location) => location.unlink(old),
        }
    }
}

/// The value that the snapshot sees.
#[inline]
pub(super) fn read(location: impl CellLocation, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> RawCell {
    loop {
        let head = location.head();
        let seen = match head {
            0 => Some(location.load()),
            _ => read_chain(location, head, snapshot, undo),
        };
        match seen {
            // STORE-4, STORE-5, STORE-6: the same head means that nothing happened in between.
            Some(cell) if location.head() == head => return cell,
            _ => spin_loop(),
        }
    }
}

/// As [`read`], from a head that is not 0. `None` if a rollback came in between.
fn read_chain(
    location: impl CellLocation,
    head: u64,
    snapshot: &Snapshot<'_>,
    undo: UndoReader<'_>,
) -> Option<RawCell> {
    let newest = undo.record(head);
    let begin = newest.begin();
    if happened(begin, snapshot) {
        let cell = location.load();
        return still_happened(begin, snapshot).then_some(cell);
    }
    let mut current = newest;
    loop {
        let (old, next) = (current.old(), current.next());
        if next == 0 {
            break Some(old);
        }
        current = undo.record(next);
        if happened(current.begin(), snapshot) {
            // A rollback changes begins newest first. If it made this one true, it changed the head's before, and `old`
            // may be a value that was rolled back.
            break (newest.begin() == begin || claimed_by(begin).is_none()).then_some(old);
        }
    }
}

/// The begin word of the value in place.
fn begin_of(head: u64, pool: &UndoPool) -> u64 {
    if head == 0 { BASE_TS } else { record(pool, head).begin() }
}

/// Returns true if another transaction has written the cell in a way that the snapshot does not see.
pub(super) fn is_contested(location: impl CellLocation, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> bool {
    let head = location.head();
    contested(if head == 0 { BASE_TS } else { undo.record(head).begin() }, snapshot)
}

/// Writes a new value, or refuses: the first updater wins.
pub(super) fn write(
    location: impl CellLocation,
    cell: RawCell,
    claim_of: &WriteClaim<'_>,
    pool: &UndoPool,
    memory: &Memory,
) -> Result<Written, Contested> {
    loop {
        let head = location.head();
        let begin = begin_of(head, pool);
        if contested(begin, claim_of.snapshot) {
            return Err(Contested);
        }
        let unseen = begin == claim_of.claim || (head == 0 && claim_of.fresh_element);
        let written = match unseen {
            true => Written::InPlace(location.load()),
            false => match link(location, head, claim_of, pool, memory) {
                Some(undo) => Written::Undo(undo),
                // Another writer came first, and the next look says so; or a collector has cut the chain.
                None => continue,
            },
        };
        // STORE-4: the record is linked before the value is stored.
        location.store(cell);
        return Ok(written);
    }
}

/// Links a record with the value in place in front of `head`; `None` when the head has changed.
fn link(
    location: impl CellLocation,
    head: u64,
    claim_of: &WriteClaim<'_>,
    pool: &UndoPool,
    memory: &Memory,
) -> Option<u64> {
    // The value in place belongs to `head`: if it does not, linking fails.
    let old = location.load();
    let (index, undo) = pool.allocate(memory);
    undo.fill(claim_of.claim, old, head);
    let is_linked = location.link(head, index, memory);
    if !is_linked {
        // No other thread has seen the record.
        pool.free(index);
    }
    is_linked.then_some(index)
}

/// Cuts off the versions that no snapshot at or above `oldest` reads, and calls `each` with the records.
pub(super) fn cut(location: impl CellLocation, oldest: u64, pool: &UndoPool, each: impl FnMut(u64)) {
    loop {
        let head = location.head();
        if head == 0 {
            return;
        }
        let newest = record(pool, head);
        if !happened_for_all(newest.begin(), oldest) {
            return cut_unseen(newest, oldest, pool, each);
        }
        if is_waiting(head, pool) {
            return;
        }
        // Every snapshot from `oldest` on sees the value in place. This fails if a writer links a record first.
        if location.unlink(head) {
            return each_record(head, pool, each);
        }
    }
}

/// Clears value and versions, calls `each` with the records that are cut off, and returns the value.
pub(super) fn clear(location: impl CellLocation, pool: &UndoPool, each: impl FnMut(u64)) -> RawCell {
    let cell = location.load();
    location.store(RawCell::ABSENT);
    loop {
        let head = location.head();
        if head == 0 {
            return cell;
        }
        if location.unlink(head) {
            each_record(head, pool, each);
            return cell;
        }
    }
}

/// Calls `each` with begin word and value of every version, newest first.
pub(super) fn each_version(location: impl CellLocation, undo: UndoReader<'_>, mut each: impl FnMut(u64, RawCell)) {
    let mut index = location.head();
    let mut cell = location.load();
    while index != 0 {
        let record = undo.record(index);
        let begin = record.begin();
        // A value that a rollback took back is no version. The one that is in place again comes at its own turn.
        if record.is_linked() {
            each(begin, cell);
        }
        (cell, index) = (record.old(), record.next());
    }
    each(BASE_TS, cell);
}
