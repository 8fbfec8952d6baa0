//! Coloring: a number for each vertex, so that neighbors have different ones, and not many numbers are used.
//!
//! Jones and Plassmann, *A Parallel Graph Coloring Heuristic*, 1993, with the vertices of most neighbors first (Hasenplaugh, Kaler, Schardl
//! and Leiserson, *Ordering Heuristics for Parallel Graph Coloring*, 2014). A vertex takes the least color that no neighbor has, when all
//! neighbors that are before it have theirs. It is before another one if it has more neighbors; of equally many, numbers
//! decide that a seed mixes from positions. So the colors are those of a greedy choice in that order, for any number of
//! threads, and at most as many as the greatest number of neighbors, and one more. Positions may be different in another
//! database of the same graph; then the colors may be.
//!
//! Directions and loops do not count. Work O(n + m); memory 32 bytes a position, and 4 a cell of an undirected projection.

use std::sync::atomic::{AtomicU32, Ordering};

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::random::mixed;
use crate::simple::SimpleRows;
use crate::team::Team;
use crate::worklist::drain;

/// The color of every position, from 0 on.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, seed: u64, team: &Team) -> Result<Vec<u32>> {
    let rows = SimpleRows::of(projection, true, team)?;
    let ranks: Vec<u64> =
        (0..rows.positions()).map(|at| u64::from(rows.degree(at)) << 32 | mixed(seed, u64::from(at)) >> 32).collect();
    let rank = |at: u32| (ranks[at as usize], at);
    let column = || -> Vec<AtomicU32> { (0..rows.positions()).map(|_| AtomicU32::new(0)).collect() };
    // How many neighbors before each vertex have no color.
    let (waiting, colors) = (column(), column());
    let parts = projection.parts();
    let first = team.map_parts(parts.len(), |part| {
        let mut first = Vec::new();
        for at in parts[part].clone() {
            let own = rank(at as u32);
            let before = rows.row(at as u32).iter().filter(|other| rank(**other) > own).count() as u32;
            waiting[at].store(before, Ordering::Relaxed);
            if before == 0 {
                first.push(at as u32);
            }
        }
        first
    })?;
    drain(team, first.concat(), |at, open| {
        let (own, row) = (rank(at), rows.row(at));
        let before = row.iter().filter(|other| rank(**other) > own);
        let color = least_free(before.map(|other| colors[*other as usize].load(Ordering::Relaxed)), row.len());
        colors[at as usize].store(color, Ordering::Relaxed);
        for &other in row.iter().filter(|other| rank(**other) < own) {
            // The thread that counts to 0 sees the colors of all neighbors before this one.
            if waiting[other as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                open.push(other);
            }
        }
    })?;
    Ok(colors.into_iter().map(AtomicU32::into_inner).collect())
}

/// The least number that is none of these, which are at most `most`.
fn least_free(taken: impl Iterator<Item = u32> + Clone, most: usize) -> u32 {
    // Most colors are small.
    let mut bits = 0_u64;
    taken.clone().filter(|color| *color < 64).for_each(|color| bits |= 1 << color);
    if bits != u64::MAX {
        return bits.trailing_ones();
    }
    let mut is_taken = vec![false; most + 1];
    taken.for_each(|color| {
        if let Some(place) = is_taken.get_mut(color as usize) {
            *place = true;
        }
    });
    is_taken.iter().position(|taken| !taken).map_or(most as u32, |free| free as u32)
}
