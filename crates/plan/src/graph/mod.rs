//! The order in which a walk or a `match()` is worked off.
//!
//! A traversal says in which order its hops are made. Another order often makes far fewer rows. This module reads the
//! first steps of a traversal as a *query graph*, chooses an order, and writes the steps anew in that order:
//!
//! ```text
//! steps ──build──▶ QueryGraph ──choose──▶ Order ──emit──▶ steps
//! ```
//!
//! A query graph has *variables*, one for each vertex that a result is made of, and *atoms*, the edges between them.
//! `out()` is an atom and a new variable, `has()` a condition of a variable, `as()` a name of one. In
//! `outE().has().inV()` it is a condition of the atom. `select()` goes back to a variable, and `where(eq())` makes two of
//! them one. So a walk, the same walk backwards and a `match()` are one
//! graph. Its results are all ways to put vertices for variables, each as often as there are parallel edges.
//!
//! - **PLAN-11.** The steps that the graph is read from end before the first step that is not listed in `build`. The
//!   bag of their results (the object, and the objects under names that later steps read) is the same in every order.
//!   Nothing else about them can be observed. No step reads paths, older objects of a name, sacks or side effects. None
//!   of the moved steps can fail, and nothing after them cuts the stream before all of it is read.
//!
//! The steps after a `limit()` or `dedup()` may be another graph, whose rows come from there (`segments.rs`).
//!
//! The new steps are lowered as if they had been written. So the meaning of an order is that of its steps, and every
//! rule for operators applies to them.

mod build;
#[cfg(test)]
mod canonical;
mod choose;
mod count;
mod edges;
mod emit;
mod estimate;
mod exact;
mod expected;
mod filters;
mod learned;
mod memo;
mod preconditions;
mod progress;
mod segments;
mod selectivity;
mod tally;
#[cfg(test)]
mod tests;
mod walks;

use mangrove_graph::Direction;
use mangrove_gremlin::Position;

use crate::facts::GraphFacts;
use crate::logical::{Condition, Configuration, Name, Operand, Step, Traversal};
use crate::options::{PlanOptions, Planner};
use choose::Chosen;
use estimate::Estimator;
use filters::FilterCost;
use preconditions::Declined;
use progress::Progress;
use segments::Segment;

/// The most variables, atoms or tests of a query graph: sets of them are the bits of a number.
const MEMBERS_MAX: usize = 32;

/// A set of variables, atoms or tests.
type Set = u32;

/// A part of a traversal as a graph of variables.
#[derive(Clone, Debug)]
struct QueryGraph {
    /// The variables. The first is the one that the traversal begins at.
    variables: Vec<Variable>,
    /// The atoms, in the order of the steps.
    atoms: Vec<Atom>,
    /// The tests, in the order in which they are made if their variables are bound at the same time (`filters.rs`).
    tests: Vec<Test>,
    /// The variable that the rows are at when they leave the graph; `None` if nothing looks at it.
    sink: Option<usize>,
    /// What is known of the rows that enter at the first variable, if the graph is a segment after a fence.
    entry: Option<Entry>,
    /// True if a condition stands apart from the step that its variable comes from, so that it is no part of it.
    has_late_conditions: bool,
    /// True if an order may keep objects under names. False: later steps follow edges, and would meet more rows.
    may_name: bool,
    /// True if later steps, or tests, read names.
    reads_names: bool,
    /// True if the step after the graph only counts or deduplicates rows. Equal ones are then merged before hops.
    merges: bool,
}

/// The rows that enter a segment.
#[derive(Clone, Debug)]
struct Entry {
    /// How many are expected.
    rows: f64,
    /// The conditions that their vertices meet.
    known: Vec<Condition>,
    /// The names that their vertices have.
    names: Vec<Name>,
}

impl QueryGraph {
    /// A graph of one variable.
    fn of(variable: Variable) -> Self {
        QueryGraph {
            variables: vec![variable],
            atoms: Vec::new(),
            tests: Vec::new(),
            sink: None,
            entry: None,
            has_late_conditions: false,
            may_name: false,
            reads_names: false,
            merges: false,
        }
    }

