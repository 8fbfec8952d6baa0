//! `count()`, `sum()`, `min()`, `max()`, `mean()`, `fold()`: one row for each instance, also for one without rows
//! (FLOW-5).

use std::sync::Arc;

use mangrove_flow::{Cursor, GroupId, Operator, Output, QueryControl, Step, TagSet};
use mangrove_graph::{Numbers, Result, Value};
use mangrove_plan::logical::Reduction;

use crate::barrier::numbers;
pub(crate) use crate::barrier::partial::ReduceKind;
use crate::barrier::partial::{BatchStates, GroupStates, PartialReduction, StatesByTag, count_batch, is_reduced};
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
    states: ByInstance<PartialReduction>,
    /// Scratch: the values of a batch, if they are numbers of one type.
    numbers: Numbers,
}

impl Reduce {
    pub fn new(kind: ReduceKind, remember: Remember) -> Self {
        Reduce { kind, remember, states: ByInstance::default(), numbers: Numbers::default() }
    }

    /// Returns the states of a group, by instance.
    pub(super) fn states(&mut self, group: GroupId) -> GroupStates<'_> {
        GroupStates { kind: self.kind, states: self.states.group(group) }
    }
}

/// Returns the objects of a batch if they are numbers of one type and the reduction computes with them. If they are
/// values, copies those of one instance to `scratch`; for several instances, that would cost more than it saves.
fn numbers_of<'a>(kind: ReduceKind, batch: &'a Rows, scratch: &'a mut Numbers) -> Option<NumberSlice<'a>> {
    use Reduction::{Max, Mean, Min, Sum};
    if !matches!(kind, ReduceKind::Language(Sum | Mean | Min | Max)) {
        return None;
    }
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
        self.states.is_empty()
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
        match numbers_of(kind, &batch, &mut self.numbers) {
            Some(numbers) => numbers::add_to_states(&mut states, numbers, &batch, |row| row)?,
            None => states.add(&batch)?,
        }
        Ok(states.into_rows())
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.states.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let kind = self.kind;
        if is_reduced(&batch) {
            let mut states = self.states(group);
            return (0..batch.len())
                .try_for_each(|row| states.state(batch.tag(row)).join(kind, batch.object(row), batch.bulk(row)));
        }
        if kind == ReduceKind::Language(Reduction::Fold) {
            let values: u64 = (0..batch.len()).map(|r| batch.bulk(r)).fold(0, u64::saturating_add);
            let mut sizes = Sizes::default();
            let held: usize = batch.objects.values().iter().map(|value| sizes.pointed_to(value)).sum();
            let bytes = values.saturating_mul(size_of::<Value>() as u64).saturating_add(held as u64);
            self.states.charge(group, bytes, out)?;
        }
        let mut states = GroupStates { kind, states: self.states.group(group) };
        if let Some(numbers) = numbers_of(kind, &batch, &mut self.numbers) {
            return numbers::add_to_states(&mut states, numbers, &batch, |row| row);
        }
        let counts = kind == ReduceKind::Language(Reduction::Count);
        if batch.tags == Tags::One && (counts || kind == ReduceKind::Total) {
            return states.state(0).count(count_batch(kind, &batch)?);
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

    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let Reduce { kind, remember, states, .. } = self;
        let has_results_without_input =
            matches!(kind, ReduceKind::Total | ReduceKind::Language(Reduction::Count | Reduction::Fold));
        send_results(states, (group, instances), at, remember, out, |state, _| {
            let state = state.or_else(|| has_results_without_input.then(|| PartialReduction::new(*kind)));
            state.map(PartialReduction::result).transpose()
        })
    }
}
