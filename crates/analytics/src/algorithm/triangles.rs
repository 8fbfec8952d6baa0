//! Triangles: for each vertex, the pairs of its neighbors that are neighbors of each other.
//!
//! Directions do not count, loops make no triangle, and parallel edges are one. There are two ways:
//!
//! - *By ranks.* Vertices are ranked by degree, each edge belongs to its lower end, and a triangle is found from its lowest vertex: its
//!   row is intersected with the row of each of its members (Shun and Tangwongsan, *Multicore Triangle Computations Without
//!   Tuning*, 2015). The row is marked in an array, in which the members of the other rows are looked up; if the row is much
//!   shorter than another one, it is searched there. The two other vertices of the triangle are members of that row
//!   too, so they are counted in a short array of the row, and added to the counts of the graph once a row.
//! - *In place.* Rows stay as they are in the projection. A triangle is found from its vertex of the highest position: its
//!   neighbors before it are looked for in the rows of these neighbors.
//!
//! To rank vertices and sort rows costs as much as tens of looks at each cell. In place, a vertex is looked at once for each neighbor after it, so the
//! looks are fewer than the sum of the squares of all degrees. If that is at most [`LOOKS_A_CELL`] for each cell, the rows stay in place: in a grid
//! it is 4, and in graphs with hubs thousands.
//!
//! [`total`] counts the triangles of the graph alone: without an array of those of each vertex.
//!
//! Work O(m^1.5); memory 32 bytes a position, 4 more for each thread, and 6 a cell of an undirected projection.

use std::sync::atomic::Ordering;

use mangrove_graph::Result;
use parking_lot::Mutex;

use crate::arrays;
use crate::projection::Projection;
use crate::ranked::{Keep, RankedRows};
use crate::simple::{MarksPool, SimpleRows};
use crate::team::Team;

/// Ranks are better from this number of looks at a cell on.
const LOOKS_A_CELL: u64 = 32;

/// So few members are compared one by one.
const FEW: usize = 8;

/// The triangles of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Triangles {
    /// The triangles of every position.
    pub of_positions: Vec<u64>,
    /// The triangles of the graph. Each counts once here, and once for each of its vertices there.
    pub total: u64,
}

/// Counts the triangles of each vertex, and of the graph.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Triangles> {
    if !is_even(projection) {
        let of_positions = sums(&ranked(projection, team)?, |_| 1, team)?;
        // Parts would make no difference: this is a small part of the time.
        let total = of_positions.iter().sum::<u64>() / 3;
        return Ok(Triangles { of_positions, total });
    }
    let mut of_positions = arrays::filled(team, projection.positions(), 0)?;
    let total = in_place(projection, adding_to(&mut of_positions), team)?;
    Ok(Triangles { of_positions, total })
}

/// Counts the triangles of the graph: as [`run`], without an array of those of each vertex.
///
/// # Errors
///
/// As those of [`run`].
pub fn total(projection: &Projection, team: &Team) -> Result<u64> {
    match is_even(projection) {
        true => in_place(projection, |_, _| (), team),
        false => each_sum(&ranked(projection, team)?, |_| 1, |_, _| (), team),
    }
}

fn ranked(projection: &Projection, team: &Team) -> Result<RankedRows> {
    RankedRows::of(&SimpleRows::of(projection, true, team)?, Keep::Higher, team)
}

/// Adds numbers to those of positions. Several threads add whole numbers in any order (ALGO-2).
fn adding_to(numbers: &mut [u64]) -> impl Fn(u32, u64) + Sync {
    let numbers = arrays::shared(numbers);
    move |at, number| {
        if number > 0 {
            numbers[at as usize].fetch_add(number, Ordering::Relaxed);
        }
    }
}

/// Returns true if the degrees are so even that rows stay in place.
fn is_even(projection: &Projection) -> bool {
    // The square of a sum of two is at most twice the sum of the squares.
    let directions = if projection.is_directed() { 2 } else { 1 };
    let [cells, squares] = projection.cells_and_squares();
    squares.saturating_mul(directions) <= cells.saturating_mul(LOOKS_A_CELL)
}

/// The incoming rows of a position that its outgoing ones do not have.
#[inline]
fn incoming(projection: &Projection, at: u32) -> &[u32] {
    if projection.is_directed() { projection.incoming(at) } else { &[] }
}

/// The neighbors of a vertex at positions before it, if there are at most two. In a grid most vertices have so few.
enum Few {
    /// Fewer than two, which make no triangle.
    None,
    Two(u32, u32),
    More,
}

