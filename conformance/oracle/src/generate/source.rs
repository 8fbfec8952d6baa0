//! Configured traversal sources: sacks, side effects, and strategies that change what a traversal means.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Comparison, Instruction, Operator};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{Kind, NAMES};
use crate::script::{compare, int, nested, step, text};

impl Generator {
    /// Configures the source of a traversal that is about to begin.
    pub fn configure(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..19) {
            16 => self.source.push(step("withBulk", [Argument::Value(Value::Bool(true))])),
            17 | 18 => self.without_strategies(),
            0..=3 => self.with_sack(chain),
            4 | 5 => self.with_side_effect(chain),
            6..=8 => {
                let strategy = self.subgraph_strategy();
                self.source.push(Instruction::new("withStrategies", vec![strategy]));
            }
            9 => {
                let strategy = self.partition_strategy(false, false);
                self.source.push(Instruction::new("withStrategies", vec![strategy]));
            }
            10 | 11 => self.with_strategy("ProductiveByStrategy"),
            12 => self.with_strategy("ReadOnlyStrategy"),
            13 => {
                let names = ["EarlyLimitStrategy", "InlineFilterStrategy", "LazyBarrierStrategy", "CountStrategy"];
                let name = *names.choose(&mut self.rng).expect("not empty");
                self.with_strategy(name);
            }
            14 => self.source.push(step("withPath", [])),
            _ => self.source.push(step("with", [text("hint"), int(1)])),
        }
    }

    fn with_strategy(&mut self, name: &str) {
        self.source.push(step("withStrategies", [Argument::Strategy(name.into(), Vec::new())]));
    }

    /// A strategy that is taken back, beside one that stays.
    fn without_strategies(&mut self) {
        let taken_back = match self.rng.random_range(0..4) {
            0 => self.subgraph_strategy(),
            1 => self.partition_strategy(false, false),
            2 => Argument::Strategy("ProductiveByStrategy".into(), Vec::new()),
            _ => Argument::Strategy("CountStrategy".into(), Vec::new()),
        };
        let Argument::Strategy(name, _) = &taken_back else { return };
        let without = Argument::Strategy(name.clone(), Vec::new());
        let stays = if self.rng.random_bool(0.3) { vec![self.subgraph_strategy()] } else { Vec::new() };
        let stays =
            stays.into_iter().filter(|strategy| !matches!(strategy, Argument::Strategy(other, _) if other == name));
        let both = stays.chain([taken_back.clone()]).collect();
        self.source.push(Instruction::new("withStrategies", both));
        self.source.push(step("withoutStrategies", [without]));
    }

    fn with_sack(&mut self, chain: &mut Chain) {
        let (initial, kind) = match self.rng.random_range(0..3) {
            0 => (Value::F64(0.5), Kind::Float),
            1 => (Value::I64(1), Kind::Int(64)),
            _ => (Value::I32(1), Kind::Int(32)),
        };
        self.source.push(step("withSack", [Argument::Value(initial)]));
        chain.state.sack = Some(kind);
    }

    fn with_side_effect(&mut self, chain: &mut Chain) {
        let names = NAMES.choose_multiple(&mut self.rng, 3).map(|name| Value::from(*name)).collect();
        self.source.push(step("withSideEffect", [text("s"), Argument::Value(Value::list(names))]));
        chain.state.side_effects.push(("s", Kind::Text));
    }

    fn subgraph_strategy(&mut self) -> Argument {
        let mut settings = Vec::new();
        if self.rng.random_bool(0.7) {
            let criterion = match self.rng.random_range(0..3) {
                0 => step("hasLabel", [text(self.label(&Kind::Vertex)), text(self.label(&Kind::Vertex))]),
                1 => step("has", [text("age"), compare(Comparison::Gte, self.rng.random_range(0..20))]),
                _ => step("not", [nested([step("out", [text(self.edge_label())])])]),
            };
            settings.push(("vertices".into(), nested([criterion])));
        }
        if settings.is_empty() || self.rng.random_bool(0.4) {
            let criterion = match self.rng.random_range(0..2) {
                0 => step("hasLabel", [text(self.edge_label())]),
                _ => step("has", [text("since"), compare(Comparison::Lt, self.rng.random_range(5..40))]),
            };
            settings.push(("edges".into(), nested([criterion])));
        }
        if self.rng.random_bool(0.3) {
            settings.push(("checkAdjacentVertices".into(), Argument::Value(Value::Bool(false))));
        }
        Argument::Strategy("SubgraphStrategy".into(), settings)
    }

    /// A strategy over the key that vertices and edges share; perhaps one that writes, or is about properties, too.
    pub fn partition_strategy(&mut self, writes: bool, of_properties: bool) -> Argument {
        let read = NAMES.choose_multiple(&mut self.rng, 6).map(|name| Value::from(*name)).collect::<Vec<_>>();
        let mut settings = vec![
            ("partitionKey".into(), text("part")),
            ("readPartitions".into(), Argument::Value(Value::Set(read.into()))),
        ];
        if writes {
            let name = *NAMES.choose(&mut self.rng).expect("not empty");
            settings.push(("writePartition".into(), text(name)));
        }
        if of_properties {
            settings.push(("includeMetaProperties".into(), Argument::Value(Value::Bool(true))));
        }
        Argument::Strategy("PartitionStrategy".into(), settings)
    }

    /// Reads the sack or folds something into it.
    pub fn sack(&mut self, chain: &mut Chain) {
        let Some(sack) = chain.state.sack.clone() else { return };
        if self.rng.random_bool(0.3) {
            chain.push("sack", []);
            return chain.becomes(sack);
        }
        let constant = |n: Value| vec![nested([step("constant", [Argument::Value(n)])])];
        let by = match (&chain.state.kind, self.rng.random_range(0..3)) {
            (Kind::Vertex, 0) => vec![text(if sack == Kind::Int(64) { "score" } else { "age" })],
            (Kind::Edge, 0) if sack == Kind::Float => vec![text("weight")],
            (Kind::Vertex, 1) => vec![nested([step("both", []), step("count", [])])],
            _ => constant(Value::I32(self.rng.random_range(1..4))),
        };
        let operators = [Operator::Sum, Operator::Sum, Operator::Minus, Operator::Min, Operator::Max, Operator::Assign];
        let operator = *operators.choose(&mut self.rng).expect("not empty");
        chain.push("sack", [Argument::Operator(operator)]);
        chain.steps.push(Instruction::new("by", by));
        // Which width comes of two does not matter to what follows: a mixed stream is asked less.
        chain.state.sack = Some(Kind::Mixed);
        chain.state.ordered &= chain.state.kind.is_homogeneous();
    }
}
