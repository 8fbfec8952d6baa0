//! The neighbors of the vertices of some pages, copied vertex by vertex.
//!
//! The store shows the lists of a page table by table. A comparison needs all neighbors of a vertex together.

use mangrove_graph::{AdjacencyRequest, Result, VertexId};

use super::factors::{Call, PagesWeighed};
use super::weights::{PageId, SLOTS};

/// See the header of this file.
pub(super) struct NeighborLists {
    /// Where the list of each slot of each page ends.
    ends: Vec<usize>,
    neighbors: Vec<VertexId>,
}

impl NeighborLists {
    /// The lists of the vertices that have a weight other than 0.
    pub fn read(request: &AdjacencyRequest, weighed: &PagesWeighed, call: &mut Call<'_>) -> Result<Self> {
        let slots = weighed.pages.len() * SLOTS;
        let mut ends = vec![0; slots + 1];
        let (mut pieces, mut copied): (Vec<(usize, usize)>, Vec<VertexId>) = (Vec::new(), Vec::new());
        call.context.view.for_each_adjacency(request, &mut |runs| {
            let Some(number) = weighed.find(PageId::of(runs.vertex(0))) else { return Ok(()) };
            let (first, before) = (runs.vertex(0).offset(), copied.len());
            for ((at, weight), (_, neighbors, _)) in
                weighed.pages[number].weights[first..].iter().enumerate().zip(runs.iter())
            {
                if *weight != 0 && !neighbors.is_empty() {
                    let slot = number * SLOTS + first + at;
                    ends[slot + 1] += neighbors.len();
                    pieces.push((slot, neighbors.len()));
                    copied.extend_from_slice(neighbors);
                }
            }
            let bytes = (copied.len() - before) * 2 * size_of::<VertexId>();
            call.meter.charge(bytes)?;
            call.looked_at(runs.vertex_count() + copied.len() - before)
        })?;
        for slot in 0..slots {
            ends[slot + 1] += ends[slot];
        }
        if pieces.is_sorted_by(|a, b| a.0 < b.0) {
            return Ok(NeighborLists { ends, neighbors: copied });
        }
        // Each list is made of several pieces, or pages were met again.
        let mut next = ends.clone();
        let mut neighbors = copied.clone();
        let mut from = 0;
        for (slot, len) in pieces {
            neighbors[next[slot]..next[slot] + len].copy_from_slice(&copied[from..from + len]);
            next[slot] += len;
            from += len;
        }
        Ok(NeighborLists { ends, neighbors })
    }

    /// The neighbors of the vertex in a slot of a page.
    pub fn get(&self, page: usize, slot: usize) -> &[VertexId] {
        let at = page * SLOTS + slot;
        &self.neighbors[self.ends[at]..self.ends[at + 1]]
    }

    /// As [`NeighborLists::get`], sorted.
    pub fn sorted(&mut self, page: usize, slot: usize) -> &[VertexId] {
        let at = page * SLOTS + slot;
        let list = &mut self.neighbors[self.ends[at]..self.ends[at + 1]];
        list.sort_unstable();
        list
    }
}
