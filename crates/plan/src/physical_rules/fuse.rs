//! Neighboring operators become one where that is cheaper.
//!
//! | operators | become |
//! |---|---|
//! | `out().count()` | a sum of degrees, without neighbors |
//! | `optional(out()).count()` | a sum of degrees, each at least 1 |
//! | `V().count()` | the counts that pages keep |
//! | `values(key).sum()` | a sum over an array, if the property is one |
//! | `order().limit(n)` | a sort that keeps the first `n` rows |

use mangrove_graph::ElementKind;
use mangrove_gremlin::Order;

use crate::logical::{Operand, Reduction};
use crate::physical::{Access, Degree, Op, Stage};
use crate::physical_rules::Facts;

pub(super) fn apply(stages: &mut Vec<Stage>, _facts: &Facts<'_>) -> bool {
    let mut changed = false;
    stages.dedup_by(|next, stage| {
        let Some(operator) = fused(&stage.operator, &next.operator) else { return false };
        changed = true;
        let keeps_range = matches!(operator, Op::Order { .. });
        stage.operator = operator;
        if !keeps_range {
            stage.expected = next.expected;
            stage.labels = std::mem::take(&mut next.labels);
        }
        !keeps_range
    });
    changed
}

fn fused(first: &Op, second: &Op) -> Option<Op> {
    match (first, second) {
        (
            hop @ (Op::Expand { direction, labels, to_edges } | Op::OptionalExpand { direction, labels, to_edges }),
            Op::Reduce(Reduction::Count),
        ) => {
            let optional = matches!(hop, Op::OptionalExpand { .. });
            let (direction, labels, to_edges) = (*direction, labels.clone(), *to_edges);
            Some(Op::CountExpand(Degree { direction, labels, to_edges, optional }))
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
        // The range stays after the sort: it still skips rows, and splits bulks exactly. A shuffle keeps all rows: if
        // it dropped rows while it goes on, early rows would be drawn less often.
        (Op::Order { orders, limit: None }, Op::Range { high: Some(high), .. })
            if is_bound(high) && !orders.contains(&Order::Shuffle) =>
        {
            Some(Op::Order { orders: orders.clone(), limit: Some(high.clone()) })
        }
        _ => None,
    }
}

/// The count of the elements found, if pages keep it.
fn count_all(kind: ElementKind, access: &Access) -> Option<Op> {
    let labels = match access {
        Access::All => None,
        Access::Labels(names) => Some(names.clone()),
        _ => return None,
    };
    Some(Op::CountAll { kind, labels })
}

/// Returns true unless the high end is known to be negative, which means "to the end". If a parameter turns out to be
/// negative, the sort keeps all rows.
fn is_bound(high: &Operand) -> bool {
    high.literal_integer().is_none_or(|n| n >= 0)
}
