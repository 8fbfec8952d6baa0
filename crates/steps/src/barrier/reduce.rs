//! `count()`, `sum()`, `min()`, `max()`, `mean()`, `fold()`: one row for each instance, also for one without rows
//! (FLOW-5).
//!
//! If helpers have joined the run and rows come in no order, each thread reduces its rows to states of its own
//! ([`PerThread`]). When the group has ended, the home joins the states.

use std::sync::Arc;

use mangrove_flow::{Cursor, GroupId, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet};
use mangrove_graph::{Numbers, Result, Value};
use mangrove_plan::logical::Reduction;

use crate::barrier::numbers;
pub(crate) use crate::barrier::partial::ReduceKind;
use crate::barrier::partial::{
    BatchStates, GroupStates, PartialReduction, StatesByTag, add_batch, count_batch, is_reduced,
};
use crate::barrier::per_thread::PerThread;
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::sizes::Sizes;
use crate::rows::held::{ByInstance, send_results};
use crate::rows::{NumberSlice, Remember, Rows, Tags};
use crate::values::collection::push_times;

/// A reducing barrier.
pub(crate) struct Reduce {
    kind: ReduceKind,
    remember: Remember,
    /// True if several threads may work at it.
    may_share: bool,
    states: PerThread<ByInstance<PartialReduction>>,
    /// Scratch: the values of a batch, if they are numbers of one type.
    numbers: Numbers,
}

/// The values of other threads that a step of `fold()` moves.
const JOINED_VALUES: usize = 1 << 14;

impl Reduce {
    /// `may_share` is for one whose rows come in no order, and whose groups are few.
    pub fn new(kind: ReduceKind, remember: Remember, may_share: bool) -> Self {
        Reduce { kind, remember, may_share, states: PerThread::default(), numbers: Numbers::default() }
    }

    /// Adds numbers of rows of a batch. `row` gives the row of a number there by its index.
    pub(super) fn add_numbers(
        &mut self,
        group: GroupId,
        numbers: NumberSlice<'_>,
        batch: &Rows,
        row: impl Fn(usize) -> usize,
    ) -> Result<()> {
        let kind = self.kind;
        self.states.with(|states| {
            let mut states = GroupStates { kind, states: states.group(group) };
            numbers::add_to_states(&mut states, numbers, batch, row)
        })
    }
}

/// Adds the objects of a batch to the states of its instances.
fn add_objects(
    kind: ReduceKind,
    states: &mut ByInstance<PartialReduction>,
    group: GroupId,
    batch: &Rows,
    scratch: &mut Numbers,
    out: &Output<'_, Rows>,
) -> Result<()> {
    if is_reduced(batch) {
        let mut states = GroupStates { kind, states: states.group(group) };
        return (0..batch.len())
            .try_for_each(|row| states.state(batch.tag(row)).join(kind, batch.object(row), batch.bulk(row)));
    }
    if kind == ReduceKind::Language(Reduction::Fold) {
        let values: u64 = (0..batch.len()).map(|r| batch.bulk(r)).fold(0, u64::saturating_add);
        let mut sizes = Sizes::default();
        let held: usize = batch.objects.values().iter().map(|value| sizes.pointed_to(value)).sum();
        let bytes = values.saturating_mul(size_of::<Value>() as u64).saturating_add(held as u64);
        states.charge(group, bytes, out)?;
    }
    let mut states = GroupStates { kind, states: states.group(group) };
    if reduces_numbers(kind)
        && let Some(numbers) = numbers_of(batch, scratch)
    {
        return numbers::add_to_states(&mut states, numbers, batch, |row| row);
    }
    let counts = kind == ReduceKind::Language(Reduction::Count);
    if batch.tags == Tags::One && (counts || kind == ReduceKind::Total) {
        return states.state(0).count(count_batch(kind, batch)?);
    }
    let mut meter = Meter::new(out.control());
    for row in 0..batch.len() {
        // Counting reads no object.
        let value = if counts { Value::Null } else { batch.object(row) };
        match states.state(batch.tag(row)) {
            PartialReduction::Fold(values) => push_times(values, value, batch.bulk(row), &mut meter)?,
            state => state.add(kind, value, batch.bulk(row))?,
        }
    }
    Ok(())
}

/// Returns true if a reduction computes with numbers.
fn reduces_numbers(kind: ReduceKind) -> bool {
    use Reduction::{Max, Mean, Min, Sum};
    matches!(kind, ReduceKind::Language(Sum | Mean | Min | Max))
}

/// Returns the objects of a batch if they are numbers of one type. If they are values, copies those of one instance to
/// `scratch`; for several instances, that would cost more than it saves.
pub(super) fn numbers_of<'a>(batch: &'a Rows, scratch: &'a mut Numbers) -> Option<NumberSlice<'a>> {
    let objects = batch.objects.values();
    if objects.is_empty() {
        return batch.objects.numbers();
    }
    if batch.tags != Tags::One || batch.bulk.is_some() || objects.len() < 2 {
        return None;
    }
    scratch.clear();
    let is_one_type = (0..).zip(objects).all(|(row, value)| scratch.push(row, value));
    if is_one_type { NumberSlice::of(scratch) } else { None }
}

impl Operator<Rows> for Reduce {
    fn is_by_group(&self) -> bool {
        true
    }

    fn recycle(&mut self) -> bool {
        self.states.recycle(ByInstance::is_empty)
    }

    fn share(&mut self) -> Option<Shared> {
        if self.may_share { self.states.share() } else { None }
    }

    fn join(&mut self, state: &SharedState) {
        self.states.join(state);
    }

    fn combine(
        &mut self,
        _port: u8,
        batch: Rows,
        _context: &ExecutionContext,
        _control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        let kind = self.kind;
        if kind == ReduceKind::Language(Reduction::Fold) {
            return Ok(batch);
        }
        let mut states = BatchStates::new(kind);
        let numbers = if reduces_numbers(kind) { numbers_of(&batch, &mut self.numbers) } else { None };
        match numbers {
            Some(numbers) => numbers::add_to_states(&mut states, numbers, &batch, |row| row)?,
            None => add_batch(&mut states, &batch)?,
        }
        Ok(states.into_rows())
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.states.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let Reduce { kind, states, numbers, .. } = self;
        states.with(|states| add_objects(*kind, states, group, &batch, numbers, out))
    }

    /// After a run of several threads, the first steps join their states. Then each step sends the results of some
    /// instances.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let Reduce { kind, remember, states, .. } = self;
        let mut left = JOINED_VALUES;
        let join = |ours: &mut PartialReduction, theirs: &mut PartialReduction| {
            Ok((0, ours.take_over(*kind, theirs, &mut left)?))
        };
        if states.combine_states(group, out, join)? == Step::More {
            return Ok(Step::More);
        }
        let has_results_without_input =
            matches!(kind, ReduceKind::Total | ReduceKind::Language(Reduction::Count | Reduction::Fold));
        states.at_home(|states| {
            send_results(states, (group, instances), at, remember, out, |state, _| {
                let state = state.or_else(|| has_results_without_input.then(|| PartialReduction::new(*kind)));
                state.map(PartialReduction::result).transpose()
            })
        })
    }
}
