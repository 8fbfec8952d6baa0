//! Conditions right behind `V()` or `E()` become the source's own, so that ids, labels and indexes find
//! the elements instead of a scan; adjacent `has()` steps become one.

use crate::logical::{Step, StepNode, Traversal};
use crate::physical::PathRequirement;

pub(super) fn apply(traversal: &mut Traversal, _path: &PathRequirement) -> bool {
    let before = traversal.steps.len();
    traversal.steps.dedup_by(fold);
    traversal.steps.len() < before
}

/// Folds a step into the one before it, if it is a condition and can be.
fn fold(next: &mut StepNode, node: &mut StepNode) -> bool {
    let Step::Has(more) = &mut next.step else { return false };
    let (Step::Vertices { conditions, .. } | Step::Edges { conditions, .. } | Step::Has(conditions)) = &mut node.step
    else {
        return false;
    };
    conditions.append(more);
    // A filter passes the same object on, so its labels name the same thing.
    node.labels.append(&mut next.labels);
    true
}
