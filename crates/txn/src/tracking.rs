//! Reads of a serializable transaction: they fill the read set, and pre-read newer versions.
//!
//! If no timestamp was drawn since the begin, a batch is read at the begin, by a read that notices newer versions
//! (`mangrove_store::Watch`). Mostly there are none. If timestamps were drawn, or newer versions were noticed, and no
//! item of the batch was read before, the batch is read as a whole at one later timestamp: the last one published.
//! Otherwise it is read in portions, each in one of these two ways, and at last row by row. (Lists may end in the
//! middle of a batch; `lists` reads them.)
//!
//! A row finds its read timestamp so:
//!
//! | the row's items | read at |
//! |---|---|
//! | one was read at the begin | the begin, so that reads are repeatable |
//! | one was pre-read | the timestamp of that pre-read |
//! | none was read | the last published timestamp `T`; it counts as a read at the begin if nothing newer was used |
//!
//! At `T` a version committed up to `T` has happened. A claim has happened if its owner had entered validation up to
//! `T`; this transaction then depends on the owner's commit. A transaction that drew a timestamp had finished writing,
//! so everything read at `T` is whole, lists too. Scans, counts and ranges are read at the begin only: they are long,
//! and rarely repeated.
//!
//! Several threads may read in one transaction. If two of them read an item at two timestamps, TXN-11 (`reads`)
//! applies.

use std::ops::{Deref, Range};

use mangrove_graph::{
    EdgeId, ElementId, ElementKind, Expansion, KeyId, LabelFilter, MemoryBudget, Numbers, PropertyRow, Result,
    ValueRows, VertexId,
};
use mangrove_store::{StoreView, Watch};

use crate::access_set::{Item, Predicate};
use crate::reads::{KnownReadTs, ReadMark, ReadSet};
use crate::status::ClaimStatusAt;
use crate::sync::between_steps;
use crate::transaction::{PinnedView, Tracking, Transaction};

/// If newer versions were met in a batch, portions of this many rows are tried at the begin again. Mostly a few rows
/// have newer versions, and a row read alone costs about ten times a row of a batch.
const PORTION_ROWS: usize = 32;

/// How often rows are pre-read together before they are read one by one. A claim that is replaced during the read makes
/// it worthless, and with many rows that may happen again.
pub(crate) const ATTEMPTS_LATER: usize = 2;

/// Columns that a batch read appends to, and from which it can take rows back.
pub(crate) trait BatchOutput {
    /// The length before a read.
    fn mark(&self) -> usize;
    /// Removes everything after a mark.
    fn take_back(&mut self, mark: usize);
    /// Adds `by` to the row numbers after a mark.
    fn shift_rows(&mut self, _mark: usize, _by: u32) {}
}

macro_rules! plain_output {
    ($($item:ty),*) => { $(
        impl BatchOutput for Vec<$item> {
            fn mark(&self) -> usize { self.len() }
            fn take_back(&mut self, mark: usize) { self.truncate(mark); }
        }
    )* };
}
plain_output!(Option<VertexId>, Option<EdgeId>, u64, bool);

impl BatchOutput for ValueRows {
    fn mark(&self) -> usize {
        self.row.len()
    }
    fn take_back(&mut self, mark: usize) {
        self.row.truncate(mark);
        self.value.truncate(mark);
    }
    fn shift_rows(&mut self, mark: usize, by: u32) {
        self.row[mark..].iter_mut().for_each(|row| *row += by);
    }
}

impl BatchOutput for Vec<PropertyRow> {
    fn mark(&self) -> usize {
        self.len()
    }
    fn take_back(&mut self, mark: usize) {
        self.truncate(mark);
    }
    fn shift_rows(&mut self, mark: usize, by: u32) {
        self[mark..].iter_mut().for_each(|row| row.row += by);
    }
}

impl BatchOutput for Expansion {
    fn mark(&self) -> usize {
        self.len()
    }
    fn take_back(&mut self, mark: usize) {
        self.row.truncate(mark);
        self.neighbor.truncate(mark);
        self.edge.truncate(mark);
    }
}

impl Tracking {
    /// Locks the read set for the begin of a read. Draws the memory of the reads before this one.
    pub(crate) fn begin_read(&self, budget: &MemoryBudget) -> Result<impl Deref<Target = ReadSet>> {
        let mut reads = self.reads.lock();
        reads.draw(budget)?;
        Ok(reads)
    }

    /// Returns the mark for a read of items none of which was read before; `None` if one was.
    pub(crate) fn begin_new(&self, items: &[Item], budget: &MemoryBudget) -> Result<Option<ReadMark>> {
        let reads = self.begin_read(budget)?;
        Ok(reads.are_new(items).then(|| reads.mark()))
    }
}

/// Takes the items of a row, one by one.
pub(crate) type AddItem<'a> = &'a mut dyn FnMut(Item);

