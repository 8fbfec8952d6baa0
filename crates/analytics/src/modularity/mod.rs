//! Communities of high modularity: what Louvain and Leiden have in common.
//!
//! *Modularity* compares the weight of the edges within communities with what it would be if edges were dealt at random (Newman and
//! Girvan 2004), at a resolution `γ` (Reichardt and Bornholdt 2006): `Q = Σ over communities (within / 2W − γ · (strength / 2W)²)`. The
//! *strength* of a vertex is the weight of its edges, a loop twice; `2W` is the strength of all; `within` counts each edge from both
//! ends.
//!
//! Both algorithms go from *level* to level: vertices move between communities, and then the communities are the vertices of the next
//! level, with the edges between them added up.
//!
//! | file | holds |
//! |---|---|
//! | `level` | the weighted graph of a level |
//! | `moves` | vertices move to the community where they add most |
//!
//! # The same communities for any number of threads
//!
//! Vertices move in *batches*, in an order that a seed decides. The vertices of a batch choose their communities side by side, all
//! by the state before the batch; then they move one after the other. So a choice depends on the batches, and not on
//! threads. A batch is 1/64 of the vertices, so that few choices are made without knowing of another, and where a level has few
//! vertices, a batch is one vertex.

mod level;
mod moves;

use mangrove_graph::Result;

pub(crate) use self::level::Level;
pub(crate) use self::moves::Mover;
use crate::projection::Projection;
use crate::team::Team;

/// The options of Louvain and Leiden.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ModularityOptions {
    /// With more, communities are smaller: from 0 on.
    pub resolution: f64,
    /// Decides the order of the vertices.
    pub seed: u64,
    /// The most levels: from 1 on.
    pub levels: u32,
}

impl Default for ModularityOptions {
    fn default() -> Self {
        ModularityOptions { resolution: 1.0, seed: 0, levels: 32 }
    }
}

/// Communities, and how good they are.
#[derive(Clone, PartialEq, Debug)]
pub struct Communities {
    /// The community of every position, as the least position in it. Holes and vertices without edges are alone.
    pub of_positions: Vec<u32>,
    /// The modularity at the resolution that was asked for; 0 in a graph without weights.
    pub modularity: f64,
    /// The levels that were made.
    pub levels: u32,
}

impl ModularityOptions {
    /// Fails if an option makes no sense.
    pub(crate) fn check(&self) -> Result<()> {
        let ModularityOptions { resolution, levels, .. } = *self;
        if !(resolution.is_finite() && resolution >= 0.0) {
            let message = format!("the resolution is {resolution}; it is a finite number from 0 on");
            return Err(mangrove_graph::Error::invalid(message));
        }
        if levels == 0 {
            return Err(mangrove_graph::Error::invalid("the number of levels is 0; it is at least 1"));
        }
        Ok(())
    }
}

/// Names each community by its least position. `of_positions` has any number below the number of positions for each community;
/// `None`: the position is alone.
pub(crate) fn named(of_positions: &[Option<u32>]) -> Vec<u32> {
    let mut least = vec![u32::MAX; of_positions.len()];
    let name = |(at, community): (usize, &Option<u32>)| match community {
        None => at as u32,
        Some(community) => {
            let least = &mut least[*community as usize];
            *least = (*least).min(at as u32);
            *least
        }
    };
    // Positions ascend, so the first one is the least.
    of_positions.iter().enumerate().map(name).collect()
}

/// The weight of the cells within communities, and the strength of each community, give the modularity.
pub(crate) fn modularity(projection: &Projection, communities: &[u32], resolution: f64, team: &Team) -> Result<f64> {
    Level::of(projection, team)?.modularity(communities, resolution, team)
}
