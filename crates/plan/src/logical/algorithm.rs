//! The graph algorithms that are steps of a traversal, which TinkerPop runs as vertex programs on a graph computer.
//!
//! Three of them give each vertex a value ([`VertexProgram`]): a property that the rest of the traversal reads, and that is never
//! stored. The traversers themselves go on as they are. The fourth one finds paths ([`ShortestPath`]).

use mangrove_graph::Direction;

use super::Name;

/// The edges that an algorithm follows from a vertex.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EdgeChoice {
    /// Their direction.
    pub direction: Direction,
    /// Their labels; empty: all.
    pub labels: Vec<Name>,
}

/// The part of the graph that a graph computer loads: `withComputer(vertices: …, edges: …)`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ComputerFilter {
    /// The labels of its vertices; `None`: all.
    pub vertices: Option<Vec<Name>>,
    /// The labels of its edges; `None`: all.
    pub edges: Option<Vec<Name>>,
}

/// `pageRank()`, `peerPressure()` and `connectedComponent()`.
#[derive(Clone, Debug, PartialEq)]
pub struct VertexProgram {
    /// What it computes.
    pub kind: ProgramKind,
    /// The key under which later steps read the value of a vertex.
    pub key: Name,
    /// The edges along which vertices pass values on.
    pub edges: EdgeChoice,
    /// The part of the graph that it sees.
    pub sees: ComputerFilter,
    /// True if ranks, or votes, begin with the number of traversers at each vertex. Otherwise all vertices begin alike.
    pub by_traversers: bool,
}

/// What a [`VertexProgram`] computes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ProgramKind {
    /// `pageRank(damping)`
    PageRank {
        /// The probability of following an edge.
        damping: f64,
        /// The most rounds.
        rounds: u32,
    },
    /// `peerPressure()`
    PeerPressure {
        /// The most rounds.
        rounds: u32,
    },
    /// `connectedComponent()`
    ConnectedComponent,
}

impl ProgramKind {
    /// The name of the step.
    pub fn step(self) -> &'static str {
        match self {
            ProgramKind::PageRank { .. } => "pageRank",
            ProgramKind::PeerPressure { .. } => "peerPressure",
            ProgramKind::ConnectedComponent => "connectedComponent",
        }
    }
}

/// `shortestPath()`: all shortest paths from the vertex of each traverser to every vertex that it reaches.
#[derive(Clone, Debug, PartialEq)]
pub struct ShortestPath {
    /// What its results are.
    pub results: SearchResults,
    /// The edges that paths follow.
    pub edges: EdgeChoice,
    /// The property of edges that is their length; `None`: every edge has the length 1.
    pub distance: Option<Name>,
    /// The length of the longest path; `None`: there is no limit.
    pub longest: Option<f64>,
    /// True if paths show their edges.
    pub with_edges: bool,
    /// The part of the graph that it sees.
    pub sees: ComputerFilter,
}

/// What the results of a [`ShortestPath`] are. With a condition on targets the search is two steps, between which the condition
/// is tested: so no path is made that the condition drops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SearchResults {
    /// The paths. Traversers are at their sources.
    Paths,
    /// An entry of a map for every vertex that is reached: the source is its key, the target its value.
    Pairs,
    /// The paths between source and target of such an entry.
    PathsOfPairs,
}
