//! Equal rows are merged before the tests in the bodies of loops, and between bodies and the loops' own tests.
//!
//! A test that follows edges (`where(in().out())`) costs as much as hops do, and equal rows pass or fail it together.
//! In the body of a loop this holds whatever comes after the loop, since rows are merged between iterations anyway.

use crate::physical::{LoopTest, Op, Stage};
use crate::physical_rules::walks::{insert, is_walking_test, may_run_once, walks};

/// Merges in the bodies of all loops of a chain. Returns true if something was merged.
pub(super) fn merge_in_loops(stages: &mut [Stage]) -> bool {
    let mut changed = false;
    for Stage { operator, .. } in stages {
        // An ordered run must keep the order of its rows. Merging would not.
        if matches!(operator, Op::Ordered { .. }) {
            continue;
        }
        operator.visit_nested_mut(&mut |purpose, pipeline| {
            if purpose.is_of_stream() {
                changed |= merge_in_loops(&mut pipeline.stages);
            }
        });
        if let Op::Repeat(repeat) = operator {
            let asks = |test: &Option<LoopTest>| match test {
                Some(LoopTest::Exists(test)) => may_run_once(test) && walks(test),
                Some(LoopTest::Always | LoopTest::Times(_) | LoopTest::Test(_)) | None => false,
            };
            let is_tested = asks(&repeat.until) && !repeat.until_first || asks(&repeat.emit) && !repeat.emit_first;
            changed |= merge_before_tests(&mut repeat.body.stages, is_tested);
        }
    }
    changed
}

/// Inserts merges in a body between a hop and a test after it and, with `is_tested`, at the end of the body.
fn merge_before_tests(stages: &mut Vec<Stage>, is_tested: bool) -> bool {
    let mut may_be_equal = false;
    let mut merges = Vec::new();
    for (at, Stage { operator, .. }) in stages.iter().enumerate() {
        if may_be_equal && is_walking_test(operator) {
            merges.push((at, Op::Merge));
            may_be_equal = false;
        } else if operator.is_hop() {
            may_be_equal = true;
        } else if operator.keeps_state() {
            may_be_equal = false;
        }
    }
    let mut changed = insert(stages, merges);
    if is_tested && may_be_equal {
        stages.push(Stage::new(Op::Merge));
        changed = true;
    }
    changed
}
