//! `outE(l).inV()` is `out(l)`, `inE(l).outV()` is `in(l)`, and `bothE(l).otherV()` is `both(l)`: no later step reads
//! the edges. An edge with a label, and a traversal that shows whole paths, are left alone.
//!
//! `outE(l).has(…).otherV()` is `outE(l).has(…).inV()`, and `inE(l).has(…).otherV()` is `inE(l).has(…).outV()`: these need no
//! paths.

use mangrove_graph::Direction;

use crate::logical::{EdgeEnd, Step, StepNode, Traversal};
use crate::physical::PathRequirement;
use crate::rules::Facts;

pub(super) fn apply(traversal: &mut Traversal, facts: &Facts<'_>) -> bool {
    if facts.path == PathRequirement::Full {
        return false;
    }
    let before = traversal.steps.len();
    traversal.steps.dedup_by(|end, edges| hop(edges, end));
    let names_ends = name_other_ends(&mut traversal.steps);
    traversal.steps.len() < before || names_ends
}

/// Says which end `otherV()` leads to, if only tests stand between it and the step to the edges. Returns true if it has
/// changed something.
fn name_other_ends(steps: &mut [StepNode]) -> bool {
    let mut changed = false;
    let mut other = None;
    for node in steps {
        match &mut node.step {
            Step::Expand { direction: Direction::Out, to_edges: true, .. } => other = Some(EdgeEnd::Target),
            Step::Expand { direction: Direction::In, to_edges: true, .. } => other = Some(EdgeEnd::Source),
            Step::Has(_) | Step::FilterTraversal(..) | Step::WherePredicate { .. } => {}
            Step::EdgeVertex(end @ EdgeEnd::Other) => {
                if let Some(known) = other.take() {
                    *end = known;
                    changed = true;
                }
            }
            _ => other = None,
        }
    }
    changed
}

/// Makes one hop of a step to edges and the next step, to their ends, if no step reads the edges.
fn hop(edges: &mut StepNode, end: &mut StepNode) -> bool {
    let Step::EdgeVertex(to) = end.step else { return false };
    let Step::Expand { direction, to_edges: to_edges @ true, .. } = &mut edges.step else { return false };
    let goes_on = matches!(
        (direction, to),
        (Direction::Out, EdgeEnd::Target | EdgeEnd::Other)
            | (Direction::In, EdgeEnd::Source | EdgeEnd::Other)
            | (Direction::Both, EdgeEnd::Other)
    );
    if !goes_on || !edges.labels.is_empty() {
        return false;
    }
    *to_edges = false;
    edges.labels = std::mem::take(&mut end.labels);
    true
}
