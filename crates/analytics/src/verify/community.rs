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
