//! Leiden: communities of high modularity, each of which is connected.
//!
//! Traag, Waltman and van Eck, *From Louvain to Leiden: Guaranteeing Well-connected Communities*, 2019. Vertices move between communities as in
//! [`louvain`](super::louvain). Then each community is *refined*: its vertices begin alone once more and join each other, if they are well
//! connected with the rest of the community. The next level has a vertex for each refined community, and they begin in the
//! communities that were refined. So what does not hold together can part at the next level.
//!
//! Two things differ from the paper. Of several refined communities a vertex joins the one where it adds most, and not a random one (as
//! Sahu, *GVE-Leiden*, 2023). And at the end, communities that are disconnected are split into their connected parts, which never
//! lowers the modularity; so all communities are connected even if a limit of levels ends the search.
//!
//! Edges have no direction. The best communities of all levels count, and their modularity is never less than that of single
//! vertices. Vertices choose in batches, in an order that a seed decides ([`modularity`](crate::modularity)). So other positions or another seed may
//! give other communities, and more threads do not. Work O(m) a round; memory 90 bytes a position, and 12 a cell for the second
//! level.

use std::sync::atomic::AtomicU32;

use mangrove_graph::Result;

use super::wcc::{compress, link};
pub use crate::modularity::{Communities, ModularityOptions};
use crate::modularity::{Level, Mover, modularity};
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
    let mut communities: Vec<u32> = (0..level.len() as u32).collect();
    let mut best = (level.modularity(&communities, options.resolution, team)?, communities.clone());
    let mut levels = 0;
    team.count_in("levels", u64::from(options.levels));
    while level.has_weights() && levels < options.levels {
        levels += 1;
        let mut mover = Mover::new(&level, options, communities);
        mover.settle(team)?;
        let modularity = level.modularity(&mover.communities, options.resolution, team)?;
        if modularity > best.0 {
            best.0 = modularity;
            for (at, (community, vertex)) in best.1.iter_mut().zip(&vertices).enumerate() {
                // Holes and vertices without edges are alone. The others are named by vertices of the level, so splitting tells them apart.
                *community = vertex.map_or(at as u32, |vertex| mover.communities[vertex as usize]);
            }
        }
        let mut refined = Mover::alone(&level, options);
        refined.refine(&mover, team)?;
        let (joined, numbers) = level.joined(&refined.communities, team)?;
        if joined.len() == level.edged() {
            // Nothing joined: the next level would be this one.
            break;
        }
        // Each community is named by one of its vertices of the next level.
        let mut names = vec![u32::MAX; level.len()];
        communities = vec![0; joined.len()];
        for (at, number) in numbers.iter().enumerate().filter(|(_, number)| (**number as usize) < joined.len()) {
            let name = &mut names[mover.communities[at] as usize];
            *name = (*name).min(*number);
            communities[*number as usize] = *name;
        }
        for vertex in vertices.iter_mut().flatten() {
            *vertex = numbers[*vertex as usize];
        }
        level = joined;
        team.advance(1);
    }
    let of_positions = split(projection, &best.1, team)?;
    let modularity = modularity(projection, &of_positions, options.resolution, team)?;
    Ok(Communities { of_positions, modularity, levels })
}

/// Splits communities into their connected parts. Each is named by its least position.
fn split(projection: &Projection, communities: &[u32], team: &Team) -> Result<Vec<u32>> {
    let roots: Vec<AtomicU32> = (0..projection.positions() as u32).map(AtomicU32::new).collect();
    let parts = projection.parts();
    team.for_parts(parts.len(), |part| {
        for at in parts[part].clone() {
            for &other in projection.outgoing(at as u32) {
                if communities[at] == communities[other as usize] {
                    link(&roots, at as u32, other);
                }
            }
        }
    })?;
    compress(&roots, projection, team)?;
    Ok(roots.into_iter().map(AtomicU32::into_inner).collect())
}
