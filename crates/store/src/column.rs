//! Columns of versioned values: the newest value in place, older ones on an undo chain.
//!
//! A column belongs to one page and one key, and has one of two forms:
//!
//! ```text
//! sparse   a table: slot ──▶ tag, word, head                          while few slots have a value
//! dense    tags 1 x n | words 8 x n | heads 8 x n (once something was updated)
//! head ──▶ record {begin of the value in place, the value before it, next} ──▶ record … ──▶ 0
//! ```
//!
//! A head names the newest record of its cell (`undo`). A value that nothing older hangs off lives as long as its
//! element. A column begins sparse and becomes dense, for good, when about one slot in [`SPARSE_SHARE`] has a
//! value. Scans of a dense column that nobody updated lately are walks over two arrays.
//!
//! Protocol, for a cell that several threads read and one transaction at a time writes:
//!
//! - *Writer* ([`Column::write`]): the head's begin word must be its own or a commit it sees, else the
//!   write is a conflict (first updater wins). It links a record that begins with its claim by
//!   compare-and-swap of the head, and only then stores word and tag in place.
//! - *Reader* ([`Column::read`]): head, then tag and word, then the head again. A writer's stores are
//!   released after the head's change, so whoever read any of the new value sees that the head moved.
//!   Where the head's record has not happened for the snapshot, the value in place does not matter: the
//!   reader takes the older value from the chain, and looks at the head's begin word again at the end.
//! - *Rollback* ([`Column::restore`], then [`forget`](crate::undo::forget), newest record first): puts the older
//!   value in place while the claim still hides it, then gives each record the begin of the newest version that is
//!   not the transaction's own. The records stay linked.
//! - *Collector* ([`Column::cut`]): takes away what no snapshot at or above the oldest reads any more: the whole
//!   chain (head → 0) where the value in place is old enough, else what hangs off the first record that is. Any number
//!   of threads may cut one cell: links are taken by exchange, so each record is cut off by one of them.
//!
//! Every reader and every writer is pinned (readers show it by an [`UndoReader`]), and that is what makes "the head is the same as before" mean "nothing
//! happened in between":
//!
//! 1. A record's number comes back a grace period after it was cut off, so a head that a pinned thread has read
//!    does not name another record while the pin lives.
//! 2. A head does not go from 0 to a record and back to 0 under one pin of a reader: the record of a commit is cut
//!    only once the oldest snapshot has passed it, and then the reader's own snapshot began after it was linked;
//!    records of a rollback are cut a grace period after the rollback.
//!
//! Who changes a sparse column, writer, rollback or collector, holds its latch; readers take none. Under the latch a
//! table that is full is copied into a larger one, or into arrays. A reader asks at the end whether the table it read
//! is still the column's, and begins again where it is not: nothing changes the cells of a table that was replaced, but
//! the records they name go on changing, and a rollback may already have made one true whose value it took back
//! elsewhere. So the protocol above is the same in both forms. Only what is dense is changed without a latch, and it
//! is dense before anybody finds it.
//!
//! A value in place may be overwritten without a record while nobody else can see it: within one statement,
//! when the head's record or the element itself is that statement's own.

mod place;
#[cfg(all(test, not(feature = "model")))]
mod tests;

use std::ops::Range;
use std::sync::atomic::Ordering;

use crate::cell::RawCell;
use crate::epoch::{self, EpochCell};
use crate::limbo::Space;
use crate::memory::RecordKind;
use crate::once::{CellArrays, OnceCells, OnceSlice};
use crate::sparse::{Full, SparseCells};
use crate::sync::{AtomicU8, AtomicU64, Mutex};
use crate::undo::{UndoPool, UndoReader, record};
use crate::version::{BASE_TS, Snapshot};
use place::{Dense, Either, Place};

/// The table of a sparse column has at most one entry for so many slots of the page. Seven eighths of it may be in use.
const SPARSE_SHARE: usize = 8;
/// Arrays for this many slots are small enough to begin with.
const DENSE_SLOTS: usize = 16;

