//! Conditions directly after `V()` or `E()` become conditions of the source, so that ids, labels or indexes find the
//! elements instead of a scan. Adjacent `has()` steps become one.

use crate::logical::{Step, StepNode, Traversal};
use crate::rules::Facts;

pub(super) fn apply(traversal: &mut Traversal, _facts: &Facts<'_>) -> bool {
    let before = traversal.steps.len();
    traversal.steps.dedup_by(fold);
    traversal.steps.len() < before
}

/// Folds a step into the one before it, if it consists of conditions and the step before can take them.
fn fold(next: &mut StepNode, node: &mut StepNode) -> bool {
    let Step::Has(more) = &mut next.step else { return false };
    let (Step::Vertices { conditions, .. } | Step::Edges { conditions, .. } | Step::Has(conditions)) = &mut node.step
    else {
        return false;
    };
    conditions.append(more);
    // A filter passes objects on, so its labels name the same objects as those of the source.
    node.labels.append(&mut next.labels);
    true
}
