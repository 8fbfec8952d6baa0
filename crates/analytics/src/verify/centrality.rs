//! How important a vertex is.

use std::collections::VecDeque;

use hashbrown::HashMap;

use super::large::Large;
use super::{bfs, vertices};
use crate::algorithm::bfs::UNREACHED;
use crate::projection::Projection;

/// Ranks by pushing along outgoing edges. With `spread`, lost rank goes to all vertices.
pub fn pagerank(projection: &Projection, damping: f64, rounds: u32, spread: bool) -> Vec<f64> {
    let sources: Vec<u32> = vertices(projection).collect();
    personalized(projection, (damping, rounds, spread), &sources, false)
}

/// Personalised ranks by pushing along outgoing edges: with a damping, in so many rounds. With `spread`, lost rank goes to
/// the sources.
pub fn personalized(
    projection: &Projection,
    (damping, rounds, spread): (f64, u32, bool),
    sources: &[u32],
    weighted: bool,
) -> Vec<f64> {
    let mut starts = vec![0.0; projection.positions()];
    sources.iter().for_each(|at| starts[*at as usize] += 1.0 / sources.len() as f64);
    let mut ranks = starts.clone();
    for _ in 0..rounds {
        let mut next = vec![0.0; ranks.len()];
        let mut lost = 0.0;
        for at in vertices(projection) {
            let row = projection.outgoing(at);
            let weights = if weighted { projection.outgoing_weights(at).to_vec() } else { vec![1.0; row.len()] };
            let all: f64 = weights.iter().sum();
            if all > 0.0 {
                row.iter()
                    .zip(weights)
                    .for_each(|(other, weight)| next[*other as usize] += ranks[at as usize] * weight / all);
            } else if spread {
                lost += ranks[at as usize];
            }
        }
        for (rank, (next, start)) in ranks.iter_mut().zip(next.iter().zip(&starts)) {
            *rank = (1.0 - damping) * start + damping * (next + lost * start);
        }
    }
    ranks
}

/// Ranks by pushing along outgoing edges, from these ranks, whose sum stays. Lost rank goes to all vertices.
pub fn pagerank_from(projection: &Projection, mut ranks: Vec<f64>, damping: f64, rounds: u32) -> Vec<f64> {
    let (count, sum) = (projection.vertex_count() as f64, ranks.iter().sum::<f64>());
    for _ in 0..rounds {
        let mut next = vec![0.0; ranks.len()];
        let mut lost = 0.0;
        for at in vertices(projection) {
            let row = projection.outgoing(at);
            row.iter().for_each(|other| next[*other as usize] += ranks[at as usize] / row.len() as f64);
            if row.is_empty() {
                lost += ranks[at as usize];
            }
        }
        for at in vertices(projection) {
            ranks[at as usize] = (1.0 - damping) * sum / count + damping * (next[at as usize] + lost / count);
        }
    }
    ranks
}

/// Betweenness by the numbers of shortest paths between all pairs: a vertex is on those that its distances add up for. In an undirected
/// projection a pair counts once. Only pairs with one of the sources count.
pub fn betweenness(projection: &Projection, sources: &[u32]) -> Vec<f64> {
    let present: Vec<u32> = vertices(projection).collect();
    let distances: HashMap<u32, Vec<u32>> = present.iter().map(|at| (*at, bfs(projection, *at))).collect();
    let paths: HashMap<u32, Vec<Large>> =
        distances.iter().map(|(at, distances)| (*at, path_counts(projection, distances))).collect();
    let mut values = vec![0.0; projection.positions()];
    for source in sources {
        let (from_source, of_source) = (&distances[source], &paths[source]);
        for &between in present.iter().filter(|at| *at != source && from_source[**at as usize] != UNREACHED) {
            let (from_between, of_between) = (&distances[&between], &paths[&between]);
            for target in present.iter().map(|at| *at as usize).filter(|at| *at as u32 != *source) {
                let (rest, all) = (from_between[target], from_source[target]);
                if target as u32 != between && rest != UNREACHED && from_source[between as usize] + rest == all {
                    let through = of_source[between as usize].times(of_between[target]);
                    values[between as usize] += through.divided_by(of_source[target]);
                }
            }
        }
    }
    if !projection.is_directed() {
        values.iter_mut().for_each(|value| *value /= 2.0);
    }
    values
}

/// The number of shortest paths to each position, from its distances, level by level.
fn path_counts(projection: &Projection, distances: &[u32]) -> Vec<Large> {
    let first = |distance: &u32| if *distance == 0 { Large::ONE } else { Large::ZERO };
    let mut counts: Vec<Large> = distances.iter().map(first).collect();
    let mut order: Vec<u32> = vertices(projection).filter(|at| distances[*at as usize] != UNREACHED).collect();
    order.sort_by_key(|at| distances[*at as usize]);
    for at in order {
        for &other in projection.outgoing(at) {
            if distances[other as usize] == distances[at as usize] + 1 {
                counts[other as usize] = counts[other as usize].plus(counts[at as usize]);
            }
        }
    }
    counts
}

