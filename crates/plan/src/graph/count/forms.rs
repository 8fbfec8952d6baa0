//! The ways in which a tree may be weighed: which variable is the root, and how comparisons are worked into its weight.
//!
//! | comparisons | form |
//! |---|---|
//! | none | any variable is the root |
//! | two variables differ, with one between them | that one is the root; its neighbors are paired |
//! | two variables differ or an edge closes the walk between them, with one between them | one of the two is the root; two hops lead to the other |
//! | as the last, and the end differs from a neighbor of the root | the same |
//!
//! A pattern with other comparisons has no form.

use super::super::{Atom, Set};
use super::read::{Closing, Pattern};
use crate::connections::{KnownConnections, VertexSets};
use crate::logical::{Condition, Name};
use crate::physical::{
    CountOf, EdgesOf, Factor, FactorForm, Leg, Pairing, PatternCount, Pipeline, WalkPairing, Weighing,
};

/// A way to weigh a pattern.
pub(super) struct Form {
    pub count: PatternCount,
    /// The variable of each weighing, and that of the root.
    pub variables: Vec<usize>,
    pub root: usize,
    /// The atoms of a walk of two hops from the root.
    pub hops: [usize; 2],
    /// The tests of labels that are left out, each with the edges that lead to nothing else (PLAN-13).
    pub relied: Vec<(EdgesOf, Vec<Name>)>,
}

/// All forms of a pattern. They may rely on facts about edges. If the matches of each vertex of a variable are counted, that one is the root.
pub(super) fn forms(pattern: &Pattern, connections: Option<&KnownConnections>) -> Vec<Form> {
    if has_no_comparisons(pattern) {
        return rooted(pattern, connections, &roots(pattern));
    }
    let mut forms = compared(pattern, connections);
    forms.retain(|form| pattern.of == CountOf::AllMatches || pattern.graph.sink == Some(form.root));
    forms
}

/// Returns true if nothing but hops and conditions make the pattern, so that each of [`roots`] has a form.
pub(super) fn has_no_comparisons(pattern: &Pattern) -> bool {
    pattern.differ.is_empty() && pattern.closings.is_empty()
}

/// The forms of a pattern without comparisons at these roots.
pub(super) fn rooted(pattern: &Pattern, connections: Option<&KnownConnections>, roots: &[usize]) -> Vec<Form> {
    roots.iter().filter_map(|root| Weigher::new(pattern, connections).alone(*root)).collect()
}

fn compared(pattern: &Pattern, connections: Option<&KnownConnections>) -> Vec<Form> {
    match (&pattern.differ[..], &pattern.closings[..]) {
        ([(a, b)], []) => {
            let mut forms: Vec<Form> = pairs(pattern, connections, *a, *b).into_iter().collect();
            for (root, end) in [(*a, *b), (*b, *a)] {
                forms.extend(walk(pattern, connections, root, end, None));
                // The root is between the two: one of them is its neighbor.
                for at in atoms_of(pattern, root) {
                    forms.extend(walk(pattern, connections, pattern.graph.atoms[at].other(root), end, None));
                }
            }
            forms
        }
        (_, [closing]) => {
            let Closing { from, to, edges, .. } = closing;
            let reversed = EdgesOf { direction: edges.direction.reverse(), labels: edges.labels.clone() };
            let ways = [(*from, *to, edges.clone()), (*to, *from, reversed)];
            ways.into_iter()
                .filter_map(|(root, end, e)| walk(pattern, connections, root, end, Some((e, closing.is_there))))
                .collect()
        }
        _ => Vec::new(),
    }
}

/// The variables that may be the root: all but the ends of optional hops. If the matches of each vertex of a variable are
/// counted, that one.
pub(super) fn roots(pattern: &Pattern) -> Vec<usize> {
    let is_optional = |variable: &usize| {
        pattern.graph.atoms.iter().enumerate().any(|(at, atom)| pattern.optional & 1 << at != 0 && atom.to == *variable)
    };
    let may_be = |variable: &usize| {
        !is_optional(variable) && (pattern.of == CountOf::AllMatches || pattern.graph.sink == Some(*variable))
    };
    (0..pattern.graph.variables.len()).filter(may_be).collect()
}

/// The atoms of a variable.
fn atoms_of(pattern: &Pattern, variable: usize) -> impl Iterator<Item = usize> + '_ {
    let touches = move |atom: &Atom| atom.from == variable || atom.to == variable;
    (0..pattern.graph.atoms.len()).filter(move |&at| touches(&pattern.graph.atoms[at]))
}

