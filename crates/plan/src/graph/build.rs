//! From the first steps of a traversal to a query graph.
//!
//! | step | becomes |
//! |---|---|
//! | `V()` with ids and conditions, at the beginning | the first variable |
//! | `out` `in` `both` | an atom and a variable |
//! | `outE().has(…).inV()` and the other forms of `edges.rs` | an atom with conditions, and a variable |
//! | `has…` | conditions of the variable |
//! | `as('a')` | a name of the variable |
//! | `select('a')` | nothing: the next steps go on from the variable |
//! | `where(eq('a'))` | two variables become one |
//! | `where(neq('a'))` | a test that two variables differ |
//! | `where('a', gt('b')).by('k')` | a test of two variables |
//! | `where(…)` `not(…)` `and(…)` `or(…)` of hops, conditions and counts | a test |
//! | `match(…)` | its patterns, which are such steps |
//!
//! Any other step ends the graph. There is no graph if anything else than the bag of results could be observed
//! (PLAN-11), or if the graph has only one order.

use mangrove_graph::{Direction, FastMap, Token};
use mangrove_gremlin::Comparison;

use super::edges::{self, EdgeHop};
use super::preconditions::{Checked, Declined, is_total};
use super::{Atom, Entry, MEMBERS_MAX, QueryGraph, Set, Test, TestKind, Variable, filters};
use crate::logical::{By, Condition, EdgeEnd, LabelTest, Name, Reduction, Step, StepNode, Traversal};
use crate::physical::Requirements;

/// The graph of the first steps of a traversal, and how many steps these are; or why there is none. `most`: it has at
/// most so many steps. `checked` is about the whole traversal.
pub(super) fn build(
    traversal: &Traversal,
    most: Option<usize>,
    checked: &Checked,
) -> Result<(QueryGraph, usize), Declined> {
    if !may_have_orders(&traversal.steps) {
        return Err(None);
    }
    let needs = checked.as_ref().map_err(|reason| Some(*reason))?;
    let first = traversal.steps.first().ok_or(None)?;
    let mut builder = Builder::begin(first).ok_or(Some("its first step is about more than vertices"))?;
    let steps = most.and_then(|most| traversal.steps.get(..most)).unwrap_or(&traversal.steps);
    let end = builder.take_all(steps, 1);
    Ok((builder.graph_before(&traversal.steps[end..], needs)?, end))
}

/// A look that is enough for light traversals: returns false if the first steps have one order only.
pub(super) fn may_have_orders(steps: &[StepNode]) -> bool {
    let [StepNode { step: Step::Vertices { ids, .. }, .. }, rest @ ..] = steps else { return false };
    let (mut hops, mut tests, mut goes_back) = (0, false, false);
    let mut left = rest;
    while let Some(node) = left.first() {
        if let Some(hop) = edges::read(left) {
            hops += 1;
            left = &left[hop.steps..];
            continue;
        }
        left = &left[1..];
        match &node.step {
            Step::Expand { to_edges: false, .. } => hops += 1,
            Step::Has(conditions) => tests |= hops > 0 && conditions.iter().any(is_narrow),
            Step::Select { .. } | Step::WherePredicate { .. } => goes_back = true,
            Step::FilterTraversal(..) | Step::Identity => {}
            _ => break,
        }
    }
    match ids {
        // Ids are the best beginning.
        Some(_) => hops > 1 && goes_back,
        None => hops > 1 || hops == 1 && tests,
    }
}

/// Returns true if `holds` is true of one of the steps, or of one nested in them.
pub(super) fn any_step(steps: &[StepNode], holds: &dyn Fn(&Step) -> bool) -> bool {
    steps.iter().any(|node| {
        let mut found = holds(&node.step);
        node.step.visit_nested(&mut |_, nested| found |= nested.any(holds));
        found
    })
}

/// Returns true if the steps take only a part of the stream: which part is left open, but it would not come early.
pub(super) fn cuts_stream(rest: &[StepNode]) -> bool {
    for node in rest {
        match &node.step {
            Step::Range { .. } | Step::Tail(_) | Step::TimeLimit(_) => return true,
            Step::Reduce(_) | Step::Order(_) | Step::Group { .. } | Step::GroupCount { .. } => return false,
            _ => {}
        }
    }
    false
}

