//! The interface of operators that make one value of any size for each row, and the adapter that runs one.
//!
//! A [`RowOperator`](crate::row::operator::RowOperator) handles a whole batch at once. A map operator may make
//! megabytes for each row, so it goes from row to row. It charges each value before making it ([`Meter`]), and the
//! batch ends as soon as enough bytes were made. The other rows wait until the first ones are worked off downstream
//! (FLOW-2).

use mangrove_flow::{BATCH_ROWS, Cursor, GroupId, Kernel, Output, Step};
use mangrove_graph::{Result, Value};

use crate::context::execution::ExecutionContext;
use crate::limits::meter::{MadeSoFar, Meter};
use crate::limits::nesting::NestingWatcher;
use crate::rows::{ObjectColumn, Remember, Rows};

/// A batch ends early after this many bytes were made for it.
const BATCH_BYTES: u64 = 1 << 20;

/// An operator without state that makes one value for each row.
pub(crate) trait MapOperator: Send {
    /// Looks up inputs that depend on the run, such as the values of parameters.
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Reads the inputs for all rows of a batch. [`MapOperator::map`] is called for rows of this batch only until it is
    /// called again.
    fn prepare(&mut self, rows: &Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<()> {
        let _ = (rows, context, meter);
        Ok(())
    }

    /// Makes the value for a row; `None` drops the row. Every value whose size depends on the row is charged before it
    /// is made.
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>>;

    /// Ends a run: drops everything that was read for it.
    fn recycle(&mut self) {}

    /// Returns true if the rows leave the operator as they are, with their computed columns: the reader of the results
    /// makes the values.
    fn leaves_rows(&self, context: &ExecutionContext) -> bool {
        let _ = context;
        false
    }

    /// Returns the column that the values go to.
    fn target(&self) -> ValueTarget {
        ValueTarget::Object
    }
}

/// The column that the values of a [`MapOperator`] go to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ValueTarget {
    /// The value becomes the object of the row.
    Object,
    /// The value becomes the sack of the row; the object stays.
    Sack,
    /// The row stays as it is: the operator is a filter.
    Nothing,
}

/// Runs a [`MapOperator`] in the dataflow.
pub(crate) struct MapAdapter<T> {
    operator: T,
    remember: Remember,
    watcher: NestingWatcher,
    /// The number of rows that a step prepares: as many as are likely to be done in it.
    slice: usize,
}

impl<T: MapOperator> MapAdapter<T> {
    pub fn new(operator: T, remember: Remember) -> Self {
        MapAdapter { operator, remember, watcher: NestingWatcher::default(), slice: BATCH_ROWS }
    }

    /// Makes the values for the next rows. Returns those rows with their values, and the first row that is not done.
    fn next_rows(&mut self, rows: &mut Rows, from: usize, out: &Output<'_, Rows>) -> Result<(Rows, usize)> {
        let until = rows.len().min(from + self.slice);
        if from > 0 || until < rows.len() {
            let mut slice = rows.take(&(from as u32..until as u32).collect::<Vec<_>>());
            let (done, next) = self.slice_values(&mut slice, out)?;
            return Ok((done, from + next));
        }
        self.slice_values(rows, out)
    }

    /// As [`MapAdapter::next_rows`], for rows that are prepared together. If all get a value, they are moved out.
    fn slice_values(&mut self, rows: &mut Rows, out: &Output<'_, Rows>) -> Result<(Rows, usize)> {
        let context = out.context();
        self.operator.prepare(rows, context, &mut Meter::new(out.control()))?;
        let mut meter = Meter::new(out.control());
        let MadeValues { values, kept, next } = self.make(rows, context, &mut meter)?;
        if next < rows.len() {
            self.slice = next.max(1);
        } else if meter.made() < BATCH_BYTES / 2 {
            self.slice = (self.slice * 2).min(BATCH_ROWS);
        }
        let rows = if kept.len() == rows.len() { std::mem::take(rows) } else { rows.take(&kept) };
        Ok((put(self.operator.target(), rows, values), next))
    }

    /// Makes values for prepared rows, until they are enough for a batch.
    fn make(&mut self, rows: &Rows, context: &ExecutionContext, meter: &mut Meter<'_>) -> Result<MadeValues> {
        let (mut values, mut kept, mut next) = (MadeSoFar::new(meter, rows.len()), Vec::with_capacity(rows.len()), 0);
        while next < rows.len() && meter.made() < BATCH_BYTES {
            if let Some(value) = self.operator.map(rows, next, context, meter)? {
                values.push(value);
                self.watcher.check(values.last(), meter.control())?;
                kept.push(next as u32);
            }
            next += 1;
        }
        Ok(MadeValues { values: values.done(), kept, next })
    }
}

/// The values made for some rows.
struct MadeValues {
    values: Vec<Value>,
    /// The rows that the values were made for.
    kept: Vec<u32>,
    /// The first row that is not done.
    next: usize,
}

/// Puts values into the objects or sacks of their rows.
fn put(target: ValueTarget, mut rows: Rows, values: Vec<Value>) -> Rows {
    match target {
        ValueTarget::Object => rows.with_objects(ObjectColumn::from_values(values)),
        ValueTarget::Sack => {
            rows.computed.clear();
            rows.sacks = Some(values);
            rows
        }
        ValueTarget::Nothing => {
            rows.computed.clear();
            rows
        }
    }
}

impl<T: MapOperator> Kernel<Rows> for MapAdapter<T> {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.operator.begin(context)
    }

    fn recycle(&mut self) {
        self.operator.recycle();
        self.watcher.clear();
        self.slice = BATCH_ROWS;
    }

    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        let count = rows.len();
        if at.row == 0 && self.operator.leaves_rows(out.context()) {
            out.emit(0, group, std::mem::take(rows))?;
            at.go_to(count);
            return Ok(Step::Done);
        }
        let (mut done, next) = match self.next_rows(rows, at.row as usize, out) {
            Ok(made) => made,
            Err(error) => {
                out.control().leave(std::mem::take(rows));
                return Err(error);
            }
        };
        done.remember(&self.remember);
        out.emit(0, group, done)?;
        at.go_to(next);
        Ok(if next < count { Step::More } else { Step::Done })
    }
}

/// Returns the rows that an operator makes from rows in one call.
#[cfg(test)]
pub(crate) fn map_all(
    operator: impl MapOperator,
    rows: Rows,
    context: &ExecutionContext,
    control: &mangrove_flow::QueryControl,
) -> Result<Rows> {
    let mut adapter = MapAdapter::new(operator, Remember::default());
    adapter.operator.begin(context)?;
    let (mut all, mut all_kept, mut at) = (Vec::new(), Vec::new(), 0);
    while at < rows.len() {
        let rest = rows.take(&(at as u32..rows.len() as u32).collect::<Vec<_>>());
        adapter.operator.prepare(&rest, context, &mut Meter::new(control))?;
        let made = adapter.make(&rest, context, &mut Meter::new(control))?;
        all.extend(made.values);
        all_kept.extend(made.kept.iter().map(|row| at as u32 + row));
        at += made.next;
    }
    Ok(put(adapter.operator.target(), rows.take(&all_kept), all))
}
