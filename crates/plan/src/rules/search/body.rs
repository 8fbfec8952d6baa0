//! The body of a loop that may become a search: one hop, and tests.

use super::{EdgeEnd, Reason, Repeat, Step, StepNode, Traversal, is_row_by_row, is_simple_path};
use crate::logical::Segment;

/// What a body does.
pub(super) struct Body {
    /// It keeps simple paths.
    pub simple: bool,
    /// It goes to the edges, and from them to vertices, so paths contain the edges.
    pub over_edges: bool,
}

/// Where a row is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum At {
    Start,
    Edge,
    Vertex,
}

impl Body {
    pub fn of(repeat: &Repeat) -> Result<Self, Reason> {
        let mut body = Body { simple: false, over_edges: false };
        let mut at = At::Start;
        for StepNode { step, labels, policy, .. } in &repeat.body.steps {
            if !labels.is_empty() {
                return Err("a step of its body has a label");
            }
            if !policy.is_default() {
                return Err("a step of its body has a policy");
            }
            at = match (at, step) {
                (At::Start, Step::Expand { to_edges: false, .. }) => At::Vertex,
                (At::Start, Step::Expand { to_edges: true, .. }) => At::Edge,
                (At::Edge, Step::EdgeVertex(EdgeEnd::Source | EdgeEnd::Target | EdgeEnd::Other)) => {
                    body.over_edges = true;
                    At::Vertex
                }
                (at, Step::Has(_) | Step::Is(_) | Step::Identity) => at,
                (at, Step::FilterTraversal(..) | Step::WherePredicate { .. }) if is_row_by_row(step) => at,
                (At::Vertex, Step::PathShape { simple: true, by, segment })
                    if by.is_empty() && *segment == Segment::default() =>
                {
                    body.simple = true;
                    At::Vertex
                }
                (_, Step::PathShape { simple: true, .. }) => {
                    return Err("its simplePath() tests something else than the path up to the vertex");
                }
                _ => return Err("its body is more than one hop and tests"),
            };
        }
        if at == At::Vertex { Ok(body) } else { Err("its body is no hop to vertices") }
    }

    /// The number of objects that an iteration adds to a path.
    pub fn objects(&self) -> usize {
        1 + usize::from(self.over_edges)
    }
}

/// Takes `simplePath()` out of a body, and adds tests of its edges and of its vertices.
pub(super) fn write(body: &mut Traversal, [of_edges, of_vertices]: [Vec<StepNode>; 2]) {
    body.steps.retain(|node| !is_simple_path(&node.step));
    let is_to_edges = |node: &StepNode| matches!(node.step, Step::Expand { to_edges: true, .. });
    if let Some(edges) = body.steps.iter().position(is_to_edges) {
        body.steps.splice(edges + 1..edges + 1, of_edges);
    }
    body.steps.extend(of_vertices);
}
