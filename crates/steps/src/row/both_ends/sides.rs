//! One side of a search from both ends: what it has reached, and the level from which it goes on.

use mangrove_graph::{EdgeId, ExpandCursor, FastMap, VertexId};

/// How a side reached a vertex.
#[derive(Clone, Copy, Debug)]
pub(super) enum Reached {
    /// It begins there.
    Root,
    /// From another vertex, over an edge, which is kept if paths contain edges.
    From(VertexId, Option<EdgeId>),
}

/// A side.
#[derive(Debug, Default)]
pub(super) struct Side {
    /// The vertices that it has reached.
    pub reached: FastMap<VertexId, Reached>,
    /// The vertices of the last level that is complete.
    pub frontier: Vec<VertexId>,
    /// How far the edges of the frontier have been followed.
    pub cursor: ExpandCursor,
    /// True if they all have been.
    pub is_worked_off: bool,
    /// The vertices of the level after it.
    next: Vec<VertexId>,
}

impl Side {
    /// A side that begins at some vertices.
    pub fn new(roots: &[VertexId]) -> Self {
        let reached = roots.iter().map(|root| (*root, Reached::Root)).collect();
        Side { reached, frontier: roots.to_vec(), ..Side::default() }
    }

    /// Comes to a vertex, unless the side has been there.
    pub fn reach(&mut self, vertex: VertexId, how: Reached) {
        self.reached.entry(vertex).or_insert_with(|| {
            self.next.push(vertex);
            how
        });
    }

    /// Goes to the next level. Its vertices are sorted, so that neighbors in memory are read together.
    pub fn next_level(&mut self) {
        self.frontier = std::mem::take(&mut self.next);
        self.frontier.sort_unstable();
        (self.cursor, self.is_worked_off) = (ExpandCursor::default(), false);
    }

    /// The vertices on the way back to the root, each with the edge over which the side came, without the root.
    pub fn back(&self, from: VertexId) -> impl Iterator<Item = (VertexId, Option<EdgeId>)> {
        let step = |at: VertexId| match self.reached.get(&at) {
            Some(Reached::From(before, edge)) => Some((at, *edge, *before)),
            Some(Reached::Root) | None => None,
        };
        std::iter::successors(step(from), move |(_, _, before)| step(*before)).map(|(at, edge, _)| (at, edge))
    }

    /// Returns about how many bytes it holds.
    pub fn bytes(&self) -> u64 {
        let ids = self.frontier.capacity() + self.next.capacity();
        let entries = self.reached.capacity() * (size_of::<(VertexId, Reached)>() + 1);
        (ids * size_of::<VertexId>() + entries) as u64
    }
}