impl Few {
    #[inline]
    fn of(at: u32, rows: [&[u32]; 2]) -> Self {
        let (mut known, mut count) = ([at; 2], 0);
        for row in rows {
            for &other in row {
                if other < at && other != known[0] && other != known[1] {
                    if count == 2 {
                        return Few::More;
                    }
                    known[count] = other;
                    count += 1;
                }
            }
        }
        if count < 2 { Few::None } else { Few::Two(known[0], known[1]) }
    }
}

/// The neighbors of a vertex at positions before it, ascending.
struct Before {
    members: Vec<u32>,
    /// For each member, the last neighbor with which it was counted.
    counted: Vec<u32>,
    /// For each position its place, if it is one of more than [`FEW`] members; otherwise anything.
    places: Vec<u32>,
}

impl Before {
    fn new(positions: usize) -> Self {
        Before { places: vec![0; positions], members: Vec::new(), counted: Vec::new() }
    }

    /// Makes the set of the neighbors before a position.
    #[inline]
    fn fill(&mut self, at: u32, rows: [&[u32]; 2]) {
        self.members.clear();
        for row in rows {
            self.members.reserve(row.len());
            for &other in row {
                if other < at {
                    self.members.push(other);
                }
            }
        }
        self.members.sort_unstable();
        self.members.dedup();
        if self.members.len() > FEW {
            for (place, member) in self.members.iter().enumerate() {
                self.places[*member as usize] = place as u32;
            }
        }
        self.counted.clear();
        self.counted.resize(self.members.len(), at);
    }

    #[inline]
    fn place(&self, at: u32) -> Option<usize> {
        if self.members.len() <= FEW {
            return self.members.iter().position(|member| *member == at);
        }
        let place = self.places[at as usize] as usize;
        (self.members.get(place) == Some(&at)).then_some(place)
    }
}

/// Finds triangles in the rows as they are. Calls `add` with each vertex of a triangle, and with a number of its triangles. Returns the number
/// of all triangles.
fn in_place(projection: &Projection, add: impl Fn(u32, u64) + Sync, team: &Team) -> Result<u64> {
    // As many sets as threads have worked at the same time.
    let sets: Mutex<Vec<Before>> = Mutex::default();
    let parts = projection.parts();
    let found = team.map_parts(parts.len(), |part| {
        let mut found = 0;
        let set = sets.lock().pop();
        let mut set = set.unwrap_or_else(|| Before::new(projection.positions()));
        projection.each_outgoing(parts[part].clone(), |at, row| {
            let at = at as u32;
            let rows = [row, incoming(projection, at)];
            match Few::of(at, rows) {
                Few::None => return,
                Few::Two(one, other) => {
                    let rows = [projection.outgoing(other), incoming(projection, other)];
                    if rows.into_iter().any(|row| row.contains(&one)) {
                        [one, other, at].into_iter().for_each(|vertex| add(vertex, 1));
                        found += 1;
                    }
                    return;
                }
                Few::More => set.fill(at, rows),
            }
            let mut of_at = 0;
            // The first one has no other member before it.
            for member in 1..set.members.len() {
                let (member, mut of_member) = (set.members[member], 0);
                for row in [projection.outgoing(member), incoming(projection, member)] {
                    for &other in row {
                        if other < member
                            && let Some(place) = set.place(other)
                            && std::mem::replace(&mut set.counted[place], member) != member
                        {
                            of_member += 1;
                            add(other, 1);
                        }
                    }
                }
                add(member, of_member);
                of_at += of_member;
            }
            add(at, of_at);
            found += of_at;
        });
        sets.lock().push(set);
        found
    })?;
    Ok(found.into_iter().sum())
}

/// For every position, the sum over its triangles of the weight of the opposite edge, which is given by its cell in `rows`.
pub(crate) fn sums(rows: &RankedRows, weight: impl Fn(usize) -> u64 + Sync, team: &Team) -> Result<Vec<u64>> {
    let mut sums = arrays::filled(team, rows.len(), 0)?;
    each_sum(rows, weight, adding_to(&mut sums), team)?;
    Ok(sums)
}

/// As [`sums`]: calls `add` with a position and a part of its sum. Returns the sum over all triangles of the weight of the edge
/// opposite to the vertex of the lowest rank.
fn each_sum(
    rows: &RankedRows,
    weight: impl Fn(usize) -> u64 + Sync,
    add: impl Fn(u32, u64) + Sync,
    team: &Team,
) -> Result<u64> {
    let (parts, pool) = (rows.parts(), MarksPool::new(rows.len()));
    let found = team.map_parts(parts.len(), |part| {
        pool.with(|marks| {
            let (mut found, mut of_members) = (0, Vec::new());
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
                add(rows.position(rank as u32), of_lowest);
                row.iter().zip(&of_members).for_each(|(member, sum)| add(rows.position(*member), *sum));
                found += of_lowest;
            }
            found
        })
    })?;
    Ok(found.into_iter().sum())
}
