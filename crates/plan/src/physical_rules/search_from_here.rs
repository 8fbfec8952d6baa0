//! A search from a selected vertex to the row's vertex becomes a search from the row's vertex.
//!
//! `as("c").select("a").out().where(eq("c"))`, as the patterns of a `match()` are written, asks for the edges from `a`
//! to `c`. The row is at `c`. Followed backwards, the edges lead from `c` to `a`. So the row needs no selection and
//! stays where it is.

use mangrove_graph::FastSet;

use crate::logical::Name;
use crate::physical::{EdgeTo, Op, Stage};
use crate::physical_rules::Facts;

pub(super) fn apply(stages: &mut Vec<Stage>, facts: &Facts<'_>) -> bool {
    let searches = |stage: &Stage| matches!(stage.operator, Op::FollowTo { stays: false, .. });
    if !stages.iter().any(searches) {
        return false;
    }
    let count = stages.len();
    let mut kept: Vec<Stage> = Vec::with_capacity(stages.len());
    // For each stage, the last one up to it that does not only pass objects on; and the labels of vertices so far.
    let mut labels: FastSet<Name> = FastSet::default();
    let mut comes_from: Vec<Option<usize>> = Vec::with_capacity(stages.len());
    for mut stage in std::mem::take(stages) {
        if let (Some(selected), Op::FollowTo { edge, stays: false }) = (selected(&kept), &stage.operator)
            && let before = kept.len() - 1
            && selected != edge.name
            && before.checked_sub(1).is_some_and(|last| is_at(&kept, comes_from[last], &edge.name))
            && labels.contains(&selected)
            && [&selected, &edge.name].into_iter().all(facts.is_only_a_label)
        {
            let edge = EdgeTo { direction: edge.direction.reverse(), labels: edge.labels.clone(), name: selected };
            stage.operator = Op::FollowTo { edge, stays: true };
            kept.truncate(before);
            comes_from.truncate(before);
        }
        if finds_vertices(&stage.operator) {
            labels.extend(stage.labels.iter().cloned());
        }
        let only_passes = stage.operator.is_test() || matches!(stage.operator, Op::FollowTo { stays: true, .. });
        comes_from.push(if only_passes { comes_from.last().copied().flatten() } else { Some(kept.len()) });
        kept.push(stage);
    }
    let changed = kept.len() < count;
    *stages = kept;
    changed
}

/// The name that the last operator selects.
fn selected(stages: &[Stage]) -> Option<Name> {
    match stages.last()? {
        Stage { operator: Op::SelectName { name, .. }, labels, .. } if labels.is_empty() => Some(name.clone()),
        _ => None,
    }
}

/// Returns true if rows that leave a stage are at the vertex of a label: the stage is a hop or a source with the label.
fn is_at(stages: &[Stage], from: Option<usize>, name: &Name) -> bool {
    from.is_some_and(|at| finds_vertices(&stages[at].operator) && stages[at].labels.contains(name))
}

fn finds_vertices(operator: &Op) -> bool {
    matches!(operator, Op::Expand { to_edges: false, .. } | Op::Vertices { .. })
}
