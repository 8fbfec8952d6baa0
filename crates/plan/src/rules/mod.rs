//! Rules that rewrite a logical traversal into an equivalent, cheaper one, one rule a file (PLAN-8).
//!
//! The order of [`RULES`] matters for their effect: filters are simplified and taken out of filters before conditions
//! are folded into a source.

mod conditions_first;
mod count_to_existence;
mod drop_uncounted_select;
mod fold_alternatives;
mod fold_conditions;
mod hop_over_edges;
mod inline_filters;
mod nested;
mod search;
mod unroll_cut_loops;
mod walk_to_tests;

use crate::literals::Literals;
use crate::logical::{Configuration, Traversal};
use crate::physical::PathRequirement;

/// The facts about a whole traversal that rules may ask for.
pub struct Facts<'a> {
    /// The parts of paths that results show.
    path: PathRequirement,
    /// True if it can be observed in which order rows are worked on, or that equal rows become one: the traversal
    /// writes, fills side effects, has sacks or bulks of its own, or asks for a policy.
    work_shows: bool,
    /// True if a `by()` without a result gives null.
    productive_by: bool,
    /// The literals that were taken out of the traversal.
    literals: &'a Literals<'a>,
}

/// A rule, with its name for `explain()`.
pub struct Rule {
    /// The name.
    pub name: &'static str,
    /// Rewrites one chain. Returns true if it has changed something. [`rewrite`] visits the nested chains.
    pub apply: fn(&mut Traversal, &Facts<'_>) -> bool,
    /// False if it is applied to the outermost chain only.
    pub everywhere: bool,
}

/// All rules, in order.
pub const RULES: &[Rule] = &[
    Rule { name: "simplify tests of existence", apply: count_to_existence::apply, everywhere: true },
    Rule { name: "drop what is only counted", apply: drop_uncounted_select::apply, everywhere: true },
    Rule { name: "inline filters", apply: inline_filters::apply, everywhere: true },
    Rule { name: "fold alternatives", apply: fold_alternatives::apply, everywhere: true },
    Rule { name: "conditions first", apply: conditions_first::apply, everywhere: true },
    Rule { name: "hop over edges", apply: hop_over_edges::apply, everywhere: true },
    Rule { name: "walk to tests", apply: walk_to_tests::apply, everywhere: true },
    Rule { name: "search for the first arrival", apply: search::apply, everywhere: false },
    Rule { name: "unroll loops before a limit", apply: unroll_cut_loops::apply, everywhere: false },
    Rule { name: "fold conditions into the source", apply: fold_conditions::apply, everywhere: true },
];

/// Applies all rules to a traversal and to the traversals nested in it. Returns the names of those that have changed
/// something.
pub fn rewrite(traversal: &mut Traversal, configuration: &Configuration) -> Vec<&'static str> {
    rewrite_with(traversal, configuration, &Literals::default())
}

/// As [`rewrite`], for a traversal from which these literals were taken out. They remember what was asked about them.
pub fn rewrite_with(
    traversal: &mut Traversal,
    configuration: &Configuration,
    literals: &Literals<'_>,
) -> Vec<&'static str> {
    // otherV() reads the path, but does not show it: a rule may replace it and the step before it by one hop.
    let effects = traversal.effects();
    let path = if configuration.path || effects.shows_paths { PathRequirement::Full } else { PathRequirement::None };
    let Configuration { policy, sack, one_bulk, productive_by, .. } = configuration;
    let is_configured = !policy.is_default() || sack.is_some() || *one_bulk;
    let work_shows = is_configured || effects.is_mutating || effects.uses_side_effects;
    let facts = Facts { path, work_shows, productive_by: productive_by.is_some(), literals };
    let is_on = |rule: &&Rule| !configuration.rules_off.contains(&rule.name);
    let mut changes = |rule: &&Rule| nested::apply_everywhere(traversal, rule, &facts);
    RULES.iter().filter(is_on).filter(|rule| changes(rule)).map(|rule| rule.name).collect()
}
