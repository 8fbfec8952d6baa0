//! Conditions of an element come before the other filters of that element.
//!
//! `V().where(out("knows")).has("name", "ada")` tests the name first: that is cheap, leaves few rows to the other
//! filter, and may become a look-up in an index. Conditions also come before `dedup()` and `order()`, which then see fewer
//! rows.
//!
//! A condition is a fact about the element alone and never fails. So the steps in front of it pass the same elements on,
//! in the same order, and may fail for fewer of them. Nothing moves if it can be observed how often a step runs.

use crate::logical::{By, Effect, Step, StepNode, Traversal};
use crate::purity::{is_repeatable, is_row_by_row};
use crate::rules::Facts;

pub(super) fn apply(traversal: &mut Traversal, facts: &Facts<'_>) -> bool {
    if facts.work_shows {
        return false;
    }
    let steps = &mut traversal.steps;
    let mut changed = false;
    // The steps from here to the current one all pass elements on.
    let mut begin = None;
    for at in 0..steps.len() {
        match begin {
            Some(first) if is_condition(&steps[at]) => {
                changed |= first < at;
                steps[first..=at].rotate_right(1);
                begin = Some(first + 1);
            }
            Some(_) if is_passed(&steps[at]) => {}
            _ => begin = gives_elements(&steps[at].step).then_some(at + 1),
        }
    }
    changed
}

fn is_condition(node: &StepNode) -> bool {
    matches!(node.step, Step::Has(_)) && node.labels.is_empty()
}

/// Returns true if all results of a step are vertices or edges.
fn gives_elements(step: &Step) -> bool {
    matches!(
        step,
        Step::Vertices { .. } | Step::Edges { .. } | Step::Expand { .. } | Step::EdgeVertex(_) | Step::Has(_)
    )
}

/// Returns true if a condition of an element may come before a step instead of after it.
fn is_passed(node: &StepNode) -> bool {
    if !node.policy.is_default() {
        return false;
    }
    match &node.step {
        Step::FilterTraversal(..) | Step::WherePredicate { .. } | Step::Identity => is_row_by_row(&node.step),
        Step::Dedup { labels, by } => labels.is_empty() && by.iter().all(is_of_object),
        Step::Order(criteria) => {
            node.step.traits().effect == Effect::None && criteria.iter().all(|criterion| is_of_object(&criterion.by))
        }
        _ => false,
    }
}

/// Returns true if a `by()` depends on the object alone, and it does not show how often it runs.
fn is_of_object(by: &By) -> bool {
    match by {
        By::Traversal(traversal) => is_repeatable(traversal),
        _ => true,
    }
}