/// Another transaction has written the cell first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contested;

/// What a write did.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Overwrote this value, which only this statement could see.
    InPlace(RawCell),
    /// Linked the undo record of this number.
    Undo(u64),
}

/// Who writes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteStamp<'a> {
    /// The writer's snapshot with all its own writes.
    pub(crate) snapshot: &'a Snapshot<'a>,
    /// The claim of the running statement.
    pub(crate) claim: u64,
    /// Whether the element was created by the running statement.
    pub(crate) fresh_element: bool,
}

/// One key's values in one page.
#[derive(Debug)]
pub(crate) struct Column {
    /// The dense form, once it is there. Nothing looks at the heads before.
    cells: OnceCells,
    heads: OnceSlice<AtomicU64>,
    /// The sparse form, until the dense one is there.
    sparse: EpochCell<SparseCells>,
    /// Held by who changes the sparse form.
    latch: Mutex<()>,
}

/// The cells of a dense column without undo chains, for walks over many of them. Whoever has read some asks
/// [`Plain::held`] before using them, and reads them again by [`Column::read`] where it did not.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'a> {
    cells: CellArrays<'a>,
    heads: &'a OnceSlice<AtomicU64>,
}

impl<'a> Plain<'a> {
    #[inline]
    pub(crate) fn get(self, at: usize) -> RawCell {
        Dense { cells: self.cells, heads: self.heads, at }.load()
    }

    /// Tags and words of a range.
    #[inline]
    pub(crate) fn arrays(self, range: Range<usize>) -> (&'a [AtomicU8], &'a [AtomicU64]) {
        (&self.cells.tags[range.clone()], &self.cells.words[range])
    }

    /// Whether no update has come between. The cells must have been loaded with Acquire (see the module's protocol:
    /// a writer makes heads before it stores anything in place).
    #[inline]
    pub(crate) fn held(self) -> bool {
        self.heads.get().is_none()
    }
}

