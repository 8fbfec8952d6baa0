//! Patterns that close: hops to a vertex that is known already.
//!
//! - `both().where(eq("a"))` looks for the edges to `a` and meets no other neighbors.
//! - `where(both().where(eq("a")))` asks whether there is one, without a scope.
//! - A hop behind which such edges are asked for, `both().as("d")…where(both().where(eq("a")))`, intersects the neighbors
//!   with those of `a` before it makes rows of them. So the size of a pattern's parts is bounded by what is in common, not by
//!   the ways that lead there.
//!
//! - `as("c").select("a").out().where(eq("c"))`, as the patterns of a `match()` are written, asks the same from the other end:
//!   the edges from `a` are edges against the direction to `a`, and the row stays where it is.
//!
//! What stands between the hop and the question must be tests of the rows: they are then made of fewer rows.

use std::collections::HashSet;

use crate::logical::{FilterKind, Lookup, Name};
use crate::physical::{EdgeTo, LocalKind, Modulate, Op, Over, SlotBy, Stage};

/// Rewrites the operators of a chain whose nested chains were rewritten before. `is_side_effect`: whether a name is one of a
/// side effect. `may_stay`: whether a name is the label of a step and nothing else, and paths are not shown, so that no
/// result tells whether a row went to that step's object once more.
pub fn close(stages: &mut Vec<Stage>, is_side_effect: impl Fn(&Name) -> bool, may_stay: impl Fn(&Name) -> bool) {
    follow(stages, is_side_effect);
    stay(stages, may_stay);
    for stage in &mut *stages {
        if let Some(test) = test_of_edge(&stage.operator) {
            stage.operator = test;
        }
    }
    intersect(stages);
}

/// A hop and a comparison with a name become a search. A search finds side effects, too, which a name that is looked for in
/// the path alone must not.
fn follow(stages: &mut Vec<Stage>, is_side_effect: impl Fn(&Name) -> bool) {
    stages.dedup_by(|next, stage| {
        if let (Op::Expand { direction, labels, to_edges: false }, Op::CompareName { equal: true, name, lookup }) =
            (&stage.operator, &next.operator)
            && !stage.labels.contains(name)
            && !(*lookup == Lookup::Path && is_side_effect(name))
        {
            let edge = EdgeTo { direction: *direction, labels: labels.clone(), name: name.clone() };
            stage.operator = Op::FollowTo { edge, stays: false };
            return true;
        }
        false
    });
}

/// A search from a selected vertex to the one where the row is becomes one from there.
fn stay(stages: &mut Vec<Stage>, may_stay: impl Fn(&Name) -> bool) {
    let mut kept: Vec<Stage> = Vec::with_capacity(stages.len());
    // The labels of vertices so far, and for each stage the last one up to it that rows did not only pass.
    let mut labels: HashSet<Name> = HashSet::new();
    let mut comes_from: Vec<Option<usize>> = Vec::with_capacity(stages.len());
    for mut stage in std::mem::take(stages) {
        if let (Some(selected), Op::FollowTo { edge, stays: false }) = (selected(&kept), &stage.operator)
            && let before = kept.len() - 2
            && selected != edge.name
            && before.checked_sub(1).is_some_and(|last| is_at(&kept, comes_from[last], &edge.name))
            && labels.contains(&selected)
            && [&selected, &edge.name].into_iter().all(&may_stay)
        {
            let edge = EdgeTo { direction: edge.direction.reverse(), labels: edge.labels.clone(), name: selected };
            stage.operator = Op::FollowTo { edge, stays: true };
            kept.truncate(before);
            comes_from.truncate(before);
        }
        if finds_vertices(&stage.operator) {
            labels.extend(stage.labels.iter().cloned());
        }
        let only_passes = is_test(&stage.operator) || matches!(stage.operator, Op::FollowTo { stays: true, .. });
        comes_from.push(if only_passes { comes_from.last().copied().flatten() } else { Some(kept.len()) });
        kept.push(stage);
    }
    *stages = kept;
}