impl Transaction {
    /// Reads a batch of rows. `items` names the items a row is read from. `read` reads a range of rows and numbers them
    /// from 0.
    pub(crate) fn read_batch<O: BatchOutput>(
        &self,
        rows: usize,
        out: &mut O,
        items: impl Fn(usize, AddItem<'_>),
        read: impl Fn(&StoreView<'_>, Range<usize>, &mut O) -> Result<()>,
    ) -> Result<()> {
        let Some(tracking) = self.tracking() else { return read(&*self.view()?, 0..rows, out) };
        self.check_alive()?;
        let mark = out.mark();
        let has_newer_commits = self.has_newer_commits(tracking);
        if has_newer_commits && self.read_later(tracking, 0..rows, out, &items, &read)? {
            return Ok(());
        }
        if let Some(begun) = self.read_at_begin(tracking, |view| read(view, 0..rows, out))? {
            let mut reads = tracking.reads.lock();
            reads.reserve(rows);
            (0..rows).for_each(|row| items(row, &mut |item| reads.add(item, begun)));
            return Ok(());
        }
        out.take_back(mark);
        if !has_newer_commits && self.read_later(tracking, 0..rows, out, &items, &read)? {
            return Ok(());
        }
        for start in (0..rows).step_by(PORTION_ROWS) {
            let portion = start..rows.min(start + PORTION_ROWS);
            let mark = out.mark();
            if portion.len() < rows
                && let Some(begun) = self.read_at_begin(tracking, |view| read(view, portion.clone(), out))?
            {
                out.shift_rows(mark, start as u32);
                let mut reads = tracking.reads.lock();
                portion.for_each(|row| items(row, &mut |item| reads.add(item, begun)));
                continue;
            }
            out.take_back(mark);
            if portion.len() < rows && self.read_later(tracking, portion.clone(), out, &items, &read)? {
                out.shift_rows(mark, start as u32);
                continue;
            }
            for row in portion {
                let mark = out.mark();
                self.read_row(tracking, |add| items(row, add), out, |view, out| read(view, row..row + 1, out))?;
                out.shift_rows(mark, row as u32);
            }
        }
        Ok(())
    }

    /// Returns true if timestamps were drawn since the begin. Then a batch may meet newer versions, and is pre-read at
    /// once.
    pub(crate) fn has_newer_commits(&self, tracking: &Tracking) -> bool {
        tracking.pre_reads && self.shared.recent.published() > self.begin_ts()
    }

    /// Reads at the begin. Returns the mark from before the read; `None` if the read noticed newer versions, which must
    /// be pre-read instead.
    pub(crate) fn read_at_begin(
        &self,
        tracking: &Tracking,
        read: impl FnOnce(&StoreView<'_>) -> Result<()>,
    ) -> Result<Option<ReadMark>> {
        let begun = tracking.begin_read(self.memory_budget())?.mark();
        if !tracking.pre_reads {
            read(&*self.view()?)?;
            return Ok(Some(begun));
        }
        let watch = Watch::noticing();
        read(&*self.view_at(self.snapshot().watched(&watch))?)?;
        // The read set gets the items afterwards: other threads of the transaction may read meanwhile.
        between_steps();
        Ok((!watch.met_newer()).then_some(begun))
    }

    /// Pre-reads some rows of a batch at the last published timestamp. Returns false, with nothing read, if one of
    /// their items was read before, or if claims changed under the read again and again.
    fn read_later<O: BatchOutput>(
        &self,
        tracking: &Tracking,
        rows: Range<usize>,
        out: &mut O,
        items: &impl Fn(usize, AddItem<'_>),
        read: &impl Fn(&StoreView<'_>, Range<usize>, &mut O) -> Result<()>,
    ) -> Result<bool> {
        if rows.len() < 2 {
            return Ok(false);
        }
        let mut of_rows = Vec::with_capacity(rows.len());
        rows.clone().for_each(|row| items(row, &mut |item| of_rows.push(item)));
        let Some(begun) = tracking.begin_new(&of_rows, self.memory_budget())? else { return Ok(false) };
        let (read_ts, mark) = (self.shared.recent.published(), out.mark());
        for _ in 0..ATTEMPTS_LATER {
            let status = ClaimStatusAt::new(&self.shared.status);
            let watch = Watch::reading_at(read_ts, &status);
            read(&*self.view_at(self.snapshot().watched(&watch))?, rows.clone(), out)?;
            if watch.must_repeat() {
                out.take_back(mark);
                continue;
            }
            between_steps();
            let relied_on = watch.used_newer().then(|| status.relied_on());
            self.track_as_read(tracking, &of_rows, begun, read_ts, relied_on);
            return Ok(true);
        }
        Ok(false)
    }

    /// Adds items that were not read before and were read together at a later timestamp. If the read used something
    /// newer than the begin, they are pre-reads that rely on `relied_on`. If not (`None`), they count as read at the
    /// begin.
    pub(crate) fn track_as_read(
        &self,
        tracking: &Tracking,
        items: &[Item],
        begun: ReadMark,
        read_ts: u64,
        relied_on: Option<Vec<u64>>,
    ) {
        if let Some(writers) = relied_on {
            self.track_pre_read_batch(tracking, items, read_ts, &writers);
            return;
        }
        let mut reads = tracking.reads.lock();
        reads.reserve(items.len());
        items.iter().for_each(|item| reads.add(*item, begun));
    }

    /// Reads numbers at the begin. If there are newer versions, returns false, so that the caller reads the values row
    /// by row instead.
    pub(crate) fn read_numbers(
        &self,
        items: impl Fn(AddItem<'_>),
        out: &mut Numbers,
        read: impl Fn(&StoreView<'_>, &mut Numbers) -> Result<bool>,
    ) -> Result<bool> {
        let Some(tracking) = self.tracking() else { return read(&*self.view()?, out) };
        self.check_alive()?;
        let mark = out.len();
        let mut is_uniform = false;
        let read = |view: &StoreView<'_>| {
            is_uniform = read(view, out)?;
            Ok(())
        };
        let Some(begun) = self.read_at_begin(tracking, read)? else {
            out.truncate(mark);
            return Ok(false);
        };
        let mut reads = tracking.reads.lock();
        items(&mut |item| reads.add(item, begun));
        Ok(is_uniform)
    }

    /// Reads one row, at the timestamp that the table in the module header gives.
    pub(crate) fn read_row<O: BatchOutput>(
        &self,
        tracking: &Tracking,
        items: impl Fn(AddItem<'_>),
        out: &mut O,
        mut read: impl FnMut(&StoreView<'_>, &mut O) -> Result<()>,
    ) -> Result<()> {
        let mut row_items = Vec::new();
        items(&mut |item| row_items.push(item));
        let mark = out.mark();
        let (read_before, begun) = {
            let reads = tracking.begin_read(self.memory_budget())?;
            (reads.read_ts_of(&row_items), reads.mark())
        };
        let read_ts = match read_before {
            KnownReadTs::Begin => {
                read(&*self.view_of_own(tracking)?, out)?;
                row_items.iter().for_each(|item| tracking.reads.lock().add_at_begin(*item));
                return Ok(());
            }
            KnownReadTs::Later(read_ts) => read_ts,
            KnownReadTs::Unread => self.shared.recent.published(),
        };
        loop {
            let status = ClaimStatusAt::new(&self.shared.status);
            let watch = Watch::reading_at(read_ts, &status);
            read(&*self.view_at(self.snapshot().watched(&watch))?, out)?;
            if watch.must_repeat() {
                out.take_back(mark);
                continue;
            }
            between_steps();
            if watch.used_newer() || read_before != KnownReadTs::Unread {
                self.track_pre_read(tracking, &row_items, read_ts, &status.relied_on());
            } else {
                row_items.iter().for_each(|item| tracking.reads.lock().add(*item, begun));
            }
            return Ok(());
        }
    }

    /// The view for an item that was read at the begin before: the begin, with the transaction's own writes.
    ///
    /// The begin does not show an element that is newer than it, nor a property that the transaction has set there.
    /// After such a write the latest pre-read timestamp takes the begin's place. The item still counts as read at the
    /// begin: if it has changed in between, the commit fails.
    fn view_of_own(&self, tracking: &Tracking) -> Result<PinnedView<'_>> {
        match tracking.sets_newer() {
            true => self.view_at(self.snapshot_at(tracking.reads.lock().latest())),
            false => self.view(),
        }
    }

    /// Adds the items of a scan, which reads at the begin.
    pub(crate) fn track_scan(
        &self,
        kind: ElementKind,
        labels: &LabelFilter,
        item: impl Fn(Option<mangrove_graph::LabelSetId>) -> Item,
    ) {
        let Some(tracking) = self.tracking() else { return };
        let mut reads = tracking.reads.lock();
        reads.name_labels(kind, labels);
        Item::each_label(labels, |set| reads.add_at_begin(item(set)));
    }

    /// Adds a predicate, which is read at the begin.
    pub(crate) fn track_predicate(&self, predicate: impl FnOnce() -> Predicate) {
        let Some(tracking) = self.tracking() else { return };
        let predicate = predicate();
        let mut reads = tracking.reads.lock();
        reads.name_labels(predicate.kind, &predicate.labels);
        reads.add_predicate(predicate);
    }

    /// Notes that elements are about to be chosen by label.
    pub(crate) fn track_labels(&self, kind: ElementKind, labels: &LabelFilter) {
        if let Some(tracking) = self.tracking() {
            tracking.reads.lock().name_labels(kind, labels);
        }
    }
}

/// The items of those lists of a vertex that a filter selects.
pub(crate) fn lists(vertex: VertexId, direction: mangrove_graph::Direction, labels: &LabelFilter, add: AddItem<'_>) {
    use mangrove_graph::Direction;
    for way in [Direction::Out, Direction::In] {
        if direction == way || direction == Direction::Both {
            Item::each_label(labels, |set| add(Item::list(vertex, way, set)));
        }
    }
}

/// The items of the properties of an element: of these keys, or of all.
pub(crate) fn properties_of(element: ElementId, keys: Option<&[KeyId]>, add: AddItem<'_>) {
    match keys {
        Some(keys) => keys.iter().for_each(|key| add(Item::cell(element, *key))),
        None => add(Item::cells(element)),
    }
}
