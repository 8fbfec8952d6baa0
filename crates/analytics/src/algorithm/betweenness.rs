//! Betweenness: on which part of the shortest paths between others a vertex is.
//!
//! `Σ σ(s, t | v) / σ(s, t)` over the pairs of other vertices, where σ counts shortest paths. Brandes' algorithm (*A Faster Algorithm for
//! Betweenness Centrality*, 2001): for each source a breadth-first search counts the shortest paths to each vertex, and a walk back
//! over its levels adds up what depends on each vertex. Parallel edges are different paths.
//!
//! Both ways each vertex pulls: its paths from the level before it, and its dependency from the level after it, in the order of its row. And sources are
//! added up in a fixed order. So the bits are the same for any number of threads. A level in which most of the graph is found is made *bottom up*, as in
//! [`bfs`](super::bfs): the vertices that are not found yet look for the last level, and count their paths with the same
//! look.
//!
//! In a large graph the threads share each search, level by level. In a small one, whose levels are no work for several, each takes another
//! source of a round: the first search of each round adds to one array, the second one to another, and so on, and these are added up at the end.
//!
//! With a *sample* of `s` sources the sums are multiplied by `n / s` (Brandes and Pich, *Centrality Estimation in Large Networks*, 2007). Which
//! vertices it has depends on the seed and on the order of positions.
//!
//! In a grid the numbers of shortest paths grow with each level, and soon pass what a double holds. From the level on whose counts are [`LARGE`],
//! a count is a mantissa and an exponent of two of its own: in one level there are counts of all sizes. The levels before it, and
//! graphs without such a level, are counted in doubles.
//!
//! Work O(s · (n + m)); memory 40 bytes a position for each search of a round, and 8 more with exponents.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use mangrove_graph::Result;

use super::bfs::UNREACHED;
use crate::projection::Projection;
use crate::random::sample;
use crate::team::Team;

/// Searches of a round in a small graph.
const ROUND: usize = 16;
/// Positions and cells of a graph whose searches are parts of a phase: less than a millisecond each.
const SMALL: u64 = 1 << 17;
/// Vertices of a level that make a part of a phase.
const LEVEL_PART: usize = 256;
/// Bottom up is better from this part of what is left to look at on: it looks at all of it, and top down at the cells of two levels.
const BOTTOM_UP: u64 = 3;
/// 2⁹⁶⁰: with counts up to this, those of the next level are sums of fewer than 2⁶³ of them, and so below 2¹⁰²³.
const LARGE: f64 = f64::from_bits((EXPONENT_BIAS + 960) << MANTISSA_BITS);
/// A double's exponent is kept as a number that is larger by so much.
const EXPONENT_BIAS: u64 = 1023;
/// The bits of a double after its exponent.
const MANTISSA_BITS: u32 = 52;

/// The options.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct BetweennessOptions {
    /// The number of sources; `None`: all vertices.
    pub samples: Option<usize>,
    /// What chooses them.
    pub seed: u64,
    /// Whether values are divided by the number of pairs of other vertices: they are then from 0 to 1.
    pub normalized: bool,
}

/// The value of every position; 0 for holes. In an undirected projection a pair of vertices counts once.
///
/// # Errors
///
/// If the query of the team has ended.
pub fn run(projection: &Projection, options: &BetweennessOptions, team: &Team) -> Result<Vec<f64>> {
    let numbering = projection.numbering();
    let vertices: Vec<u32> = numbering.present(0..numbering.positions()).collect();
    let count = vertices.len() as f64;
    let sources = sample(vertices, options.samples.unwrap_or(usize::MAX), options.seed);
    let mut scale = count / sources.len() as f64;
    if options.normalized && count > 2.0 {
        let pairs = (count - 1.0) * (count - 2.0);
        scale /= if projection.is_directed() { pairs } else { pairs / 2.0 };
    }
    scaled(projection, &sources, scale, team)
}

/// As [`run`], where only shortest paths from the sources count. They are all different, and nothing is scaled up. In an undirected projection a
/// pair of vertices counts half for each of them that is a source.
///
/// # Errors
///
/// As those of [`run`].
pub fn of_sources(projection: &Projection, sources: &[u32], team: &Team) -> Result<Vec<f64>> {
    scaled(projection, sources, 1.0, team)
}

fn scaled(projection: &Projection, sources: &[u32], mut scale: f64, team: &Team) -> Result<Vec<f64>> {
    let is_small = projection.positions() as u64 + projection.cell_count() <= SMALL;
    let round = if is_small { ROUND.min(sources.len()) } else { 1 };
    let mut searches: Vec<Search> = (0..round).map(|_| Search::new(projection.positions())).collect();
    team.count_in("sources", sources.len() as u64);
    for sources in sources.chunks(round.max(1)) {
        if is_small {
            let each: Vec<_> = (0..sources.len()).map(|search| search..search + 1).collect();
            let done = team.map_slices(&each, &mut *searches, |part, search| {
                search[0].run(projection, sources[part], &Team::alone())
            })?;
            done.into_iter().collect::<Result<()>>()?;
        } else {
            searches[0].run(projection, sources[0], team)?;
        }
        searches[..sources.len()].iter_mut().for_each(Search::forget);
        team.advance(sources.len() as u64);
    }
    if !projection.is_directed() {
        scale /= 2.0;
    }
    let sum = |at: u32| searches.iter().map(|search| get(&search.dependencies, at)).sum::<f64>() * scale;
    Ok((0..projection.positions() as u32).map(sum).collect())
}

