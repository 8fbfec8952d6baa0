//! A test lets each row pass when it finds the first result for it, if a `limit()` may end the stream soon after.
//!
//! `where(t)` tests the rows of a message together. Otherwise they leave when all are decided, as one message. If few
//! results are wanted, that work is in vain for most rows.

use crate::logical::FilterKind;
use crate::physical::{LocalKind, Merged, Op, Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    let mut changed = false;
    let mut is_cut = false;
    for Stage { operator, .. } in stages.iter_mut().rev() {
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
            operator if operator.keeps_state() => is_cut = false,
            _ => {}
        }
    }
    changed
}
