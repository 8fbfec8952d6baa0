//! Neighboring operators that are cheaper as one.
//!
//! - `out().count()` adds up degrees and makes no neighbors.
//! - `V().count()` asks the pages for their counts.
//! - `values(key).sum()` adds up an array of numbers where the property is one.
//! - `order().limit(n)` keeps the first `n` while it sorts.

use mangrove_graph::ElementKind;
use mangrove_gremlin::Order;

use crate::logical::{Operand, Reduction};
use crate::physical::{Access, Op, Stage};
use crate::physical_rules::Names;

pub(super) fn apply(stages: &mut Vec<Stage>, _names: &Names<'_>) -> bool {
    let mut changed = false;
    stages.dedup_by(|next, stage| {
        let Some(operator) = fused(&stage.operator, &next.operator) else { return false };
        changed = true;
        let keeps_range = matches!(operator, Op::Order { .. });
        stage.operator = operator;
        if !keeps_range {
            stage.labels = std::mem::take(&mut next.labels);
        }
        !keeps_range
    });
    changed
}

fn fused(first: &Op, second: &Op) -> Option<Op> {
    match (first, second) {
        (Op::Expand { direction, labels, .. }, Op::Reduce(Reduction::Count)) => {
            Some(Op::CountExpand { direction: *direction, labels: labels.clone() })
        }
        (Op::Vertices { access, conditions }, Op::Reduce(Reduction::Count)) if conditions.is_empty() => {
            count_all(ElementKind::Vertex, access)
        }
        (Op::Edges { access, conditions }, Op::Reduce(Reduction::Count)) if conditions.is_empty() => {
            count_all(ElementKind::Edge, access)
        }
        (Op::Values(keys), Op::Reduce(reduction))
            if !matches!(reduction, Reduction::Count | Reduction::Fold) && keys.len() == 1 =>
        {
            Some(Op::ReduceValues { key: keys[0].clone(), reduction: *reduction })
        }
        // The range stays behind: it still skips, and it splits bulks exactly. A shuffle is not cut while it
        // goes on: what came first would be drawn less often than the rest.
        (Op::Order { orders, limit: None }, Op::Range { high: Some(high), .. })
            if is_bound(high) && !orders.contains(&Order::Shuffle) =>
        {
            Some(Op::Order { orders: orders.clone(), limit: Some(high.clone()) })
        }
        _ => None,
    }
}

/// The count of what is found, where the pages know it.
fn count_all(kind: ElementKind, access: &Access) -> Option<Op> {
    let labels = match access {
        Access::All => None,
        Access::Labels(names) => Some(names.clone()),
        _ => return None,
    };
    Some(Op::CountAll { kind, labels })
}

/// A high end that is one, as far as is known now: not the negative number that means "to the end". A
/// parameter may turn out to be one; the sort then keeps everything.
fn is_bound(high: &Operand) -> bool {
    high.literal_integer().is_none_or(|n| n >= 0)
}
