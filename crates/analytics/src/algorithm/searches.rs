//! Breadth-first searches from up to 64 sources at once.
//!
//! MS-BFS (Then and others, *The More the Merrier: Efficient Multi-Source Graph Traversal*, 2014). Each position has a word with a bit for
//! each source: one look at a row serves all searches that have the position in their frontier. Searches of the same
//! graph meet soon, so 64 of them cost a few times as much as one.
//!
//! Levels go in the better of two directions, as in [`bfs`](super::bfs). *Top down*, a position of the frontier adds its bits to
//! its neighbors. *Bottom up*, each position that some search has not found collects the bits of its neighbors.
//!
//! Work O(64 (n + m)) at worst, O(depth · m) bottom up; memory 24 bytes a position.

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::Result;

use super::bfs::Follow;
use crate::projection::Projection;
use crate::team::Team;

/// The most sources of a search.
pub(crate) const SOURCES: usize = 64;
/// Bottom up is better if the frontier has more than this part of the cells.
const BOTTOM_UP: u64 = 8;
/// Vertices of a frontier that make a part of a phase.
const FRONTIER_PART: usize = 256;

/// What searches need, for one search after another.
pub(crate) struct Searches<'p> {
    projection: &'p Projection,
    follow: Follow,
    /// The sources that have found each position.
    seen: Vec<AtomicU64>,
    /// Those that found it in the last level.
    last: Vec<AtomicU64>,
    /// Those that find it in the level that is being made; all 0 between levels.
    next: Vec<AtomicU64>,
}

impl<'p> Searches<'p> {
    pub(crate) fn new(projection: &'p Projection, follow: Follow) -> Self {
        let words = || (0..projection.positions()).map(|_| AtomicU64::new(0)).collect();
        Searches { projection, follow, seen: words(), last: words(), next: words() }
    }

    /// Searches from at most 64 sources, which are all different, up to a depth.
    ///
    /// Calls `found` with the depth, a position, and the bits of the sources that find it there: once for a position and depth, from any thread.
    /// Depths begin with 0, at the sources. What `found` gathers in its first argument comes to `level`, a piece for each
    /// part of the level. How positions are divided into parts depends on threads.
    pub(crate) fn run<R: Default + Send>(
        &mut self,
        sources: &[u32],
        depth_max: u32,
        team: &Team,
        found: impl Fn(&mut R, u32, u32, u64) + Sync,
        mut level: impl FnMut(u32, Vec<R>) -> Result<()>,
    ) -> Result<()> {
        assert!(sources.len() <= SOURCES, "a word has 64 bits");
        for words in [&mut self.seen, &mut self.last] {
            words.iter_mut().for_each(|word| *word.get_mut() = 0);
        }
        let mut gathered = R::default();
        for (number, &source) in sources.iter().enumerate() {
            *self.seen[source as usize].get_mut() |= 1 << number;
            *self.last[source as usize].get_mut() |= 1 << number;
            found(&mut gathered, 0, source, 1 << number);
        }
        level(0, vec![gathered])?;
        let all = u64::MAX >> (SOURCES - sources.len().max(1));
        let cells = sources.iter().map(|at| self.forward(*at).len() as u64).sum();
        let mut frontier = Frontier { positions: sources.to_vec(), cells };
        let mut depth = 0;
        while !frontier.positions.is_empty() && depth < depth_max {
            depth += 1;
            let (next, gathered) = if frontier.cells > self.projection.cell_count() / BOTTOM_UP {
                self.bottom_up(all, depth, team, &found)?
            } else {
                self.top_down(&frontier.positions, depth, team, &found)?
            };
            clear(&self.last, &frontier.positions, team)?;
            std::mem::swap(&mut self.last, &mut self.next);
            frontier = next;
            if !frontier.positions.is_empty() {
                level(depth, gathered)?;
            }
        }
        team.advance(sources.len() as u64);
        Ok(())
    }

