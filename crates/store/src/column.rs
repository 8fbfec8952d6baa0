//! Columns of versioned values: the newest value in place, older ones on an undo chain.
//!
//! A column belongs to one page and one key. Scans of what nobody updated lately are walks over two arrays.
//! The first update of a page adds a head word a cell; a head names the newest [`UndoRecord`] of its cell:
//!
//! ```text
//! head ──▶ record {begin of the value in place, the value before it, next} ──▶ record … ──▶ 0
//! ```
//!
//! A value that nothing older hangs off lives as long as its element.
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
//! - *Rollback* ([`Column::restore`], then [`Column::forget`], newest record first): puts the older value in
//!   place while the claim still hides it, then gives each record the begin of the newest version that is
//!   not the transaction's own. The records stay linked.
//! - *Collector* ([`Column::cut`]): takes away what no snapshot at or above the oldest reads any more: the whole
//!   chain (head → 0) where the value in place is old enough, else what hangs off the first record that is.
//!
//! Whoever reads or writes is pinned, and that is what makes "the head is the same as before" mean "nothing
//! happened in between":
//!
//! 1. A record's number comes back a grace period after it was cut off, so a head that a pinned thread has read
//!    does not name another record while the pin lives.
//! 2. A head does not go from 0 to a record and back to 0 under one pin of a reader: the record of a commit is cut
//!    only once the oldest snapshot has passed it, and then the reader's own snapshot began after it was linked;
//!    records of a rollback are cut a grace period after the rollback.
//!
//! A value in place may be overwritten without a record while nobody else can see it: within one statement,
//! when the head's record or the element itself is that statement's own.

use std::ops::Range;
use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use crate::cell::RawCell;
use crate::memory::{Memory, RecordKind};
use crate::segments::Pool;
use crate::sync::{AtomicU8, AtomicU64, spin_loop};
use crate::version::{BASE_TS, NEVER, Snapshot, claimed_by, contested, happened, still_happened};

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
    // Relaxed: written before the compare-and-swap that publishes the record, and not changed while it is linked.
    fn old(&self) -> RawCell {
        RawCell { tag: self.old_tag.load(Ordering::Relaxed), word: self.old_word.load(Ordering::Relaxed) }
    }

    // Relaxed: the record it names was published before this one was; a collector may only make it 0.
    fn next(&self) -> u64 {
        self.next.load(Ordering::Relaxed)
    }
}

/// The undo records of a tablet.
pub(crate) type UndoPool = Pool<UndoRecord, 6>;

fn record(pool: &UndoPool, index: u64) -> &UndoRecord {
    pool.get(index).expect("a head and a record name only records that were allocated")
}

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
    tags: Box<[AtomicU8]>,
    words: Box<[AtomicU64]>,
    heads: OnceLock<Box<[AtomicU64]>>,
}

/// The cells of a column without undo chains, for walks over many of them. Whoever has read some asks
/// [`Plain::held`] before using them, and reads them again by [`Column::read`] where it did not.
#[derive(Clone, Copy)]
pub(crate) struct Plain<'a> {
    column: &'a Column,
}

impl<'a> Plain<'a> {
    #[inline]
    pub(crate) fn get(self, at: usize) -> RawCell {
        self.column.in_place(at)
    }

    /// Tags and words of a range.
    #[inline]
    pub(crate) fn arrays(self, range: Range<usize>) -> (&'a [AtomicU8], &'a [AtomicU64]) {
        (&self.column.tags[range.clone()], &self.column.words[range])
    }

    /// Whether no update has come between. The cells must have been loaded with Acquire (see the module's protocol:
    /// a writer makes heads before it stores anything in place).
    #[inline]
    pub(crate) fn held(self) -> bool {
        self.column.heads.get().is_none()
    }
}

impl Column {
    pub(crate) fn new(capacity: usize, memory: &Memory) -> Self {
        let column = Column {
            tags: (0..capacity).map(|_| AtomicU8::new(0)).collect(),
            words: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            heads: OnceLock::new(),
        };
        memory.add(RecordKind::Column, column.value_bytes());
        column
    }

