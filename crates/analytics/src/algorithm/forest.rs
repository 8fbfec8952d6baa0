//! A spanning forest of least or greatest weight: as few edges as connect what is connected, with the least or the greatest sum.
//!
//! Borůvka (1926), in the parallel form of Chung and Condon (1996). Edges have no direction. In every round, each tree takes its lightest edge to
//! another tree, and the trees that these edges connect become one. So a round leaves at most half of the trees. Edges of equal
//! weight are told apart by the positions of their ends, which makes the forest the same for any number of threads. Positions
//! may be different in another database of the same graph; then another forest of the same weight may be found.
//!
//! Work O(m log n), in practice less: vertices whose neighbors are all in their tree are left out of later rounds. Memory 32 bytes a
//! position, and those of the edges.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::team::Team;
use crate::worklist::{chunk, filtered};

/// Vertices that are a part of a phase.
const PART: usize = 1 << 10;
/// In the keys of edges: no edge.
const NONE: u64 = u64::MAX;

/// Which sum of the weights is wanted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Extreme {
    /// The least one.
    #[default]
    Least,
    /// The greatest one.
    Greatest,
}

/// An edge of a forest.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct ForestEdge {
    /// The positions of its ends, the lower one first.
    pub ends: (u32, u32),
    /// Its weight; 1 in a projection without weights.
    pub weight: f64,
}

/// Finds a spanning forest. The order of its edges depends on the graph alone.
///
/// # Errors
///
/// If a weight is no number, or if the query of the team has ended.
pub fn run(projection: &Projection, extreme: Extreme, team: &Team) -> Result<Vec<ForestEdge>> {
    check_weights(projection, team)?;
    let positions = projection.positions();
    let search = Search {
        projection,
        extreme,
        trees: (0..positions as u32).map(AtomicU32::new).collect(),
        weights: (0..positions).map(|_| AtomicU64::new(NONE)).collect(),
        ends: (0..positions).map(|_| AtomicU64::new(NONE)).collect(),
    };
    let mut left: Vec<u32> = projection.numbering().present(0..positions as u32).collect();
    let (mut roots, mut forest) = (left.clone(), Vec::new());
    while !left.is_empty() {
        left = search.lightest(&roots, &left, team)?;
        forest.extend(search.join(&roots, team)?);
        // Trees without neighbors are complete.
        roots = filtered(team, &roots, |at| search.tree(at) == at && search.has_edge(at))?;
    }
    Ok(forest)
}

fn check_weights(projection: &Projection, team: &Team) -> Result<()> {
    let parts = projection.parts();
    let misfits = team.map_parts(parts.len(), |part| {
        let mut weights = parts[part].clone().flat_map(|at| projection.outgoing_weights(at as u32));
        weights.find(|weight| !weight.is_finite()).copied()
    })?;
    match misfits.into_iter().flatten().next() {
        Some(weight) => Err(Error::invalid(format!("an edge has the weight {weight}; forests need finite weights"))),
        None => Ok(()),
    }
}

struct Search<'s> {
    projection: &'s Projection,
    extreme: Extreme,
    /// The tree of each position, as one of its positions, its root.
    trees: Vec<AtomicU32>,
    /// For each root: the key of the weight of its lightest edge, and its ends.
    weights: Vec<AtomicU64>,
    ends: Vec<AtomicU64>,
}

/// The lightest edge of a vertex to another tree.
#[derive(Clone, Copy)]
struct Lightest {
    vertex: u32,
    weight: u64,
    ends: u64,
}

