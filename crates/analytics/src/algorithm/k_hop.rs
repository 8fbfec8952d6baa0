//! How many vertices are at most k edges away from each of some vertices, itself left out.
//!
//! Breadth-first searches of limited depth, from 64 vertices at a time ([`searches`](super::searches)). The counts of all 64 grow together: bit by bit, as
//! digits of 64 numbers.
//!
//! Work O(s · (n + m)) for s vertices at worst; memory 24 bytes a position.

use mangrove_graph::Result;

use super::bfs::Follow;
use super::searches::{BitCounts, SOURCES, Searches};
use crate::projection::Projection;
use crate::team::Team;

/// The count of each source, in their order. The sources are all different.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, sources: &[u32], edges_max: u32, team: &Team) -> Result<Vec<u64>> {
    let mut searches = Searches::new(projection, Follow::Outgoing);
    let mut counts = Vec::with_capacity(sources.len());
    team.count_in("sources", sources.len() as u64);
    for batch in sources.chunks(SOURCES) {
        let mut of_batch = vec![0; batch.len()];
        let gather = |counts: &mut BitCounts, depth: u32, _: u32, bits: u64| {
            if depth > 0 {
                counts.add(bits);
            }
        };
        searches.run(batch, edges_max, team, gather, |_, of_parts| {
            of_parts.iter().for_each(|counts| counts.add_to(&mut of_batch));
            Ok(())
        })?;
        counts.extend(of_batch);
    }
    Ok(counts)
}
