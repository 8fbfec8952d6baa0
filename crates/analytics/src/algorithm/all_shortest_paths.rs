//! The distances from each of some vertices to each one that it reaches, in edges.
//!
//! The sources are searched from 64 at a time ([`searches`](super::searches): MS-BFS, Then and others 2014). Rows have the order of the sources, of
//! the distances, and of the positions of the targets.
//!
//! Work O(s · (n + m)) for s sources at worst; memory 24 bytes a position, and 12 a row. There are as many rows as pairs, so a limit
//! ends the algorithm with an error before they fill the memory.

use mangrove_graph::{Error, Result, pieces};

use super::bfs::Follow;
use super::searches::{SOURCES, Searches};
use crate::projection::Projection;
use crate::team::Team;

/// Targets between two looks whether the query has ended.
const TARGETS_A_CHECK: usize = 1 << 12;

/// The distance of a target from a source.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Distance {
    /// The position of the source.
    pub source: u32,
    /// The position of the target.
    pub target: u32,
    /// The edges of a shortest path from one to the other: at least 1.
    pub edges: u32,
}

/// The distances from all sources, which are all different.
///
/// # Errors
///
/// If there are more than `limit` rows, or if the query of the team has ended.
pub fn run(projection: &Projection, sources: &[u32], limit: usize, team: &Team) -> Result<Vec<Distance>> {
    let mut searches = Searches::new(projection, Follow::Outgoing);
    let mut distances = Vec::new();
    team.count_in("sources", sources.len() as u64);
    for batch in sources.chunks(SOURCES) {
        let mut of_sources: Vec<Vec<Distance>> = vec![Vec::new(); batch.len()];
        let mut count = distances.len();
        let gather = |found: &mut Vec<(u32, u64)>, depth: u32, at: u32, bits: u64| {
            if depth > 0 {
                found.push((at, bits));
            }
        };
        searches.run(batch, u32::MAX, team, gather, |edges, found| {
            let mut found = found.concat();
            count += found.iter().map(|(_, bits)| bits.count_ones() as usize).sum::<usize>();
            if count > limit {
                return Err(Error::invalid(format!(
                    "more than {limit} pairs of vertices have a path: name fewer sources, or raise 'limit'"
                )));
            }
            pieces::sort(&mut found, pieces::WORDS, || team.check(), Ord::cmp)?;
            for (number, (target, mut bits)) in found.into_iter().enumerate() {
                if number % TARGETS_A_CHECK == 0 {
                    team.check()?;
                }
                while bits != 0 {
                    let number = bits.trailing_zeros() as usize;
                    of_sources[number].push(Distance { source: batch[number], target, edges });
                    bits &= bits - 1;
                }
            }
            Ok(())
        })?;
        for of_source in of_sources {
            team.check()?;
            distances.extend(of_source);
        }
    }
    Ok(distances)
}
