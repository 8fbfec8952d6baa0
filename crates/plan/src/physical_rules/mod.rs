//! Rules that rewrite chains of operators into equivalent, cheaper ones, one rule a file.
//!
//! - **PLAN-8.** A rule, logical or physical, checks its own preconditions. No rule needs another one for its
//!   correctness, only for its effect.
//!
//! A chain is rewritten after the chains nested in it. The order of the rules matters for their effect: tests are dropped
//! before the operators around them are fused, and an optional hop loses its scope before a count is fused with it. A
//! search for an edge is found before it becomes a test for the edge, and the test before an intersection takes it in.
//! The rules that merge rows run last, on the outermost chain alone.

mod drop_dedup;
mod drop_label_tests;
mod follow_to;
mod fuse;
mod intersect;
mod merge_between_hops;
mod merge_in_loops;
mod optional_hop;
mod pass_early;
mod scan_sources;
mod search_from_both_ends;
mod search_from_here;
mod share_reductions;
mod take_degrees;
mod test_degrees;
mod test_for_edge;
mod walks;

use std::cell::Cell;

pub(crate) use drop_label_tests::Said;

use crate::connections::KnownConnections;
use crate::logical::{Condition, Name};
use crate::physical::{IndexAccess, Stage};

/// The facts about a traversal and its graph that rules may ask for.
pub(crate) struct Facts<'a> {
    /// True if the chain begins the outermost traversal: its source runs once, and not for each row that enters.
    pub is_first: bool,
    /// Returns true if a name stands for a side effect.
    pub is_side_effect: &'a dyn Fn(&Name) -> bool,
    /// Returns true if a name is the label of a step and nothing else, and no step shows paths. Then no result shows
    /// whether a row went to the object of that step once more.
    pub is_only_a_label: &'a dyn Fn(&Name) -> bool,
    /// The facts about edges, if the plan may rely on them.
    pub reliance: Option<Reliance<'a>>,
    /// How indexes find the vertices that meet some conditions, if they do.
    pub vertices_by_index: &'a dyn Fn(&[Condition]) -> Option<IndexAccess>,
}

/// The facts about edges that a plan may rely on, and what it relies on.
#[derive(Clone, Copy)]
pub(crate) struct Reliance<'a> {
    pub connections: &'a KnownConnections,
    pub said: &'a Said,
}

/// The chains that a rule may rewrite.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Every chain.
    Chain,
    /// Every chain of a traversal that does not write. In one that writes, reading again may give another result.
    ReadingChain,
    /// The outermost chain of a traversal in which it cannot be observed that one row stands for several traversers, or
    /// when each of them goes through the steps.
    Merging,
    /// The outermost chain of a traversal in which one row may stand for several traversers. Side effects may show when
    /// each of them goes through the steps.
    Passing,
}

/// A rule.
struct Rule {
    /// Its name, for `explain()`.
    name: &'static str,
    scope: Scope,
    /// Rewrites a chain. Returns true if it has changed something.
    apply: fn(&mut Vec<Stage>, &Facts<'_>) -> bool,
}

/// All rules, in order.
const RULES: &[Rule] = &[
    Rule { name: "drop label tests", scope: Scope::ReadingChain, apply: drop_label_tests::apply },
    Rule {
        name: "scan what has edges",
        scope: Scope::ReadingChain,
        apply: |stages, facts| scan_sources::apply(stages, facts),
    },
    Rule { name: "drop dedup", scope: Scope::ReadingChain, apply: drop_dedup::apply },
    Rule { name: "optional hop", scope: Scope::Chain, apply: |stages, _| optional_hop::apply(stages) },
    Rule { name: "fuse neighbors", scope: Scope::Chain, apply: fuse::apply },
    Rule { name: "share reductions", scope: Scope::Chain, apply: |stages, _| share_reductions::apply(stages) },
    Rule { name: "test degrees", scope: Scope::ReadingChain, apply: |stages, _| test_degrees::apply(stages) },
    Rule { name: "take degrees", scope: Scope::ReadingChain, apply: |stages, _| take_degrees::apply(stages) },
    Rule { name: "follow to a known vertex", scope: Scope::ReadingChain, apply: follow_to::apply },
    Rule { name: "search from here", scope: Scope::ReadingChain, apply: search_from_here::apply },
    Rule { name: "test for an edge", scope: Scope::ReadingChain, apply: test_for_edge::apply },
    Rule { name: "intersect neighbors", scope: Scope::ReadingChain, apply: intersect::apply },
    Rule {
        name: "search from both ends",
        scope: Scope::ReadingChain,
        apply: |stages, facts| search_from_both_ends::apply(stages, facts),
    },
    Rule { name: "merge between hops", scope: Scope::Merging, apply: merge_between_hops::apply },
    Rule { name: "merge in loops", scope: Scope::Merging, apply: |stages, _| merge_in_loops::merge_in_loops(stages) },
    Rule { name: "pass before a limit", scope: Scope::Passing, apply: |stages, _| pass_early::apply(stages) },
];

/// The names of all rules, in order.
pub(crate) fn names() -> impl Iterator<Item = &'static str> + Clone {
    RULES.iter().map(|rule| rule.name)
}

/// The rules of a plan: those that may be applied, and those that have changed something. Each has a bit, in the order
/// of the rules.
pub(crate) struct Applied {
    on: u32,
    changed: Cell<u32>,
}

impl Applied {
    /// No rule has changed anything yet. `off`: the names of the rules that are not applied.
    pub fn without(off: &[&str]) -> Self {
        let is_on = |(_, rule): &(usize, &Rule)| !off.contains(&rule.name);
        let on = RULES.iter().enumerate().filter(is_on).fold(0, |on, (number, _)| on | 1 << number);
        Applied { on, changed: Cell::new(0) }
    }

    /// Rewrites a chain.
    pub fn rewrite_chain(&self, stages: &mut Vec<Stage>, is_mutating: bool, facts: &Facts<'_>) {
        self.apply(stages, facts, |scope| scope == Scope::Chain || scope == Scope::ReadingChain && !is_mutating);
    }

    /// Applies the rules for the outermost chain. `shows_order`: side effects show in which order traversers go through
    /// the steps.
    pub fn merge(&self, stages: &mut Vec<Stage>, shows_order: bool, facts: &Facts<'_>) {
        self.apply(stages, facts, |scope| scope == Scope::Passing || scope == Scope::Merging && !shows_order);
    }

    fn apply(&self, stages: &mut Vec<Stage>, facts: &Facts<'_>, is_wanted: impl Fn(Scope) -> bool) {
        for (number, rule) in RULES.iter().enumerate() {
            let bit = 1 << number;
            if self.on & bit != 0 && is_wanted(rule.scope) && (rule.apply)(stages, facts) {
                self.changed.set(self.changed.get() | bit);
            }
        }
    }

    /// The names of the rules that have changed something, in their order.
    pub fn names(&self) -> Vec<&'static str> {
        let changed = |(number, _): &(usize, &Rule)| self.changed.get() & 1 << number != 0;
        RULES.iter().enumerate().filter(changed).map(|(_, rule)| rule.name).collect()
    }
}
