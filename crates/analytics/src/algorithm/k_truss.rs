//! Truss numbers: the greatest `k` for which an edge is in a *k-truss*, a part of the graph in which every edge is in at least `k − 2`
//! triangles. That of a vertex is the greatest of its edges.
//!
//! Directions and loops do not count, and parallel edges are one. An edge without triangles has the number 2, and a vertex without
//! edges 0. Edges are peeled off level by level (Cohen, *Trusses*, 2008; Kabir and Madduri, *Shared-memory Graph Truss Decomposition*, 2017):
//! those in the fewest triangles are taken away, and each takes its triangles from the two other edges. If several edges of
//! a triangle are taken away in the same phase, the first of them counts for the triangle.
//!
//! Rows are those of ranks by degree. Edges are numbered by their higher ends. So edges that are taken away together often have the same
//! higher end, whose long row is marked once, and then the short rows of the lower ends are read. When half of the edges of the
//! rows are gone, the rows are made anew without them. Work O(m^1.5); memory 60 bytes a position, 4 more for each thread, and 30 a
//! cell of an undirected projection.

use std::ops::Range;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use mangrove_graph::{Error, Result};

use super::k_core::lower;
use crate::projection::Projection;
use crate::ranked::{Keep, RankedRows, cut};
use crate::simple::{Marks, MarksPool, SimpleRows, for_each_common};
use crate::team::Team;
use crate::worklist::{chunk, filtered, least};

/// Edges between two looks whether the query has ended.
const EDGES_A_CHECK: usize = 1 << 14;
/// Edges that are a part of a phase.
const PART: usize = 256;

/// In the state of an edge: it is there, it is taken away in this phase, or it was before.
const THERE: u8 = 0;
const NOW: u8 = 1;
const GONE: u8 = 2;

/// The truss number of an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TrussEdge {
    /// The positions of its ends, the lower one first.
    pub ends: (u32, u32),
    /// The number.
    pub number: u32,
}

/// The truss numbers of a graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Trusses {
    /// For every position, the greatest number of its edges.
    pub of_positions: Vec<u32>,
    /// Every edge between two vertices, in an order that depends on the graph alone.
    pub edges: Vec<TrussEdge>,
}

/// Computes the truss numbers.
///
/// # Errors
///
/// If the graph has more than four billion pairs of neighbors, or if the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Trusses> {
    let ranked = RankedRows::of(&SimpleRows::of(projection, true, team)?, Keep::All, team)?;
    let mut rows = EdgeRows::of(&ranked, team)?;
    let peeling = Peeling::of(&ranked);
    peeling.count(&ranked, &rows, team)?;
    peeling.peel(&mut rows, team)?;
    let mut found = Trusses { of_positions: vec![0; projection.positions()], edges: Vec::new() };
    found.edges.reserve_exact(peeling.ends.len());
    for (number, (&[one, other], triangles)) in peeling.ends.iter().zip(peeling.triangles).enumerate() {
        if number % EDGES_A_CHECK == 0 {
            team.check()?;
        }
        let (one, other) = (ranked.position(one), ranked.position(other));
        let number = triangles.into_inner() + 2;
        for at in [one, other] {
            let most = &mut found.of_positions[at as usize];
            *most = number.max(*most);
        }
        found.edges.push(TrussEdge { ends: (one.min(other), one.max(other)), number });
    }
    Ok(found)
}

/// The rows of all ranks, with the numbers of their edges.
struct EdgeRows {
    offsets: Vec<usize>,
    cells: Vec<u32>,
    /// Parallel to `cells`.
    edges: Vec<u32>,
}

