//! Truss numbers: the greatest `k` for which an edge is in a *k-truss*, a part of the graph in which every edge is in at least `k − 2`
//! triangles. That of a vertex is the greatest of its edges.
//!
//! Directions and loops do not count, and parallel edges are one. An edge without triangles has the number 2, and a vertex without
//! edges 0. Edges are peeled off level by level (Cohen, *Trusses*, 2008; Kabir and Madduri, *Shared-memory Graph Truss Decomposition*, 2017):
//! those in the fewest triangles are taken away, and the triangles that they were in count no longer for the two other
//! edges. If several edges of a triangle are taken away in the same phase, the first of them counts for the triangle.
//!
//! Rows are those of ranks by degree, so that an edge is looked for from its end with fewer neighbors. Work O(m^1.5); memory 48 bytes a
//! position, and 22 a cell of an undirected projection.

use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use mangrove_graph::{Error, Result};

use super::k_core::lower;
use crate::projection::Projection;
use crate::ranked::{Keep, RankedRows};
use crate::simple::{SimpleRows, for_each_common};
use crate::team::Team;
use crate::worklist::{chunk, filtered, least};

/// Edges that are a part of a phase.
const PART: usize = 64;

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
    /// Every edge between two vertices, ascending by its ends.
    pub edges: Vec<TrussEdge>,
}

/// Computes the truss numbers.
///
/// # Errors
///
/// If the graph has more than four billion pairs of neighbors, or if the query of the team has ended.
pub fn run(projection: &Projection, team: &Team) -> Result<Trusses> {
    let rows = RankedRows::of(&SimpleRows::of(projection, true, team)?, Keep::All, team)?;
    let peeling = Peeling::of(&rows, team)?;
    peeling.count(team)?;
    peeling.peel(team)?;
    let mut found = Trusses { of_positions: vec![0; projection.positions()], edges: Vec::new() };
    found.edges.reserve_exact(peeling.ends.len());
    for (&[one, other], triangles) in peeling.ends.iter().zip(peeling.triangles) {
        let (one, other) = (rows.position(one), rows.position(other));
        let number = triangles.into_inner() + 2;
        for at in [one, other] {
            let most = &mut found.of_positions[at as usize];
            *most = number.max(*most);
        }
        found.edges.push(TrussEdge { ends: (one.min(other), one.max(other)), number });
    }
    team.check()?;
    found.edges.sort_unstable();
    Ok(found)
}

struct Peeling<'r> {
    rows: &'r RankedRows,
    /// The ends of each edge, the lower rank first. Edges are numbered by the higher cells of the rows.
    ends: Vec<[u32; 2]>,
    /// For each cell, its edge.
    edges: Vec<u32>,
    /// The triangles that each edge is in; of one that was taken away, the level.
    triangles: Vec<AtomicU32>,
    states: Vec<AtomicU8>,
}

impl<'r> Peeling<'r> {
    fn of(rows: &'r RankedRows, team: &Team) -> Result<Self> {
        let count = rows.cell_count() / 2;
        if u32::try_from(count).is_err() {
            return Err(Error::unsupported("the graph has more than four billion pairs of neighbors"));
        }
        let mut ends = Vec::with_capacity(count);
        // The number of the first edge of each rank.
        let mut firsts = Vec::with_capacity(rows.len());
        for rank in 0..rows.len() as u32 {
            firsts.push(ends.len() as u32);
            ends.extend(rows.higher(rank).iter().map(|other| [rank, *other]));
        }
        let parts = rows.parts();
        let edges = team.map_parts(parts.len(), |part| {
            let mut edges = Vec::new();
            for rank in parts[part].clone() {
                let rank = rank as u32;
                for &other in rows.row(rank) {
                    let (low, high) = (rank.min(other), rank.max(other));
                    edges.push(firsts[low as usize] + rows.higher(low).partition_point(|at| *at < high) as u32);
                }
            }
            edges
        })?;
        let triangles = (0..count).map(|_| AtomicU32::new(0)).collect();
        let states = (0..count).map(|_| AtomicU8::new(THERE)).collect();
        Ok(Peeling { rows, ends, edges: edges.concat(), triangles, states })
    }

    fn triangles(&self, edge: u32) -> u32 {
        self.triangles[edge as usize].load(Ordering::Relaxed)
    }

    fn state(&self, edge: u32) -> u8 {
        self.states[edge as usize].load(Ordering::Relaxed)
    }

    /// Counts the triangles of every edge.
    fn count(&self, team: &Team) -> Result<()> {
        let (rows, parts) = (self.rows, self.rows.parts());
        let add = |edge: u32, count: u32| {
            if count > 0 {
                self.triangles[edge as usize].fetch_add(count, Ordering::Relaxed);
            }
        };
        team.for_parts(parts.len(), |part| {
            let mut of_row = Vec::new();
            for rank in parts[part].clone() {
                let row = rows.higher(rank as u32);
                let own = &self.edges[rows.higher_range(rank as u32)];
                of_row.clear();
                of_row.resize(row.len(), 0);
                for (index, &member) in row.iter().enumerate() {
                    let rest = index + 1;
                    let others = &self.edges[rows.higher_range(member)];
                    let mut found = 0;
                    for_each_common(&row[rest..], rows.higher(member), |in_row, in_other| {
                        found += 1;
                        of_row[rest + in_row] += 1;
                        add(others[in_other], 1);
                    });
                    of_row[index] += found;
                }
                own.iter().zip(&of_row).for_each(|(edge, count)| add(*edge, *count));
            }
        })
    }

    /// Takes the edges away.
    fn peel(&self, team: &Team) -> Result<()> {
        let mut left: Vec<u32> = (0..self.ends.len() as u32).collect();
        while let Some(level) = least(team, &left, |edge| self.triangles(edge))? {
            let mut now = filtered(team, &left, |edge| self.triangles(edge) == level)?;
            while !now.is_empty() {
                let set =
                    |state| now.iter().for_each(|edge| self.states[*edge as usize].store(state, Ordering::Relaxed));
                set(NOW);
                let fallen = team.map_parts(now.len().div_ceil(PART), |part| {
                    let mut fallen = Vec::new();
                    chunk(&now, part, PART).iter().for_each(|edge| self.take_away(*edge, level, &mut fallen));
                    fallen
                })?;
                set(GONE);
                now = fallen.concat();
            }
            left = filtered(team, &left, |edge| self.triangles(edge) > level)?;
        }
        Ok(())
    }

    /// The triangles of an edge count no longer for the edges that stay.
    fn take_away(&self, edge: u32, level: u32, fallen: &mut Vec<u32>) {
        let rows = self.rows;
        let [one, other] = self.ends[edge as usize];
        let (of_one, of_other) = (&self.edges[rows.range(one)], &self.edges[rows.range(other)]);
        let mut lower = |other: u32| {
            if lower(&self.triangles[other as usize], level) {
                fallen.push(other);
            }
        };
        for_each_common(rows.row(one), rows.row(other), |in_one, in_other| {
            let (a, b) = (of_one[in_one], of_other[in_other]);
            match (self.state(a), self.state(b)) {
                (THERE, THERE) => {
                    lower(a);
                    lower(b);
                }
                (NOW, THERE) if edge < a => lower(b),
                (THERE, NOW) if edge < b => lower(a),
                _ => {}
            }
        });
    }
}
