//! The k shortest paths from a vertex to another, without paths that visit a vertex twice.
//!
//! Yen's algorithm (*Finding the K Shortest Loopless Paths in a Network*, 1971). Each further path leaves an earlier one at some vertex, the
//! *spur*: it has the same vertices before, and continues along an edge that no earlier path with these vertices takes. For every
//! spur of the last path a search finds the shortest such path, which becomes a candidate; the shortest candidate is the
//! next path. A path looks for spurs only from its own spur on: candidates that leave it earlier are there already
//! (Lawler 1972). So no candidate is found twice.
//!
//! A first search finds the distance of every vertex to the target. A path that avoids some vertices is no shorter than that, so
//! searches from spurs are A* (Hart, Nilsson and Raphael 1968) with these distances, and go nearly straight to the target. The spurs
//! of a path are searched side by side.
//!
//! Parallel edges are one step with the least of their weights. Paths are ordered by their lengths and then by their positions. Which of
//! several equally long paths are among the k is the same for the same projection. Lengths are sums of doubles: paths whose lengths
//! differ by less than the rounding of a sum count as equally long.
//!
//! Work O(k · n · (n + m) log n) at worst; memory 8 bytes a position, and what a search from a spur sees.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hashbrown::{HashMap, HashSet};
use mangrove_graph::Result;

use super::bfs::{self, Follow, UNREACHED};
use super::shortest_path::{Path, check_weight, no_weights};
use crate::projection::Projection;
use crate::team::{Checker, Team};

/// Vertices between two looks whether the query has ended.
const VERTICES_A_CHECK: u64 = 1_024;

/// What searches from spurs share.
struct Graph<'p> {
    projection: &'p Projection,
    target: u32,
    weighted: bool,
    /// From each position to the target.
    remaining: Vec<f64>,
    checker: Checker,
}

/// A path, with its length up to each of its vertices, and its spur as an index of a vertex.
struct Found {
    vertices: Vec<u32>,
    lengths: Vec<f64>,
    spur: usize,
}

/// At most `count` paths, the shortest first. With `weighted`, the length is the sum of the weights, else the number of edges.
///
/// # Errors
///
/// If weights are wanted and there are none, if one that a search meets is negative or no number, or if the query of the
/// team has ended.
pub fn run(
    projection: &Projection,
    (source, target): (u32, u32),
    count: usize,
    weighted: bool,
    team: &Team,
) -> Result<Vec<Path>> {
    if weighted && !projection.is_weighted() {
        return Err(no_weights());
    }
    let remaining = match weighted {
        true => weights_to(projection, target, team)?,
        false => {
            let depths = bfs::run(projection, target, Follow::Incoming, team)?;
            let length = |depth| if depth == UNREACHED { f64::INFINITY } else { f64::from(depth) };
            depths.into_iter().map(length).collect()
        }
    };
    let graph = Graph { projection, target, weighted, remaining, checker: team.checker() };
    let mut paths: Vec<Found> = Vec::new();
    // By length and positions.
    let mut candidates = BTreeMap::<(u64, Vec<u32>), Found>::new();
    let mut next = graph.shortest_from(&[source], &[0.0], &HashSet::new())?;
    team.count_in("paths", count as u64);
    while let Some(path) = next.take().filter(|_| paths.len() < count) {
        team.check()?;
        paths.push(path);
        team.advance(1);
        if paths.len() == count {
            break;
        }
        let last = &paths[paths.len() - 1];
        let spurs = last.spur..last.vertices.len() - 1;
        let found = team.map_parts(spurs.len(), |part| {
            let spur = spurs.start + part;
            let same = |path: &&Found| path.vertices.get(..=spur) == Some(&last.vertices[..=spur]);
            let taken = paths.iter().filter(same).filter_map(|path| path.vertices.get(spur + 1).copied()).collect();
            graph.shortest_from(&last.vertices[..=spur], &last.lengths[..=spur], &taken)
        })?;
        for found in found {
            if let Some(found) = found? {
                let length = found.lengths[found.lengths.len() - 1];
                candidates.insert((length.to_bits(), found.vertices.clone()), found);
            }
        }
        next = candidates.pop_first().map(|(_, found)| found);
    }
    let path = |found: Found| Path { length: found.lengths[found.lengths.len() - 1], vertices: found.vertices };
    Ok(paths.into_iter().map(path).collect())
}

