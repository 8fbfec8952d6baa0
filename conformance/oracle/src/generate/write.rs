//! Traversals that write. If a step creates exactly one element, the case chooses its id. Otherwise ids are automatic,
//! and the comparison treats all automatic ids as equal.

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Cardinality, Instruction};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{ObjectKind, value};
use crate::script::{int, nested, step, text, token};

impl Generator {
    /// A traversal that writes.
    pub fn write(&mut self) -> Chain {
        let forms: [fn(&mut Self) -> Chain; 22] = [
            Self::add_one_vertex,
            Self::add_one_edge,
            Self::set_properties,
            Self::set_properties,
            Self::add_vertices,
            Self::add_edges,
            Self::add_edges_along,
            Self::upsert,
            Self::merge_vertices,
            Self::merge_from_stream,
            Self::merge_edges,
            Self::merge_edges,
            Self::merge_edge_by_ends,
            Self::merge_by_given_maps,
            Self::merge_without_map,
            Self::set_several,
            Self::set_several,
            Self::set_meta,
            Self::held_properties,
            Self::drop_parts,
            Self::write_in_branches,
            Self::drop_some,
        ];
        let chain = forms.choose(&mut self.rng).expect("not empty")(self);
        match self.rng.random_range(0..30) {
            0 => self.with_strategy("ReadOnlyStrategy"),
            1 | 2 => self.with_verification(),
            _ => {}
        }
        chain
    }

    /// An id that is free, or sometimes taken.
    pub fn new_id(&mut self) -> Argument {
        if self.rng.random_bool(0.1) { self.vertex_id() } else { int(self.rng.random_range(5_000..6_000)) }
    }

