//! `mergeV()` and `mergeE()` with every option. Their maps are literals, objects of the stream, side effects, or
//! results of a child. `onMatch` never writes a key that the step searches by: the engine writes matches only after all
//! traversers have searched.

use mangrove_graph::{Direction, Token, Value};
use mangrove_gremlin::{Argument, Cardinality, Instruction, Merge};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{ObjectKind, value};
use crate::script::{int, nested, step, text, token};

/// A literal map as an argument.
fn literal(entries: Vec<(Value, Value)>) -> Argument {
    Argument::Value(Value::map(entries))
}

impl Generator {
    fn entry(&mut self, key: &'static str, kind: &ObjectKind) -> (Value, Value) {
        (Value::string(key), value(&mut self.rng, kind))
    }

    /// Properties that a merge writes to vertices, with a cardinality for each key or one for all.
    fn vertex_option(&mut self, which: Merge) -> Instruction {
        const ALL: [Cardinality; 3] = [Cardinality::Single, Cardinality::List, Cardinality::Set];
        let cardinality = *ALL.choose(&mut self.rng).expect("not empty");
        let (age, key) = (self.entry("age", &ObjectKind::Int(32)), self.multi_key());
        let several = value(&mut self.rng, &key.kind);
        let which = Argument::Merge(which);
        match self.rng.random_range(0..9) {
            8 => {
                let made = self.no_map();
                step("option", [which, made])
            }
            0 => {
                let several = Argument::CardinalityValue(cardinality, Box::new(Argument::Value(several)));
                let entries = vec![(text(key.name), several), (Argument::Value(age.0), Argument::Value(age.1))];
                step("option", [which, Argument::Map(entries)])
            }
            1 => {
                let map = literal(vec![(key.name.into(), several)]);
                step("option", [which, map, Argument::Cardinality(cardinality)])
            }
            2 => step("option", [which, nested([step("constant", [literal(vec![age])])])]),
            3 => step("option", [which, Argument::Value(Value::Null)]),
            4 => step("option", [which, literal(vec![("age".into(), Value::Null), ("note".into(), Value::I32(1))])]),
            _ => step("option", [which, literal(vec![age])]),
        }
    }

    /// A traversal that returns no map: no result, or null, which searches for no property.
    fn no_map(&mut self) -> Argument {
        nested([match self.rng.random_range(0..4) {
            0 => step("select", [text("nothing")]),
            1 => step("constant", [Argument::Value(Value::Null)]),
            2 => step("not", [nested([step("identity", [])])]),
            _ => step("is", [Argument::Value(Value::I32(-1))]),
        }])
    }

    /// Merges whose search map, `onCreate` or `onMatch` is a traversal without a result.
    pub fn merge_without_map(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        if self.rng.random_bool(0.7) {
            let id = self.vertex_id();
            chain.push("V", [id]);
        }
        let of_vertices = self.rng.random_bool(0.6);
        let label = Value::string(if of_vertices { self.label(&ObjectKind::Vertex) } else { self.edge_label() });
        let mut wanted = vec![(Value::Token(Token::Label), label)];
        if of_vertices {
            wanted.push(self.entry("name", &ObjectKind::Text));
        } else {
            wanted.push((Value::Direction(Direction::Out), self.literal_id()));
            wanted.push((Value::Direction(Direction::In), self.literal_id()));
        }
        let mut given =
            [literal(wanted), literal(vec![("note".into(), 1.into())]), literal(vec![("note".into(), 2.into())])];
        given[self.rng.random_range(0..3)] = self.no_map();
        let [wanted, made, met] = given;
        chain.push(if of_vertices { "mergeV" } else { "mergeE" }, [wanted]);
        chain.push("option", [Argument::Merge(Merge::OnCreate), made]);
        chain.push("option", [Argument::Merge(Merge::OnMatch), met]);
        chain.spreads(if of_vertices { ObjectKind::Vertex } else { ObjectKind::Edge });
        chain
    }

    /// `mergeV()`, for one or several traversers: each finds the vertices that earlier ones created.
    pub fn merge_vertices(&mut self) -> Chain {
        let mut chain = if self.rng.random_bool(0.5) { self.some(&ObjectKind::Vertex) } else { self.start() };
        if !chain.steps.iter().any(|step| step.name == "V") || self.rng.random_bool(0.3) {
            chain.steps.clear();
        }
        self.perhaps_partitioned();
        let mut wanted = vec![self.entry("name", &ObjectKind::Text)];
        if self.rng.random_bool(0.7) {
            wanted.insert(0, (Value::Token(Token::Label), Value::string(self.label(&ObjectKind::Vertex))));
        }
        if self.rng.random_bool(0.2) {
            // With this key, an index over several keys applies.
            wanted.push(self.entry("flag", &ObjectKind::Bool));
        }
        if let (true, Argument::Value(id)) = (self.rng.random_bool(0.15), self.new_id()) {
            wanted.push((Value::Token(Token::Id), id));
        }
        if self.rng.random_bool(0.1) {
            wanted.remove(0);
        }
        chain.push("mergeV", [literal(wanted)]);
        for merge in [Merge::OnCreate, Merge::OnMatch] {
            if self.rng.random_bool(0.6) {
                let option = self.vertex_option(merge);
                chain.steps.push(option);
            }
        }
        chain.spreads(ObjectKind::Vertex);
        chain
    }

