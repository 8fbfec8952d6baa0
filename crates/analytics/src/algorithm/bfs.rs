//! Breadth-first search: the number of edges on a shortest path from a source to each vertex.
//!
//! Level by level, in the better of two directions (Beamer, Asanović and Patterson, *Direction-Optimizing Breadth-First Search*,
//! 2012). *Top down*, the vertices of the last level look for neighbors without a depth. *Bottom up*, the vertices without
//! a depth look for a neighbor in the last level, and stop at the first: in the middle of a search most of a graph is found
//! by few looks. A search turns bottom up when the frontier has more cells than 1/15 of all vertices and of the cells that are left to look at, because bottom up looks
//! at all of these, and back when it has fewer than 1/18 of the vertices. In a grid there are a thousand levels of a few hundred vertices: the cells of such a
//! level are estimated from those of the level before, and threads write depths without atomic exchanges.
//!
//! The *parent* of a vertex is the neighbor of the level before it with the least position. It is found by a walk over all rows after the
//! search: a parent that is chosen during the search would depend on which thread comes first.
//!
//! Work O(n + m), as many phases as the greatest depth; memory 4 bytes a position, two bits in bottom-up levels, and 4 bytes
//! with parents.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mangrove_graph::Result;

use crate::arrays;
use crate::projection::Projection;
use crate::team::Team;

/// The depth of a vertex that is not reached.
pub const UNREACHED: u32 = u32::MAX;

/// Bottom up is better from this part of the vertices and of the cells that are left on.
const ALPHA: u64 = 15;
/// Top down is better again below this part of the vertices.
const BETA: u64 = 18;
/// Cells of the rows of a frontier that make a part of a phase: about as long as a helper that is awake needs to come.
const FRONTIER_CELLS: u64 = 512;
/// Vertices of a frontier that make a part of a phase, at least.
const FRONTIER_PART: u64 = 64;

/// Vertices of a frontier that one thread searches from between two looks whether the query has ended.
const CHECKED: usize = 1_024;
/// The cells of a level are counted if the estimate is above this part of what would turn the search bottom up.
const ESTIMATED: u64 = 16;

/// Which edges a search follows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Follow {
    /// From source to target. In an undirected projection, both ways.
    #[default]
    Outgoing,
    /// From target to source.
    Incoming,
}

/// The depth of every position: [`UNREACHED`] for holes and for vertices that no path leads to.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, source: u32, follow: Follow, team: &Team) -> Result<Vec<u32>> {
    within(projection, source, follow, UNREACHED, team)
}

/// As [`run`], without the vertices that are farther away than `depth_max` edges.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn within(projection: &Projection, source: u32, follow: Follow, depth_max: u32, team: &Team) -> Result<Vec<u32>> {
    let forward = |at: u32| match follow {
        Follow::Outgoing => projection.outgoing(at),
        Follow::Incoming => projection.incoming(at),
    };
    let mut found = arrays::filled(team, projection.positions(), UNREACHED)?;
    let depths = arrays::shared(&mut found);
    let mut frontier = Frontier::of(vec![source]);
    depths[source as usize].store(0, Ordering::Relaxed);
    let mut left = projection.cell_count();
    let mut depth = 0;
    // The cells of a frontier, if they are as many for each vertex as in the level before.
    let mut expected = u64::MAX;
    while frontier.len() > 0 && depth < depth_max {
        // Bottom up, each vertex is looked at, and cells of those without a depth.
        let limit = (left + projection.positions() as u64) / ALPHA;
        let of_frontier = match expected < limit / ESTIMATED {
            true => expected,
            false => frontier.vertices().map(|at| forward(at).len() as u64).sum(),
        };
        if of_frontier > limit {
            let last = bottom_up(projection, depths, follow, frontier.vertices(), (&mut depth, depth_max), team)?;
            frontier = Frontier::of(last);
            expected = u64::MAX;
            continue;
        }
        depth += 1;
        let of_level = frontier.len() as u64;
        let parts = (of_frontier / FRONTIER_CELLS).min(of_level / FRONTIER_PART) as usize;
        let search = |vertices: &[u32], found: &mut Vec<u32>| {
            let mut cells = 0;
            for at in vertices {
                let row = forward(*at);
                cells += row.len() as u64;
                for &other in row {
                    let place = &depths[other as usize];
                    // No exchange: two threads may find a vertex at the same time. Both write the same depth, and the next level has the
                    // vertex twice, which is rare.
                    if place.load(Ordering::Relaxed) == UNREACHED {
                        place.store(depth, Ordering::Relaxed);
                        found.push(other);
                    }
                }
            }
            cells
        };
        let cells = if parts < 2 || !team.has_helpers() {
            let (mut cells, mut found) = (0, Vec::with_capacity(frontier.len()));
            for vertices in frontier.pieces.iter().flat_map(|piece| piece.vertices.chunks(CHECKED)) {
                team.check()?;
                cells += search(vertices, &mut found);
            }
            frontier = Frontier::of(found);
            cells
        } else {
            frontier.cut(parts);
            frontier.advance(team, search)?
        };
        left = left.saturating_sub(cells);
        expected = cells / of_level * frontier.len() as u64 + frontier.len() as u64;
    }
    Ok(found)
}

/// The vertices of a level, in pieces. The vertices that a piece finds are a piece of the next level: mostly the same thread works on them, and finds
/// them in its caches.
struct Frontier {
    pieces: Vec<Piece>,
    /// One for each piece.
    ranges: Vec<Range<usize>>,
}

