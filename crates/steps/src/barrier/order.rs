//! `order()`: sorts the rows of each instance by computed columns, or by keys of their objects.
//!
//! Rows are sorted in runs of [`RUN_ROWS`] rows as they come, and the runs are merged when their group has ended, a
//! message of rows in each step ([`runs`]). With a limit, only the first rows of each instance are held: when half as
//! many new rows have come, all runs are merged into one, and the rows beyond the limit are dropped. Then the first key
//! of the last row left becomes the *bar*. A row that arrives after that and does not pass the bar cannot be among the
//! first, so it is dropped at once. Number keys are compared with the bar as an array. The sort is stable, so a row
//! whose only key equals the bar does not pass.
//!
//! If the first keys of a run have one type (integers, floats, texts), they are sorted as words ([`rank`]). Values are
//! compared only if words are equal and do not decide. A shuffle needs all rows at once, so it has one run.
//!
//! If helpers have joined the run and rows come in no order, each thread sorts runs of its own ([`PerThread`]). With a
//! limit, the first rows and the bar are those of all threads ([`tops`]). When the group has ended, the home takes the
//! runs of all threads. If there are many rows, threads merge parts of them ([`waves`]).

mod parts;
mod rank;
mod runs;
mod sorter;
mod tops;
mod waves;

use std::sync::Arc;

use mangrove_flow::{
    BATCH_ROWS, Batch as _, Cursor, GroupId, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet,
};
use mangrove_graph::{FastMap, Need, Result, Value};
use mangrove_gremlin::Order as Way;
use mangrove_plan::logical::Operand;

use crate::barrier::per_thread::PerThread;
use crate::barrier::range::position;
use crate::computed::keys::{KeyReader, KeySource, KeyValues};
use crate::context::execution::ExecutionContext;
use crate::context::random::Random;
use crate::rows::held::are_worth_a_pass;
use crate::rows::{Rows, Tags};
use crate::values::element_order::{ElementIds, ElementOrder};
use runs::{Block, Criteria, Merge, Run, merge_all};
use sorter::{RowSorter, SortedRows};
use tops::Tops;
use waves::WaveMerge;

/// Rows of a run: about as many as are sorted in half a millisecond.
const RUN_ROWS: usize = 1 << 13;

/// Bytes of rows that are sorted even if they are fewer.
const RUN_BYTES: u64 = 1 << 20;

/// Sorts the rows of each instance; with a limit, keeps only the first ones.
pub(crate) struct Order {
    /// The readers of the keys; empty if the keys are in computed columns.
    readers: Vec<KeyReader>,
    /// The operand of the limit; the sorter has its value in this run.
    limit: Option<Operand>,
    sorter: RowSorter,
    /// True if several threads may work at it.
    may_share: bool,
    groups: PerThread<SortedGroups>,
}

/// What a thread has sorted.
#[derive(Default)]
struct SortedGroups {
    by_group: FastMap<GroupId, SortedGroup>,
    /// With a limit, if several threads work on the query: the first rows that they have found.
    tops: Option<Arc<Tops>>,
}

/// The rows of one group that a thread has sorted.
#[derive(Default)]
struct SortedGroup {
    /// Rows that are not in a run yet, and the bytes charged for them.
    fresh: Rows,
    fresh_bytes: u64,
    runs: Vec<Run>,
    /// The ids of the elements among the keys, and the bytes charged for them.
    ids: ElementIds,
    ids_bytes: u64,
    /// With a limit: the rows and bytes that are left of the rows that were merged last.
    kept: usize,
    kept_bytes: u64,
    /// The first key of the last kept row, if the group has one instance and enough rows.
    bar: Option<Value>,
    /// The instances that were cancelled since rows of cancelled instances were dropped.
    cancelled: usize,
    /// After the group has ended: the merge of its runs.
    merge: Option<GroupMerge>,
    /// After a shuffled group without a limit has ended: the fresh rows in their order, and how many have left.
    shuffled: Option<(Vec<u32>, usize)>,
}

/// The merge of the runs of a group.
enum GroupMerge {
    /// The home merges.
    Alone(Merge),
    /// Threads merge parts.
    Waves(WaveMerge),
}

impl Order {
    /// Sorts by one computed column or key for each criterion. `may_share` is for one whose rows come in no order, and
    /// whose groups are few.
    pub fn new(ways: Vec<Way>, taken: KeySource, limit: Option<Operand>, may_share: bool) -> Self {
        let sorter = RowSorter { ways, limit: None, random: Random::default() };
        let may_share = may_share && !sorter.shuffles();
        Order { readers: taken.readers(), limit, sorter, may_share, groups: PerThread::default() }
    }
}

