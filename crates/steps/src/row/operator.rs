//! The interface of a row operator, and the adapter that runs one in the dataflow.
//!
//! A row operator has no state: its results depend on the batch and on the snapshot alone. So it may run on any node.

use mangrove_flow::{Cursor, GroupId, Kernel, Output, Step};
use mangrove_graph::Result;

use crate::context::execution::ExecutionContext;
use crate::rows::{Remember, Rows};

/// An operator without state.
///
/// Its results carry the tags, bulks, paths, loop counters and sacks of the rows that they come from ([`Rows::derive`],
/// [`Rows::filter`], [`Rows::with_objects`]), in the order of those rows, and no computed columns. It does not extend
/// paths: the adapter does, as the plan requires.
pub(crate) trait RowOperator: Send {
    /// Looks up what depends on the run, such as the values of parameters.
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Works on one batch.
    fn apply(&mut self, rows: Rows, context: &ExecutionContext) -> Result<Rows>;
}

/// Runs a [`RowOperator`] in the dataflow.
pub(crate) struct RowAdapter<T> {
    /// The operator that maps batches.
    pub operator: T,
    /// The part of its objects that paths remember.
    pub remember: Remember,
}

impl<T: RowOperator> Kernel<Rows> for RowAdapter<T> {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.operator.begin(context)
    }

    fn step(&mut self, input: &mut Rows, _: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let mut rows = self.operator.apply(std::mem::take(input), out.context())?;
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        Ok(Step::Done)
    }
}
