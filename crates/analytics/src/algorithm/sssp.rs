//! Shortest paths from a source along weighted edges.
//!
//! Delta-stepping (Meyer and Sanders, *Δ-stepping: a parallelizable shortest path algorithm*, 2003). Vertices wait in buckets by their
//! distances, each as wide as `delta`. The vertices of the first bucket pass their distances on side by side; if one of them gets a
//! smaller distance meanwhile, it is in the bucket again. With a small delta few distances are passed on in vain, with a
//! large one many vertices work at a time.
//!
//! Each thread has buckets of its own, into which it puts what it reaches. What it puts into the first bucket it works on at once, again and again until
//! that is empty (*bucket fusion*: Zhang and others, *Optimizing Ordered Graph Algorithms with GraphIt*, 2020). So most buckets are one phase.
//!
//! Distances are compared and replaced as the bits of a double: for numbers that are not negative, bits are in the order of the
//! numbers. Each distance is the least of sums along paths, in any order of the phases. Memory 16 bytes a position.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::{Error, Result};
use parking_lot::Mutex;

use crate::arrays;
use crate::projection::Projection;
use crate::team::Team;
use crate::worklist::chunk;

/// Vertices of a bucket that make a part of a phase.
const BUCKET_PART: usize = 64;
/// Buckets beyond the first one that are kept apart. Farther vertices wait together.
const BUCKETS: usize = 1 << 16;
/// If a part has put more vertices into the first bucket, they are shared by all threads.
const SHARED: usize = 1_024;
/// After so many vertices a part leaves what waits in the first bucket to the next phase: parts must not be long.
const LIMIT: usize = 4_096;

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
    let mut found = arrays::filled(team, projection.positions(), f64::INFINITY.to_bits())?;
    found[source as usize] = 0;
    // A product in place of a quotient: any function will do that is larger for larger distances.
    let mut search = Search { projection, distances: arrays::shared(&mut found), by_width: 1.0 / delta, first: 0 };
    let mut threads: Vec<Mutex<Buckets>> = (0..team.threads()).map(|_| Mutex::default()).collect();
    let mut bucket = vec![source];
    while !bucket.is_empty() {
        if bucket.len() <= BUCKET_PART || !team.has_helpers() {
            search.alone(&mut bucket, threads[0].get_mut(), team)?;
        } else {
            team.for_parts_by(bucket.len().div_ceil(BUCKET_PART), |part, thread| {
                search.side_by_side(chunk(&bucket, part, BUCKET_PART), &mut threads[thread].lock());
            })?;
        }
        bucket.clear();
        let Some(next) = threads.iter_mut().filter_map(|own| own.get_mut().first()).min() else { break };
        search.first += next;
        for own in &mut threads {
            let Buckets(buckets) = own.get_mut();
            buckets.drain(..next.min(buckets.len()));
            if let Some(first) = buckets.first_mut() {
                bucket.append(first);
            }
        }
    }
    arrays::of_places(team, found.len(), |at| f64::from_bits(found[at]))
}

/// Vertices that wait, by the number of their bucket, counted from the first one of the search.
#[derive(Default)]
struct Buckets(Vec<Vec<u32>>);

impl Buckets {
    /// The first bucket that has vertices.
    fn first(&self) -> Option<usize> {
        self.0.iter().position(|bucket| !bucket.is_empty())
    }

    #[inline]
    fn put(&mut self, bucket: usize, vertex: u32) {
        if self.0.len() <= bucket {
            self.0.resize_with(bucket + 1, Vec::new);
        }
        self.0[bucket].push(vertex);
    }
}

/// What all threads share.
struct Search<'a> {
    projection: &'a Projection,
    /// By position, the bits of the distance.
    distances: &'a [AtomicU64],
    /// 1 / delta.
    by_width: f64,
    /// The number of the first bucket that may have vertices.
    first: usize,
}

impl Search<'_> {
    #[inline]
    fn bucket_of(&self, distance: f64) -> usize {
        (distance * self.by_width) as usize
    }

    /// Works on a bucket until it is empty, or large enough for several threads, while no other thread works.
    fn alone(&self, bucket: &mut Vec<u32>, own: &mut Buckets, team: &Team) -> Result<()> {
        while !bucket.is_empty() {
            for part in bucket.chunks(SHARED) {
                team.check()?;
                self.pass_on(part, own, |place, through| {
                    // This thread is the only one: no exchange.
                    let is_less = through < place.load(Ordering::Relaxed);
                    if is_less {
                        place.store(through, Ordering::Relaxed);
                    }
                    is_less
                });
            }
            bucket.clear();
            match own.0.first_mut() {
                Some(first) if first.len() <= BUCKET_PART || !team.has_helpers() => std::mem::swap(first, bucket),
                _ => {}
            }
        }
        Ok(())
    }

    /// Works on a part of a bucket, and on what it brings into the bucket, while other threads work on other parts.
    fn side_by_side(&self, part: &[u32], own: &mut Buckets) {
        let lower = |place: &AtomicU64, through| {
            // A plain look first: most distances are no shorter, and an exchange takes the line from others.
            through < place.load(Ordering::Relaxed) && through < place.fetch_min(through, Ordering::Relaxed)
        };
        self.pass_on(part, own, lower);
        let (mut again, mut done) = (Vec::new(), 0);
        while done < LIMIT
            && let Some(first) = own.0.first_mut().filter(|first| (1..=SHARED).contains(&first.len()))
        {
            again.clear();
            std::mem::swap(first, &mut again);
            self.pass_on(&again, own, lower);
            done += again.len();
        }
    }

    /// Passes the distances of vertices on to their neighbors. `lower` replaces a distance with a smaller one, and returns false if it is
    /// not smaller. What gets a smaller distance is put into a bucket.
    #[inline]
    fn pass_on(&self, vertices: &[u32], own: &mut Buckets, lower: impl Fn(&AtomicU64, u64) -> bool) {
        let begin = self.first as f64;
        for &at in vertices {
            let from = f64::from_bits(self.distances[at as usize].load(Ordering::Relaxed));
            // One that has moved to an earlier bucket since was worked on there.
            if from * self.by_width < begin {
                continue;
            }
            let (row, weights) = self.projection.outgoing_weighted(at);
            for (&other, weight) in row.iter().zip(weights) {
                let through = from + weight;
                if lower(&self.distances[other as usize], through.to_bits()) {
                    own.put((self.bucket_of(through).max(self.first) - self.first).min(BUCKETS), other);
                }
            }
        }
    }
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
