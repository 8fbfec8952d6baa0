//! A scope that only tests how many edges a vertex has becomes a test without a scope:
//! `where(out("l").count().is(gt(3)))`, `or(out("l"), in("m").count().is(2))`.
//!
//! The degrees of all rows of a message are read at once. An instance for each row would cost several times as much.
//!
//! The scope stays if its step has a policy, if something else is asked there (then the traversal contains another
//! operator: conditions on edges, which strategies may add, too), or if one of several operands is no such test.

use mangrove_graph::Value;
use mangrove_gremlin::Comparison;

use crate::logical::{Operand, Test};
use crate::physical::{Degree, DegreeTest, LocalKind, Op, Pipeline, Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    let mut changed = false;
    for Stage { operator, .. } in stages {
        if let Op::Ordered { pipeline, .. } = operator {
            changed |= apply(&mut pipeline.stages);
        } else if let Some(tests) = tests_of_degrees(operator) {
            *operator = tests;
            changed = true;
        }
    }
    changed
}

/// The tests that replace a scope, if it asks for nothing else.
fn tests_of_degrees(operator: &Op) -> Option<Op> {
    let Op::Local(scope) = operator else { return None };
    let LocalKind::Filter(kind, pipelines) = &scope.kind else { return None };
    if scope.scheduling.is_of_step || scope.serial {
        return None;
    }
    let tests = pipelines.iter().map(test_of_degree).collect::<Option<Vec<_>>>()?;
    Some(Op::TestDegrees { kind: *kind, tests })
}

/// The test that is all that a pipeline does. A step along edges has a result if there is at least one.
fn test_of_degree(pipeline: &Pipeline) -> Option<DegreeTest> {
    if pipeline.stages.iter().any(|stage| !stage.labels.is_empty()) {
        return None;
    }
    match &pipeline.stages[..] {
        [Stage { operator: Op::CountExpand(degree), .. }, Stage { operator: Op::Is(test), .. }] => {
            Some(DegreeTest { degree: degree.clone(), test: test.clone() })
        }
        [Stage { operator: Op::Expand { direction, labels, to_edges }, .. }] => {
            let (direction, labels, to_edges) = (*direction, labels.clone(), *to_edges);
            let one = Operand::Literal(Value::I32(1));
            let degree = Degree { direction, labels, to_edges, optional: false };
            Some(DegreeTest { degree, test: Test::Compare(Comparison::Gte, one) })
        }
        _ => None,
    }
}
