//! Equal rows are merged, or deduplicated, between the hops of a chain.
//!
//! Two hops from many vertices meet the same vertex again and again; one row with a bulk does for all of them. So before every
//! hop but the first, rows are merged, as long as this cannot be observed: rows remember no path, and the operator at the end
//! counts by bulk and has no use for their order. A stream that is cut (`limit()`), sorted or handed out as it comes is left
//! alone: merging would only hold it up.
//!
//! Where `dedup()` ends the stretch, rows are deduplicated before every hop instead: then it makes no difference how often
//! one comes, and each vertex is walked from once a hop, not once every some thousand rows.

use crate::logical::Operand;
use crate::physical::{Access, Op, Stage};
use crate::physical_rules::Names;
use crate::physical_rules::walks::{insert, is_walking_test};

pub(super) fn apply(stages: &mut Vec<Stage>, _names: &Names<'_>) -> bool {
    let mut at = 0;
    let mut merges = Vec::new();
    // The neighbors of one vertex differ already.
    let mut apart = if starts_at_one_vertex(stages) { 2 } else { 1 };
    while at < stages.len() {
        let end = (at..stages.len()).find(|&i| ends_stretch(&stages[i].operator)).unwrap_or(stages.len());
        if stages.get(end).is_some_and(|s| s.operator.counts_by_bulk()) {
            merges.extend(merges_of_stretch(stages, at, end, apart));
        }
        apart = 1;
        at = end + 1;
    }
    insert(stages, merges)
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

/// What merges before every hop of a stretch but the first `apart`, each with the place of its hop.
fn merges_of_stretch(stages: &[Stage], start: usize, end: usize, apart: usize) -> impl Iterator<Item = (usize, Op)> {
    let costs = |operator: &Op| operator.is_hop() || is_walking_test(operator);
    let hops = (start..=end).filter(move |&i| costs(&stages[i].operator)).skip(apart);
    let dedups = matches!(stages.get(end).map(|stage| &stage.operator), Some(Op::Dedup { computed: 0 }));
    hops.map(move |hop| (hop, if dedups { Op::Dedup { computed: 0 } } else { Op::Merge }))
}

/// Whether rows may not be merged past it, or need not be.
fn ends_stretch(operator: &Op) -> bool {
    operator.keeps_state()
        || matches!(operator, Op::Modulate(_) | Op::OneByOne | Op::Ordered { .. } | Op::Union(_) | Op::Switch { .. })
        || matches!(operator, Op::Local(_)) && !is_walking_test(operator)
}