impl EdgeRows {
    /// Numbers the edges by their higher ends, and then by their lower ones.
    fn of(ranked: &RankedRows, team: &Team) -> Result<Self> {
        if u32::try_from(ranked.cell_count() / 2).is_err() {
            return Err(Error::unsupported("the graph has more than four billion pairs of neighbors"));
        }
        // The number of the first edge of each rank to lower ones.
        let mut firsts = vec![0];
        for rank in 0..ranked.len() as u32 {
            firsts.push(firsts[rank as usize] + ranked.lower(rank).len() as u32);
        }
        Self::made(
            ranked.len(),
            |rank| ranked.row(rank).len(),
            team,
            |rank, cells, edges| {
                for &other in ranked.row(rank) {
                    let (low, high) = (rank.min(other), rank.max(other));
                    cells.push(other);
                    edges.push(firsts[high as usize] + ranked.lower(high).partition_point(|at| *at < low) as u32);
                }
            },
        )
    }

    /// The rows without the edges that `keep` returns false for.
    fn filtered(&self, keep: impl Fn(u32) -> bool + Sync, team: &Team) -> Result<Self> {
        Self::made(
            self.offsets.len() - 1,
            |rank| self.range(rank).len(),
            team,
            |rank, cells, edges| {
                let (row, of_row) = self.row(rank);
                for (other, edge) in row.iter().zip(of_row).filter(|(_, edge)| keep(**edge)) {
                    cells.push(*other);
                    edges.push(*edge);
                }
            },
        )
    }

    fn made(
        ranks: usize,
        work: impl Fn(u32) -> usize,
        team: &Team,
        add: impl Fn(u32, &mut Vec<u32>, &mut Vec<u32>) + Sync,
    ) -> Result<Self> {
        let parts = cut((0..ranks as u32).map(|rank| work(rank) as u64));
        let of_parts = team.map_parts(parts.len(), |part| {
            let (mut ends, mut cells, mut edges) = (Vec::with_capacity(parts[part].len()), Vec::new(), Vec::new());
            for rank in parts[part].clone() {
                add(rank as u32, &mut cells, &mut edges);
                ends.push(cells.len());
            }
            (ends, cells, edges)
        })?;
        let mut rows = EdgeRows { offsets: vec![0], cells: Vec::new(), edges: Vec::new() };
        for (ends, cells, edges) in of_parts {
            let before = rows.cells.len();
            rows.offsets.extend(ends.into_iter().map(|end| before + end));
            rows.cells.extend_from_slice(&cells);
            rows.edges.extend_from_slice(&edges);
        }
        Ok(rows)
    }

    #[inline]
    fn range(&self, rank: u32) -> Range<usize> {
        self.offsets[rank as usize]..self.offsets[rank as usize + 1]
    }

    /// The members of a row, and the edges to them.
    #[inline]
    fn row(&self, rank: u32) -> (&[u32], &[u32]) {
        (&self.cells[self.range(rank)], &self.edges[self.range(rank)])
    }
}

/// What is known of each edge.
struct Peeling {
    /// The ends, the lower rank first.
    ends: Vec<[u32; 2]>,
    /// The triangles that it is in; if it was taken away, the level.
    triangles: Vec<AtomicU32>,
    states: Vec<AtomicU8>,
}

impl Peeling {
    fn of(ranked: &RankedRows) -> Self {
        let count = ranked.cell_count() / 2;
        let mut ends = Vec::with_capacity(count);
        for rank in 0..ranked.len() as u32 {
            ends.extend(ranked.lower(rank).iter().map(|other| [*other, rank]));
        }
        let triangles = (0..count).map(|_| AtomicU32::new(0)).collect();
        let states = (0..count).map(|_| AtomicU8::new(THERE)).collect();
        Peeling { ends, triangles, states }
    }

    fn triangles(&self, edge: u32) -> u32 {
        self.triangles[edge as usize].load(Ordering::Relaxed)
    }

    fn state(&self, edge: u32) -> u8 {
        self.states[edge as usize].load(Ordering::Relaxed)
    }

