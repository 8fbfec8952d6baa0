//! `inject()`: adds values to the stream of every instance, exactly once for each instance.
//!
//! The values come before the rows of the stream. If `inject()` is the first step of a nested traversal, they come
//! after the row that enters it. An instance without rows gets its values when the group ends.

use mangrove_flow::{BATCH_ROWS, Cursor, Detail, GroupId, Operator, Output, Step, TagSet};
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

    /// Sends the values to these instances of a group, a message at a time. `is_single` says that the group has one
    /// instance (STEPS-8).
    fn serve(&self, group: GroupId, tags: &[u32], is_single: bool, out: &mut Output<'_, Rows>) -> Result<()> {
        let mut from = Place::default();
        while self.serve_next(group, tags, is_single, &mut from, out)? {
            out.control().check()?;
        }
        Ok(())
    }

    /// Sends the next values, as many as a message holds. Returns true if values are left.
    fn serve_next(
        &self,
        group: GroupId,
        tags: &[u32],
        is_single: bool,
        at: &mut Place,
        out: &mut Output<'_, Rows>,
    ) -> Result<bool> {
        let (mut objects, mut owners) = (Vec::new(), Vec::new());
        while at.instance < tags.len() && objects.len() < BATCH_ROWS {
            let rest = &self.values[at.value..];
            let some = &rest[..rest.len().min(BATCH_ROWS - objects.len())];
            objects.extend_from_slice(some);
            owners.resize(objects.len(), tags[at.instance]);
            at.value += some.len();
            if at.value == self.values.len() {
                *at = Place { instance: at.instance + 1, value: 0 };
            }
        }
        let count = objects.len();
        let mut rows = Rows::of(ObjectColumn::from_values(objects));
        if !is_single || owners.iter().any(|tag| *tag > 0) {
            rows.tags = Tags::Many(owners);
        }
        let context = out.context();
        rows.path = context.paths().then(|| vec![None; count]);
        rows.loops = context.requirements.loops.then(|| vec![Loops::new(); count]);
        rows.sacks = context.fresh_sacks(count);
        rows.remember(&self.remember);
        out.emit(0, group, rows)?;
        Ok(at.instance < tags.len())
    }
}

/// The next value to be sent, and the instance that gets it.
#[derive(Clone, Copy, Default)]
struct Place {
    instance: usize,
    value: usize,
}

impl Operator<Rows> for Inject {
    fn is_by_group(&self) -> bool {
        true
    }

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

    /// Each step sends a message of values to instances without rows. The row of the cursor is the first instance that
    /// is not served, and its detail the first value that this one lacks.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let value = if let Detail::Words([value, _]) = at.detail { value as usize } else { 0 };
        let served = self.served.get(&group);
        let is_unserved = |tag: &u32| served.is_none_or(|served| !served.contains(*tag));
        let some: Vec<u32> = (at.row..instances).filter(is_unserved).take(BATCH_ROWS).collect();
        let mut place = Place { instance: 0, value };
        if !some.is_empty() {
            self.serve_next(group, &some, instances == 1, &mut place, out)?;
            let next = match some.get(place.instance) {
                Some(tag) => Some(*tag),
                None => some.last().map(|tag| tag + 1).filter(|next| *next < instances),
            };
            if let Some(next) = next {
                *at = Cursor { row: next, detail: Detail::Words([place.value as u64, 0]) };
                return Ok(Step::More);
            }
        }
        self.served.remove(&group);
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
