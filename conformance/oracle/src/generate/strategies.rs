//! The strategies that restrict what a traversal sees, writes or returns, with all their options.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Comparison, Instruction};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{NAMES, ObjectKind};
use crate::script::{compare, nested, step, text};

impl Generator {
    pub fn with_strategy(&mut self, name: &str) {
        self.source.push(step("withStrategies", [Argument::Strategy(name.into(), Vec::new())]));
    }

    /// A strategy that restricts what the traversal sees, or two of one class. Within one call the first takes effect;
    /// of two calls the later one.
    pub fn with_subgraph(&mut self) {
        let one = self.subgraph_strategy();
        match self.rng.random_range(0..8) {
            0 => {
                let other = self.subgraph_strategy();
                self.source.push(step("withStrategies", [one, other]));
            }
            1 => {
                self.source.push(step("withStrategies", [one]));
                let other = self.subgraph_strategy();
                self.source.push(step("withStrategies", [other]));
            }
            _ => self.source.push(step("withStrategies", [one])),
        }
    }

    /// Like [`Self::with_subgraph`], for partitions.
    pub fn with_partition(&mut self) {
        let times = if self.rng.random_bool(0.2) { 2 } else { 1 };
        for _ in 0..times {
            let writes = self.rng.random_bool(0.3);
            let strategy = self.partition_strategy(writes, false);
            self.source.push(step("withStrategies", [strategy]));
        }
    }

    /// `ProductiveByStrategy`, sometimes with keys that it excludes.
    pub fn with_productive_by(&mut self) {
        let mut settings = Vec::new();
        if self.rng.random_bool(0.5) {
            let count = self.rng.random_range(1..3);
            let mut keys: Vec<&str> = (0..count).map(|_| self.key(&ObjectKind::Vertex).name).collect();
            keys.dedup();
            let keys = keys.into_iter().map(Value::from).collect::<Vec<_>>();
            let keys = if self.rng.random_bool(0.5) { Value::list(keys) } else { Value::Set(keys.into()) };
            settings.push(("productiveKeys".into(), Argument::Value(keys)));
        }
        self.source.push(step("withStrategies", [Argument::Strategy("ProductiveByStrategy".into(), settings)]));
    }

    /// A strategy that refuses a traversal: for the key of a new element, or for edges without a label.
    pub fn with_verification(&mut self) {
        let throws = (self.rng.random_bool(0.7)).then(|| ("throwException".into(), Argument::Value(true.into())));
        let (name, setting) = match self.rng.random_range(0..3) {
            0 => ("EdgeLabelVerificationStrategy", None),
            _ => {
                // No key occurs twice, because a set is printed without duplicates.
                let other = if self.rng.random_bool(0.5) { "name" } else { "score" };
                let keys = ["age", other, "year"].map(Value::from);
                let keys = Argument::Value(Value::Set(keys[self.rng.random_range(0..2)..].to_vec().into()));
                ("ReservedKeysVerificationStrategy", Some(("keys".into(), keys)))
            }
        };
        let settings = setting.into_iter().chain(throws).collect();
        self.source.push(step("withStrategies", [Argument::Strategy(name.into(), settings)]));
    }

