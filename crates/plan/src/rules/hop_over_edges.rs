//! `outE(l).inV()` is `out(l)`, `inE(l).outV()` is `in(l)`, `bothE(l).otherV()` is `both(l)`: nobody sees
//! the edges, so they need not be made. Not where the edge bears a label or whole paths are kept.

use mangrove_graph::Direction;

use crate::logical::{EdgeEnd, Step, StepNode, Traversal};
use crate::physical::PathRequirement;

pub(super) fn apply(traversal: &mut Traversal, path: &PathRequirement) -> bool {
    if *path == PathRequirement::Full {
        return false;
    }
    let before = traversal.steps.len();
    traversal.steps.dedup_by(|end, edges| hop(edges, end));
    traversal.steps.len() < before
}

/// Makes one hop of a step to edges and the next one, to their ends, if nobody sees the edges.
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
