//! How densely a graph is connected.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashSet;

use super::vertices;
use crate::algorithm::forest::{Extreme, ForestEdge};
use crate::algorithm::k_truss::TrussEdge;
use crate::algorithm::matching::UNMATCHED;
use crate::projection::Projection;

/// The neighbors of every position, in both directions, each once and without itself.
fn neighbors(projection: &Projection) -> Vec<BTreeSet<u32>> {
    let mut neighbors = vec![BTreeSet::new(); projection.positions()];
    for at in vertices(projection) {
        for &other in projection.outgoing(at).iter().filter(|other| **other != at) {
            neighbors[at as usize].insert(other);
            neighbors[other as usize].insert(at);
        }
    }
    neighbors
}

/// Triangles by looking all pairs of neighbors up.
pub fn triangles(projection: &Projection) -> Vec<u64> {
    let neighbors = neighbors(projection);
    let edges: HashSet<(u32, u32)> =
        vertices(projection).flat_map(|at| neighbors[at as usize].iter().map(move |other| (at, *other))).collect();
    let mut counts = vec![0; projection.positions()];
    for at in vertices(projection) {
        let of = &neighbors[at as usize];
        let pairs = of.iter().flat_map(|one| of.iter().map(move |other| (*one, *other)));
        counts[at as usize] =
            pairs.filter(|(one, other)| one < other && edges.contains(&(*one, *other))).count() as u64;
    }
    counts
}

/// Core numbers by deletion, again and again: what is left when no vertex has fewer than `k` neighbors is the `k`-core.
pub fn k_core(projection: &Projection) -> Vec<u32> {
    let mut neighbors = neighbors(projection);
    let mut cores = vec![0; projection.positions()];
    let mut left: Vec<u32> = vertices(projection).filter(|at| !neighbors[*at as usize].is_empty()).collect();
    let mut k = 0;
    while !left.is_empty() {
        k += 1;
        while let Some(place) = left.iter().position(|at| neighbors[*at as usize].len() < k as usize) {
            let at = left.swap_remove(place);
            for other in std::mem::take(&mut neighbors[at as usize]) {
                neighbors[other as usize].remove(&at);
            }
        }
        left.iter().for_each(|at| cores[*at as usize] = k);
    }
    cores
}

/// Truss numbers by deletion, again and again: what is left when no edge is in fewer than `k − 2` triangles is the `k`-truss.
pub fn k_truss(projection: &Projection) -> Vec<TrussEdge> {
    let mut neighbors = neighbors(projection);
    let mut numbers = BTreeMap::new();
    for (at, others) in neighbors.iter().enumerate() {
        numbers.extend(others.iter().filter(|other| **other > at as u32).map(|other| ((at as u32, *other), 0)));
    }
    let mut left: Vec<(u32, u32)> = numbers.keys().copied().collect();
    let mut k = 1;
    while !left.is_empty() {
        k += 1;
        loop {
            let is_weak = |(one, other): &(u32, u32)| {
                let common = neighbors[*one as usize].intersection(&neighbors[*other as usize]).count();
                common + 2 < k as usize
            };
            let Some(place) = left.iter().position(is_weak) else { break };
            let (one, other) = left.swap_remove(place);
            neighbors[one as usize].remove(&other);
            neighbors[other as usize].remove(&one);
        }
        left.iter().for_each(|edge| *numbers.entry(*edge).or_default() = k);
    }
    numbers.into_iter().map(|(ends, number)| TrussEdge { ends, number }).collect()
}

/// All edges between two vertices, with their weights, the lower end first.
fn edges(projection: &Projection) -> Vec<ForestEdge> {
    let mut edges = Vec::new();
    for at in vertices(projection) {
        let weights = projection.outgoing_weights(at);
        for (cell, &other) in projection.outgoing(at).iter().enumerate().filter(|(_, other)| **other != at) {
            edges.push(ForestEdge {
                ends: (at.min(other), at.max(other)),
                weight: weights.get(cell).copied().unwrap_or(1.0),
            });
        }
    }
    edges
}

/// A spanning forest by Kruskal's algorithm: the edges by weight, and by ends if they are equally heavy; each one counts that connects two trees.
pub fn forest(projection: &Projection, extreme: Extreme) -> Vec<ForestEdge> {
    let mut edges = edges(projection);
    edges.sort_by(|one, other| {
        let by_weight = one.weight.total_cmp(&other.weight);
        let by_weight = if extreme == Extreme::Least { by_weight } else { by_weight.reverse() };
        by_weight.then(one.ends.cmp(&other.ends))
    });
    let mut trees: Vec<u32> = (0..projection.positions() as u32).collect();
    edges.retain(|ForestEdge { ends, .. }| {
        let (one, other) = (trees[ends.0 as usize], trees[ends.1 as usize]);
        trees.iter_mut().filter(|tree| **tree == one).for_each(|tree| *tree = other);
        one != other
    });
    edges.sort_by_key(|edge| edge.ends);
    edges
}

/// What is wrong with a matching. Partners must be neighbors, and each other's. Every edge must have an end whose matched edge is no
/// lighter: so the matching is maximal, and each edge of a best matching is no heavier than one of two that were taken in its place.
pub fn matching(projection: &Projection, partners: &[u32]) -> Result<(), String> {
    let edges = edges(projection);
    let mut matched = vec![0.0_f64; projection.positions()];
    for edge in &edges {
        let (one, other) = edge.ends;
        if partners[one as usize] == other {
            for at in [one, other] {
                matched[at as usize] = edge.weight.max(matched[at as usize]);
            }
        }
    }
    for (at, &partner) in partners.iter().enumerate().filter(|(_, partner)| **partner != UNMATCHED) {
        if partners[partner as usize] != at as u32 {
            return Err(format!(
                "{at} has the partner {partner}, which has the partner {}",
                partners[partner as usize]
            ));
        }
        if matched[at] <= 0.0 {
            return Err(format!("no edge of a positive weight connects {at} with its partner {partner}"));
        }
    }
    let lighter = |edge: &&ForestEdge| edge.weight > matched[edge.ends.0 as usize].max(matched[edge.ends.1 as usize]);
    match edges.iter().find(lighter) {
        Some(edge) => Err(format!("{edge:?} is heavier than the matched edges of its ends")),
        None => Ok(()),
    }
}

/// What is wrong with a coloring. Neighbors must have different colors, and no vertex a greater one than it has neighbors.
pub fn coloring(projection: &Projection, colors: &[u32]) -> Result<(), String> {
    let neighbors = neighbors(projection);
    for at in vertices(projection) {
        let (color, neighbors) = (colors[at as usize], &neighbors[at as usize]);
        if let Some(other) = neighbors.iter().find(|other| colors[**other as usize] == color) {
            return Err(format!("{at} and its neighbor {other} have the color {color}"));
        }
        if color as usize > neighbors.len() {
            return Err(format!("{at} has the color {color} and {} neighbors", neighbors.len()));
        }
    }
    Ok(())
}

/// What is wrong with an independent set. No member may have a member as neighbor, and every other vertex must have one.
pub fn independent_set(projection: &Projection, is_in: &[bool]) -> Result<(), String> {
    let neighbors = neighbors(projection);
    for at in vertices(projection) {
        let member = neighbors[at as usize].iter().find(|other| is_in[**other as usize]);
        match (is_in[at as usize], member) {
            (true, Some(other)) => return Err(format!("{at} and its neighbor {other} are members")),
            (false, None) => return Err(format!("neither {at} nor a neighbor of it is a member")),
            _ => {}
        }
    }
    Ok(())
}
