//! For each algorithm another one: plain, sequential, and obviously right. Tests and benches compare the two.
//!
//! None of them shares code with what it verifies, apart from the rows.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use hashbrown::{HashMap, HashSet};

use crate::algorithm::bfs::UNREACHED;
use crate::projection::Projection;

/// All positions with a vertex.
fn vertices(projection: &Projection) -> impl Iterator<Item = u32> + '_ {
    (0..projection.positions() as u32).filter(|at| projection.numbering().exists(*at))
}

/// Depths by a queue.
pub fn bfs(projection: &Projection, source: u32) -> Vec<u32> {
    let mut depths = vec![UNREACHED; projection.positions()];
    let mut queue = VecDeque::from([source]);
    depths[source as usize] = 0;
    while let Some(at) = queue.pop_front() {
        for &other in projection.outgoing(at) {
            if depths[other as usize] == UNREACHED {
                depths[other as usize] = depths[at as usize] + 1;
                queue.push_back(other);
            }
        }
    }
    depths
}

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

/// Ranks by pushing along outgoing edges. With `spread`, lost rank goes to all vertices.
pub fn pagerank(projection: &Projection, damping: f64, rounds: u32, spread: bool) -> Vec<f64> {
    let mut ranks = vec![0.0; projection.positions()];
    vertices(projection).for_each(|at| ranks[at as usize] = 1.0 / projection.vertex_count() as f64);
    pagerank_from(projection, ranks, damping, rounds, spread)
}

/// As [`pagerank`], from these ranks.
pub fn pagerank_from(
    projection: &Projection,
    mut ranks: Vec<f64>,
    damping: f64,
    rounds: u32,
    spread: bool,
) -> Vec<f64> {
    let count = projection.vertex_count() as f64;
    let sum: f64 = ranks.iter().sum();
    for _ in 0..rounds {
        let mut next = vec![0.0; ranks.len()];
        let mut lost = 0.0;
        for at in vertices(projection) {
            let row = projection.outgoing(at);
            row.iter().for_each(|other| next[*other as usize] += ranks[at as usize] / row.len() as f64);
            if row.is_empty() && spread {
                lost += ranks[at as usize];
            }
        }
        for at in vertices(projection) {
            ranks[at as usize] = (1.0 - damping) * sum / count + damping * (next[at as usize] + lost / count);
        }
    }
    ranks
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
            let elected = votes[at as usize].iter().filter(|(_, sum)| most > 0.0 && **sum == most).map(|(label, _)| *label);
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

/// Distances by Dijkstra's algorithm.
pub fn sssp(projection: &Projection, source: u32) -> Vec<f64> {
    let mut distances = vec![f64::INFINITY; projection.positions()];
    // For numbers that are not negative, bits are in the order of the numbers.
    let mut open = BinaryHeap::from([Reverse((0.0_f64.to_bits(), source))]);
    distances[source as usize] = 0.0;
    while let Some(Reverse((bits, at))) = open.pop() {
        let distance = f64::from_bits(bits);
        if distance > distances[at as usize] {
            continue;
        }
        for (&other, weight) in projection.outgoing(at).iter().zip(projection.outgoing_weights(at)) {
            let through = distance + weight;
            if through < distances[other as usize] {
                distances[other as usize] = through;
                open.push(Reverse((through.to_bits(), other)));
            }
        }
    }
    distances
}