impl Graph<'_> {
    /// The shortest path to the target that begins with these vertices, whose last one is the spur, and does not go on to one that is taken.
    fn shortest_from(&self, begin: &[u32], lengths: &[f64], taken: &HashSet<u32>) -> Result<Option<Found>> {
        let spur = begin[begin.len() - 1];
        let avoided: HashSet<u32> = begin.iter().copied().collect();
        // For each position that was seen, its distance and the position before it.
        let mut seen = HashMap::<u32, (u64, u32)>::new();
        let first = lengths[lengths.len() - 1].to_bits();
        seen.insert(spur, (first, spur));
        // By the length of a path through the position at least, and its distance.
        let mut open = BinaryHeap::from([Reverse((first, first, spur))]);
        let mut looked_at = 0_u64;
        while let Some(Reverse((_, distance, at))) = open.pop() {
            if looked_at.is_multiple_of(VERTICES_A_CHECK) {
                self.checker.check()?;
            }
            looked_at += 1;
            if distance > seen[&at].0 {
                continue;
            }
            if at == self.target {
                return Ok(Some(self.trace(begin, lengths, &seen)));
            }
            let weights = self.projection.outgoing_weights(at);
            for (cell, &other) in self.projection.outgoing(at).iter().enumerate() {
                let remaining = self.remaining[other as usize];
                if remaining == f64::INFINITY || avoided.contains(&other) || (at == spur && taken.contains(&other)) {
                    continue;
                }
                let weight = if self.weighted { weights[cell] } else { 1.0 };
                check_weight(weight)?;
                let through = f64::from_bits(distance) + weight;
                let known = seen.get(&other).map(|(distance, _)| *distance);
                if known.is_none_or(|known| through.to_bits() < known) {
                    seen.insert(other, (through.to_bits(), at));
                    open.push(Reverse(((through + remaining).to_bits(), through.to_bits(), other)));
                }
            }
        }
        Ok(None)
    }

    fn trace(&self, begin: &[u32], lengths: &[f64], seen: &HashMap<u32, (u64, u32)>) -> Found {
        let (mut at, spur) = (self.target, begin[begin.len() - 1]);
        let mut rest = Vec::new();
        while at != spur {
            let (distance, before) = seen[&at];
            rest.push((at, f64::from_bits(distance)));
            at = before;
        }
        let rest = rest.into_iter().rev();
        let vertices = begin.iter().copied().chain(rest.clone().map(|(at, _)| at)).collect();
        let lengths = lengths.iter().copied().chain(rest.map(|(_, length)| length)).collect();
        Found { vertices, lengths, spur: begin.len() - 1 }
    }
}

/// The least sum of weights from each position to the target, by Dijkstra's algorithm along incoming edges.
fn weights_to(projection: &Projection, target: u32, team: &Team) -> Result<Vec<f64>> {
    let mut distances = vec![f64::INFINITY; projection.positions()];
    distances[target as usize] = 0.0;
    let mut open = BinaryHeap::from([Reverse((0_u64, target))]);
    let mut looked_at = 0_u64;
    while let Some(Reverse((bits, at))) = open.pop() {
        if looked_at.is_multiple_of(VERTICES_A_CHECK) {
            team.check()?;
        }
        looked_at += 1;
        let distance = f64::from_bits(bits);
        if distance > distances[at as usize] {
            continue;
        }
        for (&other, &weight) in projection.incoming(at).iter().zip(projection.incoming_weights(at)) {
            check_weight(weight)?;
            let through = distance + weight;
            if through < distances[other as usize] {
                distances[other as usize] = through;
                open.push(Reverse((through.to_bits(), other)));
            }
        }
    }
    Ok(distances)
}
