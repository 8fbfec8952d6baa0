//! Reading for a serializable transaction: what is read is kept, and newer versions are pre-read.
//!
//! Where nobody has drawn a timestamp since the begin, a batch is read at the begin, by a read that notices newer versions
//! (`mangrove_store::Watch`). Mostly there are none, and the batch's items were read at the begin. Otherwise, and where there
//! are timestamps at once, it is read as a whole at one later moment, now, if none of its items was read before; else in
//! portions, each at the begin, or as a whole at a later moment, or row by row. (Lists, which may end in the middle of a
//! batch, are in `lists`.) Each row finds its moment:
//!
//! - one of its items was read at the begin before: the begin, so that reads are repeatable;
//! - one was pre-read: the moment of then;
//! - else now, that is the last commit timestamp published. A version committed up to then has happened, a claim has
//!   if its owner had entered validation up to then; the transaction then depends on that owner's commit. If nothing
//!   newer was used after all (the claim's owner still runs), the row was read at the begin.
//!
//! Several threads may read in one transaction. What two of them read at two moments, because neither saw the other's read
//! in time, counts as read at the earlier one (`reads`): if it changed in between, the transaction does not commit.
//!
//! Whoever drew a timestamp had finished writing, so all that is read at such a moment is whole: lists too. Scans, counts
//! and ranges are read at the begin only; they are long, and rarely repeated.

use std::ops::{Deref, Range};

use mangrove_graph::{
    EdgeId, ElementId, ElementKind, Expansion, KeyId, LabelFilter, MemoryBudget, Numbers, PropertyRow, Result,
    ValueRows, VertexId,
};
use mangrove_store::access_set::{Item, Predicate};
use mangrove_store::{StoreView, Watch};

use crate::reads::{Moment, ReadMark, ReadSet};
use crate::status::StatusAt;
use crate::sync::between_steps;
use crate::transaction::{PinnedView, Tracking, Transaction};

/// Where newer versions were met in a batch, portions of this many rows are tried at the begin again: mostly there are a few
/// rows with newer versions, and a row on its own costs about ten times one of a batch.
const PORTION_ROWS: usize = 32;

/// How often rows are read together at a later moment before they are read one by one: a claim that is replaced just
/// then makes the read worthless, and with many rows that may happen again.
pub(crate) const ATTEMPTS_LATER: usize = 2;

/// Columns that a batch read appends to, and from which it can be taken back.
pub(crate) trait Output {
    /// How much there is.
    fn mark(&self) -> usize;
    /// Takes back what came after a mark.
    fn take_back(&mut self, mark: usize);
    /// Adds to the row numbers of what came after a mark.
    fn shift_rows(&mut self, _mark: usize, _by: u32) {}
}

macro_rules! plain_output {
    ($($item:ty),*) => { $(
        impl Output for Vec<$item> {
            fn mark(&self) -> usize { self.len() }
            fn take_back(&mut self, mark: usize) { self.truncate(mark); }
        }
    )* };
}
plain_output!(Option<VertexId>, Option<EdgeId>, u64, bool);

impl Output for ValueRows {
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

impl Output for Vec<PropertyRow> {
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

impl Output for Expansion {
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
    /// The read set, at the begin of a read: what was read before this one is drawn from the memory budget.
    pub(crate) fn begin_read(&self, budget: &MemoryBudget) -> Result<impl Deref<Target = ReadSet>> {
        let mut reads = self.reads.lock();
        reads.draw(budget)?;
        Ok(reads)
    }

