//! [`BothEnds`]: a search for a shortest path between two known vertices, which goes on from either end.

use mangrove_graph::Direction;

use super::Pipeline;
use crate::logical::{Avoids, Condition, Name, Operand, Test};

/// A search for the first arrival whose targets are known before it begins.
#[derive(Clone, Debug)]
pub struct BothEnds {
    /// The direction of the edges, seen from the row's vertex.
    pub direction: Direction,
    /// Edge labels; empty: all.
    pub labels: Vec<Name>,
    /// True if the edges belong to the path.
    pub over_edges: bool,
    /// The conditions that every edge of the path meets. There are none unless the edges belong to the path.
    pub edges: Vec<Condition>,
    /// The conditions that every vertex of the path meets, but for the first.
    pub vertices: Vec<Condition>,
    /// The user ids of the targets, or the vertices themselves.
    pub ids: Vec<Operand>,
    /// The conditions that a target meets, that on its id included.
    pub target: Vec<Condition>,
    /// True if a path may lead through another target.
    pub through_targets: bool,
    /// The vertices that the search leaves out of the path.
    pub avoids: Avoids,
    /// What bounds the number of edges of a path.
    pub bound: Option<PathBound>,
    /// The search from the row's vertex alone, for several nodes.
    pub one_sided: Pipeline,
}

/// What bounds the number of edges of a path.
#[derive(Clone, Debug)]
pub enum PathBound {
    /// So many, but at least one: `times(n)`.
    Times(Operand),
    /// The first number for which the test holds: `or(…, loops().is(n))`.
    Loops(Test),
}
