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
//! A head names the newest undo record of its cell (`undo`). A value without a chain is as old as its element. A column
//! begins sparse and becomes dense, for good, by its [`SPARSE_RULE`]. A scan of a dense
//! column without recent updates is a walk over two arrays.
//!
//! The protocol for a cell that several threads read and one transaction at a time writes:
//!
//! | who | what |
//! |---|---|
//! | writer, [`Column::write`] | The head's begin word must be the writer's own or a commit that it sees; otherwise the write is a conflict (first updater wins). The writer links a record with its claim by compare-and-swap of the head, and only then stores word and tag in place. |
//! | reader, [`Column::read`] | It loads the head, then tag and word, then the head again. A writer's stores are released after the change of the head, so a reader that loaded any part of the new value sees that the head has changed. If the head's record has not happened for the snapshot, the value in place does not matter: the reader takes the older value from the chain, and looks at the head's begin word again at the end. |
//! | rollback, [`Column::restore`], then [`forget`](crate::cell::undo::forget), newest record first | It puts the older value in place while the claim still hides it, then gives each record the begin of the newest version that is not the transaction's own. The records stay linked. |
//! | collector, [`Column::cut`] | It cuts off what no snapshot at or above the oldest reads: the whole chain (head → 0) if the value in place is old enough, otherwise what follows the first record that is. |
//!
//! Every reader and writer is pinned; readers show it by an [`UndoReader`]. That makes "the head is the same as before"
//! mean "nothing happened in between":
//!
//! - **STORE-4.** A writer links a record with its claim before it stores in place. A reader looks at the head before
//!   and after it loads the value in place.
//! - **STORE-5.** The number of an undo record is given out again a grace period after the record was cut off. So a
//!   head that a pinned thread has read names no other record while the pin lives.
//! - **STORE-6.** A head does not go from 0 to a record and back to 0 under one pin of a reader. A commit's record is
//!   cut once the oldest snapshot has passed it, and a reader that found 0 before it was linked has an older snapshot.
//!   A rollback's record is cut a grace period after the rollback.
//! - **STORE-9.** The dense form of a column is for good. A sparse table is replaced as a whole.
//! - **STORE-10.** A thread that changes the sparse form holds its latch. A thread that changes the dense form has
//!   found it published, and needs no latch. So no cell changes while it is copied, and a table that was copied never
//!   changes again: it is *superseded*.
//!
//! Readers take no latch. A reader of a sparse table checks at the end that the table is still the column's, and begins
//! again if it is not (`sparse_form` says why readers of descriptors do not). The cells of a superseded table stay as
//! they were, but the undo records that they name go on changing: a rollback may have made one true after it took the
//! value back elsewhere. So the protocol above is the same in both forms.
//!
//! A value in place may be overwritten without a record while only one statement can see it: the head's record or the
//! element itself is that statement's own.

mod location;
#[cfg(all(test, not(feature = "model")))]
mod tests;

use std::ops::Range;
use std::sync::atomic::Ordering;

use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicU8, AtomicU64};
use mangrove_reclaim::{CellArrays, OnceCells, OnceSlice, Pin, epoch};

use crate::cell::RawCell;
use crate::cell::sparse::SparseCells;
use crate::cell::sparse_form::{SparseForm, SparseRule};
use crate::cell::undo::{UndoPool, UndoReader, record};
use crate::memory::{RecordKind, Space};
use crate::version::{BASE_TS, Snapshot};
use location::{CellLocation, Dense, Either};

/// A column becomes dense when about one slot in eight has a value.
const SPARSE_RULE: SparseRule = SparseRule { slots_an_entry: 8, kind: RecordKind::Column };

/// Another transaction has written the cell first.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Contested;

/// The effect of a write.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Written {
    /// Overwrote this value, which only this statement could see.
    InPlace(RawCell),
    /// Linked the undo record of this number.
    Undo(u64),
}

/// The writer of a value, and how it claims the cell.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WriteClaim<'a> {
    /// The writer's snapshot with all its own writes.
    pub(crate) snapshot: &'a Snapshot<'a>,
    /// The claim of the running statement.
    pub(crate) claim: u64,
    /// True if the running statement created the element.
    pub(crate) fresh_element: bool,
}

/// The values of one key in one page. Invariants: STORE-4 to STORE-10.
#[derive(Debug)]
pub(crate) struct Column {
    /// The dense form, once it is made. The heads are not looked at before.
    cells: OnceCells,
    heads: OnceSlice<AtomicU64>,
    /// The sparse form, until the dense one is made. A thread that changes it holds its latch (STORE-10).
    sparse: SparseForm<rank::ColumnForm>,
}

