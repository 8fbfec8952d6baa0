//! Steps that gather: `count`, `sum`, `fold`, `group`, `aggregate`, `cap`.

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Instruction, Operator};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, ChainPosition, Generator};
use super::schema::ObjectKind;
use crate::script::{nested, step, text, token};

const SIDE_EFFECTS: [&str; 2] = ["x", "y"];

impl Generator {
    /// A reduction ends the path of a traverser, so the body of a `repeat` has none. Nor has a branch that may receive
    /// no traverser.
    pub fn may_reduce(chain: &Chain) -> bool {
        chain.state.position != ChainPosition::Body && chain.state.may_gather
    }

    pub fn reduce(&mut self, chain: &mut Chain) {
        if !Self::may_reduce(chain) || self.rng.random_bool(0.4) {
            return;
        }
        let kind = chain.state.kind.clone();
        let choices = self.reductions(&kind);
        if kind.is_number() && self.rng.random_bool(0.15) {
            let operator = *[Operator::Sum, Operator::Max].choose(&mut self.rng).expect("not empty");
            chain.push("fold", [Argument::Value(Value::F64(0.0)), Argument::Operator(operator)]);
            return chain.reduces(ObjectKind::Opaque);
        }
        let (name, made) = choices.choose(&mut self.rng).expect("not empty").clone();
        chain.push(name, []);
        chain.reduces(made);
    }

    /// The reductions of objects of a kind, with the kinds of their results.
    fn reductions(&mut self, kind: &ObjectKind) -> Vec<(&'static str, ObjectKind)> {
        let mut choices = vec![("count", ObjectKind::Int(64)); 2];
        if kind.is_number() {
            choices.extend(["sum", "min", "max"].map(|name| (name, kind.clone())));
            choices.push(("mean", ObjectKind::Opaque));
        } else if *kind == ObjectKind::Text {
            choices.extend(["min", "max"].map(|name| (name, kind.clone())));
        } else if *kind == ObjectKind::Mixed && self.rng.random_bool(0.1) {
            // A text among the numbers is an error on both sides.
            choices.push(("sum", ObjectKind::Opaque));
        }
        choices
    }

    /// Several reductions of the same values, each in a branch of its own; now and then one with a step after it.
    pub fn reduce_in_branches(&mut self, chain: &mut Chain) {
        if !Self::may_reduce(chain) || self.rng.random_bool(0.3) {
            return;
        }
        let mut kind = chain.state.kind.clone();
        let mut first = Vec::new();
        if kind.is_element() {
            let key = self.key(&kind);
            first.push(step("values", [text(key.name)]));
            kind = key.kind.clone();
        }
        let choices = self.reductions(&kind);
        let in_each = self.rng.random_bool(0.5);
        let branches = (0..self.rng.random_range(2..5)).map(|_| {
            let mut branch = if in_each { first.clone() } else { Vec::new() };
            branch.push(step(choices.choose(&mut self.rng).expect("not empty").0, []));
            if self.rng.random_bool(0.05) {
                branch.push(step("identity", []));
            }
            nested(branch)
        });
        let union = Instruction::new("union", branches.collect());
        if !in_each {
            chain.steps.append(&mut first);
        }
        chain.steps.push(union);
        chain.reduces(ObjectKind::Opaque);
        (chain.state.ordered, chain.state.clustered) = (false, false);
    }

    pub fn fold(&mut self, chain: &mut Chain) {
        if !Self::may_reduce(chain) || self.rng.random_bool(0.5) {
            return;
        }
        let kind = chain.state.kind.clone();
        // In a list, the oracle represents an entry as a map with one key.
        let kind = if matches!(kind, ObjectKind::Entry(..)) { ObjectKind::Opaque } else { kind };
        chain.push("fold", []);
        chain.state.lists_unordered |= !chain.state.ordered;
        chain.reduces(ObjectKind::List(Box::new(kind)));
    }

