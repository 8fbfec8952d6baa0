//! A test lets each row pass when it finds the first result for it, if a `limit()` may end the stream soon after.
//!
//! `where(t)` tests the rows of a message together. Otherwise they leave when all are decided, as one message. If few
//! results are wanted, that work is in vain for most rows.
//!
//! A row that passes early goes through the steps before rows that came before it. A side effect may show that only if
//! a step after the test fills one (PLAN-10), so the rule looks no further than to the last step that does.
//!
//! In a loop, rows pass the tests of the body early if those of an iteration may leave the loop before it ends. If all
//! wait for the last iteration, many small messages would only cost.

use crate::logical::FilterKind;
use crate::physical::{LocalKind, LoopTest, Merged, Op, RepeatScope, Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    pass_before(stages, false)
}

/// Applies the rule to a chain. `is_cut`: a `limit()` may end the stream after the chain.
fn pass_before(stages: &mut [Stage], mut is_cut: bool) -> bool {
    let mut changed = false;
    for Stage { operator, .. } in stages.iter_mut().rev() {
        if fills(operator) {
            break;
        }
        match operator {
            Op::Range { high: Some(_), .. } => is_cut = true,
            Op::Dedup { .. } => {}
            Op::Local(scope) if is_cut => {
                let LocalKind::Filter(kind, _) = &scope.kind else { continue };
                if *kind != FilterKind::None && !scope.serial && !scope.ordered && scope.merged != Merged::Apart {
                    scope.passes_early = true;
                    changed = true;
                }
            }
            Op::Repeat(repeat) if is_cut && leave_at_any_time(repeat) => {
                changed |= pass_before(&mut repeat.body.stages, true);
                is_cut = !repeat.body.keeps_state();
            }
            operator if operator.keeps_state() => is_cut = false,
            _ => {}
        }
    }
    changed
}

/// Returns true if rows may leave a loop before its last iteration, or a later iteration may begin before an earlier one
/// has ended.
fn leave_at_any_time(repeat: &RepeatScope) -> bool {
    repeat.overlaps() || repeat.emit.is_some() || !matches!(repeat.until, Some(LoopTest::Times(_)))
}

/// Returns true if an operator, or one nested in it, fills a side effect.
fn fills(operator: &Op) -> bool {
    let mut fills = match operator {
        Op::Aggregate(_) | Op::Subgraph(_) => true,
        Op::GroupCount { side_effect } | Op::Tree { side_effect, .. } | Op::Group { side_effect, .. } => {
            side_effect.is_some()
        }
        _ => false,
    };
    operator.visit_nested(&mut |_, nested| fills |= nested.stages.iter().any(|stage| self::fills(&stage.operator)));
    fills
}
