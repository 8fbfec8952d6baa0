//! A matching of great weight: edges of which no two have an end in common.
//!
//! Locally dominant edges (Preis 1999; Manne and Halappanavar, *New Effective Multithreaded Matching Algorithms*, 2014). Each free vertex points to
//! its heaviest free neighbor. Two that point to each other are matched; vertices that pointed to one of them look anew. Edges of
//! equal weight are told apart by numbers that a seed mixes from the positions of their ends, so that long chains of equal
//! weights do not wait for each other. As all edges are in one order, the matching is the one that a greedy choice from the heaviest edge on
//! finds, for any number of threads. Its weight is at least half of the greatest one, and it is maximal: every edge has an
//! end in it. Positions may be different in another database of the same graph; then another such matching may be found.
//!
//! Edges have no direction, and loops do not count. Edges without a positive weight are left out. Work O(m log n) expected for
//! random weights; memory 8 bytes a position.

use std::sync::atomic::{AtomicU32, Ordering};

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::random::mixed;
use crate::team::Team;
use crate::worklist::chunk;

/// The partner of a vertex without one.
pub const UNMATCHED: u32 = u32::MAX;

/// Vertices that are a part of a phase.
const PART: usize = 1 << 10;

/// The partner of every position, or [`UNMATCHED`].
///
/// # Errors
///
/// If a weight is no number, or if the query of the team has ended.
pub fn run(projection: &Projection, seed: u64, team: &Team) -> Result<Vec<u32>> {
    let positions = projection.positions();
    let column = || -> Vec<AtomicU32> { (0..positions).map(|_| AtomicU32::new(UNMATCHED)).collect() };
    let (partners, wishes) = (column(), column());
    let of = |column: &[AtomicU32], at: u32| column[at as usize].load(Ordering::Relaxed);
    let is_free = |at: u32| of(&partners, at) == UNMATCHED;
    let mut left: Vec<u32> = projection.numbering().present(0..positions as u32).collect();
    while !left.is_empty() {
        let parts = left.len().div_ceil(PART);
        let misfits = team.map_parts(parts, |part| {
            for &at in chunk(&left, part, PART) {
                // A wish for one that is free still is the heaviest.
                let wish = of(&wishes, at);
                if wish == UNMATCHED || !is_free(wish) {
                    wishes[at as usize].store(heaviest(projection, at, seed, is_free)?, Ordering::Relaxed);
                }
            }
            Ok(())
        })?;
        misfits.into_iter().collect::<Result<()>>()?;
        // Each end of a pair sees the other one's wish, and writes only its own partner.
        let open = team.map_parts(parts, |part| {
            let mut open = Vec::new();
            for &at in chunk(&left, part, PART) {
                let wish = of(&wishes, at);
                if wish == UNMATCHED {
                    continue;
                }
                match of(&wishes, wish) == at {
                    true => partners[at as usize].store(wish, Ordering::Relaxed),
                    false => open.push(at),
                }
            }
            open
        })?;
        left = open.concat();
    }
    Ok(partners.into_iter().map(AtomicU32::into_inner).collect())
}

/// The free neighbor along the heaviest edge; [`UNMATCHED`] if there is none.
fn heaviest(projection: &Projection, at: u32, seed: u64, is_free: impl Fn(u32) -> bool) -> Result<u32> {
    let mut best: Option<(f64, u64, u32)> = None;
    let mut row = |cells: &[u32], weights: &[f64]| {
        for (cell, &other) in cells.iter().enumerate() {
            let weight = weights.get(cell).copied().unwrap_or(1.0);
            if !weight.is_finite() {
                let message = format!("an edge has the weight {weight}; matchings need finite weights");
                return Err(Error::invalid(message));
            }
            if other != at && weight > 0.0 && is_free(other) {
                let tie = tie(seed, at, other);
                if best.is_none_or(|(most, most_tie, _)| weight > most || (weight == most && tie > most_tie)) {
                    best = Some((weight, tie, other));
                }
            }
        }
        Ok(())
    };
    row(projection.outgoing(at), projection.outgoing_weights(at))?;
    if projection.is_directed() {
        row(projection.incoming(at), projection.incoming_weights(at))?;
    }
    Ok(best.map_or(UNMATCHED, |(_, _, other)| other))
}

/// What edges of equal weight are told apart by: different for different ends.
fn tie(seed: u64, one: u32, other: u32) -> u64 {
    mixed(seed, u64::from(one.min(other)) << 32 | u64::from(one.max(other)))
}
