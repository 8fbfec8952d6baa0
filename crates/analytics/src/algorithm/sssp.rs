//! Shortest paths from a source along weighted edges.
//!
//! Delta-stepping (Meyer and Sanders, *Δ-stepping: a parallelizable shortest path algorithm*, 2003). Vertices wait in buckets by their
//! distances, each as wide as `delta`. The vertices of the first bucket pass their distances on side by side; if one of them gets a
//! smaller distance meanwhile, it is in the bucket again. With a small delta few distances are passed on in vain, with a
//! large one many vertices work at a time. A small bucket is worked on by one thread, again and again until it is empty (*bucket fusion*:
//! Zhang and others, *Optimizing Ordered Graph Algorithms with GraphIt*, 2020).
//!
//! Distances are compared and replaced as the bits of a double: for numbers that are not negative, bits are in the order of the
//! numbers. Each distance is the least of sums along paths, in any order of the phases. Memory 8 bytes a position.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::team::Team;

/// Vertices of a bucket that make a part of a phase.
const BUCKET_PART: usize = 128;
/// A bucket of fewer vertices is no work for several threads.
const SHARED: usize = 1_024;
/// Buckets beyond the first one that are kept apart. Farther vertices wait together.
const BUCKETS: usize = 1 << 16;

/// The distance of every position; infinity for holes and for vertices that no path leads to. `delta` is the width of a bucket; `None`: the
/// average weight.
///
/// # Errors
///
/// If the projection has no weights, if a weight is negative or no number, or if the query of the team has ended.
pub fn run(projection: &Projection, source: u32, delta: Option<f64>, team: &Team) -> Result<Vec<f64>> {
    if !projection.is_weighted() {
        return Err(Error::invalid(
            "the projection has no weights: name the property of the edges that is their length",
        ));
    }
    let average = checked_average(projection)?;
    let delta = match delta {
        Some(delta) if delta > 0.0 && delta.is_finite() => delta,
        Some(delta) => return Err(Error::invalid(format!("delta is {delta}; it is a length above 0"))),
        None => average,
    };
    let distances: Vec<AtomicU64> =
        (0..projection.positions()).map(|_| AtomicU64::new(f64::INFINITY.to_bits())).collect();
    let distance = |at: u32| f64::from_bits(distances[at as usize].load(Ordering::Relaxed));
    distances[source as usize].store(0, Ordering::Relaxed);
    // A product in place of a quotient: any function will do that is larger for larger distances.
    let by_width = 1.0 / delta;
    let bucket_of = |distance: f64| (distance * by_width) as usize;
    let mut buckets: Vec<Vec<u32>> = vec![vec![source]];
    let put = |buckets: &mut Vec<Vec<u32>>, first: usize, vertex: u32, distance: f64| {
        let bucket = (bucket_of(distance).max(first) - first).min(BUCKETS);
        if buckets.len() <= bucket {
            buckets.resize_with(bucket + 1, Vec::new);
        }
        buckets[bucket].push(vertex);
    };
    let mut first = 0;
    while let Some(at) = buckets.iter().position(|bucket| !bucket.is_empty()) {
        buckets.drain(..at);
        first += at;
        let mut bucket = std::mem::take(&mut buckets[0]);
        if bucket.len() < SHARED || !team.has_helpers() {
            for (number, at) in bucket.drain(..).enumerate() {
                if number % BUCKET_PART == 0 {
                    team.check()?;
                }
                let from = distance(at);
                // One that has moved to an earlier bucket since was worked on there.
                if bucket_of(from) < first {
                    continue;
                }
                for (&other, weight) in projection.outgoing(at).iter().zip(projection.outgoing_weights(at)) {
                    let (through, place) = (from + weight, &distances[other as usize]);
                    // This thread is the only one: no exchange.
                    if through.to_bits() < place.load(Ordering::Relaxed) {
                        place.store(through.to_bits(), Ordering::Relaxed);
                        put(&mut buckets, first, other, through);
                    }
                }
            }
            if buckets[0].is_empty() {
                // Its memory is used again.
                buckets[0] = bucket;
            }
            continue;
        }
        let reached = team.map_parts(bucket.len().div_ceil(BUCKET_PART), |part| {
            let begin = part * BUCKET_PART;
            let mut reached = Vec::new();
            for &at in &bucket[begin..bucket.len().min(begin + BUCKET_PART)] {
                let from = distance(at);
                // One that has moved to an earlier bucket since was worked on there.
                if bucket_of(from) < first {
                    continue;
                }
                for (&other, weight) in projection.outgoing(at).iter().zip(projection.outgoing_weights(at)) {
                    let through = (from + weight).to_bits();
                    let place = &distances[other as usize];
                    // A plain look first: most distances are no shorter, and an exchange takes the line from others.
                    if through < place.load(Ordering::Relaxed) && through < place.fetch_min(through, Ordering::Relaxed)
                    {
                        reached.push((other, f64::from_bits(through)));
                    }
                }
            }
            reached
        })?;
        for (vertex, through) in reached.into_iter().flatten() {
            // Only the least distance of a vertex is passed on.
            if distance(vertex) < through {
                continue;
            }
            put(&mut buckets, first, vertex, through);
        }
    }
    Ok(distances.into_iter().map(|bits| f64::from_bits(bits.into_inner())).collect())
}

/// The average weight; 1 if all are 0. Fails if one is negative or no number.
fn checked_average(projection: &Projection) -> Result<f64> {
    let weights = projection.weights();
    if let Some(weight) = weights.unfit {
        return Err(Error::invalid(format!(
            "an edge has the weight {weight}; shortest paths need finite weights of at least 0"
        )));
    }
    let average = weights.sum / projection.cell_count().max(1) as f64;
    Ok(if average > 0.0 { average } else { 1.0 })
}
