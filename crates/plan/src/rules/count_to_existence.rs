//! `where(t.count().is(0))` asks whether `t` has no result, and `where(t.count().is(gt(0)))` whether it has one. The
//! first result answers both, so nothing is counted. A `t` that writes or fills side effects is left alone, since later
//! steps may see them.

use mangrove_gremlin::Comparison;

use crate::literals::Literals;
use crate::logical::{FilterKind, Reduction, Step, StepNode, Test, Traversal};
use crate::rules::Facts;

pub(super) fn apply(traversal: &mut Traversal, facts: &Facts<'_>) -> bool {
    let mut changed = false;
    for node in &mut traversal.steps {
        for asked in node.step.only_asked_whether() {
            changed |= rewrite(asked, facts.literals);
        }
        if let Step::FilterTraversal(kind, operands) = &mut node.step
            && let Some((inner_kind, inner)) = nested(*kind, operands)
        {
            (*kind, *operands) = (inner_kind, inner);
            changed = true;
        }
    }
    changed
}

/// Rewrites a traversal of which only matters whether it has a result, if it ends in a test of a count.
fn rewrite(operand: &mut Traversal, literals: &Literals<'_>) -> bool {
    let Some(some) = tests_existence(operand, literals) else { return false };
    operand.steps.truncate(operand.steps.len() - 2);
    if !some {
        let inner = std::mem::take(operand);
        let step = Step::FilterTraversal(FilterKind::None, vec![inner]);
        operand.steps.push(StepNode::new(step, None));
    }
    true
}

/// `Some(true)` if the traversal ends in a count that must be at least one, `Some(false)` if the count must be zero.
fn tests_existence(traversal: &Traversal, literals: &Literals<'_>) -> Option<bool> {
    let [_, .., count, is] = &traversal.steps[..] else { return None };
    let (Step::Reduce(Reduction::Count), Step::Is(Test::Compare(comparison, bound))) = (&count.step, &is.step) else {
        return None;
    };
    let labeled = !count.labels.is_empty() || !is.labels.is_empty();
    let effects = traversal.effects();
    if labeled || effects.is_mutating || effects.uses_side_effects {
        return None;
    }
    let (number, some) = match comparison {
        Comparison::Gt | Comparison::Neq => (0, true),
        Comparison::Gte => (1, true),
        Comparison::Eq | Comparison::Lte => (0, false),
        Comparison::Lt => (1, false),
    };
    literals.is(bound, number).then_some(some)
}

/// Replaces a filter whose only operand is a filter by that filter, or by its negation.
fn nested(kind: FilterKind, operands: &mut [Traversal]) -> Option<(FilterKind, Vec<Traversal>)> {
    let [Traversal { steps }] = operands else { return None };
    let [StepNode { step: Step::FilterTraversal(inner_kind, inner), labels, policy, .. }] = &mut steps[..] else {
        return None;
    };
    if !labels.is_empty() || !policy.is_default() {
        return None;
    }
    let combined = match (kind, *inner_kind, inner.len()) {
        (FilterKind::All | FilterKind::Any, kind, _) => kind,
        (FilterKind::None, FilterKind::None, 1) => FilterKind::All,
        (FilterKind::None, FilterKind::Any, _) => FilterKind::None,
        (FilterKind::None, FilterKind::All, 1) => FilterKind::None,
        (FilterKind::None, FilterKind::None, _) => FilterKind::Any,
        (FilterKind::None, FilterKind::All, _) => return None,
    };
    Some((combined, std::mem::take(inner)))
}
