//! A bounded loop of which only matters whether it arrives becomes nested tests: `where(repeat(b).emit().times(3).s)`
//! is `where(b.or(s, b.or(s, b.s)))`.
//!
//! The answer of a test depends on the vertex alone, so it is worked out once for each vertex and level, and
//! remembered. The cost is that of the edges in reach, however many rows begin, and the first arrival ends the search.
//!
//! A loop stays a loop if it has no bound, reads its paths or loop counters, keeps state, has labels, contains a loop,
//! or would become too many steps.

use crate::literals::Literals;
use crate::logical::{Emit, FilterKind, Repeat, Step, StepNode, Traversal, Until};
use crate::purity::{is_plain_chain, is_repeatable};
use crate::rules::Facts;

/// The most iterations that are written out.
const ITERATIONS_MAX: i64 = 8;

/// The most steps that a loop may become, with those of nested traversals.
const STEPS_MAX: usize = 64;

pub(super) fn apply(traversal: &mut Traversal, facts: &Facts<'_>) -> bool {
    let mut changed = false;
    for node in &mut traversal.steps {
        for asked in node.step.only_asked_whether() {
            changed |= unroll(asked, facts.literals);
        }
    }
    changed
}

/// Writes out the loop of a chain of which only matters whether it has a result.
fn unroll(asked: &mut Traversal, literals: &Literals<'_>) -> bool {
    let is_loop = |node: &StepNode| matches!(node.step, Step::Repeat(_));
    let Some(at) = asked.steps.iter().position(is_loop) else { return false };
    let (node, following) = (&asked.steps[at], &asked.steps[at + 1..]);
    let Step::Repeat(repeat) = &node.step else { return false };
    if !node.labels.is_empty()
        || !node.policy.is_default()
        || !is_plain_chain(following)
        || !is_plain_chain(&repeat.body.steps)
    {
        return false;
    }
    let Some(emitted) = emitted(repeat, following) else { return false };
    let loops = |steps: &[StepNode]| Traversal { steps: steps.to_vec() }.any(|step| matches!(step, Step::Repeat(_)));
    if loops(&repeat.body.steps) || loops(following) {
        return false;
    }
    let Some(times) = iterations(repeat, literals) else { return false };
    let once = steps_in(&repeat.body.steps) + emitted.as_ref().map_or(0, |emitted| steps_in(&emitted.steps)) + 1;
    if once * times + steps_in(following) > STEPS_MAX {
        return false;
    }
    let walk = (1..times).fold(chain(&repeat.body.steps, following), |inner, _| {
        let next = match &emitted {
            // The last operand of a filter runs first.
            Some(emitted) => vec![emitted.clone(), inner],
            None => vec![inner],
        };
        chain(&repeat.body.steps, &[test(FilterKind::Any, next)])
    });
    let written = match emitted {
        Some(emitted) if repeat.emit_first => vec![test(FilterKind::Any, vec![emitted, walk])],
        _ => walk.steps,
    };
    asked.steps.truncate(at);
    asked.steps.extend(written);
    true
}

/// The number of iterations, if it is known and at most [`ITERATIONS_MAX`]: `repeat(b).times(0)` has one,
/// `times(0).repeat(b)` none.
pub(super) fn iterations(repeat: &Repeat, literals: &Literals<'_>) -> Option<usize> {
    let Some(Until::Times(times)) = &repeat.until else { return None };
    let times = literals.at_most(times, ITERATIONS_MAX)?;
    match (times < 1, repeat.until_first) {
        (true, true) => None,
        (true, false) => Some(1),
        (false, _) => usize::try_from(times).ok(),
    }
}

/// The test of a row that is emitted: the loop's own test, and the steps after the loop. `Some(None)` if the loop emits
/// nothing; `None` if there is no test of a row by itself.
fn emitted(repeat: &Repeat, following: &[StepNode]) -> Option<Option<Traversal>> {
    let own = match &repeat.emit {
        None => return Some(None),
        Some(Emit::Always) => Step::Identity,
        Some(Emit::Test(test)) => Step::Is(test.clone()),
        Some(Emit::Traversal(asked)) if is_repeatable(asked) => {
            Step::FilterTraversal(FilterKind::All, vec![asked.clone()])
        }
        Some(Emit::Traversal(_)) => return None,
    };
    let own = StepNode::new(own, None);
    let needless = own.step == Step::Identity && !following.is_empty();
    Some(Some(chain(if needless { &[] } else { std::slice::from_ref(&own) }, following)))
}

/// The number of steps, with those of nested traversals.
pub(super) fn steps_in(steps: &[StepNode]) -> usize {
    let mut count = 0;
    Traversal { steps: steps.to_vec() }.visit(&mut |_| count += 1);
    count
}

fn chain(first: &[StepNode], then: &[StepNode]) -> Traversal {
    Traversal { steps: [first, then].concat() }
}

fn test(kind: FilterKind, operands: Vec<Traversal>) -> StepNode {
    StepNode::new(Step::FilterTraversal(kind, operands), None)
}
