//! Generates functions of one object: of texts and collections, `math()`, and tests of members.

use mangrove_graph::Value;
use mangrove_gremlin::{Argument, Comparison, Scope};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, Generator};
use super::schema::{ObjectKind, value};
use crate::script::{compare, int, text};

impl Generator {
    /// A function for the kind of object in the stream, if there is one.
    pub fn function(&mut self, chain: &mut Chain) {
        match chain.state.kind.clone() {
            ObjectKind::Text => self.text_function(chain),
            ObjectKind::Int(_) | ObjectKind::Float => {
                let (a, b) = (self.rng.random_range(1..4), self.rng.random_range(0..9));
                let expression = match self.rng.random_range(0..5) {
                    0 => format!("({b} - _) / 4"),
                    1 => format!("abs(_) - {b} ^ {a}"),
                    2 => format!("floor(_ / {a}) + _"),
                    _ => format!("_ * {a} + {b}"),
                };
                chain.push("math", [text(&expression)]);
                chain.becomes(ObjectKind::Float);
            }
            ObjectKind::List(inner) if inner.is_homogeneous() => self.collection_function(chain, &inner),
            _ => {}
        }
    }

    /// A function of a text. It returns a text, its length or a list of texts.
    fn text_function(&mut self, chain: &mut Chain) {
        match self.rng.random_range(0..8) {
            5 => {
                chain.push("concat", [text(" ")]);
                let name = *["trim", "lTrim", "rTrim"].choose(&mut self.rng).expect("not empty");
                chain.push(name, []);
            }
            6 => {
                chain.push("split", [text(if self.rng.random_bool(0.5) { "" } else { "n" })]);
                return chain.becomes(ObjectKind::List(Box::new(ObjectKind::Text)));
            }
            7 => chain.push("substring", [int(self.rng.random_range(-3..2))]),
            0 => {
                chain.push("length", []);
                return chain.becomes(ObjectKind::Int(32));
            }
            1 => {
                let from = self.rng.random_range(0..3);
                chain.push("substring", [int(from), int(from + self.rng.random_range(0..3))]);
            }
            2 => chain.push("concat", [text("x")]),
            3 => chain.push("replace", [text("a"), text("oo")]),
            _ => {
                let name = *["toUpper", "toLower", "reverse"].choose(&mut self.rng).expect("not empty");
                chain.push(name, []);
            }
        }
        chain.becomes(ObjectKind::Text);
    }

    /// A function of a list: a test of its members, a combination with a literal list, or a function of each member.
    fn collection_function(&mut self, chain: &mut Chain, inner: &ObjectKind) {
        let literals: Vec<Value> = (0..self.rng.random_range(0..4)).map(|_| value(&mut self.rng, inner)).collect();
        if self.rng.random_bool(0.4) {
            let name = *["all", "any", "none"].choose(&mut self.rng).expect("not empty");
            let comparison =
                *[Comparison::Eq, Comparison::Lt, Comparison::Gte].choose(&mut self.rng).expect("not empty");
            let operand = value(&mut self.rng, inner);
            chain.push(name, [compare(comparison, operand)]);
            return;
        }
        if self.rng.random_bool(0.15) {
            chain.push("product", [Argument::Value(Value::list(literals))]);
            return chain.becomes(ObjectKind::Opaque);
        }
        if *inner == ObjectKind::Text && self.rng.random_bool(0.3) {
            let name = *["toUpper", "length", "trim"].choose(&mut self.rng).expect("not empty");
            chain.push(name, [Argument::Scope(Scope::Local)]);
            let inner = if name == "length" { ObjectKind::Int(32) } else { ObjectKind::Text };
            return chain.becomes(ObjectKind::List(Box::new(inner)));
        }
        let name =
            *["combine", "merge", "difference", "intersect", "disjunct"].choose(&mut self.rng).expect("not empty");
        chain.push(name, [Argument::Value(Value::list(literals))]);
        // The order of a set's members is unspecified.
        chain.state.lists_unordered |= name != "combine";
        chain.becomes(ObjectKind::List(Box::new(inner.clone())));
    }
}
