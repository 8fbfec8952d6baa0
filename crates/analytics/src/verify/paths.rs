//! Paths from vertices to others.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};

use hashbrown::HashSet;

use super::vertices;
use crate::algorithm::bfs::UNREACHED;
use crate::projection::Projection;

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

/// For each position with a depth above 0, the least neighbor that is one edge nearer to the source; [`UNREACHED`] for others.
pub fn parents(projection: &Projection, source: u32) -> Vec<u32> {
    let depths = bfs(projection, source);
    let mut parents = vec![UNREACHED; depths.len()];
    for at in vertices(projection).filter(|at| depths[*at as usize] != UNREACHED) {
        for &other in projection.outgoing(at) {
            let parent = &mut parents[other as usize];
            if depths[other as usize] == depths[at as usize] + 1 {
                *parent = at.min(*parent);
            }
        }
    }
    parents
}

/// The lengths of the shortest paths without repeated vertices, at most so many, ascending: by trying all paths, the shortest first.
/// Paths along the same vertices are one.
pub fn path_lengths(projection: &Projection, (source, target): (u32, u32), count: usize, weighted: bool) -> Vec<f64> {
    let mut lengths = Vec::new();
    // By the bits of the length.
    let mut open = BinaryHeap::from([Reverse((0.0_f64.to_bits(), vec![source]))]);
    while let Some(Reverse((bits, path))) = open.pop() {
        let (length, at) = (f64::from_bits(bits), path[path.len() - 1]);
        if at == target {
            lengths.push(length);
            if lengths.len() == count {
                break;
            }
            continue;
        }
        let mut steps = BTreeMap::<u32, f64>::new();
        for (cell, &other) in projection.outgoing(at).iter().enumerate() {
            let weight = if weighted { projection.outgoing_weights(at)[cell] } else { 1.0 };
            let least = steps.entry(other).or_insert(weight);
            *least = least.min(weight);
        }
        for (other, weight) in steps {
            if !path.contains(&other) && reaches(projection, other, target, &path) {
                let longer = path.iter().copied().chain([other]).collect();
                open.push(Reverse(((length + weight).to_bits(), longer)));
            }
        }
    }
    lengths
}

/// Returns true if a path leads from one vertex to another one without those that are avoided.
fn reaches(projection: &Projection, from: u32, to: u32, avoided: &[u32]) -> bool {
    let (mut open, mut seen) = (vec![from], HashSet::new());
    seen.insert(from);
    while let Some(at) = open.pop() {
        if at == to {
            return true;
        }
        open.extend(projection.outgoing(at).iter().filter(|other| !avoided.contains(other) && seen.insert(**other)));
    }
    false
}
