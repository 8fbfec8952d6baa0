//! `inject()`: values into the stream of every instance, before what comes anyway; as the first step of a nested
//! traversal, behind the row that enters it.

use mangrove_flow::{GroupId, Operator, Output, TagSet};
use mangrove_graph::{Result, Value};

use mangrove_plan::logical::Operand;

use crate::barrier::held::FastMap;
use crate::environment::Environment;
use crate::rows::{Column, Loops, Remember, Rows, Tags};

/// Puts values into every instance's stream.
pub struct Inject {
    operands: Vec<Operand>,
    values: Vec<Value>,
    /// At a traversal's start the row that comes is only the query's unit: it does not go on.
    at_start: bool,
    /// It begins a nested traversal.
    nested: bool,
    remember: Remember,
    served: FastMap<GroupId, TagSet>,
}

impl Inject {
    /// These values.
    pub fn new(operands: Vec<Operand>, at_start: bool, nested: bool, remember: Remember) -> Self {
        Inject { operands, values: Vec::new(), at_start, nested, remember, served: FastMap::default() }
    }

    fn serve(&self, group: GroupId, tags: &[u32], instances_known: bool, out: &mut Output<'_, Rows>) -> Result<()> {
        let count = tags.len() * self.values.len();
        let objects = tags.iter().flat_map(|_| self.values.iter().cloned()).collect();
        let mut rows = Rows::of(Column::from_values(objects));
        if !instances_known || tags.iter().any(|t| *t > 0) {
            rows.tags = Tags::Many(tags.iter().flat_map(|t| self.values.iter().map(|_| *t)).collect());
        }
        let environment = out.surroundings();
        rows.path = environment.paths().then(|| vec![None; count]);
        rows.loops = environment.requirements.loops.then(|| vec![Loops::new(); count]);
        rows.sacks = environment.fresh_sacks(count);
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        Ok(())
    }
}

impl Operator<Rows> for Inject {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.values = self.operands.iter().map(|operand| environment.resolve(operand)).collect::<Result<_>>()?;
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.served.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        // Labels of the step are those of every object that leaves it.
        if !self.at_start && self.remember.objects && !self.remember.labels.is_empty() {
            batch.label(&self.remember.labels, out.surroundings().whole_paths());
        }
        let served = self.served.entry(group).or_default();
        let new: Vec<u32> = (0..batch.len()).map(|r| batch.tag(r)).filter(|t| served.insert(*t)).collect();
        let one = batch.tags == Tags::One;
        if self.nested {
            out.emit(0, group, batch)?;
            return self.serve(group, &new, one, out);
        }
        self.serve(group, &new, one, out)?;
        if self.at_start { Ok(()) } else { out.emit(0, group, batch) }
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        let served = self.served.remove(&group).unwrap_or_default();
        let rest: Vec<u32> = (0..instances).filter(|t| !served.contains(*t)).collect();
        self.serve(group, &rest, instances == 1, out)?;
        out.finish_all(group, instances)
    }
}
