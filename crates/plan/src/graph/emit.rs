//! From an order of a query graph to steps.
//!
//! | move | steps |
//! |---|---|
//! | the beginning | `V()` with all conditions of the variable; of a segment, `has()`, or `identity()` if that must give a name |
//! | a hop | `out()` or its reverse, and `has()` with the conditions of its end |
//! | a hop over edges with conditions | `outE().has().inV()` or its reverse, as in `edges.rs`, and `has()` |
//! | an edge between two bound variables | `out().where(eq('b'))` |
//! | a test | the test |
//! | a join | [`Step::Join`] of the steps so far and those of the other walk |
//!
//! Before a move, `select()` goes back to the variable that it begins at, if rows are not there. Variables keep their
//! names; others get one. Names that nothing reads cost nothing: no row keeps them.

use std::ops::Range;

use mangrove_graph::FastSet;
use mangrove_gremlin::{Comparison, Position};

use super::progress::Progress;
use super::{Move, Order, QueryGraph, Set, TestKind, Variable, edges};
use crate::logical::{LabelTest, Lookup, Name, Step, StepNode, Traversal};

/// The traversal with the steps of the graph, which are at these positions, in an order.
pub(super) fn emit(graph: &QueryGraph, order: &Order, traversal: &Traversal, of_graph: Range<usize>) -> Traversal {
    let (before, rest) = (&traversal.steps[..of_graph.start], &traversal.steps[of_graph.end..]);
    let names = names(graph, traversal);
    let mut emission = Emission::of(graph, &names, order);
    if let Some(sink) = graph.sink {
        emission.go_to(sink, None);
    }
    let steps = before.iter().cloned().chain(emission.steps).chain(rest.iter().cloned()).collect();
    let mut traversal = Traversal { steps };
    let begins = of_graph.start;
    if traversal.steps[begins].step == Step::Identity && !is_read(&traversal.steps[begins].labels, &traversal) {
        traversal.steps.remove(begins);
    }
    traversal
}

/// Returns true if a step reads one of the names.
fn is_read(names: &[Name], traversal: &Traversal) -> bool {
    traversal.any(|step| step.traits().names_read.iter().any(|name| names.contains(name)))
}

/// A name for each variable: one that steps read, if there is one.
fn names(graph: &QueryGraph, traversal: &Traversal) -> Vec<Name> {
    let mut taken = FastSet::default();
    let mut read = FastSet::default();
    traversal.visit(&mut |node| {
        taken.extend(node.labels.iter().cloned());
        let names = node.step.traits().names_read;
        read.extend(names.into_iter().cloned());
    });
    taken.extend(read.iter().cloned());
    let mut fresh = (1..).map(|number| Name::from(format!("?{number}"))).filter(|name| !taken.contains(name));
    let name = |variable: &Variable| {
        let known = variable.names.iter().find(|name| read.contains(*name)).or(variable.names.first());
        known.cloned().or_else(|| fresh.next()).unwrap_or_default()
    };
    graph.variables.iter().map(name).collect()
}

struct Emission<'a> {
    graph: &'a QueryGraph,
    names: &'a [Name],
    steps: Vec<StepNode>,
    current: usize,
}

impl<'a> Emission<'a> {
    /// The steps of an order.
    fn of(graph: &'a QueryGraph, names: &'a [Name], order: &Order) -> Self {
        let mut emission = Emission { graph, names, steps: Vec::new(), current: order.start };
        emission.begin();
        // Of a join, the variables that both walks have are all that is needed.
        let mut progress = Progress::begin(graph, order.start);
        for next in &order.moves {
            if let Move::Join { walk, at } = *next {
                let other = &order.joined[walk];
                let others = Progress::of(graph, other);
                emission.join(Emission::of(graph, names, other), at, progress.shared(&others));
                progress.join(others, at);
            } else {
                emission.make(*next);
                progress.make(*next);
            }
        }
        emission
    }

