//! Degrees of vertices, as plans name them: what `out("l").count()` asks of one vertex.

use mangrove_graph::Direction;

use crate::logical::{Name, Test};

/// The number of edges of a vertex.
#[derive(Clone, Debug, PartialEq)]
pub struct Degree {
    /// The direction of the edges.
    pub direction: Direction,
    /// Edge labels; empty: all.
    pub labels: Vec<Name>,
    /// The step leads to the edges, not to the neighbors. There are as many; an error names the step.
    pub to_edges: bool,
    /// A vertex without such an edge counts once: `optional(out()).count()`.
    pub optional: bool,
}

/// A test of a degree: `out("l").count().is(P)`.
#[derive(Clone, Debug, PartialEq)]
pub struct DegreeTest {
    /// The degree.
    pub degree: Degree,
    /// The test of the number.
    pub test: Test,
}