    /// A few elements, selected by a few filters.
    pub fn some(&mut self, kind: &ObjectKind) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        chain.push(if *kind == ObjectKind::Vertex { "V" } else { "E" }, []);
        chain.becomes(kind.clone());
        for _ in 0..self.rng.random_range(0..3) {
            self.has(&mut chain);
        }
        if *kind == ObjectKind::Vertex && self.rng.random_bool(0.3) {
            self.neighbors(&mut chain);
        }
        chain
    }

    /// A property for a new element. Its value is a literal, because a child would read the input of the step.
    fn literal_property(&mut self, kind: &ObjectKind) -> Instruction {
        let key = self.key(kind);
        let value = value(&mut self.rng, &key.kind);
        step("property", [text(key.name), Argument::Value(value)])
    }

    fn property_instruction(&mut self, kind: &ObjectKind) -> Instruction {
        let key = self.key(kind);
        let value = value(&mut self.rng, &key.kind);
        match self.rng.random_range(0..9) {
            5 if *kind == ObjectKind::Vertex => self.several_instruction(),
            7 => step("property", [text(key.name), Argument::Value(Value::Null)]),
            8 => step("property", [nested([step("constant", [text(key.name)])]), Argument::Value(value)]),
            6 => {
                let entries = vec![(Value::string(key.name), value), (Value::string("note"), Value::I32(1))];
                step("property", [Argument::Value(Value::map(entries))])
            }
            0 if *kind == ObjectKind::Vertex => {
                let single = Argument::Cardinality(Cardinality::Single);
                step("property", [single, text(key.name), Argument::Value(value)])
            }
            1 => {
                // The child reads only the element itself, so the order of writes is not visible in it.
                let other = self.key(kind);
                let read = nested([step("values", [text(other.name)])]);
                let child = nested([step("coalesce", [read, nested([step("constant", [Argument::Value(value)])])])]);
                step("property", [text(key.name), child])
            }
            _ => step("property", [text(key.name), Argument::Value(value)]),
        }
    }

    fn add_one_vertex(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        let (label, id) = (text(self.label(&ObjectKind::Vertex)), self.new_id());
        match self.rng.random_range(0..8) {
            0 => {
                chain.push("addV", []);
                chain.push("property", [token(Token::Label), label]);
            }
            1 => chain.push("addV", [nested([step("constant", [label])])]),
            _ => chain.push("addV", [label]),
        }
        chain.push("property", [token(Token::Id), id]);
        chain.becomes(ObjectKind::Vertex);
        for _ in 0..self.rng.random_range(0..4) {
            let several = self.rng.random_bool(0.4);
            let property =
                if several { self.several_instruction() } else { self.literal_property(&ObjectKind::Vertex) };
            chain.steps.push(property);
            if self.rng.random_bool(0.2) {
                // The same key again, once with a cardinality: the one without a cardinality is written first.
                let property = self.again_with_cardinality();
                chain.steps.extend(property);
            }
        }
        chain
    }

    fn add_one_edge(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        let (label, from, to) = (text(self.edge_label()), self.vertex_id(), self.vertex_id());
        let from_child = self.rng.random_bool(0.2);
        chain.push("addE", [if from_child { nested([step("constant", [label])]) } else { label }]);
        chain.push("from", [nested([step("V", [from])])]);
        chain.push("to", [nested([step("V", [to])])]);
        let id = if self.rng.random_bool(0.1) { self.edge_id() } else { int(self.rng.random_range(5_000..6_000)) };
        chain.push("property", [token(Token::Id), id]);
        chain.becomes(ObjectKind::Edge);
        let property = self.literal_property(&ObjectKind::Edge);
        chain.steps.push(property);
        chain
    }

    /// Sets properties; often a later step reads them.
    fn set_properties(&mut self) -> Chain {
        let kind = if self.rng.random_bool(0.6) { ObjectKind::Vertex } else { ObjectKind::Edge };
        let mut chain = self.some(&kind);
        for _ in 0..self.rng.random_range(1..3) {
            let property = self.property_instruction(&kind);
            let wraps = self.rng.random_bool(0.2);
            chain.steps.push(if wraps { step("sideEffect", [nested([property])]) } else { property });
        }
        if self.rng.random_bool(0.6) {
            // The key may now hold a value of another kind, so no step depends on the kind.
            let key = self.key(&kind);
            if kind == ObjectKind::Vertex && self.rng.random_bool(0.5) {
                self.neighbors(&mut chain);
            }
            let key = if chain.state.kind == kind { key.name } else { "name" };
            chain.push("values", [text(key)]);
            chain.spreads(ObjectKind::Opaque);
        }
        chain
    }

    fn add_vertices(&mut self) -> Chain {
        let mut chain = self.some(&ObjectKind::Vertex);
        let partitioned = self.perhaps_partitioned();
        let label = text(self.label(&ObjectKind::Vertex));
        chain.push("addV", [label]);
        match self.rng.random_range(0..4) {
            0 | 1 if !partitioned => {
                let property = self.literal_property(&ObjectKind::Vertex);
                chain.steps.push(property);
            }
            // A child reads the input of the step here.
            2 if chain.state.kind == ObjectKind::Vertex => {
                let name =
                    nested([step("coalesce", [nested([step("values", [text("name")])]), nested([step("label", [])])])]);
                chain.push("property", [text("name"), name]);
            }
            _ => {
                let several = self.several_instruction();
                chain.steps.push(several);
            }
        }
        chain.push("count", []);
        chain.reduces(ObjectKind::Int(64));
        chain
    }

    fn add_edges(&mut self) -> Chain {
        let mut chain = self.some(&ObjectKind::Vertex);
        let partitioned = self.perhaps_partitioned();
        let (label, end) = (text(self.edge_label()), self.vertex_id());
        chain.push("addE", [label]);
        let side = if self.rng.random_bool(0.5) { "from" } else { "to" };
        chain.push(side, [nested([step("V", [end])])]);
        if !partitioned {
            let property = self.literal_property(&ObjectKind::Edge);
            chain.steps.push(property);
        }
        chain.becomes(ObjectKind::Edge);
        chain
    }

    /// An edge beside every edge of a label; the step that looks for existing edges must not meet the new ones.
    fn add_edges_along(&mut self) -> Chain {
        let mut chain = self.some(&ObjectKind::Vertex);
        let (old, new) = (text(self.edge_label()), text(self.edge_label()));
        chain.push("as", [text("a")]);
        chain.push("out", [old]);
        chain.push("addE", [new]);
        chain.push("from", [text("a")]);
        chain.spreads(ObjectKind::Edge);
        chain
    }

    /// Finds or creates an element.
    fn upsert(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        let name = Argument::Value(value(&mut self.rng, &ObjectKind::Text));
        let (label, id) = (text(self.label(&ObjectKind::Vertex)), self.new_id());
        chain.push("V", []);
        chain.push("has", [text("name"), name.clone()]);
        chain.push("fold", []);
        let create =
            [step("addV", [label]), step("property", [token(Token::Id), id]), step("property", [text("name"), name])];
        chain.push("coalesce", [nested([step("unfold", [])]), nested(create)]);
        chain.spreads(ObjectKind::Vertex);
        chain
    }

    /// New elements belong to a partition. No document says which value holds if a property names another partition, so
    /// no property does.
    pub fn perhaps_partitioned(&mut self) -> bool {
        let partitioned = self.rng.random_bool(0.2);
        if partitioned {
            let of_properties = self.rng.random_bool(0.3);
            let strategy = self.partition_strategy(true, of_properties);
            self.source.push(step("withStrategies", [strategy]));
        }
        partitioned
    }

    /// Writes that only some traversers reach.
    fn write_in_branches(&mut self) -> Chain {
        let mut chain = self.some(&ObjectKind::Vertex);
        let test = nested([step("hasLabel", [text(self.label(&ObjectKind::Vertex))])]);
        let written = step("property", [text("note"), int(self.rng.random_range(0..9))]);
        let label = text(self.label(&ObjectKind::Vertex));
        match self.rng.random_range(0..5) {
            0 => chain.push("choose", [test, nested([written]), nested([step("identity", [])])]),
            1 => {
                let dropped = nested([step("properties", [text("age")]), step("drop", [])]);
                chain.push("sideEffect", [dropped]);
            }
            2 => {
                let made = [step("addV", [label]), step("property", [text("note"), int(1)])];
                chain.push("coalesce", [test, nested(made)]);
            }
            3 => chain.push("local", [nested([step("out", []), step("dedup", []), written])]),
            _ => chain.push("optional", [nested([step("out", [text(self.edge_label())]), written])]),
        }
        chain.push("count", []);
        chain.reduces(ObjectKind::Int(64));
        chain
    }

    fn drop_some(&mut self) -> Chain {
        let kind = if self.rng.random_bool(0.6) { ObjectKind::Vertex } else { ObjectKind::Edge };
        let mut chain = self.some(&kind);
        match self.rng.random_range(0..3) {
            0 => {
                let key = self.key(&kind);
                if chain.state.kind == kind {
                    chain.push("properties", [text(key.name)]);
                }
            }
            1 if kind == ObjectKind::Vertex => {
                let label = text(self.edge_label());
                chain.push("bothE", [label]);
            }
            _ => {}
        }
        chain.push("drop", []);
        chain.state.ordered = true;
        chain.end();
        chain
    }
}
