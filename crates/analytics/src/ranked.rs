//! Rows of ranks by degree, for algorithms that look for triangles.
//!
//! Vertices are ranked by the number of their neighbors, those of fewer first. Every edge belongs to its lower end. So no vertex has more than
//! √(2m) edges, however many neighbors it has, and the triangles of a graph are found in O(m^1.5): each from its lowest
//! vertex, by the intersection of two short rows.

use std::ops::Range;

use mangrove_graph::Result;

use crate::simple::SimpleRows;
use crate::team::Team;

/// Steps that are a part of a phase, about: 0.1 ms of work.
const PART_WORK: u64 = 1 << 15;

/// Which neighbors rows have.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Keep {
    /// Those of higher ranks: each edge is in one row.
    Higher,
    /// All: each edge is in two rows.
    All,
}

/// The rows of a simple graph, by the ranks of the vertices: ranks, ascending.
#[derive(Clone, Debug)]
pub(crate) struct RankedRows {
    /// The position of each rank.
    positions: Vec<u32>,
    /// Where the row of each rank begins, and the end of the last one.
    offsets: Vec<usize>,
    /// Where the higher ranks of each row begin; empty if rows have no others.
    middles: Vec<usize>,
    cells: Vec<u32>,
}

impl RankedRows {
    pub(crate) fn of(rows: &SimpleRows, keep: Keep, team: &Team) -> Result<Self> {
        let positions = by_degree(rows);
        let mut ranks = vec![0; positions.len()];
        positions.iter().enumerate().for_each(|(rank, at)| ranks[*at as usize] = rank as u32);
        let parts = cut(positions.iter().map(|at| u64::from(rows.degree(*at))));
        let of_parts = team.map_parts(parts.len(), |part| {
            let (mut lengths, mut cells, mut row) = (Vec::with_capacity(parts[part].len()), Vec::new(), Vec::new());
            for rank in parts[part].clone() {
                row.clear();
                row.extend(rows.row(positions[rank]).iter().map(|other| ranks[*other as usize]));
                if keep == Keep::Higher {
                    row.retain(|other| *other > rank as u32);
                }
                row.sort_unstable();
                lengths.push((row.len(), row.partition_point(|other| *other < rank as u32)));
                cells.extend_from_slice(&row);
            }
            (lengths, cells)
        })?;
        let mut ranked = RankedRows { positions, offsets: vec![0], middles: Vec::new(), cells: Vec::new() };
        ranked.cells.reserve_exact(of_parts.iter().map(|(_, cells)| cells.len()).sum());
        let mut end = 0;
        for (lengths, cells) in of_parts {
            team.check()?;
            ranked.cells.extend_from_slice(&cells);
            for (length, lower) in lengths {
                if keep == Keep::All {
                    ranked.middles.push(end + lower);
                }
                end += length;
                ranked.offsets.push(end);
            }
        }
        Ok(ranked)
    }

    /// The number of ranks.
    pub(crate) fn len(&self) -> usize {
        self.positions.len()
    }

    /// The number of cells.
    pub(crate) fn cell_count(&self) -> usize {
        self.cells.len()
    }

    /// The position of a rank.
    #[inline]
    pub(crate) fn position(&self, rank: u32) -> u32 {
        self.positions[rank as usize]
    }

    /// Where the cells of a row are.
    #[inline]
    pub(crate) fn range(&self, rank: u32) -> Range<usize> {
        self.offsets[rank as usize]..self.offsets[rank as usize + 1]
    }

    /// Where the cells of a row with higher ranks are.
    #[inline]
    pub(crate) fn higher_range(&self, rank: u32) -> Range<usize> {
        let range = self.range(rank);
        self.middles.get(rank as usize).copied().unwrap_or(range.start)..range.end
    }

    /// The row of a rank.
    #[inline]
    pub(crate) fn row(&self, rank: u32) -> &[u32] {
        &self.cells[self.range(rank)]
    }

    /// The higher ranks of a row.
    #[inline]
    pub(crate) fn higher(&self, rank: u32) -> &[u32] {
        &self.cells[self.higher_range(rank)]
    }

    /// The lower ranks of a row.
    #[inline]
    pub(crate) fn lower(&self, rank: u32) -> &[u32] {
        &self.cells[self.range(rank).start..self.higher_range(rank).start]
    }

    /// Ranges of ranks that are about equally much work, if each row of higher ranks is intersected with those of its
    /// members.
    pub(crate) fn parts(&self) -> Vec<Range<usize>> {
        let length = |rank: usize| self.higher_range(rank as u32).len() as u64;
        cut((0..self.len()).map(|rank| length(rank) * (length(rank) + 4)))
    }
}

/// Positions by their degrees, and equal ones by their numbers.
fn by_degree(rows: &SimpleRows) -> Vec<u32> {
    let degrees = || (0..rows.positions()).map(|at| rows.degree(at) as usize);
    let mut next = vec![0_u32; degrees().max().map_or(0, |most| most + 2)];
    degrees().for_each(|degree| next[degree + 1] += 1);
    for degree in 1..next.len() {
        next[degree] += next[degree - 1];
    }
    let mut positions = vec![0; rows.positions() as usize];
    for (at, degree) in degrees().enumerate() {
        positions[next[degree] as usize] = at as u32;
        next[degree] += 1;
    }
    positions
}

/// Cuts numbered pieces of work into ranges of about equal work.
pub(crate) fn cut(works: impl Iterator<Item = u64>) -> Vec<Range<usize>> {
    let (mut parts, mut start, mut end, mut sum) = (Vec::new(), 0, 0, 0);
    for work in works {
        end += 1;
        sum += work + 1;
        if sum >= PART_WORK {
            parts.push(start..end);
            (start, sum) = (end, 0);
        }
    }
    if start < end {
        parts.push(start..end);
    }
    parts
}