    /// A strategy that `withoutStrategies` removes, beside one that stays.
    pub fn without_strategies(&mut self) {
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

    fn subgraph_strategy(&mut self) -> Argument {
        let mut settings = Vec::new();
        if self.rng.random_bool(0.7) {
            let criterion = match self.rng.random_range(0..3) {
                0 => step("hasLabel", [text(self.label(&ObjectKind::Vertex)), text(self.label(&ObjectKind::Vertex))]),
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
        if self.rng.random_bool(0.4) {
            let checks = self.rng.random_bool(0.3);
            settings.push(("checkAdjacentVertices".into(), Argument::Value(Value::Bool(checks))));
        }
        Argument::Strategy("SubgraphStrategy".into(), settings)
    }

    /// A strategy over the key that vertices and edges share; sometimes one that also writes, or restricts properties.
    pub fn partition_strategy(&mut self, writes: bool, of_properties: bool) -> Argument {
        let read = NAMES.choose_multiple(&mut self.rng, 6).map(|name| Value::from(*name)).collect::<Vec<_>>();
        let read = if self.rng.random_bool(0.3) { Value::list(read) } else { Value::Set(read.into()) };
        let mut settings =
            vec![("partitionKey".into(), text("part")), ("readPartitions".into(), Argument::Value(read))];
        if writes {
            let name = *NAMES.choose(&mut self.rng).expect("not empty");
            settings.push(("writePartition".into(), text(name)));
        }
        if of_properties {
            settings.push(("includeMetaProperties".into(), Argument::Value(Value::Bool(true))));
        }
        Argument::Strategy("PartitionStrategy".into(), settings)
    }

    /// A strategy that shows only some properties of vertices, and steps that read properties.
    pub fn seen_properties(&mut self) -> Chain {
        let mut chain = self.plain_start();
        // In the reference implementation, a filter by key and value does not consult the strategy.
        chain.steps.truncate(1);
        let of_parts = self.rng.random_bool(0.3);
        let strategy = if of_parts { self.partition_strategy(false, true) } else { self.property_strategy() };
        self.source.push(step("withStrategies", [strategy]));
        if self.rng.random_bool(0.4) {
            self.neighbors(&mut chain);
        }
        let (single, multi) = (self.key(&ObjectKind::Vertex), self.multi_key().name);
        // No step reads the key of a partition: the reference implementation refuses it.
        let single = if single.name == "part" { "name" } else { single.name };
        if self.rng.random_bool(0.4) {
            let name = if self.rng.random_bool(0.5) { "has" } else { "hasNot" };
            chain.push(name, [text(if self.rng.random_bool(0.5) { single } else { multi })]);
        }
        if self.rng.random_bool(0.4) {
            self.seen_by_modulator(&mut chain, single);
            chain.end();
            return chain;
        }
        let keys = match self.rng.random_range(0..4) {
            0 => Vec::new(),
            1 => vec![text(single)],
            2 => vec![text(multi)],
            _ => vec![text(single), text(multi)],
        };
        match self.rng.random_range(0..8) {
            0..=2 => {
                chain.steps.push(Instruction::new("values", keys));
                chain.spreads(ObjectKind::Opaque);
            }
            3 => {
                chain.steps.push(Instruction::new("valueMap", keys));
                chain.becomes(ObjectKind::Opaque);
            }
            4 => {
                chain.steps.push(Instruction::new("propertyMap", keys));
                chain.becomes(ObjectKind::Opaque);
            }
            _ => {
                chain.steps.push(Instruction::new("properties", keys));
                chain.spreads(ObjectKind::VertexProperty);
                if self.rng.random_bool(0.7) {
                    self.property_parts(&mut chain);
                }
            }
        }
        chain.end();
        chain
    }

    /// A step whose modulator reads a property.
    fn seen_by_modulator(&mut self, chain: &mut Chain, key: &str) {
        let by_key = || step("by", [text(key)]);
        let by_values = || step("by", [nested([step("values", [text(key)])])]);
        let by = if self.rng.random_bool(0.7) { by_key() } else { by_values() };
        let count = || step("count", []);
        let steps = match self.rng.random_range(0..9) {
            0 => vec![step("order", []), by, count()],
            1 => vec![step("groupCount", []), by],
            2 => vec![step("group", []), by, step("by", [nested([count()])])],
            3 => vec![step("group", []), step("by", [crate::script::token(mangrove_graph::Token::Label)]), by_key()],
            4 => vec![step("dedup", []), by, count()],
            5 => vec![step("project", [text("p")]), by],
            6 => vec![step("aggregate", [text("x")]), by, step("cap", [text("x")])],
            7 => vec![step("as", [text("a")]), step("select", [text("a")]), by],
            _ => vec![step("path", []), by],
        };
        chain.steps.extend(steps);
        chain.state.lists_unordered = true;
        chain.spreads(ObjectKind::Opaque);
    }

    fn property_strategy(&mut self) -> Argument {
        let key = self.meta_key();
        let criterion = match self.rng.random_range(0..4) {
            0 => step("hasNot", [text(key.name)]),
            1 => step("has", [text(key.name)]),
            2 => {
                let keys = [self.multi_key().name, self.key(&ObjectKind::Vertex).name];
                Instruction::new("hasKey", keys.map(text).into())
            }
            _ => {
                let test = self.test(&key.kind);
                step("has", [text(key.name), test])
            }
        };
        Argument::Strategy("SubgraphStrategy".into(), vec![("vertexProperties".into(), nested([criterion]))])
    }
}