    /// Counts the triangles of every edge, as [`triangles`](super::triangles) finds them.
    fn count(&self, ranked: &RankedRows, rows: &EdgeRows, team: &Team) -> Result<()> {
        let add = |edge: u32, count: u32| {
            if count > 0 {
                self.triangles[edge as usize].fetch_add(count, Ordering::Relaxed);
            }
        };
        let (parts, pool) = (ranked.parts(), MarksPool::new(ranked.len()));
        team.for_parts(parts.len(), |part| {
            pool.with(|marks| {
                let mut of_row = Vec::new();
                for rank in parts[part].clone() {
                    let row = ranked.higher(rank as u32);
                    of_row.clear();
                    of_row.resize(row.len(), 0);
                    marks.marked(row, |marks| {
                        for (index, &member) in row.iter().enumerate() {
                            let others = &rows.edges[ranked.higher_range(member)];
                            let mut found = 0;
                            marks.for_each_common(row, index + 1, ranked.higher(member), |in_row, in_other| {
                                found += 1;
                                of_row[in_row] += 1;
                                add(others[in_other], 1);
                            });
                            of_row[index] += found;
                        }
                    });
                    let own = &rows.edges[ranked.higher_range(rank as u32)];
                    own.iter().zip(&of_row).for_each(|(edge, count)| add(*edge, *count));
                }
            });
        })
    }

    /// Takes the edges away.
    fn peel(&self, rows: &mut EdgeRows, team: &Team) -> Result<()> {
        let pool = MarksPool::new(rows.offsets.len() - 1);
        let mut left: Vec<u32> = (0..self.ends.len() as u32).collect();
        while let Some(level) = least(team, &left, |edge| self.triangles(edge))? {
            let mut now = filtered(team, &left, |edge| self.triangles(edge) == level)?;
            while !now.is_empty() {
                let set =
                    |state| now.iter().for_each(|edge| self.states[*edge as usize].store(state, Ordering::Relaxed));
                set(NOW);
                let known = &*rows;
                let fallen = team.map_parts(now.len().div_ceil(PART), |part| {
                    let mut fallen = Vec::new();
                    let same_end =
                        |one: &u32, other: &u32| self.ends[*one as usize][1] == self.ends[*other as usize][1];
                    pool.with(|marks| {
                        for edges in chunk(&now, part, PART).chunk_by(same_end) {
                            self.take_away(edges, level, known, marks, &mut fallen);
                        }
                    });
                    fallen
                })?;
                set(GONE);
                now = fallen.concat();
                // Those of the same higher end follow one another.
                now.sort_unstable();
            }
            left = filtered(team, &left, |edge| self.triangles(edge) > level)?;
            if left.len() * 4 < rows.cells.len() {
                *rows = rows.filtered(|edge| self.state(edge) == THERE, team)?;
            }
        }
        Ok(())
    }

    /// Takes edges of the same higher end away: their triangles do not count for the edges that stay. Edges that get no more triangles than the
    /// level are added to `fallen`.
    fn take_away(&self, edges: &[u32], level: u32, rows: &EdgeRows, marks: &mut Marks, fallen: &mut Vec<u32>) {
        let Some([_, high]) = edges.first().map(|edge| self.ends[*edge as usize]) else { return };
        let (row, of_row) = rows.row(high);
        let mut without = |edge: u32, one: u32, other: u32| {
            let mut lower = |edge: u32| {
                if lower(&self.triangles[edge as usize], level) {
                    fallen.push(edge);
                }
            };
            match (self.state(one), self.state(other)) {
                (THERE, THERE) => {
                    lower(one);
                    lower(other);
                }
                (NOW, THERE) if edge < one => lower(other),
                (THERE, NOW) if edge < other => lower(one),
                _ => {}
            }
        };
        let of_low = |edge: u32| rows.row(self.ends[edge as usize][0]);
        let looks: usize = edges.iter().map(|edge| of_low(*edge).0.len()).sum();
        if looks > row.len() {
            marks.marked(row, |marks| {
                for &edge in edges {
                    let (others, of_others) = of_low(edge);
                    marks.for_each_common(row, 0, others, |in_row, in_other| {
                        without(edge, of_row[in_row], of_others[in_other]);
                    });
                }
            });
            return;
        }
        for &edge in edges {
            let (others, of_others) = of_low(edge);
            for_each_common(others, row, |in_other, in_row| without(edge, of_row[in_row], of_others[in_other]));
        }
    }
}
