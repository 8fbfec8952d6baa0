//! Generates side effects that a nested traversal fills, by any gathering step and in any scope, also in a scope within
//! a scope. A *scope* is a step that runs a child.
//!
//! The final content of a side effect is determined only if every traverser reaches it, so no step cuts the stream
//! before `cap()` reads it. There are two kinds of scope:
//!
//! - `union`, `local`, `optional`, `choose`, `branch`, `repeat` and the values of `group` pass traversers on. A merged
//!   traverser counts as often as its bulk says.
//! - Every other scope runs its child once for a traverser, so a merged traverser counts once. How often traversers are
//!   merged is unspecified, so all objects in such a scope are different.

use mangrove_graph::{Token, Value};
use mangrove_gremlin::{Argument, Comparison, Instruction};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, ChainPosition, Generator};
use super::schema::ObjectKind;
use crate::script::{compare, int, nested, step, text, token};

/// The names of these side effects.
const NAMES: [&str; 2] = ["m", "n"];

/// The name of the side effect that the first traverser fills.
const FIRST: &str = "f";

/// The use that a scope makes of its child.
#[derive(Clone, Copy, PartialEq)]
enum ScopeKind {
    /// The scope passes traversers through.
    Passes,
    /// The scope runs the child to its end for one object.
    RunsOut,
    /// The scope takes the child's first result.
    TakesFirst,
}

impl Generator {
    /// One vertex, whose neighbors a nested traversal puts into a side effect. It is complete before any later step reads
    /// it, since no other traverser fills it. So its readers may stand anywhere, also in loops and before a limit.
    pub fn remember_first(&mut self, chain: &mut Chain) {
        let id = self.vertex_id();
        chain.push("V", [id]);
        let mut inner = Chain { steps: Vec::new(), state: chain.state.clone() };
        inner.state.position = ChainPosition::Local;
        self.neighbors(&mut inner);
        inner.push("aggregate", [text(FIRST)]);
        let scope = *["sideEffect", "sideEffect", "local"].choose(&mut self.rng).expect("not empty");
        chain.push(scope, [nested(inner.steps)]);
        if scope == "local" {
            chain.spreads(ObjectKind::Vertex);
        }
        chain.state.side_effects.push((FIRST, ObjectKind::Vertex));
        if self.rng.random_bool(0.5) {
            self.neighbors(chain);
        }
    }

    /// A scope that fills side effects, sometimes a step after it, and `cap()`.
    pub fn effect_in_scope(&mut self, chain: &mut Chain) {
        let state = &chain.state;
        let is_used = |name: &str| state.side_effects.iter().any(|(used, _)| used == &name);
        if state.position != ChainPosition::Top || !state.kind.is_plain() || NAMES.iter().any(|name| is_used(name)) {
            return;
        }
        let scope = *[ScopeKind::Passes, ScopeKind::Passes, ScopeKind::RunsOut, ScopeKind::TakesFirst]
            .choose(&mut self.rng)
            .expect("not empty");
        if scope == ScopeKind::Passes {
            self.perhaps_merge(chain);
        } else {
            chain.push("dedup", []);
            chain.loses_history();
        }
        let mut names = vec![NAMES[0]];
        if scope == ScopeKind::Passes && self.rng.random_bool(0.2) {
            self.loop_that_gathers(chain);
        } else {
            let child = self.effect_child(chain, scope, NAMES[0], true);
            match scope {
                ScopeKind::Passes => names.extend(self.passing_scope(chain, child)),
                ScopeKind::RunsOut => self.exhausting_scope(chain, child),
                ScopeKind::TakesFirst => self.testing_scope(chain, child),
            }
        }
        if self.rng.random_bool(0.2) {
            match self.rng.random_bool(0.5) {
                true => chain.push("identity", []),
                false => chain.merges([]),
            }
        }
        chain.steps.push(Instruction::new("cap", names.into_iter().map(text).collect()));
        chain.state.lists_unordered = true;
        chain.reduces(ObjectKind::Opaque);
        chain.end();
    }

