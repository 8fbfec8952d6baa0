//! `order()`: sorts the rows of each instance by computed columns, or by keys of their objects.
//!
//! Rows are sorted in runs of [`RUN_ROWS`] rows as they come, and the runs are merged when their group has ended, a
//! message of rows in each step ([`runs`]). With a limit, only the first rows of each instance are held: when half as
//! many new rows have come, the rows beyond the limit are dropped ([`group`]). If the limit is small, the first rows are found
//! without sorting or moving them ([`selection`]); else, all runs are merged into one. Then the first key of the last row
//! left becomes the *bar*. A row that arrives after that and does not pass the bar cannot be among the first, so it is
//! dropped at once. Number keys are compared with the bar as an array. The sort is stable, so a row
//! whose only key equals the bar does not pass.
//!
//! If the first keys of a run have one type (integers, floats, texts), they are sorted as words ([`rank`]). Values are
//! compared only if words are equal and do not decide. A shuffle needs all rows at once, so it has one run.
//!
//! If helpers have joined the run and rows come in no order, each thread sorts runs of its own ([`PerThread`]). With a
//! limit, the first rows and the bar are those of all threads ([`tops`]). When the group has ended, the home takes the
//! runs of all threads. If there are many rows, threads merge parts of them ([`waves`]).

mod group;
mod parts;
mod rank;
mod runs;
mod selection;
mod sorter;
mod tops;
mod waves;

use std::sync::Arc;

use mangrove_flow::{Batch as _, Cursor, GroupId, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet};
use mangrove_graph::{FastMap, Need, Result, Value};
use mangrove_gremlin::Order as Way;
use mangrove_plan::logical::Operand;

use crate::barrier::per_thread::PerThread;
use crate::barrier::range::position;
use crate::computed::keys::{KeyReader, KeySource, KeyValues};
use crate::context::execution::ExecutionContext;
use crate::context::random::Random;
use crate::rows::{Rows, Tags};
use group::SortedGroup;
use sorter::RowSorter;
use tops::Tops;

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
        let first = readers[0].read(&batch.objects, context)?;
        let passing = bar.and_then(|bar| match &first {
            KeyValues::Numbers(numbers) => sorter.numbers_that_pass(*numbers, bar),
            KeyValues::Values(column) => Some(that_pass(column, bar)),
            KeyValues::Objects(_) => {
                let passes = |row: &u32| passes(&first.value(*row as usize), bar);
                Some((0..batch.len() as u32).filter(passes).collect())
            }
        });
        let (first, batch) = match passing {
            Some(passing) => (first.gather(&passing), batch.take(&passing)),
            None => (first.into_computed(), batch),
        };
        // The further keys are read only for the rows that pass.
        let further = readers[1..].iter_mut().map(|reader| reader.read(&batch.objects, context));
        let further = further.map(|keys| keys.map(KeyValues::into_computed));
        let computed = std::iter::once(Ok(first)).chain(further).collect::<Result<_>>()?;
        Rows { computed, ..batch }
    };
    // An unproductive by() drops the row.
    let is_complete = |row: &usize| rows.computed.iter().all(|column| column[*row].is_some());
    if (0..rows.len()).all(|row| is_complete(&row)) {
        return Ok(rows);
    }
    let complete: Vec<u32> = (0..rows.len()).filter(is_complete).map(|row| row as u32).collect();
    Ok(rows.take(&complete))
}

/// Drops rows of a group that are cancelled: all, or those of some instances.
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
        Ok(KeyReader::needs(&mut self.readers, batch, context))
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
            match (state.is_full(sorter), sorter.limit, tops) {
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
            if sorter.limit.is_none() {
                theirs.add_run(sorter, out)?;
            }
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
