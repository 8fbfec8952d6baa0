//! `union()` and `choose()`: one scope for the whole stream, split and merged again.
//!
//! No groups are made: a barrier inside a branch sees the stream of all traversers, as the language has it.

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::compare::equal;
use mangrove_graph::{Error, Result, Value};

use crate::barrier::held::FastMap;
use crate::rows::Rows;
use crate::test::CompiledTest;

/// Sends every row into every branch.
pub struct Split {
    /// How many branches.
    pub branches: usize,
}

impl Operator<Rows> for Split {
    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        batch.slots.clear();
        for edge in 1..self.branches {
            out.emit(edge, group, batch.clone())?;
        }
        out.emit(0, group, batch)
    }
}

/// When an option is taken.
pub enum When {
    /// The deciding slot is this boolean.
    Is(bool),
    /// It equals this.
    Equals(Value),
    /// It passes.
    Passes(CompiledTest),
    /// Nothing else matched.
    Otherwise,
    /// The slot is unproductive.
    Unproductive,
}

/// Sends each row into the first option that slot 0 matches; edge `options.len()` takes the others past.
pub struct Switch {
    /// The options in order.
    pub options: Vec<When>,
}

impl Switch {
    fn choose(&self, decision: Option<&Value>) -> usize {
        let past = self.options.len();
        let position = |f: &dyn Fn(&When) -> bool| self.options.iter().position(f);
        let Some(value) = decision else {
            return position(&|w| matches!(w, When::Unproductive)).unwrap_or(past);
        };
        position(&|when| match when {
            When::Is(truth) => *value == Value::Bool(*truth),
            When::Equals(option) => equal(value, option),
            When::Passes(test) => test.holds(value),
            When::Otherwise | When::Unproductive => false,
        })
        .or_else(|| position(&|w| matches!(w, When::Otherwise)))
        .unwrap_or(past)
    }
}

impl Operator<Rows> for Switch {
    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if batch.slots.is_empty() {
            return Err(Error::bug("choose() has a slot to decide by"));
        }
        let mut routes: Vec<Vec<u32>> = vec![Vec::new(); self.options.len() + 1];
        for row in 0..batch.len() {
            routes[self.choose(batch.slot(0, row))].push(row as u32);
        }
        batch.slots.clear();
        for (edge, rows) in routes.iter().enumerate() {
            if !rows.is_empty() {
                out.emit(edge, group, batch.take(rows))?;
            }
        }
        Ok(())
    }
}

/// Where branches come together again: a port each.
pub struct Merge {
    branches: u32,
    ended: FastMap<GroupId, u32>,
}

impl Merge {
    /// Of this many branches.
    pub fn new(branches: usize) -> Self {
        Merge { branches: branches as u32, ended: FastMap::default() }
    }
}

impl Operator<Rows> for Merge {
    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        out.emit(0, group, batch)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        let ended = self.ended.entry(group).or_default();
        *ended += 1;
        if *ended < self.branches {
            return Ok(());
        }
        self.ended.remove(&group);
        out.finish_all(group, instances)
    }
}
