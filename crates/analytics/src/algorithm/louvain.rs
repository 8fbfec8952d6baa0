//! Louvain: communities of high modularity.
//!
//! Blondel, Guillaume, Lambiotte and Lefebvre, *Fast Unfolding of Communities in Large Networks*, 2008. Vertices move, one after the
//! other, to the community of a neighbor where they add most to the modularity, until no move gains anything. Then each community
//! becomes a vertex of the next level, and these move. It ends when a level gains nothing. Edges have no direction.
//!
//! The modularity is never less than that of single vertices. A community may be disconnected within, if the vertex left it that held it together:
//! [`leiden`](super::leiden) mends that.
//!
//! Vertices choose in batches, in an order that a seed decides ([`modularity`](crate::modularity)). So other positions or another seed may give
//! other communities, and more threads do not. Work O(m) a round, of which a level has about ten on most graphs, and each level
//! is much smaller than the one before; memory 60 bytes a position, and 12 a cell for the second level.

use mangrove_graph::Result;

pub use crate::modularity::{Communities, ModularityOptions};
use crate::modularity::{Level, Mover, named};
use crate::projection::Projection;
use crate::team::Team;

/// Finds communities.
///
/// # Errors
///
/// If an option makes no sense, if a weight is negative or no number, or if the query of the team has ended.
pub fn run(projection: &Projection, options: &ModularityOptions, team: &Team) -> Result<Communities> {
    options.check()?;
    let mut level = Level::of(projection, team)?;
    // Each position's vertex of the last level.
    let mut vertices: Vec<Option<u32>> =
        (0..level.len() as u32).map(|at| (level.degree(at) > 0).then_some(at)).collect();
    let alone: Vec<u32> = (0..level.len() as u32).collect();
    let mut found = Communities {
        of_positions: Vec::new(),
        modularity: level.modularity(&alone, options.resolution, team)?,
        levels: 0,
    };
    drop(alone);
    team.count_in("levels", u64::from(options.levels));
    while level.has_weights() && found.levels < options.levels {
        let mut mover = Mover::alone(&level, options);
        if !mover.settle(team)? {
            break;
        }
        let (joined, numbers) = level.joined(&mover.communities, team)?;
        // Its vertices are the communities of this level.
        let alone: Vec<u32> = (0..joined.len() as u32).collect();
        let modularity = joined.modularity(&alone, options.resolution, team)?;
        if modularity <= found.modularity {
            break;
        }
        for vertex in vertices.iter_mut().flatten() {
            *vertex = numbers[*vertex as usize];
        }
        (found.modularity, found.levels, level) = (modularity, found.levels + 1, joined);
        team.advance(1);
    }
    found.of_positions = named(&vertices);
    Ok(found)
}
