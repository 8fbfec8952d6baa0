//! Generates `repeat`: with and without a name, nested, and with a `dedup` that remembers objects across iterations.
//!
//! Every loop ends: `times` bounds it, a counter in its `until`, or a `dedup` that passes each vertex once.

use mangrove_gremlin::{Argument, Comparison, Instruction};
use rand::Rng;
use rand::seq::IndexedRandom;

use super::chain::{Chain, ChainPosition, Generator, State};
use super::schema::ObjectKind;
use crate::script::{compare, int, nested, step, text};

/// Names of loops, by depth.
const LOOPS: [&str; 3] = ["r", "s", "t"];

impl Generator {
    /// `repeat` over vertices. A condition that may never hold is combined with a limit on iterations.
    pub fn repeat(&mut self, chain: &mut Chain) {
        if chain.state.kind != ObjectKind::Vertex {
            return;
        }
        if chain.state.position != ChainPosition::Body && self.rng.random_bool(0.15) && chain.state.may_gather {
            return self.reachable(chain);
        }
        let name = LOOPS.get(chain.state.loops.len()).copied().filter(|_| self.rng.random_bool(0.3));
        let inside = State { loops: [&chain.state.loops[..], name.as_slice()].concat(), ..chain.state.clone() };
        let body = self.body(&inside);
        // A nested loop runs as often as the product of both counts.
        let times = self.rng.random_range(0..if chain.state.position == ChainPosition::Body { 3 } else { 4 });
        // Forms 0 to 3 have modulators before the `repeat`; 1, 4, 5 and 6 have some after it.
        let form = self.rng.random_range(0..7);
        let until = self.until(&inside, times);
        if form <= 3 {
            Self::end_earlier_loop(chain);
        }
        match form {
            0 => chain.push("times", [int(times)]),
            1 => chain.push("emit", []),
            2 => chain.push("until", [until.clone()]),
            3 => {
                chain.push("until", [until.clone()]);
                chain.push("emit", []);
            }
            _ => {}
        }
        chain.steps.push(Instruction::new("repeat", name.map(text).into_iter().chain([nested(body.steps)]).collect()));
        match form {
            0 | 2 | 3 => {}
            1 | 4 => chain.push("times", [int(times.max(1))]),
            5 => {
                chain.push("times", [int(times.max(1))]);
                match self.rng.random_range(0..3) {
                    0 => chain.push("emit", []),
                    1 => {
                        let label = text(self.label(&ObjectKind::Vertex));
                        chain.push("emit", [nested([step("hasLabel", [label])])]);
                    }
                    _ => {
                        let condition = self.loops_test(&inside, Comparison::Gt, 1);
                        chain.push("emit", [nested(condition)]);
                    }
                }
            }
            _ => chain.push("until", [until]),
        }
        chain.absorbs(&body.state);
        chain.spreads(ObjectKind::Vertex);
        if !body.state.history {
            chain.loses_history();
        }
        if chain.state.sack != body.state.sack {
            chain.state.sack = chain.state.sack.as_ref().map(|_| ObjectKind::Mixed);
        }
    }

    /// Adds `identity()` where a modulator that comes next, before its own `repeat`, would attach to a preceding one.
    pub fn end_earlier_loop(chain: &mut Chain) {
        let modulates = |i: &Instruction| matches!(i.name.as_str(), "repeat" | "times" | "until" | "emit");
        if !chain.steps.last().is_some_and(modulates) {
            return;
        }
        // If the preceding `repeat` has both modulators already, they attach to the next one.
        let before = chain.steps.iter().rev().take_while(|step| modulates(step));
        let names: Vec<&str> = before.map(|step| step.name.as_str()).collect();
        if !names.contains(&"emit") || !names.iter().any(|name| matches!(*name, "times" | "until")) {
            chain.push("identity", []);
        }
    }

