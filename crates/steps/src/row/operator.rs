//! The interface of a row operator, and the adapter that runs one in the dataflow.
//!
//! A row operator has no state: its results depend on the batch and on the snapshot alone. So it may run on any node.

use mangrove_flow::{BATCH_ROWS, Batch as _, Cursor, GroupId, Kernel, Output, Step};
use mangrove_graph::{Need, Result};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::rows::{ObjectColumn, Remember, Rows};

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

    /// Returns what it reads of the objects from a row on. Called only if the view may be late.
    fn needs<'a>(&mut self, objects: &'a ObjectColumn, from: usize, context: &ExecutionContext) -> Result<Need<'a>> {
        let _ = (objects, from, context);
        Ok(Need::Nothing)
    }

    /// Works on one batch. An operator whose work on a row may be long looks at the limits of the query on the way.
    fn apply(&mut self, rows: Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<Rows>;

    /// Returns the size of the slices in which rows are worked on, if one row may make many rows or a large value.
    fn slices(&mut self) -> Option<&mut SliceSize> {
        None
    }
}

/// The number of rows that are likely to make about a message of rows, and no more than a megabyte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SliceSize(usize);

/// The first slice has at most this many rows. A message of no more rows teaches nothing, so that light queries do not
/// measure what they make.
const SLICE_ROWS_FIRST: usize = BATCH_ROWS / 16;

/// The bytes that a slice may make before the next one is smaller.
const SLICE_BYTES: usize = 1 << 20;

impl Default for SliceSize {
    /// Few rows, until it is known how much a row makes.
    fn default() -> Self {
        SliceSize(SLICE_ROWS_FIRST)
    }
}

impl SliceSize {
    /// Learns from the rows and bytes that a slice has made.
    fn learn(&mut self, rows: usize, bytes: usize) {
        let share = (rows as f64 / BATCH_ROWS as f64).max(bytes as f64 / SLICE_BYTES as f64);
        self.0 = if share > 1.0 { (self.0 as f64 / share) as usize } else { 2 * self.0 }.clamp(1, BATCH_ROWS);
    }
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

    fn needs<'a>(&'a mut self, input: &'a Rows, at: &'a Cursor, context: &'a ExecutionContext) -> Result<Need<'a>> {
        self.operator.needs(&input.objects, at.row as usize, context)
    }

    fn step(&mut self, input: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let (from, count) = (at.row as usize, input.len());
        let until = self.operator.slices().map_or(count, |slice| count.min(from + slice.0));
        let slice = match (from, until) {
            (0, until) if until == count => std::mem::take(input),
            _ => input.take(&(from as u32..until as u32).collect::<Vec<_>>()),
        };
        let mut rows = self.operator.apply(slice, out.context(), &mut Meter::new(out.control()))?;
        if let Some(slice) = self.operator.slices()
            && (until < count || until - from > SLICE_ROWS_FIRST)
        {
            slice.learn(rows.len(), rows.bytes());
        }
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        at.go_to(until);
        Ok(if until < count { Step::More } else { Step::Done })
    }
}
