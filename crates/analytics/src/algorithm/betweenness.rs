//! Betweenness: on which part of the shortest paths between others a vertex is.
//!
//! `Σ σ(s, t | v) / σ(s, t)` over the pairs of other vertices, where σ counts shortest paths. Brandes' algorithm (*A Faster Algorithm for
//! Betweenness Centrality*, 2001): for each source a breadth-first search counts the shortest paths to each vertex, and a walk back
//! over its levels adds up what depends on each vertex. Parallel edges are different paths.
//!
//! Both ways each vertex pulls: its paths from the level before it, and its dependency from the level after it, in the order of its row. And sources are
//! added up in a fixed order. So the bits are the same for any number of threads.
//!
//! Which neighbors are in that level, the sign of their numbers says: numbers of even levels are positive, and those of odd ones negative. When a vertex
//! pulls its paths, its incoming edges come from the level before it, from its own, and from later ones, which have no numbers yet. When it
//! pulls its dependency, its outgoing edges lead to the level after it, to its own, and to earlier ones, which have no numbers yet. So a
//! look at a neighbor is one look into one array, and a sum has no branches.
//!
//! A level in which most of the graph is found is made *bottom up*, as in
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
//! Work O(s · (n + m)); memory 29 bytes a position for each search of a round, and 8 more with exponents.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

use mangrove_graph::Result;

use super::bfs::UNREACHED;
use crate::arrays;
use crate::projection::Projection;
use crate::random::sample;
use crate::team::Team;
use crate::worklist::chunk;

/// Searches of a round in a small graph.
const ROUND: usize = 16;
/// Positions and cells of a graph whose searches are parts of a phase: less than a millisecond each.
const SMALL: u64 = 1 << 17;
/// Vertices of a level that make a part of a phase.
const LEVEL_PART: usize = 128;
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
    let mut searches = (0..round).map(|_| Search::new(projection, team)).collect::<Result<Vec<Search>>>()?;
    team.count_in("sources", sources.len() as u64);
    for (number, sources) in sources.chunks(round.max(1)).enumerate() {
        if number > 0 {
            searches[..sources.len()].iter_mut().for_each(Search::forget);
        }
        if is_small {
            let each: Vec<_> = (0..sources.len()).map(|search| search..search + 1).collect();
            let done = team.map_slices(&each, &mut *searches, |part, search| {
                search[0].run(projection, sources[part], &Team::alone())
            })?;
            done.into_iter().collect::<Result<()>>()?;
        } else {
            searches[0].run(projection, sources[0], team)?;
        }
        team.advance(sources.len() as u64);
    }
    if !projection.is_directed() {
        scale /= 2.0;
    }
    let sum = |at: usize| searches.iter().map(|search| f64::from_bits(search.dependencies[at])).sum::<f64>() * scale;
    arrays::of_places(team, projection.positions(), sum)
}

/// The search from a source. Numbers are kept as bits: several threads write to them, each to its own positions.
struct Search {
    /// 1 for what was found.
    is_found: Vec<u8>,
    /// The number of shortest paths from the source; from the level `scaled_from` on, the mantissa of that number, from 1 to 2. With the sign of the level; 0
    /// for what was not found.
    paths: Vec<u64>,
    /// What that mantissa must be multiplied with, as an exponent of two: 0 before the level `scaled_from`. Empty until a search needs it.
    exponents: Vec<u64>,
    /// The first level whose counts have exponents.
    scaled_from: u32,
    /// What of all shortest paths from the source depends on each position, added up over the sources.
    dependencies: Vec<u64>,
    /// For each position, (1 + dependency) / paths: what each of its paths carries to the level before it, scaled as `paths` are. With the sign of the
    /// level; 0 before it is known.
    shares: Vec<u64>,
    /// What was found.
    order: Vec<u32>,
}

/// The arrays of a search, while several threads write to them.
struct Shared<'a> {
    is_found: &'a [AtomicU8],
    paths: &'a [AtomicU64],
    exponents: &'a [AtomicU64],
    scaled_from: u32,
    dependencies: &'a [AtomicU64],
    shares: &'a [AtomicU64],
}

