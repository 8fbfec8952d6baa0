//! Node similarity: which vertices lead to the same neighbors.
//!
//! With the sets `A` and `B` of the neighbors of two vertices, which are the ends of outgoing edges, each once and without the vertex itself:
//!
//! | measure | value | source |
//! |---|---|---|
//! | Jaccard | `|A ∩ B| / |A ∪ B|` | Jaccard 1901 |
//! | overlap | `|A ∩ B| / min(|A|, |B|)` | Simpson 1943 |
//! | cosine | `|A ∩ B| / √(|A| · |B|)` | Salton and McGill 1983 |
//!
//! For each vertex, a counter for every other one: the vertex goes from its neighbors back to the vertices that lead to them, and counts how often
//! it meets each. So only pairs with a common neighbor cost work. The most similar ones of each vertex are kept; of
//! equally similar ones those with the least positions.
//!
//! A vertex with `d` neighbors costs the sum of their indegrees. So a neighbor that many vertices lead to makes each of them
//! expensive. Bounds of the number of neighbors leave vertices out.
//!
//! Work O(Σ indegree²); memory 32 bytes a position, 8 a cell, 8 a position for each thread, and 24 a row.

use std::cmp::Ordering;
use std::ops::{Range, RangeInclusive};

use mangrove_graph::Result;
use parking_lot::Mutex;

use crate::projection::Projection;
use crate::simple::SimpleRows;
use crate::team::Team;

/// Steps to a neighbor and back that make a part: 0.1 ms of work.
const PART_WORK: u64 = 1 << 15;

/// What the similarity of two sets is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Measure {
    /// The common part of their union.
    #[default]
    Jaccard,
    /// The common part of the smaller one.
    Overlap,
    /// The cosine of the angle between them as vectors.
    Cosine,
}

impl Measure {
    fn of(self, common: u32, one: usize, other: usize) -> f64 {
        let (common, one, other) = (f64::from(common), one as f64, other as f64);
        match self {
            Measure::Jaccard => common / (one + other - common),
            Measure::Overlap => common / one.min(other),
            Measure::Cosine => common / (one * other).sqrt(),
        }
    }
}

/// The options.
#[derive(Clone, PartialEq, Debug)]
pub struct SimilarityOptions {
    /// What the similarity is.
    pub measure: Measure,
    /// The most rows of a vertex.
    pub top: usize,
    /// The least similarity of a row.
    pub least: f64,
    /// How many neighbors a vertex may have to be compared.
    pub degrees: RangeInclusive<usize>,
}

impl Default for SimilarityOptions {
    fn default() -> Self {
        SimilarityOptions { measure: Measure::Jaccard, top: 10, least: 0.0, degrees: 1..=usize::MAX }
    }
}

/// Two vertices and their similarity.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Similar {
    /// The vertex that the row belongs to.
    pub one: u32,
    /// One of those that are most similar to it.
    pub other: u32,
    /// Above 0, and at most 1.
    pub similarity: f64,
}

/// For each vertex those that are most similar to it, the most similar first: only those with a common neighbor.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, options: &SimilarityOptions, team: &Team) -> Result<Vec<Similar>> {
    let outgoing = SimpleRows::of(projection, false, team)?;
    let incoming = if projection.is_directed() { Some(SimpleRows::of_incoming(projection, team)?) } else { None };
    let rows = Rows { outgoing: &outgoing, incoming: incoming.as_ref().unwrap_or(&outgoing), options };
    let parts = rows.parts(projection, team)?;
    // As many as threads take part. The counters of all positions are 0 between two vertices.
    let counters: Mutex<Vec<Counters>> = Mutex::new(Vec::new());
    let found = team.map_parts(parts.len(), |part| {
        let taken = counters.lock().pop();
        let mut taken = taken.unwrap_or_else(|| Counters::new(projection.positions()));
        let mut found = Vec::new();
        parts[part].clone().for_each(|at| rows.similar_to(at as u32, &mut taken, &mut found));
        counters.lock().push(taken);
        found
    })?;
    let mut rows = Vec::with_capacity(found.iter().map(Vec::len).sum());
    for found in found {
        team.check()?;
        rows.extend(found);
    }
    Ok(rows)
}

/// How often a vertex has met each other one.
struct Counters {
    counts: Vec<u32>,
    /// Those that it has met.
    met: Vec<u32>,
    best: Vec<Similar>,
}

impl Counters {
    fn new(positions: usize) -> Self {
        Counters { counts: vec![0; positions], met: Vec::new(), best: Vec::new() }
    }
}

struct Rows<'r> {
    outgoing: &'r SimpleRows,
    incoming: &'r SimpleRows,
    options: &'r SimilarityOptions,
}

impl Rows<'_> {
    fn is_compared(&self, at: u32) -> bool {
        self.options.degrees.contains(&self.outgoing.row(at).len())
    }

    /// Positions in ranges of about equal work.
    fn parts(&self, projection: &Projection, team: &Team) -> Result<Vec<Range<usize>>> {
        let of_projection = projection.parts();
        let mut works = vec![1_u64; projection.positions()];
        team.map_slices(of_projection, &mut *works, |part, works| {
            for (at, work) in of_projection[part].clone().zip(works) {
                if self.is_compared(at as u32) {
                    let row = self.outgoing.row(at as u32);
                    *work += row.iter().map(|other| self.incoming.row(*other).len() as u64).sum::<u64>();
                }
            }
        })?;
        let (mut parts, mut start, mut sum) = (Vec::new(), 0, 0);
        for (at, work) in works.iter().enumerate() {
            sum += work;
            if sum >= PART_WORK || at + 1 == works.len() {
                parts.push(start..at + 1);
                (start, sum) = (at + 1, 0);
            }
        }
        Ok(parts)
    }

    fn similar_to(&self, at: u32, counters: &mut Counters, found: &mut Vec<Similar>) {
        if !self.is_compared(at) {
            return;
        }
        let Counters { counts, met, best } = counters;
        let row = self.outgoing.row(at);
        for &neighbor in row {
            for &other in self.incoming.row(neighbor) {
                let count = &mut counts[other as usize];
                if *count == 0 {
                    met.push(other);
                }
                *count += 1;
            }
        }
        for other in met.drain(..) {
            let common = std::mem::take(&mut counts[other as usize]);
            if other == at || !self.is_compared(other) {
                continue;
            }
            let similarity = self.options.measure.of(common, row.len(), self.outgoing.row(other).len());
            if similarity >= self.options.least {
                best.push(Similar { one: at, other, similarity });
            }
        }
        let by_similarity = |one: &Similar, other: &Similar| -> Ordering {
            other.similarity.total_cmp(&one.similarity).then(one.other.cmp(&other.other))
        };
        if best.len() > self.options.top {
            if self.options.top > 0 {
                best.select_nth_unstable_by(self.options.top - 1, by_similarity);
            }
            best.truncate(self.options.top);
        }
        best.sort_unstable_by(by_similarity);
        found.append(best);
    }
}
