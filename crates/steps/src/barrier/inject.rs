//! `inject()`: adds values to the stream of every instance, exactly once for each instance.
//!
//! The values come before the rows of the stream. If `inject()` is the first step of a nested traversal, they come
//! after the row that enters it. An instance without rows gets its values when the group ends.

use mangrove_flow::{GroupId, Operator, Output, TagSet};
use mangrove_graph::{FastMap, Result, Value};

use mangrove_plan::logical::Operand;

use crate::context::execution::ExecutionContext;
use crate::rows::{Loops, ObjectColumn, Remember, Rows, Tags};

/// The operator of `inject()`.
pub(crate) struct Inject {
    operands: Vec<Operand>,
    /// The values of the operands in this run.
    values: Vec<Value>,
    /// True at the start of a query: the row that arrives is its unit row and does not go on.
    at_start: bool,
    /// True as the first step of a nested traversal.
    nested: bool,
    remember: Remember,
    /// The instances of each open group to which the values were sent.
    served: FastMap<GroupId, TagSet>,
}

impl Inject {
    pub fn new(operands: Vec<Operand>, at_start: bool, nested: bool, remember: Remember) -> Self {
        Inject { operands, values: Vec::new(), at_start, nested, remember, served: FastMap::default() }
    }

    /// Sends the values to these instances of a group. `is_single` says that the group has one instance (STEPS-8).
    fn serve(&self, group: GroupId, tags: &[u32], is_single: bool, out: &mut Output<'_, Rows>) -> Result<()> {
        let count = tags.len() * self.values.len();
        let objects = tags.iter().flat_map(|_| self.values.iter().cloned()).collect();
        let mut rows = Rows::of(ObjectColumn::from_values(objects));
        if !is_single || tags.iter().any(|t| *t > 0) {
            rows.tags = Tags::Many(tags.iter().flat_map(|t| self.values.iter().map(|_| *t)).collect());
        }
        let context = out.context();
        rows.path = context.paths().then(|| vec![None; count]);
        rows.loops = context.requirements.loops.then(|| vec![Loops::new(); count]);
        rows.sacks = context.fresh_sacks(count);
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        Ok(())
    }
}

impl Operator<Rows> for Inject {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.values = self.operands.iter().map(|operand| context.resolve(operand)).collect::<Result<_>>()?;
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.served.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        // The labels of the step belong to every object that leaves it.
        if !self.at_start && self.remember.has_labels() {
            batch.label(&self.remember, out.context().whole_paths());
        }
        let served = self.served.entry(group).or_default();
        let new: Vec<u32> = (0..batch.len()).map(|r| batch.tag(r)).filter(|t| served.insert(*t)).collect();
        let is_single = batch.tags == Tags::One;
        if self.nested {
            out.emit(0, group, batch)?;
            return self.serve(group, &new, is_single, out);
        }
        self.serve(group, &new, is_single, out)?;
        if self.at_start { Ok(()) } else { out.emit(0, group, batch) }
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        let served = self.served.remove(&group).unwrap_or_default();
        let rest: Vec<u32> = (0..instances).filter(|t| !served.contains(*t)).collect();
        self.serve(group, &rest, instances == 1, out)?;
        out.finish_all(group, instances)
    }
}
