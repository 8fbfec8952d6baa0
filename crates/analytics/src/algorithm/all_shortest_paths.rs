//! The distances from each of some vertices to each one that it reaches, in edges.
//!
//! The sources are searched from 64 at a time ([`searches`](super::searches): MS-BFS, Then and others 2014). Rows have the order of the sources, of
//! the distances, and of the positions of the targets.
//!
//! Each source has its rows for itself, as targets and the place in them where each distance ends. So no array has all rows: it
//! would be copied whenever it grows.
//!
//! Work O(s · (n + m)) for s sources at worst; memory 24 bytes a position, and 4 a row. There are as many rows as pairs, so a limit
//! ends the algorithm with an error before they fill the memory.

use mangrove_graph::{Error, Result, pieces};

use super::bfs::Follow;
use super::searches::{SOURCES, Searches};
use crate::projection::Projection;
use crate::team::Team;

/// Targets between two looks whether the query has ended.
const TARGETS_A_CHECK: usize = 1 << 12;

/// The distances from a source, nearest targets first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Distances {
    /// The position of the source.
    pub source: u32,
    /// The positions of the targets.
    pub targets: Vec<u32>,
    /// Where the targets of a path of 1, 2, … edges end in `targets`.
    pub ends: Vec<usize>,
}

impl Distances {
    /// The targets, each with the edges of a shortest path to it: at least 1.
    pub fn rows(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let begins = std::iter::once(0).chain(self.ends.iter().copied());
        let levels = (1..).zip(begins.zip(&self.ends));
        levels.flat_map(|(edges, (begin, end))| self.targets[begin..*end].iter().map(move |target| (*target, edges)))
    }
}

/// The distances from all sources, which are all different.
///
/// # Errors
///
/// If there are more than `limit` rows, or if the query of the team has ended.
pub fn run(projection: &Projection, sources: &[u32], limit: usize, team: &Team) -> Result<Vec<Distances>> {
    let mut searches = Searches::new(projection, Follow::Outgoing);
    let (mut distances, mut count) = (Vec::with_capacity(sources.len()), 0);
    team.count_in("sources", sources.len() as u64);
    for batch in sources.chunks(SOURCES) {
        let nothing_from = |source: &u32| Distances { source: *source, targets: Vec::new(), ends: Vec::new() };
        let mut of_sources: Vec<Distances> = batch.iter().map(nothing_from).collect();
        let gather = |found: &mut Vec<(u32, u64)>, _: u32, at: u32, bits: u64| found.push((at, bits));
        searches.run(batch, u32::MAX, team, gather, |depth, found| {
            if depth == 0 {
                return Ok(());
            }
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
                    of_sources[bits.trailing_zeros() as usize].targets.push(target);
                    bits &= bits - 1;
                }
            }
            of_sources.iter_mut().for_each(|of_source| of_source.ends.push(of_source.targets.len()));
            Ok(())
        })?;
        for mut of_source in of_sources {
            team.check()?;
            of_source.targets.shrink_to_fit();
            distances.push(of_source);
        }
    }
    Ok(distances)
}
