//! The interface between the sampler and the graph that it reads.
//!
//! The sampler needs the rows of incoming edges of many vertices at a time, and nothing else of a graph. [`TypedGraph`](super::TypedGraph)
//! has them in memory. An implementation that must fetch rows gets many vertices in one call, and can fetch them together.

use mangrove_graph::Result;

/// The incoming edges of a vertex, of one type. Parallel slices, except that weights and times are empty if the graph has none.
#[derive(Clone, Copy, Debug, Default)]
pub struct InRow<'a> {
    /// The positions of the sources, in the type of sources.
    pub sources: &'a [u32],
    /// The number of the first edge; those of the others follow it.
    pub first_edge: u64,
    /// The weights of the edges; none is negative.
    pub weights: &'a [f64],
    /// The times of the edges, ascending.
    pub times: &'a [i64],
}

/// A graph whose vertices and edges have types, as the sampler reads it.
///
/// A vertex of a type has a *number*, by which callers know it: numbers are dense. It also has a *position*, by which rows name it:
/// there may be positions without a vertex.
pub trait InRows: Sync {
    /// The number of vertex types.
    fn vertex_types(&self) -> usize;

    /// The number of edge types.
    fn edge_types(&self) -> usize;

    /// The vertex types of the sources and the targets of an edge type.
    fn ends(&self, edge_type: usize) -> (usize, usize);

    /// The number of positions of a vertex type.
    fn positions(&self, vertex_type: usize) -> u32;

    /// Appends the row of each target. The sampler passes only positions that have vertices. An implementation that fetches rows
    /// keeps them for as long as it is borrowed.
    ///
    /// # Errors
    ///
    /// If rows cannot be fetched. Rows in memory never fail.
    fn append_rows<'a>(&'a self, edge_type: usize, targets: &[u32], rows: &mut Vec<InRow<'a>>) -> Result<()>;

    /// By position, the times of the vertices of a type; `None` if they have none.
    fn vertex_times(&self, vertex_type: usize) -> Option<&[i64]>;

    /// Returns true if the edges of a type have weights.
    fn has_weights(&self, edge_type: usize) -> bool;

    /// Returns true if the edges of a type have times.
    fn has_times(&self, edge_type: usize) -> bool;

    /// Appends the positions of vertices.
    ///
    /// # Errors
    ///
    /// If there is no vertex of a number.
    fn append_positions(&self, vertex_type: usize, numbers: &[i64], out: &mut Vec<u32>) -> Result<()>;

    /// Appends the numbers of vertices. All positions have vertices.
    fn append_numbers(&self, vertex_type: usize, positions: &[u32], out: &mut Vec<i64>);
}
