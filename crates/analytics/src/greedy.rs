//! Decisions in an order of the vertices, each by those of its neighbors that are before it: side by side, and as if they were made one
//! after the other.
//!
//! A vertex decides when all neighbors before it have decided (Jones and Plassmann, *A Parallel Graph Coloring Heuristic*, 1993). With random numbers
//! for vertices of equal degree, chains of vertices that wait for each other are short (Hasenplaugh, Kaler, Schardl and Leiserson,
//! *Ordering Heuristics for Parallel Graph Coloring*, 2014).

use std::sync::atomic::{AtomicU32, Ordering};

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::random::mixed;
use crate::simple::SimpleRows;
use crate::team::Team;
use crate::worklist::drain;

/// Which vertices are first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum First {
    /// Those with the most neighbors.
    MostNeighbors,
    /// Those with the fewest neighbors.
    FewestNeighbors,
}

/// Calls `decide` for each position with the decisions of its neighbors that are before it. Returns all decisions.
pub(crate) fn decisions(
    projection: &Projection,
    first: First,
    seed: u64,
    decide: impl Fn(&mut dyn Iterator<Item = u32>) -> u32 + Sync,
    team: &Team,
) -> Result<Vec<u32>> {
    let rows = SimpleRows::of(projection, true, team)?;
    let ranks: Vec<u64> = (0..rows.positions())
        .map(|at| {
            let degree = match first {
                First::MostNeighbors => u32::MAX - rows.degree(at),
                First::FewestNeighbors => rows.degree(at),
            };
            u64::from(degree) << 32 | mixed(seed, u64::from(at)) >> 32
        })
        .collect();
    let rank = |at: u32| (ranks[at as usize], at);
    let column = || -> Vec<AtomicU32> { (0..rows.positions()).map(|_| AtomicU32::new(0)).collect() };
    // How many neighbors before each vertex have not decided.
    let (waiting, decisions) = (column(), column());
    let parts = projection.parts();
    let ready = team.map_parts(parts.len(), |part| {
        let mut ready = Vec::new();
        for at in parts[part].clone() {
            let own = rank(at as u32);
            let before = rows.row(at as u32).iter().filter(|other| rank(**other) < own).count() as u32;
            waiting[at].store(before, Ordering::Relaxed);
            if before == 0 {
                ready.push(at as u32);
            }
        }
        ready
    })?;
    drain(team, ready.concat(), |at, open| {
        let (own, row) = (rank(at), rows.row(at));
        let before = row.iter().filter(|other| rank(**other) < own);
        let decision = decide(&mut before.map(|other| decisions[*other as usize].load(Ordering::Relaxed)));
        decisions[at as usize].store(decision, Ordering::Relaxed);
        for &other in row.iter().filter(|other| rank(**other) > own) {
            // The thread that counts to 0 sees the decisions of all that counted before.
            if waiting[other as usize].fetch_sub(1, Ordering::AcqRel) == 1 {
                open.push(other);
            }
        }
    })?;
    Ok(decisions.into_iter().map(AtomicU32::into_inner).collect())
}
