//! `fold(seed, operator)`: all objects folded into one value.

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::{Result, Value};
use mangrove_gremlin::Operator as Fold;
use mangrove_plan::logical::Operand;

use crate::barrier::held::{ByInstance, rows_by_instance};
use crate::environment::Environment;
use crate::operator;
use crate::rows::{Remember, Rows};

/// Folds an instance's objects into a seed, in their order. Nothing folded gives the seed.
pub struct FoldInto {
    operand: Operand,
    fold: Fold,
    seed: Value,
    remember: Remember,
    states: ByInstance<Value>,
}

impl FoldInto {
    /// Into this seed.
    pub fn new(operand: Operand, fold: Fold, remember: Remember) -> Self {
        FoldInto { operand, fold, seed: Value::Null, remember, states: ByInstance::default() }
    }
}

impl Operator<Rows> for FoldInto {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.seed = environment.resolve(&self.operand)?;
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.states.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let states = self.states.group(group);
        for row in 0..batch.len() {
            let state = ByInstance::entry(states, batch.tag(row), || self.seed.clone());
            let object = batch.object(row);
            // A collection takes what comes as its members, collections too; only sacks take their members.
            let object = match (self.fold, &self.seed) {
                (Fold::AddAll, Value::List(_) | Value::Set(_)) => Value::list(vec![object]),
                _ => object,
            };
            *state = operator::apply_times(self.fold, state, &object, batch.bulk(row), out.context())?;
        }
        Ok(())
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        let states = self.states.take(group, instances, out);
        let results = states.into_iter().map(|state| Some(state.unwrap_or_else(|| self.seed.clone()))).collect();
        let mut rows = rows_by_instance(results, instances, out.surroundings());
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        out.finish_all(group, instances)
    }
}