/// The atoms between two variables that have one variable between them, which must be followed, and that variable.
fn two_hops(pattern: &Pattern, from: usize, to: usize) -> Option<(usize, usize, usize)> {
    let is_followed = |at: &usize| pattern.optional & 1 << at == 0;
    for first in atoms_of(pattern, from).filter(is_followed) {
        let middle = pattern.graph.atoms[first].other(from);
        let leads = |at: &usize| *at != first && pattern.graph.atoms[*at].other(middle) == to;
        if let Some(second) = atoms_of(pattern, middle).filter(is_followed).find(leads) {
            return Some((first, middle, second));
        }
    }
    None
}

/// Returns true if all these edges of a variable lead to vertices with one of these labels.
fn edges_lead_to(
    pattern: &Pattern,
    connections: &KnownConnections,
    from: usize,
    edges: &EdgesOf,
    labels: &[Name],
) -> bool {
    let mut sets = VertexSets::any();
    for condition in &pattern.graph.variables[from].conditions {
        if let Condition::LabelIn(labels) = condition {
            sets = connections.narrowed(&sets, labels);
        }
    }
    connections.all_pass(&connections.ends(&sets, edges.direction, &edges.labels), labels)
}

/// The variables with one atom, of which nothing but a label is asked that all edges of the atom prove.
pub(super) fn proven_leaves(pattern: &Pattern, connections: Option<&KnownConnections>) -> Set {
    let Some(connections) = connections else { return 0 };
    let is_proven = |variable: &usize| {
        let [Condition::LabelIn(labels)] = &pattern.graph.variables[*variable].conditions[..] else { return false };
        let mut atoms = atoms_of(pattern, *variable);
        let (Some(atom), None) = (atoms.next(), atoms.next()) else { return false };
        let atom = &pattern.graph.atoms[atom];
        let from = atom.other(*variable);
        pattern.tests.iter().all(|(of, ..)| of != variable)
            && edges_lead_to(pattern, connections, from, &edges_of(atom, from), labels)
    };
    (0..pattern.graph.variables.len()).filter(is_proven).fold(0, |set, variable| set | 1 << variable)
}

/// The form in which two neighbors of the root differ.
fn pairs(pattern: &Pattern, connections: Option<&KnownConnections>, a: usize, b: usize) -> Option<Form> {
    let (first, root, second) = two_hops(pattern, a, b)?;
    let mut weigher = Weigher::new(pattern, connections);
    let legs = [weigher.leg(first, root), weigher.leg(second, root)];
    let mut weighing = weigher.weighing(root, 1 << first | 1 << second);
    for leg in &legs {
        weighing.factors.push(leg.as_factor());
    }
    let [first, second] = legs;
    Some(weigher.form(root, weighing, Some(Pairing::Neighbors { first, second })))
}

/// The form in which two hops lead from a root to an end that is compared.
fn walk(
    pattern: &Pattern,
    connections: Option<&KnownConnections>,
    root: usize,
    end: usize,
    closing: Option<(EdgesOf, bool)>,
) -> Option<Form> {
    let (first, middle, second) = two_hops(pattern, root, end)?;
    let (mut differs, mut sibling) = (false, None);
    for &(a, b) in &pattern.differ {
        let other = if a == end { b } else { a };
        if a != end && b != end || a == b {
            return None;
        }
        if other == root {
            differs = true;
            continue;
        }
        let is_neighbor = |at: &usize| pattern.graph.atoms[*at].other(root) == other && pattern.optional & 1 << at == 0;
        let atom = atoms_of(pattern, root).filter(|at| *at != first).find(is_neighbor)?;
        if sibling.replace(atom).is_some_and(|known| known != atom) {
            return None;
        }
    }
    if !differs && sibling.is_none() && closing.is_none() {
        return None;
    }
    let atom = |at: usize, from: usize| edges_of(&pattern.graph.atoms[at], from);
    let mut weigher = Weigher::new(pattern, connections);
    let mut ends = weigher.weighing(end, 1 << second);
    if ends.is_any() {
        ends.factors.push(Factor { edges: atom(second, end), ends: None, form: FactorForm::Some });
    }
    let ends = weigher.push(end, ends);
    let mut between = weigher.weighing(middle, 1 << first | 1 << second);
    between.factors.push(Factor { edges: atom(second, middle), ends: Some(ends), form: FactorForm::Some });
    let middle_weights = weigher.push(middle, between);
    let sibling_leg = sibling.map(|at| weigher.leg(at, root));
    let mut weighing = weigher.weighing(root, 1 << first | sibling.map_or(0, |at| 1 << at));
    weighing.factors.extend(sibling_leg.as_ref().map(Leg::as_factor));
    weighing.factors.push(Factor { edges: atom(first, root), ends: Some(middle_weights), form: FactorForm::Some });
    let walk = WalkPairing {
        first: atom(first, root),
        middle: middle_weights,
        second: atom(second, middle),
        ends,
        closing,
        differs,
        sibling: sibling_leg,
    };
    Some(Form { hops: [first, second], ..weigher.form(root, weighing, Some(Pairing::Walk(Box::new(walk)))) })
}