/// The cells of a dense column without undo chains, for walks over many of them. A caller that has read some calls
/// [`Plain::held`] before it uses them. If that is false, it reads them again by [`Column::read`].
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

    /// Returns true if no update has come in between. The cells must have been loaded with Acquire: a writer makes
    /// heads before it stores anything in place (STORE-4).
    #[inline]
    pub(crate) fn held(self) -> bool {
        self.heads.get().is_none()
    }
}

impl Column {
    /// A column without values, for a page of this many slots.
    pub(crate) fn new(capacity: usize) -> Self {
        let slots = u32::try_from(capacity).expect("a page has at most 1,024 slots");
        Column { cells: OnceCells::empty(slots), heads: OnceSlice::empty(slots), sparse: SparseForm::default() }
    }

    /// Bytes of the values and of the heads of undo chains, without the column itself.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.cells.bytes() + self.sparse.bytes(&epoch::pin()), self.heads.bytes())
    }

    // --- Form ---------------------------------------------------------------------------------------

    /// A cell of the dense form, if that is made.
    #[inline]
    fn dense(&self, at: usize) -> Option<Dense<'_>> {
        self.cells.get().map(|cells| Dense { cells, heads: &self.heads, at })
    }

    /// Looks at a cell without changing it, and again if its table was replaced in the meantime. `None` if there is no
    /// cell, which means that it was never written.
    #[inline]
    fn look<R>(&self, at: usize, mut look: impl FnMut(Either<'_>) -> R) -> Option<R> {
        if let Some(location) = self.dense(at) {
            return Some(look(Either::Dense(location)));
        }
        let pin = epoch::pin();
        loop {
            let Some(cells) = self.sparse.get(&pin) else {
                // Nothing was written yet, or the column became dense between the two looks.
                return self.dense(at).map(|location| look(Either::Dense(location)));
            };
            let seen = cells.find(at).map(|cell| look(Either::Sparse(cell)));
            // STORE-9: the dense form is published before the table goes, and takes all changes from then on.
            if self.cells.get().is_none() && self.sparse.is_current(cells, &pin) {
                return seen;
            }
            if let Some(location) = self.dense(at) {
                return Some(look(Either::Dense(location)));
            }
        }
    }

    /// Changes a cell if there is one.
    fn change<R>(&self, at: usize, change: impl FnOnce(Either<'_>) -> R) -> Option<R> {
        if let Some(location) = self.dense(at) {
            return Some(change(Either::Dense(location)));
        }
        let _latch = self.sparse.latch.lock();
        if let Some(location) = self.dense(at) {
            return Some(change(Either::Dense(location)));
        }
        let pin = epoch::pin();
        self.sparse.get(&pin)?.find(at).map(|cell| change(Either::Sparse(cell)))
    }

    /// Changes a cell, which is made if it is missing.
    fn change_or_insert<R>(&self, at: usize, space: Space<'_>, change: impl FnOnce(Either<'_>) -> R) -> R {
        if let Some(location) = self.dense(at) {
            return change(Either::Dense(location));
        }
        let _latch = self.sparse.latch.lock();
        let pin = epoch::pin();
        if self.cells.get().is_none() {
            match self.sparse.find_or_make(at, self.cells.len(), SPARSE_RULE, space, &pin) {
                Ok(cell) => return change(Either::Sparse(cell)),
                Err(full) => self.publish_dense(full, space, &pin),
            }
        }
        change(Either::Dense(self.dense(at).expect("the dense form is for good")))
    }

    /// Makes the dense form with the content of the sparse one. The caller holds the latch.
    fn publish_dense(&self, sparse: Option<&SparseCells>, space: Space<'_>, pin: &Pin) {
        self.cells.init(|cells| {
            for (at, cell) in sparse.into_iter().flat_map(SparseCells::iter) {
                let location = Dense { cells, heads: &self.heads, at };
                let head = cell.head();
                if head != 0 {
                    location::heads(&self.heads, space.memory)[at].store(head, Ordering::Release);
                }
                location.store(cell.load());
            }
        });
        space.memory.add(RecordKind::Column, self.cells.bytes());
        if sparse.is_some() {
            self.sparse.replace(None, SPARSE_RULE, space, pin);
        }
    }

    /// Makes the column dense, for a caller that is going to fill most of it.
    pub(crate) fn make_dense(&self, space: Space<'_>) {
        if self.cells.get().is_some() {
            return;
        }
        let _latch = self.sparse.latch.lock();
        if self.cells.get().is_none() {
            let pin = epoch::pin();
            self.publish_dense(self.sparse.get(&pin), space, &pin);
        }
    }

    // --- Reading ------------------------------------------------------------------------------------

    /// The value that the snapshot sees.
    #[inline]
    pub(crate) fn read(&self, at: usize, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> RawCell {
        match self.dense(at) {
            Some(location) => location::read(location, snapshot, undo),
            None => self.read_sparse(at, snapshot, undo),
        }
    }

    #[inline(never)]
    fn read_sparse(&self, at: usize, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> RawCell {
        self.look(at, |location| location::read(location, snapshot, undo)).unwrap_or(RawCell::ABSENT)
    }

    /// The cells, while the column is dense and none of them was updated. The values in place are then those of every
    /// snapshot.
    #[inline]
    pub(crate) fn plain(&self) -> Option<Plain<'_>> {
        let cells = self.cells.get()?;
        self.heads.get().is_none().then_some(Plain { cells, heads: &self.heads })
    }

    /// The slots that may have a value, ascending, if the column is sparse.
    pub(crate) fn few_slots(&self) -> Option<Vec<usize>> {
        match self.cells.get() {
            Some(_) => None,
            None => self.sparse.get(&epoch::pin()).map(SparseCells::slots),
        }
    }

    /// The value in place: the only version of a cell that was never updated. For the transaction that holds the claim
    /// on a cell, its newest version.
    #[inline]
    pub(crate) fn newest(&self, at: usize) -> RawCell {
        self.look(at, |location| location.load()).unwrap_or(RawCell::ABSENT)
    }

    /// Returns true if this undo record is that of the newest version of a cell.
    pub(crate) fn is_newest(&self, at: usize, index: u64) -> bool {
        self.look(at, |location| location.head()) == Some(index)
    }

    /// Starts loading what [`Column::read`] needs.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize) {
        if let Some(cells) = self.cells.get() {
            mangrove_reclaim::prefetch::prefetch(&cells.tags[at]);
            mangrove_reclaim::prefetch::prefetch(&cells.words[at]);
            if let Some(heads) = self.heads.get() {
                mangrove_reclaim::prefetch::prefetch(&heads[at]);
            }
        }
    }

    /// Calls `each` with every version of a cell and its begin word, newest first. The result is not consistent while
    /// the cell is written. It is for building indexes and for finding other users of a unique value; both tolerate a
    /// version too many, and one that its writer has yet to announce.
    pub(crate) fn each_version(&self, at: usize, undo: UndoReader<'_>, mut each: impl FnMut(u64, RawCell)) {
        if self.look(at, |location| location::each_version(location, undo, &mut each)).is_none() {
            each(BASE_TS, RawCell::ABSENT);
        }
    }

    /// Returns true if another transaction has written the cell in a way that the snapshot does not see.
    pub(crate) fn is_contested(&self, at: usize, snapshot: &Snapshot<'_>, undo: UndoReader<'_>) -> bool {
        self.look(at, |location| location::is_contested(location, snapshot, undo)).unwrap_or(false)
    }

    // --- Writing ------------------------------------------------------------------------------------

    /// Stores a value that no other thread can see yet: when loading in bulk, or for a user's id, which is
    /// written before its element begins and never changes.
    pub(crate) fn set_in_place(&self, at: usize, cell: RawCell, space: Space<'_>) {
        self.change_or_insert(at, space, |location| location.store(cell));
    }

    /// Clears what [`Column::set_in_place`] stored, once no thread can see it.
    pub(crate) fn clear_in_place(&self, at: usize) {
        self.change(at, |location| location.store(RawCell::ABSENT));
    }

    /// Writes a new value by the protocol in the header of this file.
    pub(crate) fn write(
        &self,
        at: usize,
        cell: RawCell,
        claim_of: &WriteClaim<'_>,
        pool: &UndoPool,
        space: Space<'_>,
    ) -> Result<Written, Contested> {
        self.change_or_insert(at, space, |location| location::write(location, cell, claim_of, pool, space.memory))
    }

    /// First part of a rollback: puts the older value back in place and returns the one that it replaces.
    pub(crate) fn restore(&self, at: usize, index: u64, pool: &UndoPool) -> RawCell {
        let restored = self.change(at, |location| {
            let undone = location.load();
            location.store(record(pool, index).old());
            undone
        });
        restored.expect("a cell with a record stays")
    }

    /// Cuts off the versions that no snapshot at or above `oldest` reads, and calls `each` with the numbers of their
    /// records.
    pub(crate) fn cut(&self, at: usize, oldest: u64, pool: &UndoPool, each: impl FnMut(u64)) {
        self.change(at, |location| location::cut(location, oldest, pool, each));
    }

    /// Clears value and versions of a cell whose element no snapshot sees. Calls `each` with the records that are cut
    /// off, and returns the value.
    pub(crate) fn clear(&self, at: usize, pool: &UndoPool, each: impl FnMut(u64)) -> RawCell {
        self.change(at, |location| location::clear(location, pool, each)).unwrap_or(RawCell::ABSENT)
    }
}
