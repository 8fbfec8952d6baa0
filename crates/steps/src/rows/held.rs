//! Rows and states that operators keep by group.
//!
//! Everything held here is charged to the query, and released when its group is taken (FLOW-17). The
//! container of an operator must be empty before the operator serves another run (FLOW-4).
//!
//! - **STEPS-5.** When a group ends, the rows and states of its cancelled instances are left out: a step that fills a
//!   side effect must not add them.

use std::collections::VecDeque;

use mangrove_flow::{BATCH_ROWS, Batch, Cursor, GroupId, Output, Step, TagSet};
use mangrove_graph::{FastMap, Result, Value};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::nesting;
use crate::rows::batch::{Remember, Rows, Tags};
use crate::rows::column::ObjectColumn;

/// A state for each instance of each group.
pub(crate) struct ByInstance<T> {
    groups: FastMap<GroupId, Vec<Option<T>>>,
    charged: FastMap<GroupId, u64>,
}

impl<T> Default for ByInstance<T> {
    fn default() -> Self {
        ByInstance { groups: FastMap::default(), charged: FastMap::default() }
    }
}

impl<T> ByInstance<T> {
    /// Returns true if no group has a state or a charge.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty() && self.charged.is_empty()
    }

    /// Returns the states of a group, by tag.
    pub fn group(&mut self, group: GroupId) -> &mut Vec<Option<T>> {
        self.groups.entry(group).or_default()
    }

    /// Returns the state of an instance, making it if it is new.
    pub fn entry(states: &mut Vec<Option<T>>, tag: u32, make: impl FnOnce() -> T) -> &mut T {
        let at = tag as usize;
        if states.len() <= at {
            states.resize_with(at + 1, || None);
        }
        states[at].get_or_insert_with(make)
    }

    /// Charges the query for bytes that the states of a group hold, until they are taken.
    pub fn charge(&mut self, group: GroupId, bytes: u64, out: &Output<'_, Rows>) -> Result<()> {
        out.control().charge(bytes)?;
        *self.charged.entry(group).or_default() += bytes;
        Ok(())
    }

    /// Releases bytes that were charged for a group.
    pub fn release(&mut self, group: GroupId, bytes: u64, out: &Output<'_, Rows>) {
        if let Some(charged) = self.charged.get_mut(&group) {
            let bytes = bytes.min(*charged);
            *charged -= bytes;
            out.control().release(bytes);
        }
    }

    /// Forgets the states of a group, and releases their charge.
    pub fn drop_group(&mut self, group: GroupId, out: &Output<'_, Rows>) {
        self.groups.remove(&group);
        out.control().release(self.charged.remove(&group).unwrap_or(0));
    }

    /// Forgets the states of cancelled instances of a group, and releases their charge (FLOW-41). See
    /// [`mangrove_flow::Operator::cancelled`].
    pub fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let Some(tags) = tags else { return self.drop_group(group, out) };
        let Some(states) = self.groups.get_mut(&group) else { return };
        let charged = self.charged.get_mut(&group).filter(|charged| **charged > 0);
        // Each instance has an equal part of the charge, as in `take_next`.
        let before = charged.as_ref().map_or(0, |_| states.iter().flatten().count());
        let mut dropped = 0;
        for tag in tags.iter() {
            dropped += usize::from(states.get_mut(tag as usize).and_then(Option::take).is_some());
        }
        if let Some(charged) = charged
            && dropped > 0
        {
            let part = (u128::from(*charged) * dropped as u128 / before as u128) as u64;
            *charged -= part;
            out.control().release(part);
        }
    }

    /// Moves the states that another thread has of a group here, with their charge. `join` adds one of them to that of the
    /// same instance. It returns the bytes that are no longer held, and [`Step::More`] if a part of the state is left: then
    /// so does this, and must be called again.
    pub fn take_over(
        &mut self,
        group: GroupId,
        other: &mut Self,
        out: &Output<'_, Rows>,
        mut join: impl FnMut(&mut T, &mut T) -> Result<(u64, Step)>,
    ) -> Result<Step> {
        let Some(states) = other.groups.get_mut(&group) else { return Ok(Step::Done) };
        if let Some(charged) = other.charged.remove(&group) {
            *self.charged.entry(group).or_default() += charged;
        }
        while let Some(last) = states.pop() {
            let Some(mut theirs) = last else { continue };
            let own = self.group(group);
            if own.len() <= states.len() {
                own.resize_with(states.len() + 1, || None);
            }
            let Some(ours) = &mut own[states.len()] else {
                own[states.len()] = Some(theirs);
                continue;
            };
            let (bytes, step) = join(ours, &mut theirs)?;
            self.release(group, bytes, out);
            if step == Step::More {
                states.push(Some(theirs));
                return Ok(Step::More);
            }
        }
        other.groups.remove(&group);
        Ok(Step::Done)
    }

    /// Takes the states of the instances from `from` on, about as many as a message has rows: one entry for each
    /// instance, with or without rows (FLOW-5).
    pub fn take_next(&mut self, group: GroupId, from: u32, instances: u32) -> TakenStates<T> {
        let mut none = Vec::new();
        let states = self.groups.get_mut(&group).unwrap_or(&mut none);
        let all = states.len().max(instances as usize);
        let from = (from as usize).min(all);
        let until = all.min(from + BATCH_ROWS);
        let taken = (from..until).map(|tag| states.get_mut(tag).and_then(Option::take)).collect();
        let is_last = until == all;
        // Each instance has an equal part of the charge: the states know only what they hold together.
        let charged = self.charged.get_mut(&group).map_or(0, |charged| {
            let part = (u128::from(*charged) * (until - from) as u128 / (all - from).max(1) as u128) as u64;
            let part = if is_last { *charged } else { part };
            *charged -= part;
            part
        });
        if is_last {
            self.groups.remove(&group);
            self.charged.remove(&group);
        }
        TakenStates { states: taken, charged, is_last }
    }

    /// As [`ByInstance::take_next`], without the states of cancelled instances (STEPS-5).
    pub fn take_next_wanted(
        &mut self,
        group: GroupId,
        from: u32,
        instances: u32,
        out: &Output<'_, Rows>,
    ) -> TakenStates<T> {
        let mut taken = self.take_next(group, from, instances);
        let (is_over, cancelled) = (out.is_cancelled(group), out.cancelled_tags(group));
        for (tag, state) in (from..).zip(&mut taken.states) {
            if is_over || cancelled.as_ref().is_some_and(|tags| tags.contains(tag)) {
                *state = None;
            }
        }
        taken
    }
}

