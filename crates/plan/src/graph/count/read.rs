//! From the first steps of a traversal to a tree of hops, with comparisons.
//!
//! The steps of `build.rs` are read as it reads them, and these, too:
//!
//! | step | becomes |
//! |---|---|
//! | `optional(out())`, and then `select()` or the count | an atom that counts at least once |
//! | `barrier()` | nothing |
//! | `map(out().fold()).as('l')`, and then `select()` | the list of the variable's neighbors |
//! | `where(without('l'))` | an edge that must not be there; `within`: must be there |
//! | `not(out().where(eq('a')))` | an edge that must not be there; `where`: must be there |
//! | `where(out())`, `not(out())` | a test of a degree |
//! | `count()` | the end: all matches are counted |
//! | any other step, if a later one gathers all rows | the end: the matches of each vertex that rows are at are counted |
//!
//! If such a step stands where it is not understood, there is a row for each match (PLAN-12).

use std::collections::HashMap;

use mangrove_gremlin::Comparison;

use super::super::build::{Builder, any_step, cuts_stream, merges_before};
use super::super::edges;
use super::super::preconditions::Declined;
use super::super::{MEMBERS_MAX, QueryGraph, Set, TestKind};
use crate::logical::{By, FilterKind, LabelTest, Name, Reduction, Step, StepNode, Traversal};
use crate::physical::{CountOf, EdgesOf};

/// A tree of hops that is only counted.
pub(super) struct Pattern {
    /// Its variables and atoms. An atom leads from the variable that is nearer to the first one. Tests are those of the
    /// steps, for estimates.
    pub graph: QueryGraph,
    /// The atoms whose ends count at least once.
    pub optional: Set,
    /// Pairs of variables that are different vertices.
    pub differ: Vec<(usize, usize)>,
    /// Edges between variables that must, or must not, be there.
    pub closings: Vec<Closing>,
    /// Edges that variables must, or must not, have.
    pub tests: Vec<(usize, EdgesOf, bool)>,
    /// How many steps it was read from, with the `count()` of all matches.
    pub steps: usize,
    /// What is counted. If it is the matches of each vertex, the sink of the graph is the variable of these vertices.
    pub of: CountOf,
}

/// Edges from one variable to another that must be there (true), or must not.
pub(super) struct Closing {
    pub from: usize,
    pub to: usize,
    pub edges: EdgesOf,
    pub is_there: bool,
}

/// The pattern that a traversal begins with, if its matches are only counted; or why there is none. `passes_check` looks at
/// the whole traversal (PLAN-12).
pub(super) fn read(traversal: &Traversal, passes_check: impl FnOnce() -> bool) -> Result<Pattern, Declined> {
    let (steps, of) = steps_counted(&traversal.steps).ok_or(None)?;
    if !passes_check() {
        // The choice of an order says why.
        return Err(None);
    }
    let first = traversal.steps.first().ok_or(None)?;
    let mut reader = Reader::begin(first).ok_or(Some("its first step is about more than vertices"))?;
    let last = if of == CountOf::AllMatches { steps - 1 } else { steps };
    let mut at = 1;
    while at < last {
        at += reader.take(&traversal.steps[at..last]).ok_or(Some("a step cannot be weighed"))?;
        let graph = &reader.builder.graph;
        if graph.atoms.len() >= graph.variables.len() {
            return Err(Some("the pattern has a circle"));
        }
    }
    let rest = &traversal.steps[steps..];
    if of == CountOf::EachRoot {
        match () {
            () if cuts_stream(rest) => return Err(None),
            () if reader.is_elsewhere => return Err(Some("its rows do not end at a vertex")),
            () if reader.names_are_read(rest) => return Err(Some("a later step reads a name of the pattern")),
            () => {}
        }
    }
    reader.builder.graph.merges = of == CountOf::AllMatches || merges_before(rest);
    let pattern = reader.end(steps, of).ok_or(Some("a test cannot be weighed"))?;
    if pattern.graph.atoms.iter().any(|atom| !atom.conditions.is_empty()) {
        return Err(Some("a hop tests its edges"));
    }
    match pattern.graph.atoms.len() > MEMBERS_MAX {
        true => Err(Some("the pattern is too large")),
        false => Ok(pattern),
    }
}

