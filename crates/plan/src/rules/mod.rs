//! Rules that rewrite a logical traversal into an equivalent, cheaper one.
//!
//! The order of [`RULES`] matters: conditions are gathered before they are folded into a source, edges are
//! hopped over before anything looks for hops. Every rule holds its own preconditions; none depends on
//! another having run for its correctness, only for its effect.

mod fold_conditions;
mod hop_over_edges;
mod nested;

use crate::logical::{Configuration, Traversal};
use crate::physical::PathRequirement;

/// A rule: its name, for `explain()`, and what it does to one chain of steps.
pub struct Rule {
    /// The name.
    pub name: &'static str,
    /// Rewrites one chain; true if it changed something. Nested chains are visited by the driver.
    pub apply: fn(&mut Traversal, &PathRequirement) -> bool,
}

/// All rules, in order.
pub const RULES: &[Rule] = &[
    Rule { name: "hop over edges", apply: hop_over_edges::apply },
    Rule { name: "fold conditions into the source", apply: fold_conditions::apply },
];

/// Applies all rules to a traversal and everything nested in it; the names of those that changed something.
pub fn rewrite(traversal: &mut Traversal, configuration: &Configuration) -> Vec<&'static str> {
    // otherV() needs the whole path only until it is hopped over: it does not keep the rules from doing so.
    let path = crate::requirements::path_shown(traversal, configuration);
    RULES.iter().filter(|rule| nested::apply_everywhere(traversal, rule, &path)).map(|rule| rule.name).collect()
}
