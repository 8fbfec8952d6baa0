//! Configured traversal sources: sacks, side effects, strategies.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Instruction, Operator};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{NAMES, ObjectKind};
use crate::script::{int, nested, step, text};

impl Generator {
    /// Configures the source of a traversal before its first step.
    pub fn configure(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..19) {
            16 => self.source.push(step("withBulk", [Argument::Value(Value::Bool(true))])),
            17 | 18 => self.without_strategies(),
            0..=3 => self.with_sack(chain),
            4 | 5 => self.with_side_effect(chain),
            6..=8 => self.with_subgraph(),
            9 => self.with_partition(),
            10 | 11 => self.with_productive_by(),
            12 if self.rng.random_bool(0.5) => self.with_verification(),
            12 => self.with_strategy("ReadOnlyStrategy"),
            13 => {
                let names = ["EarlyLimitStrategy", "InlineFilterStrategy", "LazyBarrierStrategy", "CountStrategy"];
                let name = *names.choose(&mut self.rng).expect("not empty");
                self.with_strategy(name);
            }
            14 => self.source.push(step("withPath", [])),
            _ => self.source.push(step("with", [text("evaluationTimeout"), int(600_000)])),
        }
    }

    fn with_sack(&mut self, chain: &mut Chain) {
        let (initial, kind) = match self.rng.random_range(0..3) {
            0 => (Value::F64(0.5), ObjectKind::Float),
            1 => (Value::I64(1), ObjectKind::Int(64)),
            _ => (Value::I32(1), ObjectKind::Int(32)),
        };
        self.source.push(step("withSack", [Argument::Value(initial)]));
        chain.state.sack = Some(kind);
    }

    fn with_side_effect(&mut self, chain: &mut Chain) {
        let names = NAMES.choose_multiple(&mut self.rng, 3).map(|name| Value::from(*name)).collect();
        self.source.push(step("withSideEffect", [text("s"), Argument::Value(Value::list(names))]));
        chain.state.side_effects.push(("s", ObjectKind::Text));
    }

    /// Reads the sack or folds a value into it.
    pub fn sack(&mut self, chain: &mut Chain) {
        let Some(sack) = chain.state.sack.clone() else { return };
        if self.rng.random_bool(0.3) {
            chain.push("sack", []);
            return chain.becomes(sack);
        }
        let constant = |n: Value| vec![nested([step("constant", [Argument::Value(n)])])];
        let by = match (&chain.state.kind, self.rng.random_range(0..3)) {
            (ObjectKind::Vertex, 0) => vec![text(if sack == ObjectKind::Int(64) { "score" } else { "age" })],
            (ObjectKind::Edge, 0) if sack == ObjectKind::Float => vec![text("weight")],
            (ObjectKind::Vertex, 1) => vec![nested([step("both", []), step("count", [])])],
            _ => constant(Value::I32(self.rng.random_range(1..4))),
        };
        let operators = [Operator::Sum, Operator::Sum, Operator::Minus, Operator::Min, Operator::Max, Operator::Assign];
        let operator = *operators.choose(&mut self.rng).expect("not empty");
        chain.push("sack", [Argument::Operator(operator)]);
        chain.steps.push(Instruction::new("by", by));
        // The width of a mixed result is not determined, so a mixed stream gets fewer follow-up steps.
        chain.state.sack = Some(ObjectKind::Mixed);
        chain.state.ordered &= chain.state.kind.is_homogeneous();
    }
}
