//! A bounded loop becomes a chain if a `dedup()` follows, and a `limit()` after it: `repeat(b).times(2).dedup().limit(n)`
//! is `b.b.dedup().limit(n)`.
//!
//! A loop finishes an iteration before it begins the next one, because equal rows become one between them. Most of that
//! work is in vain if few results are wanted. A chain is worked off depth first, so the first results come early. Its
//! rows are deduplicated between the hops (`merge between hops`), so it follows no vertex twice in a hop, even if it
//! never finds as many results as are wanted. Without the `dedup()` it might follow every walk.
//!
//! A loop stays a loop if it has no bound, emits rows on its way, reads its paths or loop counters, keeps state, has
//! labels or a policy, or would become too many steps. So it does if merging equal rows, or the order of the work, can
//! be observed.

use crate::literals::Literals;
use crate::logical::{LoopSearch, Repeat, Step, StepNode, Traversal};
use crate::purity::{is_plain_chain, is_row_by_row};
use crate::rules::Facts;
use crate::rules::walk_to_tests::{iterations, steps_in};

/// The most steps that a loop may become, with those of nested traversals.
const STEPS_MAX: usize = 32;

pub(super) fn apply(traversal: &mut Traversal, facts: &Facts<'_>) -> bool {
    if facts.work_shows {
        return false;
    }
    let mut changed = false;
    for at in (0..traversal.steps.len()).rev() {
        let (node, following) = (&traversal.steps[at], &traversal.steps[at + 1..]);
        let Step::Repeat(repeat) = &node.step else { continue };
        if node.labels.is_empty()
            && node.policy.is_default()
            && is_cut(following)
            && let Some(unrolled) = unroll(repeat, facts.literals)
        {
            traversal.steps.splice(at..=at, unrolled);
            changed = true;
        }
    }
    changed
}

/// Returns true if the next steps that look at more than one row are a `dedup()` of objects and a `limit()`.
fn is_cut(following: &[StepNode]) -> bool {
    let mut of_stream = following.iter().map(|node| &node.step).filter(|step| !is_row_by_row(step));
    matches!(of_stream.next(), Some(Step::Dedup { labels, by }) if labels.is_empty() && by.is_empty())
        && matches!(of_stream.next(), Some(Step::Range { high: Some(_), .. }))
}

fn unroll(repeat: &Repeat, literals: &Literals<'_>) -> Option<Vec<StepNode>> {
    let body = &repeat.body.steps;
    if matches!(repeat.search, LoopSearch::Search(_)) || repeat.emit.is_some() || !is_plain_chain(body) {
        return None;
    }
    let times = iterations(repeat, literals)?;
    if steps_in(body) * times > STEPS_MAX {
        return None;
    }
    Some(std::iter::repeat_n(body, times).flatten().cloned().collect())
}
