//! How far an order has come, and what can be done next.

use super::{Move, Order, QueryGraph, Set, TestKind};

/// How far an order has come.
#[derive(Clone, Copy)]
pub(super) struct Progress<'g> {
    pub graph: &'g QueryGraph,
    /// The variables that are bound.
    pub bound: Set,
    /// The atoms that were followed.
    pub atoms: Set,
    /// The tests that were made.
    pub tests: Set,
    /// The variable that rows are at.
    pub current: usize,
    /// True if rows went back to a variable, or were compared with one: it needs a name.
    pub reads_names: bool,
}

impl<'g> Progress<'g> {
    /// Begins at a variable.
    pub fn begin(graph: &'g QueryGraph, start: usize) -> Self {
        Progress { graph, bound: 1 << start, atoms: 0, tests: 0, current: start, reads_names: false }
    }

    /// The progress at the end of an order.
    pub fn of(graph: &'g QueryGraph, order: &Order) -> Self {
        let mut progress = Progress::begin(graph, order.start);
        for next in &order.moves {
            match *next {
                Move::Join { walk, at } => progress.join(Progress::of(graph, &order.joined[walk]), at),
                next => _ = progress.make(next),
            }
        }
        progress
    }

    /// The variables that this and another walk have.
    pub fn shared(&self, other: &Self) -> Set {
        self.bound & other.bound
    }

    /// Joins the rows of another walk, at a variable that both have.
    pub fn join(&mut self, mut other: Self, at: usize) {
        other.go_to(at);
        self.go_to(at);
        // Rows of one walk are compared with those of the other, and they keep the objects of both.
        self.reads_names |= other.reads_names || self.shared(&other).count_ones() > 1;
        self.bound |= other.bound;
        self.atoms |= other.atoms;
        self.tests |= other.tests;
    }

    pub fn is_bound(&self, variable: usize) -> bool {
        self.bound & 1 << variable != 0
    }

    /// Makes a move other than a join. Returns true if rows go back to a variable for it, with `select()`.
    pub fn make(&mut self, next: Move) -> bool {
        match next {
            Move::Hop { atom, from } => {
                let goes_back = self.go_to(from);
                let to = self.graph.atoms[atom].other(from);
                self.bound |= 1 << to;
                self.atoms |= 1 << atom;
                self.current = to;
                goes_back
            }
            Move::Close { atom, from } => {
                let goes_back = self.go_to(from);
                self.atoms |= 1 << atom;
                self.current = self.graph.atoms[atom].other(from);
                self.reads_names = true;
                goes_back
            }
            Move::Test(test) => {
                self.tests |= 1 << test;
                let of = match self.graph.tests[test].kind {
                    TestKind::Differ(a, b) => {
                        self.reads_names = true;
                        Some(if self.current == b { b } else { a })
                    }
                    TestKind::Step(_, of) => of,
                };
                of.is_some_and(|of| self.go_to(of))
            }
            Move::Join { at, .. } => self.go_to(at),
        }
    }

    /// Goes back to a variable. Returns false if rows are there.
    pub fn go_to(&mut self, variable: usize) -> bool {
        let goes_back = self.current != variable;
        self.current = variable;
        self.reads_names |= goes_back;
        goes_back
    }

    /// The hops that can be made next.
    pub fn hops(&self) -> impl Iterator<Item = Move> + use<'g> {
        let Progress { graph, bound, atoms, current, .. } = *self;
        let is_bound = move |variable: usize| bound & 1 << variable != 0;
        let left = graph.atoms.iter().enumerate().filter(move |(atom, _)| atoms & 1 << atom == 0);
        left.filter_map(move |(atom, ends)| match (is_bound(ends.from), is_bound(ends.to)) {
            // The rows stay where they are, if they are at an end.
            (true, true) => Some(Move::Close { atom, from: if ends.to == current { ends.to } else { ends.from } }),
            // Rows begin at ids, or at what enters. No condition says which vertices they are.
            (true, false) if graph.is_pinned(ends.to) => None,
            (false, true) if graph.is_pinned(ends.from) => None,
            (true, false) => Some(Move::Hop { atom, from: ends.from }),
            (false, true) => Some(Move::Hop { atom, from: ends.to }),
            (false, false) => None,
        })
    }

    /// The tests that can be made next: their variables are bound.
    pub fn tests(&self) -> impl Iterator<Item = Move> + use<'g> {
        let Progress { graph, bound, tests, .. } = *self;
        let ready = graph.tests.iter().enumerate();
        ready.filter(move |(at, test)| tests & 1 << at == 0 && test.reads & !bound == 0).map(|(at, _)| Move::Test(at))
    }
}

/// An order that is being built.
pub(super) struct Building<'g> {
    pub progress: Progress<'g>,
    pub order: Order,
}

impl<'g> Building<'g> {
    pub fn begin(graph: &'g QueryGraph, start: usize) -> Self {
        let order = Order { start, moves: Vec::new(), joined: Vec::new() };
        Building { progress: Progress::begin(graph, start), order }
    }

    /// Joins another walk, at a variable that both have.
    pub fn join(&mut self, other: Building<'g>, at: usize) {
        self.progress.join(other.progress, at);
        self.order.moves.push(Move::Join { walk: self.order.joined.len(), at });
        self.order.joined.push(other.order);
    }

    pub fn make(&mut self, next: Move) {
        self.progress.make(next);
        self.order.moves.push(next);
    }

    /// Makes the tests whose variables are bound.
    pub fn make_tests(&mut self) {
        while let Some(test) = self.progress.tests().next() {
            self.make(test);
        }
    }
}
