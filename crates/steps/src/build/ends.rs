//! The two ends of a topology: [`Start`], which the unit row enters, and [`Sink`], which adds to the results.

use mangrove_flow::{Cursor, GroupId, Kernel, Operator, Output, Step};
use mangrove_graph::Result;

use crate::rows::Rows;

/// Operator 0: it receives the unit row of the query and gives it its sack.
pub(crate) struct Start;

impl Kernel<Rows> for Start {
    fn step(&mut self, rows: &mut Rows, _: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        rows.sacks = out.context().fresh_sacks(rows.len());
        out.emit(0, group, std::mem::take(rows))?;
        Ok(Step::Done)
    }
}

/// The last operator: it adds the rows that arrive to the results, and marks the query as complete.
pub(crate) struct Sink;

impl Operator<Rows> for Sink {
    fn recycle(&mut self) -> bool {
        true
    }

    fn receive(&mut self, _port: u8, _group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        batch.computed.clear();
        out.deliver(batch);
        Ok(())
    }

    fn finish(&mut self, _port: u8, _group: GroupId, _instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        out.complete();
        Ok(())
    }
}
