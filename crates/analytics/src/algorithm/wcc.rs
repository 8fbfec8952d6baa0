//! Weakly connected components: for each vertex the least position of its component.
//!
//! Afforest (Sutton, Ben-Nun and Barak, *Optimizing Parallel Graph Connectivity Computation via Subgraph Sampling*, 2018). Every
//! vertex points to one of a lower position, and follows the pointers to a root. Two rounds link each vertex to two of its neighbors;
//! after them most graphs have one large component. It is found by a sample, and only the vertices outside of it
//! look at the rest of their neighbors.
//!
//! In the first round each vertex changes nothing but its own pointer, to that of a neighbor before it. So the round needs no atomic exchange, and
//! leaves short ways to the roots. The last round follows the pointers of the vertices outside of the large component only, unless
//! its root has changed.
//!
//! Work O(n + m), in practice about O(n); memory 4 bytes a position. Pointers only ever fall, so the roots at the end are the least
//! positions of their components, in any order of the links.

use std::sync::atomic::{AtomicU32, Ordering};

use hashbrown::HashMap;
use mangrove_graph::Result;

use crate::arrays;
use crate::projection::Projection;
use crate::team::Team;

/// Vertices of the sample.
const SAMPLE: u64 = 1_024;

/// The component of every position, as the least position in it. Holes are alone.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Vec<u32>> {
    let mut found = arrays::of_places(team, projection.positions(), |at| at as u32)?;
    let roots = arrays::shared(&mut found);
    let parts = projection.parts();
    team.for_parts(parts.len(), |part| {
        projection.each_outgoing(parts[part].clone(), |at, row| {
            if let Some(before) = earlier(at as u32, row) {
                roots[at].store(roots[before as usize].load(Ordering::Relaxed), Ordering::Relaxed);
            }
        });
    })?;
    team.for_parts(parts.len(), |part| {
        projection.each_outgoing(parts[part].clone(), |at, row| {
            let at = at as u32;
            let linked = earlier(at, row);
            if let Some(&other) = row.iter().take(2).find(|other| Some(**other) != linked) {
                link(roots, at, other);
            }
        });
    })?;
    compress(roots, projection, team)?;
    let largest = most_frequent(roots, projection);
    let outside = team.map_parts(parts.len(), |part| {
        let mut outside = Vec::new();
        for at in parts[part].clone() {
            // What pointed to the root of the sample once is in its component for ever.
            if Some(roots[at].load(Ordering::Relaxed)) == largest {
                continue;
            }
            let at = at as u32;
            outside.push(at);
            for &other in projection.outgoing(at) {
                link(roots, at, other);
            }
            if projection.is_directed() {
                // An edge from a vertex of the largest component was not looked at from there.
                for &other in projection.incoming(at) {
                    link(roots, at, other);
                }
            }
        }
        outside
    })?;
    if largest.is_some_and(|largest| roots[largest as usize].load(Ordering::Relaxed) == largest) {
        team.for_parts(outside.len(), |part| outside[part].iter().for_each(|at| point_to_root(roots, *at)))?;
    } else {
        compress(roots, projection, team)?;
    }
    Ok(found)
}

/// A neighbor before a position that is found by two looks at its row: in rows of both directions, edges to later positions are
/// often all first, or all last.
#[inline]
fn earlier(at: u32, row: &[u32]) -> Option<u32> {
    let least = *row.first()?.min(row.last()?);
    (least < at).then_some(least)
}

/// Makes the roots of two positions the same.
pub(super) fn link(roots: &[AtomicU32], one: u32, other: u32) {
    let root = |at: u32| roots[at as usize].load(Ordering::Relaxed);
    let (mut one, mut other) = (root(one), root(other));
    while one != other {
        let (high, low) = (one.max(other), one.min(other));
        let above = root(high);
        // The higher one is a root, and becomes a child of the lower one.
        if above == low
            || (above == high
                && roots[high as usize].compare_exchange(high, low, Ordering::Relaxed, Ordering::Relaxed).is_ok())
        {
            return;
        }
        (one, other) = (root(root(high)), root(low));
    }
}

fn root_of(roots: &[AtomicU32], mut at: u32) -> u32 {
    loop {
        let above = roots[at as usize].load(Ordering::Relaxed);
        if above == at {
            return at;
        }
        at = above;
    }
}

/// Makes each position point to its root.
pub(super) fn compress(roots: &[AtomicU32], projection: &Projection, team: &Team) -> Result<()> {
    let parts = projection.parts();
    team.for_parts(parts.len(), |part| {
        parts[part].clone().for_each(|at| point_to_root(roots, at as u32));
    })
}

/// Makes a position point to its root.
#[inline]
fn point_to_root(roots: &[AtomicU32], at: u32) {
    let above = roots[at as usize].load(Ordering::Relaxed);
    let root = root_of(roots, above);
    // A store takes the cache line from the other threads, and most positions point to their roots already.
    if root != above {
        roots[at as usize].store(root, Ordering::Relaxed);
    }
}

/// The root that most vertices of a sample have.
fn most_frequent(roots: &[AtomicU32], projection: &Projection) -> Option<u32> {
    let positions = projection.positions() as u64;
    let mut counts = HashMap::<u32, u32>::new();
    for number in 0..SAMPLE {
        // Positions all over the graph, the same in every run.
        let at = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 11) % positions.max(1);
        if positions > 0 && projection.numbering().exists(at as u32) {
            *counts.entry(root_of(roots, at as u32)).or_default() += 1;
        }
    }
    counts.into_iter().max_by_key(|(root, count)| (*count, std::cmp::Reverse(*root))).map(|(root, _)| root)
}
