//! For each vertex, the least of the vertices from which it is reached, itself among them.
//!
//! This is TinkerPop's connected component: every vertex passes on the least label that it has heard of, until none hears of a lesser one.
//! If edges lead both ways, the result is the component of each vertex, named by its least vertex. If they lead one way only, a
//! label goes no further than edges do.
//!
//! A search begins at each vertex without a label, in ascending order of labels, and follows outgoing edges to vertices without
//! one. The first search that comes to a vertex has the least label that reaches it, so each edge is followed once. One thread
//! does the work.
//!
//! Work O(n + m); memory 8 bytes a position, besides the order.

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::team::Team;

/// The position of no vertex.
const NONE: u32 = u32::MAX;

/// Vertices between two looks at the limits of the query.
const BETWEEN_LOOKS: usize = 1 << 12;

/// For each position, the first one in `order` that reaches it. `order` has all positions with a vertex; a hole has itself.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, order: &[u32], team: &Team) -> Result<Vec<u32>> {
    let mut first = vec![NONE; projection.positions()];
    let (mut open, mut followed) = (Vec::new(), 0_usize);
    for &begin in order {
        if first[begin as usize] != NONE {
            continue;
        }
        first[begin as usize] = begin;
        open.push(begin);
        while let Some(at) = open.pop() {
            followed += 1;
            if followed.is_multiple_of(BETWEEN_LOOKS) {
                team.check()?;
            }
            for &other in projection.outgoing(at) {
                if first[other as usize] == NONE {
                    first[other as usize] = begin;
                    open.push(other);
                }
            }
        }
    }
    for (at, first) in first.iter_mut().enumerate().filter(|(_, first)| **first == NONE) {
        *first = at as u32;
    }
    Ok(first)
}
