//! The rarer forms of steps: predicates in place of literals, lists in place of one value, several names of labels and
//! side effects, children in place of literals.

use mangrove_graph::{Direction, Token, Value};
use mangrove_gremlin::{Argument, Comparison, Instruction, Predicate, Scope};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, ChainPosition, Generator};
use super::schema::{EDGE_LABELS, KEYS, ObjectKind, VERTEX_LABELS, value};
use crate::script::{compare, int, nested, step, text, token};

impl Generator {
    /// One of the rarer forms, if there is one for the kind of object in the stream.
    pub fn rare_form(&mut self, chain: &mut Chain) {
        match chain.state.kind.clone() {
            kind @ (ObjectKind::Vertex | ObjectKind::Edge) => self.rare_form_of_element(chain, &kind),
            ObjectKind::VertexProperty | ObjectKind::EdgeProperty => {
                chain.push("hasKey", [Argument::Predicate(among(&KEYS.map(|key| key.name)[..3]))]);
            }
            ObjectKind::Text => self.rare_form_of_text(chain),
            kind @ (ObjectKind::Int(_) | ObjectKind::Float) => self.rare_form_of_number(chain, &kind),
            ObjectKind::List(inner) if inner.is_homogeneous() => self.rare_form_of_list(chain, &inner),
            ObjectKind::Record(fields) => {
                let (name, kind) = fields.choose(&mut self.rng).expect("a record has fields").clone();
                chain.push("select", [nested([step("constant", [text(name)])])]);
                chain.becomes(kind);
            }
            ObjectKind::Mixed if self.rng.random_bool(0.1) => {
                chain.push("constant", [Argument::Value(Value::Null)]);
                chain.becomes(ObjectKind::Opaque);
            }
            _ => {}
        }
    }

    fn rare_form_of_element(&mut self, chain: &mut Chain, kind: &ObjectKind) {
        if !chain.state.labels.is_empty() && self.rng.random_bool(0.3) {
            return self.dedup_by_label(chain);
        }
        let key = self.key(kind);
        let labels = if *kind == ObjectKind::Vertex { VERTEX_LABELS } else { EDGE_LABELS };
        match self.rng.random_range(0..8) {
            0 => chain.push("hasLabel", [Argument::Predicate(among(&labels[1..]))]),
            1 => {
                let id = if *kind == ObjectKind::Vertex { self.vertex_id() } else { self.edge_id() };
                let below = Predicate::Compare(Comparison::Lte, Box::new(id));
                chain.push("hasId", [Argument::Predicate(below)]);
            }
            2 => chain.push("has", [token(Token::Label), text(labels[0])]),
            3 => chain.push("has", [text(key.name), Argument::Value(Value::Null)]),
            4 => {
                let (tokens, other) = (Argument::Value(Value::Bool(true)), self.key(kind));
                if self.rng.random_bool(0.5) {
                    chain.push("valueMap", [tokens, text(key.name)]);
                } else {
                    chain.push("valueMap", [tokens, text(key.name), text(other.name)]);
                }
                chain.becomes(ObjectKind::Opaque);
            }
            5 => {
                chain.push("valueMap", []);
                chain.becomes(ObjectKind::Opaque);
            }
            6 if *kind == ObjectKind::Vertex => {
                let direction = (Value::string("direction"), Value::Direction(Direction::Both));
                chain.push("call", [text("tinker.degree.centrality"), Argument::Value(Value::map(vec![direction]))]);
                chain.becomes(ObjectKind::Int(64));
            }
            _ => chain.merges([int(self.rng.random_range(1..2_500))]),
        }
    }

    /// `dedup(a)`, after which only the label is read.
    fn dedup_by_label(&mut self, chain: &mut Chain) {
        let Some((name, kind)) = chain.state.labels.first().cloned() else { return };
        if chain.state.position == ChainPosition::Top && chain.state.may_gather {
            chain.push("dedup", [text(name)]);
            chain.push("select", [text(name)]);
            chain.spreads(kind);
            chain.loses_history();
        }
    }

