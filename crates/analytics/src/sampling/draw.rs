//! Which edges of a row are taken.
//!
//! | | without replacement | with replacement |
//! |---|---|---|
//! | uniform | Floyd's algorithm (Bentley and Floyd, *A Sample of Brilliance*, 1987): as many draws as edges | one draw an edge |
//! | weighted | the least keys -ln(u)/w (Efraimidis and Spirakis, *Weighted random sampling with a reservoir*, 2006) | a search in the sums of weights |
//!
//! A *candidate* is an edge of the row that may be taken: one that is not later than the time of the seed. A row without more
//! candidates than are wanted is taken as a whole, unless edges may be taken again.

use std::ops::Range;

use super::rows::InRow;
use super::sampler_options::{Temporal, TemporalOf, TemporalStrategy};
use crate::random::Random;

/// Up to this many edges, a look through those that are taken is faster than a bit for each candidate.
const FEW: usize = 64;

/// What random numbers of a row are drawn from (SAMPLE-1). `of_hop` is that of the batch, the hop and the edge type.
#[inline]
pub(crate) fn row_random(of_hop: Random, tree: u32, target: u32) -> Random {
    of_hop.of(u64::from(tree) << 32 | u64::from(target))
}

/// How edges are drawn.
#[derive(Clone, Copy, Debug)]
pub(super) struct DrawRule<'a> {
    /// The most edges of a row; `None`: all.
    pub(super) count: Option<usize>,
    pub(super) replace: bool,
    pub(super) weighted: bool,
    pub(super) temporal: Option<Temporal>,
    /// By position, the times of the sources, if they matter.
    pub(super) source_times: Option<&'a [i64]>,
}

/// The arrays of a thread that draws.
#[derive(Debug, Default)]
pub(super) struct Drawer {
    /// Candidates, if they are not a range.
    list: Vec<u32>,
    /// A bit for each taken candidate.
    taken: Vec<u64>,
    sums: Vec<f64>,
    keys: Vec<(f64, u32)>,
}

impl Drawer {
    /// Appends the places of the taken edges in the row. `time` is that of the seed.
    #[inline]
    pub(super) fn take(&mut self, rule: &DrawRule<'_>, row: &InRow<'_>, time: i64, random: Random, out: &mut Vec<u32>) {
        let begin = out.len();
        let Some(candidates) = self.candidates(rule, row, time) else {
            // Candidates are a list.
            let list = std::mem::take(&mut self.list);
            if rule.weighted && !row.weights.is_empty() {
                let weights: Vec<f64> = list.iter().map(|at| row.weights[*at as usize]).collect();
                self.weighted(rule, &weights, random, out);
            } else {
                self.uniform(rule, list.len(), random, out);
            }
            out[begin..].iter_mut().for_each(|at| *at = list[*at as usize]);
            self.list = list;
            return;
        };
        if rule.weighted && !row.weights.is_empty() {
            self.weighted(rule, &row.weights[candidates.clone()], random, out);
        } else {
            self.uniform(rule, candidates.len(), random, out);
        }
        if candidates.start > 0 {
            out[begin..].iter_mut().for_each(|at| *at += candidates.start as u32);
        }
    }

    /// The candidates as a range of places; `None` if they are `list`.
    #[inline]
    fn candidates(&mut self, rule: &DrawRule<'_>, row: &InRow<'_>, time: i64) -> Option<Range<usize>> {
        let all = 0..row.sources.len();
        let Some(temporal) = rule.temporal else { return Some(all) };
        let last = rule.count.filter(|_| temporal.strategy == TemporalStrategy::Last);
        match (temporal.of, rule.source_times) {
            (TemporalOf::Edges, _) if !row.times.is_empty() => {
                let end = row.times.partition_point(|of_edge| *of_edge <= time);
                Some(last.map_or(0, |count| end.saturating_sub(count))..end)
            }
            (TemporalOf::Vertices, Some(times)) => {
                self.list.clear();
                let is_candidate = |at: &u32| times[row.sources[*at as usize] as usize] <= time;
                self.list.extend((0..row.sources.len() as u32).filter(is_candidate));
                if let Some(count) = last.filter(|count| *count < self.list.len()) {
                    // The sort is stable: of several with one time, those at the end of the row count as the last.
                    self.list.sort_by_key(|at| times[row.sources[*at as usize] as usize]);
                    self.list.drain(..self.list.len() - count);
                }
                None
            }
            _ => Some(all),
        }
    }

    /// Appends numbers below `candidates`, all equally likely.
    #[inline]
    fn uniform(&mut self, rule: &DrawRule<'_>, candidates: usize, random: Random, out: &mut Vec<u32>) {
        let Some(count) = rule.count.filter(|count| rule.replace || *count < candidates) else {
            out.extend(0..candidates as u32);
            return;
        };
        if candidates == 0 {
            return;
        }
        if rule.replace {
            out.extend((0..count as u64).map(|draw| random.of(draw).below(candidates as u64) as u32));
            return;
        }
        let begin = out.len();
        let drawn = |draw: usize, last: usize| random.of(draw as u64).below(last as u64 + 1) as u32;
        if count <= FEW {
            for (draw, last) in (candidates - count..candidates).enumerate() {
                let at = drawn(draw, last);
                let at = if out[begin..].contains(&at) { last as u32 } else { at };
                out.push(at);
            }
            return;
        }
        self.taken.clear();
        self.taken.resize(candidates.div_ceil(64), 0);
        for (draw, last) in (candidates - count..candidates).enumerate() {
            let at = drawn(draw, last);
            let is_taken = self.taken[at as usize / 64] >> (at % 64) & 1 == 1;
            let at = if is_taken { last as u32 } else { at };
            self.taken[at as usize / 64] |= 1 << (at % 64);
            out.push(at);
        }
    }

    /// Appends places of weights; one of weight 0 is never taken.
    fn weighted(&mut self, rule: &DrawRule<'_>, weights: &[f64], random: Random, out: &mut Vec<u32>) {
        let fit = || (0..weights.len() as u32).filter(|at| weights[*at as usize] > 0.0);
        let Some(count) = rule.count else {
            out.extend(fit());
            return;
        };
        if rule.replace {
            self.sums.clear();
            self.sums.extend(weights.iter().scan(0.0, |sum, weight| {
                *sum += weight;
                Some(*sum)
            }));
            let Some(last) = fit().next_back() else { return };
            let all = self.sums.last().copied().unwrap_or(0.0);
            out.extend((0..count as u64).map(|draw| {
                let drawn = random.of(draw).unit() * all;
                // Rounding may give the whole sum.
                last.min(self.sums.partition_point(|sum| *sum <= drawn) as u32)
            }));
            return;
        }
        self.keys.clear();
        let key = |at: u32| (-(1.0 - random.of(u64::from(at)).unit()).ln() / weights[at as usize], at);
        self.keys.extend(fit().map(key));
        if count < self.keys.len() {
            self.keys.select_nth_unstable_by(count, |one, other| one.0.total_cmp(&other.0).then(one.1.cmp(&other.1)));
            self.keys.truncate(count);
            self.keys.sort_unstable_by_key(|(_, at)| *at);
        }
        out.extend(self.keys.iter().map(|(_, at)| *at));
    }
}
