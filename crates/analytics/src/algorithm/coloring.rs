//! Coloring: a number for each vertex, so that neighbors have different ones, and not many numbers are used.
//!
//! Jones and Plassmann, *A Parallel Graph Coloring Heuristic*, 1993, with the vertices of most neighbors first ([`greedy`](crate::greedy)). A vertex takes
//! the least color that no neighbor before it has; of equally many neighbors, numbers decide that a seed mixes from positions. So the
//! colors are those of a greedy choice in that order, for any number of threads, and at most as many as the greatest number of
//! neighbors, and one more. Positions may be different in another database of the same graph; then the colors may be.
//!
//! Directions and loops do not count. Work O(n + m); memory 32 bytes a position, and 4 a cell of an undirected projection.

use mangrove_graph::Result;

use crate::greedy::{First, decisions};
use crate::projection::Projection;
use crate::team::Team;

/// The color of every position, from 0 on.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, seed: u64, team: &Team) -> Result<Vec<u32>> {
    decisions(projection, First::MostNeighbors, seed, least_free, team)
}

/// The least number that is none of these.
fn least_free(taken: &mut dyn Iterator<Item = u32>) -> u32 {
    // Most colors are small.
    let (mut bits, mut large) = (0_u64, Vec::new());
    taken.for_each(|color| match color {
        0..64 => bits |= 1 << color,
        _ => large.push(color),
    });
    if bits != u64::MAX {
        return bits.trailing_ones();
    }
    large.sort_unstable();
    large.dedup();
    // Those from 64 on without a gap.
    let full = large.iter().zip(64..).take_while(|(color, expected)| **color == *expected).count();
    64 + full as u32
}
