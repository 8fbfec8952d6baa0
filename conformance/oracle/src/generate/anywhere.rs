//! Steps that may stand after any other: `inject()`, `timeLimit()`, and barriers.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Instruction};
use rand::Rng;

use super::chain::{Chain, Generator, Place};
use super::schema::{Kind, value};
use crate::script::int;

/// A time that no case takes, in milliseconds.
const NO_LIMIT_MS: i32 = 600_000;

impl Generator {
    /// `inject()` of more objects. In a child that runs more than once, when it injects is an accident of the reference.
    pub fn inject_again(&mut self, chain: &mut Chain) {
        let share = if chain.state.labels.is_empty() { 0.5 } else { 0.15 };
        if chain.state.place == Place::Top && self.rng.random_bool(share) {
            self.inject_here(chain);
        }
    }

    /// A sequence that a step with branches takes apart, and what is injected after it.
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
        let kind = if state.kind.is_homogeneous() { state.kind.clone() } else { Kind::Mixed };
        let mut values: Vec<Value> = (0..self.rng.random_range(1..3)).map(|_| value(&mut self.rng, &kind)).collect();
        if self.rng.random_bool(0.4) {
            values.extend(values.clone());
        }
        chain.steps.push(Instruction::new("inject", values.into_iter().map(Argument::Value).collect()));
        let keeps = chain.state.kind == kind;
        chain.spreads(if keeps { kind } else { Kind::Opaque });
        // What is injected bears no label, and carries the sack of the source.
        chain.state.labels.clear();
        chain.state.sack = chain.state.sack.as_ref().map(|_| Kind::Mixed);
    }

    /// A limit that is never reached.
    pub fn time_limit(&mut self, chain: &mut Chain) {
        chain.push("timeLimit", [int(NO_LIMIT_MS)]);
    }
}