/// A look that is enough for most traversals: the number of steps that may be a pattern, and what is counted of it.
pub(super) fn steps_counted(steps: &[StepNode]) -> Option<(usize, CountOf)> {
    let [StepNode { step: Step::Vertices { ids: None, .. }, .. }, rest @ ..] = steps else { return None };
    let (mut hops, mut at) = (0, 0);
    while let Some(node) = rest.get(at) {
        match &node.step {
            Step::Expand { to_edges: false, .. } | Step::Optional(_) => hops += 1,
            Step::Has(_)
            | Step::Select { .. }
            | Step::WherePredicate { .. }
            | Step::FilterTraversal(..)
            | Step::Identity
            | Step::Barrier { norm_sack: false }
            | Step::Map { .. } => {}
            Step::Reduce(Reduction::Count) if hops > 0 && node.policy.is_default() => {
                return Some((at + 2, CountOf::AllMatches));
            }
            // Why a hop that tests its edges cannot be weighed is said later. Hops before it can be.
            Step::Expand { .. } | Step::Union(_) if hops == 0 => {
                at += edges::read(&rest[at..])?.steps;
                hops += 1;
                continue;
            }
            _ => return (hops > 0 && gathers(&rest[at..])).then_some((at + 1, CountOf::EachRoot)),
        }
        at += 1;
    }
    None
}

/// Returns true if a step gathers all rows: no result leaves the traversal before.
fn gathers(rest: &[StepNode]) -> bool {
    let gathers =
        |step: &Step| matches!(step, Step::Reduce(_) | Step::Order(_) | Step::Group { .. } | Step::GroupCount { .. });
    rest.iter().any(|node| gathers(&node.step))
}

struct Reader {
    builder: Builder,
    /// The variables whose neighbors are in lists, by the names of these lists.
    lists: HashMap<Name, (usize, EdgesOf)>,
    optional: Set,
    closings: Vec<Closing>,
    /// True if the row may be at something else than the current variable: at a list, or at the row of an `optional()`.
    is_elsewhere: bool,
}

impl Reader {
    fn begin(first: &StepNode) -> Option<Self> {
        let builder = Builder::begin(first)?;
        Some(Reader { builder, lists: HashMap::new(), optional: 0, closings: Vec::new(), is_elsewhere: false })
    }

    /// Takes the next step into the pattern, or the next steps, if these are one hop. Returns how many it takes; `None` if
    /// the first cannot be counted without rows.
    fn take(&mut self, steps: &[StepNode]) -> Option<usize> {
        let node = steps.first().filter(|node| node.policy.is_default())?;
        let one = |is_taken: bool| is_taken.then_some(1);
        match &node.step {
            Step::Barrier { norm_sack: false } => return one(node.labels.is_empty()),
            Step::Select { .. } => {
                self.is_elsewhere = false;
                return self.builder.take(steps);
            }
            _ if self.is_elsewhere => return None,
            Step::Optional(traversal) => return one(node.labels.is_empty() && self.take_optional(traversal, node)),
            Step::Map { traversal, first: true } => return one(self.take_list(traversal, &node.labels)),
            _ => {}
        }
        if let Step::WherePredicate { start: None, test, by, .. } = &node.step
            && by.iter().all(|by| *by == By::Identity)
        {
            let members = match test {
                LabelTest::Within(names) => Some((names, true)),
                LabelTest::Without(names) => Some((names, false)),
                LabelTest::Compare(Comparison::Eq, _) if !self.lists.is_empty() => return None,
                _ => None,
            };
            if let Some((names, is_there)) = members {
                let [name] = &names[..] else { return None };
                let (from, edges) = self.lists.get(name).cloned()?;
                self.closings.push(Closing { from, to: self.builder.current, edges, is_there });
                return one(node.labels.is_empty());
            }
        }
        self.builder.take(steps)
    }

