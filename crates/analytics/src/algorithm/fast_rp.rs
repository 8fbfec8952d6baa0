//! FastRP: a vector for each vertex, so that vertices with similar neighborhoods have similar vectors.
//!
//! Chen, Sultan, Tian, Chen and Skiena, *Fast and Accurate Network Embeddings via Very Sparse Random Projection*, 2019. Each vertex begins with a
//! random vector: each number is +√3, 0 or −√3 with the probabilities 1/6, 2/3 and 1/6 (Achlioptas 2003), times
//! `(degree / m)^β` with m for the number of cells. In a round, each vertex takes the mean of the vectors of its neighbors. The result is the sum of the vectors of
//! all rounds, each divided by its length and times the weight of the round. So distances between rows of powers of the transition matrix are kept
//! about, and the matrices are never made.
//!
//! The random numbers are functions of the seed, the vertex and the number. Means are added in the order of the rows. Vertices without
//! neighbors have zeros after the first round.
//!
//! Work O(rounds · m · width); memory 12 bytes a number of a vector.

use mangrove_graph::{Error, Result};

use crate::arrays;
use crate::projection::Projection;
use crate::random::Random;
use crate::team::Team;

/// Numbers that a part reads and writes, about: 0.1 ms of work.
const PART_NUMBERS: usize = 1 << 17;

/// The options.
#[derive(Clone, PartialEq, Debug)]
pub struct FastRpOptions {
    /// The numbers of a vector.
    pub width: usize,
    /// The weight of each round, and so the number of rounds. The first one is that of the neighbors.
    pub weights: Vec<f32>,
    /// The weight of the random vectors themselves.
    pub own_weight: f32,
    /// The exponent of the degree: below 0, vertices with many edges count less.
    pub degree_power: f32,
    /// What chooses the random vectors.
    pub seed: u64,
}

impl Default for FastRpOptions {
    fn default() -> Self {
        FastRpOptions { width: 128, weights: vec![0.0, 1.0, 1.0], own_weight: 0.0, degree_power: 0.0, seed: 0 }
    }
}

/// The random vectors that positions begin with, one after the other; zeros for holes.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn random_vectors(projection: &Projection, options: &FastRpOptions, team: &Team) -> Result<Vec<f32>> {
    let width = options.width;
    // By all threads, part by part: to fill some hundred megabytes takes too long for a query that is to end.
    let mut vectors = arrays::filled(team, projection.positions() * width, 0.0_f32)?;
    let random = Random::new(options.seed);
    let edges = projection.cell_count().max(1) as f32;
    each_vector(projection, width, &mut vectors, team, |at, vector| {
        if !projection.numbering().exists(at) {
            return;
        }
        let degree = projection.out_degree(at) as f32;
        let scale = 3.0_f32.sqrt() * if degree > 0.0 { (degree / edges).powf(options.degree_power) } else { 1.0 };
        let random = random.of(projection.numbering().vertex(at).to_bits());
        for (number, entry) in vector.iter_mut().enumerate() {
            *entry = match random.of(number as u64).below(6) {
                0 => scale,
                1 => -scale,
                _ => 0.0,
            };
        }
    })?;
    Ok(vectors)
}

/// The vectors of all positions, one after the other; zeros for holes.
///
/// # Errors
///
/// If the width is 0, or if the query of the team has ended.
pub fn run(projection: &Projection, options: &FastRpOptions, team: &Team) -> Result<Vec<f32>> {
    let width = options.width;
    if width == 0 {
        return Err(Error::invalid("the vectors of FastRP need at least one number"));
    }
    let mut last = random_vectors(projection, options, team)?;
    let mut next = arrays::filled(team, last.len(), 0.0_f32)?;
    let mut sums = arrays::filled(team, last.len(), 0.0_f32)?;
    add_normalized(projection, (width, options.own_weight), &last, &mut sums, team)?;
    team.count_in("rounds", options.weights.len() as u64);
    for &weight in &options.weights {
        let known = &last;
        each_vector(projection, width, &mut next, team, |at, vector| {
            vector.fill(0.0);
            let row = projection.outgoing(at);
            for &other in row {
                let other = &known[other as usize * width..][..width];
                vector.iter_mut().zip(other).for_each(|(number, other)| *number += other);
            }
            if !row.is_empty() {
                let inverse = 1.0 / row.len() as f32;
                vector.iter_mut().for_each(|number| *number *= inverse);
            }
        })?;
        std::mem::swap(&mut last, &mut next);
        add_normalized(projection, (width, weight), &last, &mut sums, team)?;
        team.advance(1);
    }
    Ok(sums)
}

/// Adds each vector, divided by its length and times a weight.
fn add_normalized(
    projection: &Projection,
    (width, weight): (usize, f32),
    vectors: &[f32],
    sums: &mut [f32],
    team: &Team,
) -> Result<()> {
    if weight == 0.0 {
        return Ok(());
    }
    each_vector(projection, width, sums, team, |at, sum| {
        let vector = &vectors[at as usize * width..][..width];
        let length = vector.iter().map(|number| number * number).sum::<f32>().sqrt();
        if length > 0.0 {
            let scale = weight / length;
            sum.iter_mut().zip(vector).for_each(|(sum, number)| *sum += scale * number);
        }
    })
}

/// Calls `work` with each position and its vector.
fn each_vector(
    projection: &Projection,
    width: usize,
    vectors: &mut [f32],
    team: &Team,
    work: impl Fn(u32, &mut [f32]) + Sync,
) -> Result<()> {
    let (mut ranges, mut start, mut numbers) = (Vec::new(), 0, 0);
    for at in 0..projection.positions() {
        numbers += (1 + projection.out_degree(at as u32) as usize) * width;
        if numbers >= PART_NUMBERS || at + 1 == projection.positions() {
            ranges.push(start * width..(at + 1) * width);
            (start, numbers) = (at + 1, 0);
        }
    }
    team.map_slices(&ranges, vectors, |part, vectors| {
        let first = ranges[part].start / width;
        vectors.chunks_exact_mut(width).enumerate().for_each(|(number, vector)| work((first + number) as u32, vector));
    })?;
    Ok(())
}