impl Column {
    /// A column without values, for a page of this many slots.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = u32::try_from(capacity).expect("a page has at most 1,024 slots");
        Column {
            cells: OnceCells::empty(slots),
            heads: OnceSlice::empty(slots),
            sparse: EpochCell::default(),
            latch: Mutex::new(()),
        }
    }

    /// Bytes of the values, and of the heads of undo chains, besides the column itself.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        let sparse = self.sparse.get(&epoch::pin()).map_or(0, SparseCells::bytes);
        (self.cells.bytes() + sparse, self.heads.bytes())
    }

    // --- Form ---------------------------------------------------------------------------------------

    /// A cell of the dense form, if there is that.
    #[inline]
    fn dense(&self, at: usize) -> Option<Dense<'_>> {
        self.cells.get().map(|cells| Dense { cells, heads: &self.heads, at })
    }

    /// Looks at a cell without changing it, again where its table was replaced meanwhile; `None` where there is no
    /// cell, which says that it was never written.
    #[inline]
    fn look<R>(&self, at: usize, mut look: impl FnMut(Either<'_>) -> R) -> Option<R> {
        if let Some(place) = self.dense(at) {
            return Some(look(Either::Dense(place)));
        }
        let pin = epoch::pin();
        loop {
            let Some(cells) = self.sparse.get(&pin) else {
                // Nothing was written yet, or it has become dense between the two looks.
                return self.dense(at).map(|place| look(Either::Dense(place)));
            };
            let seen = cells.find(at).map(|cell| look(Either::Sparse(cell)));
            // The dense form is there before the table goes, and is changed from then on.
            if self.cells.get().is_none() && self.sparse.get(&pin).is_some_and(|now| std::ptr::eq(now, cells)) {
                return seen;
            }
            if let Some(place) = self.dense(at) {
                return Some(look(Either::Dense(place)));
            }
        }
    }

    /// Changes a cell if there is one.
    fn change<R>(&self, at: usize, change: impl FnOnce(Either<'_>) -> R) -> Option<R> {
        if let Some(place) = self.dense(at) {
            return Some(change(Either::Dense(place)));
        }
        let _latch = self.latch.lock();
        if let Some(place) = self.dense(at) {
            return Some(change(Either::Dense(place)));
        }
        let pin = epoch::pin();
        self.sparse.get(&pin)?.find(at).map(|cell| change(Either::Sparse(cell)))
    }

    /// Changes a cell, which is made where it is missing.
    fn change_or_insert<R>(&self, at: usize, space: Space<'_>, change: impl FnOnce(Either<'_>) -> R) -> R {
        if let Some(place) = self.dense(at) {
            return change(Either::Dense(place));
        }
        let _latch = self.latch.lock();
        let pin = epoch::pin();
        loop {
            if let Some(place) = self.dense(at) {
                return change(Either::Dense(place));
            }
            match self.sparse.get(&pin).map(|cells| (cells, cells.find_or_insert(at))) {
                Some((_, Ok(cell))) => return change(Either::Sparse(cell)),
                Some((cells, Err(Full))) => self.grow(cells, space),
                None => self.begin(space),
            }
        }
    }

    /// Gives an empty column its first form. By the holder of the latch.
    fn begin(&self, space: Space<'_>) {
        if self.cells.len() <= DENSE_SLOTS {
            return self.publish_dense(None, space);
        }
        self.replace_sparse(0, Some(SparseCells::new()), space);
    }

    /// Replaces a table that is full by a larger one or by arrays. By the holder of the latch.
    fn grow(&self, cells: &SparseCells, space: Space<'_>) {
        match cells.next_len() * SPARSE_SHARE > self.cells.len() {
            true => self.publish_dense(Some(cells), space),
            false => self.replace_sparse(cells.bytes(), Some(cells.grown()), space),
        }
    }

    /// By the holder of the latch.
    fn replace_sparse(&self, bytes_before: usize, cells: Option<SparseCells>, space: Space<'_>) {
        let bytes = cells.as_ref().map_or(0, SparseCells::bytes);
        space.memory.resize(RecordKind::Column, bytes_before, bytes);
        space.limbo.retire(self.sparse.swap(cells));
    }

    /// Makes the dense form of what there is. By the holder of the latch.
    fn publish_dense(&self, sparse: Option<&SparseCells>, space: Space<'_>) {
        self.cells.init(|cells| {
            for (at, cell) in sparse.into_iter().flat_map(SparseCells::iter) {
                let place = Dense { cells, heads: &self.heads, at };
                let head = cell.head();
                if head != 0 {
                    place::heads(&self.heads, space.memory)[at].store(head, Ordering::Release);
                }
                place.store(cell.load());
            }
        });
        space.memory.add(RecordKind::Column, self.cells.bytes());
        if let Some(sparse) = sparse {
            self.replace_sparse(sparse.bytes(), None, space);
        }
    }

    /// Makes the column dense: for who is going to fill most of it.
    pub(crate) fn make_dense(&self, space: Space<'_>) {
        if self.cells.get().is_some() {
            return;
        }
        let _latch = self.latch.lock();
        if self.cells.get().is_none() {
            let pin = epoch::pin();
            self.publish_dense(self.sparse.get(&pin), space);
        }
    }

    // --- Reading ------------------------------------------------------------------------------------

    /// The value the snapshot sees.
    #[inline]
    pub(crate) fn read(&self, at: usize, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> RawCell {
        match self.dense(at) {
            Some(place) => place::read(place, snapshot, undo),
            None => self.read_sparse(at, snapshot, undo),
        }
    }

    #[inline(never)]
    fn read_sparse(&self, at: usize, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> RawCell {
        self.look(at, |place| place::read(place, snapshot, undo)).unwrap_or(RawCell::ABSENT)
    }

    /// The cells, as long as the column is dense and nobody has updated any of them: then the values in place are
    /// what every snapshot sees.
    #[inline]
    pub(crate) fn plain(&self) -> Option<Plain<'_>> {
        let cells = self.cells.get()?;
        self.heads.get().is_none().then_some(Plain { cells, heads: &self.heads })
    }

    /// The slots that have a value for anybody, ascending, where they are few and known: the column is sparse.
    pub(crate) fn few_slots(&self) -> Option<Vec<usize>> {
        match self.cells.get() {
            Some(_) => None,
            None => self.sparse.get(&epoch::pin()).map(SparseCells::slots),
        }
    }

    /// The value in place: the only version of a cell that is never updated, and the newest one, whoever wrote it,
    /// for the transaction that holds the claim on it.
    #[inline]
    pub(crate) fn newest(&self, at: usize) -> RawCell {
        self.look(at, |place| place.load()).unwrap_or(RawCell::ABSENT)
    }

    /// Whether an undo record is that of the newest version of a cell.
    pub(crate) fn is_newest(&self, at: usize, index: u64) -> bool {
        self.look(at, |place| place.head()) == Some(index)
    }

    /// Starts loading what [`Column::read`] needs.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(cells) = self.cells.get() {
            crate::prefetch::prefetch(&cells.tags[at]);
            crate::prefetch::prefetch(&cells.words[at]);
            if let Some(heads) = self.heads.get() {
                crate::prefetch::prefetch(&heads[at]);
            }
        }
    }

    /// Every version of a cell with its begin word, newest first. Not consistent while the cell is written:
    /// for building indexes and looking for other users of a unique value, which tolerate both a version
    /// too many and one that its writer is still going to announce.
    pub(crate) fn each_version(&self, at: usize, undo: UndoReader<'_>, mut each: impl FnMut(u64, RawCell)) {
        if self.look(at, |place| place::each_version(place, undo, &mut each)).is_none() {
            each(BASE_TS, RawCell::ABSENT);
        }
    }

    /// Whether another transaction has written the cell in a way the snapshot does not see.
    pub(crate) fn is_contested(&self, at: usize, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> bool {
        self.look(at, |place| place::is_contested(place, snapshot, undo)).unwrap_or(false)
    }

    // --- Writing ------------------------------------------------------------------------------------

    /// Stores a value that no other thread can see yet: when loading in bulk, or for a user's id, which is
    /// written before its element begins and never changes.
    pub(crate) fn set_in_place(&self, at: usize, cell: RawCell, space: Space<'_>) {
        self.change_or_insert(at, space, |place| place.store(cell));
    }

    /// Takes away what [`Column::set_in_place`] stored, when no thread can see it any more.
    pub(crate) fn clear_in_place(&self, at: usize) {
        self.change(at, |place| place.store(RawCell::ABSENT));
    }

    /// Writes a new value; see the module's protocol.
    pub(crate) fn write(
        &self,
        at: usize,
        cell: RawCell,
        stamp: &WriteStamp<'_>,
        pool: &UndoPool,
        space: Space<'_>,
    ) -> Result<Written, Contested> {
        self.change_or_insert(at, space, |place| place::write(place, cell, stamp, pool, space.memory))
    }

    /// First part of a rollback: puts the older value back in place, and returns the one that was there.
    pub(crate) fn restore(&self, at: usize, index: u64, pool: &UndoPool) -> RawCell {
        let restored = self.change(at, |place| {
            let undone = place.load();
            place.store(record(pool, index).old());
            undone
        });
        restored.expect("a cell with a record stays")
    }

    /// Cuts off what no snapshot at or above `oldest` reads any more, and calls `each` with the numbers of the
    /// records cut off.
    pub(crate) fn cut(&self, at: usize, oldest: u64, pool: &UndoPool, each: impl FnMut(u64)) {
        self.change(at, |place| place::cut(place, oldest, pool, each));
    }

    /// Forgets the value and the versions of a cell whose element is gone for everybody; calls `each` with the
    /// records that are cut off, and returns the value.
    pub(crate) fn clear(&self, at: usize, pool: &UndoPool, each: impl FnMut(u64)) -> RawCell {
        self.change(at, |place| place::clear(place, pool, each)).unwrap_or(RawCell::ABSENT)
    }
}