    /// Returns true if later steps read a name of the pattern.
    fn names_are_read(&self, rest: &[StepNode]) -> bool {
        let is_known = |name: &Name| self.builder.names.contains_key(name) || self.lists.contains_key(name);
        any_step(rest, &|step| step.traits().names_read.iter().any(|name| is_known(name)))
    }

    /// Takes a hop whose row stays if there is no edge.
    fn take_optional(&mut self, traversal: &Traversal, node: &StepNode) -> bool {
        let [hop @ StepNode { step: Step::Expand { to_edges: false, .. }, .. }] = &traversal.steps[..] else {
            return false;
        };
        if !hop.labels.is_empty() || !hop.policy.is_default() {
            return false;
        }
        let atom = self.builder.graph.atoms.len();
        let hop = StepNode::new(hop.step.clone(), node.position);
        self.is_elsewhere = true;
        if atom >= MEMBERS_MAX || self.builder.take(std::slice::from_ref(&hop)).is_none() {
            return false;
        }
        self.optional |= 1 << atom;
        true
    }

    /// Takes a list of neighbors.
    fn take_list(&mut self, traversal: &Traversal, labels: &[Name]) -> bool {
        let [hop, fold] = &traversal.steps[..] else { return false };
        let Some(edges) = plain_hop(hop) else { return false };
        let is_fold = fold.step == Step::Reduce(Reduction::Fold) && fold.labels.is_empty() && fold.policy.is_default();
        self.is_elsewhere = true;
        for label in labels {
            self.lists.insert(label.clone(), (self.builder.current, edges.clone()));
        }
        is_fold
    }

    /// The pattern, if all its tests are comparisons, closings or tests of degrees.
    fn end(self, steps: usize, of: CountOf) -> Option<Pattern> {
        let Reader { builder, optional, mut closings, .. } = self;
        let Builder { mut graph, names, current, .. } = builder;
        let (mut differ, mut tests) = (Vec::new(), Vec::new());
        for test in &graph.tests {
            match &test.kind {
                TestKind::Differ(a, b) => differ.push((*a, *b)),
                TestKind::Step(Step::FilterTraversal(kind, operands), Some(of)) => {
                    let ([operand], FilterKind::All | FilterKind::None) = (&operands[..], kind) else { return None };
                    let is_there = *kind == FilterKind::All;
                    match &operand.steps[..] {
                        [hop] => tests.push((*of, plain_hop(hop)?, is_there)),
                        [hop, compared] => {
                            let (edges, to) = (plain_hop(hop)?, *names.get(is_at(compared)?)?);
                            closings.push(Closing { from: *of, to, edges, is_there });
                        }
                        _ => return None,
                    }
                }
                TestKind::Step(..) => return None,
            }
        }
        graph.sink = (of == CountOf::EachRoot).then_some(current);
        graph.reads_names = graph.tests.iter().any(|test| test.reads.count_ones() > 1);
        Some(Pattern { graph, optional, differ, closings, tests, steps, of })
    }
}

/// The edges of a hop to vertices, if the step is one and nothing else.
fn plain_hop(node: &StepNode) -> Option<EdgesOf> {
    match &node.step {
        Step::Expand { direction, labels, to_edges: false } if node.labels.is_empty() && node.policy.is_default() => {
            Some(EdgesOf { direction: *direction, labels: labels.clone() })
        }
        _ => None,
    }
}

/// The name that a step compares its object with.
fn is_at(node: &StepNode) -> Option<&Name> {
    match &node.step {
        Step::WherePredicate { start: None, test: LabelTest::Compare(Comparison::Eq, name), by, .. }
            if node.labels.is_empty() && by.iter().all(|by| *by == By::Identity) =>
        {
            Some(name)
        }
        _ => None,
    }
}
