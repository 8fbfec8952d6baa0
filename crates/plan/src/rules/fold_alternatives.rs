//! `or(has(…), has(…))` is one condition with branches, if every operand consists of conditions alone. It is tested
//! without a scope, and it can become a condition of a source, which indexes of all branches then answer.

use crate::logical::{Condition, FilterKind, Step, StepNode, Traversal};
use crate::rules::Facts;

pub(super) fn apply(traversal: &mut Traversal, _facts: &Facts<'_>) -> bool {
    let mut changed = false;
    for node in &mut traversal.steps {
        if let Some(condition) = alternatives(node) {
            node.step = Step::Has(vec![condition]);
            changed = true;
        }
    }
    changed
}

/// The condition that does the same as an `or()`.
fn alternatives(node: &StepNode) -> Option<Condition> {
    let Step::FilterTraversal(FilterKind::Any, operands) = &node.step else { return None };
    if !node.policy.is_default() || operands.is_empty() {
        return None;
    }
    operands.iter().map(conditions).collect::<Option<_>>().map(Condition::AnyOf)
}

/// The conditions that a traversal consists of.
fn conditions(traversal: &Traversal) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    for node in &traversal.steps {
        match &node.step {
            _ if !node.labels.is_empty() => return None,
            Step::Has(more) => conditions.extend(more.iter().cloned()),
            _ => conditions.push(alternatives(node)?),
        }
    }
    (!conditions.is_empty()).then_some(conditions)
}