impl Search<'_> {
    fn tree(&self, at: u32) -> u32 {
        self.trees[at as usize].load(Ordering::Relaxed)
    }

    fn has_edge(&self, root: u32) -> bool {
        self.ends[root as usize].load(Ordering::Relaxed) != NONE
    }

    /// Finds the lightest edge of each tree, among those of the vertices in `left`. Returns the vertices with neighbors in other
    /// trees.
    fn lightest(&self, roots: &[u32], left: &[u32], team: &Team) -> Result<Vec<u32>> {
        team.for_parts(roots.len().div_ceil(PART), |part| {
            for &root in chunk(roots, part, PART) {
                self.weights[root as usize].store(NONE, Ordering::Relaxed);
                self.ends[root as usize].store(NONE, Ordering::Relaxed);
            }
        })?;
        let of_parts = team.map_parts(left.len().div_ceil(PART), |part| {
            chunk(left, part, PART).iter().filter_map(|vertex| self.of_vertex(*vertex)).collect::<Vec<_>>()
        })?;
        // Of its vertices, a tree takes the lightest weight, and of these the least ends: two numbers that any order of writes leaves
        // the same (ALGO-2).
        let least = |place: &AtomicU64, number: u64| {
            if place.load(Ordering::Relaxed) > number {
                place.fetch_min(number, Ordering::Relaxed);
            }
        };
        let place = |one: &Lightest| self.tree(one.vertex) as usize;
        team.for_parts(of_parts.len(), |part| {
            of_parts[part].iter().for_each(|one| least(&self.weights[place(one)], one.weight));
        })?;
        team.for_parts(of_parts.len(), |part| {
            let is_lightest = |one: &&Lightest| self.weights[place(one)].load(Ordering::Relaxed) == one.weight;
            of_parts[part].iter().filter(is_lightest).for_each(|one| least(&self.ends[place(one)], one.ends));
        })?;
        Ok(of_parts.concat().into_iter().map(|one| one.vertex).collect())
    }

    fn of_vertex(&self, vertex: u32) -> Option<Lightest> {
        let (projection, tree) = (self.projection, self.tree(vertex));
        let mut best = (NONE, NONE);
        let mut row = |cells: &[u32], weights: &[f64]| {
            for (at, &other) in cells.iter().enumerate() {
                if self.tree(other) != tree {
                    let key = self.key(weights.get(at).copied().unwrap_or(1.0));
                    best = best.min((key, u64::from(vertex.min(other)) << 32 | u64::from(vertex.max(other))));
                }
            }
        };
        row(projection.outgoing(vertex), projection.outgoing_weights(vertex));
        if projection.is_directed() {
            row(projection.incoming(vertex), projection.incoming_weights(vertex));
        }
        (best.1 != NONE).then_some(Lightest { vertex, weight: best.0, ends: best.1 })
    }

    /// A number that is in the order in which weights are wanted.
    fn key(&self, weight: f64) -> u64 {
        // A weight of −0 is as heavy as one of 0.
        let bits = (if self.extreme == Extreme::Least { weight } else { -weight } + 0.0).to_bits();
        // Bits of negative numbers are in the opposite order, and come first.
        if bits >> 63 == 1 { !bits } else { bits | 1 << 63 }
    }

    fn weight(&self, key: u64) -> f64 {
        let bits = if key >> 63 == 1 { key & !(1 << 63) } else { !key };
        let weight = f64::from_bits(bits);
        if self.extreme == Extreme::Least { weight } else { -weight + 0.0 }
    }

    /// Joins each tree with the one that its lightest edge leads to. Returns the edges.
    fn join(&self, roots: &[u32], team: &Team) -> Result<Vec<ForestEdge>> {
        let parts = roots.len().div_ceil(PART);
        let ends_of = |tree: u32| {
            let ends = self.ends[tree as usize].load(Ordering::Relaxed);
            ((ends >> 32) as u32, ends as u32)
        };
        let of_parts = team.map_parts(parts, |part| {
            let joined = chunk(roots, part, PART).iter().copied().filter(|root| self.has_edge(*root)).map(|tree| {
                let (one, other) = ends_of(tree);
                let target = if self.tree(one) == tree { self.tree(other) } else { self.tree(one) };
                (tree, target)
            });
            joined.collect::<Vec<_>>()
        })?;
        let mut edges = Vec::new();
        for (tree, target) in of_parts.into_iter().flatten() {
            // Two trees may have chosen the same edge: then the lower one stays the root. Edges that differ make no circle, because
            // they are in one order.
            let is_mutual =
                self.ends[target as usize].load(Ordering::Relaxed) == self.ends[tree as usize].load(Ordering::Relaxed);
            if is_mutual && tree < target {
                continue;
            }
            let weight = self.weight(self.weights[tree as usize].load(Ordering::Relaxed));
            edges.push(ForestEdge { ends: ends_of(tree), weight });
            self.trees[tree as usize].store(target, Ordering::Relaxed);
        }
        team.for_parts(self.projection.parts().len(), |part| {
            for at in self.projection.parts()[part].clone() {
                let mut root = at as u32;
                while self.tree(root) != root {
                    root = self.tree(root);
                }
                self.trees[at].store(root, Ordering::Relaxed);
            }
        })?;
        Ok(edges)
    }
}
