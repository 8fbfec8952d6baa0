//! [`EdgeTo`]: an edge whose two ends are known, which a search finds in sorted adjacency lists.

use mangrove_graph::Direction;

use crate::logical::Name;

/// An edge from a row's vertex to the one that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeTo {
    /// The direction of the edge, seen from the row's vertex.
    pub direction: Direction,
    /// The labels of the edge; empty: any.
    pub labels: Vec<Name>,
    /// The name that stands for the other end.
    pub name: Name,
}
