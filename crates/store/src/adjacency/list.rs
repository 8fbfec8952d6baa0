//! A list as a reader meets it: a packed run of a block, and a tail.
//!
//! A [`List`] is found under a pin and valid for as long as the pin. It borrows the run, and walks the cells of the tail
//! up to the count that was loaded with the descriptor.

use std::ops::Range;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_reclaim::Pin;

use super::ended::{Ended, EndedCell, Suspects};
use super::tail::{FIRST_ROW, TailArena, TailCell, TailCells};

/// The packed runs of one table: two parallel arrays that never change after the block is published. Each run is sorted
/// by neighbor, and parallel edges by edge.
#[derive(Debug)]
pub(crate) struct Block {
    pub(crate) neighbors: Box<[VertexId]>,
    pub(crate) edges: Box<[EdgeId]>,
    /// The cells whose edges may have ended.
    pub(super) ended: Ended,
    /// By slot up to the last one with a list, where the run of the list ends, if a bulk load has filled a table with nothing but these runs;
    /// otherwise empty (STORE-39).
    pub(super) ends: Box<[u32]>,
}

impl Block {
    /// A block of these cells.
    pub(crate) fn of(cells: &[(VertexId, EdgeId)]) -> Self {
        Block {
            neighbors: cells.iter().map(|&(neighbor, _)| neighbor).collect(),
            edges: cells.iter().map(|&(_, edge)| edge).collect(),
            ended: Ended::new(cells.len()),
            ends: Box::default(),
        }
    }

    /// A block of the cells in two parallel arrays.
    pub(crate) fn new(neighbors: &[VertexId], edges: &[EdgeId]) -> Self {
        assert_eq!(neighbors.len(), edges.len(), "a cell is a neighbor and an edge");
        let ended = Ended::new(edges.len());
        Block { neighbors: neighbors.into(), edges: edges.into(), ended, ends: Box::default() }
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of_val(&*self.neighbors) + size_of_val(&*self.edges) + self.ended.bytes() + size_of_val(&*self.ends)
    }

    /// Where in the block a cell of a run is.
    pub(super) fn position(&self, run: Range<usize>, cell: &EndedCell) -> Option<usize> {
        Some(run.start + cell.position(&self.neighbors[run.clone()], &self.edges[run])?)
    }
}

/// A list as a reader meets it.
pub(crate) struct List<'a> {
    /// The packed part.
    pub(crate) neighbors: &'a [VertexId],
    /// Parallel to `neighbors`.
    pub(crate) edges: &'a [EdgeId],
    /// The packed edges that must be checked; none of a clean run (STORE-13).
    pub(crate) suspects: Suspects<'a>,
    /// How many cells the tail has; each must be checked.
    pub(crate) tail_len: u64,
    /// A cursor goes on in a list of the same layout version as the one it was in.
    pub(crate) layout_version: u32,
    /// The cells of the tail that its header has.
    pub(super) first_cells: &'a [TailCell],
    /// The first row of the tail; 0 if there is none.
    pub(super) first_row: u64,
    pub(super) tails: &'a TailArena,
    /// The pin that the list was found under.
    pub(super) pin: &'a Pin,
}

impl<'a> List<'a> {
    /// Returns true if the whole list is packed and every snapshot sees it (STORE-13).
    pub(crate) fn is_clean(&self) -> bool {
        !self.suspects.is_some() && self.tail_len == 0
    }

    /// How many edges must be checked.
    pub(crate) fn checked_len(&self) -> usize {
        self.suspects.count() + self.tail_len as usize
    }

    /// Starts loading the packed part and the beginning of the tail.
    pub(crate) fn prefetch(&self) {
        prefetch_run(self.neighbors);
        self.suspects.prefetch();
        if self.first_row != 0 {
            self.tails.row(self.first_row, FIRST_ROW, self.pin).iter().for_each(mangrove_reclaim::prefetch::prefetch);
        }
    }

    /// The cells of the tail from a position on, as (position, neighbor, edge).
    pub(crate) fn tail(&self, from: u64) -> impl Iterator<Item = (u64, VertexId, EdgeId)> + use<'a> {
        TailCells::new((self.first_cells, self.first_row), from..self.tail_len, self.tails, self.pin)
    }

    /// The packed cells from a position on, and whether they must be checked.
    pub(crate) fn packed(&self, from: usize) -> impl Iterator<Item = (VertexId, EdgeId, bool)> + use<'a> {
        let (suspects, from) = (self.suspects.clone(), from.min(self.neighbors.len()));
        let cells = self.neighbors[from..].iter().copied().zip(self.edges[from..].iter().copied());
        cells.zip(from..).map(move |((neighbor, edge), at)| (neighbor, edge, suspects.has(at)))
    }

    /// The cells of the tail from a position on, all of which must be checked.
    pub(crate) fn checked_tail(&self, from: u64) -> impl Iterator<Item = (VertexId, EdgeId, bool)> + use<'a> {
        self.tail(from).map(|(_, neighbor, edge)| (neighbor, edge, true))
    }

    /// Every cell of the list, visible or not, and whether it must be checked: packed ones first.
    pub(crate) fn candidates(&self) -> impl Iterator<Item = (VertexId, EdgeId, bool)> + use<'a> {
        self.packed(0).chain(self.checked_tail(0))
    }

    /// Every cell of the list, visible or not: packed ones first.
    pub(crate) fn cells(&self) -> impl Iterator<Item = (VertexId, EdgeId)> + use<'a> {
        let packed = self.neighbors.iter().copied().zip(self.edges.iter().copied());
        packed.chain(self.tail(0).map(|(_, neighbor, edge)| (neighbor, edge)))
    }
}

#[inline]
pub(super) fn prefetch_run<T>(run: &[T]) {
    for at in [0, 8, run.len().saturating_sub(1)] {
        if let Some(entry) = run.get(at) {
            mangrove_reclaim::prefetch::prefetch(entry);
        }
    }
}
