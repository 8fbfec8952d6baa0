//! A `by()` that only counts edges takes degrees and needs no scope: `order().by(out("l").count())`.
//!
//! The degrees of all objects of a message are read at once. An instance for each object would cost several times as
//! much. Operators that sort or group by degrees then read them themselves, as numbers of one type.
//!
//! A `by()` keeps its scope if its step has a policy, or if its traversal does anything else.

use crate::physical::{Computation, Degree, Modulate, Op, Scheduling, Stage};

pub(super) fn apply(stages: &mut [Stage]) -> bool {
    let mut changed = false;
    for Stage { operator, .. } in stages {
        match operator {
            Op::Ordered { pipeline, .. } => changed |= apply(&mut pipeline.stages),
            Op::Modulate(modulate) if !modulate.scheduling.is_of_step => changed |= take_degrees(modulate),
            _ => {}
        }
    }
    changed
}

fn take_degrees(modulate: &mut Modulate) -> bool {
    let mut changed = false;
    for by in &mut modulate.by {
        if let Some(degree) = degree(by) {
            *by = Computation::Degree(degree);
            changed = true;
        }
    }
    if changed && !modulate.has_scope() {
        modulate.scheduling = Scheduling::default();
    }
    changed
}

/// The degree that is all that a `by()` asks for.
fn degree(by: &Computation) -> Option<Degree> {
    let Computation::First(pipeline) = by else { return None };
    match &pipeline.stages[..] {
        [Stage { operator: Op::CountExpand(degree), labels, .. }] if labels.is_empty() => Some(degree.clone()),
        _ => None,
    }
}