/// Some states that were taken out of [`ByInstance`].
pub(crate) struct TakenStates<T> {
    /// The state of each instance.
    pub states: Vec<Option<T>>,
    /// The bytes charged for them, which the caller releases.
    pub charged: u64,
    /// True if no instance of the group is left.
    pub is_last: bool,
}

/// Rows that an operator keeps until their group has ended, as batches in the order in which they came.
#[derive(Default)]
pub(crate) struct HeldRows {
    groups: FastMap<GroupId, HeldGroup>,
}

#[derive(Default)]
struct HeldGroup {
    batches: VecDeque<HeldBatch>,
    /// The number of rows in all batches.
    count: usize,
    /// There are many rows if there are more than this ([`HeldRows::is_full`]).
    full_at: usize,
    /// The instances that were cancelled since rows of cancelled instances were dropped.
    cancelled: usize,
}

/// A batch of at most [`BATCH_ROWS`] rows, unless it came as a larger one.
struct HeldBatch {
    rows: Rows,
    charged: u64,
}

impl HeldGroup {
    /// Adds charged rows. Small batches are joined.
    fn push(&mut self, batch: HeldBatch) {
        self.count += batch.rows.len();
        match self.batches.back_mut() {
            Some(last) if last.rows.len() + batch.rows.len() <= BATCH_ROWS => {
                last.rows.append(batch.rows);
                last.charged += batch.charged;
            }
            _ => self.batches.push_back(batch),
        }
    }
}

impl HeldRows {
    /// Returns true if no rows are held.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    /// Keeps rows of a group.
    pub fn add(&mut self, group: GroupId, rows: Rows, out: &Output<'_, Rows>) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let charged = rows.bytes() as u64;
        out.control().charge(charged)?;
        self.groups.entry(group).or_default().push(HeldBatch { rows, charged });
        Ok(())
    }

    /// Returns true if twice as many rows of a group are held as the last call of [`HeldRows::thin`] has left. If the
    /// operator thins them then, each row is looked at only a few times, however many come.
    pub fn is_full(&self, group: GroupId) -> bool {
        self.groups.get(&group).is_some_and(|held| held.count > held.full_at.max(BATCH_ROWS))
    }

