//! Which vertices belong together.

use std::cmp::Reverse;

use hashbrown::{HashMap, HashSet};

use super::vertices;
use crate::projection::Projection;

/// Components by searches that follow edges both ways, from each vertex without one, ascending.
pub fn wcc(projection: &Projection) -> Vec<u32> {
    let mut components: Vec<u32> = (0..projection.positions() as u32).collect();
    let mut seen = vec![false; projection.positions()];
    for first in vertices(projection) {
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at as usize], true) {
                continue;
            }
            components[at as usize] = first;
            open.extend_from_slice(projection.outgoing(at));
            open.extend_from_slice(projection.incoming(at));
        }
    }
    components
}

/// Labels by counters.
pub fn cdlp(projection: &Projection, labels: &[u64], rounds: u32) -> Vec<u64> {
    let mut labels = labels.to_vec();
    for _ in 0..rounds {
        let mut next = labels.clone();
        for at in vertices(projection) {
            let mut counts = HashMap::<u64, u64>::new();
            let incoming = if projection.is_directed() { projection.incoming(at) } else { &[] };
            for other in projection.outgoing(at).iter().chain(incoming) {
                *counts.entry(labels[*other as usize]).or_default() += 1;
            }
            if let Some((label, _)) = counts.into_iter().max_by_key(|(label, count)| (*count, Reverse(*label))) {
                next[at as usize] = label;
            }
        }
        labels = next;
    }
    labels
}

/// Coefficients by looking all pairs of neighbors up.
pub fn lcc(projection: &Projection) -> Vec<f64> {
    let edges: HashSet<(u32, u32)> =
        vertices(projection).flat_map(|at| projection.outgoing(at).iter().map(move |other| (at, *other))).collect();
    let mut coefficients = vec![0.0; projection.positions()];
    for at in vertices(projection) {
        let neighbors: HashSet<u32> = projection
            .outgoing(at)
            .iter()
            .chain(projection.incoming(at))
            .copied()
            .filter(|other| *other != at)
            .collect();
        let pairs = neighbors.iter().flat_map(|one| neighbors.iter().map(move |other| (*one, *other)));
        let there = pairs.filter(|(one, other)| one != other && edges.contains(&(*one, *other))).count();
        let possible = neighbors.len() * neighbors.len().saturating_sub(1);
        if possible > 0 {
            coefficients[at as usize] = there as f64 / possible as f64;
        }
    }
    coefficients
}

/// Strongly connected components by two depth-first searches (Kosaraju and Sharir): vertices are left in the order in which the first
/// search leaves them, the last one first; backwards from each, the second search finds a component.
pub fn scc(projection: &Projection) -> Vec<u32> {
    let (mut left, mut seen) = (Vec::new(), vec![false; projection.positions()]);
    for first in vertices(projection) {
        let mut open = vec![(first, false)];
        while let Some((at, is_left)) = open.pop() {
            if is_left {
                left.push(at);
            } else if !std::mem::replace(&mut seen[at as usize], true) {
                open.push((at, true));
                open.extend(projection.outgoing(at).iter().map(|other| (*other, false)));
            }
        }
    }
    let mut components: Vec<u32> = (0..projection.positions() as u32).collect();
    for &first in left.iter().rev() {
        let (mut open, mut members) = (vec![first], Vec::new());
        while let Some(at) = open.pop() {
            if std::mem::replace(&mut seen[at as usize], false) {
                members.push(at);
                open.extend_from_slice(projection.incoming(at));
            }
        }
        if let Some(&least) = members.iter().min() {
            members.iter().for_each(|member| components[*member as usize] = least);
        }
    }
    components
}

/// The modularity by its definition: for every pair of vertices of a community, the weight of the edges between them, and the weight that
/// is expected.
pub fn modularity(projection: &Projection, communities: &[u32], resolution: f64) -> f64 {
    let mut between = HashMap::<(u32, u32), f64>::new();
    for at in vertices(projection) {
        let weights = projection.outgoing_weights(at);
        for (cell, &other) in projection.outgoing(at).iter().enumerate() {
            let weight = weights.get(cell).copied().unwrap_or(1.0);
            *between.entry((at, other)).or_default() += weight;
            if projection.is_directed() {
                *between.entry((other, at)).or_default() += weight;
            }
        }
    }
    let total: f64 = between.values().sum();
    let mut strengths = vec![0.0; projection.positions()];
    between.iter().for_each(|((at, _), weight)| strengths[*at as usize] += weight);
    if total == 0.0 {
        return 0.0;
    }
    let mut sum = 0.0;
    for one in vertices(projection) {
        for other in vertices(projection).filter(|other| communities[one as usize] == communities[*other as usize]) {
            let weight = between.get(&(one, other)).copied().unwrap_or_default();
            sum += weight - resolution * strengths[one as usize] * strengths[other as usize] / total;
        }
    }
    sum / total
}

/// Returns true if a search from the vertex that names each community reaches the whole community without leaving it.
pub fn are_connected(projection: &Projection, communities: &[u32]) -> bool {
    let mut seen = vec![false; projection.positions()];
    for first in vertices(projection).filter(|at| communities[*at as usize] == *at) {
        let mut open = vec![first];
        while let Some(at) = open.pop() {
            if !std::mem::replace(&mut seen[at as usize], true) {
                let neighbors = projection.outgoing(at).iter().chain(projection.incoming(at)).copied();
                open.extend(neighbors.filter(|other| communities[*other as usize] == first));
            }
        }
    }
    vertices(projection).all(|at| seen[at as usize])
}

/// Clusters by maps of votes that are pushed along outgoing edges. Sums are exact if strengths are whole numbers.
pub fn peer_pressure(projection: &Projection, labels: &[u64], strengths: &[f64], rounds: u32) -> Vec<u64> {
    let mut clusters = labels.to_vec();
    for _ in 0..rounds {
        let mut votes = vec![HashMap::<u64, f64>::new(); clusters.len()];
        for at in vertices(projection) {
            for to in projection.outgoing(at).iter().chain([&at]) {
                *votes[*to as usize].entry(clusters[at as usize]).or_default() += strengths[at as usize];
            }
        }
        for at in vertices(projection) {
            let most = votes[at as usize].values().copied().fold(0.0, f64::max);
            let elected =
                votes[at as usize].iter().filter(|(_, sum)| most > 0.0 && **sum == most).map(|(label, _)| *label);
            clusters[at as usize] = elected.min().unwrap_or(labels[at as usize]);
        }
    }
    clusters
}

/// For each position, the first one in `order` that reaches it, by handing labels on until nothing changes.
pub fn least_reaching(projection: &Projection, order: &[u32]) -> Vec<u32> {
    let mut rank = vec![0; projection.positions()];
    order.iter().enumerate().for_each(|(place, at)| rank[*at as usize] = place);
    let mut least: Vec<u32> = (0..projection.positions() as u32).collect();
    loop {
        let before = least.clone();
        for at in vertices(projection) {
            for &other in projection.outgoing(at) {
                if rank[least[at as usize] as usize] < rank[least[other as usize] as usize] {
                    least[other as usize] = least[at as usize];
                }
            }
        }
        if before == least {
            return least;
        }
    }
}
