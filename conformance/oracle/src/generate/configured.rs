//! Whole traversals around one setting of the source. With other steps, that setting would leave the answer
//! undetermined.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Instruction, Operator};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{NAMES, ObjectKind, value};
use crate::script::{nested, step, text};

impl Generator {
    /// `V()` and a filter, with a source that has no other setting.
    pub fn plain_start(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        self.source.clear();
        chain.push("V", []);
        chain.becomes(ObjectKind::Vertex);
        if self.rng.random_bool(0.5) {
            self.has(&mut chain);
        }
        chain
    }

    /// Sacks that are merged where traversers meet, at one barrier only: how often equal traversers are merged between
    /// the steps is unspecified.
    pub fn merged_sacks(&mut self) -> Chain {
        let mut chain = self.plain_start();
        let is_float = self.rng.random_bool(0.5);
        let initial = if is_float { Value::F64(1.0) } else { Value::I64(1) };
        let operators = [Operator::Sum, Operator::Max, Operator::Min];
        let operator = Argument::Operator(*operators.choose(&mut self.rng).expect("not empty"));
        let mut arguments = vec![Argument::Value(initial), operator.clone()];
        if self.rng.random_bool(0.2) {
            // One operator to split sacks, one to merge them.
            arguments.push(operator);
        }
        self.source.push(Instruction::new("withSack", arguments));
        self.neighbors(&mut chain);
        let normalizes = is_float && self.rng.random_bool(0.4);
        if normalizes {
            chain.merges([Argument::NormSack])
        } else {
            chain.merges([])
        }
        chain.push("sack", []);
        chain.spreads(ObjectKind::Opaque);
        chain.end();
        chain
    }

    /// A sack that holds the objects of the path.
    pub fn gathered_sacks(&mut self) -> Chain {
        let mut chain = self.plain_start();
        self.source.push(step("withSack", [Argument::Value(Value::list(Vec::new()))]));
        for _ in 0..self.rng.random_range(1..3) {
            let key = self.key(&ObjectKind::Vertex);
            let name = if self.rng.random_bool(0.3) { self.multi_key().name } else { key.name };
            chain.push("sack", [Argument::Operator(Operator::AddAll)]);
            chain.push("by", [nested([step("values", [text(name)]), step("fold", [])])]);
            if self.rng.random_bool(0.5) {
                self.neighbors(&mut chain);
            }
        }
        chain.push("sack", []);
        chain.spreads(ObjectKind::Opaque);
        chain.state.lists_unordered = true;
        chain.end();
        chain
    }

    /// Without bulk, traversers that are merged at a barrier count once. Only after a barrier is it certain which are
    /// merged.
    pub fn one_bulk(&mut self) -> Chain {
        let mut chain = self.plain_start();
        self.source.push(step("withBulk", [Argument::Value(Value::Bool(false))]));
        for _ in 0..self.rng.random_range(1..3) {
            self.neighbors(&mut chain);
        }
        chain.merges([]);
        chain.loses_history();
        match self.rng.random_range(0..4) {
            0 => {
                chain.push("count", []);
                chain.reduces(ObjectKind::Int(64));
            }
            1 => {
                chain.push("values", [text("score")]);
                chain.push("sum", []);
                chain.reduces(ObjectKind::Int(64));
            }
            2 => {
                let (by, _) = self.by(&ObjectKind::Vertex);
                chain.push("groupCount", []);
                chain.steps.push(Instruction::new("by", by));
                chain.reduces(ObjectKind::Opaque);
            }
            _ => {}
        }
        chain.end();
        chain
    }

    /// A side effect that folds the objects that it receives.
    pub fn folded_side_effect(&mut self) -> Chain {
        use Operator::{AddAll, And, Max, Min, Minus, Or, Sum, SumLong};
        let mut chain = self.plain_start();
        let (key, kind, operators): (_, _, &[Operator]) = match self.rng.random_range(0..5) {
            0 => ("age", ObjectKind::Int(32), &[Sum, Minus, Min, Max, SumLong]),
            1 => ("score", ObjectKind::Int(64), &[Sum, Minus, Min, Max]),
            2 => ("flag", ObjectKind::Bool, &[And, Or]),
            3 => ("rank", ObjectKind::Int(32), &[Sum, Max]),
            _ => ("name", ObjectKind::Text, &[AddAll, AddAll]),
        };
        let seed = match &kind {
            ObjectKind::Text => {
                let some = NAMES.choose_multiple(&mut self.rng, 2).map(|name| Value::from(*name)).collect::<Vec<_>>();
                if self.rng.random_bool(0.5) { Value::list(some) } else { Value::Set(some.into()) }
            }
            kind => value(&mut self.rng, kind),
        };
        let mut arguments = vec![text("r"), Argument::Value(seed)];
        // A collection needs no operator.
        if kind != ObjectKind::Text || self.rng.random_bool(0.5) {
            arguments.push(Argument::Operator(*operators.choose(&mut self.rng).expect("not empty")));
        }
        self.source.push(Instruction::new("withSideEffect", arguments));
        if self.rng.random_bool(0.4) {
            self.neighbors(&mut chain);
        }
        let name = *["aggregate", "aggregate", "store"].choose(&mut self.rng).expect("not empty");
        if key == "rank" || self.rng.random_bool(0.5) {
            chain.push("values", [text(key)]);
            chain.push(name, [text("r")]);
        } else {
            chain.push(name, [text("r")]);
            chain.push("by", [text(key)]);
        }
        chain.push("cap", [text("r")]);
        chain.state.lists_unordered = true;
        chain.reduces(ObjectKind::Opaque);
        chain.end();
        chain
    }
}