/// Returns true if the first of the steps only counts or deduplicates rows, so that equal ones are merged before hops.
pub(super) fn merges_before(rest: &[StepNode]) -> bool {
    match rest.first().map(|node| &node.step) {
        Some(Step::Reduce(reduction)) => *reduction != Reduction::Fold,
        Some(Step::Dedup { labels, by }) => labels.is_empty() && by.is_empty(),
        _ => false,
    }
}

/// Returns true if the first of the steps does not look at the object of a row.
fn ignores_object(rest: &[StepNode]) -> bool {
    match rest.first().map(|node| &node.step) {
        Some(Step::Reduce(Reduction::Count)) => true,
        // Labels are looked for in the object, too, but only if it is a map.
        Some(Step::Select { lookup, .. }) => lookup.is_newest(),
        _ => false,
    }
}

/// Returns true if a condition leaves few vertices of their label.
fn is_narrow(condition: &Condition) -> bool {
    match condition {
        Condition::Id(_) | Condition::Property(..) => true,
        Condition::AnyOf(branches) => branches.iter().all(|branch| branch.iter().any(is_narrow)),
        _ => false,
    }
}

fn narrows(variable: &Variable) -> bool {
    variable.conditions.iter().any(is_narrow)
}

/// Reads steps into a graph.
#[derive(Clone)]
pub(super) struct Builder {
    pub graph: QueryGraph,
    /// The variable that each name stands for.
    pub names: FastMap<Name, usize>,
    /// The variable that rows are at.
    pub current: usize,
    /// True if the last step is the one that the current variable comes from, or a condition of it.
    is_fresh: bool,
}

impl Builder {
    /// Begins with the first step of a traversal.
    pub fn begin(first: &StepNode) -> Option<Self> {
        let StepNode { step: Step::Vertices { ids, conditions }, labels, policy, position, .. } = first else {
            return None;
        };
        if !conditions.iter().all(is_total) || !policy.is_default() {
            return None;
        }
        let variable =
            Variable { ids: ids.clone(), conditions: conditions.clone(), names: labels.clone(), position: *position };
        let graph = QueryGraph::of(variable);
        let names = labels.iter().map(|name| (name.clone(), 0)).collect();
        Some(Builder { graph, names, current: 0, is_fresh: true })
    }

    /// Begins with rows that are at a vertex.
    pub fn at_rows(entry: Entry) -> Self {
        let names = entry.names.iter().map(|name| (name.clone(), 0)).collect();
        let variable = Variable { names: entry.names.clone(), ..Variable::default() };
        let graph = QueryGraph { entry: Some(entry), ..QueryGraph::of(variable) };
        Builder { graph, names, current: 0, is_fresh: true }
    }

    /// Takes as many steps as it can, from a position on. Returns the position after them.
    pub fn take_all(&mut self, steps: &[StepNode], from: usize) -> usize {
        let mut end = from;
        while let Some(taken) = self.take(&steps[end..]) {
            end += taken;
        }
        end
    }

    /// The graph, if these steps follow it and it has several orders.
    pub fn graph_before(self, rest: &[StepNode], needs: &Requirements) -> Result<QueryGraph, Declined> {
        if cuts_stream(rest) {
            return Err(Some("a step takes only a part of the stream"));
        }
        let reads_name = |step: &Step| step.traits().names_read.iter().any(|name| self.names.contains_key(*name));
        let reads_names = any_step(rest, &reads_name);
        let walks_later = any_step(rest, &|step| step.traits().walks);
        let Builder { mut graph, current, .. } = self;
        graph.sink = (!ignores_object(rest)).then_some(current);
        graph.reads_names = reads_names || graph.tests.iter().any(|test| test.reads.count_ones() > 1);
        graph.may_name = !needs.bindings.is_empty() || !walks_later;
        graph.merges = merges_before(rest) && !graph.has_unions();
        filters::sort(&mut graph.tests);
        let has_orders = graph.atoms.len() > 1 || graph.variables.iter().skip(1).any(narrows);
        if has_orders && graph.atoms.len() <= MEMBERS_MAX { Ok(graph) } else { Err(None) }
    }

    /// Takes the next step into the graph, or the next steps, if these are one hop. Returns how many it takes; `None` if
    /// the first does not belong there.
    pub fn take(&mut self, steps: &[StepNode]) -> Option<usize> {
        let is_full = self.graph.variables.len() == MEMBERS_MAX || self.graph.tests.len() == MEMBERS_MAX;
        let first = steps.first().filter(|_| !is_full)?;
        let taken = match edges::read(steps) {
            Some(EdgeHop { direction, labels, conditions, steps }) => {
                self.hop(direction, labels, conditions, first);
                steps
            }
            None if first.policy.is_default() && self.take_step(first) => 1,
            None => return None,
        };
        for label in &steps[taken - 1].labels {
            self.names.insert(label.clone(), self.current);
            self.graph.variables[self.current].names.push(label.clone());
        }
        Some(taken)
    }

