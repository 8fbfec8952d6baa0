//! The interface of operators that make one value of any size for each row, and the adapter that runs one.
//!
//! A [`RowOperator`](crate::row::operator::RowOperator) handles a whole batch at once. A map operator may make
//! megabytes for each row, so it goes from row to row. It charges each value before making it ([`Meter`]), and the
//! batch ends as soon as enough bytes were made. The other rows wait until the first ones are worked off downstream
//! (FLOW-2).

use mangrove_flow::{Batch, GroupId, Operator, Output};
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
}

/// Runs a [`MapOperator`] in the dataflow.
pub(crate) struct MapAdapter<T> {
    operator: T,
    remember: Remember,
    /// The rows that are not done.
    rest: Option<RowsLeft>,
    watcher: NestingWatcher,
}

struct RowsLeft {
    group: GroupId,
    rows: Rows,
    /// The first row that is not done.
    at: usize,
    /// Bytes charged for the rows.
    charged: u64,
}

impl<T: MapOperator> MapAdapter<T> {
    pub fn new(operator: T, remember: Remember) -> Self {
        MapAdapter { operator, remember, rest: None, watcher: NestingWatcher::default() }
    }

    /// Works on rows from `first` on. Those not done are kept for the next call.
    fn advance(&mut self, work: RowsLeft, out: &mut Output<'_, Rows>) -> Result<()> {
        let RowsLeft { group, rows, at, charged } = work;
        let outcome = {
            let mut meter = Meter::new(out.control());
            self.make(&rows, at, out.context(), &mut meter)
        };
        let made = match outcome {
            Ok(made) => made,
            Err(error) => {
                out.control().leave(rows);
                return Err(error);
            }
        };
        let target = self.operator.target();
        let mut done = if made.kept.len() == rows.len() {
            out.control().release(charged);
            put(target, rows, made.values)
        } else {
            let done = put(target, rows.take(&made.kept), made.values);
            self.keep(RowsLeft { group, rows, at: made.next, charged }, out)?;
            done
        };
        done.remember(&self.remember);
        out.emit(0, group, done)
    }

    /// Keeps the rows that are not done, if any.
    fn keep(&mut self, mut work: RowsLeft, out: &mut Output<'_, Rows>) -> Result<()> {
        if work.at == work.rows.len() {
            out.control().release(work.charged);
            return Ok(());
        }
        if work.charged == 0 {
            work.charged = work.rows.bytes() as u64;
            out.control().charge(work.charged)?;
        }
        self.rest = Some(work);
        out.again();
        Ok(())
    }

    /// Makes values for rows from one on, until they are enough for a batch.
    fn make(
        &mut self,
        rows: &Rows,
        from: usize,
        context: &ExecutionContext,
        meter: &mut Meter<'_>,
    ) -> Result<MadeValues> {
        let room = rows.len() - from;
        let (mut values, mut kept, mut next) = (MadeSoFar::new(meter, room), Vec::with_capacity(room), from);
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
    }
}

impl<T: MapOperator> Operator<Rows> for MapAdapter<T> {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.operator.begin(context)
    }

    fn recycle(&mut self) -> bool {
        self.operator.recycle();
        self.watcher.clear();
        self.rest.is_none()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.operator.prepare(&batch, out.context(), &mut Meter::new(out.control()))?;
        self.advance(RowsLeft { group, rows: batch, at: 0, charged: 0 }, out)
    }

    fn resume(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(mut work) = self.rest.take() else { return Ok(()) };
        if out.is_cancelled(work.group) {
            out.control().release(work.charged);
            return Ok(());
        }
        if let Some(tags) = out.cancelled_tags(work.group) {
            let wanted = (work.at..work.rows.len()).filter(|row| !tags.contains(work.rows.tag(*row)));
            work.rows = work.rows.take(&wanted.map(|row| row as u32).collect::<Vec<_>>());
            work.at = 0;
            self.operator.prepare(&work.rows, out.context(), &mut Meter::new(out.control()))?;
        }
        self.advance(work, out)
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
    adapter.operator.prepare(&rows, context, &mut Meter::new(control))?;
    let (mut all, mut all_kept, mut at) = (Vec::new(), Vec::new(), 0);
    while at < rows.len() {
        let made = adapter.make(&rows, at, context, &mut Meter::new(control))?;
        all.extend(made.values);
        all_kept.extend(made.kept);
        at = made.next;
    }
    Ok(put(adapter.operator.target(), rows.take(&all_kept), all))
}