/// The search from a source. Numbers are kept as bits: several threads write to them, each to its own positions.
struct Search {
    depths: Vec<AtomicU32>,
    /// The number of shortest paths from the source; from the level `scaled_from` on, the mantissa of that number, from 1 to 2.
    paths: Vec<AtomicU64>,
    /// What that mantissa must be multiplied with, as an exponent of two: 0 before the level `scaled_from`. Empty until a search needs it.
    exponents: Vec<AtomicU64>,
    /// The first level whose counts have exponents.
    scaled_from: u32,
    /// What of all shortest paths from the source depends on each position, added up over the sources.
    dependencies: Vec<AtomicU64>,
    /// For each position, (1 + dependency) / `paths`: what each of its paths carries to the level before it, scaled as `paths` are.
    shares: Vec<AtomicU64>,
    /// What was found, level by level.
    order: Vec<u32>,
    /// Where levels begin in `order`, and the end of the last one.
    levels: Vec<usize>,
}

fn get(numbers: &[AtomicU64], at: u32) -> f64 {
    f64::from_bits(numbers[at as usize].load(Ordering::Relaxed))
}

fn set(numbers: &[AtomicU64], at: u32, number: f64) {
    numbers[at as usize].store(number.to_bits(), Ordering::Relaxed);
}

/// A positive number as a mantissa from 1 to 2 and an exponent of two.
fn split(number: f64) -> (f64, u64) {
    let (bits, fraction) = (number.to_bits(), (1 << MANTISSA_BITS) - 1);
    (f64::from_bits(bits & fraction | EXPONENT_BIAS << MANTISSA_BITS), (bits >> MANTISSA_BITS) - EXPONENT_BIAS)
}

/// 2 to the power of `-halvings`; 0 where that has no normal double.
fn power(halvings: u64) -> f64 {
    f64::from_bits(EXPONENT_BIAS.saturating_sub(halvings) << MANTISSA_BITS)
}

/// A level of a search.
#[derive(Default)]
struct Level {
    found: Vec<u32>,
    /// The outgoing edges of what was found.
    cells: u64,
    /// The largest count of paths, as it is kept.
    paths: f64,
}

impl Level {
    fn put_together(parts: Vec<Level>) -> Level {
        let mut level = Level::default();
        for part in parts {
            level.found.extend(part.found);
            level.cells += part.cells;
            level.paths = level.paths.max(part.paths);
        }
        level
    }
}

impl Search {
    fn new(positions: usize) -> Self {
        let zeros = || (0..positions).map(|_| AtomicU64::new(0)).collect();
        Search {
            depths: (0..positions).map(|_| AtomicU32::new(UNREACHED)).collect(),
            paths: zeros(),
            exponents: Vec::new(),
            scaled_from: UNREACHED,
            dependencies: zeros(),
            shares: zeros(),
            order: Vec::new(),
            levels: Vec::new(),
        }
    }

    fn depth(&self, at: u32) -> u32 {
        self.depths[at as usize].load(Ordering::Relaxed)
    }

    fn run(&mut self, projection: &Projection, source: u32, team: &Team) -> Result<()> {
        self.depths[source as usize].store(0, Ordering::Relaxed);
        set(&self.paths, source, 1.0);
        (self.order, self.levels) = (vec![source], vec![0]);
        let mut left = projection.cell_count();
        let (mut level, mut cells) = (0..1, u64::from(projection.out_degree(source)));
        while !level.is_empty() {
            self.levels.push(level.end);
            let depth = self.levels.len() as u32 - 1;
            let bottom_up = cells > (left + projection.positions() as u64) / BOTTOM_UP;
            left = left.saturating_sub(cells);
            let next = match bottom_up {
                true => self.bottom_up(projection, depth, team)?,
                false => self.top_down(projection, &self.order[level.clone()], depth, team)?,
            };
            if next.paths >= LARGE {
                self.scaled_from = depth + 1;
                self.exponents.resize_with(self.paths.len(), AtomicU64::default);
            }
            level = level.end..level.end + next.found.len();
            cells = next.cells;
            self.order.extend(next.found);
        }
        self.walk_back(projection, team)
    }

    /// Counts the paths to a position at a depth. Returns the count as it is kept; if it is 0, it is not kept.
    fn count_paths(&self, projection: &Projection, at: u32, depth: u32) -> f64 {
        let of_last_level = projection.incoming(at).iter().filter(|other| self.depth(**other) == depth - 1);
        if depth < self.scaled_from {
            let paths = of_last_level.map(|other| get(&self.paths, *other)).sum();
            if paths > 0.0 {
                set(&self.paths, at, paths);
            }
            return paths;
        }
        let Some(largest) = of_last_level.clone().map(|other| self.exponent(*other)).max() else { return 0.0 };
        let scaled = |other: &u32| get(&self.paths, *other) * power(largest - self.exponent(*other));
        let (mantissa, exponent) = split(of_last_level.map(scaled).sum());
        set(&self.paths, at, mantissa);
        self.exponents[at as usize].store(largest + exponent, Ordering::Relaxed);
        mantissa
    }