    /// Adds an atom to a new variable, which rows are then at.
    fn hop(&mut self, direction: Direction, labels: &[Name], conditions: Vec<Condition>, node: &StepNode) {
        let (from, to, position) = (self.current, self.graph.variables.len(), node.position);
        self.graph.variables.push(Variable { position, ..Variable::default() });
        self.graph.atoms.push(Atom { from, to, direction, labels: labels.to_vec(), conditions, position });
        (self.current, self.is_fresh) = (to, true);
    }

    fn take_step(&mut self, node: &StepNode) -> bool {
        match &node.step {
            Step::Expand { direction, labels, to_edges: false } => {
                self.hop(*direction, labels, Vec::new(), node);
                true
            }
            Step::Has(conditions) if conditions.iter().all(is_total) => {
                self.graph.has_late_conditions |= !self.is_fresh;
                self.graph.variables[self.current].conditions.extend(conditions.iter().cloned());
                true
            }
            Step::Identity => true,
            step @ Step::Select { .. } => match selected(step).and_then(|name| self.names.get(name)) {
                Some(&variable) => {
                    (self.current, self.is_fresh) = (variable, false);
                    true
                }
                None => false,
            },
            Step::WherePredicate { start, test, by, .. } => self.take_comparison(node, start.as_ref(), test, by),
            Step::FilterTraversal(_, operands) => {
                if let Some((of, node)) = self.of_one_variable(node) {
                    let current = std::mem::replace(&mut self.current, of);
                    let is_taken = self.take_step(&node);
                    self.current = current;
                    return is_taken;
                }
                let mut reads: Set = 0;
                if !operands.iter().all(|operand| self.is_total(operand, Kind::Vertex, &mut reads).is_some()) {
                    return false;
                }
                let of_object = operands
                    .iter()
                    .any(|operand| operand.steps.first().is_none_or(|first| selected(&first.step).is_none()));
                self.test(node, reads, of_object);
                true
            }
            _ => false,
        }
    }

    /// A test whose operands all begin with `select(v)` of one variable is a test of that variable without the
    /// `select(v)`.
    fn of_one_variable(&self, node: &StepNode) -> Option<(usize, StepNode)> {
        let Step::FilterTraversal(kind, operands) = &node.step else { return None };
        let name_of = |operand: &Traversal| operand.steps.first().filter(|first| first.labels.is_empty()).cloned();
        let first = name_of(operands.first()?)?;
        let name = selected(&first.step)?;
        let of = *self.names.get(name)?;
        let rest = |operand: &Traversal| {
            let first = name_of(operand)?;
            (selected(&first.step)? == name).then(|| Traversal { steps: operand.steps[1..].to_vec() })
        };
        let rest: Vec<Traversal> = operands.iter().map(rest).collect::<Option<_>>()?;
        if rest.iter().any(|operand| operand.steps.is_empty()) {
            return None;
        }
        Some((of, StepNode { step: Step::FilterTraversal(*kind, rest), ..node.clone() }))
    }

    /// Takes a `where()` that compares variables.
    fn take_comparison(&mut self, node: &StepNode, start: Option<&Name>, test: &LabelTest, by: &[By]) -> bool {
        let left = match start {
            None => Some(self.current),
            Some(name) => self.names.get(name).copied(),
        };
        let right: Option<Vec<usize>> = test.names().into_iter().map(|name| self.names.get(name).copied()).collect();
        let (Some(left), Some(right), LabelTest::Compare(comparison, _)) = (left, right, test) else { return false };
        let right = right[0];
        let is_itself = by.iter().all(|by| *by == By::Identity);
        match comparison {
            Comparison::Eq if is_itself => self.unify(left, right),
            Comparison::Neq if is_itself => {
                let kind = TestKind::Differ(left, right);
                self.graph.tests.push(Test::new(kind, 1 << left | 1 << right, node.position));
            }
            _ if !by.is_empty() && by.iter().all(is_part) => self.test(node, 1 << left | 1 << right, start.is_none()),
            _ => return false,
        }
        true
    }

