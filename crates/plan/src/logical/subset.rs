//! What `SubgraphStrategy` and `PartitionStrategy` ask for: the part of a graph that a traversal sees.
//!
//! This is the data alone. `strategies` rewrites a traversal so that it sees the part.

use super::{Name, Operand, Traversal};

/// The part of the graph a traversal sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subset {
    /// The strategy that asks for it, by its name.
    pub strategy: &'static str,
    /// What a vertex must have results for.
    pub vertices: Option<Traversal>,
    /// What an edge must have results for.
    pub edges: Option<Traversal>,
    /// What a vertex property must have results for.
    pub properties: Option<Traversal>,
    /// Whether an edge belongs to the part only if both its ends do.
    pub checks_ends: bool,
    /// Whether a hop from vertex to vertex leads only along edges that belong to the part. In a partition it does not: there
    /// only elements that a traversal comes to are tested.
    pub tests_hops: bool,
    /// Whether new elements go on only if they belong to the part.
    pub tests_new: bool,
    /// What new elements get, and (with true) new vertex properties too.
    pub mark: Option<(Name, Operand, bool)>,
}
