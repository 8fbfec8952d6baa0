//! `outE(l).inV()` is `out(l)`, `inE(l).outV()` is `in(l)`, `bothE(l).otherV()` is `both(l)`: nobody sees
//! the edges, so they need not be made. Not where the edge bears a label or whole paths are kept.

use mangrove_graph::Direction;

use crate::logical::{EdgeEnd, Step, Traversal};
use crate::physical::PathRequirement;

pub(super) fn apply(traversal: &mut Traversal, path: &PathRequirement) -> bool {
    if *path == PathRequirement::Full {
        return false;
    }
    let mut changed = false;
    let mut at = 0;
    while at + 1 < traversal.steps.len() {
        let hop = match (&traversal.steps[at].step, &traversal.steps[at + 1].step) {
            (Step::Expand { direction, to_edges: true, .. }, Step::EdgeVertex(end)) => matches!(
                (direction, end),
                (Direction::Out, EdgeEnd::Target | EdgeEnd::Other)
                    | (Direction::In, EdgeEnd::Source | EdgeEnd::Other)
                    | (Direction::Both, EdgeEnd::Other)
            ),
            _ => false,
        };
        if hop && traversal.steps[at].labels.is_empty() {
            let end = traversal.steps.remove(at + 1);
            let node = &mut traversal.steps[at];
            if let Step::Expand { to_edges, .. } = &mut node.step {
                *to_edges = false;
            }
            node.labels = end.labels;
            changed = true;
        }
        at += 1;
    }
    changed
}
