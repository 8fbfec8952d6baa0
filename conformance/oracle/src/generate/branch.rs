//! Steps whose children return results: `union`, `coalesce`, `choose`, `optional`, `local` ….

use mangrove_graph::Token;
use mangrove_gremlin::{Argument, Instruction, Pick};
use rand::Rng;

use super::chain::{Chain, ChainPosition, Generator, State};
use super::schema::{ObjectKind, value};
use crate::script::{nested, step, text, token};

/// The kind of a stream into which several children send.
fn common(kinds: &[ObjectKind]) -> ObjectKind {
    match kinds.split_first() {
        Some((first, rest)) if rest.iter().all(|k| k == first) => first.clone(),
        _ if kinds.iter().all(|k| k.is_homogeneous() || *k == ObjectKind::Mixed) => ObjectKind::Mixed,
        _ => ObjectKind::Opaque,
    }
}

/// In a branch that no traverser enters, the result of a reduction is an accident of the reference implementation. So
/// is how a cut or a `dedup` in a branch counts merged traversers.
fn without_gathering(outer: &State) -> State {
    State { may_gather: false, ..outer.clone() }
}

/// The oracle marks an entry of a map on its traverser, and these steps make new traversers.
fn forget_entries(chain: &mut Chain) {
    if matches!(chain.state.kind, ObjectKind::Entry(..)) {
        chain.state.kind = ObjectKind::Opaque;
    }
}

impl Generator {
    /// Steps whose child's path becomes a part of the outer path.
    fn merge(chain: &mut Chain, children: &[State], passes_through: bool) {
        let mut kinds: Vec<ObjectKind> = children.iter().map(|c| c.kind.clone()).collect();
        if passes_through {
            kinds.push(chain.state.kind.clone());
        }
        for child in children {
            chain.absorbs(child);
        }
        let mut sacks = children.iter().map(|c| c.sack.clone()).collect::<Vec<_>>();
        if passes_through {
            sacks.push(chain.state.sack.clone());
        }
        chain.spreads(common(&kinds));
        if children.iter().any(|c| !c.history) {
            chain.loses_history();
        }
        if sacks.windows(2).any(|pair| pair[0] != pair[1]) {
            chain.state.sack = if sacks.contains(&None) { None } else { Some(ObjectKind::Mixed) };
        } else {
            chain.state.sack = sacks.into_iter().next().flatten();
        }
    }

    fn children(&mut self, outer: &State, position: ChainPosition, count: usize) -> (Vec<Argument>, Vec<State>) {
        let made = (0..count).map(|_| {
            let length = self.rng.random_range(1..3);
            let child = self.child(outer, position, length);
            (nested(child.steps), child.state)
        });
        made.unzip()
    }

    pub fn union(&mut self, chain: &mut Chain) {
        let count = self.rng.random_range(1..4);
        let (arguments, states) = self.children(&chain.state, ChainPosition::Global, count);
        chain.steps.push(Instruction::new("union", arguments));
        Self::merge(chain, &states, false);
    }

    pub fn coalesce(&mut self, chain: &mut Chain) {
        let (arguments, states) = self.children(&chain.state, ChainPosition::Local, 2);
        chain.steps.push(Instruction::new("coalesce", arguments));
        let (history, labels, sack) = (chain.state.history, chain.state.labels.clone(), chain.state.sack.clone());
        Self::merge(chain, &states, false);
        // Only the result of the child is added to the path, not the child's own path.
        (chain.state.history, chain.state.labels, chain.state.sack) = (history, labels, sack);
        forget_entries(chain);
    }

    pub fn optional(&mut self, chain: &mut Chain) {
        let outer = without_gathering(&chain.state);
        let (arguments, states) = self.children(&outer, ChainPosition::Local, 1);
        chain.steps.push(Instruction::new("optional", arguments));
        Self::merge(chain, &states, true);
    }

    /// `optional` of a single hop, which has no scope in plans; now and then with a label, and counted.
    pub fn optional_hop(&mut self, chain: &mut Chain) {
        if chain.state.kind != ObjectKind::Vertex {
            return;
        }
        let outer = without_gathering(&chain.state);
        let state = State { position: ChainPosition::Local, ordered: true, clustered: true, ..outer };
        let mut child = Chain { steps: Vec::new(), state };
        match self.rng.random_bool(0.8) {
            true => self.neighbors(&mut child),
            false => self.incident(&mut child),
        }
        // A label of a vertex before the hop stands for its end as well, where there is one.
        let labels = chain.state.labels.iter().filter(|(_, kind)| chain.state.history && *kind == child.state.kind);
        let labels: Vec<&str> = labels.map(|(label, _)| *label).collect();
        if !labels.is_empty() && self.rng.random_bool(0.4) {
            child.push("as", [text(labels[self.rng.random_range(0..labels.len())])]);
        }
        chain.push("optional", [nested(child.steps)]);
        Self::merge(chain, &[child.state], true);
        if self.rng.random_bool(0.3) {
            self.reduce(chain);
        }
    }

