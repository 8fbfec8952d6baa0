//! A scope that follows edges, or else passes its row on, becomes an operator without a scope: `optional(out())`.
//!
//! A scope opens a group for each message and joins the results with their rows, on the home of the query. An operator
//! without state does neither, and every thread may run it.

use crate::physical::{LocalKind, Op, Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    let mut changed = false;
    for stage in stages {
        if let Some(hop) = optional_hop(&stage.operator) {
            *stage = hop;
            changed = true;
        }
    }
    changed
}

/// The operator that replaces a scope, if one hop is all that runs in the scope. The labels of the hop are those of its
/// results. A row that stays gets none: the labels of the scope itself are on an operator after it, since a scope that
/// keeps the inner path makes no objects.
fn optional_hop(operator: &Op) -> Option<Stage> {
    let Op::Local(scope) = operator else { return None };
    let LocalKind::FlatMap { pipelines, first: false, otherwise_row: true, inner_path: true } = &scope.kind else {
        return None;
    };
    if scope.scheduling.is_of_step || scope.serial {
        return None;
    }
    let [pipeline] = &pipelines[..] else { return None };
    let [Stage { operator: Op::Expand { direction, labels, to_edges }, labels: marks, .. }] = &pipeline.stages[..]
    else {
        return None;
    };
    let hop = Op::OptionalExpand { direction: *direction, labels: labels.clone(), to_edges: *to_edges };
    Some(Stage::labeled(hop, marks.clone()))
}
