//! [`BothEnds`]: a search for a shortest path to few vertices, which goes on from either end.

use mangrove_graph::Direction;

use super::{IndexAccess, Pipeline};
use crate::logical::{Avoids, Condition, Name, Operand, Test};

/// The most vertices from which a search may begin at its far end. With more, the levels of the far side are wide from
/// the first one on, so little is saved.
pub const TARGETS_MAX: usize = 64;

/// A search for the first arrival whose targets can be found before it begins.
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
    /// How the targets are found. Some of what is found may be no targets.
    pub found_by: TargetAccess,
    /// All conditions that a target meets.
    pub target: Vec<Condition>,
    /// True if a path may lead through another target.
    pub through_targets: bool,
    /// The vertices that the search leaves out of the path.
    pub avoids: Avoids,
    /// What bounds the number of edges of a path.
    pub bound: Option<PathBound>,
    /// The search from the row's vertex alone. It runs on several nodes, and if indexes find more than [`TARGETS_MAX`]
    /// vertices.
    pub one_sided: Pipeline,
}

/// How a search finds its targets before it begins.
#[derive(Clone, Debug)]
pub enum TargetAccess {
    /// By their user ids, or as these vertices.
    Ids(Vec<Operand>),
    /// By indexes.
    Index(IndexAccess),
}

/// What bounds the number of edges of a path.
#[derive(Clone, Debug)]
pub enum PathBound {
    /// So many, but at least one: `times(n)`.
    Times(Operand),
    /// The first number for which the test holds: `or(…, loops().is(n))`.
    Loops(Test),
}
