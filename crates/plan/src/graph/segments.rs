//! The steps after a fence, as query graphs of their own.
//!
//! `limit()`, `range()`, `tail()`, `dedup()` and `barrier()` pass rows on, and no other step can be moved over them. They
//! are *fences*. The steps after a fence are a *segment*: a graph whose rows come from the fence, at its first variable.
//! Every order of a segment begins there. Its steps make of each row the same bag of results in every order, whichever
//! rows have come. So it does not matter which ones a fence takes.
//!
//! Names that were given before the fence stay with the rows. In a segment only those of the vertex that rows are at can
//! be read. Others end it. So does any step that ends a graph; after one that is no fence there is no segment. So none
//! comes after `order()`, whose order later steps must keep.

use std::ops::Range;

use super::build::{Builder, any_step};
use super::estimate::Estimator;
use super::preconditions::Checked;
use super::tally::Tally;
use super::{Entry, MEMBERS_MAX, QueryGraph, choose};
use crate::facts::GraphFacts;
use crate::logical::{Step, StepNode, Traversal};

/// The rows that `limit()`, `range()` and `tail()` are taken to pass on. One plan serves all numbers.
const LIMITED: f64 = 100.0;

/// The steps after a fence.
pub(super) struct Segment {
    pub graph: QueryGraph,
    /// The positions of its steps.
    pub steps: Range<usize>,
    /// The name of the fence, for `explain()`.
    pub after: &'static str,
}

/// A look that is enough for most traversals: returns false if no segment has several orders.
pub(super) fn may_be_there(steps: &[StepNode]) -> bool {
    let Some(first) = steps.iter().position(|node| fence(node).is_some()) else { return false };
    let after = &steps[first..];
    let hops = after.iter().filter(|node| matches!(node.step, Step::Expand { .. } | Step::Union(_))).count();
    hops > 1 && after.iter().any(|node| matches!(node.step, Step::Select { .. } | Step::WherePredicate { .. }))
}

/// The segments of a traversal that have several orders. `checked` is about the whole traversal.
pub(super) fn read(traversal: &Traversal, facts: &GraphFacts, checked: &Checked) -> Vec<Segment> {
    let (steps, mut segments) = (&traversal.steps, Vec::new());
    if !may_be_there(steps) {
        return segments;
    }
    let Ok(needs) = checked else { return segments };
    let Some(mut builder) = steps.first().and_then(Builder::begin) else { return segments };
    let mut end = builder.take_all(steps, 1);
    loop {
        let fences = steps[end..].iter().map_while(fence).count();
        let start = end + fences;
        let Some(after) = start.checked_sub(1).and_then(|last| fence(&steps[last])).filter(|_| fences > 0) else {
            return segments;
        };
        builder = Builder::at_rows(entry(&builder, &steps[end..start], facts));
        end = builder.take_all(steps, start);
        let rest = &steps[end..];
        let carries_names =
            any_step(rest, &|step| step.traits().names_read.into_iter().any(|name| needs.bindings.contains(name)));
        let is_merged_before = any_step(&steps[1..start], &|step| step.traits().walks);
        if let Ok(mut graph) = builder.clone().graph_before(rest, needs) {
            graph.reads_names |= carries_names;
            graph.may_name &= !needs.bindings.is_empty() || !is_merged_before;
            segments.push(Segment { graph, steps: start..end, after });
        }
    }
}

/// The name of a step that is a fence.
fn fence(node: &StepNode) -> Option<&'static str> {
    let name = match &node.step {
        Step::Range { .. } => "the limit",
        Step::Tail(_) => "tail()",
        Step::Dedup { .. } => "dedup()",
        Step::Barrier { norm_sack: false } => "barrier()",
        _ => return None,
    };
    node.policy.is_default().then_some(name)
}

/// What is known of the rows that leave fences after a graph.
fn entry(before: &Builder, fences: &[StepNode], facts: &GraphFacts) -> Entry {
    let (graph, current) = (&before.graph, before.current);
    let variable = &graph.variables[current];
    let inherited = graph.entry.iter().filter(|_| current == 0).flat_map(|entry| &entry.known);
    let given = fences.iter().flat_map(|node| &node.labels);
    let mut entry = Entry {
        rows: LIMITED,
        known: inherited.chain(&variable.conditions).cloned().collect(),
        names: variable.names.iter().chain(given).cloned().collect(),
    };
    if graph.atoms.len() > MEMBERS_MAX {
        return entry;
    }
    let estimator = Estimator::new(graph, facts);
    let mut tally = Tally::of(graph, &estimator, &choose::written(graph));
    for node in fences {
        tally.rows = match &node.step {
            Step::Dedup { labels, by } if labels.is_empty() && by.is_empty() => tally.distinct_at(current),
            Step::Range { high: Some(_), .. } | Step::Tail(_) => tally.rows.min(LIMITED),
            _ => tally.rows,
        };
    }
    entry.rows = tally.rows;
    entry
}
