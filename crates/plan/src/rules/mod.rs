//! Rules that rewrite a logical traversal into an equivalent, cheaper one.
//!
//! The order of [`RULES`] matters: filters are made simpler and taken out of filters before conditions are
//! folded into a source. Every rule holds its own preconditions; none depends on
//! another having run for its correctness, only for its effect.

mod count_to_existence;
mod drop_uncounted_select;
mod fold_conditions;
mod hop_over_edges;
mod inline_filters;
mod nested;
mod walk_to_tests;

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
    Rule { name: "simplify tests of existence", apply: count_to_existence::apply },
    Rule { name: "drop what is only counted", apply: drop_uncounted_select::apply },
    Rule { name: "inline filters", apply: inline_filters::apply },
    Rule { name: "hop over edges", apply: hop_over_edges::apply },
    Rule { name: "walk to tests", apply: walk_to_tests::apply },
    Rule { name: "fold conditions into the source", apply: fold_conditions::apply },
];

/// Applies all rules to a traversal and everything nested in it; the names of those that changed something.
pub fn rewrite(traversal: &mut Traversal, configuration: &Configuration) -> Vec<&'static str> {
    // otherV() needs the whole path only until it is hopped over: it does not keep the rules from doing so.
    let path = crate::requirements::path_shown(traversal, configuration);
    RULES.iter().filter(|rule| nested::apply_everywhere(traversal, rule, &path)).map(|rule| rule.name).collect()
}
