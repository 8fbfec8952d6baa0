//! A scan of all vertices before a hop, or before a test for an edge, becomes a scan of the labels whose vertices have such edges.
//!
//! `V().out("knows")` asks every vertex of the graph for its edges, and mostly only persons have any. If the facts about
//! the edges of the graph tell which label sets have vertices with such edges (PLAN-13), only these are scanned.

use crate::physical::{Access, EdgesOf, Op, Stage};
use crate::physical_rules::{Facts, Reliance};

pub(super) fn apply(stages: &mut [Stage], facts: &Facts<'_>) -> bool {
    let Some(Reliance { connections, said }) = facts.reliance else { return false };
    let [first, next, ..] = stages else { return false };
    let (
        Op::Vertices { access: access @ Access::All, .. },
        Op::Expand { direction, labels, .. } | Op::HasEdges { direction, labels, negate: false },
    ) = (&mut first.operator, &next.operator)
    else {
        return false;
    };
    let edges = EdgesOf { direction: *direction, labels: labels.clone() };
    let Some(sources) = connections.sources(&edges) else { return false };
    said.say_sources(&edges, &sources);
    *access = Access::Labels(sources);
    true
}