/// As [`betweenness`], in the time of a search from each source: Brandes' algorithm (2001) as he wrote it, with one queue.
pub fn betweenness_by_queue(projection: &Projection, sources: &[u32]) -> Vec<f64> {
    let mut values = vec![0.0; projection.positions()];
    for &source in sources {
        let depths = bfs(projection, source);
        let (mut paths, mut order) = (vec![Large::ZERO; depths.len()], Vec::new());
        let (mut queue, mut is_found) = (VecDeque::from([source]), vec![false; depths.len()]);
        (paths[source as usize], is_found[source as usize]) = (Large::ONE, true);
        let is_next = |from: u32, to: u32| depths[to as usize] == depths[from as usize] + 1;
        while let Some(at) = queue.pop_front() {
            order.push(at);
            for &other in projection.outgoing(at).iter().filter(|other| is_next(at, **other)) {
                paths[other as usize] = paths[other as usize].plus(paths[at as usize]);
                if !std::mem::replace(&mut is_found[other as usize], true) {
                    queue.push_back(other);
                }
            }
        }
        let mut dependencies = vec![0.0; depths.len()];
        for &at in order.iter().skip(1).rev() {
            let next = projection.outgoing(at).iter().map(|other| *other as usize);
            let next = next.filter(|other| is_next(at, *other as u32));
            dependencies[at as usize] =
                next.map(|other| paths[at as usize].divided_by(paths[other]) * (1.0 + dependencies[other])).sum();
            values[at as usize] += dependencies[at as usize];
        }
    }
    if !projection.is_directed() {
        values.iter_mut().for_each(|value| *value /= 2.0);
    }
    values
}

/// The closeness of Wasserman and Faust and the sum of inverse distances of each position, by a search from each vertex.
pub fn closeness(projection: &Projection) -> (Vec<f64>, Vec<f64>) {
    let (mut closeness, mut harmonic) = (vec![0.0; projection.positions()], vec![0.0; projection.positions()]);
    let distances: Vec<Vec<u32>> = vertices(projection).map(|at| bfs(projection, at)).collect();
    for at in vertices(projection) {
        let to = |distances: &Vec<u32>| distances[at as usize];
        let known: Vec<f64> =
            distances.iter().map(to).filter(|to| *to != 0 && *to != UNREACHED).map(f64::from).collect();
        if !known.is_empty() {
            let mean = known.iter().sum::<f64>() / known.len() as f64;
            closeness[at as usize] = known.len() as f64 / (distances.len() - 1) as f64 / mean;
            harmonic[at as usize] = known.iter().map(|distance| 1.0 / distance).sum();
        }
    }
    (closeness, harmonic)
}

/// All positions with a vertex, and the number of edges from each to each, as rows of a matrix.
fn matrix(projection: &Projection) -> (Vec<u32>, Vec<Vec<f64>>) {
    let present: Vec<u32> = vertices(projection).collect();
    let ranks: HashMap<u32, usize> = present.iter().enumerate().map(|(rank, at)| (*at, rank)).collect();
    let mut matrix = vec![vec![0.0; present.len()]; present.len()];
    for (row, at) in matrix.iter_mut().zip(&present) {
        projection.outgoing(*at).iter().for_each(|other| row[ranks[other]] += 1.0);
    }
    (present, matrix)
}

/// The numbers of the vertices, as those of all positions.
fn at_positions(projection: &Projection, present: &[u32], numbers: &[f64]) -> Vec<f64> {
    let mut all = vec![0.0; projection.positions()];
    present.iter().zip(numbers).for_each(|(at, number)| all[*at as usize] = *number);
    all
}

/// Hubs and authorities by products with a dense matrix.
pub fn hits(projection: &Projection, rounds: u32) -> (Vec<f64>, Vec<f64>) {
    let (present, matrix) = matrix(projection);
    let all = 0..present.len();
    let normalize = |mut vector: Vec<f64>| {
        let norm = vector.iter().map(|number| number * number).sum::<f64>().sqrt();
        vector.iter_mut().for_each(|number| *number /= if norm > 0.0 { norm } else { 1.0 });
        vector
    };
    let (mut hubs, mut authorities) = (vec![1.0; present.len()], Vec::new());
    for _ in 0..rounds {
        let led_to = |to: usize| all.clone().map(|from| matrix[from][to] * hubs[from]).sum();
        authorities = normalize(all.clone().map(led_to).collect());
        let leads_to = |from: usize| all.clone().map(|to| matrix[from][to] * authorities[to]).sum();
        hubs = normalize(all.clone().map(leads_to).collect());
    }
    (at_positions(projection, &present, &hubs), at_positions(projection, &present, &authorities))
}

/// Katz centrality by elimination, from the equations that define it.
pub fn katz(projection: &Projection, alpha: f64, beta: f64) -> Vec<f64> {
    let (present, matrix) = matrix(projection);
    let size = present.len();
    // x(v) − α · Σ x(u) = β, with the right side as the last column.
    let equation = |to: usize| {
        let factor = |from: usize| f64::from(u8::from(from == to)) - alpha * matrix[from][to];
        (0..size).map(factor).chain([beta]).collect()
    };
    let mut rows: Vec<Vec<f64>> = (0..size).map(equation).collect();
    for pivot in 0..size {
        let best = (pivot..size).max_by(|one, other| rows[*one][pivot].abs().total_cmp(&rows[*other][pivot].abs()));
        rows.swap(pivot, best.expect("a row is left"));
        let (above, below) = rows.split_at_mut(pivot + 1);
        for row in below.iter_mut().filter(|row| row[pivot] != 0.0) {
            let factor = row[pivot] / above[pivot][pivot];
            row.iter_mut().zip(&above[pivot]).for_each(|(number, of_pivot)| *number -= factor * of_pivot);
        }
    }
    let mut solution = vec![0.0; size];
    for row in (0..size).rev() {
        let known: f64 = (row + 1..size).map(|column| rows[row][column] * solution[column]).sum();
        solution[row] = (rows[row][size] - known) / rows[row][row];
    }
    at_positions(projection, &present, &solution)
}