    fn value_bytes(&self) -> usize {
        size_of::<Column>() + size_of_val(&*self.tags) + size_of_val(&*self.words)
    }

    /// Bytes of the values, and of the heads of undo chains.
    pub(crate) fn bytes(&self) -> (usize, usize) {
        (self.value_bytes(), self.heads.get().map_or(0, |heads| size_of_val(&**heads)))
    }

    #[inline]
    fn in_place(&self, at: usize) -> RawCell {
        // Acquire: see the module's protocol; the head is looked at again after these loads.
        RawCell { tag: self.tags[at].load(Ordering::Acquire), word: self.words[at].load(Ordering::Acquire) }
    }

    /// Stores a value that no other thread can see yet: when loading in bulk, or for a user's id, which is
    /// written before its element begins and never changes.
    pub(crate) fn set_in_place(&self, at: usize, cell: RawCell) {
        self.words[at].store(cell.word, Ordering::Release);
        self.tags[at].store(cell.tag, Ordering::Release);
    }

    /// The only version of a cell that is never updated.
    #[inline]
    pub(crate) fn get_constant(&self, at: usize) -> RawCell {
        self.in_place(at)
    }

    /// Starts loading what [`Column::read`] needs.
    #[inline]
    pub(crate) fn prefetch(&self, at: usize) {
        crate::prefetch::prefetch(&self.tags[at]);
        crate::prefetch::prefetch(&self.words[at]);
        if let Some(heads) = self.heads.get() {
            crate::prefetch::prefetch(&heads[at]);
        }
    }

    /// The value the snapshot sees.
    #[inline]
    pub(crate) fn read(&self, at: usize, snapshot: &Snapshot<'_>, pool: &UndoPool) -> RawCell {
        loop {
            let Some(heads) = self.heads.get() else {
                let cell = self.in_place(at);
                if self.heads.get().is_none() {
                    return cell;
                }
                continue;
            };
            let head = heads[at].load(Ordering::Acquire);
            let seen = match head {
                0 => Some(self.in_place(at)),
                _ => self.read_chain(at, head, snapshot, pool),
            };
            match seen {
                Some(cell) if heads[at].load(Ordering::Acquire) == head => return cell,
                _ => spin_loop(),
            }
        }
    }