    /// `inject(map, …).mergeV()`: the maps are objects of the stream.
    pub fn merge_from_stream(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        let mut maps = Vec::new();
        for _ in 0..self.rng.random_range(1..4) {
            let label = Value::string(self.label(&ObjectKind::Vertex));
            let name = value(&mut self.rng, &ObjectKind::Text);
            maps.push(literal(vec![(Value::Token(Token::Label), label), ("name".into(), name)]));
        }
        chain.steps.push(Instruction::new("inject", maps));
        if self.rng.random_bool(0.3) {
            chain.push("mergeV", [nested([step("identity", [])])]);
        } else {
            chain.push("mergeV", []);
        }
        for merge in [Merge::OnCreate, Merge::OnMatch] {
            if self.rng.random_bool(0.4) {
                let option = self.vertex_option(merge);
                chain.steps.push(option);
            }
        }
        chain.spreads(ObjectKind::Vertex);
        chain
    }

    /// Merges whose maps are side effects of the source.
    pub fn merge_by_given_maps(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        let label = Value::string(self.label(&ObjectKind::Vertex));
        let wanted = vec![(Value::Token(Token::Label), label), self.entry("name", &ObjectKind::Text)];
        let (made, met) = (self.entry("age", &ObjectKind::Int(32)), self.entry("score", &ObjectKind::Int(64)));
        for (name, map) in [("w", wanted), ("c", vec![made]), ("m", vec![met])] {
            self.source.push(step("withSideEffect", [text(name), literal(map)]));
        }
        let given = |name: &str| nested([step("select", [text(name)])]);
        if self.rng.random_bool(0.3) {
            chain.push("inject", [int(0), int(0)]);
        }
        chain.push("mergeV", [given("w")]);
        if self.rng.random_bool(0.7) {
            chain.push("option", [Argument::Merge(Merge::OnCreate), given("c")]);
        }
        if self.rng.random_bool(0.7) {
            chain.push("option", [Argument::Merge(Merge::OnMatch), given("m")]);
        }
        chain.spreads(ObjectKind::Vertex);
        chain
    }

    fn literal_id(&mut self) -> Value {
        match self.vertex_id() {
            Argument::Value(id) => id,
            _ => Value::Null,
        }
    }

    /// `mergeE()` between two vertices by id, or of any edge by a label and a property.
    pub fn merge_edges(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        if self.rng.random_bool(0.3) {
            chain.push("inject", [int(0), int(0)]);
        }
        self.perhaps_partitioned();
        let (source, target) = (self.literal_id(), self.literal_id());
        let mut wanted = vec![(Value::Token(Token::Label), Value::string(self.edge_label()))];
        if self.rng.random_bool(0.85) {
            wanted.push((Value::Direction(Direction::Out), source.clone()));
        }
        if self.rng.random_bool(0.85) {
            wanted.push((Value::Direction(Direction::In), target.clone()));
        }
        if self.rng.random_bool(0.3) {
            wanted.push(self.entry("since", &ObjectKind::Int(32)));
        }
        if let (true, Argument::Value(id)) = (self.rng.random_bool(0.15), self.edge_id()) {
            wanted.push((Value::Token(Token::Id), id));
        }
        if self.rng.random_bool(0.3) && !chain.steps.is_empty() {
            chain.steps.clear();
            chain.push("inject", [literal(wanted.clone()), literal(wanted)]);
            if self.rng.random_bool(0.5) {
                chain.push("mergeE", []);
            } else {
                chain.push("mergeE", [nested([step("identity", [])])]);
            }
        } else {
            chain.push("mergeE", [literal(wanted)]);
        }
        if self.rng.random_bool(0.5) {
            let mut made = vec![self.entry("weight", &ObjectKind::Float)];
            if self.rng.random_bool(0.5) {
                made.push((Value::Direction(Direction::Out), source));
                made.push((Value::Direction(Direction::In), target));
            }
            chain.push("option", [Argument::Merge(Merge::OnCreate), literal(made)]);
        }
        if self.rng.random_bool(0.5) {
            let written = literal(vec![self.entry("weight", &ObjectKind::Float)]);
            let from_child = self.rng.random_bool(0.3);
            let written = if from_child { nested([step("constant", [written])]) } else { written };
            chain.push("option", [Argument::Merge(Merge::OnMatch), written]);
        }
        chain.spreads(ObjectKind::Edge);
        chain
    }

    /// `mergeE()` whose ends are given by options: by id, by a property of one vertex, or by a step label.
    pub fn merge_edge_by_ends(&mut self) -> Chain {
        let mut chain = self.start();
        chain.steps.clear();
        let labeled = self.rng.random_bool(0.4);
        if labeled {
            let (from, to) = (self.vertex_id(), self.vertex_id());
            chain.push("V", [from]);
            chain.push("as", [text("a")]);
            chain.push("V", [to]);
            chain.push("as", [text("b")]);
        }
        let entry = |key, end| (Argument::Value(Value::Direction(key)), Argument::Merge(end));
        let label = Value::string(self.edge_label());
        let wanted = vec![
            (token(Token::Label), Argument::Value(label)),
            entry(Direction::Out, Merge::OutV),
            entry(Direction::In, Merge::InV),
        ];
        chain.push("mergeE", [Argument::Map(wanted)]);
        for (end, name) in [(Merge::OutV, "a"), (Merge::InV, "b")] {
            let by_id = literal(vec![(Value::Token(Token::Id), self.literal_id())]);
            let description = if labeled { nested([step("select", [text(name)])]) } else { by_id };
            chain.push("option", [Argument::Merge(end), description]);
        }
        if self.rng.random_bool(0.4) {
            let made = literal(vec![self.entry("since", &ObjectKind::Int(32))]);
            chain.push("option", [Argument::Merge(Merge::OnCreate), made]);
        }
        chain.spreads(ObjectKind::Edge);
        chain
    }
}
