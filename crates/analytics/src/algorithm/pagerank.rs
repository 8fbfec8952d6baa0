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
//!
//! *Personalised* ranks are those of a walk that begins anew at one of some sources (Page, Brin, Motwani and Winograd, section 6): `1 / n`
//! above becomes the part of the sources that a vertex is, and lost rank goes to the sources too. With *weights* the walk chooses an edge with
//! a probability in proportion to its weight.
//!
//! Work O(n + m) a round; memory 16 bytes a position, and 8 more with sources.

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::team::Team;

/// What happens to the rank of vertices without outgoing edges.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dangling {
    /// It is spread over all vertices, or over the sources if there are some: the ranks have the sum 1.
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
    /// Whether an edge is followed in proportion to its weight.
    pub weighted: bool,
}

impl Default for PageRankOptions {
    fn default() -> Self {
        PageRankOptions { damping: 0.85, rounds: 20, tolerance: 0.0, dangling: Dangling::Spread, weighted: false }
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

/// Computes the ranks.
///
/// # Errors
///
/// If the damping is no probability, if weights are wanted and there are none, if one is negative or no number, or if the
/// query of the team has ended.
pub fn run(projection: &Projection, options: &PageRankOptions, team: &Team) -> Result<Ranks> {
    walk(projection, options, None, team)
}

/// Computes the ranks of a walk that begins at one of the sources. One that is named twice begins twice as many walks.
///
/// # Errors
///
/// As those of [`run`], and if there is no source.
pub fn personalized(projection: &Projection, options: &PageRankOptions, sources: &[u32], team: &Team) -> Result<Ranks> {
    if sources.is_empty() {
        return Err(Error::invalid("personalised ranks need at least one source"));
    }
    let mut starts = vec![0.0; projection.positions()];
    sources.iter().for_each(|source| starts[*source as usize] += 1.0 / sources.len() as f64);
    walk(projection, options, Some(&starts), team)
}

/// `starts` has for each position the part of all walks that begin there; `None`: equally many begin at each vertex.
fn walk(projection: &Projection, options: &PageRankOptions, starts: Option<&[f64]>, team: &Team) -> Result<Ranks> {
    let PageRankOptions { damping, rounds, tolerance, dangling, weighted } = *options;
    if !(0.0..=1.0).contains(&damping) {
        return Err(Error::invalid(format!("the damping is {damping}; it is a probability, from 0 to 1")));
    }
    // What leaves each position: the sum of its weights.
    let leaving = if weighted { Some(weight_sums(projection, team)?) } else { None };
    let (numbering, parts) = (projection.numbering(), projection.parts());
    let of_each = 1.0 / projection.vertex_count() as f64;
    let start = |at: usize| match starts {
        Some(starts) => starts[at],
        None if numbering.exists(at as u32) => of_each,
        None => 0.0,
    };
    let mut ranks: Vec<f64> = (0..projection.positions()).map(start).collect();
    let mut passed = vec![0.0; projection.positions()];
    let mut found = Ranks { ranks: Vec::new(), rounds: 0, change: f64::INFINITY };
    while found.rounds < rounds && found.change > tolerance {
        let lost = team.map_slices(parts, &mut passed, |part, passed| {
            let mut lost = 0.0;
            for (at, passed) in parts[part].clone().zip(passed) {
                let leaving = match &leaving {
                    Some(sums) => sums[at],
                    None => f64::from(projection.out_degree(at as u32)),
                };
                if leaving > 0.0 {
                    *passed = ranks[at] / leaving;
                } else {
                    lost += ranks[at];
                }
            }
            lost
        })?;
        // In the order of the parts (ALGO-2).
        let lost: f64 = lost.iter().sum();
        let begun = (1.0 - damping) + if dangling == Dangling::Spread { damping * lost } else { 0.0 };
        let passed = &passed;
        let changes = team.map_slices(parts, &mut ranks, |part, ranks| {
            let mut change = 0.0;
            for (at, rank) in parts[part].clone().zip(ranks) {
                let row = projection.incoming(at as u32);
                let pulled: f64 = if weighted {
                    let weights = projection.incoming_weights(at as u32);
                    row.iter().zip(weights).map(|(from, weight)| passed[*from as usize] * weight).sum()
                } else {
                    row.iter().map(|from| passed[*from as usize]).sum()
                };
                let next = begun * start(at) + damping * pulled;
                change += (next - *rank).abs();
                *rank = next;
            }
            change
        })?;
        found.change = changes.iter().sum();
        found.rounds += 1;
    }
    Ok(Ranks { ranks, ..found })
}

/// The sum of the weights of each row.
fn weight_sums(projection: &Projection, team: &Team) -> Result<Vec<f64>> {
    if !projection.is_weighted() {
        return Err(Error::invalid(
            "the projection has no weights: name the property of the edges that is their weight",
        ));
    }
    let parts = projection.parts();
    let mut sums = vec![0.0; projection.positions()];
    let wrong = team.map_slices(parts, &mut sums, |part, sums| {
        let mut wrong = None;
        for (at, sum) in parts[part].clone().zip(sums) {
            for weight in projection.outgoing_weights(at as u32) {
                if !(weight.is_finite() && *weight >= 0.0) {
                    wrong = wrong.or(Some(*weight));
                }
                *sum += weight;
            }
        }
        wrong
    })?;
    match wrong.into_iter().flatten().next() {
        None => Ok(sums),
        Some(weight) => {
            Err(Error::invalid(format!("an edge has the weight {weight}; ranks need finite weights of at least 0")))
        }
    }
}
