//! Core numbers: the greatest `k` for which a vertex is in a *k-core*, a part of the graph in which everyone has at least `k` neighbors.
//!
//! Directions and loops do not count, and parallel edges are one. Vertices are peeled off level by level (Kabir and Madduri, *Parallel
//! k-Core Decomposition on Multicore Platforms*, 2017; Dhulipala, Blelloch and Shun, *Julienne*, 2017): those with the fewest
//! neighbors left are taken away, their neighbors have one fewer, and fall into the same level if they have no more than that. A part
//! follows those that fall by itself, without waiting for the others.
//!
//! The vertices that are left are scanned at every level that has some. A vertex is left for at most as many levels as it has neighbors,
//! so that is O(m) in all, and no buckets are needed. Work O(n + m), and as many phases as different core numbers; memory 16
//! bytes a position, and 4 a cell of an undirected projection.

use std::sync::atomic::{AtomicU32, Ordering};

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::simple::SimpleRows;
use crate::team::Team;
use crate::worklist::{drain, filtered, least};

/// The core number of every position.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Vec<u32>> {
    let rows = SimpleRows::of(projection, true, team)?;
    // The neighbors that are left; of a vertex that was taken away, its core number.
    let degrees: Vec<AtomicU32> = (0..rows.positions()).map(|at| AtomicU32::new(rows.degree(at))).collect();
    let degree = |at: u32| degrees[at as usize].load(Ordering::Relaxed);
    let mut left: Vec<u32> = (0..rows.positions()).filter(|at| rows.degree(*at) > 0).collect();
    while let Some(level) = least(team, &left, degree)? {
        let first = filtered(team, &left, |at| degree(at) == level)?;
        drain(team, first, |at, open| {
            let fallen = rows.row(at).iter().filter(|other| lower(&degrees[**other as usize], level));
            open.extend(fallen);
        })?;
        left = filtered(team, &left, |at| degree(at) > level)?;
    }
    Ok(degrees.into_iter().map(AtomicU32::into_inner).collect())
}

/// Makes a counter above a level one less. Returns true if that took it to the level, which happens once.
#[inline]
pub(super) fn lower(counter: &AtomicU32, level: u32) -> bool {
    if counter.load(Ordering::Relaxed) <= level {
        return false;
    }
    let before = counter.fetch_sub(1, Ordering::Relaxed);
    if before <= level {
        // Another thread has taken it to the level since the look.
        counter.fetch_add(1, Ordering::Relaxed);
    }
    before == level + 1
}