    /// Lets `keep` drop unneeded rows of each batch of a group, the last batch first.
    pub fn thin(&mut self, group: GroupId, out: &Output<'_, Rows>, mut keep: impl FnMut(Rows) -> Rows) -> Result<()> {
        let Some(held) = self.groups.get_mut(&group) else { return Ok(()) };
        let mut kept = VecDeque::with_capacity(held.batches.len());
        while let Some(HeldBatch { rows, charged }) = held.batches.pop_back() {
            out.control().check()?;
            let rows = keep(rows);
            out.control().release(charged);
            let charged = rows.bytes() as u64;
            out.control().charge(charged)?;
            kept.push_front(HeldBatch { rows, charged });
        }
        held.count = 0;
        kept.into_iter().filter(|batch| !batch.rows.is_empty()).for_each(|batch| held.push(batch));
        held.full_at = 2 * held.count;
        Ok(())
    }

    /// Drops the rows of cancelled instances of a group, and releases their charge (FLOW-41). See
    /// [`mangrove_flow::Operator::cancelled`]. Of a large group it drops them when enough instances are cancelled
    /// ([`are_worth_a_pass`]).
    pub fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        let Some(tags) = tags else {
            for batch in self.groups.remove(&group).into_iter().flat_map(|held| held.batches) {
                out.control().release(batch.charged);
            }
            return;
        };
        let Some(held) = self.groups.get_mut(&group) else { return };
        held.cancelled += tags.len();
        if !are_worth_a_pass(held.cancelled, held.count) {
            return;
        }
        held.cancelled = 0;
        held.count = 0;
        // Batches stay, also empty ones: an operator that goes through them counts them.
        for batch in &mut held.batches {
            let before = batch.rows.len();
            drop_cancelled(&mut batch.rows, group, out);
            held.count += batch.rows.len();
            if batch.rows.len() < before {
                let charged = (batch.rows.bytes() as u64).min(batch.charged);
                out.control().release(batch.charged - charged);
                batch.charged = charged;
            }
        }
    }

    /// Changes the batch at an index of a group that has ended, after the rows of cancelled instances are dropped
    /// (STEPS-5). Returns true if batches follow.
    pub fn change(
        &mut self,
        group: GroupId,
        index: usize,
        out: &Output<'_, Rows>,
        change: impl FnOnce(&mut Rows) -> Result<()>,
    ) -> Result<bool> {
        let Some(held) = self.groups.get_mut(&group) else { return Ok(false) };
        let Some(batch) = held.batches.get_mut(index) else { return Ok(false) };
        drop_cancelled(&mut batch.rows, group, out);
        change(&mut batch.rows)?;
        let bytes = batch.rows.bytes() as u64;
        out.control().charge(bytes.saturating_sub(batch.charged))?;
        out.control().release(batch.charged.saturating_sub(bytes));
        batch.charged = bytes;
        Ok(index + 1 < held.batches.len())
    }

    /// Sends the next batch of a group that has ended, without the rows of cancelled instances (STEPS-5) and without
    /// computed columns. Returns [`Step::Done`] if none is left.
    pub fn send_next(&mut self, group: GroupId, edge: usize, out: &mut Output<'_, Rows>) -> Result<Step> {
        self.send_changed(group, edge, out, |rows| rows.computed.clear())
    }

    /// As [`HeldRows::send_next`], with the computed columns: the operator has made them for the next one.
    pub fn send_next_computed(&mut self, group: GroupId, edge: usize, out: &mut Output<'_, Rows>) -> Result<Step> {
        self.send_changed(group, edge, out, |_| ())
    }

    fn send_changed(
        &mut self,
        group: GroupId,
        edge: usize,
        out: &mut Output<'_, Rows>,
        change: impl FnOnce(&mut Rows),
    ) -> Result<Step> {
        let Some(held) = self.groups.get_mut(&group) else { return Ok(Step::Done) };
        if let Some(HeldBatch { mut rows, charged }) = held.batches.pop_front() {
            drop_cancelled(&mut rows, group, out);
            out.control().release(charged);
            change(&mut rows);
            for chunk in rows.chunks() {
                out.emit(edge, group, chunk)?;
            }
        }
        if held.batches.is_empty() {
            self.groups.remove(&group);
            return Ok(Step::Done);
        }
        Ok(Step::More)
    }

    /// Takes all rows of a group that has ended in one batch, without those of cancelled instances (STEPS-5); `None` if
    /// the whole group is cancelled. The caller releases the charge that is returned with them.
    pub fn take(&mut self, group: GroupId, out: &Output<'_, Rows>) -> Result<Option<(Rows, u64)>> {
        let Some(held) = self.groups.remove(&group) else { return Ok(None) };
        let (mut all, charged) = (Rows::default(), held.batches.iter().map(|batch| batch.charged).sum());
        if out.is_cancelled(group) {
            out.control().release(charged);
            return Ok(None);
        }
        for batch in held.batches {
            out.control().check()?;
            let mut rows = batch.rows;
            drop_cancelled(&mut rows, group, out);
            if !rows.is_empty() {
                all.append(rows);
            }
        }
        Ok(Some((all, charged)))
    }
}

