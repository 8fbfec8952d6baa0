//! Draws from the graph that a plan is made for.
//!
//! Statistics tell how many edges vertices have, and to which labels these lead. They do not tell how often two
//! neighbors are neighbors, or whether the vertices with a value have more edges than others. A few hundred rows that are
//! drawn from the graph do ([`crate::graph`]). Draws are estimates: they decide how fast a plan is, and never what it
//! answers.

use std::fmt;
use std::rc::Rc;

use mangrove_graph::{IndexId, IndexRange, LabelSetId, VertexId};
use mangrove_gremlin::Comparison;

use crate::logical::{By, Condition, Operand};
use crate::physical::EdgesOf;

/// Draws vertices and edges of a graph evenly. A method returns `None` if it cannot tell: a value is unknown, a list is too
/// long to be looked at, or the graph cannot be read.
pub trait SampleGraph {
    /// Draws at most `most` of some vertices, each at most once.
    fn vertices(&self, of: &Begin<'_>, most: usize) -> Option<Drawn>;

    /// Draws edges of these vertices: all of them if they are at most `most`, otherwise about that many. Of those that are
    /// drawn, leaves out what does not meet the conditions.
    fn edges(&self, from: &[VertexId], edges: &EdgesOf, conditions: &[Condition], most: usize) -> Option<DrawnEdges>;

    /// The positions of the vertices that meet conditions, ascending.
    fn meeting(&self, vertices: Vec<VertexId>, conditions: &[Condition]) -> Option<Vec<u32>>;

    /// For each pair of vertices, how many edges that meet the conditions lead from the first to the second.
    fn edges_between(&self, pairs: [&[VertexId]; 2], edges: &EdgesOf, conditions: &[Condition]) -> Option<Vec<u64>>;

    /// For each vertex, how many such edges it has.
    fn degrees(&self, of: &[VertexId], edges: &EdgesOf) -> Option<Vec<u64>>;

    /// For each pair of vertices, true if the value of the first, by the first `by()`, compares so with that of the second.
    fn comparing(&self, comparison: Comparison, pairs: [&[VertexId]; 2], by: [&By; 2]) -> Option<Vec<bool>>;

    /// About how many nanoseconds all draws so far have taken.
    fn nanos(&self) -> f64;
}

/// The vertices that rows begin at.
#[derive(Clone, Debug)]
pub enum Begin<'a> {
    /// Those with these ids.
    Ids(&'a [Operand]),
    /// Those that an index finds.
    Found(IndexId, IndexRange),
    /// Those of these label sets; `None`: all.
    Scanned(Option<&'a [LabelSetId]>),
}

/// Vertices that were drawn.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The vertices.
    pub vertices: Vec<VertexId>,
    /// How many they were drawn from; `None`: so many as the statistics say.
    pub of: Option<u64>,
}

/// Edges that were drawn.
#[derive(Clone, Debug, Default)]
pub struct DrawnEdges {
    /// The position of the vertex that each edge begins at, ascending.
    pub rows: Vec<u32>,
    /// The vertex that it leads to.
    pub neighbors: Vec<VertexId>,
    /// How many were drawn, also of those that do not meet the conditions.
    pub drawn: u64,
    /// How many edges they were drawn from.
    pub of: u64,
}

/// Draws from the graph that a plan is made for. The default draws nothing.
#[derive(Clone, Default)]
pub struct GraphSample(Option<Rc<dyn SampleGraph>>);

impl GraphSample {
    /// Draws by a sampler.
    pub fn new(sampler: Rc<dyn SampleGraph>) -> Self {
        GraphSample(Some(sampler))
    }

    pub(crate) fn sampler(&self) -> Option<&dyn SampleGraph> {
        self.0.as_deref()
    }
}

impl fmt::Debug for GraphSample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.is_some() { "GraphSample(of a graph)" } else { "GraphSample(none)" })
    }
}
