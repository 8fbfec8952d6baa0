//! Paths from vertices to others.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

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
