//! Lists with a tail or with ended edges, as runs of the edges that a snapshot sees.
//!
//! The edges to be checked are those in tails, and those of packed runs that are named (STORE-15). An edge's version words are three
//! steps away: page, array of words, words. Most lists have few edges to be checked. So the edges of many lists are checked
//! together, and each step is taken for many edges before the next one: then the misses of a step overlap.

use std::ops::Range;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_reclaim::Pin;

use crate::adjacency::List;
use crate::read::view::StoreView;

/// How many edges are checked together.
const CHECKED_TOGETHER: usize = 64;
/// In place of a position in a run: the cell is in the tail.
const IN_TAIL: u32 = u32::MAX;

/// A cell whose edge is checked.
#[derive(Clone, Copy, Debug)]
struct Check {
    /// Used for cells of tails.
    neighbor: VertexId,
    /// Of a cell of a run: known after [`FilteredRuns::find_edges`].
    edge: EdgeId,
    /// The position in the packed run, or [`IN_TAIL`].
    at: u32,
    is_seen: bool,
}

/// The piece of filtered lists that is being made.
#[derive(Default)]
pub(super) struct FilteredRuns {
    /// The offset of its first vertex on the page.
    pub(super) first: usize,
    /// The end of each vertex's run in `neighbors`.
    pub(super) ends: Vec<u32>,
    /// The neighbors of all runs.
    pub(super) neighbors: Vec<VertexId>,
    /// Parallel to `neighbors`, or empty if the reader wants no edges.
    pub(super) edges: Vec<EdgeId>,
    /// The checked cells of all lists that were loaded together.
    checks: Vec<Check>,
}

impl FilteredRuns {
    /// Takes all runs out.
    pub(super) fn clear(&mut self) {
        self.ends.clear();
        self.neighbors.clear();
        self.edges.clear();
    }

    /// The cells that there is memory for.
    pub(super) fn capacity(&self) -> usize {
        self.neighbors.capacity().max(self.checks.capacity())
    }

    /// Before the checks of other lists are added.
    pub(super) fn begin_checks(&mut self) {
        self.checks.clear();
    }

    /// Adds the cells of a list that have to be checked, in the order of the list. Returns where they are.
    pub(super) fn add_checks(&mut self, list: &List<'_>) -> Range<usize> {
        let begin = self.checks.len();
        let (neighbor, edge) = (VertexId::from_bits(0), EdgeId::from_bits(0));
        let of_run = |at: usize| {
            mangrove_reclaim::prefetch::prefetch(&list.edges[at]);
            Check { neighbor, edge, at: at as u32, is_seen: false }
        };
        list.suspects.each(|at| self.checks.push(of_run(at)));
        let of_tail = |(_, neighbor, edge)| Check { neighbor, edge, at: IN_TAIL, is_seen: false };
        self.checks.extend(list.tail(0).map(of_tail));
        begin..self.checks.len()
    }

    /// Finds the edges of the cells that are checked, for a list and where its checks are.
    pub(super) fn find_edges(&mut self, list: &List<'_>, checks: Range<usize>) {
        for check in self.checks[checks].iter_mut().take_while(|check| check.at != IN_TAIL) {
            check.edge = list.edges[check.at as usize];
        }
    }

    /// Checks the edges of these cells.
    pub(super) fn check(&mut self, view: &StoreView<'_>, pin: &Pin) {
        for checks in self.checks.chunks_mut(CHECKED_TOGETHER) {
            view.store.prefetch_versions(checks.iter().map(|check| check.edge), pin);
            checks.iter_mut().for_each(|check| check.is_seen = view.sees_edge(pin, check.edge));
        }
    }

    /// Adds the visible edges of a list, as the run of the next vertex.
    pub(super) fn add(&mut self, list: &List<'_>, checks: Range<usize>, wants_edges: bool) {
        let checks = &self.checks[checks];
        let of_run = checks.partition_point(|check| check.at != IN_TAIL);
        let mut taken = 0;
        let mut take = |part: Range<usize>| {
            self.neighbors.extend_from_slice(&list.neighbors[part.clone()]);
            if wants_edges {
                self.edges.extend_from_slice(&list.edges[part]);
            }
        };
        for check in checks[..of_run].iter().filter(|check| !check.is_seen) {
            take(taken..check.at as usize);
            taken = check.at as usize + 1;
        }
        take(taken..list.neighbors.len());
        let of_tail = || checks[of_run..].iter().filter(|check| check.is_seen);
        self.neighbors.extend(of_tail().map(|check| check.neighbor));
        if wants_edges {
            self.edges.extend(of_tail().map(|check| check.edge));
        }
        self.ends.push(self.neighbors.len() as u32);
    }
}