    /// The cells, as long as nobody has updated any of them: then the values in place are what every snapshot sees.
    #[inline]
    pub(crate) fn plain(&self) -> Option<Plain<'_>> {
        self.heads.get().is_none().then_some(Plain { column: self })
    }

    /// As [`Column::read`], from a head that is not 0; `None` when a rollback came between.
    fn read_chain(&self, at: usize, head: u64, snapshot: &Snapshot<'_>, pool: &UndoPool) -> Option<RawCell> {
        let newest = record(pool, head);
        let begin = newest.begin.load(Ordering::Acquire);
        if happened(begin, snapshot) {
            let cell = self.in_place(at);
            return still_happened(begin, snapshot).then_some(cell);
        }
        let mut current = newest;
        loop {
            let (old, next) = (current.old(), current.next());
            if next == 0 {
                break Some(old);
            }
            current = record(pool, next);
            if happened(current.begin.load(Ordering::Acquire), snapshot) {
                // A rollback gives begins away newest first: if it made this one true, it changed the
                // head's before, and `old` may be a value that was rolled back.
                break (newest.begin.load(Ordering::Acquire) == begin || claimed_by(begin).is_none()).then_some(old);
            }
        }
    }

    fn heads(&self, memory: &Memory) -> &[AtomicU64] {
        self.heads.get_or_init(|| {
            let heads: Box<[AtomicU64]> = self.tags.iter().map(|_| AtomicU64::new(0)).collect();
            memory.add(RecordKind::Undo, size_of_val(&*heads));
            heads
        })
    }

    fn head(&self, at: usize) -> u64 {
        self.heads.get().map_or(0, |heads| heads[at].load(Ordering::Acquire))
    }

    /// Whether another transaction has written the cell in a way the snapshot does not see.
    pub(crate) fn is_contested(&self, at: usize, snapshot: &Snapshot<'_>, pool: &UndoPool) -> bool {
        match self.head(at) {
            0 => false,
            head => contested(record(pool, head).begin.load(Ordering::Acquire), snapshot),
        }
    }

    /// Writes a new value; see the module's protocol.
    pub(crate) fn write(
        &self,
        at: usize,
        cell: RawCell,
        stamp: &WriteStamp<'_>,
        pool: &UndoPool,
        memory: &Memory,
    ) -> Result<Written, Contested> {
        loop {
            let head = self.head(at);
            let begin = match head {
                0 => BASE_TS,
                _ => record(pool, head).begin.load(Ordering::Acquire),
            };
            if contested(begin, stamp.snapshot) {
                return Err(Contested);
            }
            let unseen = begin == stamp.claim || (head == 0 && stamp.fresh_element);
            let written = match unseen {
                true => Written::InPlace(self.in_place(at)),
                false => match self.link(at, head, stamp, pool, memory) {
                    Some(undo) => Written::Undo(undo),
                    // Another writer came first, and the next look says so; or a collector has cut the chain.
                    None => continue,
                },
            };
            self.set_in_place(at, cell);
            return Ok(written);
        }
    }

    /// Links a record with the value in place in front of `head`; `None` when the head has changed.
    fn link(&self, at: usize, head: u64, stamp: &WriteStamp<'_>, pool: &UndoPool, memory: &Memory) -> Option<u64> {
        // The value in place belongs to `head`: if it did not any more, the compare-and-swap would fail.
        let old = self.in_place(at);
        let (index, undo) = pool.allocate(memory);
        undo.old_tag.store(old.tag, Ordering::Relaxed);
        undo.old_word.store(old.word, Ordering::Relaxed);
        undo.next.store(head, Ordering::Relaxed);
        undo.begin.store(stamp.claim, Ordering::Relaxed);
        undo.state.store(LINKED, Ordering::Relaxed);
        // Release publishes the record; its partner is every Acquire load of a head.
        let linked = self.heads(memory)[at].compare_exchange(head, index, Ordering::AcqRel, Ordering::Acquire);
        if linked.is_err() {
            // Nobody has seen the record.
            pool.free(index);
        }
        linked.ok().map(|_| index)
    }

    /// Cuts off what no snapshot at or above `oldest` reads any more, and calls `each` with the numbers of the
    /// records cut off. One thread at a time cuts in a tablet (`reclaim`).
    pub(crate) fn cut(&self, at: usize, oldest: u64, pool: &UndoPool, each: impl FnMut(u64)) {
        let Some(heads) = self.heads.get() else { return };
        loop {
            let head = heads[at].load(Ordering::Acquire);
            if head == 0 {
                return;
            }
            let newest = record(pool, head);
            if newest.begin.load(Ordering::Acquire) > oldest {
                return cut_behind(newest, oldest, pool, each);
            }
            if is_waiting(head, pool) {
                return;
            }
            // Everybody sees the value in place. The exchange fails when a writer links a record before us.
            if heads[at].compare_exchange(head, 0, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return each_record(head, pool, each);
            }
        }
    }

    /// Forgets the value and the versions of a cell whose element is gone for everybody; calls `each` with the
    /// records that are cut off, and returns the value.
    pub(crate) fn clear(&self, at: usize, pool: &UndoPool, each: impl FnMut(u64)) -> RawCell {
        let cell = self.in_place(at);
        self.set_in_place(at, RawCell::ABSENT);
        if let Some(heads) = self.heads.get() {
            each_record(heads[at].swap(0, Ordering::AcqRel), pool, each);
        }
        cell
    }

    /// The older value that a record cut off takes with it; absent where it is in place again.
    pub(crate) fn old_value(index: u64, pool: &UndoPool) -> RawCell {
        let undo = record(pool, index);
        if undo.state.load(Ordering::Relaxed) == LINKED { undo.old() } else { RawCell::ABSENT }
    }

    /// Says that the readers of the time when a record was rolled back are gone: it may be cut off.
    pub(crate) fn settle(index: u64, pool: &UndoPool) {
        record(pool, index).state.store(SETTLED, Ordering::Relaxed);
    }

    /// The newest value, whoever wrote it: for the transaction that holds the claim on it.
    pub(crate) fn newest(&self, at: usize) -> RawCell {
        self.in_place(at)
    }

    /// The value that a record's writer replaced.
    pub(crate) fn replaced(index: u64, pool: &UndoPool) -> RawCell {
        record(pool, index).old()
    }

    /// Every version of a cell with its begin word, newest first. Not consistent while the cell is written:
    /// for building indexes and looking for other users of a unique value, which tolerate both a version
    /// too many and one that its writer is still going to announce.
    pub(crate) fn each_version(&self, at: usize, pool: &UndoPool, mut each: impl FnMut(u64, RawCell)) {
        let mut index = self.head(at);
        let mut cell = self.in_place(at);
        while index != 0 {
            let undo = record(pool, index);
            let begin = undo.begin.load(Ordering::Acquire);
            // What a rollback took back is no version; the one that is in place again comes at its own turn.
            if undo.state.load(Ordering::Relaxed) == LINKED {
                each(begin, cell);
            }
            (cell, index) = (undo.old(), undo.next());
        }
        each(BASE_TS, cell);
    }

    /// First part of a rollback: puts the older value back in place, and returns the one that was there.
    pub(crate) fn restore(&self, at: usize, index: u64, pool: &UndoPool) -> RawCell {
        let undone = self.in_place(at);
        self.set_in_place(at, record(pool, index).old());
        undone
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
            let begin = older.begin.load(Ordering::Acquire);
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
}

