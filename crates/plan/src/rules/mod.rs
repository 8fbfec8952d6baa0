//! Rules that rewrite a logical traversal into an equivalent, cheaper one, one rule a file (PLAN-8).
//!
//! The order of [`RULES`] matters for their effect: filters are simplified and taken out of filters before conditions
//! are folded into a source.

mod count_to_existence;
mod drop_uncounted_select;
mod fold_conditions;
mod hop_over_edges;
mod inline_filters;
mod nested;
mod walk_to_tests;

use crate::logical::{Configuration, Traversal};
use crate::physical::PathRequirement;

/// A rule, with its name for `explain()`.
pub struct Rule {
    /// The name.
    pub name: &'static str,
    /// Rewrites one chain. Returns true if it has changed something. [`rewrite`] visits the nested chains.
    pub apply: fn(&mut Traversal, &PathRequirement) -> bool,
}

/// All rules, in order.
pub const RULES: &[Rule] = &[
    Rule { name: "simplify tests of existence", apply: count_to_existence::apply },
    Rule { name: "drop what is only counted", apply: drop_uncounted_select::apply },
    Rule { name: "inline filters", apply: inline_filters::apply },
    Rule { name: "hop over edges", apply: hop_over_edges::apply },
    Rule { name: "walk to tests", apply: walk_to_tests::apply },
    Rule { name: "fold conditions into the source", apply: fold_conditions::apply },
];

/// Applies all rules to a traversal and to the traversals nested in it. Returns the names of those that have changed
/// something.
pub fn rewrite(traversal: &mut Traversal, configuration: &Configuration) -> Vec<&'static str> {
    // otherV() reads the path, but does not show it: a rule may replace it and the step before it by one hop.
    let path = crate::requirements::path_shown(traversal, configuration);
    RULES.iter().filter(|rule| nested::apply_everywhere(traversal, rule, &path)).map(|rule| rule.name).collect()
}
