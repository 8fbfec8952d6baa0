//! Closeness and harmonic centrality: how few edges lead from the others to a vertex, or from it to the others.
//!
//! With distances `d` from the `r` other vertices that reach a vertex, of `n` vertices:
//!
//! | measure | value | source |
//! |---|---|---|
//! | closeness | `r / Σ d · r / (n − 1)` | Freeman 1978; the second factor, for graphs in several pieces, Wasserman and Faust 1994 |
//! | harmonic | `Σ 1 / d` | Marchiori and Latora 2000, Rochat 2009 |
//!
//! Searches begin at 64 vertices at a time ([`searches`](super::searches)), and each vertex adds up the distances at which they find
//! it: a level adds the number of the searches that find it, times the distance. So no thread adds to what another one adds to, and
//! always in the order of batches and levels: the sums have the same bits for any number of threads.
//!
//! A *sample* of `s` sources estimates the sums by `n / s` of those of the sample (Eppstein and Wang 2004: `O(log n / ε²)` sources
//! are enough for an error of ε times the diameter). Which vertices it has depends on the seed and on the order of positions.
//!
//! Work O(s · (n + m)) at worst; memory 40 bytes a position.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::Result;

use super::bfs::Follow;
use super::searches::{SOURCES, Searches};
use crate::projection::Projection;
use crate::random::sample;
use crate::team::Team;

/// What is computed from the distances.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Measure {
    /// Closeness, with the factor of Wasserman and Faust: from 0 to 1.
    Closeness,
    /// The sum of the inverse distances.
    Harmonic,
    /// The mean of the inverse distances, with 0 for vertices without a path: from 0 to 1.
    HarmonicMean,
}

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ClosenessOptions {
    /// What is computed.
    pub measure: Measure,
    /// Which paths count. [`Follow::Outgoing`]: those that lead to the vertex, as searches from the others find them;
    /// [`Follow::Incoming`]: those that lead from it.
    pub follow: Follow,
    /// The number of vertices whose distances count; `None`: all.
    pub samples: Option<usize>,
    /// What chooses them.
    pub seed: u64,
}

/// The value of every position; 0 for holes and for vertices without a path.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, options: &ClosenessOptions, team: &Team) -> Result<Vec<f64>> {
    let numbering = projection.numbering();
    let vertices: Vec<u32> = numbering.present(0..numbering.positions()).collect();
    let others = vertices.len().saturating_sub(1) as f64;
    let sources = sample(vertices, options.samples.unwrap_or(usize::MAX), options.seed);
    let zeros = || -> Vec<AtomicU64> { (0..projection.positions()).map(|_| AtomicU64::new(0)).collect() };
    // The number of sources with a path, and the bits of the sums. Only the thread that finds a position writes to it.
    let (reached, sums) = (zeros(), zeros());
    let mut searches = Searches::new(projection, options.follow);
    team.count_in("sources", sources.len() as u64);
    for batch in sources.chunks(SOURCES) {
        let add = |_: &mut (), depth: u32, at: u32, bits: u64| {
            if depth == 0 {
                return;
            }
            let of_one = match options.measure {
                Measure::Closeness => f64::from(depth),
                Measure::Harmonic | Measure::HarmonicMean => 1.0 / f64::from(depth),
            };
            let (reached, sum) = (&reached[at as usize], &sums[at as usize]);
            let count = bits.count_ones();
            reached.store(reached.load(Ordering::Relaxed) + u64::from(count), Ordering::Relaxed);
            let before = f64::from_bits(sum.load(Ordering::Relaxed));
            sum.store((before + f64::from(count) * of_one).to_bits(), Ordering::Relaxed);
        };
        searches.run(batch, u32::MAX, team, add, |_, _| Ok(()))?;
    }
    let mut looked_for: Vec<f64> = vec![sources.len() as f64; projection.positions()];
    // A vertex is not one of the others.
    sources.iter().for_each(|source| looked_for[*source as usize] -= 1.0);
    let sums = reached.into_iter().zip(sums).zip(looked_for);
    Ok(sums
        .map(|((reached, sum), looked_for)| {
            let (reached, sum) = (reached.into_inner() as f64, f64::from_bits(sum.into_inner()));
            if reached == 0.0 {
                return 0.0;
            }
            match options.measure {
                Measure::Closeness => reached / sum * (reached / looked_for),
                Measure::HarmonicMean => sum / looked_for,
                // All others are looked for: the quotient is exactly 1.
                Measure::Harmonic => sum * (others / looked_for),
            }
        })
        .collect())
}
