//! Triangles: for each vertex, the pairs of its neighbors that are neighbors of each other.
//!
//! Directions do not count, loops make no triangle, and parallel edges are one. Vertices are ranked by degree, each edge belongs to its
//! lower end, and a triangle is found from its lowest vertex: its row is intersected with the row of each of its members (Shun and
//! Tangwongsan, *Multicore Triangle Computations Without Tuning*, 2015). The row is marked in an array, in which the members of the
//! other rows are looked up; if the row is much shorter than another one, it is searched there.
//! The two other vertices of the triangle are members of that row too, so they are counted in a short array of the row,
//! and added to the counts of the graph once a row.
//!
//! Work O(m^1.5); memory 32 bytes a position, 4 more for each thread, and 6 a cell of an undirected projection.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::Result;

use crate::projection::Projection;
use crate::ranked::{Keep, RankedRows};
use crate::simple::{MarksPool, SimpleRows};
use crate::team::Team;

/// The triangles of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Triangles {
    /// The triangles of every position.
    pub of_positions: Vec<u64>,
    /// The triangles of the graph. Each counts once here, and once for each of its vertices there.
    pub total: u64,
}

/// Counts the triangles.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Triangles> {
    let rows = RankedRows::of(&SimpleRows::of(projection, true, team)?, Keep::Higher, team)?;
    let of_positions = sums(&rows, |_| 1, team)?;
    // Parts would make no difference: this is a small part of the time.
    let total = of_positions.iter().sum::<u64>() / 3;
    Ok(Triangles { of_positions, total })
}

/// For every position, the sum over its triangles of the weight of the opposite edge, which is given by its cell in `rows`.
pub(crate) fn sums(rows: &RankedRows, weight: impl Fn(usize) -> u64 + Sync, team: &Team) -> Result<Vec<u64>> {
    let counts: Vec<AtomicU64> = (0..rows.len()).map(|_| AtomicU64::new(0)).collect();
    // Several threads add whole numbers in any order (ALGO-2).
    let add = |rank: u32, sum: u64| {
        if sum > 0 {
            counts[rows.position(rank) as usize].fetch_add(sum, Ordering::Relaxed);
        }
    };
    let (parts, pool) = (rows.parts(), MarksPool::new(rows.len()));
    team.for_parts(parts.len(), |part| {
        pool.with(|marks| {
            let mut of_members = Vec::new();
            for rank in parts[part].clone() {
                let (range, row) = (rows.higher_range(rank as u32), rows.higher(rank as u32));
                // Two others make a triangle.
                let Some(last) = row.len().checked_sub(1).filter(|last| *last > 0) else { continue };
                of_members.clear();
                of_members.resize(row.len(), 0);
                let mut of_lowest = 0;
                marks.marked(row, |marks| {
                    for (index, &member) in row[..last].iter().enumerate() {
                        // Common members are higher than this one.
                        let of_member = rows.higher_range(member);
                        let (mut sum, to_member) = (0, weight(range.start + index));
                        marks.for_each_common(row, index + 1, rows.higher(member), |in_row, in_other| {
                            of_lowest += weight(of_member.start + in_other);
                            sum += weight(range.start + in_row);
                            of_members[in_row] += to_member;
                        });
                        of_members[index] += sum;
                    }
                });
                add(rank as u32, of_lowest);
                row.iter().zip(&of_members).for_each(|(member, sum)| add(*member, *sum));
            }
        });
    })?;
    Ok(counts.into_iter().map(AtomicU64::into_inner).collect())
}