/// The sign of the numbers of a level.
fn sign(depth: u32) -> f64 {
    if depth.is_multiple_of(2) { 1.0 } else { -1.0 }
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
    fn new(projection: &Projection, team: &Team) -> Result<Self> {
        let positions = projection.positions();
        Ok(Search {
            is_found: arrays::filled(team, positions, 0)?,
            paths: arrays::filled(team, positions, 0)?,
            exponents: Vec::new(),
            scaled_from: UNREACHED,
            dependencies: arrays::filled(team, positions, 0)?,
            shares: arrays::filled(team, positions, 0)?,
            order: Vec::new(),
        })
    }

    /// The arrays, for several threads.
    fn shared(&mut self) -> Shared<'_> {
        Shared {
            is_found: arrays::shared(&mut self.is_found),
            paths: arrays::shared(&mut self.paths),
            exponents: arrays::shared(&mut self.exponents),
            scaled_from: self.scaled_from,
            dependencies: arrays::shared(&mut self.dependencies),
            shares: arrays::shared(&mut self.shares),
        }
    }

    fn run(&mut self, projection: &Projection, source: u32, team: &Team) -> Result<()> {
        self.is_found[source as usize] = 1;
        self.paths[source as usize] = sign(0).to_bits();
        // What was found, level by level; where levels begin in it, and the end of the last one.
        let (mut order, mut levels) = (vec![source], vec![0]);
        let mut left = projection.cell_count();
        let (mut level, mut cells) = (0..1, u64::from(projection.out_degree(source)));
        while !level.is_empty() {
            levels.push(level.end);
            let depth = levels.len() as u32 - 1;
            let bottom_up = cells > (left + projection.positions() as u64) / BOTTOM_UP;
            left = left.saturating_sub(cells);
            let next = match bottom_up {
                true => self.shared().bottom_up(projection, depth, team)?,
                false => self.shared().top_down(projection, &order[level.clone()], depth, team)?,
            };
            if next.paths >= LARGE {
                self.scaled_from = depth + 1;
                self.exponents.resize(self.paths.len(), 0);
            }
            level = level.end..level.end + next.found.len();
            cells = next.cells;
            order.extend_from_slice(&next.found);
        }
        self.shared().walk_back(projection, &order, &levels, team)?;
        self.order = order;
        Ok(())
    }

    /// Makes ready for the next source.
    fn forget(&mut self) {
        for at in self.order.drain(..) {
            self.is_found[at as usize] = 0;
            (self.paths[at as usize], self.shares[at as usize]) = (0, 0);
            if self.scaled_from != UNREACHED {
                self.exponents[at as usize] = 0;
            }
        }
        self.scaled_from = UNREACHED;
    }
}