    /// All reachable vertices, each once: `dedup` remembers across iterations. The traversal does not ask in which
    /// iteration a vertex was found first.
    fn reachable(&mut self, chain: &mut Chain) {
        let mut body =
            Chain { steps: Vec::new(), state: State { position: ChainPosition::Body, ..chain.state.clone() } };
        let is_first = self.rng.random_bool(0.3);
        if is_first {
            body.push("dedup", []);
        }
        self.neighbors(&mut body);
        match self.rng.random_range(0..6) {
            0 => self.has(&mut body),
            1 => self.neighbors(&mut body),
            2 => {
                self.neighbors(&mut body);
                self.has(&mut body);
            }
            3 => {
                let both = [nested([step("identity", [])]), nested([step("out", [text(self.edge_label())])])];
                body.push("union", both);
            }
            _ => {}
        }
        if !is_first {
            body.push("dedup", []);
        }
        let emits_first = self.rng.random_bool(0.3);
        if emits_first {
            Self::end_earlier_loop(chain);
            chain.push("emit", []);
        }
        chain.push("repeat", [nested(body.steps)]);
        if !emits_first {
            chain.push("emit", []);
        }
        if self.rng.random_bool(0.3) {
            // Traversers that pass this test leave the loop, and their vertices have no neighbors.
            let mut leaves =
                Chain { steps: Vec::new(), state: State { position: ChainPosition::Local, ..chain.state.clone() } };
            self.has(&mut leaves);
            chain.push("until", [nested(leaves.steps)]);
        }
        chain.spreads(ObjectKind::Vertex);
        chain.loses_history();
    }

    /// A body from vertices to vertices that keeps loop counters.
    fn body(&mut self, outer: &State) -> Chain {
        let state = State { position: ChainPosition::Body, ordered: false, from_vertex: false, ..outer.clone() };
        let mut body = Chain { steps: Vec::new(), state };
        self.neighbors(&mut body);
        if self.rng.random_bool(0.5) {
            self.sack(&mut body);
        }
        if body.state.kind != ObjectKind::Vertex {
            body.steps.pop();
            body.state.kind = ObjectKind::Vertex;
        }
        match self.rng.random_range(0..12) {
            0 | 1 => self.has(&mut body),
            2 => self.path_filter(&mut body),
            3 | 4 => {
                self.depth += 1;
                if self.depth < self.options.depth_max {
                    self.where_child(&mut body);
                }
                self.depth -= 1;
            }
            5 => self.fork(&mut body),
            6 => {
                let condition = self.loops_test(outer, Comparison::Lt, 2);
                body.push("filter", [nested(condition)]);
            }
            // A loop in a loop in a loop reaches too many vertices.
            7 | 8 if outer.position != ChainPosition::Body => {
                self.depth += 1;
                self.repeat(&mut body);
                self.depth -= 1;
            }
            9 | 10 => self.grow_body(&mut body),
            _ => {}
        }
        body
    }

    /// A body of any steps that return to vertices.
    fn grow_body(&mut self, body: &mut Chain) {
        for _ in 0..self.rng.random_range(1..4) {
            let before = body.clone();
            self.depth += 1;
            self.grow(body, 1);
            self.depth -= 1;
            if body.state.kind != ObjectKind::Vertex || body.state.ended {
                *body = before;
            }
        }
    }

    /// A branching step whose branches lead from vertices to vertices.
    fn fork(&mut self, body: &mut Chain) {
        let (a, b, label) = (text(self.edge_label()), text(self.edge_label()), text(self.label(&ObjectKind::Vertex)));
        let (out, back) = (nested([step("out", [a])]), nested([step("in", [b])]));
        match self.rng.random_range(0..5) {
            0 => body.push("choose", [nested([step("hasLabel", [label])]), out, back]),
            1 => body.push("coalesce", [out, back]),
            2 => body.push("optional", [out]),
            3 => body.push("local", [out]),
            _ => body.push("union", [out, back]),
        }
    }

    /// Compares a counter of an enclosing loop with a number.
    fn loops_test(&mut self, inside: &State, comparison: Comparison, count: i32) -> Vec<Instruction> {
        let name = inside.loops.choose(&mut self.rng).filter(|_| self.rng.random_bool(0.6));
        let loops = Instruction::new("loops", name.map(|name| text(name)).into_iter().collect());
        vec![loops, step("is", [compare(comparison, count)])]
    }

    /// The condition of an `until`, which holds after `times` iterations at the latest.
    fn until(&mut self, inside: &State, times: i32) -> Argument {
        // The loop compares its own counter, as it might not end otherwise.
        let mut loops = vec![step("loops", []), step("is", [compare(Comparison::Gte, times)])];
        if self.rng.random_bool(0.3) {
            return nested(loops);
        }
        if self.rng.random_bool(0.2) {
            let others = self.loops_test(inside, Comparison::Gte, times);
            return nested([step("or", [nested(loops), nested(others)])]);
        }
        let mut condition =
            Chain { steps: Vec::new(), state: State { position: ChainPosition::Local, ..inside.clone() } };
        let tests: [fn(&mut Self, &mut Chain); 2] = [Self::has, Self::neighbors];
        tests.choose(&mut self.rng).expect("not empty")(self, &mut condition);
        loops = vec![step("or", [nested(loops), nested(condition.steps)])];
        nested(loops)
    }
}