    /// Sometimes equal traversers are merged here.
    fn perhaps_merge(&mut self, chain: &mut Chain) {
        if chain.state.kind == ObjectKind::Vertex && self.rng.random_bool(0.4) {
            self.meet_again(chain);
        } else if self.rng.random_bool(0.3) {
            chain.merges([]);
        }
    }

    /// Expansions that bring many traversers to one vertex, each followed by a step that merges them.
    pub fn meet_again(&mut self, chain: &mut Chain) {
        if chain.state.kind != ObjectKind::Vertex || chain.state.position == ChainPosition::Body {
            return;
        }
        let walk = *["both", "both", "out", "in"].choose(&mut self.rng).expect("not empty");
        if self.rng.random_bool(0.5) {
            chain.push("repeat", [nested([step(walk, [])])]);
            chain.push("times", [int(2)]);
        } else {
            chain.push(walk, []);
            chain.push("both", [text(self.edge_label())]);
        }
        if self.rng.random_bool(0.5) {
            chain.merges([]);
        }
        chain.spreads(ObjectKind::Vertex);
    }

    /// A `repeat` that gathers in every iteration, also objects that come round again.
    fn loop_that_gathers(&mut self, chain: &mut Chain) {
        let mut body = Chain { steps: Vec::new(), state: chain.state.clone() };
        body.state.position = ChainPosition::Body;
        if chain.state.kind == ObjectKind::Vertex {
            self.neighbors(&mut body);
        }
        self.gatherer(&mut body, NAMES[0]);
        let body = match self.rng.random_range(0..3) {
            0 => vec![step("local", [nested(body.steps)])],
            _ => body.steps,
        };
        Self::end_earlier_loop(chain);
        chain.push("repeat", [nested(body)]);
        chain.push("times", [int(self.rng.random_range(1..3))]);
        if self.rng.random_bool(0.3) {
            chain.push("emit", []);
        }
    }

    /// A child for a scope of this kind: one of its steps gathers objects in the side effect `name`.
    fn effect_child(&mut self, chain: &Chain, scope: ScopeKind, name: &str, may_nest: bool) -> Vec<Instruction> {
        let mut inner = Chain { steps: Vec::new(), state: chain.state.clone() };
        inner.state.position = ChainPosition::Local;
        inner.state.may_gather = false;
        match (inner.state.kind.clone(), self.rng.random_range(0..6)) {
            (kind, 0) if kind.is_element() => {
                inner.push("values", [text(self.key(&kind).name)]);
                inner.becomes(ObjectKind::Mixed);
            }
            (kind, 1) if kind.is_element() => self.has(&mut inner),
            (ObjectKind::Vertex, 2) if scope != ScopeKind::TakesFirst => self.neighbors(&mut inner),
            (ObjectKind::Vertex, 3) if scope != ScopeKind::TakesFirst => self.incident(&mut inner),
            (_, 4) => inner.merges([]),
            _ => {}
        }
        if may_nest && scope == ScopeKind::Passes && self.rng.random_bool(0.3) {
            let within = self.effect_child(&inner, scope, name, false);
            let nesting = *["local", "union", "optional"].choose(&mut self.rng).expect("not empty");
            inner.push(nesting, [nested(within)]);
            return inner.steps;
        }
        self.gatherer(&mut inner, name);
        if scope != ScopeKind::TakesFirst && self.rng.random_bool(0.2) {
            inner.push("identity", []);
        }
        inner.steps
    }

    /// A step that gathers the objects that pass it.
    fn gatherer(&mut self, inner: &mut Chain, name: &str) {
        let kind = inner.state.kind.clone();
        let is_element = kind.is_element();
        let by_label = |inner: &mut Chain| {
            if is_element {
                inner.push("by", [token(Token::Label)]);
            }
        };
        match self.rng.random_range(0..7) {
            0 => {
                inner.push("groupCount", [text(name)]);
                by_label(inner);
            }
            1 => {
                inner.push("group", [text(name)]);
                by_label(inner);
            }
            2 => {
                inner.push("group", [text(name)]);
                if is_element {
                    by_label(inner)
                } else {
                    inner.push("by", [])
                }
                inner.push("by", [nested([step("count", [])])]);
            }
            3 if inner.state.history => inner.push("tree", [text(name)]),
            4 if kind == ObjectKind::Edge => inner.push("subgraph", [text(name)]),
            5 if is_element => {
                let (by, _) = self.by(&kind);
                inner.push("aggregate", [text(name)]);
                inner.steps.push(Instruction::new("by", by));
            }
            _ => inner.push("aggregate", [text(name)]),
        }
    }