/// Cuts behind the last record that a snapshot at or above `oldest` may look past: the next one's begin is what
/// everybody stops at, and without it they stop at the end of the chain, which says the same.
fn cut_behind(newest: &UndoRecord, oldest: u64, pool: &UndoPool, each: impl FnMut(u64)) {
    let mut current = newest;
    loop {
        let next = current.next();
        if next == 0 {
            return;
        }
        let following = record(pool, next);
        if following.begin.load(Ordering::Acquire) <= oldest {
            if is_waiting(next, pool) {
                return;
            }
            current.next.store(0, Ordering::Relaxed);
            return each_record(next, pool, each);
        }
        current = following;
    }
}

/// Whether a record from this one on was rolled back just now. Its collector comes back for the chain then.
fn is_waiting(mut index: u64, pool: &UndoPool) -> bool {
    while index != 0 {
        let undo = record(pool, index);
        if undo.state.load(Ordering::Relaxed) == ROLLED_BACK {
            return true;
        }
        index = undo.next();
    }
    false
}

/// Calls `each` with the numbers of a chain that was cut off.
fn each_record(mut index: u64, pool: &UndoPool, mut each: impl FnMut(u64)) {
    while index != 0 {
        let next = record(pool, index).next();
        each(index);
        index = next;
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::version::claim;

    fn cell(word: u64) -> RawCell {
        RawCell { tag: 5, word }
    }

    struct Fixture {
        column: Column,
        pool: UndoPool,
        memory: Memory,
    }

    impl Fixture {
        fn new() -> Self {
            let memory = Memory::new(u64::MAX);
            Fixture { column: Column::new(4, &memory), pool: UndoPool::new(RecordKind::Undo), memory }
        }

        fn write(&self, word: u64, txn: u64, statement: u16, begin_ts: u64) -> Result<Written, Contested> {
            let snapshot = Snapshot::new(begin_ts, txn, 0).with_all_own_writes();
            let stamp = WriteStamp { snapshot: &snapshot, claim: claim(txn, statement), fresh_element: false };
            self.column.write(1, cell(word), &stamp, &self.pool, &self.memory)
        }

        fn read(&self, begin_ts: u64) -> RawCell {
            self.column.read(1, &Snapshot::committed(begin_ts), &self.pool)
        }
    }

    #[test]
    fn each_snapshot_reads_its_version() {
        let f = Fixture::new();
        for ts in [3, 6, 9] {
            let Ok(Written::Undo(undo)) = f.write(ts * 10, ts, 1, ts - 1) else { panic!("no conflict expected") };
            assert_ne!(f.read(100), cell(ts * 10), "a claim is not seen");
            Column::stamp(undo, ts, &f.pool);
        }
        assert_eq!(f.read(2), RawCell::ABSENT);
        assert_eq!(
            (f.read(3), f.read(5), f.read(6), f.read(8), f.read(9)),
            (cell(30), cell(30), cell(60), cell(60), cell(90))
        );
    }

    #[test]
    fn the_first_updater_wins() {
        let f = Fixture::new();
        let Ok(Written::Undo(undo)) = f.write(1, 1, 1, 0) else { panic!() };
        assert_eq!(f.write(2, 2, 1, 0), Err(Contested));
        Column::stamp(undo, 5, &f.pool);
        assert_eq!(f.write(2, 2, 1, 4), Err(Contested), "committed after its begin");
        assert!(f.write(2, 2, 1, 5).is_ok());
    }

    #[test]
    fn a_statement_sees_the_finished_ones_and_overwrites_itself() {
        let f = Fixture::new();
        assert!(matches!(f.write(1, 1, 1, 0), Ok(Written::Undo(_))));
        assert_eq!(f.write(2, 1, 1, 0), Ok(Written::InPlace(cell(1))));
        assert!(matches!(f.write(3, 1, 2, 0), Ok(Written::Undo(_))));
        let own = |statement| f.column.read(1, &Snapshot::new(0, 1, statement), &f.pool);
        assert_eq!((own(0), own(1), own(2)), (RawCell::ABSENT, cell(2), cell(3)));
    }

    #[test]
    fn a_cut_takes_what_no_snapshot_reads() {
        let f = Fixture::new();
        for ts in [3, 6, 9] {
            let Ok(Written::Undo(undo)) = f.write(ts * 10, ts, 1, ts - 1) else { panic!("no conflict expected") };
            Column::stamp(undo, ts, &f.pool);
        }
        let cut = |oldest| {
            let mut gone = Vec::new();
            f.column.cut(1, oldest, &f.pool, |record| gone.push(record));
            gone
        };
        assert_eq!(cut(2), [0; 0]);
        assert_eq!(cut(4), [1], "the first version is read up to 3 only, where its successor begins");
        assert_eq!((f.read(4), f.read(6), f.read(9)), (cell(30), cell(60), cell(90)));
        let Ok(Written::Undo(running)) = f.write(7, 12, 1, 9) else { panic!() };
        assert_eq!(cut(9), [3, 2], "a claim keeps its own record only");
        assert_eq!(f.read(9), cell(90));
        f.column.restore(1, running, &f.pool);
        Column::forget(running, 12, &f.pool);
        assert_eq!(cut(9), [0; 0], "readers of the rollback may be about");
        Column::settle(running, &f.pool);
        assert_eq!(Column::old_value(running, &f.pool), RawCell::ABSENT);
        assert_eq!((cut(9), f.read(9)), (vec![running], cell(90)));
        assert_eq!((f.column.clear(1, &f.pool, |_| panic!("no chain")), f.read(9)), (cell(90), RawCell::ABSENT));
    }

    #[test]
    fn a_rollback_of_several_versions_leaves_the_oldest() {
        let f = Fixture::new();
        let Ok(Written::Undo(base)) = f.write(7, 1, 1, 0) else { panic!() };
        Column::stamp(base, 4, &f.pool);
        let mut undone = Vec::new();
        for statement in 1..4 {
            let Ok(Written::Undo(undo)) = f.write(u64::from(statement), 2, statement, 4) else { panic!() };
            undone.push(undo);
        }
        let values = undone.iter().rev().map(|&undo| f.column.restore(1, undo, &f.pool).word);
        assert!(values.eq([3, 2, 1]));
        assert_eq!((f.read(3), f.read(4)), (RawCell::ABSENT, cell(7)));
        for &undo in undone.iter().rev() {
            Column::forget(undo, 2, &f.pool);
            assert_eq!((f.read(3), f.read(4)), (RawCell::ABSENT, cell(7)));
        }
        assert!(matches!(f.write(8, 3, 1, 4), Ok(Written::Undo(_))), "the cell is free again");
    }
}
