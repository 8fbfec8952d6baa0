//! Hubs and authorities: good hubs lead to good authorities, and good authorities are led to by good hubs.
//!
//! Kleinberg's HITS (*Authoritative Sources in a Hyperlinked Environment*, 1999) by power iteration. In a round the authority of each
//! vertex is the sum of the hubs that lead to it, and then its hub is the sum of the authorities that it leads to; both are divided so
//! that their squares have the sum 1. They tend to the principal eigenvectors of AᵀA and AAᵀ. If edges lead both ways, the two are
//! those of A²: hub and authority then have the same limit in a connected graph that has an odd cycle.
//!
//! Each vertex pulls in the order of its row, and norms are added in the order of the parts. Work O(n + m) a round; memory 24
//! bytes a position.

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::team::Team;

/// The result.
#[derive(Clone, PartialEq, Debug)]
pub struct Hits {
    /// The hub of every position; 0 for holes.
    pub hubs: Vec<f64>,
    /// The authority of every position; 0 for holes.
    pub authorities: Vec<f64>,
    /// The rounds that were made.
    pub rounds: u32,
}

/// Computes hubs and authorities, in at most so many rounds. Ends when all changes of the hubs of a round have at most the sum
/// `tolerance`.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, rounds: u32, tolerance: f64, team: &Team) -> Result<Hits> {
    let numbering = projection.numbering();
    let equal = 1.0 / (projection.vertex_count() as f64).sqrt();
    let first = |at: usize| if numbering.exists(at as u32) { equal } else { 0.0 };
    let hubs: Vec<f64> = (0..projection.positions()).map(first).collect();
    let mut found = Hits { authorities: hubs.clone(), hubs, rounds: 0 };
    let mut change = f64::INFINITY;
    let mut before = vec![0.0; projection.positions()];
    team.count_in("rounds", u64::from(rounds));
    while found.rounds < rounds && change > tolerance {
        let Hits { hubs, authorities, .. } = &mut found;
        pull(projection, hubs, (authorities, &mut before), |at| projection.incoming(at), team)?;
        change = pull(projection, authorities, (hubs, &mut before), |at| projection.outgoing(at), team)?;
        found.rounds += 1;
        team.advance(1);
    }
    Ok(found)
}

/// Sets each value to the sum of those of a row, divided by their norm, and keeps the one before. Returns the sum of all changes.
fn pull<'p>(
    projection: &'p Projection,
    from: &[f64],
    (to, before): (&mut [f64], &mut [f64]),
    row: impl Fn(u32) -> &'p [u32] + Sync,
    team: &Team,
) -> Result<f64> {
    let parts = projection.parts();
    before.copy_from_slice(to);
    let squares = team.map_slices(parts, &mut *to, |part, to| {
        let mut squares = 0.0;
        for (at, to) in parts[part].clone().zip(to) {
            *to = row(at as u32).iter().map(|other| from[*other as usize]).sum();
            squares += *to * *to;
        }
        squares
    })?;
    let norm = squares.iter().sum::<f64>().sqrt();
    let scale = if norm > 0.0 { 1.0 / norm } else { 0.0 };
    let changes = team.map_slices(parts, &mut *to, |part, to| {
        let mut change = 0.0;
        for (at, to) in parts[part].clone().zip(to) {
            *to *= scale;
            change += (*to - before[at]).abs();
        }
        change
    })?;
    Ok(changes.iter().sum())
}
