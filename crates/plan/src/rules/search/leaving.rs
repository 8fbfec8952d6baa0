//! When rows leave a loop that may become a search. A search comes to each vertex once, after the fewest iterations.
//! So the loop may not ask for vertices that are exactly some number of hops away.

use super::following::implies;
use super::{Emit, FilterKind, Reason, Repeat, Step, StepNode, Traversal, Until, is_repeatable};
use crate::literals::Literals;

/// The steps after a loop with a bound must test what `until` or `emit` tests. Then it does not matter that other rows
/// leave after the last iteration.
const UNTESTED: Reason = "the steps after it do not test what leaves it at its bound";

/// Fails if a loop does not leave at the first vertex that passes a test. `following`: the steps after it whose results
/// depend on the vertex alone.
pub(super) fn check(repeat: &Repeat, following: &[StepNode], literals: &Literals<'_>) -> Result<(), Reason> {
    if let Some(Emit::Traversal(test)) = &repeat.emit
        && !is_repeatable(test)
    {
        return Err("its emit() depends on more than the vertex");
    }
    match (&repeat.until, &repeat.emit) {
        (None, None) => Err("nothing leaves it"),
        (None, Some(_)) | (Some(Until::Test(_)), _) => Ok(()),
        (Some(Until::Traversal(test)), _) if is_repeatable(test) => Ok(()),
        (Some(Until::Traversal(test)), None) => match bounded(test, repeat) {
            Some(test) if implies(following, test, literals) => Ok(()),
            Some(_) => Err(UNTESTED),
            None => Err("its until() depends on more than the vertex"),
        },
        (Some(Until::Traversal(test)), Some(_)) if !is_bound(test, repeat) => {
            Err("its until() depends on more than the vertex")
        }
        (Some(Until::Times(_)), None) => Err("times() asks for vertices that are exactly so many hops away"),
        (Some(Until::Traversal(_) | Until::Times(_)), Some(Emit::Always)) => Ok(()),
        (Some(Until::Traversal(_) | Until::Times(_)), Some(Emit::Traversal(test)))
            if implies(following, test, literals) =>
        {
            Ok(())
        }
        (Some(Until::Traversal(_) | Until::Times(_)), Some(_)) => Err(UNTESTED),
    }
}

/// The test of `until(or(test, loops().is(n)))`, in either order.
fn bounded<'a>(until: &'a Traversal, repeat: &Repeat) -> Option<&'a Traversal> {
    let [StepNode { step: Step::FilterTraversal(FilterKind::Any, operands), .. }] = &until.steps[..] else {
        return None;
    };
    match &operands[..] {
        [bound, test] | [test, bound] if is_bound(bound, repeat) && is_repeatable(test) => Some(test),
        _ => None,
    }
}

/// Returns true for `loops().is(n)` of this loop.
fn is_bound(test: &Traversal, repeat: &Repeat) -> bool {
    match &test.steps[..] {
        [StepNode { step: Step::Loops(name), .. }, StepNode { step: Step::Is(_), .. }] => {
            name.is_none() || *name == repeat.name
        }
        _ => false,
    }
}