    #[inline]
    fn forward(&self, at: u32) -> &'p [u32] {
        match self.follow {
            Follow::Outgoing => self.projection.outgoing(at),
            Follow::Incoming => self.projection.incoming(at),
        }
    }

    #[inline]
    fn backward(&self, at: u32) -> &'p [u32] {
        match self.follow {
            Follow::Outgoing => self.projection.incoming(at),
            Follow::Incoming => self.projection.outgoing(at),
        }
    }

    /// Makes the next level. Returns it, with what each part has gathered about it.
    fn top_down<R: Default + Send>(
        &self,
        frontier: &[u32],
        depth: u32,
        team: &Team,
        found: &(impl Fn(&mut R, u32, u32, u64) + Sync),
    ) -> Result<(Frontier, Vec<R>)> {
        let (seen, last, next) = (&self.seen, &self.last, &self.next);
        let part_of = |part: usize, all: usize| part * FRONTIER_PART..all.min((part + 1) * FRONTIER_PART);
        let reached = team.map_parts(frontier.len().div_ceil(FRONTIER_PART), |part| {
            let mut reached = Vec::new();
            for &at in &frontier[part_of(part, frontier.len())] {
                let bits = last[at as usize].load(Ordering::Relaxed);
                for &other in self.forward(at) {
                    let place = &next[other as usize];
                    let new = bits & !seen[other as usize].load(Ordering::Relaxed);
                    // A plain look first: an exchange takes the line from others.
                    if new & !place.load(Ordering::Relaxed) != 0 && place.fetch_or(new, Ordering::Relaxed) == 0 {
                        reached.push(other);
                    }
                }
            }
            reached
        })?;
        // All bits of a position are known only after that.
        let positions = reached.concat();
        let parts = team.map_parts(positions.len().div_ceil(FRONTIER_PART), |part| {
            let (mut cells, mut gathered) = (0, R::default());
            for &at in &positions[part_of(part, positions.len())] {
                let new = next[at as usize].load(Ordering::Relaxed);
                let known = seen[at as usize].load(Ordering::Relaxed);
                seen[at as usize].store(known | new, Ordering::Relaxed);
                cells += self.forward(at).len() as u64;
                found(&mut gathered, depth, at, new);
            }
            (cells, gathered)
        })?;
        let (cells, gathered): (Vec<u64>, Vec<R>) = parts.into_iter().unzip();
        Ok((Frontier { positions, cells: cells.iter().sum() }, gathered))
    }

    /// As [`Searches::top_down`].
    fn bottom_up<R: Default + Send>(
        &self,
        all: u64,
        depth: u32,
        team: &Team,
        found: &(impl Fn(&mut R, u32, u32, u64) + Sync),
    ) -> Result<(Frontier, Vec<R>)> {
        let (seen, last, next) = (&self.seen, &self.last, &self.next);
        let parts = self.projection.parts();
        let parts = team.map_parts(parts.len(), |part| {
            let (mut reached, mut cells, mut gathered) = (Vec::new(), 0, R::default());
            for at in parts[part].clone() {
                let known = seen[at].load(Ordering::Relaxed);
                let missing = all & !known;
                if missing == 0 {
                    continue;
                }
                let mut new = 0;
                for &other in self.backward(at as u32) {
                    new |= last[other as usize].load(Ordering::Relaxed);
                    if new & missing == missing {
                        break;
                    }
                }
                new &= missing;
                if new != 0 {
                    next[at].store(new, Ordering::Relaxed);
                    seen[at].store(known | new, Ordering::Relaxed);
                    reached.push(at as u32);
                    cells += self.forward(at as u32).len() as u64;
                    found(&mut gathered, depth, at as u32, new);
                }
            }
            (reached, cells, gathered)
        })?;
        let mut frontier = Frontier { positions: Vec::new(), cells: 0 };
        let mut all_gathered = Vec::with_capacity(parts.len());
        for (reached, cells, gathered) in parts {
            frontier.positions.extend_from_slice(&reached);
            frontier.cells += cells;
            all_gathered.push(gathered);
        }
        Ok((frontier, all_gathered))
    }
}

/// The positions that some search has found in the last level.
struct Frontier {
    positions: Vec<u32>,
    /// The cells of their rows.
    cells: u64,
}

/// Sets the words of some positions to 0.
fn clear(words: &[AtomicU64], positions: &[u32], team: &Team) -> Result<()> {
    team.for_parts(positions.len().div_ceil(FRONTIER_PART * 16), |part| {
        let begin = part * FRONTIER_PART * 16;
        for at in &positions[begin..positions.len().min(begin + FRONTIER_PART * 16)] {
            words[*at as usize].store(0, Ordering::Relaxed);
        }
    })
}

/// Counts for each source, in how many words its bit is. The counters are kept bit by bit, so that a word changes two of them on average.
#[derive(Clone, Debug, Default)]
pub(crate) struct BitCounts {
    /// Bit `s` of `digits[d]` is digit `d` of the count of source `s`.
    digits: [u64; 32],
}

impl BitCounts {
    /// Counts the bits of a word.
    #[inline]
    pub(crate) fn add(&mut self, word: u64) {
        let mut carry = word;
        for digit in &mut self.digits {
            if carry == 0 {
                return;
            }
            (*digit, carry) = (*digit ^ carry, *digit & carry);
        }
    }

    /// Adds the count of each source to one of these.
    pub(crate) fn add_to(&self, counts: &mut [u64]) {
        for (digit, &bits) in self.digits.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                counts[bits.trailing_zeros() as usize] += 1 << digit;
                bits &= bits - 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_counted() {
        let mut counts = BitCounts::default();
        let mut expected = [0; SOURCES];
        for word in (0..1_000_u64).map(|number| number.wrapping_mul(0x9e37_79b9_7f4a_7c15)) {
            counts.add(word);
            expected.iter_mut().enumerate().for_each(|(source, count)| *count += word >> source & 1);
        }
        let mut found = [0; SOURCES];
        counts.add_to(&mut found);
        assert_eq!(found, expected);
    }
}
