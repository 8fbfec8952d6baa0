//! `select("a", "b").count()` counts rows, and what it selects is looked at by nobody: where every label is sure to stand
//! for something, the count is the same without the `select()`. Then no path need be remembered, and rows that differed
//! in their way only are one.
//!
//! A label is sure where a step in front of it, in the same chain, bears it, and no step between forgets paths, as
//! reductions do.

use crate::logical::{By, Name, Reduction, Step, StepNode, Traversal};
use crate::physical::PathRequirement;

pub(super) fn apply(traversal: &mut Traversal, _path: &PathRequirement) -> bool {
    let mut changed = false;
    let mut at = 0;
    while at + 1 < traversal.steps.len() {
        if is_needless(&traversal.steps, at) {
            traversal.steps.remove(at);
            changed = true;
        } else {
            at += 1;
        }
    }
    changed
}

/// Whether the step at a place selects what is then only counted.
fn is_needless(steps: &[StepNode], at: usize) -> bool {
    let (select, next) = (&steps[at], &steps[at + 1]);
    let Step::Select { labels, by, .. } = &select.step else { return false };
    let counted = matches!(next.step, Step::Reduce(Reduction::Count));
    let itself = by.iter().all(|by| *by == By::Identity);
    counted && itself && select.labels.is_empty() && labels.iter().all(|label| is_sure(&steps[..at], label))
}

fn is_sure(before: &[StepNode], label: &Name) -> bool {
    let remembers = |node: &&StepNode| keeps_paths(&node.step) || node.labels.contains(label);
    before.iter().rev().take_while(remembers).any(|node| node.labels.contains(label))
}

/// Whether every row that leaves the step has the path of the row it comes from.
fn keeps_paths(step: &Step) -> bool {
    match step {
        Step::Expand { .. }
        | Step::EdgeVertex(_)
        | Step::Has(_)
        | Step::Is(_)
        | Step::WherePredicate { .. }
        | Step::FilterTraversal(..)
        | Step::Dedup { .. }
        | Step::Range { .. }
        | Step::Tail(_)
        | Step::PathShape { .. }
        | Step::Values(_)
        | Step::Properties(_)
        | Step::Id
        | Step::Label
        | Step::Identity
        | Step::Order(_) => true,
        Step::Repeat(repeat) => repeat.body.steps.iter().all(|node| keeps_paths(&node.step)),
        _ => false,
    }
}
