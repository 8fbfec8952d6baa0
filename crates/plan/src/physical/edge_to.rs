//! Edges whose two ends are known.

use mangrove_graph::Direction;

use crate::logical::Name;

/// An edge from a row's vertex to the one that a name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeTo {
    /// Which way it leads, seen from the row.
    pub direction: Direction,
    /// Its labels; none: any.
    pub labels: Vec<Name>,
    /// What the other end is called.
    pub name: Name,
}
