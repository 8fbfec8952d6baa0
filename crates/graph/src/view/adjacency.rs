//! Neighbors in place, a page at a time: for readers that look at every edge of a graph.
//!
//! [`GraphView::expand`](crate::GraphView::expand) copies neighbors into columns of rows, which operators need. A sum
//! over all edges, a projection or an iteration of PageRank needs no copy. It gets slices of the store's own packed
//! runs, for as many vertices at a time as lie together. The slices are valid during one call of the reader's function.

use std::ops::Range;

use crate::ids::{EdgeId, VertexId};

/// The neighbors of some vertices whose runs lie in one array.
///
/// A walk is a sequence of these, page by page. A vertex has one run for each label set and direction of its edges,
/// in different `AdjacencyRuns`; a vertex without edges has an empty run or none. Within one of them vertices
/// ascend, and so do their runs, which do not overlap.
#[derive(Clone, Copy, Debug)]
pub struct AdjacencyRuns<'a> {
    first: VertexId,
    ends: &'a [u32],
    start: u32,
    neighbors: &'a [VertexId],
    edges: &'a [EdgeId],
    /// The generation of each vertex; empty if all have the generation of the first.
    generations: &'a [u16],
}

impl<'a> AdjacencyRuns<'a> {
    /// The runs of the vertices from `first` on. The first run lies in the arrays from `start` to `ends[0]`, the next
    /// from there to `ends[1]`, and so on. `edges` is empty if the reader wants none. Panics if another array ends before the last run does.
    pub fn new(first: VertexId, start: u32, ends: &'a [u32], neighbors: &'a [VertexId], edges: &'a [EdgeId]) -> Self {
        let last = ends.last().map_or(start, |end| *end) as usize;
        let edges = if edges.is_empty() { edges } else { &edges[..last] };
        AdjacencyRuns { first, ends, start, neighbors: &neighbors[..last], edges, generations: &[] }
    }

    /// Gives each vertex its own generation. Panics if there are fewer generations than vertices.
    pub fn of_generations(self, generations: &'a [u16]) -> Self {
        AdjacencyRuns { generations: &generations[..self.ends.len()], ..self }
    }

    /// The number of vertices.
    #[inline]
    pub fn vertex_count(&self) -> usize {
        self.ends.len()
    }

    /// The vertex at a position.
    #[inline]
    pub fn vertex(&self, position: usize) -> VertexId {
        // The slot index is in the low bits of an id, and vertices of a page follow one another there.
        let of_first = VertexId::from_bits(self.first.to_bits() + position as u64);
        match self.generations.get(position) {
            None => of_first,
            Some(generation) => of_first.with_generation(*generation),
        }
    }

    #[inline]
    fn run(&self, position: usize) -> Range<usize> {
        let start = if position == 0 { self.start } else { self.ends[position - 1] };
        start as usize..self.ends[position] as usize
    }

    /// Where the run of each vertex ends in an array in which [`AdjacencyRuns::all_neighbors`] begin at a place. The array has
    /// fewer than 2³² entries.
    #[inline]
    pub fn ends_from(&self, begin: u32) -> impl ExactSizeIterator<Item = u32> + use<'a> {
        // One addition an end: negative, if the runs begin earlier in the other array.
        let moved = begin.wrapping_sub(self.start);
        self.ends.iter().map(move |end| end.wrapping_add(moved))
    }

    /// All neighbors of all of its vertices, vertex by vertex.
    #[inline]
    pub fn all_neighbors(&self) -> &'a [VertexId] {
        &self.neighbors[self.start as usize..]
    }

    /// The edges to [`AdjacencyRuns::all_neighbors`]; empty if the request wants none.
    #[inline]
    pub fn all_edges(&self) -> &'a [EdgeId] {
        self.edges.get(self.start as usize..).unwrap_or_default()
    }

    /// The neighbors of the vertex at a position.
    #[inline]
    pub fn neighbors(&self, position: usize) -> &'a [VertexId] {
        &self.neighbors[self.run(position)]
    }

    /// The edges to [`AdjacencyRuns::neighbors`]; empty if the request wants none.
    #[inline]
    pub fn edges(&self, position: usize) -> &'a [EdgeId] {
        self.edges.get(self.run(position)).unwrap_or_default()
    }

    /// Adds the number of neighbors of each vertex to the sum at the vertex's position. Reads no neighbor.
    #[inline]
    pub fn add_lengths(&self, sums: &mut [u64]) {
        let (Some(end), Some((first, rest))) = (self.ends.first(), sums.split_first_mut()) else { return };
        *first += u64::from(end - self.start);
        for (sum, ends) in rest.iter_mut().zip(self.ends.windows(2)) {
            *sum += u64::from(ends[1] - ends[0]);
        }
    }

    /// Every vertex with its neighbors and the edges to them. No edges, if the request wants none.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = (VertexId, &'a [VertexId], &'a [EdgeId])> + use<'a> {
        let (mut start, this) = (self.start as usize, *self);
        this.ends.iter().enumerate().map(move |(position, &end)| {
            let run = start..end as usize;
            start = end as usize;
            (this.vertex(position), &this.neighbors[run.clone()], this.edges.get(run).unwrap_or_default())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::TabletId;

    #[test]
    fn runs_follow_one_another() {
        let v = |slot| VertexId::new(TabletId(2), slot);
        let e = |slot| EdgeId::new(TabletId(2), slot);
        let (neighbors, edges): (Vec<_>, Vec<_>) = (0..9).map(|n| (v(n), e(n))).unzip();
        let runs = AdjacencyRuns::new(v(5), 2, &[4, 4, 7], &neighbors, &edges);
        assert_eq!((runs.vertex_count(), runs.vertex(2)), (3, v(7)));
        assert_eq!(runs.all_neighbors(), [v(2), v(3), v(4), v(5), v(6)]);
        assert_eq!(runs.all_edges().len(), 5);
        assert_eq!(runs.ends_from(0).collect::<Vec<_>>(), [2, 2, 5]);
        assert_eq!(runs.ends_from(7).collect::<Vec<_>>(), [9, 9, 12]);
        let by_position: Vec<_> = (0..3).map(|at| (runs.vertex(at), runs.neighbors(at), runs.edges(at))).collect();
        assert_eq!(by_position, runs.iter().collect::<Vec<_>>());
        assert_eq!(by_position[0], (v(5), &neighbors[2..4], &edges[2..4]));
        assert!(by_position[1].1.is_empty());
        let mut sums = [10; 4];
        runs.add_lengths(&mut sums);
        assert_eq!(sums, [12, 10, 13, 10]);
        let of_several = runs.of_generations(&[1, 0, 9]);
        let ids: Vec<_> = of_several.iter().map(|(vertex, ..)| vertex).collect();
        assert_eq!(ids, [v(5).with_generation(1), v(6), v(7).with_generation(9)]);
        assert_eq!(of_several.all_neighbors(), runs.all_neighbors());
        let bare = AdjacencyRuns::new(v(5), 2, &[4, 4, 7], &neighbors, &[]);
        assert!(
            bare.iter().map(|(vertex, neighbors, _)| (vertex, neighbors)).eq(by_position.iter().map(|of| (of.0, of.1)))
        );
        assert!(
            bare.iter().all(|(.., edges)| edges.is_empty()) && bare.all_edges().is_empty() && bare.edges(2).is_empty()
        );
    }
}
