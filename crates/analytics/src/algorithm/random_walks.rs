//! Random walks, which stay near their beginning or move away from it as two numbers say: the sentences that node2vec learns from.
//!
//! node2vec (Grover and Leskovec, *node2vec: Scalable Feature Learning for Networks*, 2016). A walk that came from `t` to `v` goes to a
//! neighbor `x` of `v` with a probability in proportion to
//!
//! | 1 / p | 1 | 1 / q |
//! |---|---|---|
//! | `x` is `t` | an edge leads from `t` to `x` | else |
//!
//! The first step is uniform, and every step with p = q = 1. Parallel edges count each. A walk ends early at a vertex without
//! outgoing edges.
//!
//! Steps are drawn by *rejection* (KnightKing: Yang and others, *KnightKing: A Fast Distributed Graph Random Walk Engine*, 2019): a uniform neighbor is kept with
//! its proportion divided by the greatest. Another vertex than `t` is kept without a look at the edges of `t` if the draw is below both
//! proportions that it may have. After some rejections the step is drawn from the sums of all proportions instead. Both ways have the same probabilities.
//!
//! Each random number is a function of the seed, the vertex where the walk begins, the walk, the step and the draw. So a walk does not
//! depend on threads, nor on which other walks there are. It does depend on the order of rows, and so on the projection.
//!
//! Work O(1) a draw and O(log d) for the look; memory 4 bytes a step, and sorted rows (8 bytes a position, 4 a cell) if p or q is not 1.

use mangrove_graph::{Error, Result};

use crate::projection::Projection;
use crate::random::Random;
use crate::simple::SimpleRows;
use crate::team::Team;

/// Steps of a part: about 0.1 ms of work.
const PART_STEPS: usize = 4_096;
/// Draws of a step before it looks at all neighbors.
const DRAWS: u64 = 16;

/// The options.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct WalkOptions {
    /// The walks from each source.
    pub walks: usize,
    /// The most steps of a walk.
    pub steps: usize,
    /// The inverse weight of going back: above 0.
    pub p: f64,
    /// The inverse weight of going away: above 0.
    pub q: f64,
    /// What chooses the walks.
    pub seed: u64,
    /// The most vertices that all walks may have together.
    pub limit: u64,
}

impl Default for WalkOptions {
    fn default() -> Self {
        WalkOptions { walks: 10, steps: 80, p: 1.0, q: 1.0, seed: 0, limit: 100_000_000 }
    }
}

/// Walks, one after the other.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Walks {
    /// Where each walk ends in `positions`.
    pub ends: Vec<usize>,
    /// The positions of all walks; each begins with its source.
    pub positions: Vec<u32>,
}

/// The walks from all sources: those of the first one, then those of the next.
///
/// # Errors
///
/// If p or q is no number above 0, if the walks may have more vertices than the limit, or if the query of the team has ended.
pub fn run(projection: &Projection, sources: &[u32], options: &WalkOptions, team: &Team) -> Result<Walks> {
    for (name, number) in [("p", options.p), ("q", options.q)] {
        if !(number.is_finite() && number > 0.0) {
            return Err(Error::invalid(format!("{name} is {number}; it is a number above 0")));
        }
    }
    let most = (sources.len() as u128 * options.walks as u128).saturating_mul(options.steps as u128 + 1);
    if most > u128::from(options.limit) {
        return Err(Error::invalid(format!(
            "all walks may have {most} vertices, and {} are allowed: take fewer sources, walks or steps, or raise 'limit'",
            options.limit
        )));
    }
    let is_uniform = options.p == 1.0 && options.q == 1.0;
    let edges = if is_uniform { None } else { Some(SimpleRows::of(projection, false, team)?) };
    let (back, away) = (1.0 / options.p, 1.0 / options.q);
    let walker = Walker { projection, edges, back, away, most: back.max(away).max(1.0), least: away.min(1.0) };
    let count = sources.len() * options.walks;
    let of_part = (PART_STEPS / options.steps.max(1)).max(1);
    let parts = team.map_parts(count.div_ceil(of_part), |part| {
        let mut walks = Walks::default();
        for number in part * of_part..count.min((part + 1) * of_part) {
            let source = sources[number / options.walks];
            let vertex = projection.numbering().vertex(source);
            let random = Random::new(options.seed).of(vertex.to_bits()).of((number % options.walks) as u64);
            walker.walk(source, options.steps, random, &mut walks.positions);
            walks.ends.push(walks.positions.len());
        }
        walks
    })?;
    let mut walks = Walks::default();
    for part in parts {
        team.check()?;
        let before = walks.positions.len();
        walks.positions.extend_from_slice(&part.positions);
        walks.ends.extend(part.ends.iter().map(|end| before + end));
    }
    Ok(walks)
}

struct Walker<'p> {
    projection: &'p Projection,
    /// Sorted rows of outgoing edges; `None` if all neighbors are equally likely.
    edges: Option<SimpleRows>,
    /// The proportion of the vertex that the walk came from.
    back: f64,
    /// The proportion of vertices that no edge leads to from there.
    away: f64,
    /// The greatest proportion.
    most: f64,
    /// The least proportion of a vertex that the walk did not come from.
    least: f64,
}

impl Walker<'_> {
    fn walk(&self, source: u32, steps: usize, random: Random, positions: &mut Vec<u32>) {
        positions.push(source);
        let (mut before, mut at) = (None, source);
        for step in 0..steps {
            let row = self.projection.outgoing(at);
            if row.is_empty() {
                return;
            }
            let random = random.of(step as u64);
            let next = match (&self.edges, before) {
                (Some(edges), Some(before)) => self.step(row, before, edges.row(before), random),
                _ => row[random.below(row.len() as u64) as usize],
            };
            positions.push(next);
            (before, at) = (Some(at), next);
        }
    }

    /// The proportion of a neighbor, for a walk that came from `before`, whose outgoing edges are given.
    fn proportion(&self, next: u32, before: u32, edges: &[u32]) -> f64 {
        if next == before {
            self.back
        } else if edges.binary_search(&next).is_ok() {
            1.0
        } else {
            self.away
        }
    }

    fn step(&self, row: &[u32], before: u32, edges: &[u32], random: Random) -> u32 {
        for draw in 0..DRAWS {
            let random = random.of(draw);
            let next = row[random.of(0).below(row.len() as u64) as usize];
            let height = random.of(1).unit() * self.most;
            let is_kept = (next != before && height < self.least) || height < self.proportion(next, before, edges);
            if is_kept {
                return next;
            }
        }
        let all: f64 = row.iter().map(|next| self.proportion(*next, before, edges)).sum();
        let mut rest = random.of(DRAWS).unit() * all;
        for &next in row {
            rest -= self.proportion(next, before, edges);
            if rest < 0.0 {
                return next;
            }
        }
        // The sum was rounded.
        row[row.len() - 1]
    }
}
