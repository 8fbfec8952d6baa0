//! The tests of a loop: which rows leave it, which are emitted, and which go on.

use mangrove_flow::{GroupId, Output, QueryControl};
use mangrove_graph::{Result, Value};
use mangrove_plan::logical::{Avoids, Operand};

use crate::context::execution::ExecutionContext;
use crate::limits::nesting;
use crate::rows::path;
use crate::rows::{BindingColumn, ObjectColumn, Rows};
use crate::values::predicate::CompiledTest;

/// The edge to the tests before the body.
pub(super) const BEFORE: usize = 0;
/// The edge to the body.
pub(super) const BODY: usize = 1;
/// The edge out of the loop.
pub(super) const EXIT: usize = 2;

/// The condition under which a row leaves the loop, or is emitted. Operands have their values of the current run.
pub(crate) enum LoopCondition {
    /// For every row.
    Always,
    /// After this many iterations.
    Times(Operand, i64),
    /// A test of the object.
    Test(CompiledTest),
    /// A boolean in this computed column.
    Computed(usize),
}

/// The structure of a loop, fixed by the plan.
pub(crate) struct LoopShape {
    /// The condition under which a row leaves the loop.
    pub until: Option<LoopCondition>,
    /// True if `until` is tested before the body.
    pub until_first: bool,
    /// The condition under which a row is also emitted.
    pub emit: Option<LoopCondition>,
    /// True if `emit` is tested before the body.
    pub emit_first: bool,
    /// True if an instance goes on from each vertex only once.
    pub once: bool,
    /// With `once`: the vertices that count as reached when a row enters the loop.
    pub avoids: Avoids,
    /// True if an iteration begins with the first rows for it.
    pub overlaps: bool,
    /// The maximum number of collections that one iteration adds to a path: so many of its newest objects are checked
    /// for their nesting.
    pub collections_made: usize,
}

impl LoopCondition {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        match self {
            LoopCondition::Times(operand, times) => {
                *times = context.resolve_integer(operand, "the argument of times()")?;
                Ok(())
            }
            LoopCondition::Test(test) => test.begin(context),
            LoopCondition::Always | LoopCondition::Computed(_) => Ok(()),
        }
    }

    fn holds(test: Option<&LoopCondition>, rows: &Rows, row: usize, iterations: u32) -> bool {
        match test {
            None => false,
            Some(LoopCondition::Always) => true,
            Some(LoopCondition::Times(_, times)) => i64::from(iterations) >= *times,
            Some(LoopCondition::Test(test)) => test.holds(&rows.object(row)),
            Some(LoopCondition::Computed(column)) => rows.computed_value(*column, row) == Some(&Value::Bool(true)),
        }
    }
}

impl LoopShape {
    /// Begins a run.
    pub fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.until.iter_mut().chain(&mut self.emit).try_for_each(|test| test.begin(context))
    }

    /// Sends the rows that leave the loop here and the rows that are emitted. Returns the rows that go on, with their
    /// computed columns.
    pub fn test(
        &self,
        rows: Rows,
        before: bool,
        iterations: u32,
        group: GroupId,
        out: &mut Output<'_, Rows>,
    ) -> Result<Rows> {
        let until = (self.until_first == before).then_some(self.until.as_ref()).flatten();
        let emit = (self.emit_first == before).then_some(self.emit.as_ref()).flatten();
        let (mut leaving, mut staying) = (Vec::new(), Vec::new());
        for row in 0..rows.len() {
            if LoopCondition::holds(until, &rows, row, iterations) {
                leaving.push(row as u32);
                continue;
            }
            if LoopCondition::holds(emit, &rows, row, iterations) {
                leaving.push(row as u32);
            }
            staying.push(row as u32);
        }
        let mut gone = rows.take(&leaving);
        gone.computed.clear();
        for loops in gone.loops.iter_mut().flatten() {
            loops.pop();
        }
        out.emit(EXIT, group, gone)?;
        Ok(rows.keep(&staying))
    }
}

/// Fails if a row would carry a value that nests too deep into the next iteration: as its object, in its sack, under a
/// label, or among the newest objects of its path.
pub(super) fn check_nesting(rows: &Rows, newest: usize, control: &QueryControl) -> Result<()> {
    if let ObjectColumn::Values(values) = &rows.objects {
        nesting::check_all(values, control)?;
    }
    nesting::check_all(rows.sacks.iter().flatten(), control)?;
    nesting::check_all(rows.bindings.iter().flat_map(BindingColumn::values), control)?;
    let objects = rows.path.iter().flatten().flat_map(|path| path::newest_first(path).take(newest));
    nesting::check_all(objects.map(|node| &node.object), control)
}
