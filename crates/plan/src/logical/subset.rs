//! The part of a graph that a traversal sees under `SubgraphStrategy` and `PartitionStrategy`.
//!
//! This is the data alone. `strategies` rewrites a traversal so that it sees the part.

use super::{Name, Operand, Traversal};

/// The part of the graph a traversal sees.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Subset {
    /// The name of the strategy that asks for the part.
    pub strategy: &'static str,
    /// A vertex belongs to the part if this traversal has a result for it; `None`: every vertex does.
    pub vertices: Option<Traversal>,
    /// An edge belongs to the part if this traversal has a result for it; `None`: every edge does.
    pub edges: Option<Traversal>,
    /// A vertex property belongs to the part if this traversal has a result for it; `None`: every one does.
    pub properties: Option<Traversal>,
    /// True: an edge belongs to the part only if both its ends do.
    pub checks_ends: bool,
    /// True: a hop from vertex to vertex leads only along edges of the part. For a partition this is false: there, only
    /// the elements that a traversal comes to are tested.
    pub tests_hops: bool,
    /// True: new elements go on only if they belong to the part.
    pub tests_new: bool,
    /// The property that new elements get. With true, new vertex properties get it as a meta-property, too.
    pub mark: Option<(Name, Operand, bool)>,
}
