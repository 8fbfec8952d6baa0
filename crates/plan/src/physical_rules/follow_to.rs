//! A hop and a comparison with a name become a search: `both().where(eq("a"))` looks for the edges to `a` and meets no
//! other neighbors.
//!
//! A search finds the value of a side effect under a name, too. So a comparison that looks for its name in the path
//! alone is not rewritten.

use crate::logical::Lookup;
use crate::physical::{EdgeTo, Op, Stage};
use crate::physical_rules::Facts;

pub(super) fn apply(stages: &mut Vec<Stage>, facts: &Facts<'_>) -> bool {
    let before = stages.len();
    stages.dedup_by(|next, stage| {
        if let (Op::Expand { direction, labels, to_edges: false }, Op::CompareName { equal: true, name, lookup }) =
            (&stage.operator, &next.operator)
            && !stage.labels.contains(name)
            && !(*lookup == Lookup::Path && (facts.is_side_effect)(name))
        {
            let edge = EdgeTo { direction: *direction, labels: labels.clone(), name: name.clone() };
            stage.operator = Op::FollowTo { edge, stays: false };
            stage.expected = next.expected;
            return true;
        }
        false
    });
    stages.len() < before
}
