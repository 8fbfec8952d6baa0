//! `fold(seed, operator)`: all objects folded into one value.

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::{Result, Value};
use mangrove_gremlin::Operator as Fold;
use mangrove_plan::logical::Operand;

use crate::barrier::held::{ByInstance, rows_by_instance};
use crate::environment::Environment;
use crate::meter::Meter;
use crate::nesting;
use crate::operator;
use crate::rows::{Remember, Rows};
use crate::size::Sizes;

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
        let mut meter = Meter::new(out.context());
        let (mut sizes, mut grown) = (Sizes::default(), 0_u64);
        for row in 0..batch.len() {
            let state = ByInstance::entry(states, batch.tag(row), || self.seed.clone());
            let held = batch.objects.values().get(row).map_or(0, |value| sizes.behind(value));
            let object = batch.object(row);
            if self.fold == Fold::AddAll {
                // The members are charged while the state holds them, with what they hold.
                let growth = operator::growth(self.fold, &object).saturating_add(held);
                grown = grown.saturating_add((growth as u64).saturating_mul(batch.bulk(row)));
            }
            // A collection takes what comes as its members, collections too; only sacks take their members.
            let object = match (self.fold, &self.seed) {
                (Fold::AddAll, Value::List(_) | Value::Set(_)) => Value::list(vec![object]),
                _ => object,
            };
            *state = operator::apply_times(self.fold, std::mem::take(state), &object, batch.bulk(row), &mut meter)?;
        }
        drop(meter);
        self.states.charge(group, grown, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        let states = self.states.take(group, instances, out);
        let results: Vec<_> =
            states.into_iter().map(|state| Some(state.unwrap_or_else(|| self.seed.clone()))).collect();
        nesting::check_made(results.iter().flatten(), out.context())?;
        let mut rows = rows_by_instance(results, instances, out.surroundings());
        rows.remember(&self.remember);
        for chunk in rows.chunks() {
            out.emit(0, group, chunk)?;
        }
        out.finish_all(group, instances)
    }
}
