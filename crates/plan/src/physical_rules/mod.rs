//! Rules that rewrite chains of operators into equivalent, cheaper ones, one rule a file.
//!
//! A chain is rewritten after the chains nested in it, by the rules in their order: a search for an edge is found before a
//! test for one is made of it, and a test before an intersection takes it in. The rules that merge rows run in the end, on the
//! outermost chain alone.

mod follow_to;
mod fuse;
mod intersect;
mod merge_between_hops;
mod merge_in_loops;
mod search_from_here;
mod test_for_edge;
mod walks;

use std::cell::Cell;

use crate::logical::Name;
use crate::physical::Stage;

/// What rules may ask of the names in a traversal.
pub(crate) struct Names<'a> {
    /// Returns true if a name stands for a side effect.
    pub is_side_effect: &'a dyn Fn(&Name) -> bool,
    /// Returns true if a name is the label of a step and nothing else, and paths are not shown: then no result tells
    /// whether a row went to that step's object once more.
    pub is_only_a_label: &'a dyn Fn(&Name) -> bool,
}

/// Which plans a rule is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    /// Every chain.
    Chain,
    /// Every chain of a traversal that does not write: what was read once may be something else the next time.
    ReadingChain,
    /// The outermost chain of a traversal in which rows that stand for several traversers can be told from them by nothing.
    Merging,
}

/// A rule.
struct Rule {
    /// Its name, for `explain()`.
    name: &'static str,
    scope: Scope,
    /// Rewrites a chain; true if it changed something.
    apply: fn(&mut Vec<Stage>, &Names<'_>) -> bool,
}

/// All rules, in order.
const RULES: &[Rule] = &[
    Rule { name: "fuse neighbors", scope: Scope::Chain, apply: fuse::apply },
    Rule { name: "follow to a known vertex", scope: Scope::ReadingChain, apply: follow_to::apply },
    Rule { name: "search from here", scope: Scope::ReadingChain, apply: search_from_here::apply },
    Rule { name: "test for an edge", scope: Scope::ReadingChain, apply: test_for_edge::apply },
    Rule { name: "intersect neighbors", scope: Scope::ReadingChain, apply: intersect::apply },
    Rule { name: "merge between hops", scope: Scope::Merging, apply: merge_between_hops::apply },
    Rule { name: "merge in loops", scope: Scope::Merging, apply: |stages, _| merge_in_loops::merge_in_loops(stages) },
];

/// Which rules have changed something in a plan: a bit each, in their order.
#[derive(Default)]
pub(crate) struct Applied(Cell<u32>);

impl Applied {
    /// Rewrites a chain.
    pub fn rewrite_chain(&self, stages: &mut Vec<Stage>, is_mutating: bool, names: &Names<'_>) {
        self.apply(stages, names, |scope| scope == Scope::Chain || scope == Scope::ReadingChain && !is_mutating);
    }

    /// Merges rows in the outermost chain.
    pub fn merge(&self, stages: &mut Vec<Stage>, names: &Names<'_>) {
        self.apply(stages, names, |scope| scope == Scope::Merging);
    }

    fn apply(&self, stages: &mut Vec<Stage>, names: &Names<'_>, is_wanted: impl Fn(Scope) -> bool) {
        for (number, rule) in RULES.iter().enumerate() {
            if is_wanted(rule.scope) && (rule.apply)(stages, names) {
                self.0.set(self.0.get() | 1 << number);
            }
        }
    }

    /// The names of the rules that changed something, in their order.
    pub fn names(&self) -> Vec<&'static str> {
        let changed = |(number, _): &(usize, &Rule)| self.0.get() & 1 << number != 0;
        RULES.iter().enumerate().filter(changed).map(|(_, rule)| rule.name).collect()
    }
}
