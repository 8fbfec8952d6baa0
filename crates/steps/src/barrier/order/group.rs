//! The rows of one group that a thread of an `order()` holds, and how it drops those beyond a limit.

use mangrove_flow::{BATCH_ROWS, Batch as _, Cursor, GroupId, Output, QueryControl, TagSet};
use mangrove_graph::{Result, Value};

use super::runs::{Block, Criteria, Merge, Run, merge_all};
use super::selection::Selection;
use super::sorter::{RowSorter, SortedRows};
use super::waves::WaveMerge;
use crate::rows::held::are_worth_a_pass;
use crate::rows::{Rows, Tags};
use crate::values::element_order::{ElementIds, ElementOrder};

/// Rows of a run: about as many as are sorted in half a millisecond.
const RUN_ROWS: usize = 1 << 13;

/// Bytes of rows that are sorted even if they are fewer.
const RUN_BYTES: u64 = 1 << 20;

/// The largest limit whose rows are found without sorting, in one call.
const SELECTED_MAX: usize = RUN_ROWS;

/// The rows of one group that a thread holds.
#[derive(Default)]
pub(super) struct SortedGroup {
    /// Rows that are not in a run yet, and the bytes charged for them.
    pub fresh: Rows,
    pub fresh_bytes: u64,
    /// With a small limit: the first of the fresh rows.
    selection: Selection,
    /// True if there were elements among the keys of the fresh rows.
    has_ids: bool,
    pub runs: Vec<Run>,
    /// The ids of the elements among the keys, and the bytes charged for them.
    ids: ElementIds,
    ids_bytes: u64,
    /// With a limit: the rows and bytes that were left when rows were dropped last.
    kept: usize,
    kept_bytes: u64,
    /// No row whose first key does not pass this one is needed: the first key of the last kept row, if the group has one
    /// instance and enough rows.
    pub bar: Option<Value>,
    /// The instances that were cancelled since rows of cancelled instances were dropped.
    cancelled: usize,
    /// After the group has ended: the merge of its runs.
    pub merge: Option<GroupMerge>,
    /// After the group has ended, if no rows are in runs and they are not many: the fresh rows that leave, in order, and how many
    /// have left.
    leaving: Option<(Vec<u32>, usize)>,
}

/// The merge of the runs of a group.
pub(super) enum GroupMerge {
    /// The home merges.
    Alone(Merge),
    /// Threads merge parts.
    Waves(WaveMerge),
}

impl SortedGroup {
    /// Returns true if the fresh rows are enough for a run, or so many that rows beyond the limit must be dropped.
    pub fn is_full(&self, sorter: &RowSorter) -> bool {
        match (sorter.limit, sorter.shuffles()) {
            (None, false) => self.fresh.len() >= RUN_ROWS || self.fresh_bytes >= RUN_BYTES,
            (None, true) => false,
            (Some(limit), false) => {
                let mut enough = BATCH_ROWS.max(self.kept / 2);
                if self.kept == 0 && self.fresh.tags == Tags::One {
                    // Without a bar, all keys of the next message are read. The first rows set a good one if half of them
                    // are dropped.
                    let twice = usize::try_from(limit.saturating_mul(2)).unwrap_or(usize::MAX);
                    enough = enough.min(twice.max(BATCH_ROWS / 2));
                }
                let looked_at = self.selection.looked_at();
                let old_bytes = if looked_at > 0 { self.kept_bytes } else { 0 };
                self.fresh.len() - looked_at > enough
                    || self.fresh_bytes.saturating_sub(old_bytes) > RUN_BYTES.max(self.kept_bytes / 2)
            }
            // The kept rows are among the fresh ones: they are shuffled anew.
            (Some(_), true) => self.fresh.len() > BATCH_ROWS.max(2 * self.kept),
        }
    }

    /// Makes a run of the fresh rows.
    pub fn add_run(&mut self, sorter: &mut RowSorter, out: &Output<'_, Rows>) -> Result<()> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        self.end_selection(out.control());
        let sorted = self.sort_fresh(sorter, out)?;
        self.runs.push(Run::new(std::mem::take(&mut self.fresh), sorted, out.control())?);
        out.control().release(std::mem::take(&mut self.fresh_bytes));
        Ok(())
    }