/// The name that the last two operators together select.
fn selected(stages: &[Stage]) -> Option<Name> {
    let [.., Stage { operator: Op::Modulate(Modulate { over: Over::Names(names), by, .. }), labels }, select] = stages
    else {
        return None;
    };
    let ([(Some(name), lookup)], [SlotBy::Identity]) = (&names[..], &by[..]) else { return None };
    let is_select = matches!(select.operator, Op::SlotMap { single: true, required: true, .. });
    (lookup.is_newest() && is_select && labels.is_empty() && select.labels.is_empty()).then(|| name.clone())
}

/// Returns true if rows that come from a stage are at the vertex of a label: a hop or a source bears it.
fn is_at(stages: &[Stage], from: Option<usize>, name: &Name) -> bool {
    from.is_some_and(|at| finds_vertices(&stages[at].operator) && stages[at].labels.contains(name))
}

fn finds_vertices(operator: &Op) -> bool {
    matches!(operator, Op::Expand { to_edges: false, .. } | Op::Vertices { .. })
}

/// The test for an edge that a scope comes to.
fn test_of_edge(operator: &Op) -> Option<Op> {
    let Op::Local(scope) = operator else { return None };
    let LocalKind::Filter(kind @ (FilterKind::All | FilterKind::None), pipelines) = &scope.kind else { return None };
    let [pipeline] = &pipelines[..] else { return None };
    match &pipeline.stages[..] {
        [Stage { operator: Op::FollowTo { edge, .. }, labels }] if labels.is_empty() => {
            Some(Op::HasEdgeTo { edge: edge.clone(), negate: *kind == FilterKind::None })
        }
        _ => None,
    }
}

/// Hops take the edges in that are asked for after them.
fn intersect(stages: &mut Vec<Stage>) {
    let mut taken = vec![false; stages.len()];
    for at in 0..stages.len() {
        if let Op::Expand { direction, labels, to_edges: false } = &stages[at].operator {
            let (direction, labels) = (*direction, labels.clone());
            let closings = take_closings(stages, at, &mut taken);
            if !closings.is_empty() {
                stages[at].operator = Op::Intersect { direction, labels, closings };
            }
        }
    }
    let mut taken = taken.into_iter();
    stages.retain(|_| taken.next() != Some(true));
}

/// The edges that the neighbors of a hop must have. Tests for them are `taken` out; where they are followed, that stays:
/// there may be several. Looking for them ends at the next hop at the latest.
fn take_closings(stages: &[Stage], hop: usize, taken: &mut [bool]) -> Vec<EdgeTo> {
    let mut closings = Vec::new();
    let mut given: Vec<Name> = stages[hop].labels.clone();
    for (at, stage) in stages.iter().enumerate().skip(hop + 1) {
        match &stage.operator {
            Op::FollowTo { edge, stays } => {
                if !given.contains(&edge.name) {
                    closings.push(edge.clone());
                }
                if !stays {
                    break;
                }
                given.extend(stage.labels.iter().cloned());
            }
            Op::HasEdgeTo { edge, negate: false } if !given.contains(&edge.name) && stage.labels.is_empty() => {
                closings.push(edge.clone());
                taken[at] = true;
            }
            operator if is_test(operator) => given.extend(stage.labels.iter().cloned()),
            _ => break,
        }
    }
    closings
}

/// Whether rows pass it as they are, or do not, whatever other rows there are.
fn is_test(operator: &Op) -> bool {
    match operator {
        Op::Filter(_)
        | Op::Is(_)
        | Op::HasEdges { .. }
        | Op::HasEdgeTo { .. }
        | Op::CompareName { .. }
        | Op::CompareSlots(_)
        | Op::Identity => true,
        Op::Modulate(modulate) => modulate.by.iter().all(|by| !matches!(by, SlotBy::First(_) | SlotBy::Exists(_))),
        Op::Local(scope) => matches!(scope.kind, LocalKind::Filter(..)) && scope.by_object,
        _ => false,
    }
}