    /// The mark for a read of items of which none was read before; `None` where one was.
    pub(crate) fn begin_new(&self, items: &[Item], budget: &MemoryBudget) -> Result<Option<ReadMark>> {
        let reads = self.begin_read(budget)?;
        Ok(reads.are_new(items).then(|| reads.mark()))
    }
}

/// Takes the items of a row.
pub(crate) type AddItem<'a> = &'a mut dyn FnMut(Item);

impl Transaction {
    /// Reads a batch of rows; `items` names what a row is read from, `read` reads a range of rows and numbers them
    /// from 0.
    pub(crate) fn read_batch<O: Output>(
        &self,
        rows: usize,
        out: &mut O,
        items: impl Fn(usize, AddItem<'_>),
        read: impl Fn(&StoreView<'_>, Range<usize>, &mut O) -> Result<()>,
    ) -> Result<()> {
        let Some(tracking) = self.tracking() else { return read(&*self.view()?, 0..rows, out) };
        self.check_alive()?;
        let mark = out.mark();
        let is_behind = self.is_behind(tracking);
        if is_behind && self.read_later(tracking, 0..rows, out, &items, &read)? {
            return Ok(());
        }
        if let Some(begun) = self.read_at_begin(tracking, |view| read(view, 0..rows, out))? {
            let mut reads = tracking.reads.lock();
            reads.reserve(rows);
            (0..rows).for_each(|row| items(row, &mut |item| reads.add(item, begun)));
            return Ok(());
        }
        out.take_back(mark);
        if !is_behind && self.read_later(tracking, 0..rows, out, &items, &read)? {
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

    /// Whether there are timestamps after the begin: then a batch may meet newer versions, and is read at a later moment at
    /// once, instead of in vain before.
    pub(crate) fn is_behind(&self, tracking: &Tracking) -> bool {
        tracking.pre_reads && self.shared.recent.published() > self.begin_ts()
    }

    /// Reads at the begin; the mark from before the read. `None` when there are newer versions that had better be read, so
    /// that this was in vain.
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
        // What was read is kept afterwards: other threads of the transaction read meanwhile.
        between_steps();
        Ok((!watch.met_newer()).then_some(begun))
    }

    /// Reads some rows of a batch at one later moment, the last timestamp published. False, with nothing read, where one
    /// of their items was read before, so that it has a moment already, or where the rows would not hold still.
    fn read_later<O: Output>(
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
        let (moment, mark) = (self.shared.recent.published(), out.mark());
        for _ in 0..ATTEMPTS_LATER {
            let status = StatusAt::new(&self.shared.status);
            let watch = Watch::reading_at(moment, &status);
            read(&*self.view_at(self.snapshot().watched(&watch))?, rows.clone(), out)?;
            if watch.must_repeat() {
                out.take_back(mark);
                continue;
            }
            between_steps();
            let relied_on = watch.used_newer().then(|| status.relied_on());
            self.track_as_read(tracking, &of_rows, begun, moment, relied_on);
            return Ok(true);
        }
        Ok(false)
    }

    /// Keeps items that were not read before, and were read together by a read at a later moment: of that moment where it
    /// used something newer than the begin, relying on these writers to commit, and of the begin where it did not.
    pub(crate) fn track_as_read(
        &self,
        tracking: &Tracking,
        items: &[Item],
        begun: ReadMark,
        moment: u64,
        relied_on: Option<Vec<u64>>,
    ) {
        if let Some(writers) = relied_on {
            self.track_batch_later(tracking, items, moment, &writers);
            return;
        }
        let mut reads = tracking.reads.lock();
        reads.reserve(items.len());
        items.iter().for_each(|item| reads.add(*item, begun));
    }

    /// Reads numbers at the begin; where there are newer versions, says that the values are to be read instead, which
    /// is done row by row.
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

    /// Reads one row at its moment; see the module.
    pub(crate) fn read_row<O: Output>(
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
            (reads.moment_of(&row_items), reads.mark())
        };
        let moment = match read_before {
            Moment::Begin => {
                read(&*self.view_of_own(tracking)?, out)?;
                row_items.iter().for_each(|item| tracking.reads.lock().add_in_spite(*item));
                return Ok(());
            }
            Moment::Later(moment) => moment,
            Moment::Any => self.shared.recent.published(),
        };
        loop {
            let status = StatusAt::new(&self.shared.status);
            let watch = Watch::reading_at(moment, &status);
            read(&*self.view_at(self.snapshot().watched(&watch))?, out)?;
            if watch.must_repeat() {
                out.take_back(mark);
                continue;
            }
            between_steps();
            if watch.used_newer() || read_before != Moment::Any {
                self.track_later(tracking, &row_items, moment, &status.relied_on());
            } else {
                row_items.iter().for_each(|item| tracking.reads.lock().add(*item, begun));
            }
            return Ok(());
        }
    }

    /// What to read again where it was read at the begin: the begin, with the transaction's own writes.
    ///
    /// The begin does not show an element that came after it, nor what the transaction has set there. Once there is such a
    /// write, the moment of the latest pre-read takes the begin's place. The item still counts as read at the begin: if it has
    /// changed in between, the commit fails.
    fn view_of_own(&self, tracking: &Tracking) -> Result<PinnedView<'_>> {
        match tracking.sets_newer() {
            true => self.view_at(self.snapshot_at(tracking.reads.lock().latest())),
            false => self.view(),
        }
    }

    /// Keeps what a scan reads at the begin.
    pub(crate) fn track_scan(
        &self,
        kind: ElementKind,
        labels: &LabelFilter,
        item: impl Fn(Option<mangrove_graph::LabelSetId>) -> Item,
    ) {
        let Some(tracking) = self.tracking() else { return };
        let mut reads = tracking.reads.lock();
        reads.name_labels(kind, labels);
        Item::each_label(labels, |set| reads.add_in_spite(item(set)));
    }

    /// Keeps a predicate read at the begin.
    pub(crate) fn track_predicate(&self, predicate: impl FnOnce() -> Predicate) {
        let Some(tracking) = self.tracking() else { return };
        let predicate = predicate();
        let mut reads = tracking.reads.lock();
        reads.name_labels(predicate.kind, &predicate.labels);
        reads.add_predicate(predicate);
    }

    /// Says that elements are about to be chosen by labels.
    pub(crate) fn track_labels(&self, kind: ElementKind, labels: &LabelFilter) {
        if let Some(tracking) = self.tracking() {
            tracking.reads.lock().name_labels(kind, labels);
        }
    }
}

/// The items of the lists of a vertex that a filter takes.
pub(crate) fn lists(vertex: VertexId, direction: mangrove_graph::Direction, labels: &LabelFilter, add: AddItem<'_>) {
    use mangrove_graph::Direction;
    for way in [Direction::Out, Direction::In] {
        if direction == way || direction == Direction::Both {
            Item::each_label(labels, |set| add(Item::list(vertex, way, set)));
        }
    }
}

/// The items of the properties of an element: of these keys, or all.
pub(crate) fn properties_of(element: ElementId, keys: Option<&[KeyId]>, add: AddItem<'_>) {
    match keys {
        Some(keys) => keys.iter().for_each(|key| add(Item::cell(element, *key))),
        None => add(Item::cells(element)),
    }
}
