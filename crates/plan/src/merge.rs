//! Where equal rows are worth merging on their way.
//!
//! Two hops from many vertices meet the same vertex again and again; one row with a bulk does for all of
//! them. So before every hop but the first, rows are merged, as long as nobody can tell: rows remember no
//! path, and what reads them in the end counts by bulk and has no use for their order. A stream that is cut
//! (`limit()`), sorted or handed out as it comes is left alone: merging would only hold it up.

use crate::logical::{Operand, Reduction};
use crate::physical::{Access, Op, Stage};

/// Puts [`Op::Merge`] between the hops of a chain.
pub fn merge_between_hops(stages: &mut Vec<Stage>) {
    let mut at = 0;
    // The neighbors of one vertex differ already.
    let mut apart = if starts_at_one_vertex(stages) { 2 } else { 1 };
    while at < stages.len() {
        let end = (at..stages.len()).find(|&i| ends_stretch(&stages[i].operator)).unwrap_or(stages.len());
        let mut next = end + 1;
        if stages.get(end).is_some_and(|s| counts_by_bulk(&s.operator)) {
            next += merge_stretch(stages, at, end, apart);
        }
        apart = 1;
        at = next;
    }
}

fn starts_at_one_vertex(stages: &[Stage]) -> bool {
    match stages.first().map(|stage| &stage.operator) {
        Some(Op::Vertices { access: Access::Ids(ids) | Access::IdSet(ids), .. }) => {
            // A parameter may be a list, but is a single id nearly always.
            matches!(ids[..], [Operand::Literal(_) | Operand::Parameter(_)])
        }
        _ => false,
    }
}

/// Merges before every hop of a stretch but the first `apart`; how many operators that added.
fn merge_stretch(stages: &mut Vec<Stage>, start: usize, end: usize, apart: usize) -> usize {
    let hops: Vec<usize> = (start..=end).filter(|&i| is_hop(&stages[i].operator)).collect();
    let later = hops.get(apart..).unwrap_or_default();
    for &hop in later.iter().rev() {
        stages.insert(hop, Stage { operator: Op::Merge, labels: Vec::new() });
    }
    later.len()
}

fn is_hop(operator: &Op) -> bool {
    matches!(operator, Op::Expand { .. } | Op::CountExpand { .. } | Op::Repeat(_))
}

/// Whether rows may not be merged past it, or need not be.
fn ends_stretch(operator: &Op) -> bool {
    operator.keeps_state()
        || matches!(operator, Op::Modulate(_) | Op::Local(_) | Op::Ordered { .. } | Op::Union(_) | Op::Switch { .. })
}

fn counts_by_bulk(operator: &Op) -> bool {
    match operator {
        Op::Reduce(reduction) => *reduction != Reduction::Fold,
        Op::ReduceValues { .. } | Op::CountExpand { .. } | Op::Dedup { .. } => true,
        _ => false,
    }
}
