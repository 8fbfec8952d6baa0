//! One shortest path from a vertex to another.
//!
//! *Without weights*, two breadth-first searches meet: one follows edges from the source, the other follows them backwards from the target, and
//! the one with fewer cells before it goes on (Pohl, *Bi-directional Search*, 1971). Both have finished whole levels before,
//! so the first vertex that both have seen is on a shortest path. Each search looks at vertices half as far away as the target, which is a
//! small part of most graphs.
//!
//! *With weights*, it is Dijkstra's algorithm (*A Note on Two Problems in Connexion with Graphs*, 1959) with a binary heap, which ends when
//! it reaches the target.
//!
//! One thread works. Work O(n + m), and O((n + m) log n) with weights; memory 8 bytes a position, 12 with weights, of which only what the
//! search has seen is touched. Of several shortest paths, the order of the rows decides: the path is the same for the
//! same projection.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::team::Team;

/// Vertices between two looks whether the query has ended.
const VERTICES_A_CHECK: usize = 1_024;

/// A path.
#[derive(Clone, PartialEq, Debug)]
pub struct Path {
    /// The positions from the source to the target.
    pub vertices: Vec<u32>,
    /// The sum of the weights, or the number of edges.
    pub length: f64,
}

/// A path with the fewest edges; `None` if there is none.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn fewest_edges(projection: &Projection, source: u32, target: u32, team: &Team) -> Result<Option<Path>> {
    // The position from which a search came to each, and 1; 0: not seen. A vector of zeros is not touched before it is used.
    let mut before = vec![0_u32; projection.positions()];
    let mut after = vec![0_u32; projection.positions()];
    (before[source as usize], after[target as usize]) = (source + 1, target + 1);
    let (mut forward, mut backward) = (vec![source], vec![target]);
    let mut meeting = (source == target).then_some(source);
    while meeting.is_none() && !forward.is_empty() && !backward.is_empty() {
        let cells = |level: &[u32], backwards: bool| -> usize {
            let row = |at: &u32| if backwards { projection.incoming(*at) } else { projection.outgoing(*at) };
            level.iter().map(|at| row(at).len()).sum()
        };
        if cells(&forward, false) <= cells(&backward, true) {
            meeting = next_level(&mut forward, &mut before, &after, |at| projection.outgoing(at), team)?;
        } else {
            meeting = next_level(&mut backward, &mut after, &before, |at| projection.incoming(at), team)?;
        }
    }
    let Some(meeting) = meeting else { return Ok(None) };
    let mut vertices = trace(&before, meeting, source);
    let rest = trace(&after, meeting, target);
    vertices.reverse();
    vertices.extend_from_slice(&rest[1..]);
    Ok(Some(Path { length: (vertices.len() - 1) as f64, vertices }))
}

/// Goes a level on. Returns the first vertex that the other search has seen.
fn next_level<'p>(
    level: &mut Vec<u32>,
    seen: &mut [u32],
    seen_by_other: &[u32],
    row: impl Fn(u32) -> &'p [u32],
    team: &Team,
) -> Result<Option<u32>> {
    let mut next = Vec::new();
    for some in level.chunks(VERTICES_A_CHECK) {
        team.check()?;
        for &at in some {
            for &other in row(at) {
                if seen[other as usize] == 0 {
                    seen[other as usize] = at + 1;
                    if seen_by_other[other as usize] != 0 {
                        return Ok(Some(other));
                    }
                    next.push(other);
                }
            }
        }
    }
    *level = next;
    Ok(None)
}

/// The positions from one to the end of a search, along the positions that it came from.
fn trace(from: &[u32], mut at: u32, end: u32) -> Vec<u32> {
    let mut path = vec![at];
    while at != end {
        at = from[at as usize] - 1;
        path.push(at);
    }
    path
}

/// A path with the least sum of weights; `None` if there is none.
///
/// # Errors
///
/// If the projection has no weights, if a weight that the search meets is negative or no number, or if the query of the team has ended.
pub fn least_weight(projection: &Projection, source: u32, target: u32, team: &Team) -> Result<Option<Path>> {
    if !projection.is_weighted() {
        return Err(no_weights());
    }
    let mut before = vec![0_u32; projection.positions()];
    // The bits of a distance: for numbers that are not negative, they are in the order of the numbers. Valid where `before` is
    // not 0.
    let mut distances = vec![0_u64; projection.positions()];
    let mut open = BinaryHeap::from([Reverse((0_u64, source))]);
    before[source as usize] = source + 1;
    let mut looked_at = 0;
    while let Some(Reverse((bits, at))) = open.pop() {
        if looked_at % VERTICES_A_CHECK == 0 {
            team.check()?;
        }
        looked_at += 1;
        if bits > distances[at as usize] {
            continue;
        }
        let distance = f64::from_bits(bits);
        if at == target {
            let mut vertices = trace(&before, target, source);
            vertices.reverse();
            return Ok(Some(Path { vertices, length: distance }));
        }
        for (&other, &weight) in projection.outgoing(at).iter().zip(projection.outgoing_weights(at)) {
            check_weight(weight)?;
            let through = (distance + weight).to_bits();
            if before[other as usize] == 0 || through < distances[other as usize] {
                before[other as usize] = at + 1;
                distances[other as usize] = through;
                open.push(Reverse((through, other)));
            }
        }
    }
    Ok(None)
}

/// The error for a search along weights in a projection without.
pub(super) fn no_weights() -> Error {
    Error::invalid("the projection has no weights: name the property of the edges that is their length")
}

/// Fails if a weight is no length.
pub(super) fn check_weight(weight: f64) -> Result<()> {
    if weight.is_finite() && weight >= 0.0 {
        return Ok(());
    }
    Err(Error::invalid(format!("an edge has the weight {weight}; shortest paths need finite weights of at least 0")))
}
