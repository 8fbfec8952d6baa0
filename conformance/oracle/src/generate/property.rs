//! Properties as objects: their parts, their elements, their meta-properties; and keys with several values.

use mangrove_gremlin::{Argument, Instruction};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{Key, META_KEYS, MULTI_KEYS, ObjectKind};
use crate::script::{nested, step, text};

impl Generator {
    /// A key under which a vertex may have several values.
    pub fn multi_key(&mut self) -> &'static Key {
        const ALL: &[Key] = &MULTI_KEYS;
        ALL.choose(&mut self.rng).expect("not empty")
    }

    /// A key of meta-properties.
    pub fn meta_key(&mut self) -> &'static Key {
        const ALL: &[Key] = &META_KEYS;
        ALL.choose(&mut self.rng).expect("not empty")
    }

    /// The values of a vertex under a key with several values.
    pub fn several_values(&mut self, chain: &mut Chain) {
        let (key, other) = (self.multi_key(), self.key(&ObjectKind::Vertex));
        match self.rng.random_range(0..10) {
            0 | 1 => {
                chain.push("values", [text(key.name)]);
                chain.spreads(key.kind.clone());
            }
            2 | 3 => {
                chain.push("properties", [text(key.name)]);
                chain.spreads(ObjectKind::VertexProperty);
            }
            4 => {
                let keys = if self.rng.random_bool(0.5) { Vec::new() } else { vec![text(key.name), text(other.name)] };
                chain.steps.push(Instruction::new("properties", keys));
                chain.spreads(ObjectKind::VertexProperty);
            }
            5 => {
                let name = if self.rng.random_bool(0.5) { "valueMap" } else { "propertyMap" };
                chain.push(name, [text(key.name), text(other.name)]);
                chain.becomes(ObjectKind::Opaque);
            }
            6 => {
                let values = nested([step("values", [text(key.name)]), step("fold", [])]);
                chain.push("map", [values]);
                chain.becomes(ObjectKind::List(Box::new(key.kind.clone())));
                chain.state.lists_unordered = true;
            }
            7 => chain.push("hasNot", [text(key.name)]),
            // Several values are an error on both sides.
            8 if Self::may_reduce(chain) && self.rng.random_bool(0.2) => {
                chain.push("group", []);
                chain.push("by", [text(key.name)]);
                chain.state.lists_unordered = true;
                chain.reduces(ObjectKind::Opaque);
            }
            _ => {
                let test = self.test(&key.kind);
                chain.push("has", [text(key.name), test]);
            }
        }
    }

    /// Steps from properties of vertices, edges and vertex properties.
    pub fn property_parts(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..6) {
            0 => {
                let name = match chain.state.kind {
                    ObjectKind::VertexProperty if self.rng.random_bool(0.5) => self.multi_key().name,
                    ObjectKind::VertexProperty => "name",
                    ObjectKind::MetaProperty => self.meta_key().name,
                    _ => "weight",
                };
                chain.push("hasKey", [text(name)]);
            }
            1 => {
                let (value, _) = self.literal();
                chain.push("hasValue", [Argument::Value(value)]);
            }
            2 => {
                let owner = match chain.state.kind {
                    ObjectKind::VertexProperty => ObjectKind::Vertex,
                    ObjectKind::MetaProperty => ObjectKind::VertexProperty,
                    _ => ObjectKind::Edge,
                };
                chain.push("element", []);
                chain.becomes(owner);
            }
            3 => {
                let name = if chain.state.kind == ObjectKind::VertexProperty && self.rng.random_bool(0.3) {
                    "label"
                } else {
                    "key"
                };
                chain.push(name, []);
                chain.becomes(ObjectKind::Text);
            }
            4 => {
                chain.push("value", []);
                chain.becomes(ObjectKind::Mixed);
            }
            _ if chain.state.kind == ObjectKind::VertexProperty => self.meta_properties(chain),
            _ => {}
        }
    }

    /// The meta-properties of a vertex property.
    fn meta_properties(&mut self, chain: &mut Chain) {
        let key = self.meta_key();
        match self.rng.random_range(0..10) {
            0 | 1 => {
                chain.push("values", [text(key.name)]);
                chain.becomes(key.kind.clone());
            }
            2 => {
                chain.push("values", []);
                chain.spreads(ObjectKind::Mixed);
            }
            3 | 4 => {
                let keys = if self.rng.random_bool(0.5) { Vec::new() } else { vec![text(key.name)] };
                chain.steps.push(Instruction::new("properties", keys));
                chain.spreads(ObjectKind::MetaProperty);
            }
            5 => {
                let name = if self.rng.random_bool(0.5) { "valueMap" } else { "propertyMap" };
                chain.push(name, []);
                chain.becomes(ObjectKind::Opaque);
            }
            6 => chain.push("hasNot", [text(key.name)]),
            7 if Self::may_reduce(chain) => {
                chain.push("dedup", []);
                chain.loses_history();
            }
            8 if Self::may_reduce(chain) => {
                chain.push("group", []);
                chain.push("by", [text(key.name)]);
                chain.push("by", [nested([step("count", [])])]);
                chain.reduces(ObjectKind::Map(Box::new(key.kind.clone()), Box::new(ObjectKind::Int(64))));
            }
            _ => {
                let test = self.test(&key.kind);
                chain.push("has", [text(key.name), test]);
            }
        }
    }
}
