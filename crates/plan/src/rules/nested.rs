//! Applying a rule to every chain of a traversal.

use crate::logical::Traversal;
use crate::rules::{Facts, Rule};

/// Applies a rule to a chain, then, if it is for all chains, to those nested in it. Returns true if one of them has changed.
pub fn apply_everywhere(traversal: &mut Traversal, rule: &Rule, facts: &Facts<'_>) -> bool {
    let mut changed = (rule.apply)(traversal, facts);
    if !rule.everywhere {
        return changed;
    }
    for node in &mut traversal.steps {
        node.step.visit_nested_mut(&mut |_, nested| changed |= apply_everywhere(nested, rule, facts));
    }
    changed
}
