//! An operand of a filter that consists of filters alone needs no scope: `where(has(…))`, `and(has(…), is(…))`,
//! `filter(not(…))`. Its filters are moved into the chain, where conditions can be collected and folded into a source.
//! `not(has("k"))` becomes `hasNot("k")`.

use crate::logical::{Condition, FilterKind, Step, StepNode, Traversal};
use crate::rules::Facts;

pub(super) fn apply(traversal: &mut Traversal, _facts: &Facts<'_>) -> bool {
    if !traversal.steps.iter().any(|node| matches!(node.step, Step::FilterTraversal(..))) {
        return false;
    }
    let mut changed = false;
    let mut left = std::mem::take(&mut traversal.steps);
    left.reverse();
    while let Some(mut node) = left.pop() {
        match inlined(&mut node) {
            // The filters moved in are looked at again: they may have such operands themselves.
            Some(filters) => {
                left.extend(filters.into_iter().rev());
                changed = true;
            }
            None => traversal.steps.push(node),
        }
    }
    changed
}

/// The filters that together do the same as the step. The last gets its labels.
fn inlined(node: &mut StepNode) -> Option<Vec<StepNode>> {
    if !node.policy.is_default() {
        return None;
    }
    let Step::FilterTraversal(kind, operands) = &mut node.step else { return None };
    let mut filters: Vec<StepNode> = match (*kind, &mut operands[..]) {
        (FilterKind::None, [Traversal { steps }]) => {
            let [StepNode { step: Step::Has(conditions), labels, position, .. }] = &steps[..] else { return None };
            let ([Condition::HasKey(key)], true) = (&conditions[..], labels.is_empty()) else { return None };
            let step = Step::Has(vec![Condition::HasNot(key.clone())]);
            vec![StepNode::new(step, *position)]
        }
        (FilterKind::All, operands) if operands.iter().any(is_filters_only) => {
            operands.iter_mut().flat_map(|operand| in_place(operand, node.position)).collect()
        }
        _ => return None,
    };
    filters.last_mut()?.labels.append(&mut node.labels);
    Some(filters)
}

/// An operand that every row must pass, as steps of the chain.
fn in_place(operand: &mut Traversal, position: Option<mangrove_gremlin::Position>) -> Vec<StepNode> {
    if is_filters_only(operand) {
        return std::mem::take(&mut operand.steps);
    }
    let step = Step::FilterTraversal(FilterKind::All, vec![std::mem::take(operand)]);
    vec![StepNode::new(step, position)]
}

/// Returns true if a traversal passes each row on unchanged or drops it.
fn is_filters_only(traversal: &Traversal) -> bool {
    let filters = |node: &StepNode| {
        node.labels.is_empty() && matches!(node.step, Step::Has(_) | Step::Is(_) | Step::FilterTraversal(..))
    };
    !traversal.steps.is_empty() && traversal.steps.iter().all(filters)
}