impl Shared<'_> {
    /// Counts the paths to a position at a depth. Returns the count as it is kept, without its sign; if it is 0, it is not kept.
    #[inline]
    fn count_paths(&self, projection: &Projection, at: u32, depth: u32) -> f64 {
        let (row, of_last_level) = (projection.incoming(at), sign(depth - 1));
        if depth < self.scaled_from {
            let paths = sum_of_level(row, self.paths, of_last_level);
            if paths > 0.0 {
                set(self.paths, at, paths * sign(depth));
            }
            return paths;
        }
        let last = row.iter().filter(|other| get(self.paths, **other) * of_last_level > 0.0);
        let Some(largest) = last.clone().map(|other| self.exponent(*other)).max() else { return 0.0 };
        let scaled = |other: &u32| get(self.paths, *other).abs() * power(largest - self.exponent(*other));
        let (mantissa, exponent) = split(last.map(scaled).sum());
        set(self.paths, at, mantissa * sign(depth));
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
        let found = team.map_parts(last.len().div_ceil(LEVEL_PART), |part| {
            let mut found = Vec::with_capacity(LEVEL_PART);
            for &at in chunk(last, part, LEVEL_PART) {
                for &other in projection.outgoing(at) {
                    let place = &self.is_found[other as usize];
                    // A plain look first: most neighbors were found, and an exchange takes the line from others.
                    if place.load(Ordering::Relaxed) == 0 && place.swap(1, Ordering::Relaxed) == 0 {
                        found.push(other);
                    }
                }
            }
            found
        })?;
        let found = found.concat();
        let parts = team.map_parts(found.len().div_ceil(LEVEL_PART), |part| {
            let mut level = Level::default();
            self.count_level(projection, chunk(&found, part, LEVEL_PART), depth, &mut level);
            level
        })?;
        Ok(Level { found, ..Level::put_together(parts) })
    }

    /// As [`Shared::top_down`], with this thread only: without atomic exchanges.
    fn top_down_alone(&self, projection: &Projection, last: &[u32], depth: u32, team: &Team) -> Result<Level> {
        let mut found = Vec::with_capacity(last.len() * 2);
        for part in last.chunks(LEVEL_PART) {
            team.check()?;
            for &at in part {
                for &other in projection.outgoing(at) {
                    let place = &self.is_found[other as usize];
                    if place.load(Ordering::Relaxed) == 0 {
                        place.store(1, Ordering::Relaxed);
                        found.push(other);
                    }
                }
            }
        }
        let mut level = Level::default();
        for part in found.chunks(LEVEL_PART) {
            team.check()?;
            self.count_level(projection, part, depth, &mut level);
        }
        Ok(Level { found, ..level })
    }

    /// Counts the paths to some positions of a level.
    fn count_level(&self, projection: &Projection, found: &[u32], depth: u32, level: &mut Level) {
        for &at in found {
            level.paths = level.paths.max(self.count_paths(projection, at, depth));
            level.cells += u64::from(projection.out_degree(at));
        }
    }

    /// As [`Shared::top_down`], from what is not found yet.
    fn bottom_up(&self, projection: &Projection, depth: u32, team: &Team) -> Result<Level> {
        let parts = projection.parts();
        let found = team.map_parts(parts.len(), |part| {
            let mut level = Level::default();
            for at in parts[part].clone() {
                if self.is_found[at].load(Ordering::Relaxed) != 0 {
                    continue;
                }
                let paths = self.count_paths(projection, at as u32, depth);
                if paths > 0.0 {
                    self.is_found[at].store(1, Ordering::Relaxed);
                    level.found.push(at as u32);
                    level.cells += u64::from(projection.out_degree(at as u32));
                    level.paths = level.paths.max(paths);
                }
            }
            level
        })?;
        Ok(Level::put_together(found))
    }

    /// Adds up what depends on each position, from the last level to the one after the source.
    fn walk_back(&self, projection: &Projection, order: &[u32], levels: &[usize], team: &Team) -> Result<()> {
        for depth in (1..levels.len() as u32 - 1).rev() {
            let level = &order[levels[depth as usize]..levels[depth as usize + 1]];
            let (of_next_level, is_next_scaled) = (sign(depth + 1), depth + 1 >= self.scaled_from);
            team.for_parts(level.len().div_ceil(LEVEL_PART), |part| {
                for &at in chunk(level, part, LEVEL_PART) {
                    let row = projection.outgoing(at);
                    let carried: f64 = match is_next_scaled {
                        false => sum_of_level(row, self.shares, of_next_level),
                        // No vertex has fewer paths than one before it.
                        true => {
                            let own = self.exponent(at);
                            let next = row.iter().filter(|other| get(self.shares, **other) * of_next_level > 0.0);
                            let scaled =
                                |other: &u32| get(self.shares, *other).abs() * power(self.exponent(*other) - own);
                            next.map(scaled).sum()
                        }
                    };
                    // With the sign of this level, as the share is kept.
                    let paths = get(self.paths, at);
                    let dependency = paths.abs() * carried;
                    set(self.dependencies, at, get(self.dependencies, at) + dependency);
                    set(self.shares, at, (1.0 + dependency) / paths);
                }
            })?;
        }
        Ok(())
    }
}

/// The sum of the numbers of those of a row whose sign is that of a level, in the order of the row.
#[inline]
fn sum_of_level(row: &[u32], numbers: &[AtomicU64], sign: f64) -> f64 {
    let mut sum = 0.0;
    for other in row {
        sum += (get(numbers, *other) * sign).max(0.0);
    }
    sum
}