    /// Returns true if rows can only begin at a variable: its vertices are those of ids, or of rows that enter.
    fn is_pinned(&self, variable: usize) -> bool {
        self.variables[variable].ids.is_some() || self.entry.is_some() && variable == 0
    }

    /// Returns true if a hop is written as a union of two. Rows are not merged before a union.
    fn has_unions(&self) -> bool {
        self.atoms.iter().any(|atom| atom.direction == Direction::Both && !atom.conditions.is_empty())
    }

    /// The variable with a name.
    fn named(&self, name: &Name) -> Option<usize> {
        self.variables.iter().position(|variable| variable.names.contains(name))
    }
}

/// A vertex that results are made of.
#[derive(Clone, Debug, Default)]
struct Variable {
    /// The ids that a source names. Such a variable comes first.
    ids: Option<Vec<Operand>>,
    conditions: Vec<Condition>,
    /// Its names in the traversal.
    names: Vec<Name>,
    position: Option<Position>,
}

/// An edge between two variables.
#[derive(Clone, Debug)]
struct Atom {
    from: usize,
    to: usize,
    /// The direction, as seen from `from`.
    direction: Direction,
    labels: Vec<Name>,
    /// What is asked of the edge.
    conditions: Vec<Condition>,
    /// It is no part of equality.
    position: Option<Position>,
}

impl PartialEq for Atom {
    fn eq(&self, other: &Self) -> bool {
        let ends = |atom: &Self| (atom.from, atom.to, atom.direction);
        ends(self) == ends(other) && self.labels == other.labels && self.conditions == other.conditions
    }
}

impl Atom {
    /// The direction as seen from one of the ends.
    fn direction_from(&self, end: usize) -> Direction {
        if end == self.from { self.direction } else { self.direction.reverse() }
    }

    /// The other end.
    fn other(&self, end: usize) -> usize {
        if end == self.from { self.to } else { self.from }
    }
}

/// A test of variables.
#[derive(Clone, Debug)]
struct Test {
    kind: TestKind,
    /// What it costs, and what it leaves.
    filter: FilterCost,
    /// The variables that it reads.
    reads: Set,
    position: Option<Position>,
}

impl Test {
    fn new(kind: TestKind, reads: Set, position: Option<Position>) -> Self {
        Test { filter: FilterCost::of(&kind), kind, reads, position }
    }
}

#[derive(Clone, Debug)]
enum TestKind {
    /// Two variables are different vertices.
    Differ(usize, usize),
    /// A step that passes rows on or drops them. It tests the variable that the row is at, if one is given.
    Step(Step, Option<usize>),
}

/// The order in which a graph is worked off.
#[derive(Clone, Debug, PartialEq)]
struct Order {
    /// The variable that rows begin at.
    start: usize,
    moves: Vec<Move>,
    /// The orders of the walks that are joined on the way: a tree of orders.
    joined: Vec<Order>,
}

/// What is done next. Numbers are those of atoms, variables and tests.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Move {
    /// Follows an atom from a variable that is bound, to one that is not.
    Hop { atom: usize, from: usize },
    /// Follows an atom from a variable that is bound, to one that is bound, too.
    Close { atom: usize, from: usize },
    /// Makes a test.
    Test(usize),
    /// Joins the rows of another walk, at a variable that both have. `walk` is the position of its order in
    /// [`Order::joined`].
    Join { walk: usize, at: usize },
}

impl Order {
    /// True if rows go back to variables, or are compared with them: these need names.
    fn reads_names(&self, graph: &QueryGraph) -> bool {
        let mut progress = Progress::of(graph, self);
        graph.sink.into_iter().for_each(|sink| _ = progress.go_to(sink));
        progress.reads_names
    }
}

/// A traversal in another order.
pub(crate) struct Reordered {
    /// The traversal; `None` if it stays as it is.
    pub traversal: Option<Traversal>,
    /// What was chosen, for `explain()`.
    pub choices: Vec<String>,
    /// True if there was a choice. Other statistics may then lead to another one.
    pub has_choice: bool,
    /// For `explain()`: the rows after each hop, as far as random walks have found them.
    pub rows: Vec<Option<f64>>,
}

pub(crate) use count::{CountChoice, Counted, count};
pub(crate) use estimate::Estimates;
pub(crate) use expected::with_expected_rows;
pub use filters::may_order_filters;
pub(crate) use filters::selective_first;

