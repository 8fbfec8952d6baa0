//! Conditions right behind `V()` or `E()` become the source's own, so that ids, labels and indexes find
//! the elements instead of a scan; adjacent `has()` steps become one.

use crate::logical::{Step, StepNode, Traversal};
use crate::physical::PathRequirement;

pub(super) fn apply(traversal: &mut Traversal, _path: &PathRequirement) -> bool {
    let mut changed = false;
    let mut at = 0;
    while at + 1 < traversal.steps.len() {
        if fold(&mut traversal.steps, at) {
            changed = true;
        } else {
            at += 1;
        }
    }
    changed
}

/// Folds the step behind `at` into the one at `at`, if it is a condition and can be.
fn fold(steps: &mut Vec<StepNode>, at: usize) -> bool {
    if !matches!(steps[at + 1].step, Step::Has(_))
        || !matches!(steps[at].step, Step::Vertices { .. } | Step::Edges { .. } | Step::Has(_))
    {
        return false;
    }
    let StepNode { step: Step::Has(more), labels, .. } = steps.remove(at + 1) else { return false };
    let node = &mut steps[at];
    if let Step::Vertices { conditions, .. } | Step::Edges { conditions, .. } | Step::Has(conditions) = &mut node.step {
        conditions.extend(more);
    }
    // A filter passes the same object on, so its labels name the same thing.
    node.labels.extend(labels);
    true
}