fn edges_of(atom: &Atom, from: usize) -> EdgesOf {
    EdgesOf { direction: atom.direction_from(from), labels: atom.labels.clone() }
}

impl Leg {
    /// The factor by which only vertices are left that have such an edge.
    fn as_factor(&self) -> Factor {
        Factor { edges: self.edges.clone(), ends: self.ends, form: FactorForm::Some }
    }
}

impl Weighing {
    /// Returns true if all vertices have the weight 1.
    fn is_any(&self) -> bool {
        self.labels.is_none() && self.conditions.is_empty() && self.factors.is_empty()
    }
}

/// Weighs variables, the leaves first.
struct Weigher<'a> {
    pattern: &'a Pattern,
    connections: Option<&'a KnownConnections>,
    weighings: Vec<Weighing>,
    variables: Vec<usize>,
    relied: Vec<(EdgesOf, Vec<Name>)>,
}

impl<'a> Weigher<'a> {
    fn new(pattern: &'a Pattern, connections: Option<&'a KnownConnections>) -> Self {
        Weigher { pattern, connections, weighings: Vec::new(), variables: Vec::new(), relied: Vec::new() }
    }

    fn push(&mut self, variable: usize, weighing: Weighing) -> usize {
        self.weighings.push(weighing);
        self.variables.push(variable);
        self.weighings.len() - 1
    }

    /// How a variable is weighed, with all that hangs on it, except along some atoms.
    fn weighing(&mut self, variable: usize, without: Set) -> Weighing {
        let pattern = self.pattern;
        let mut weighing = Weighing::default();
        for condition in &pattern.graph.variables[variable].conditions {
            match condition {
                Condition::LabelIn(names) if weighing.labels.is_none() => weighing.labels = Some(names.clone()),
                condition => weighing.conditions.push(condition.clone()),
            }
        }
        for (_, edges, is_there) in pattern.tests.iter().filter(|(of, ..)| *of == variable) {
            let form = if *is_there { FactorForm::Some } else { FactorForm::None };
            weighing.factors.push(Factor { edges: edges.clone(), ends: None, form });
        }
        for at in atoms_of(pattern, variable).filter(|at| without & 1 << at == 0) {
            let Leg { edges, ends } = self.leg(at, variable);
            let form = if pattern.optional & 1 << at == 0 { FactorForm::Sum } else { FactorForm::AtLeastOne };
            weighing.factors.push(Factor { edges, ends, form });
        }
        weighing
    }

    /// The edges of an atom from one of its ends, with the weights of what hangs on the other end.
    fn leg(&mut self, at: usize, from: usize) -> Leg {
        let atom = &self.pattern.graph.atoms[at];
        let other = atom.other(from);
        let edges = edges_of(atom, from);
        let mut weighing = self.weighing(other, 1 << at);
        if self.edges_prove_labels(from, &edges, &weighing)
            && let Some(labels) = weighing.labels.take()
        {
            self.relied.push((edges.clone(), labels));
        }
        let ends = (!weighing.is_any()).then(|| self.push(other, weighing));
        Leg { edges, ends }
    }

    /// Returns true if all that is asked of the ends of a variable's edges is their labels, and all ends have them.
    fn edges_prove_labels(&self, from: usize, edges: &EdgesOf, ends: &Weighing) -> bool {
        let (Some(connections), Some(labels)) = (self.connections, &ends.labels) else { return false };
        if !ends.conditions.is_empty() || !ends.factors.is_empty() {
            // Without labels, vertices of all labels would be weighed.
            return false;
        }
        edges_lead_to(self.pattern, connections, from, edges, labels)
    }

    /// The form with a root.
    fn form(self, root: usize, weighing: Weighing, pairing: Option<Pairing>) -> Form {
        let (weighings, rows) = (self.weighings, Pipeline::default());
        let count = PatternCount { of: self.pattern.of, weighings, root: weighing, pairing, rows };
        Form { count, variables: self.variables, root, hops: [0; 2], relied: self.relied }
    }

    /// The form of a pattern without comparisons.
    fn alone(mut self, root: usize) -> Option<Form> {
        let weighing = self.weighing(root, 0);
        Some(self.form(root, weighing, None))
    }
}