    /// Returns the fresh rows in order, and keeps the ids of the elements among their keys.
    fn sort_fresh(&mut self, sorter: &mut RowSorter, out: &Output<'_, Rows>) -> Result<SortedRows> {
        self.add_fresh_ids(out)?;
        sorter.sort(&self.fresh, &self.ids, &*out.context().view, out.control())
    }

    /// Keeps the ids of the elements among the keys of the fresh rows.
    fn add_fresh_ids(&mut self, out: &Output<'_, Rows>) -> Result<()> {
        self.add_ids_from(0, out)
    }

    /// Keeps the ids of the elements among the keys of the fresh rows from this one on.
    fn add_ids_from(&mut self, row: usize, out: &Output<'_, Rows>) -> Result<()> {
        let (view, control) = (&*out.context().view, out.control());
        self.ids.add(self.fresh.computed.iter().flat_map(|column| &column[row..]).flatten(), view, control)?;
        control.charge(self.ids.bytes() - self.ids_bytes)?;
        self.ids_bytes = self.ids.bytes();
        Ok(())
    }

    /// Finds the first of the fresh rows without sorting them. Returns false if that is not possible, or the limit is so large
    /// that it would take long.
    fn select(&mut self, sorter: &RowSorter, out: &Output<'_, Rows>) -> Result<bool> {
        let limit = sorter.limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit <= SELECTED_MAX);
        let Some(limit) = limit.filter(|_| self.runs.is_empty() && !sorter.shuffles()) else { return Ok(false) };
        let (view, control) = (&*out.context().view, out.control());
        control.check()?;
        let looked_at = self.selection.looked_at();
        // Before the ids, which a sort would read again.
        let Some(ranks) = sorter.ranks(&self.fresh, looked_at) else { return Ok(false) };
        // The ids of rows that were looked at are not kept.
        self.add_ids_from(if self.has_ids { 0 } else { looked_at }, out)?;
        self.has_ids |= !self.ids.is_empty();
        let elements = ElementOrder::new(view, &self.ids);
        let is_possible = self.selection.look(sorter, &elements, &self.fresh, ranks, limit);
        self.drop_ids(control);
        if let Some(last) = self.selection.last().filter(|_| is_possible) {
            let bar = self.fresh.computed_value(0, last).filter(|bar| is_plain(bar)).cloned();
            self.take_bar(bar.as_ref(), sorter);
            let are_many = self.selection.dropped() > 2 * self.selection.len().max(BATCH_ROWS);
            if self.has_ids || are_many || self.fresh_bytes > RUN_BYTES {
                self.drop_dropped(control);
            }
        }
        (self.kept, self.kept_bytes) = (self.selection.len(), self.fresh_bytes);
        Ok(is_possible)
    }

    /// Takes those rows out of the fresh ones that the selection has dropped, and releases their charge.
    fn drop_dropped(&mut self, control: &QueryControl) {
        if self.selection.take_out(&mut self.fresh) {
            let bytes = self.fresh.bytes() as u64;
            control.release(self.fresh_bytes.saturating_sub(bytes));
            self.fresh_bytes = self.fresh_bytes.min(bytes);
        }
    }

    /// Makes all fresh rows new ones.
    fn end_selection(&mut self, control: &QueryControl) {
        self.drop_dropped(control);
        self.selection = Selection::default();
    }

    /// Drops the ids of elements.
    fn drop_ids(&mut self, control: &QueryControl) {
        control.release(std::mem::take(&mut self.ids_bytes));
        self.ids = ElementIds::default();
    }

    /// Drops the rows beyond the limit.
    pub fn cut(&mut self, sorter: &mut RowSorter, out: &Output<'_, Rows>) -> Result<()> {
        if self.select(sorter, out)? {
            return Ok(());
        }
        let (view, control) = (&*out.context().view, out.control());
        self.add_run(sorter, out)?;
        let elements = ElementOrder::new(view, &self.ids);
        let run = merge_all(std::mem::take(&mut self.runs), Criteria { sorter, elements }, control)?;
        self.kept = run.blocks.iter().map(Block::len).sum();
        self.kept_bytes = run.blocks.iter().map(|block| block.charged).sum();
        self.bar = bar(&run, sorter);
        if sorter.shuffles() {
            for block in run.blocks {
                self.fresh_bytes += block.charged;
                self.fresh.append(block.into_rows());
            }
        } else {
            self.runs.push(run);
        }
        // The ids of dropped rows are dropped, too.
        if self.ids_bytes > 0 {
            self.drop_ids(control);
            let kept = self.runs.iter().flat_map(|run| &run.blocks).flat_map(|block| &block.rows().0.computed);
            self.ids.add(kept.flatten().flatten(), view, control)?;
            self.ids_bytes = self.ids.bytes();
            control.charge(self.ids_bytes)?;
        }
        Ok(())
    }

    /// Takes a bar over that was found, if it is lower than the one before: no row that does not pass is among the first
    /// of all threads' rows.
    pub fn take_bar(&mut self, found: Option<&Value>, sorter: &RowSorter) {
        if let Some(found) = found.filter(|found| self.bar.as_ref().is_none_or(|own| sorter.passes(found, own))) {
            self.bar = Some(found.clone());
        }
    }

    /// Returns true if a thread should wait until it can drop rows: it has gathered many, or it has dropped none yet, so
    /// it reads the keys of all rows.
    pub fn must_drop(&self) -> bool {
        self.kept == 0 || self.fresh.len() > 4 * BATCH_ROWS.max(self.kept)
    }

    /// Takes the bar of rows over that have been cut, and their number.
    pub fn take_cut(&mut self, cut: &SortedGroup, sorter: &RowSorter) {
        (self.kept, self.kept_bytes) = (cut.kept, cut.kept_bytes);
        self.take_bar(cut.bar.as_ref(), sorter);
    }

    /// Takes the rows out.
    pub fn take_rows(&mut self, control: &QueryControl) -> SortedGroup {
        self.end_selection(control);
        SortedGroup {
            fresh: std::mem::take(&mut self.fresh),
            fresh_bytes: std::mem::take(&mut self.fresh_bytes),
            runs: std::mem::take(&mut self.runs),
            ids: std::mem::take(&mut self.ids),
            ids_bytes: std::mem::take(&mut self.ids_bytes),
            ..SortedGroup::default()
        }
    }

    /// Takes the rows of a group over that another thread has held.
    pub fn join(&mut self, other: SortedGroup) {
        self.fresh.append(other.fresh);
        self.fresh_bytes += other.fresh_bytes;
        self.runs.extend(other.runs);
        self.ids.join(other.ids);
        self.ids_bytes += other.ids_bytes;
    }

    /// Prepares the rows of a group that has ended to be taken out in order. `is_shared`: several threads may merge them.
    pub fn end(&mut self, sorter: &mut RowSorter, is_shared: bool, out: &Output<'_, Rows>) -> Result<()> {
        if sorter.shuffles() && sorter.limit.is_none() {
            self.leaving = Some((self.sort_fresh(sorter, out)?.order, 0));
            return Ok(());
        }
        // Fewer rows are sorted then.
        self.select(sorter, out)?;
        if let Some(limit) = sorter.limit.filter(|_| self.runs.is_empty() && self.fresh.tags == Tags::One) {
            self.end_selection(out.control());
            let mut order = self.sort_fresh(sorter, out)?.order;
            let mut traversers = 0_u64;
            let is_beyond = |row: &u32| {
                let before = traversers;
                traversers = traversers.saturating_add(self.fresh.bulk(*row as usize));
                before >= limit
            };
            order.truncate(order.iter().position(is_beyond).unwrap_or(order.len()));
            self.leaving = Some((order, 0));
            return Ok(());
        }
        self.add_run(sorter, out)?;
        if is_shared && sorter.limit.is_none() && WaveMerge::is_worth(&self.runs) && !out.reads_late() {
            let (runs, ids) = (std::mem::take(&mut self.runs), std::mem::take(&mut self.ids));
            self.merge = Some(GroupMerge::Waves(WaveMerge::new(runs, ids, sorter, out)?));
        } else if self.runs.len() > 1 || sorter.limit.is_some() {
            let elements = ElementOrder::new(&*out.context().view, &self.ids);
            let merge = Merge::new(std::mem::take(&mut self.runs), Criteria { sorter, elements }).without_keys();
            self.merge = Some(GroupMerge::Alone(merge));
        }
        Ok(())
    }

    /// Takes the next rows in order, and returns true if rows are left.
    pub fn take_next(
        &mut self,
        sorter: &RowSorter,
        group: GroupId,
        out: &mut Output<'_, Rows>,
    ) -> Result<(Vec<Rows>, bool)> {
        match &mut self.merge {
            Some(GroupMerge::Waves(merge)) => return Ok(merge.next(group, out)),
            Some(GroupMerge::Alone(merge)) => {
                let elements = ElementOrder::new(&*out.context().view, &self.ids);
                let rows = merge.next(Criteria { sorter, elements }, out.control())?.rows;
                return Ok((vec![rows], !merge.is_empty()));
            }
            None => {}
        }
        if let Some((order, gone)) = &mut self.leaving {
            let next = &order[*gone..order.len().min(*gone + BATCH_ROWS)];
            *gone += next.len();
            let rows = self.fresh.derive(next, self.fresh.objects.gather(next));
            return Ok((vec![rows], *gone < order.len()));
        }
        let block = self.runs.last_mut().and_then(|run| run.blocks.pop_front());
        let is_left = self.runs.last().is_some_and(|run| !run.blocks.is_empty());
        let rows = block.map(|block| {
            out.control().release(block.charged);
            block.into_rows()
        });
        Ok((rows.into_iter().collect(), is_left))
    }

    /// Drops the rows of cancelled instances (FLOW-41), if enough were cancelled. After the end of the group they leave,
    /// and are dropped downstream.
    pub fn drop_cancelled(&mut self, count: usize, tags: &TagSet, out: &Output<'_, Rows>) {
        self.cancelled += count;
        let blocks = self.runs.iter().flat_map(|run| &run.blocks);
        let rows = self.fresh.len() + blocks.map(Block::len).sum::<usize>();
        if self.merge.is_some() || self.leaving.is_some() || !are_worth_a_pass(self.cancelled, rows) {
            return;
        }
        self.cancelled = 0;
        self.end_selection(out.control());
        let before = self.fresh.len();
        self.fresh.discard(tags, &mut Cursor::default());
        if self.fresh.len() < before {
            let bytes = (self.fresh.bytes() as u64).min(self.fresh_bytes);
            out.control().release(self.fresh_bytes - bytes);
            self.fresh_bytes = bytes;
        }
        self.runs.iter_mut().for_each(|run| run.drop_tags(tags, out.control()));
        self.runs.retain(|run| !run.blocks.is_empty());
    }

    /// Releases the charge of what is left.
    pub fn close(self, out: &Output<'_, Rows>) {
        out.control().release(self.fresh_bytes + self.ids_bytes);
        self.runs.iter().flat_map(|run| &run.blocks).for_each(|block| out.control().release(block.charged));
        match self.merge {
            Some(GroupMerge::Alone(merge)) => merge.close(out.control()),
            Some(GroupMerge::Waves(merge)) => merge.close(out.control()),
            None => {}
        }
    }
}

/// Returns the bar that the last row of cut rows sets, if there are enough of them.
fn bar(run: &Run, sorter: &RowSorter) -> Option<Value> {
    let (rows, range) = run.blocks.back()?.rows();
    let bulks = |block: &Block| {
        let (rows, range) = block.rows();
        range.map(|row| rows.bulk(row)).fold(0, u64::saturating_add)
    };
    let is_enough = run.blocks.iter().map(bulks).fold(0, u64::saturating_add) >= sorter.limit?;
    let bar = rows.computed_value(0, range.end.checked_sub(1)?)?;
    (rows.tags == Tags::One && is_enough && is_plain(bar) && !sorter.shuffles()).then(|| bar.clone())
}

/// Returns true for a key that rows may be compared with by its value alone. Elements and properties among themselves are
/// compared by more.
fn is_plain(key: &Value) -> bool {
    !matches!(key, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_))
}