    /// Joins the steps of another walk at a variable. Both walks have the variables of `shared`.
    fn join(&mut self, mut other: Self, at: usize, shared: Set) {
        for walk in [&mut *self, &mut other] {
            walk.go_to(at, None);
        }
        let is_shared = |variable: &usize| *variable != at && shared & 1 << *variable != 0;
        let names = (0..self.names.len()).filter(is_shared).map(|variable| self.names[variable].clone()).collect();
        let walks = [std::mem::take(&mut self.steps), other.steps].map(|steps| Traversal { steps });
        self.push(Step::Join { walks: Box::new(walks), names }, None);
    }

    fn begin(&mut self) {
        let Variable { ids, conditions, position, .. } = &self.graph.variables[self.current];
        if let Some(entry) = &self.graph.entry {
            let step = if conditions.is_empty() { Step::Identity } else { Step::Has(conditions.clone()) };
            self.push(step, *position);
            self.name(self.current);
            // Rows have these names when they enter.
            let given = |name: &Name| entry.names.contains(name);
            self.steps.iter_mut().for_each(|node| node.labels.retain(|name| !given(name)));
            return;
        }
        let source = Step::Vertices { ids: ids.clone(), conditions: conditions.clone() };
        self.push(source, *position);
        self.name(self.current);
    }

    fn push(&mut self, step: Step, position: Option<Position>) {
        self.steps.push(StepNode::new(step, position));
    }

    /// Gives the last step the names of a variable.
    fn name(&mut self, variable: usize) {
        let Some(last) = self.steps.last_mut() else { return };
        last.labels.clone_from(&self.graph.variables[variable].names);
        if last.labels.is_empty() {
            last.labels.push(self.names[variable].clone());
        }
    }

    fn go_to(&mut self, variable: usize, position: Option<Position>) {
        if self.current != variable {
            let labels = vec![self.names[variable].clone()];
            self.push(Step::Select { lookup: Lookup::Path, labels, by: Vec::new(), required: true }, position);
            self.current = variable;
        }
    }

    /// Compares the object with a variable.
    fn compare(&mut self, comparison: Comparison, with: usize, position: Option<Position>) {
        let test = LabelTest::Compare(comparison, self.names[with].clone());
        self.push(Step::WherePredicate { start: None, test, by: Vec::new(), lookup: Lookup::Path }, position);
    }

    fn make(&mut self, step: Move) {
        match step {
            Move::Hop { atom, from } => {
                let to = self.follow(atom, from);
                let Variable { conditions, position, .. } = &self.graph.variables[to];
                if !conditions.is_empty() {
                    self.push(Step::Has(conditions.clone()), *position);
                }
                self.name(to);
            }
            Move::Close { atom, from } => {
                let to = self.follow(atom, from);
                self.compare(Comparison::Eq, to, self.graph.atoms[atom].position);
            }
            Move::Test(test) => {
                let test = &self.graph.tests[test];
                match &test.kind {
                    TestKind::Differ(a, b) => {
                        let (of, with) = if self.current == *b { (*b, *a) } else { (*a, *b) };
                        self.go_to(of, test.position);
                        self.compare(Comparison::Neq, with, test.position);
                    }
                    TestKind::Step(step, of) => {
                        of.iter().for_each(|of| self.go_to(*of, test.position));
                        self.push(step.clone(), test.position);
                    }
                }
            }
            Move::Join { at, .. } => self.go_to(at, None),
        }
    }

    /// Follows an atom. Returns the variable at its other end.
    fn follow(&mut self, atom: usize, from: usize) -> usize {
        let atom = &self.graph.atoms[atom];
        self.go_to(from, atom.position);
        let (direction, labels) = (atom.direction_from(from), &atom.labels);
        match atom.conditions.is_empty() {
            true => {
                self.push(Step::Expand { direction, labels: labels.clone(), to_edges: false }, atom.position);
            }
            false => self.steps.extend(edges::write(direction, labels, &atom.conditions, atom.position)),
        }
        self.current = atom.other(from);
        self.current
    }
}
