//! `fold(seed, operator)`: folds the objects of each instance into one value.

use mangrove_flow::{Cursor, GroupId, Operator, Output, Step, TagSet};
use mangrove_graph::{Result, Value};
use mangrove_gremlin::Operator as Fold;
use mangrove_plan::logical::Operand;

use crate::context::execution::ExecutionContext;
use crate::limits::meter::Meter;
use crate::limits::sizes::Sizes;
use crate::rows::held::{ByInstance, send_results};
use crate::rows::{Remember, Rows};
use crate::values::fold;

/// Folds the objects of each instance into a seed, in their order. An instance without rows gives the seed.
pub(crate) struct FoldInto {
    operand: Operand,
    fold: Fold,
    seed: Value,
    remember: Remember,
    states: ByInstance<Value>,
}

impl FoldInto {
    pub fn new(operand: Operand, fold: Fold, remember: Remember) -> Self {
        FoldInto { operand, fold, seed: Value::Null, remember, states: ByInstance::default() }
    }
}

impl Operator<Rows> for FoldInto {
    fn is_by_group(&self) -> bool {
        true
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.seed = context.resolve(&self.operand)?;
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.states.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.states.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let states = self.states.group(group);
        let mut meter = Meter::new(out.control());
        let (mut sizes, mut grown) = (Sizes::default(), 0_u64);
        for row in 0..batch.len() {
            let state = ByInstance::entry(states, batch.tag(row), || self.seed.clone());
            let held = batch.objects.values().get(row).map_or(0, |value| sizes.pointed_to(value));
            let object = batch.object(row);
            if self.fold == Fold::AddAll {
                // The members are charged while the state holds them, with what they hold.
                let growth = fold::growth(self.fold, &object).saturating_add(held);
                grown = grown.saturating_add((growth as u64).saturating_mul(batch.bulk(row)));
            }
            // A collection takes each object as one member, also if the object is a collection; only sacks take its
            // members.
            let object = match (self.fold, &self.seed) {
                (Fold::AddAll, Value::List(_) | Value::Set(_)) => Value::list(vec![object]),
                _ => object,
            };
            *state = fold::apply_times(self.fold, std::mem::take(state), &object, batch.bulk(row), &mut meter)?;
        }
        drop(meter);
        self.states.charge(group, grown, out)
    }

    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        let FoldInto { seed, remember, states, .. } = self;
        send_results(states, (group, instances), at, remember, out, |state, _| {
            Ok(Some(state.unwrap_or_else(|| seed.clone())))
        })
    }
}
