//! Traversals that write several values under a key, and meta-properties.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Cardinality, Instruction};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{ObjectKind, value};
use crate::script::{nested, step, text};

impl Generator {
    fn cardinality(&mut self) -> Cardinality {
        *[Cardinality::List, Cardinality::Set, Cardinality::Single].choose(&mut self.rng).expect("not empty")
    }

    /// A `property()` with a cardinality, often with meta-properties, or with a map that has a cardinality for each
    /// key.
    pub fn several_instruction(&mut self) -> Instruction {
        let (cardinality, key) = (self.cardinality(), self.multi_key());
        let written = Argument::Value(value(&mut self.rng, &key.kind));
        if self.rng.random_bool(0.2) {
            let other = self.cardinality();
            let plain = Argument::Value(value(&mut self.rng, &ObjectKind::Int(32)));
            let entries =
                vec![(text(key.name), Argument::CardinalityValue(other, Box::new(written))), (text("age"), plain)];
            let map = Argument::Map(entries);
            return match self.rng.random_bool(0.3) {
                // The default for entries without a cardinality.
                true => step("property", [Argument::Cardinality(cardinality), map]),
                false => step("property", [map]),
            };
        }
        let mut arguments = vec![Argument::Cardinality(cardinality), text(key.name), written];
        for _ in 0..self.rng.random_range(0..3) {
            let meta = self.meta_key();
            let is_null = self.rng.random_bool(0.1);
            let value = if is_null { Value::Null } else { value(&mut self.rng, &meta.kind) };
            arguments.extend([text(meta.name), Argument::Value(value)]);
        }
        Instruction::new("property", arguments)
    }

    /// Two `property()`s of one key; one or both have a cardinality, and the second may read what the first wrote.
    pub fn again_with_cardinality(&mut self) -> Vec<Instruction> {
        let key = self.multi_key();
        let cardinality = Argument::Cardinality(self.cardinality());
        let mut given = || Argument::Value(value(&mut self.rng, &key.kind));
        let plain = step("property", [text(key.name), given()]);
        let said = step("property", [cardinality.clone(), text(key.name), given()]);
        match self.rng.random_range(0..5) {
            0 => vec![plain, said],
            1 => vec![said.clone(), plain, said],
            2 => vec![plain.clone(), said, plain],
            3 => {
                let read = nested([step("label", [])]);
                vec![step("property", [cardinality, text("note"), read]), step("property", [text("note"), text("n")])]
            }
            _ => vec![said, plain],
        }
    }

    /// Properties that a label, a list or a side effect holds while they get meta-properties.
    pub fn held_properties(&mut self) -> Chain {
        let mut chain = self.some_properties();
        let key = self.meta_key();
        let written = step("property", [text(key.name), Argument::Value(value(&mut self.rng, &key.kind))]);
        let held = match self.rng.random_range(0..5) {
            0 => vec![step("sideEffect", [nested([written])])],
            1 => vec![step("as", [text("h")]), written, step("select", [text("h")])],
            2 => vec![step("aggregate", [text("h")]), written, step("cap", [text("h")]), step("unfold", [])],
            3 => {
                vec![step("fold", []), step("sideEffect", [nested([step("unfold", []), written])]), step("unfold", [])]
            }
            _ => vec![step("local", [nested([written, step("barrier", [])])])],
        };
        chain.steps.extend(held);
        match self.rng.random_range(0..5) {
            0 => chain.push("values", [text(key.name)]),
            1 => chain.push("properties", []),
            2 => chain.push("valueMap", []),
            3 => chain.push("has", [text(key.name)]),
            _ => {
                chain.push("properties", [text(key.name)]);
                chain.push("count", []);
                chain.reduces(ObjectKind::Int(64));
                return chain;
            }
        }
        chain.spreads(ObjectKind::Opaque);
        chain
    }

    /// Values in addition to existing ones; often a later step reads them.
    pub fn set_several(&mut self) -> Chain {
        let mut chain = self.some(&ObjectKind::Vertex);
        for _ in 0..self.rng.random_range(1..3) {
            let property = self.several_instruction();
            chain.steps.push(property);
        }
        let key = self.multi_key().name;
        match self.rng.random_range(0..4) {
            0 => chain.push("values", [text(key)]),
            1 => chain.push("properties", [text(key)]),
            2 => chain.push("valueMap", [text(key)]),
            _ => return chain,
        }
        chain.spreads(ObjectKind::Opaque);
        chain
    }

    /// Some properties of some vertices.
    fn some_properties(&mut self) -> Chain {
        let mut chain = self.some(&ObjectKind::Vertex);
        let keys = if self.rng.random_bool(0.3) { Vec::new() } else { vec![text(self.multi_key().name)] };
        chain.steps.push(Instruction::new("properties", keys));
        if self.rng.random_bool(0.3) {
            let key = self.meta_key();
            let test = self.test(&key.kind);
            chain.push("has", [text(key.name), test]);
        }
        chain.spreads(ObjectKind::VertexProperty);
        chain
    }

    /// Sets meta-properties of existing properties.
    pub fn set_meta(&mut self) -> Chain {
        let mut chain = self.some_properties();
        let key = self.meta_key();
        let written = value(&mut self.rng, &key.kind);
        match self.rng.random_range(0..6) {
            0 => chain.push("property", [text(key.name), Argument::Value(Value::Null)]),
            1 => {
                let read = nested([step("values", [text("year")])]);
                let otherwise = nested([step("constant", [Argument::Value(written)])]);
                chain.push("property", [text(key.name), nested([step("coalesce", [read, otherwise])])]);
            }
            _ => chain.push("property", [text(key.name), Argument::Value(written)]),
        }
        match self.rng.random_range(0..4) {
            0 => chain.push("values", [text(key.name)]),
            1 => chain.push("properties", []),
            2 => chain.push("valueMap", []),
            _ => {
                chain.push("count", []);
                chain.reduces(ObjectKind::Int(64));
                return chain;
            }
        }
        chain.spreads(ObjectKind::Opaque);
        chain
    }

    /// Drops values, or their meta-properties.
    pub fn drop_parts(&mut self) -> Chain {
        let mut chain = self.some_properties();
        if self.rng.random_bool(0.5) {
            let keys = if self.rng.random_bool(0.4) { Vec::new() } else { vec![text(self.meta_key().name)] };
            chain.steps.push(Instruction::new("properties", keys));
        } else if self.rng.random_bool(0.4) {
            let dropped = value(&mut self.rng, &ObjectKind::Text);
            chain.push("hasValue", [Argument::Value(dropped)]);
        }
        chain.push("drop", []);
        chain.state.ordered = true;
        chain.end();
        chain
    }
}