    /// A scope that passes traversers on, and the names of further side effects that it fills.
    fn passing_scope(&mut self, chain: &mut Chain, child: Vec<Instruction>) -> Option<&'static str> {
        let has_other = self.rng.random_bool(0.4);
        let other = match has_other {
            true => self.effect_child(chain, ScopeKind::Passes, NAMES[1], false),
            false => vec![step("identity", [])],
        };
        let other_name = has_other.then_some(NAMES[1]);
        let (child, other) = (nested(child), nested(other));
        match self.rng.random_range(0..6) {
            0 => chain.push("union", [child, other]),
            1 => {
                let test = self.plain_test(&chain.state.kind.clone());
                chain.push("choose", [nested([test]), child, other]);
            }
            2 => {
                chain.push("branch", [nested([step("constant", [int(1)])])]);
                chain.push("option", [int(1), child]);
                chain.push("option", [other]);
            }
            3 => {
                chain.push("optional", [child]);
                return None;
            }
            4 => {
                let gathered = match child {
                    Argument::Traversal(mut child) => {
                        child.steps.push(step("count", []));
                        Argument::Traversal(child)
                    }
                    other => other,
                };
                chain.push("group", []);
                if chain.state.kind.is_element() {
                    chain.push("by", [token(Token::Label)]);
                } else {
                    chain.push("by", []);
                }
                chain.push("by", [gathered]);
                return None;
            }
            _ => {
                chain.push("local", [child]);
                return None;
            }
        }
        other_name
    }

    /// Returns a filter that some objects of this kind pass.
    fn plain_test(&mut self, kind: &ObjectKind) -> Instruction {
        match kind {
            ObjectKind::Vertex | ObjectKind::Edge => step("hasLabel", [text(self.label(kind))]),
            ObjectKind::Mixed => step("is", [compare(Comparison::Neq, "ann")]),
            kind => {
                let test = self.test(kind);
                step("is", [test])
            }
        }
    }

    /// A scope that runs its child to the end.
    fn exhausting_scope(&mut self, chain: &mut Chain, child: Vec<Instruction>) {
        let child = nested(child);
        match self.rng.random_range(0..4) {
            0 => chain.push("sideEffect", [child]),
            1 => {
                let none = nested([self.plain_test(&chain.state.kind.clone())]);
                chain.push("coalesce", [none, child]);
            }
            2 => chain.push("coalesce", [child, nested([step("constant", [int(0)])])]),
            _ => chain.push("flatMap", [child]),
        }
    }

    /// A scope that takes its child's first result.
    fn testing_scope(&mut self, chain: &mut Chain, child: Vec<Instruction>) {
        let test = self.plain_test(&chain.state.kind.clone());
        let (child, test) = (nested(child), nested([test]));
        match self.rng.random_range(0..12) {
            0 => chain.push("where", [child]),
            1 => chain.push("filter", [child]),
            2 => chain.push("not", [child]),
            3 => chain.push("and", [test, child]),
            4 | 5 => chain.push("or", [test, child]),
            6 => chain.push("map", [child]),
            7 => chain.push("choose", [child, nested([step("constant", [int(1)])]), nested([step("identity", [])])]),
            8 => {
                chain.push("project", [text("p")]);
                chain.push("by", [child]);
            }
            9 => {
                chain.push("group", []);
                chain.push("by", [nested([step("coalesce", [child, nested([step("constant", [int(0)])])])])]);
                chain.state.lists_unordered = true;
            }
            10 => {
                chain.push("branch", [child]);
                chain.push("option", [Argument::Value(Value::I32(1)), nested([step("constant", [int(1)])])]);
                chain.push("option", [nested([step("identity", [])])]);
            }
            _ => {
                Self::end_earlier_loop(chain);
                chain.push("until", [child]);
                chain.push("repeat", [nested([step("discard", [])])]);
            }
        }
    }
}