/// Drops the rows that do not pass the bar or have not all keys, and puts the keys of the others into computed columns.
fn take_keys(
    readers: &mut [KeyReader],
    sorter: &RowSorter,
    bar: Option<&Value>,
    batch: Rows,
    context: &ExecutionContext,
) -> Result<Rows> {
    let bar = bar.filter(|_| batch.tags == Tags::One);
    let passes = |key: &Option<Value>, bar| key.as_ref().is_some_and(|key| sorter.passes(key, bar));
    let that_pass = |column: &[Option<Value>], bar| {
        (0_u32..).zip(column).filter(|(_, key)| passes(key, bar)).map(|(row, _)| row).collect::<Vec<_>>()
    };
    // A helper has read the keys of its rows.
    let rows = if readers.is_empty() || !batch.computed.is_empty() {
        match (bar, batch.computed.first()) {
            (Some(bar), Some(column)) => {
                let passing = that_pass(column, bar);
                batch.keep(&passing)
            }
            _ => batch,
        }
    } else {
        let objects = &batch.objects;
        let keys = readers.iter_mut().map(|reader| reader.read(objects, context));
        let keys = keys.collect::<Result<Vec<KeyValues<'_>>>>()?;
        let passing = match (bar, keys.first()) {
            (Some(bar), Some(KeyValues::Numbers(numbers))) => sorter.numbers_that_pass(*numbers, bar),
            (Some(bar), Some(KeyValues::Values(column))) => Some(that_pass(column, bar)),
            (Some(bar), Some(objects @ KeyValues::Objects(_))) => {
                let passes = |row: &u32| passes(&objects.value(*row as usize), bar);
                Some((0..batch.len() as u32).filter(passes).collect())
            }
            _ => None,
        };
        match passing {
            Some(rows) => {
                let computed = keys.iter().map(|keys| keys.gather(&rows)).collect();
                Rows { computed, ..batch.take(&rows) }
            }
            None => {
                let computed = keys.into_iter().map(KeyValues::into_computed).collect();
                Rows { computed, ..batch }
            }
        }
    };
    // An unproductive by() drops the row.
    let is_complete = |row: &usize| rows.computed.iter().all(|column| column[*row].is_some());
    if (0..rows.len()).all(|row| is_complete(&row)) {
        return Ok(rows);
    }
    let complete: Vec<u32> = (0..rows.len()).filter(is_complete).map(|row| row as u32).collect();
    Ok(rows.take(&complete))
}

/// Drops rows of a group that are canceled: all, or those of some instances.
fn drop_cancelled(
    groups: &mut FastMap<GroupId, SortedGroup>,
    group: GroupId,
    tags: Option<(usize, &TagSet)>,
    out: &Output<'_, Rows>,
) {
    if let Some((count, all)) = tags {
        let Some(state) = groups.get_mut(&group) else { return };
        state.drop_cancelled(count, all, out);
        if !state.fresh.is_empty() || !state.runs.is_empty() || state.merge.is_some() {
            return;
        }
    }
    if let Some(state) = groups.remove(&group) {
        state.close(out);
    }
}

impl SortedGroup {
    /// Returns true if the fresh rows are enough for a run, or so many that rows beyond the limit must be dropped.
    /// `is_shared`: other threads gather rows, too. Then fewer are enough, because the bar should fall as fast as that of
    /// one thread.
    fn is_full(&self, sorter: &RowSorter, is_shared: bool) -> bool {
        match (sorter.limit, sorter.shuffles()) {
            (None, false) => self.fresh.len() >= RUN_ROWS || self.fresh_bytes >= RUN_BYTES,
            (None, true) => false,
            (Some(_), false) => {
                let enough = BATCH_ROWS.max(self.kept / 2) / if is_shared { 2 } else { 1 };
                self.fresh.len() > enough || self.fresh_bytes > RUN_BYTES.max(self.kept_bytes / 2)
            }
            // The kept rows are among the fresh ones: they are shuffled anew.
            (Some(_), true) => self.fresh.len() > BATCH_ROWS.max(2 * self.kept),
        }
    }

    /// Makes a run of the fresh rows.
    fn add_run(&mut self, sorter: &mut RowSorter, out: &Output<'_, Rows>) -> Result<()> {
        if self.fresh.is_empty() {
            return Ok(());
        }
        let sorted = self.sort_fresh(sorter, out)?;
        self.runs.push(Run::new(std::mem::take(&mut self.fresh), sorted, out.control())?);
        out.control().release(std::mem::take(&mut self.fresh_bytes));
        Ok(())
    }

