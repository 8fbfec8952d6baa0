//! Which vertices have similar neighbors.

use std::collections::{BTreeMap, BTreeSet};

use hashbrown::HashMap;

use super::vertices;
use crate::projection::Projection;

/// For each pair of different vertices with a common neighbor, the number of common ones and the numbers of neighbors of the two.
pub fn common_neighbors(projection: &Projection) -> BTreeMap<(u32, u32), [usize; 3]> {
    let neighbors =
        |at: u32| -> BTreeSet<u32> { projection.outgoing(at).iter().copied().filter(|other| *other != at).collect() };
    let sets: Vec<(u32, BTreeSet<u32>)> = vertices(projection).map(|at| (at, neighbors(at))).collect();
    let mut pairs = BTreeMap::new();
    for (one, of_one) in &sets {
        for (other, of_other) in sets.iter().filter(|(other, _)| other != one) {
            let common = of_one.intersection(of_other).count();
            if common > 0 {
                pairs.insert((*one, *other), [common, of_one.len(), of_other.len()]);
            }
        }
    }
    pairs
}

/// The probability of each next vertex of a walk of node2vec that came from a vertex to another one.
pub fn next_step(projection: &Projection, (before, at): (u32, u32), p: f64, q: f64) -> BTreeMap<u32, f64> {
    let mut proportions = BTreeMap::<u32, f64>::new();
    for &next in projection.outgoing(at) {
        *proportions.entry(next).or_default() += match next {
            next if next == before => 1.0 / p,
            next if projection.outgoing(before).contains(&next) => 1.0,
            _ => 1.0 / q,
        };
    }
    let all: f64 = proportions.values().sum();
    proportions.values_mut().for_each(|proportion| *proportion /= all);
    proportions
}

/// The vectors of FastRP by the powers of the transition matrix, times the vectors that positions begin with.
pub fn fast_rp(projection: &Projection, begin: &[f32], width: usize, weights: &[f32]) -> Vec<f64> {
    let mut vectors = vec![0.0; begin.len()];
    for at in vertices(projection) {
        let sum = &mut vectors[at as usize * width..][..width];
        // Where a walk from here is after each round.
        let mut places = HashMap::<u32, f64>::from_iter([(at, 1.0)]);
        for weight in weights {
            let mut next = HashMap::<u32, f64>::new();
            for (place, probability) in places {
                let row = projection.outgoing(place);
                row.iter().for_each(|other| *next.entry(*other).or_default() += probability / row.len() as f64);
            }
            places = next;
            let of = |number: usize| -> f64 {
                places.iter().map(|(place, part)| part * f64::from(begin[*place as usize * width + number])).sum()
            };
            let vector: Vec<f64> = (0..width).map(of).collect();
            let length = vector.iter().map(|number| number * number).sum::<f64>().sqrt();
            if length > 1e-9 {
                sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += f64::from(*weight) * number / length);
            }
        }
    }
    vectors
}