/// Returns true if an operator that holds `rows` rows of a group should look for those of cancelled instances, after
/// `cancelled` further instances were cancelled. So each instance costs a look at a message of rows at most, and a small
/// group holds no row of a cancelled instance. What is left is dropped when the group ends (STEPS-5).
pub(crate) fn are_worth_a_pass(cancelled: usize, rows: usize) -> bool {
    rows <= cancelled.saturating_mul(BATCH_ROWS)
}

/// Drops the rows of cancelled instances of a group (STEPS-5).
fn drop_cancelled(rows: &mut Rows, group: GroupId, out: &Output<'_, Rows>) {
    if out.is_cancelled(group) {
        *rows = Rows::default();
    } else if let Some(tags) = out.cancelled_tags(group) {
        rows.discard(&tags, &mut Cursor::default());
    }
}

/// Sends the results of the next instances of a group that has ended, about as many as a message holds, and after the
/// last ones the end of the group. The row of the cursor is the next instance. `result` makes the result of an instance
/// from its state, or several; an instance without a result gets no row.
pub(crate) fn send_results<T, R: IntoIterator<Item = Value>>(
    states: &mut ByInstance<T>,
    (group, instances): (GroupId, u32),
    at: &mut Cursor,
    remember: &Remember,
    out: &mut Output<'_, Rows>,
    mut result: impl FnMut(Option<T>, &mut Meter<'_>) -> Result<R>,
) -> Result<Step> {
    let taken = states.take_next(group, at.row, instances);
    let (first, count) = (at.row, taken.states.len() as u32);
    let mut meter = Meter::new(out.control());
    let is_one = instances <= 1 && first + count <= 1;
    let (mut tags, mut results) = (Vec::new(), Vec::with_capacity(count as usize));
    for (tag, state) in (first..).zip(taken.states) {
        results.extend(result(state, &mut meter)?);
        if !is_one {
            tags.resize(results.len(), tag);
        }
    }
    nesting::check_made(results.iter(), out.control())?;
    drop(meter);
    out.control().release(taken.charged);
    let mut rows = rows_of_one(results, out.context());
    if !is_one {
        rows.tags = Tags::Many(tags);
    }
    rows.remember(remember);
    for chunk in rows.chunks() {
        out.emit(0, group, chunk)?;
    }
    at.row = first + count;
    if taken.is_last {
        out.finish_all(group, instances)?;
        return Ok(Step::Done);
    }
    Ok(Step::More)
}

/// Returns one row for each instance from `first` on that has a value. The values are new objects with empty paths and
/// no bindings (STEPS-11).
pub(crate) fn rows_by_instance(
    values: Vec<Option<Value>>,
    first: u32,
    instances: u32,
    context: &ExecutionContext,
) -> Rows {
    if instances == 1 && values.len() == 1 {
        return rows_of_one(values.into_iter().flatten().collect(), context);
    }
    let (tags, objects): (Vec<u32>, Vec<Value>) =
        (first..).zip(values).filter_map(|(tag, value)| Some((tag, value?))).unzip();
    let is_one = instances <= 1 && tags.iter().all(|t| *t == 0);
    let mut rows = rows_of_one(objects, context);
    if !is_one {
        rows.tags = Tags::Many(tags);
    }
    rows
}

/// Returns rows of instance 0 with empty paths and no bindings.
pub(crate) fn rows_of_one(objects: Vec<Value>, context: &ExecutionContext) -> Rows {
    rows_of_objects(ObjectColumn::from_values(objects), context)
}

/// As [`rows_of_one`], for objects of any kind.
pub(crate) fn rows_of_objects(objects: ObjectColumn, context: &ExecutionContext) -> Rows {
    let count = objects.len();
    let mut rows = Rows::of(objects);
    rows.path = context.paths().then(|| vec![None; count]);
    rows.loops = context.requirements.loops.then(|| vec![Default::default(); count]);
    rows.sacks = context.fresh_sacks(count);
    rows
}
