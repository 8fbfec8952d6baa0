//! `values(key).sum()` and its kin in one operator: a property with numbers of one type is read and folded as an array,
//! without a value for each row.
//!
//! Result, type and errors are those of [`Values`] followed by [`Reduce`]. Rows with bulks or of several instances are
//! added one by one. For all other properties, the operator calls the other two.

use std::sync::Arc;

use mangrove_flow::{Cursor, GroupId, Operator, Output, QueryControl, Shared, SharedState, Step, TagSet};
use mangrove_graph::{Need, Numbers, Result};
use mangrove_plan::logical::{Name, Reduction};

use crate::barrier::numbers;
use crate::barrier::partial::{BatchStates, ReduceKind, is_reduced};
use crate::barrier::reduce::Reduce;
use crate::computed::keys::read_numbers;
use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::row::operator::RowOperator;
use crate::row::property::Values;
use crate::rows::{NumberSlice, Remember, Rows, needs};

/// Reads the values of one key and reduces them.
pub(crate) struct ReduceValues {
    reduction: Reduction,
    key: Name,
    values: Values,
    reduce: Reduce,
    numbers: Numbers,
}

impl ReduceValues {
    /// `may_share` is for one whose rows come in no order, and whose groups are few.
    pub fn new(reduction: Reduction, key: Name, remember: Remember, may_share: bool) -> Self {
        ReduceValues {
            reduction,
            values: Values::new(vec![key.clone()], false, false),
            key,
            reduce: Reduce::new(ReduceKind::Language(reduction), remember, may_share),
            numbers: Numbers::default(),
        }
    }

    /// Reads a batch as numbers. Returns false if it has other values.
    fn read(&mut self, batch: &Rows, context: &ExecutionContext) -> Result<bool> {
        read_numbers(&batch.objects, &self.key, context, &mut self.numbers)
    }
}

impl Operator<Rows> for ReduceValues {
    fn is_by_group(&self) -> bool {
        true
    }

    fn needs<'a>(
        &'a mut self,
        _: u8,
        batch: &'a Rows,
        context: &'a ExecutionContext,
        _: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        if is_reduced(batch) {
            return Ok(Need::Nothing);
        }
        let keys = context.view.key_of(&self.key).into_iter().collect();
        Ok(needs::values(&batch.objects, 0, Some(keys)))
    }

    fn recycle(&mut self) -> bool {
        self.reduce.recycle()
    }

    fn share(&mut self) -> Option<Shared> {
        self.reduce.share()
    }

    fn join(&mut self, state: &SharedState) {
        self.reduce.join(state);
    }

    fn combine(
        &mut self,
        port: u8,
        batch: Rows,
        context: &ExecutionContext,
        control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        if !self.read(&batch, context)? {
            let values = self.values.apply(batch, context, &mut Meter::new(control))?;
            return self.reduce.combine(port, values, context, control);
        }
        let kind = ReduceKind::Language(self.reduction);
        let mut states = BatchStates::new(kind);
        if let Some(read) = NumberSlice::of(&self.numbers) {
            let row = |at: usize| self.numbers.row[at] as usize;
            numbers::add_to_states(&mut states, read, &batch, row)?;
        }
        Ok(states.into_rows())
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.reduce.cancelled(group, tags, out);
    }

    fn receive(&mut self, port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if is_reduced(&batch) {
            return self.reduce.receive(port, group, batch, out);
        }
        let context = out.context();
        if !self.read(&batch, context)? {
            let values = self.values.apply(batch, context, &mut Meter::new(out.control()))?;
            return self.reduce.receive(port, group, values, out);
        }
        let Some(read) = NumberSlice::of(&self.numbers) else { return Ok(()) };
        self.reduce.add_numbers(group, read, &batch, |at| self.numbers.row[at] as usize)
    }

    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        self.reduce.finish_step(port, group, instances, at, out)
    }
}
