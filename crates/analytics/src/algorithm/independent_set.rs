//! A maximal independent set: vertices of which no two are neighbors, and to which none can be added.
//!
//! Luby (1986), in the form of Blelloch, Fineman and Shun, *Greedy Sequential Maximal Independent Set and Matching are Parallel on Average*, 2012:
//! a vertex is in the set if no neighbor before it is ([`greedy`](crate::greedy)). The vertices with the fewest neighbors are first,
//! because they keep the fewest others out; of equally many, numbers decide that a seed mixes from positions. So the set is that of
//! a greedy choice in that order, for any number of threads. Positions may be different in another database of the same graph; then
//! another set may be found.
//!
//! Directions and loops do not count. Work O(n + m); memory 32 bytes a position, and 4 a cell of an undirected projection.

use mangrove_graph::Result;

use crate::greedy::{First, decisions};
use crate::projection::Projection;
use crate::team::Team;

/// Whether each position is in the set. Holes are not.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, seed: u64, team: &Team) -> Result<Vec<bool>> {
    let is_in = |before: &mut dyn Iterator<Item = u32>| u32::from(before.max() != Some(1));
    let found = decisions(projection, First::FewestNeighbors, seed, is_in, team)?;
    let numbering = projection.numbering();
    Ok(found.into_iter().enumerate().map(|(at, is_in)| is_in == 1 && numbering.exists(at as u32)).collect())
}
