//! A whole graph as compressed sparse rows, as SciPy and igraph take it: dense numbers for the vertices, and for each vertex the
//! numbers of its neighbors.

use std::sync::Arc;

use arrow_array::types::{Float64Type, Int32Type, Int64Type};
use arrow_array::{ArrayRef, PrimitiveArray};
use mangrove_analytics::Projection;
use mangrove_graph::{Draw, GraphView, Result};

use crate::ids::{edge_ids, vertex_ids};

/// A graph as compressed sparse rows.
///
/// Vertices have the numbers from 0 on. The edges of vertex `v` are the cells from `indptr[v]` up to `indptr[v + 1]`, without the
/// last. Both `indptr` and `indices` are `Int32` if there are fewer than 2^31 cells, else `Int64`: SciPy wants one type for both.
#[derive(Clone, Debug)]
pub struct Csr {
    /// By number, the ids of the vertices: `Int64` if all are integers, else `Utf8`.
    pub ids: ArrayRef,
    /// Where the cells of each vertex begin, and the number of all cells.
    pub indptr: ArrayRef,
    /// By cell, the number of the vertex at the other end.
    pub indices: ArrayRef,
    /// By cell, the weight, if the projection has weights.
    pub weights: Option<ArrayRef>,
    /// By cell, the id of the edge, if the projection names its edges: `Int64` if all are integers, else `Utf8`.
    pub edge_ids: Option<ArrayRef>,
}

/// The outgoing rows of a projection; of an undirected one, the rows with the edges of both directions. The view is the one that
/// the projection was read from. `held` grows by the bytes of the arrays, and those of what they are made from.
///
/// # Errors
///
/// Those of the view, and `MemoryLimit` if the budget has no room.
pub fn csr(view: &dyn GraphView, projection: &Projection, held: &mut Draw) -> Result<Csr> {
    let numbering = projection.numbering();
    held.grow(bytes_of(projection))?;
    let positions: Vec<u32> = numbering.present(0..numbering.positions()).collect();
    // By position, the number of the vertex. Positions without a vertex are in no row.
    let mut numbers = vec![0_u32; projection.positions()];
    positions.iter().zip(0..).for_each(|(position, number)| numbers[*position as usize] = number);
    let vertices: Vec<_> = positions.iter().map(|position| numbering.vertex(*position)).collect();
    let ids = vertex_ids(view, &vertices)?;
    drop(vertices);
    let rows = Rows { projection, positions: &positions, numbers: &numbers };
    let is_small = i32::try_from(projection.cell_count()).is_ok();
    let (indptr, indices): (ArrayRef, ArrayRef) = match is_small {
        true => {
            let (indptr, indices) = rows.read(|cells| cells as i32, |number| number as i32);
            let indices = PrimitiveArray::<Int32Type>::new(indices.into(), None);
            (Arc::new(PrimitiveArray::<Int32Type>::new(indptr.into(), None)), Arc::new(indices))
        }
        false => {
            let (indptr, indices) = rows.read(|cells| cells as i64, i64::from);
            let indices = PrimitiveArray::<Int64Type>::new(indices.into(), None);
            (Arc::new(PrimitiveArray::<Int64Type>::new(indptr.into(), None)), Arc::new(indices))
        }
    };
    let weights = projection.is_weighted().then(|| {
        let mut weights = Vec::with_capacity(indices.len());
        positions.iter().for_each(|position| weights.extend_from_slice(projection.outgoing_weights(*position)));
        Arc::new(PrimitiveArray::<Float64Type>::new(weights.into(), None)) as ArrayRef
    });
    let edges = match projection.options().names_edges {
        false => None,
        true => {
            let mut edges = Vec::with_capacity(indices.len());
            positions.iter().for_each(|position| edges.extend_from_slice(projection.outgoing_edges(*position)));
            Some(edge_ids(view, &edges)?)
        }
    };
    Ok(Csr { ids, indptr, indices, weights, edge_ids: edges })
}

/// The bytes of the arrays of a projection, with ids that are integers, and of the lists of ids and positions that they are made from.
fn bytes_of(projection: &Projection) -> u64 {
    let (vertices, cells) = (projection.positions() as u64, projection.cell_count());
    let index = if i32::try_from(cells).is_ok() { 4 } else { 8 };
    let weight = if projection.is_weighted() { 8 } else { 0 };
    let edge = if projection.options().names_edges { 16 } else { 0 };
    vertices * (4 + 4 + 8 + 8 + index) + cells * (index + weight + edge)
}

struct Rows<'p> {
    projection: &'p Projection,
    /// By number, the position of the vertex.
    positions: &'p [u32],
    /// By position, the number of the vertex.
    numbers: &'p [u32],
}

impl Rows<'_> {
    /// Where rows begin, and their cells, as integers of one type.
    fn read<T>(&self, begin: impl Fn(usize) -> T, number: impl Fn(u32) -> T) -> (Vec<T>, Vec<T>) {
        let mut indptr = Vec::with_capacity(self.positions.len() + 1);
        let mut indices = Vec::with_capacity(self.projection.cell_count() as usize);
        indptr.push(begin(0));
        for position in self.positions {
            let row = self.projection.outgoing(*position);
            indices.extend(row.iter().map(|other| number(self.numbers[*other as usize])));
            indptr.push(begin(indices.len()));
        }
        (indptr, indices)
    }
}
