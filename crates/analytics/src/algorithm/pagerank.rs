//! PageRank: how often a walk is at each vertex that follows a random edge, and sometimes begins anew at a random vertex.
//!
//! Power iteration (Page, Brin, Motwani and Winograd, 1999): `next(v) = (1 − damping) / n + damping · (Σ rank(u) / degree(u) over the
//! edges u → v + lost / n)`. Each vertex pulls from its incoming edges, in the order of its row, so the sums do not depend on
//! threads. What a vertex without outgoing edges passes on is *lost*; the definitions differ in it:
//!
//! | definition | lost rank | ends |
//! |---|---|---|
//! | Graphalytics | spread over all vertices | after a number of rounds |
//! | GAP | dropped | when the sum of the changes is below a limit |
//! | TinkerPop | spread over all vertices | after a number of rounds, or when the sum of the changes is below 10⁻⁵ |
//!
//! TinkerPop's begins with the numbers of traversers at the vertices, if it has some: [`run_from`]. Then the ranks keep the sum
//! that they begin with, in the place of 1.
//!
//! Work O(n + m) a round; memory 16 bytes a position.

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::team::Team;

/// What happens to the rank of vertices without outgoing edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dangling {
    /// It is spread over all vertices: the ranks have the sum 1.
    Spread,
    /// It is dropped.
    Drop,
}

/// The options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PageRankOptions {
    /// The probability of following an edge: from 0 to 1.
    pub damping: f64,
    /// The most rounds.
    pub rounds: u32,
    /// Ends when the sum of all changes of a round is at most this.
    pub tolerance: f64,
    /// What happens to the rank of vertices without outgoing edges.
    pub dangling: Dangling,
}

impl Default for PageRankOptions {
    fn default() -> Self {
        PageRankOptions { damping: 0.85, rounds: 20, tolerance: 0.0, dangling: Dangling::Spread }
    }
}

/// The result.
#[derive(Clone, Debug)]
pub struct Ranks {
    /// The rank of every position; 0 for holes.
    pub ranks: Vec<f64>,
    /// The rounds that were made.
    pub rounds: u32,
    /// The sum of the changes of the last round.
    pub change: f64,
}

/// Computes the ranks. At the beginning all vertices have the same one, and the sum is 1.
///
/// # Errors
///
/// If the damping is no probability, or if the query of the team has ended.
pub fn run(projection: &Projection, options: &PageRankOptions, team: &Team) -> Result<Ranks> {
    let (numbering, vertices) = (projection.numbering(), projection.vertex_count() as f64);
    let first = |at: usize| if numbering.exists(at as u32) { 1.0 / vertices } else { 0.0 };
    run_from(projection, (0..projection.positions()).map(first).collect(), 1.0, options, team)
}

/// Computes the ranks from those at the beginning: one for each position, 0 for holes. `sum` is their sum.
///
/// # Errors
///
/// As those of [`run`].
pub fn run_from(
    projection: &Projection,
    mut ranks: Vec<f64>,
    sum: f64,
    options: &PageRankOptions,
    team: &Team,
) -> Result<Ranks> {
    let PageRankOptions { damping, rounds, tolerance, dangling } = *options;
    if !(0.0..=1.0).contains(&damping) {
        return Err(Error::invalid(format!("the damping is {damping}; it is a probability, from 0 to 1")));
    }
    let (numbering, parts) = (projection.numbering(), projection.parts());
    let vertices = projection.vertex_count() as f64;
    let mut passed = vec![0.0; projection.positions()];
    let mut found = Ranks { ranks: Vec::new(), rounds: 0, change: f64::INFINITY };
    while found.rounds < rounds && found.change > tolerance {
        let lost = team.map_slices(parts, &mut passed, |part, passed| {
            let mut lost = 0.0;
            for (at, passed) in parts[part].clone().zip(passed) {
                match projection.out_degree(at as u32) {
                    0 => lost += ranks[at],
                    degree => *passed = ranks[at] / f64::from(degree),
                }
            }
            lost
        })?;
        // In the order of the parts (ALGO-2).
        let lost: f64 = lost.iter().sum();
        let spread = if dangling == Dangling::Spread { damping * lost / vertices } else { 0.0 };
        let base = (1.0 - damping) * sum / vertices + spread;
        let passed = &passed;
        let changes = team.map_slices(parts, &mut ranks, |part, ranks| {
            let mut change = 0.0;
            for (at, rank) in parts[part].clone().zip(ranks) {
                if numbering.exists(at as u32) {
                    let pulled: f64 = projection.incoming(at as u32).iter().map(|from| passed[*from as usize]).sum();
                    let next = base + damping * pulled;
                    change += (next - *rank).abs();
                    *rank = next;
                }
            }
            change
        })?;
        found.change = changes.iter().sum();
        found.rounds += 1;
    }
    Ok(Ranks { ranks, ..found })
}
