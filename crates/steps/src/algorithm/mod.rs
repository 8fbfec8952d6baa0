//! Graph algorithms as steps: `pageRank()`, `peerPressure()`, `connectedComponent()` and `shortestPath()`.
//!
//! | module | steps |
//! |---|---|
//! | [`vertex_program`] | the first three: a value for each vertex, which later steps read as a property ([`crate::overlay`]) |
//! | [`shortest_path`], with [`neighborhood`] | `shortestPath()` |

mod neighborhood;
pub(crate) mod shortest_path;
pub(crate) mod vertex_program;

use mangrove_graph::{GraphView, LabelFilter};
use mangrove_plan::logical::algorithm::{ComputerFilter, EdgeChoice};

/// The label sets of the vertices that an algorithm sees.
fn vertices_seen(view: &dyn GraphView, sees: &ComputerFilter) -> LabelFilter {
    sees.vertices.as_ref().map_or(LabelFilter::Any, |labels| view.label_filter(labels))
}

/// The label sets of the edges that an algorithm follows: those that it chooses among those that it sees.
fn edges_followed(view: &dyn GraphView, edges: &EdgeChoice, sees: &ComputerFilter) -> LabelFilter {
    let chosen = match &edges.labels[..] {
        [] => LabelFilter::Any,
        labels => view.label_filter(labels),
    };
    let seen = sees.edges.as_ref().map_or(LabelFilter::Any, |labels| view.label_filter(labels));
    match (chosen, seen) {
        (LabelFilter::Any, other) | (other, LabelFilter::Any) => other,
        (LabelFilter::Sets(chosen), LabelFilter::Sets(seen)) => {
            LabelFilter::Sets(chosen.iter().filter(|set| seen.contains(set)).copied().collect())
        }
    }
}
