//! A hop whose neighbors are tested for edges becomes an intersection of lists.
//!
//! A hop after which edges to known vertices are asked for, `both().as("d")…where(both().where(eq("a")))`, intersects the
//! neighbors with those of `a` before it makes rows of them. So the size of a pattern's parts is bounded by what is in
//! common, not by the number of ways that lead there. Between the hop and the question only tests of the rows may stand: they
//! are then made of fewer rows.

use crate::logical::Name;
use crate::physical::{EdgeTo, Op, Stage};
use crate::physical_rules::Names;

pub(super) fn apply(stages: &mut Vec<Stage>, _names: &Names<'_>) -> bool {
    let mut changed = false;
    let mut taken = vec![false; stages.len()];
    for at in 0..stages.len() {
        if let Op::Expand { direction, labels, to_edges: false } = &stages[at].operator {
            let (direction, labels) = (*direction, labels.clone());
            let closings = take_closings(stages, at, &mut taken);
            if !closings.is_empty() {
                changed = true;
                stages[at].operator = Op::Intersect { direction, labels, closings };
            }
        }
    }
    let mut taken = taken.into_iter();
    stages.retain(|_| taken.next() != Some(true));
    changed
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
            operator if operator.is_test() => given.extend(stage.labels.iter().cloned()),
            _ => break,
        }
    }
    closings
}
