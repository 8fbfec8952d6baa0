//! Helpers of the merging rules: which operators follow edges, and where a chain may merge rows before them.

use crate::physical::{Computation, LocalKind, LoopTest, Op, Pipeline, Stage};

/// Inserts operators into a chain, each before a position. The positions ascend.
pub(super) fn insert(stages: &mut Vec<Stage>, operators: Vec<(usize, Op)>) -> bool {
    if operators.is_empty() {
        return false;
    }
    let mut all = Vec::with_capacity(stages.len() + operators.len());
    let mut left = operators.into_iter().peekable();
    for (at, stage) in std::mem::take(stages).into_iter().enumerate() {
        if let Some((_, operator)) = left.next_if(|(position, _)| *position == at) {
            all.push(Stage::new(operator));
        }
        all.push(stage);
    }
    *stages = all;
    true
}

/// Returns true for a test that follows edges itself, and whose answer for a row does not depend on how often it runs.
pub(super) fn is_walking_test(operator: &Op) -> bool {
    let Op::Local(scope) = operator else { return false };
    let LocalKind::Filter(_, pipelines) = &scope.kind else { return false };
    !scope.serial && pipelines.iter().all(may_run_once) && pipelines.iter().any(walks)
}

pub(super) fn walks(pipeline: &Pipeline) -> bool {
    pipeline.stages.iter().any(|stage| match &stage.operator {
        Op::Vertices { .. } | Op::Edges { .. } => true,
        operator => operator.is_hop(),
    })
}

/// Returns true if it makes no difference how often an operator runs: it writes nothing, fills no side effects, calls
/// no service and draws no random numbers. Nested pipelines must consist of plain tests.
pub(super) fn may_run_once(pipeline: &Pipeline) -> bool {
    pipeline.stages.iter().all(|stage| match &stage.operator {
        Op::Repeat(repeat) => {
            let plain = |test: &Option<LoopTest>| match test {
                Some(LoopTest::Exists(test)) => may_run_once(test),
                Some(LoopTest::Always | LoopTest::Times(_) | LoopTest::Test(_)) | None => true,
            };
            may_run_once(&repeat.body) && plain(&repeat.until) && plain(&repeat.emit)
        }
        Op::Union(branches) => branches.iter().all(may_run_once),
        Op::Local(scope) => match &scope.kind {
            LocalKind::Filter(_, pipelines) => !scope.serial && pipelines.iter().all(may_run_once),
            LocalKind::FlatMap { .. } | LocalKind::SideEffect(_) => false,
        },
        Op::Modulate(modulate) => {
            modulate.by.iter().all(|by| !matches!(by, Computation::First(_) | Computation::Exists(_)))
        }
        Op::Switch { .. } | Op::Ordered { .. } => false,
        operator => operator.is_repeatable(),
    })
}
