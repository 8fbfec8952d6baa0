//! `tree`, `subgraph`, services, and `V()` or `E()` in the middle of a traversal.

use mangrove_graph::{Direction, Value};
use mangrove_gremlin::{Argument, Instruction};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, ChainPosition, Generator};
use super::schema::{NAMES, ObjectKind};
use crate::script::{int, nested, step, text, token};

impl Generator {
    /// A tree of the paths so far, as a result or in a side effect.
    pub fn tree(&mut self, chain: &mut Chain) {
        if !chain.state.history || chain.state.position != ChainPosition::Top || self.rng.random_bool(0.5) {
            return;
        }
        let as_side_effect = self.rng.random_bool(0.3);
        chain.steps.push(Instruction::new("tree", if as_side_effect { vec![text("t")] } else { Vec::new() }));
        if self.rng.random_bool(0.4) {
            chain.push("by", []);
            chain.push("by", [nested([step("constant", [int(1)])])]);
        }
        if as_side_effect {
            chain.push("cap", [text("t")]);
        }
        chain.reduces(ObjectKind::Opaque);
        chain.end();
    }

    /// The edges of a stream with their ends, as a graph.
    pub fn subgraph(&mut self, chain: &mut Chain) {
        if chain.state.position != ChainPosition::Top
            || chain.state.kind != ObjectKind::Edge
            || self.rng.random_bool(0.5)
        {
            return;
        }
        chain.push("subgraph", [text("sg")]);
        if self.rng.random_bool(0.3) {
            chain.push("inV", []);
        }
        chain.push("cap", [text("sg")]);
        chain.reduces(ObjectKind::Opaque);
        chain.end();
    }

    /// A service of the graph, called for every vertex.
    pub fn call(&mut self, chain: &mut Chain) {
        chain.push("call", [text("tinker.degree.centrality")]);
        if self.rng.random_bool(0.7) {
            let direction = *[Direction::Out, Direction::In, Direction::Both].choose(&mut self.rng).expect("not empty");
            chain.push("with", [text("direction"), Argument::Value(Value::Direction(direction))]);
        }
        chain.becomes(ObjectKind::Int(64));
    }

    /// The properties that contain a text, as the start of a traversal.
    pub fn search(&mut self, chain: &mut Chain) {
        let name = *NAMES.choose(&mut self.rng).expect("not empty");
        chain.push("call", [text("tinker.search")]);
        chain.push("with", [text("search"), text(&name[..2])]);
        chain.becomes(ObjectKind::Opaque);
        if self.rng.random_bool(0.6) {
            chain.push("value", []);
            chain.becomes(ObjectKind::Text);
        } else if self.rng.random_bool(0.5) {
            chain.push("element", []);
            chain.push("label", []);
            chain.becomes(ObjectKind::Text);
        }
    }

    /// `V(…)` in the middle: it runs again for every traverser.
    pub fn start_again(&mut self, chain: &mut Chain) {
        if chain.state.position == ChainPosition::Body || self.rng.random_bool(0.7) {
            return;
        }
        let ids = (0..self.rng.random_range(1..3)).map(|_| self.vertex_id()).collect();
        chain.steps.push(Instruction::new("V", ids));
        chain.spreads(ObjectKind::Vertex);
    }

    /// Steps for any kind: `sample` of the whole stream, `coin` with probability 0 or 1, a `fail` that may be reached.
    pub fn rarity(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..12) {
            0..=2 => {
                chain.push("sample", [int(100_000)]);
                chain.state.ordered = false;
            }
            3..=5 => {
                let share = if self.rng.random_bool(0.9) { 1.0 } else { 0.0 };
                chain.push("coin", [Argument::Value(Value::F64(share))]);
            }
            6 if chain.state.kind == ObjectKind::Vertex => {
                let taken =
                    nested([step("hasLabel", [text(self.label(&ObjectKind::Vertex))]), step("limit", [int(0)])]);
                chain.push("choose", [taken, nested([step("fail", [text("reached")])])]);
            }
            7 if chain.state.position == ChainPosition::Top && self.rng.random_bool(0.2) => chain.push("fail", []),
            8 if chain.state.kind.is_element() => {
                chain.push("propertyMap", []);
                chain.becomes(ObjectKind::Opaque);
            }
            9 if chain.state.kind == ObjectKind::Vertex => {
                chain.push("valueMap", [text("name"), text("age")]);
                chain.push("with", [text("~tinkerpop.valueMap.tokens")]);
                chain.becomes(ObjectKind::Opaque);
            }
            10 if chain.state.kind.is_element() => {
                chain.push("choose", [token(mangrove_graph::Token::Label)]);
                let option = nested([step("values", [text("name")])]);
                chain.push("option", [text(self.label(&ObjectKind::Vertex)), option]);
                chain.spreads(ObjectKind::Opaque);
            }
            _ => {}
        }
    }
}