    fn exponent(&self, at: u32) -> u64 {
        self.exponents[at as usize].load(Ordering::Relaxed)
    }

    /// Finds a level from the last one.
    fn top_down(&self, projection: &Projection, last: &[u32], depth: u32, team: &Team) -> Result<Level> {
        if last.len() <= LEVEL_PART || !team.has_helpers() {
            return self.top_down_alone(projection, last, depth, team);
        }
        let part_of = |part: usize, all: usize| part * LEVEL_PART..all.min((part + 1) * LEVEL_PART);
        let found = team.map_parts(last.len().div_ceil(LEVEL_PART), |part| {
            let mut found = Vec::new();
            for &at in &last[part_of(part, last.len())] {
                for &other in projection.outgoing(at) {
                    let place = &self.depths[other as usize];
                    if place.load(Ordering::Relaxed) == UNREACHED
                        && place.compare_exchange(UNREACHED, depth, Ordering::Relaxed, Ordering::Relaxed).is_ok()
                    {
                        found.push(other);
                    }
                }
            }
            found
        })?;
        let found = found.concat();
        let parts = team.map_parts(found.len().div_ceil(LEVEL_PART), |part| {
            let mut level = Level::default();
            for &at in &found[part_of(part, found.len())] {
                level.paths = level.paths.max(self.count_paths(projection, at, depth));
                level.cells += u64::from(projection.out_degree(at));
            }
            level
        })?;
        Ok(Level { found, ..Level::put_together(parts) })
    }

    /// As [`Search::top_down`], with this thread only: without atomic exchanges.
    fn top_down_alone(&self, projection: &Projection, last: &[u32], depth: u32, team: &Team) -> Result<Level> {
        let mut level = Level::default();
        for part in last.chunks(LEVEL_PART) {
            team.check()?;
            for &at in part {
                for &other in projection.outgoing(at) {
                    let place = &self.depths[other as usize];
                    if place.load(Ordering::Relaxed) == UNREACHED {
                        place.store(depth, Ordering::Relaxed);
                        level.found.push(other);
                    }
                }
            }
        }
        for part in level.found.chunks(LEVEL_PART) {
            team.check()?;
            for &at in part {
                level.paths = level.paths.max(self.count_paths(projection, at, depth));
                level.cells += u64::from(projection.out_degree(at));
            }
        }
        Ok(level)
    }

    /// As [`Search::top_down`], from what is not found yet.
    fn bottom_up(&self, projection: &Projection, depth: u32, team: &Team) -> Result<Level> {
        let parts = projection.parts();
        let found = team.map_parts(parts.len(), |part| {
            let mut level = Level::default();
            for at in parts[part].clone() {
                let at = at as u32;
                if self.depth(at) == UNREACHED {
                    let paths = self.count_paths(projection, at, depth);
                    if paths > 0.0 {
                        self.depths[at as usize].store(depth, Ordering::Relaxed);
                        level.found.push(at);
                        level.cells += u64::from(projection.out_degree(at));
                        level.paths = level.paths.max(paths);
                    }
                }
            }
            level
        })?;
        Ok(Level::put_together(found))
    }

    /// Adds up what depends on each position, from the last level to the one after the source.
    fn walk_back(&mut self, projection: &Projection, team: &Team) -> Result<()> {
        let this = &*self;
        for depth in (1..this.levels.len() - 1).rev() {
            let level = &this.order[this.levels[depth]..this.levels[depth + 1]];
            let is_next_scaled = depth as u32 + 1 >= this.scaled_from;
            team.for_parts(level.len().div_ceil(LEVEL_PART), |part| {
                let begin = part * LEVEL_PART;
                for &at in &level[begin..level.len().min(begin + LEVEL_PART)] {
                    let next = projection.outgoing(at).iter().filter(|other| this.depth(**other) == depth as u32 + 1);
                    let carried: f64 = match is_next_scaled {
                        false => next.map(|other| get(&this.shares, *other)).sum(),
                        // No vertex has fewer paths than one before it.
                        true => {
                            let own = this.exponent(at);
                            next.map(|other| get(&this.shares, *other) * power(this.exponent(*other) - own)).sum()
                        }
                    };
                    let paths = get(&this.paths, at);
                    let dependency = paths * carried;
                    set(&this.dependencies, at, get(&this.dependencies, at) + dependency);
                    set(&this.shares, at, (1.0 + dependency) / paths);
                }
            })?;
        }
        Ok(())
    }

    /// Makes ready for the next source.
    fn forget(&mut self) {
        for at in self.order.drain(..) {
            *self.depths[at as usize].get_mut() = UNREACHED;
            if self.scaled_from != UNREACHED {
                *self.exponents[at as usize].get_mut() = 0;
            }
        }
        self.scaled_from = UNREACHED;
    }
}
