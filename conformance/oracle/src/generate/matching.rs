//! `match()`: connected patterns, tests of their variables, in any order.

use mangrove_gremlin::{Argument, Comparison, Instruction, Predicate};
use rand::Rng;
use rand::seq::{IndexedRandom, SliceRandom};

use super::chain::{Chain, Generator};
use super::schema::ObjectKind;
use crate::script::{compare, nested, step, text};

impl Generator {
    /// `match(…)` on vertices; the result is a map of variables.
    pub fn match_patterns(&mut self, chain: &mut Chain) {
        if chain.state.kind != ObjectKind::Vertex || !chain.state.history {
            return;
        }
        let mut record = vec![("u", ObjectKind::Vertex), ("v", ObjectKind::Vertex)];
        let mut patterns = vec![self.way("u", Some("v"))];
        match self.rng.random_range(0..6) {
            0 => patterns.push(self.way("u", Some("v"))),
            1 | 2 => {
                patterns.push(self.way("v", Some("w")));
                record.push(("w", ObjectKind::Vertex));
            }
            3 => {
                let steps = [step("as", [text("v")]), step("values", [text("age")]), step("as", [text("w")])];
                patterns.push(nested(steps));
                record.push(("w", ObjectKind::Int(32)));
            }
            4 => {
                let count = [step("both", []), step("count", [])];
                let steps = [vec![step("as", [text("v")])], count.to_vec(), vec![step("as", [text("w")])]].concat();
                patterns.push(nested(steps));
                record.push(("w", ObjectKind::Int(64)));
            }
            _ => {}
        }
        let mut binds_all = true;
        if self.rng.random_bool(0.3) {
            let (either, binds) = self.either();
            patterns.push(either);
            binds_all = binds;
            if binds {
                record.push(("x", ObjectKind::Vertex));
            }
        }
        for _ in 0..self.rng.random_range(0..3) {
            let test = self.pattern_test();
            patterns.push(test);
        }
        if patterns.len() > 2 && self.rng.random_bool(0.3) {
            let last = patterns.split_off(patterns.len() - 2);
            patterns.push(nested([Instruction::new("and", last)]));
        }
        if self.rng.random_bool(0.3) {
            patterns.shuffle(&mut self.rng);
        }
        chain.steps.push(Instruction::new("match", patterns));
        chain.spreads(if binds_all { ObjectKind::Record(record) } else { ObjectKind::Opaque });
        chain.loses_history();
    }

    /// `or()` of patterns that bind variables, and true if each of them binds `x`.
    fn either(&mut self) -> (Argument, bool) {
        let (one, other) = (self.way("u", Some("x")), self.way("v", Some("x")));
        let has = nested([step("as", [text("v")]), step("has", [text(self.key(&ObjectKind::Vertex).name)])]);
        match self.rng.random_range(0..6) {
            0 | 1 => (nested([step("or", [one, other])]), true),
            2 => (nested([step("or", [one, has])]), false),
            3 => {
                let both = nested([step("and", [one, self.way("x", None)])]);
                (nested([step("or", [both, other])]), true)
            }
            4 => (nested([step("or", [self.way("u", Some("v")), other])]), false),
            _ => (nested([step("or", [one, self.way("v", Some("y"))])]), false),
        }
    }

    fn way(&mut self, start: &str, end: Option<&str>) -> Argument {
        let name = *["out", "in", "both"].choose(&mut self.rng).expect("not empty");
        let mut steps = vec![step("as", [text(start)])];
        if self.rng.random_bool(0.2) {
            steps.push(step("hasLabel", [text(self.label(&ObjectKind::Vertex))]));
        }
        steps.push(if self.rng.random_bool(0.6) { step(name, [text(self.edge_label())]) } else { step(name, []) });
        steps.extend(end.map(|end| step("as", [text(end)])));
        nested(steps)
    }

    /// A pattern that binds nothing.
    fn pattern_test(&mut self) -> Argument {
        match self.rng.random_range(0..7) {
            6 => {
                let both = nested([step("and", [self.way("v", Some("u")), self.way("u", None)])]);
                nested([step("not", [both])])
            }
            0 => nested([step("not", [self.way("v", Some("u"))])]),
            1 => nested([step("not", [self.way("u", None)])]),
            2 => nested([step("or", [self.way("u", None), self.way("v", None)])]),
            3 => {
                let differs = Predicate::Compare(Comparison::Neq, Box::new(text("v")));
                nested([step("where", [text("u"), Argument::Predicate(differs)])])
            }
            4 => nested([step("where", [self.way("v", Some("u"))])]),
            _ => {
                let at_least = compare(Comparison::Gte, self.rng.random_range(0..20));
                nested([step("as", [text("v")]), step("has", [text("age"), at_least])])
            }
        }
    }
}
