//! A scope that asks whether there is an edge to a known vertex becomes a test without a scope:
//! `where(both().where(eq("a")))`.

use crate::logical::FilterKind;
use crate::physical::{LocalKind, Op, Stage};
use crate::physical_rules::Facts;

pub(super) fn apply(stages: &mut Vec<Stage>, _facts: &Facts<'_>) -> bool {
    let mut changed = false;
    for stage in stages {
        if let Some(test) = test_of_edge(&stage.operator) {
            stage.operator = test;
            changed = true;
        }
    }
    changed
}

/// The test for an edge that replaces a scope, if the scope asks for nothing else.
fn test_of_edge(operator: &Op) -> Option<Op> {
    let Op::Local(scope) = operator else { return None };
    if scope.scheduling.is_of_step {
        return None;
    }
    let LocalKind::Filter(kind @ (FilterKind::All | FilterKind::None), pipelines) = &scope.kind else { return None };
    let [pipeline] = &pipelines[..] else { return None };
    match &pipeline.stages[..] {
        [Stage { operator: Op::FollowTo { edge, .. }, labels, .. }] if labels.is_empty() => {
            Some(Op::HasEdgeTo { edge: edge.clone(), negate: *kind == FilterKind::None })
        }
        _ => None,
    }
}