/// A look at the steps: returns false if neither their order can be chosen nor how they are counted, so that statistics
/// are of no use. Planning may find that out later.
pub fn may_reorder(traversal: &Traversal, configuration: &Configuration, planner: Planner) -> bool {
    configuration.planner_or(planner) != Planner::Written
        && (build::may_have_orders(&traversal.steps)
            || segments::may_be_there(&traversal.steps)
            || count::may_be_counted(&traversal.steps))
}

/// Chooses the order of a traversal's first steps, and of those after fences. If `counted` of the first are counted
/// without rows, these alone are reordered, and few runs make rows in this order. `estimates` are those of the choice how
/// it is counted.
pub(crate) fn reorder<'a>(
    traversal: &Traversal,
    configuration: &Configuration,
    facts: &'a GraphFacts,
    options: PlanOptions,
    counted: Option<usize>,
    estimates: &mut Estimates<'a>,
) -> Reordered {
    let is_written = configuration.planner_or(options.planner) == Planner::Written;
    if is_written {
        // What a traversal asks for is shown even if it has one order only.
        let is_told = configuration.planner.is_some() || build::may_have_orders(&traversal.steps);
        let declined = is_told.then_some("the planner is told to keep it");
        let choices = shown_declined(declined).into_iter().collect();
        return Reordered { traversal: None, choices, has_choice: false, rows: Vec::new() };
    }
    let without_paths = edges::without_paths(traversal);
    let mut reordered = Reordered { traversal: None, choices: Vec::new(), has_choice: false, rows: Vec::new() };
    let traversal = without_paths.as_ref().unwrap_or(traversal);
    let choose = |graph: &QueryGraph, estimator: &Estimator<'_>| match configuration.planner_or(options.planner) {
        Planner::Forced(seed) => choose::at_random(graph, seed),
        Planner::Written | Planner::Greedy => {
            choose::cheapest(graph, estimator, facts, options.estimate, counted.is_none())
        }
    };
    // Even in the written order, a traversal without paths costs less, but light ones gain nothing.
    let stays = |graph: &QueryGraph, chosen: &Chosen| {
        let needs_no_paths = without_paths.is_some() && !chosen.is_light;
        chosen.is_written && !graph.has_late_conditions && !needs_no_paths
    };
    // The last segment first, so that the positions of the others stay. Steps after a count without rows stay, too.
    let checked = match &without_paths {
        Some(traversal) => preconditions::check(traversal, configuration),
        None => estimates.checked(traversal, configuration).clone(),
    };
    let segments = if counted.is_none() { segments::read(traversal, facts, &checked) } else { Vec::new() };
    for Segment { graph, steps, after } in segments.into_iter().rev() {
        let chosen = choose(&graph, &Estimator::new(&graph, facts));
        if !stays(&graph, &chosen) {
            let order = chosen.order.unwrap_or_else(|| choose::written(&graph));
            let traversal = reordered.traversal.as_ref().unwrap_or(traversal);
            reordered.traversal = Some(emit::emit(&graph, &order, traversal, steps));
        }
        reordered.has_choice = true;
        reordered.choices.extend(chosen.shown.map(|shown| format!("order after {after}: {shown}")));
    }
    match build::build(traversal, counted, &checked) {
        Err(declined) => reordered.choices.extend(shown_declined(declined)),
        Ok((graph, end)) => {
            let chosen = choose(&graph, estimates.of(&graph, facts));
            if !stays(&graph, &chosen) {
                let order = chosen.order.unwrap_or_else(|| choose::written(&graph));
                let traversal = reordered.traversal.as_ref().unwrap_or(traversal);
                reordered.traversal = Some(emit::emit(&graph, &order, traversal, 0..end));
            }
            reordered.has_choice = true;
            reordered.rows = chosen.rows;
            reordered.choices.extend(chosen.shown.map(|shown| format!("order: {shown}")));
        }
    }
    reordered.choices.reverse();
    reordered
}

/// Why an order was not chosen, for `explain()`.
fn shown_declined(declined: Declined) -> Option<String> {
    declined.map(|reason| format!("order: as written, since {reason}"))
}
