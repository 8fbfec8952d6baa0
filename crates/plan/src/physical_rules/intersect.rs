//! A hop whose neighbors are tested for edges becomes an intersection of adjacency lists.
//!
//! If a chain asks for edges to known vertices after a hop, as in `both().as("d")…where(both().where(eq("a")))`, the
//! hop's neighbors are intersected with those of `a` before they become rows. So the size of an intermediate result is
//! bounded by the neighbors in common, not by the number of paths, as in worst-case optimal joins. Only tests of rows
//! may stand between the hop and the question. They then run on fewer rows.

use crate::logical::Name;
use crate::physical::{EdgeTo, Op, Stage};
use crate::physical_rules::Facts;

pub(super) fn apply(stages: &mut Vec<Stage>, _facts: &Facts<'_>) -> bool {
    let mut changed = false;
    let mut taken = vec![false; stages.len()];
    for at in 0..stages.len() {
        if let Op::Expand { direction, labels, to_edges: false } = &stages[at].operator {
            let (direction, labels) = (*direction, labels.clone());
            let (closings, end) = take_closings(stages, at, &mut taken);
            if !closings.is_empty() {
                changed = true;
                stages[at].operator = Op::Intersect { direction, labels, closings };
                // Fewer than the neighbors and than what the tests leave of these, and more than the rows in the end.
                stages[at..end].iter_mut().for_each(|stage| stage.expected = None);
            }
        }
    }
    let mut taken = taken.into_iter();
    stages.retain(|_| taken.next() != Some(true));
    changed
}

/// The edges that the neighbors of a hop must have. Tests for these edges are `taken` out of the chain. An operator
/// that follows one stays, since there may be several edges. The search ends at the next hop at the latest. Also returns
/// where the last of these tests and operators is.
fn take_closings(stages: &[Stage], hop: usize, taken: &mut [bool]) -> (Vec<EdgeTo>, usize) {
    let mut closings = Vec::new();
    let mut end = hop + 1;
    let mut given: Vec<Name> = stages[hop].labels.clone();
    for (at, stage) in stages.iter().enumerate().skip(hop + 1) {
        match &stage.operator {
            Op::FollowTo { edge, stays } => {
                if !given.contains(&edge.name) {
                    closings.push(edge.clone());
                    end = at;
                }
                if !stays {
                    break;
                }
                given.extend(stage.labels.iter().cloned());
            }
            Op::HasEdgeTo { edge, negate: false } if !given.contains(&edge.name) && stage.labels.is_empty() => {
                closings.push(edge.clone());
                taken[at] = true;
                end = at;
            }
            operator if operator.is_test() => given.extend(stage.labels.iter().cloned()),
            _ => break,
        }
    }
    (closings, end)
}
