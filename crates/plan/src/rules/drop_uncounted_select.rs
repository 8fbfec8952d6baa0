//! `select("a", "b").count()` counts rows and ignores the selected values. If every label is certain to have a value,
//! the count is the same without the `select()`. Rows then keep no path, and rows that differed only in their paths
//! become one.
//!
//! A label is certain to have a value if an earlier step of the same chain has the label, and no step between forgets
//! paths, as reductions do.

use mangrove_graph::FastSet;

use crate::logical::{By, Name, Reduction, Step, StepNode, Traversal};
use crate::rules::Facts;

pub(super) fn apply(traversal: &mut Traversal, _facts: &Facts<'_>) -> bool {
    let needless = (1..traversal.steps.len()).map(|next| is_needless(&traversal.steps, next - 1));
    let needless: Vec<bool> = needless.chain([false]).collect();
    let mut dropped = needless.iter();
    traversal.steps.retain(|_| dropped.next() != Some(&true));
    needless.contains(&true)
}

/// Returns true if the step at a position selects values that are then only counted.
fn is_needless(steps: &[StepNode], at: usize) -> bool {
    let (select, next) = (&steps[at], &steps[at + 1]);
    let Step::Select { labels, by, .. } = &select.step else { return false };
    let counted = matches!(next.step, Step::Reduce(Reduction::Count));
    let itself = by.iter().all(|by| *by == By::Identity);
    counted && itself && select.labels.is_empty() && are_sure(&steps[..at], labels)
}

/// Returns true if every row that leaves these steps has an object of each label on its path.
fn are_sure(before: &[StepNode], labels: &[Name]) -> bool {
    let mut missing: FastSet<&Name> = labels.iter().collect();
    for node in before.iter().rev() {
        node.labels.iter().for_each(|label| {
            missing.remove(label);
        });
        if missing.is_empty() || !keeps_paths(&node.step) {
            break;
        }
    }
    missing.is_empty()
}

/// Returns true if every row that leaves the step has the path of the row it comes from.
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
        | Step::Select { .. }
        | Step::Order(_) => true,
        Step::Repeat(repeat) => repeat.body.steps.iter().all(|node| keeps_paths(&node.step)),
        _ => false,
    }
}
