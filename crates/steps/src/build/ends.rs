//! The two ends of a topology: [`Start`], which the unit row enters, and [`Sink`], which adds to the results.

use std::sync::Arc;

use mangrove_flow::{Cursor, GroupId, Kernel, Operator, Output, QueryControl, Step};
use mangrove_graph::{Need, Result};

use crate::context::execution::ExecutionContext;
use crate::detach::{detach, detach_needs};
use crate::limits::meter::Meter;
use crate::limits::nesting::check_results;
use crate::rows::{ObjectColumn, Rows};

/// Operator 0: it receives the unit row of the query and gives it its sack.
pub(crate) struct Start;

impl Kernel<Rows> for Start {
    fn step(&mut self, rows: &mut Rows, _: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        rows.sacks = out.context().fresh_sacks(rows.len());
        out.emit(0, group, std::mem::take(rows))?;
        Ok(Step::Done)
    }
}

/// Reads what the elements in results carry.
fn read_results(batch: Rows, context: &ExecutionContext, control: &QueryControl) -> Result<Rows> {
    let Some(detail) = context.results else { return Ok(batch) };
    let Rows { objects, bulk, .. } = batch;
    let values = objects.into_values();
    check_results(&values, control)?;
    let values = detach(values, &*context.view, detail, &mut Meter::new(control))?;
    Ok(Rows { bulk, ..Rows::of(ObjectColumn::Values(values)) })
}

/// The last operator: it adds the rows that arrive to the results, and marks the query as complete.
pub(crate) struct Sink {
    /// True if the operator before may leave maps as computed columns.
    pub takes_maps: bool,
}

impl Sink {
    /// Returns true if the computed columns of a batch are its results.
    fn is_maps(&self, batch: &Rows, context: &ExecutionContext) -> bool {
        self.takes_maps && context.takes_columns() && !batch.computed.is_empty()
    }
}

impl Operator<Rows> for Sink {
    fn needs<'a>(
        &'a mut self,
        _: u8,
        batch: &'a Rows,
        context: &'a ExecutionContext,
        control: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        let Some(detail) = context.results.filter(|_| !self.is_maps(batch, context)) else { return Ok(Need::Nothing) };
        detach_needs(&batch.objects, detail, &mut Meter::new(control))
    }

    fn recycle(&mut self) -> bool {
        true
    }

    /// Reads what the elements in results carry. The home leaves detached values as they are.
    fn combine(
        &mut self,
        _port: u8,
        batch: Rows,
        context: &ExecutionContext,
        control: &Arc<QueryControl>,
    ) -> Result<Rows> {
        if self.is_maps(&batch, context) {
            return Ok(batch);
        }
        read_results(batch, context, control)
    }

    fn receive(&mut self, _port: u8, _group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if self.is_maps(&batch, out.context()) {
            out.deliver(batch);
            return Ok(());
        }
        batch.computed.clear();
        // What results carry is at hand in this call only.
        if out.reads_late() {
            batch = read_results(batch, out.context(), out.control())?;
        }
        out.deliver(batch);
        Ok(())
    }

    fn finish(&mut self, _port: u8, _group: GroupId, _instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        out.complete();
        Ok(())
    }
}