#[derive(Default)]
struct Piece {
    vertices: Vec<u32>,
    /// Room for those of the next level.
    found: Vec<u32>,
}

impl Frontier {
    /// In one piece.
    fn of(vertices: Vec<u32>) -> Self {
        Frontier { pieces: vec![Piece { vertices, found: Vec::new() }], ranges: Vec::new() }
    }

    fn len(&self) -> usize {
        self.pieces.iter().map(|piece| piece.vertices.len()).sum()
    }

    fn vertices(&self) -> impl Iterator<Item = u32> {
        self.pieces.iter().flat_map(|piece| piece.vertices.iter().copied())
    }

    /// Cuts the vertices into so many pieces, unless they are in pieces of about that size.
    fn cut(&mut self, parts: usize) {
        let (count, largest) = (self.pieces.len(), self.pieces.iter().map(|piece| piece.vertices.len()).max());
        let is_even = largest.unwrap_or(0) * count <= 2 * self.len();
        if !(is_even && parts <= 2 * count && count <= 2 * parts) {
            let all: Vec<u32> = self.vertices().collect();
            let pieces = all.chunks(all.len().div_ceil(parts));
            self.pieces = pieces.map(|piece| Piece { vertices: piece.to_vec(), found: Vec::new() }).collect();
        }
        self.ranges.clear();
        self.ranges.extend((0..self.pieces.len()).map(|piece| piece..piece + 1));
    }

    /// Goes on to the next level: what `search` finds from the vertices of each piece. Returns the sum of what it returns.
    fn advance(&mut self, team: &Team, search: impl Fn(&[u32], &mut Vec<u32>) -> u64 + Sync) -> Result<u64> {
        let sums = team.map_slices(&self.ranges, &mut *self.pieces, |_, pieces: &mut [Piece]| {
            let mut sum = 0;
            for piece in pieces {
                // Taken out while it grows: other pieces lie beside this one.
                let mut found = std::mem::take(&mut piece.found);
                found.clear();
                sum += search(&piece.vertices, &mut found);
                piece.found = std::mem::replace(&mut piece.vertices, found);
            }
            sum
        })?;
        Ok(sums.iter().sum())
    }
}

/// The parent of every position, from the depths that a search has found; [`UNREACHED`] for the source, and for positions
/// without a depth.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn parents(projection: &Projection, depths: &[u32], follow: Follow, team: &Team) -> Result<Vec<u32>> {
    let parts = projection.parts();
    let mut parents = vec![UNREACHED; depths.len()];
    team.map_slices(parts, &mut *parents, |part, parents| {
        for (at, parent) in parts[part].clone().zip(parents) {
            let depth = depths[at];
            if depth == 0 || depth == UNREACHED {
                continue;
            }
            let before = match follow {
                Follow::Outgoing => projection.incoming(at as u32),
                Follow::Incoming => projection.outgoing(at as u32),
            };
            let of_last_level = before.iter().filter(|other| depths[**other as usize] == depth - 1);
            *parent = of_last_level.min().copied().unwrap_or(UNREACHED);
        }
    })?;
    Ok(parents)
}

/// Goes bottom up until the frontier is small, or the depth the greatest. Returns the last frontier.
fn bottom_up(
    projection: &Projection,
    depths: &[AtomicU32],
    follow: Follow,
    frontier: impl Iterator<Item = u32>,
    (depth, depth_max): (&mut u32, u32),
    team: &Team,
) -> Result<Vec<u32>> {
    let words = projection.positions().div_ceil(64);
    let bitmap = || -> Vec<AtomicU64> { (0..words).map(|_| AtomicU64::new(0)).collect() };
    let (mut last, mut next) = (bitmap(), bitmap());
    for at in frontier {
        *last[at as usize / 64].get_mut() |= 1 << (at % 64);
    }
    let (parts, vertices) = (projection.parts(), projection.vertex_count());
    loop {
        *depth += 1;
        let level = *depth;
        let found = team.map_parts(parts.len(), |part| {
            let mut found = 0_u64;
            let visit = |at: usize, row: &[u32]| {
                let is_in_last =
                    |other: &u32| last[*other as usize / 64].load(Ordering::Relaxed) >> (other % 64) & 1 == 1;
                if depths[at].load(Ordering::Relaxed) == UNREACHED && row.iter().any(is_in_last) {
                    depths[at].store(level, Ordering::Relaxed);
                    next[at / 64].fetch_or(1 << (at % 64), Ordering::Relaxed);
                    found += 1;
                }
            };
            match follow {
                Follow::Outgoing => projection.each_incoming(parts[part].clone(), visit),
                Follow::Incoming => projection.each_outgoing(parts[part].clone(), visit),
            }
            found
        })?;
        let found: u64 = found.iter().sum();
        std::mem::swap(&mut last, &mut next);
        if found < vertices / BETA || found == 0 || *depth == depth_max {
            let mut frontier = Vec::with_capacity(found as usize);
            for (word, bits) in last.iter_mut().enumerate() {
                let mut bits = *bits.get_mut();
                while bits != 0 {
                    frontier.push((word * 64) as u32 + bits.trailing_zeros());
                    bits &= bits - 1;
                }
            }
            return Ok(frontier);
        }
        next.iter_mut().for_each(|word| *word.get_mut() = 0);
    }
}