    /// Returns the fresh rows in order, and keeps the ids of the elements among their keys.
    fn sort_fresh(&mut self, sorter: &mut RowSorter, out: &Output<'_, Rows>) -> Result<SortedRows> {
        let (view, control) = (&*out.context().view, out.control());
        self.ids.add(self.fresh.computed.iter().flatten().flatten(), view, control)?;
        control.charge(self.ids.bytes() - self.ids_bytes)?;
        self.ids_bytes = self.ids.bytes();
        sorter.sort(&self.fresh, &self.ids, view, control)
    }

    /// Drops the rows beyond the limit.
    fn cut(&mut self, sorter: &mut RowSorter, out: &Output<'_, Rows>) -> Result<()> {
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
            control.release(std::mem::take(&mut self.ids_bytes));
            self.ids = ElementIds::default();
            let kept = self.runs.iter().flat_map(|run| &run.blocks).flat_map(|block| &block.rows().0.computed);
            self.ids.add(kept.flatten().flatten(), view, control)?;
            self.ids_bytes = self.ids.bytes();
            control.charge(self.ids_bytes)?;
        }
        Ok(())
    }

    /// Takes a bar over that another thread has found, if it is lower than its own: no row that does not pass is among the
    /// first of all.
    fn take_bar(&mut self, found: Option<&Value>, sorter: &RowSorter) {
        if let Some(found) = found.filter(|found| self.bar.as_ref().is_none_or(|own| sorter.passes(found, own))) {
            self.bar = Some(found.clone());
        }
    }

    /// Takes the sorted rows out.
    fn take_sorted(&mut self) -> SortedGroup {
        let (runs, ids) = (std::mem::take(&mut self.runs), std::mem::take(&mut self.ids));
        SortedGroup { runs, ids, ids_bytes: std::mem::take(&mut self.ids_bytes), ..SortedGroup::default() }
    }

    /// Takes the rows of a group that another thread has sorted. All must be in runs.
    fn join(&mut self, other: SortedGroup) {
        self.runs.extend(other.runs);
        self.ids.join(other.ids);
        self.ids_bytes += other.ids_bytes;
    }

    /// Prepares the rows of a group that has ended to be taken out in order. `is_shared`: several threads may merge them.
    fn end(&mut self, sorter: &mut RowSorter, is_shared: bool, out: &Output<'_, Rows>) -> Result<()> {
        if sorter.shuffles() && sorter.limit.is_none() {
            self.shuffled = Some((self.sort_fresh(sorter, out)?.order, 0));
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
    fn take_next(
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
        if let Some((order, gone)) = &mut self.shuffled {
            let next = &order[*gone..order.len().min(*gone + BATCH_ROWS)];
            *gone += next.len();
            return Ok((vec![self.fresh.take(next)], *gone < order.len()));
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
    fn drop_cancelled(&mut self, count: usize, tags: &TagSet, out: &Output<'_, Rows>) {
        self.cancelled += count;
        let blocks = self.runs.iter().flat_map(|run| &run.blocks);
        let rows = self.fresh.len() + blocks.map(Block::len).sum::<usize>();
        if self.merge.is_some() || self.shuffled.is_some() || !are_worth_a_pass(self.cancelled, rows) {
            return;
        }
        self.cancelled = 0;
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
    fn close(self, out: &Output<'_, Rows>) {
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
    // Elements and properties among themselves are compared by more than their values.
    let is_plain = !matches!(bar, Value::Vertex(_) | Value::Edge(_) | Value::VertexProperty(_) | Value::Property(_));
    (rows.tags == Tags::One && is_enough && is_plain && !sorter.shuffles()).then(|| bar.clone())
}

impl Operator<Rows> for Order {
    fn is_by_group(&self) -> bool {
        !self.sorter.shuffles()
    }

    fn needs<'a>(
        &'a mut self,
        _: u8,
        batch: &'a Rows,
        context: &'a ExecutionContext,
        _: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        Ok(KeyReader::needs(&self.readers, batch, context))
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.sorter.limit = self.limit.as_ref().map(|limit| position(limit, "limit()", context)).transpose()?;
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.readers.iter_mut().for_each(KeyReader::recycle);
        self.sorter.random.recycle();
        let has_none = |tops: &Option<Arc<Tops>>| tops.as_ref().is_none_or(|tops| tops.is_empty());
        let is_empty = self.groups.recycle(|groups| groups.by_group.is_empty() && has_none(&groups.tops));
        self.groups.each(|groups| groups.tops = None);
        is_empty
    }

    fn share(&mut self) -> Option<Shared> {
        if !self.may_share {
            return None;
        }
        let (sorter, tops) = (&self.sorter, self.sorter.limit.map(|_| Arc::<Tops>::default()));
        self.groups.each(|groups| {
            for (group, state) in &groups.by_group {
                if let (Some(tops), Some(bar)) = (&tops, &state.bar) {
                    tops.add_bar(*group, bar, sorter);
                }
            }
            groups.tops = tops.clone();
        });
        self.groups.share_with(|| SortedGroups { tops: tops.clone(), ..SortedGroups::default() })
    }

    fn join(&mut self, state: &SharedState) {
        self.groups.join(state);
    }

    fn combine(
        &mut self,
        _port: u8,
        batch: Rows,
        context: &ExecutionContext,
        _control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        if self.readers.is_empty() {
            return Ok(batch);
        }
        let objects = &batch.objects;
        let keys = self.readers.iter_mut().map(|reader| reader.read(objects, context).map(KeyValues::into_computed));
        let computed = keys.collect::<Result<Vec<_>>>()?;
        Ok(Rows { computed, ..batch })
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let all = tags.and_then(|_| out.cancelled_tags(group));
        let tags = tags.zip(all.as_deref()).map(|(tags, all)| (tags.len(), all));
        // What a helper adds after this is dropped at the end of the group.
        self.groups.each(|groups| drop_cancelled(&mut groups.by_group, group, tags, out));
        if let Ok(Some(tops)) = self.groups.at_home(|groups| Ok(groups.tops.clone())) {
            tops.cancelled(group, tags, out);
        }
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let Order { readers, sorter, groups, .. } = self;
        if sorter.shuffles() {
            sorter.random.begin(out.context(), out.control());
        }
        groups.with(|SortedGroups { by_group, tops }| {
            if let Some(tops) = tops {
                tops.show_bar(group, by_group.entry(group).or_default(), sorter);
            }
            let bar = by_group.get(&group).and_then(|group| group.bar.as_ref());
            let rows = take_keys(readers, sorter, bar, batch, out.context())?;
            if rows.is_empty() {
                return Ok(());
            }
            let bytes = rows.bytes() as u64;
            out.control().charge(bytes)?;
            let state = by_group.entry(group).or_default();
            state.fresh_bytes += bytes;
            state.fresh.append(rows);
            match (state.is_full(sorter, tops.is_some()), sorter.limit, tops) {
                (false, ..) => Ok(()),
                (true, None, _) => state.add_run(sorter, out),
                (true, Some(_), None) => state.cut(sorter, out),
                (true, Some(_), Some(tops)) => tops.cut(group, state, sorter, out),
            }
        })
    }

    fn work_part(&mut self, _group: GroupId, at: &mut Cursor, out: &mut Output<'_, Rows>) -> Result<Step> {
        waves::work_on(at, &self.sorter, out)
    }

    /// After a run of several threads, each of the first steps takes the rows of a thread. Then each step sends a message
    /// of rows, or what threads have merged meanwhile; the row of the cursor is 1 after the first of those.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let Order { sorter, groups, .. } = self;
        let is_cancelled = out.is_cancelled(group);
        let combined = groups.combine(|home, other| {
            let Some(mut theirs) = other.by_group.remove(&group) else { return Ok(Step::Done) };
            if is_cancelled {
                theirs.close(out);
                return Ok(Step::Done);
            }
            theirs.add_run(sorter, out)?;
            home.by_group.entry(group).or_default().join(theirs);
            Ok(Step::More)
        })?;
        if combined == Step::More {
            return Ok(Step::More);
        }
        let is_shared = groups.is_shared();
        let (batches, is_left) = groups.at_home(|groups| {
            if let Some(top) = groups.tops.as_ref().and_then(|tops| tops.take(group)) {
                groups.by_group.entry(group).or_default().join(top);
            }
            let Some(state) = groups.by_group.get_mut(&group) else { return Ok((Vec::new(), false)) };
            if at.is_start() {
                at.row = 1;
                state.end(sorter, is_shared, out)?;
            }
            let next = if is_cancelled { Default::default() } else { state.take_next(sorter, group, out)? };
            if !next.1
                && let Some(state) = groups.by_group.remove(&group)
            {
                state.close(out);
            }
            Ok(next)
        })?;
        for mut rows in batches {
            rows.computed.clear();
            out.emit(0, group, rows)?;
        }
        if is_left {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