    fn rare_form_of_text(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..5) {
            0 => {
                chain.push("split", [Argument::Value(Value::Null)]);
                return chain.becomes(ObjectKind::List(Box::new(ObjectKind::Text)));
            }
            1 => chain.push("concat", [text("-"), text("y")]),
            2 => chain.push("concat", [nested([step("constant", [text("z")])]), nested([step("identity", [])])]),
            3 => {
                let first = compare(Comparison::Lt, "c");
                chain.push("choose", [first, nested([step("toUpper", [])]), nested([step("identity", [])])]);
                return chain.spreads(ObjectKind::Text);
            }
            // A bare predicate, as in `until(P)`.
            _ if self.rng.random_bool(0.2) => return chain.push("filter", [compare(Comparison::Neq, "bob")]),
            _ => return chain.push("filter", [nested([step("is", [compare(Comparison::Neq, "bob")])])]),
        }
        chain.becomes(ObjectKind::Text);
    }

    /// Numbers that grow until they reach a bound.
    fn rare_form_of_number(&mut self, chain: &mut Chain, kind: &ObjectKind) {
        if self.rng.random_bool(0.3) || chain.state.position == ChainPosition::Body {
            let test = Argument::Predicate(Predicate::Compare(Comparison::Gte, Box::new(int(10))));
            chain.push("choose", [test, nested([step("constant", [Argument::Value(value(&mut self.rng, kind))])])]);
            return chain.spreads(kind.clone());
        }
        // The reference implementation compares the traverser instead of its object, and does not end.
        let is_bare = self.rng.random_bool(0.05);
        let test = |test: Argument| if is_bare { test } else { nested([step("is", [test])]) };
        let enough = compare(Comparison::Gte, self.rng.random_range(30..60));
        chain.push("repeat", [nested([step("math", [text("_ + 9")])])]);
        chain.push("until", [test(enough)]);
        if self.rng.random_bool(0.4) {
            chain.push("emit", [test(compare(Comparison::Gt, self.rng.random_range(0..30)))]);
        }
        chain.spreads(ObjectKind::Float);
    }

    fn rare_form_of_list(&mut self, chain: &mut Chain, inner: &ObjectKind) {
        let local = Argument::Scope(Scope::Local);
        match self.rng.random_range(0..5) {
            0 => chain.push("sample", [local, int(100_000)]),
            1 if !chain.state.lists_unordered => {
                let low = self.rng.random_range(0..2);
                chain.push("range", [local, int(low), int(low + 2)]);
            }
            2 if *inner != ObjectKind::Date => {
                chain.push("asString", [local]);
                chain.becomes(ObjectKind::List(Box::new(ObjectKind::Text)));
            }
            _ => {
                let other = Value::list((0..2).map(|_| value(&mut self.rng, inner)).collect());
                let name = *["combine", "merge", "difference", "intersect"].choose(&mut self.rng).expect("not empty");
                chain.push(name, [nested([step("constant", [Argument::Value(other)])])]);
                chain.state.lists_unordered = true;
                chain.becomes(ObjectKind::List(Box::new(inner.clone())));
            }
        }
    }

    /// Several side effects in one map.
    pub fn cap_all(&mut self, chain: &mut Chain) {
        if chain.state.position != ChainPosition::Top || chain.state.side_effects.len() < 2 {
            return;
        }
        let names = chain.state.side_effects.iter().map(|(name, _)| text(name)).collect();
        chain.steps.push(Instruction::new("cap", names));
        chain.state.lists_unordered = true;
        chain.reduces(ObjectKind::Opaque);
        chain.end();
    }
}

fn among(names: &[&str]) -> Predicate {
    Predicate::Within(names.iter().map(|name| text(name)).collect())
}
