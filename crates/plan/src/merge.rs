//! Where equal rows are worth merging on their way.
//!
//! Two hops from many vertices meet the same vertex again and again; one row with a bulk does for all of
//! them. So before every hop but the first, rows are merged, as long as nobody can tell: rows remember no
//! path, and what reads them in the end counts by bulk and has no use for their order. A stream that is cut
//! (`limit()`), sorted or handed out as it comes is left alone: merging would only hold it up.
//!
//! Where `dedup()` ends the stretch, rows are not merged but deduplicated before every hop: how often one comes is all the same
//! then, and each vertex is walked from once a hop, not once every some thousand rows.
//!
//! A test that walks itself (`where(in().out())`) costs as much as hops do, and equal rows pass it or fail it together:
//! before it, rows are merged as before a hop. In the body of a loop that is so whatever follows, since what an
//! iteration leaves behind is merged anyhow; so is the end of a body, where the loop itself asks such a test.

use crate::logical::{Operand, Reduction};
use crate::physical::{Access, LocalKind, LoopTest, Op, Pipeline, SlotBy, Stage};

/// Puts [`Op::Merge`] between the hops of a chain.
pub fn merge_between_hops(stages: &mut Vec<Stage>) {
    let mut at = 0;
    let mut merges = Vec::new();
    // The neighbors of one vertex differ already.
    let mut apart = if starts_at_one_vertex(stages) { 2 } else { 1 };
    while at < stages.len() {
        let end = (at..stages.len()).find(|&i| ends_stretch(&stages[i].operator)).unwrap_or(stages.len());
        if stages.get(end).is_some_and(|s| counts_by_bulk(&s.operator)) {
            merges.extend(merges_of_stretch(stages, at, end, apart));
        }
        apart = 1;
        at = end + 1;
    }
    insert(stages, merges);
}

/// Puts operators before the places they are given with, which ascend.
fn insert(stages: &mut Vec<Stage>, operators: Vec<(usize, Op)>) {
    if operators.is_empty() {
        return;
    }
    let mut all = Vec::with_capacity(stages.len() + operators.len());
    let mut left = operators.into_iter().peekable();
    for (at, stage) in std::mem::take(stages).into_iter().enumerate() {
        if let Some((_, operator)) = left.next_if(|(place, _)| *place == at) {
            all.push(Stage { operator, labels: Vec::new() });
        }
        all.push(stage);
    }
    *stages = all;
}

fn starts_at_one_vertex(stages: &[Stage]) -> bool {
    match stages.first().map(|stage| &stage.operator) {
        Some(Op::Vertices { access: Access::Ids(ids) | Access::IdSet(ids), .. }) => {
            // A parameter may be a list, but is a single id nearly always.
            matches!(ids[..], [Operand::Literal(_) | Operand::Lifted(_) | Operand::Parameter(_)])
        }
        _ => false,
    }
}

/// Puts [`Op::Merge`] before the tests in the bodies of loops, and between them and the loops' own tests.
pub fn merge_in_loops(stages: &mut [Stage]) {
    for stage in stages {
        match &mut stage.operator {
            Op::Repeat(repeat) => {
                let asks = |test: &Option<LoopTest>| matches!(test, Some(LoopTest::Exists(test)) if may_run_once(test) && walks(test));
                let is_tested = asks(&repeat.until) && !repeat.until_first || asks(&repeat.emit) && !repeat.emit_first;
                merge_in_loops(&mut repeat.body.stages);
                merge_before_tests(&mut repeat.body.stages, is_tested);
            }
            Op::Union(branches) => branches.iter_mut().for_each(|branch| merge_in_loops(&mut branch.stages)),
            Op::Switch { options, .. } => options.iter_mut().for_each(|(_, branch)| merge_in_loops(&mut branch.stages)),
            _ => {}
        }
    }
}

/// Merges where rows have come from a hop and are to be tested: in a body, and (`is_tested`) at its end.
fn merge_before_tests(stages: &mut Vec<Stage>, is_tested: bool) {
    let mut may_be_equal = false;
    let mut merges = Vec::new();
    for (at, Stage { operator, .. }) in stages.iter().enumerate() {
        if may_be_equal && is_walking_test(operator) {
            merges.push((at, Op::Merge));
            may_be_equal = false;
        } else if is_hop(operator) {
            may_be_equal = true;
        } else if operator.keeps_state() {
            may_be_equal = false;
        }
    }
    insert(stages, merges);
    if is_tested && may_be_equal {
        stages.push(Stage { operator: Op::Merge, labels: Vec::new() });
    }
}

/// Whether it is a test that takes hops of its own, and whose answer for a row is the same however often it is asked.
fn is_walking_test(operator: &Op) -> bool {
    let Op::Local(scope) = operator else { return false };
    let LocalKind::Filter(_, pipelines) = &scope.kind else { return false };
    !scope.serial && pipelines.iter().all(may_run_once) && pipelines.iter().any(walks)
}

fn walks(pipeline: &Pipeline) -> bool {
    pipeline.stages.iter().any(|stage| match &stage.operator {
        Op::Vertices { .. } | Op::Edges { .. } => true,
        operator => is_hop(operator),
    })
}

/// Returns true if it makes no difference how often it runs: it writes nothing, keeps no side effects, calls no service and
/// leaves nothing to chance. What is nested in it must be plain tests.
fn may_run_once(pipeline: &Pipeline) -> bool {
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
        Op::Modulate(modulate) => modulate.by.iter().all(|by| !matches!(by, SlotBy::First(_) | SlotBy::Exists(_))),
        Op::Switch { .. } | Op::Ordered { .. } => false,
        operator => operator.is_repeatable(),
    })
}

/// What merges before every hop of a stretch but the first `apart`, each with the place of its hop.
fn merges_of_stretch(stages: &[Stage], start: usize, end: usize, apart: usize) -> impl Iterator<Item = (usize, Op)> {
    let costs = |operator: &Op| is_hop(operator) || is_walking_test(operator);
    let hops = (start..=end).filter(move |&i| costs(&stages[i].operator)).skip(apart);
    let dedups = matches!(stages.get(end).map(|stage| &stage.operator), Some(Op::Dedup { slots: 0 }));
    hops.map(move |hop| (hop, if dedups { Op::Dedup { slots: 0 } } else { Op::Merge }))
}

fn is_hop(operator: &Op) -> bool {
    matches!(operator, Op::Expand { .. } | Op::CountExpand { .. } | Op::Repeat(_))
}

/// Whether rows may not be merged past it, or need not be.
fn ends_stretch(operator: &Op) -> bool {
    operator.keeps_state()
        || matches!(operator, Op::Modulate(_) | Op::OneByOne | Op::Ordered { .. } | Op::Union(_) | Op::Switch { .. })
        || matches!(operator, Op::Local(_)) && !is_walking_test(operator)
}

fn counts_by_bulk(operator: &Op) -> bool {
    match operator {
        Op::Reduce(reduction) => *reduction != Reduction::Fold,
        Op::ReduceValues { .. } | Op::CountExpand { .. } | Op::Dedup { .. } => true,
        _ => false,
    }
}
