//! Katz centrality: how many walks lead to a vertex, of which long ones count less.
//!
//! `x(v) = β + α · Σ x(u)` over the edges u → v (Katz, *A New Status Index Derived from Sociometric Analysis*, 1953): with β = 1, the sum over all
//! walks that end at the vertex of α to the power of their length. It is found by Jacobi iteration from β on. The sums are finite
//! if α is below 1 / λ for the greatest eigenvalue λ of the graph, which is at most the greatest number of edges that lead
//! to a vertex.
//!
//! Each vertex pulls in the order of its row. Work O(n + m) a round; memory 16 bytes a position.

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::team::Team;

/// The part of 1 / (most edges that lead to a vertex) that α is if it is not given.
const PART_OF_LIMIT: f64 = 0.85;

/// The options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct KatzOptions {
    /// What a further edge of a walk multiplies it with; `None`: 0.85 / (most edges that lead to a vertex), for which the sums are
    /// always finite.
    pub alpha: Option<f64>,
    /// What each vertex begins with.
    pub beta: f64,
    /// The most rounds.
    pub rounds: u32,
    /// Ends when the sum of all changes of a round is at most this part of the sum of all values.
    pub tolerance: f64,
}

impl Default for KatzOptions {
    fn default() -> Self {
        KatzOptions { alpha: None, beta: 1.0, rounds: 1_000, tolerance: 1e-9 }
    }
}

/// The value of every position; 0 for holes.
///
/// # Errors
///
/// If the values still change after all rounds, or if the query of the team has ended.
pub fn run(projection: &Projection, options: &KatzOptions, team: &Team) -> Result<Vec<f64>> {
    let (numbering, parts) = (projection.numbering(), projection.parts());
    let degrees = team.map_parts(parts.len(), |part| {
        parts[part].clone().map(|at| projection.incoming(at as u32).len()).max().unwrap_or(0)
    })?;
    let most = degrees.into_iter().max().unwrap_or(0).max(1) as f64;
    let alpha = options.alpha.unwrap_or(PART_OF_LIMIT / most);
    let first = |at: usize| if numbering.exists(at as u32) { options.beta } else { 0.0 };
    let mut values: Vec<f64> = (0..projection.positions()).map(first).collect();
    let mut next = values.clone();
    team.count_in("rounds", u64::from(options.rounds));
    for _ in 0..options.rounds {
        let known = &values;
        let of_parts = team.map_slices(parts, &mut *next, |part, next| {
            let (mut change, mut sum) = (0.0, 0.0);
            for (at, next) in parts[part].clone().zip(next) {
                if !numbering.exists(at as u32) {
                    continue;
                }
                let pulled: f64 = projection.incoming(at as u32).iter().map(|from| known[*from as usize]).sum();
                *next = options.beta + alpha * pulled;
                change += (*next - known[at]).abs();
                sum += next.abs();
            }
            (change, sum)
        })?;
        std::mem::swap(&mut values, &mut next);
        team.advance(1);
        let (change, sum) = of_parts.iter().fold((0.0, 0.0), |(one, other), part| (one + part.0, other + part.1));
        if !sum.is_finite() {
            break;
        }
        if change <= options.tolerance * sum {
            return Ok(values);
        }
    }
    Err(Error::invalid(format!(
        "the sums of katz still change after the last round, with alpha {alpha}: allow more rounds, or take a smaller alpha. \
         Below {} the sums are always finite",
        1.0 / most
    )))
}
