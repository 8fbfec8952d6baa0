//! Equal rows are merged, or deduplicated, between the hops of a chain.
//!
//! Two hops from many vertices meet the same vertex again and again. One row with a bulk does for all of them. So rows
//! are merged before every hop but the first, if this cannot be observed: rows keep no path, and the operator at the
//! end counts by bulk and does not use their order. A stream that is cut (`limit()`), sorted, or sent to the client as
//! it comes is left alone: merging would only delay it.
//!
//! If `dedup()` ends the stretch, rows are deduplicated before every hop instead. It then makes no difference how often
//! a row comes, and each vertex is followed once in a hop, not once in every few thousand rows.

use crate::logical::Operand;
use crate::physical::{Access, Op, Stage};
use crate::physical_rules::Facts;
use crate::physical_rules::walks::{insert, is_walking_test};

pub(super) fn apply(stages: &mut Vec<Stage>, _facts: &Facts<'_>) -> bool {
    let mut at = 0;
    let (mut merges, mut changed) = (Vec::new(), false);
    // The neighbors of one vertex differ from each other.
    let mut apart = if starts_at_one_vertex(stages) { 2 } else { 1 };
    while at < stages.len() {
        let end = (at..stages.len()).find(|&i| ends_stretch(&stages[i].operator)).unwrap_or(stages.len());
        if let Some(Op::Join { walks, .. }) = stages.get_mut(end).map(|stage| &mut stage.operator) {
            walks.iter_mut().for_each(|walk| changed |= merge_in_walk(&mut walk.stages));
        }
        if stages.get(end).is_some_and(|s| s.operator.counts_by_bulk()) {
            merges.extend(merges_of_stretch(stages, at, end, apart));
        }
        apart = 1;
        at = end + 1;
    }
    insert(stages, merges) | changed
}

/// Merges rows in a walk that is joined, also before the join. That waits for all rows of the walk and multiplies bulks, so
/// what reads its pairs cannot tell.
fn merge_in_walk(stages: &mut Vec<Stage>) -> bool {
    let apart = if starts_at_one_vertex(stages) { 2 } else { 1 };
    let (hops, end) = (stages.iter().filter(|stage| is_costly(&stage.operator)).count(), stages.len());
    let merges: Vec<_> = merges_of_stretch(stages, 0, end, apart).collect();
    insert(stages, merges);
    if hops >= apart {
        stages.push(Stage::new(Op::Merge));
    }
    hops >= apart
}

fn starts_at_one_vertex(stages: &[Stage]) -> bool {
    match stages.first().map(|stage| &stage.operator) {
        Some(Op::Vertices { access: Access::Ids(ids) | Access::IdSet(ids), .. }) => {
            // A parameter may be a list, but nearly always it is a single id.
            matches!(ids[..], [Operand::Literal(_) | Operand::Lifted(_) | Operand::Parameter(_)])
        }
        _ => false,
    }
}

/// The operators to insert before the hops of a stretch, except the first `apart`; each with the position of its hop.
fn merges_of_stretch(stages: &[Stage], start: usize, end: usize, apart: usize) -> impl Iterator<Item = (usize, Op)> {
    let hops = (start..=end).filter(|&at| stages.get(at).is_some_and(|stage| is_costly(&stage.operator))).skip(apart);
    let dedups = matches!(stages.get(end).map(|stage| &stage.operator), Some(Op::Dedup { computed: 0 }));
    hops.map(move |hop| (hop, if dedups { Op::Dedup { computed: 0 } } else { Op::Merge }))
}

/// Returns true if equal rows before this operator should be merged.
fn is_costly(operator: &Op) -> bool {
    operator.is_hop() || is_walking_test(operator)
}

/// Returns true if rows may not, or need not, be merged before this operator.
fn ends_stretch(operator: &Op) -> bool {
    operator.keeps_state()
        || matches!(operator, Op::Modulate(_) | Op::OneByOne | Op::Ordered { .. } | Op::Union(_) | Op::Switch { .. })
        || matches!(operator, Op::Local(_)) && !is_walking_test(operator)
}
