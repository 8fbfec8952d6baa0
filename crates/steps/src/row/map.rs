//! Operators that make one value of each row, of any size.
//!
//! A [`RowOperator`](super::RowOperator) gives a whole batch at once. What is here may make megabytes of every row, so it
//! goes from row to row: each charges what it makes before it makes it ([`Meter`]), and the batch ends as soon as enough
//! was made. Its other rows wait until what was made of the first is worked off.

use mangrove_flow::{Batch, GroupId, Operator, Output};
use mangrove_graph::{Result, Value};

use crate::environment::Environment;
use crate::meter::{Making, Meter};
use crate::nesting::Watcher;
use crate::rows::{Column, Remember, Rows};

/// A batch ends early when so many bytes were made for it.
const BATCH_BYTES: u64 = 1 << 20;

/// An operator without state that makes a value of each row.
pub trait MapOperator: Send {
    /// Looks up what depends on the run, such as the values of parameters.
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let _ = environment;
        Ok(())
    }

    /// Reads what all rows of a batch need. [`MapOperator::map`] is called for rows of this batch only until it is called
    /// again.
    fn prepare(&mut self, rows: &Rows, environment: &Environment, meter: &mut Meter<'_>) -> Result<()> {
        let _ = (rows, environment, meter);
        Ok(())
    }

    /// What is made of a row; `None` drops the row. Everything whose size depends on the row is charged before it is made.
    fn map(
        &mut self,
        rows: &Rows,
        row: usize,
        environment: &Environment,
        meter: &mut Meter<'_>,
    ) -> Result<Option<Value>>;

    /// Forgets what a run was about.
    fn rest(&mut self) {}

    /// Where the value goes.
    fn target(&self) -> Target {
        Target::Object
    }
}

/// Where what a [`MapOperator`] makes goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// It is the row's next object.
    Object,
    /// It is the row's sack; the object stays.
    Sack,
}

/// Runs a [`MapOperator`] in the dataflow.
pub struct MapAdapter<T> {
    operator: T,
    remember: Remember,
    /// Rows that are not worked off yet.
    rest: Option<Rest>,
    watcher: Watcher,
}

struct Rest {
    group: GroupId,
    rows: Rows,
    /// The first row that is not worked off.
    at: usize,
    /// What the query is charged for the rows.
    charged: u64,
}

impl<T: MapOperator> MapAdapter<T> {
    /// Of this operator; `remember` says what it remembers of its objects.
    pub fn new(operator: T, remember: Remember) -> Self {
        MapAdapter { operator, remember, rest: None, watcher: Watcher::default() }
    }

    /// Works on rows from one on. What is not worked off is kept for the next call.
    fn advance(&mut self, work: Rest, out: &mut Output<'_, Rows>) -> Result<()> {
        let Rest { group, rows, at, charged } = work;
        let outcome = {
            let mut meter = Meter::new(out.context());
            self.make(&rows, at, out.surroundings(), &mut meter)
        };
        let made = match outcome {
            Ok(made) => made,
            Err(error) => {
                out.context().leave(rows);
                return Err(error);
            }
        };
        let target = self.operator.target();
        let mut done = if made.kept.len() == rows.len() {
            out.context().release(charged);
            put(target, rows, made.values)
        } else {
            let done = put(target, rows.take(&made.kept), made.values);
            self.keep(Rest { group, rows, at: made.next, charged }, out)?;
            done
        };
        done.remember(&self.remember);
        out.emit(0, group, done)
    }

    /// Keeps the rows that are not worked off, if there are any.
    fn keep(&mut self, mut work: Rest, out: &mut Output<'_, Rows>) -> Result<()> {
        if work.at == work.rows.len() {
            out.context().release(work.charged);
            return Ok(());
        }
        if work.charged == 0 {
            work.charged = work.rows.bytes() as u64;
            out.context().charge(work.charged)?;
        }
        self.rest = Some(work);
        out.again();
        Ok(())
    }

    /// What is made of rows from one on, until it is enough for a batch.
    fn make(&mut self, rows: &Rows, from: usize, environment: &Environment, meter: &mut Meter<'_>) -> Result<Made> {
        let room = rows.len() - from;
        let (mut values, mut kept, mut next) = (Making::new(meter, room), Vec::with_capacity(room), from);
        while next < rows.len() && meter.made() < BATCH_BYTES {
            if let Some(value) = self.operator.map(rows, next, environment, meter)? {
                values.push(value);
                self.watcher.check(values.last(), meter.context())?;
                kept.push(next as u32);
            }
            next += 1;
        }
        Ok(Made { values: values.done(), kept, next })
    }
}

/// What was made of some rows.
struct Made {
    values: Vec<Value>,
    /// The rows that the values are made of.
    kept: Vec<u32>,
    /// The first row that is left.
    next: usize,
}

/// Puts what was made of rows where it belongs.
fn put(target: Target, mut rows: Rows, values: Vec<Value>) -> Rows {
    match target {
        Target::Object => rows.with_objects(Column::from_values(values)),
        Target::Sack => {
            rows.computed.clear();
            rows.sacks = Some(values);
            rows
        }
    }
}

impl<T: MapOperator> Operator<Rows> for MapAdapter<T> {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.operator.begin(environment)
    }

    fn rest(&mut self) -> bool {
        self.operator.rest();
        self.watcher.clear();
        self.rest.is_none()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.operator.prepare(&batch, out.surroundings(), &mut Meter::new(out.context()))?;
        self.advance(Rest { group, rows: batch, at: 0, charged: 0 }, out)
    }

    fn resume(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some(mut work) = self.rest.take() else { return Ok(()) };
        if out.is_cancelled(work.group) {
            out.context().release(work.charged);
            return Ok(());
        }
        if let Some(tags) = out.cancelled_tags(work.group) {
            let wanted = (work.at..work.rows.len()).filter(|row| !tags.contains(work.rows.tag(*row)));
            work.rows = work.rows.take(&wanted.map(|row| row as u32).collect::<Vec<_>>());
            work.at = 0;
            self.operator.prepare(&work.rows, out.surroundings(), &mut Meter::new(out.context()))?;
        }
        self.advance(work, out)
    }
}

/// What an operator makes of rows, in one call.
#[cfg(test)]
pub fn map_all(
    operator: impl MapOperator,
    rows: Rows,
    environment: &Environment,
    context: &mangrove_flow::QueryContext,
) -> Result<Rows> {
    let mut adapter = MapAdapter::new(operator, Remember::default());
    adapter.operator.begin(environment)?;
    adapter.operator.prepare(&rows, environment, &mut Meter::new(context))?;
    let (mut all, mut all_kept, mut at) = (Vec::new(), Vec::new(), 0);
    while at < rows.len() {
        let made = adapter.make(&rows, at, environment, &mut Meter::new(context))?;
        all.extend(made.values);
        all_kept.extend(made.kept);
        at = made.next;
    }
    Ok(put(adapter.operator.target(), rows.take(&all_kept), all))
}