    pub fn group(&mut self, chain: &mut Chain) {
        let kind = chain.state.kind.clone();
        if !Self::may_reduce(chain) || !kind.is_plain() {
            return;
        }
        let (mut by_key, mut key) = self.by(&kind);
        let (name, value) =
            if self.rng.random_bool(0.5) { ("groupCount", ObjectKind::Int(64)) } else { ("group", ObjectKind::Opaque) };
        // As a side effect, the step passes its input on, and a later step reads the side effect.
        let is_free = chain.state.side_effects.iter().all(|(used, _)| *used != "g");
        let as_side_effect = is_free && chain.state.position == ChainPosition::Top && self.rng.random_bool(0.15);
        if as_side_effect {
            // The reference implementation fails if the `by` of a side effect has no result.
            by_key = vec![nested([step("constant", [text("k")])])];
            key = ObjectKind::Text;
            if kind.is_element() {
                by_key = vec![token(Token::Label)];
            }
        }
        let name_argument = if as_side_effect { vec![text("g")] } else { Vec::new() };
        chain.steps.push(Instruction::new(name, name_argument));
        chain.steps.push(Instruction::new("by", by_key));
        let value = if name == "group" { self.group_value(chain, &kind) } else { value };
        if as_side_effect {
            chain.push("cap", [text("g")]);
            chain.state.side_effects.push(("g", ObjectKind::Opaque));
        }
        chain.reduces(ObjectKind::Map(Box::new(key), Box::new(value)));
    }

    fn group_value(&mut self, chain: &mut Chain, kind: &ObjectKind) -> ObjectKind {
        match self.rng.random_range(0..7) {
            0 => {
                chain.push("by", [nested([step("count", [])])]);
                ObjectKind::Int(64)
            }
            5 => {
                let (by, _) = self.by(kind);
                chain.push("by", [nested([step("groupCount", []), Instruction::new("by", by)])]);
                ObjectKind::Opaque
            }
            6 if *kind == ObjectKind::Vertex => {
                let inner = [step("out", []), step("dedup", []), step("count", [])];
                chain.push("by", [nested(inner)]);
                ObjectKind::Int(64)
            }
            1 | 2 if kind.is_element() => {
                let key = self.key(kind);
                let values = step("values", [text(key.name)]);
                if key.kind.is_number() {
                    let name = *["sum", "min", "max"].choose(&mut self.rng).expect("not empty");
                    chain.push("by", [nested([values, step(name, [])])]);
                    return key.kind.clone();
                }
                chain.push("by", [nested([values, step("fold", [])])]);
                chain.state.lists_unordered = true;
                ObjectKind::List(Box::new(key.kind.clone()))
            }
            3 => {
                let (by, made) = self.by(kind);
                // A list of the values of a key or a token; any other child would have to reduce.
                chain.state.lists_unordered = true;
                match by.first() {
                    Some(Argument::Traversal(_)) => ObjectKind::List(Box::new(kind.clone())),
                    _ => {
                        chain.steps.push(Instruction::new("by", by));
                        ObjectKind::List(Box::new(made))
                    }
                }
            }
            _ => {
                chain.state.lists_unordered = true;
                ObjectKind::List(Box::new(kind.clone()))
            }
        }
    }

    /// `aggregate`, at the top level only: in a child, the content at a given moment depends on the order of execution.
    pub fn aggregate(&mut self, chain: &mut Chain) {
        let state = &chain.state;
        if state.position != ChainPosition::Top || !state.kind.is_plain() || self.rng.random_bool(0.5) {
            return;
        }
        let free = SIDE_EFFECTS.into_iter().find(|n| state.side_effects.iter().all(|(used, _)| used != n));
        let Some(name) = free else { return };
        let kind = state.kind.clone();
        let (by, made) = self.by(&kind);
        chain.push("aggregate", [text(name)]);
        chain.steps.push(Instruction::new("by", by));
        chain.state.lists_unordered = true;
        chain.state.side_effects.push((name, made.clone()));
        if self.rng.random_bool(0.3) {
            chain.push("cap", [text(name)]);
            chain.reduces(ObjectKind::List(Box::new(made)));
            if self.rng.random_bool(0.5) {
                chain.push("unfold", []);
                let ObjectKind::List(inner) = chain.state.kind.clone() else { return };
                chain.spreads(*inner);
            } else {
                chain.end();
            }
        }
    }
}
