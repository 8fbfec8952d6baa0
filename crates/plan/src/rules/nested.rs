//! Applying a rule to every chain of a traversal.

use crate::logical::Traversal;
use crate::physical::PathRequirement;
use crate::rules::Rule;

/// Applies a rule to a chain, then to all chains nested in it. Returns true if one of them has changed.
pub fn apply_everywhere(traversal: &mut Traversal, rule: &Rule, path: &PathRequirement) -> bool {
    let mut changed = (rule.apply)(traversal, path);
    for node in &mut traversal.steps {
        node.step.visit_nested_mut(&mut |_, nested| changed |= apply_everywhere(nested, rule, path));
    }
    changed
}
