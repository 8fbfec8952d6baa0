//! Steps that may follow any step: `inject()`, `timeLimit()`, and barriers.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Instruction};
use rand::Rng;

use super::chain::{Chain, ChainPosition, Generator};
use super::schema::{ObjectKind, value};
use crate::script::int;

/// A time in milliseconds that no case needs.
const NO_LIMIT_MS: i32 = 600_000;

impl Generator {
    /// `inject()` of more objects. Not in a child that runs more than once: when such an `inject()` emits is an
    /// accident of the reference implementation.
    pub fn inject_again(&mut self, chain: &mut Chain) {
        let share = if chain.state.labels.is_empty() { 0.5 } else { 0.15 };
        if chain.state.position == ChainPosition::Top && self.rng.random_bool(share) {
            self.inject_here(chain);
        }
    }

    /// An ordered stream, a step with branches that ends the order, and an `inject()`.
    pub fn ordered_branched_injected(&mut self) -> Chain {
        let mut chain = self.plain_start();
        self.order(&mut chain);
        match self.rng.random_range(0..4) {
            0 => self.coalesce(&mut chain),
            1 => self.local_or_flat_map(&mut chain),
            _ => self.union(&mut chain),
        }
        self.inject_here(&mut chain);
        let step_count = self.rng.random_range(0..3);
        self.grow(&mut chain, step_count);
        chain
    }

    fn inject_here(&mut self, chain: &mut Chain) {
        let state = &chain.state;
        let kind = if state.kind.is_homogeneous() { state.kind.clone() } else { ObjectKind::Mixed };
        let mut values: Vec<Value> = (0..self.rng.random_range(1..3)).map(|_| value(&mut self.rng, &kind)).collect();
        if self.rng.random_bool(0.4) {
            values.extend(values.clone());
        }
        chain.steps.push(Instruction::new("inject", values.into_iter().map(Argument::Value).collect()));
        let keeps = chain.state.kind == kind;
        chain.spreads(if keeps { kind } else { ObjectKind::Opaque });
        // Injected objects bear no label, and carry the sack of the source.
        chain.state.labels.clear();
        chain.state.sack = chain.state.sack.as_ref().map(|_| ObjectKind::Mixed);
    }

    /// A time limit that no run reaches.
    pub fn time_limit(&mut self, chain: &mut Chain) {
        chain.push("timeLimit", [int(NO_LIMIT_MS)]);
    }
}