    pub fn local_or_flat_map(&mut self, chain: &mut Chain) {
        let (arguments, states) = self.children(&chain.state, ChainPosition::Local, 1);
        if self.rng.random_bool(0.5) {
            chain.steps.push(Instruction::new("local", arguments));
            Self::merge(chain, &states, false);
        } else {
            chain.steps.push(Instruction::new("flatMap", arguments));
            chain.absorbs(&states[0]);
            chain.spreads(states[0].kind.clone());
            forget_entries(chain);
        }
    }

    pub fn map_child(&mut self, chain: &mut Chain) {
        let (steps, kind) = self.single(&chain.state.kind.clone());
        chain.push("map", [nested(steps)]);
        chain.becomes(kind);
    }

    pub fn side_effect(&mut self, chain: &mut Chain) {
        let child = self.child(&chain.state, ChainPosition::Local, 2);
        chain.push("sideEffect", [nested(child.steps)]);
    }

    /// `choose(test, yes[, no])`.
    pub fn choose(&mut self, chain: &mut Chain) {
        let test = nested(self.child(&chain.state, ChainPosition::Local, 1).steps);
        let has_else = self.rng.random_bool(0.7);
        let outer = without_gathering(&chain.state);
        let (branches, states) = self.children(&outer, ChainPosition::Global, if has_else { 2 } else { 1 });
        let arguments = std::iter::once(test).chain(branches).collect();
        chain.steps.push(Instruction::new("choose", arguments));
        Self::merge(chain, &states, !has_else);
    }

    /// `choose(f).option(…)`.
    pub fn choose_option(&mut self, chain: &mut Chain) {
        let (f, kind) = self.single(&chain.state.kind.clone());
        if !kind.is_homogeneous() {
            return;
        }
        let outer = without_gathering(&chain.state);
        let (branches, states) = self.children(&outer, ChainPosition::Global, 2);
        chain.push("choose", [nested(f)]);
        let mut branches = branches.into_iter();
        if let Some(branch) = branches.next() {
            let test = self.test(&kind);
            chain.push("option", [test, branch]);
        }
        if let Some(branch) = branches.next() {
            if self.rng.random_bool(0.5) {
                chain.push("option", [Argument::Pick(Pick::None), branch]);
            } else {
                chain.push("option", [Argument::Pick(Pick::Unproductive), branch]);
            }
        }
        Self::merge(chain, &states, true);
    }

    /// `branch(f)` and `choose(f)` with an `f` that returns several values, or none: the first value counts.
    fn branch_on_first(&mut self, chain: &mut Chain) {
        let (f, kind) = match chain.state.kind.clone() {
            ObjectKind::Vertex => {
                let key = self.multi_key();
                (vec![step("values", [text(key.name)])], key.kind.clone())
            }
            ObjectKind::List(inner) if inner.is_homogeneous() && !chain.state.lists_unordered => {
                (vec![step("unfold", [])], *inner)
            }
            kind if kind.is_homogeneous() => {
                let other = Argument::Value(value(&mut self.rng, &kind));
                let both = [nested([step("identity", [])]), nested([step("constant", [other])])];
                (vec![step("union", both)], kind)
            }
            _ => return,
        };
        let outer = without_gathering(&chain.state);
        let (branches, states) = self.children(&outer, ChainPosition::Global, 3);
        let is_branch = self.rng.random_bool(0.6);
        chain.push(if is_branch { "branch" } else { "choose" }, [nested(f)]);
        for (at, branch) in branches.into_iter().enumerate() {
            let last = match self.rng.random_range(0..3) {
                0 if is_branch => Argument::Pick(Pick::Any),
                1 => Argument::Pick(Pick::Unproductive),
                _ => Argument::Pick(Pick::None),
            };
            let test = if at < 2 { self.test(&kind) } else { last };
            chain.push("option", [test, branch]);
        }
        Self::merge(chain, &states, true);
    }

    /// `branch(f).option(…)`, with an `f` that returns one value for each traverser.
    pub fn branch(&mut self, chain: &mut Chain) {
        if self.rng.random_bool(0.4) {
            return self.branch_on_first(chain);
        }
        if !chain.state.kind.is_element() {
            return;
        }
        let outer = without_gathering(&chain.state);
        let (branches, states) = self.children(&outer, ChainPosition::Global, 3);
        chain.push(
            "branch",
            // The grammar of the reference implementation takes no token here.
            [if self.rng.random_bool(0.05) { token(Token::Label) } else { nested([step("label", [])]) }],
        );
        let label = text(self.label(&chain.state.kind));
        let without_test = self.rng.random_bool(0.2);
        for (test, branch) in [label, Argument::Pick(Pick::Any), Argument::Pick(Pick::None)].into_iter().zip(branches) {
            match test {
                // Means the same as `any`.
                Argument::Pick(Pick::Any) if without_test => chain.push("option", [branch]),
                test => chain.push("option", [test, branch]),
            }
        }
        Self::merge(chain, &states, false);
    }
}
