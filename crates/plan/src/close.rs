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
    let mut at = 0;
    while at + 1 < stages.len() {
        if let (Op::Expand { direction, labels, to_edges: false }, Op::CompareName { equal: true, name, lookup }) =
            (&stages[at].operator, &stages[at + 1].operator)
            && !stages[at].labels.contains(name)
            && !(*lookup == Lookup::Path && is_side_effect(name))
        {
            let edge = EdgeTo { direction: *direction, labels: labels.clone(), name: name.clone() };
            stages[at].operator = Op::FollowTo { edge, stays: false };
            stages.remove(at + 1);
        }
        at += 1;
    }
}

/// A search from a selected vertex to the one where the row is becomes one from there.
fn stay(stages: &mut Vec<Stage>, may_stay: impl Fn(&Name) -> bool) {
    let mut at = 0;
    while at + 2 < stages.len() {
        if let (Some(selected), Op::FollowTo { edge, stays: false }) = (selected(stages, at), &stages[at + 2].operator)
            && selected != edge.name
            && is_at(&stages[..at], &edge.name)
            && stages[..at].iter().any(|stage| finds_vertices(&stage.operator) && stage.labels.contains(&selected))
            && [&selected, &edge.name].into_iter().all(&may_stay)
        {
            let edge = EdgeTo { direction: edge.direction.reverse(), labels: edge.labels.clone(), name: selected };
            stages[at + 2].operator = Op::FollowTo { edge, stays: true };
            stages.drain(at..at + 2);
        }
        at += 1;
    }
}

/// The name that two operators together select.
fn selected(stages: &[Stage], at: usize) -> Option<Name> {
    let [Stage { operator: Op::Modulate(Modulate { over: Over::Names(names), by, .. }), labels }, select] =
        &stages[at..at + 2]
    else {
        return None;
    };
    let ([(Some(name), lookup)], [SlotBy::Identity]) = (&names[..], &by[..]) else { return None };
    let is_select = matches!(select.operator, Op::SlotMap { single: true, required: true, .. });
    (lookup.is_newest() && is_select && labels.is_empty() && select.labels.is_empty()).then(|| name.clone())
}

/// Whether rows at the end of these operators are at the vertex of a label: a hop or a source bears it, and only tests stand
/// behind.
fn is_at(stages: &[Stage], name: &Name) -> bool {
    let finds =
        |stage: &&Stage| !(is_test(&stage.operator) || matches!(stage.operator, Op::FollowTo { stays: true, .. }));
    let found = stages.iter().rev().find(finds);
    found.is_some_and(|stage| finds_vertices(&stage.operator) && stage.labels.contains(name))
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

/// Hops take the edges in that are asked for behind them.
fn intersect(stages: &mut Vec<Stage>) {
    let mut at = 0;
    while at < stages.len() {
        if matches!(stages[at].operator, Op::Expand { to_edges: false, .. }) {
            let closings = take_closings(stages, at);
            if let (false, Op::Expand { direction, labels, .. }) = (closings.is_empty(), &stages[at].operator) {
                stages[at].operator = Op::Intersect { direction: *direction, labels: labels.clone(), closings };
            }
        }
        at += 1;
    }
}

/// The edges that the neighbors of a hop must have. Tests for them are taken out; where they are followed, that stays:
/// there may be several.
fn take_closings(stages: &mut Vec<Stage>, hop: usize) -> Vec<EdgeTo> {
    let mut closings = Vec::new();
    let mut given: Vec<Name> = stages[hop].labels.clone();
    let mut at = hop + 1;
    while let Some(stage) = stages.get(at) {
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
                stages.remove(at);
                continue;
            }
            operator if is_test(operator) => given.extend(stage.labels.iter().cloned()),
            _ => break,
        }
        at += 1;
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