    /// Adds a step as a test.
    fn test(&mut self, node: &StepNode, reads: Set, of_object: bool) {
        let of = of_object.then_some(self.current);
        let reads = reads | of.map_or(0, |of| 1 << of);
        let kind = TestKind::Step(node.step.clone(), of);
        self.graph.tests.push(Test::new(kind, reads, node.position));
    }

    /// Makes two variables one.
    fn unify(&mut self, a: usize, b: usize) {
        let (kept, gone) = (a.min(b), a.max(b));
        if kept == gone {
            return;
        }
        let taken = self.graph.variables.remove(gone);
        let variable = &mut self.graph.variables[kept];
        variable.conditions.extend(taken.conditions);
        variable.names.extend(taken.names);
        let renumber = |number: &mut usize| match *number {
            number_of_gone if number_of_gone == gone => *number = kept,
            later if later > gone => *number -= 1,
            _ => {}
        };
        self.names.values_mut().for_each(renumber);
        for atom in &mut self.graph.atoms {
            renumber(&mut atom.from);
            renumber(&mut atom.to);
        }
        for test in &mut self.graph.tests {
            match &mut test.kind {
                TestKind::Differ(a, b) => {
                    renumber(a);
                    renumber(b);
                }
                TestKind::Step(_, of) => of.iter_mut().for_each(renumber),
            }
            let members = (0..MEMBERS_MAX).filter(|member| test.reads & 1 << member != 0);
            test.reads = members.fold(0, |set, mut member| {
                renumber(&mut member);
                set | 1 << member
            });
        }
        renumber(&mut self.current);
        self.is_fresh = false;
    }

    /// The kind of the results of a nested traversal, if it reads nothing but its object and variables that are named
    /// so far, and cannot fail. Adds the variables.
    fn is_total(&self, traversal: &Traversal, enters: Kind, reads: &mut Set) -> Option<Kind> {
        let mut kind = enters;
        for node in &traversal.steps {
            if !node.labels.is_empty() || !node.policy.is_default() {
                return None;
            }
            kind = match (&node.step, kind) {
                (Step::Expand { to_edges, .. }, Kind::Vertex) => {
                    if *to_edges {
                        Kind::Edge
                    } else {
                        Kind::Vertex
                    }
                }
                (Step::EdgeVertex(EdgeEnd::Source | EdgeEnd::Target | EdgeEnd::Both), Kind::Edge) => Kind::Vertex,
                (Step::Has(conditions), Kind::Vertex | Kind::Edge) if conditions.iter().all(is_total) => kind,
                (Step::Identity | Step::Is(_), kind) => kind,
                (Step::Values(_), Kind::Vertex | Kind::Edge) | (Step::Reduce(Reduction::Count), _) => Kind::Value,
                (step @ Step::Select { .. }, Kind::Vertex | Kind::Edge) => {
                    *reads |= 1 << self.names.get(selected(step)?)?;
                    Kind::Vertex
                }
                // A value may be a map, in which names are looked for first.
                (
                    Step::WherePredicate { start, test: LabelTest::Compare(comparison, name), by, .. },
                    Kind::Vertex | Kind::Edge,
                ) => {
                    let is_same = matches!(comparison, Comparison::Eq | Comparison::Neq);
                    if !is_same || by.iter().any(|by| *by != By::Identity) {
                        return None;
                    }
                    for name in start.iter().chain([name]) {
                        *reads |= 1 << self.names.get(name)?;
                    }
                    kind
                }
                (Step::FilterTraversal(_, operands), kind) => {
                    for operand in operands {
                        self.is_total(operand, kind, reads)?;
                    }
                    kind
                }
                _ => return None,
            };
        }
        Some(kind)
    }
}

/// What an object in a nested traversal is.
#[derive(Clone, Copy)]
enum Kind {
    Vertex,
    Edge,
    Value,
}

/// The name whose newest object a step selects, if it does nothing else.
fn selected(step: &Step) -> Option<&Name> {
    match step {
        Step::Select { lookup, labels, by, required: true }
            if lookup.is_newest() && by.iter().all(|by| *by == By::Identity) =>
        {
            match &labels[..] {
                [name] => Some(name),
                _ => None,
            }
        }
        _ => None,
    }
}

/// Returns true for a `by()` that takes a part of a vertex without walking.
fn is_part(by: &By) -> bool {
    matches!(by, By::Key(_) | By::Token(Token::Id | Token::Label))
}
