//! Vertices move to the community where they add most to the modularity.

use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_graph::Result;

use super::ModularityOptions;
use super::level::Level;
use crate::random::mixed;
use crate::tally::Tally;
use crate::team::Team;
use crate::worklist::chunk;

/// Batches of a round.
const BATCHES: u64 = 64;
/// Below so many vertices, each is a batch.
const ONE_BY_ONE: usize = 1 << 12;
/// Vertices of a batch that are a part of a phase.
const PART: usize = 256;
/// The most rounds of a level.
const ROUNDS: u64 = 64;
/// A round whose gain is below this part of the weight of the graph is the last one.
const TOLERANCE: f64 = 1e-7;
/// A gain below this part of the strength of a vertex is due to rounding.
const ROUNDING: f64 = 1e-12;

/// A vertex, the community that it chose, and the weight that it gains.
#[derive(Clone, Copy, Debug)]
struct Choice {
    vertex: u32,
    target: u32,
    gain: f64,
}

/// Communities of a level, while vertices move. They are named by numbers below that of the vertices.
#[derive(Debug)]
pub(crate) struct Mover<'l> {
    level: &'l Level<'l>,
    options: ModularityOptions,
    /// The community of each vertex.
    pub(crate) communities: Vec<u32>,
    /// The strength of each community.
    strengths: Vec<f64>,
    /// The vertices of each community.
    sizes: Vec<u32>,
}

impl<'l> Mover<'l> {
    /// Begins with given communities.
    pub(crate) fn new(level: &'l Level<'l>, options: &ModularityOptions, communities: Vec<u32>) -> Self {
        let (mut strengths, mut sizes) = (vec![0.0; level.len()], vec![0; level.len()]);
        for (at, community) in communities.iter().enumerate() {
            strengths[*community as usize] += level.strengths[at];
            sizes[*community as usize] += 1;
        }
        Mover { level, options: *options, communities, strengths, sizes }
    }

    /// Begins with each vertex alone.
    pub(crate) fn alone(level: &'l Level<'l>, options: &ModularityOptions) -> Self {
        Mover::new(level, options, (0..level.len() as u32).collect())
    }

    /// Moves vertices, round by round, until no move gains anything. After the first round, only those choose anew of which a neighbor
    /// has moved to another community. Returns whether a vertex has moved.
    pub(crate) fn settle(&mut self, team: &Team) -> Result<bool> {
        let level = self.level;
        let is_due: Vec<AtomicBool> = (0..level.len() as u32).map(|at| AtomicBool::new(level.degree(at) > 0)).collect();
        let mut has_moved = false;
        for round in 0..ROUNDS {
            let due = take_due(level, &is_due, team)?;
            let (mut moved, mut gain) = (0_usize, 0.0);
            self.batches(
                due,
                round,
                team,
                |mover, vertex, tally| mover.choice(vertex, tally),
                |mover, choices| {
                    let before = moved;
                    for choice in choices {
                        // The vertices of that community have left it in this batch, perhaps for the one of this vertex.
                        if mover.sizes[choice.target as usize] == 0 {
                            is_due[choice.vertex as usize].store(true, Ordering::Relaxed);
                            continue;
                        }
                        mover.go(choice.vertex, choice.target);
                        moved += 1;
                        gain += choice.gain;
                    }
                    if moved == before {
                        return Ok(());
                    }
                    let communities = &mover.communities;
                    team.for_parts(choices.len().div_ceil(PART), |part| {
                        for choice in chunk(choices, part, PART) {
                            level.for_each_cell(choice.vertex, |other, _| {
                                if communities[other as usize] != choice.target {
                                    is_due[other as usize].store(true, Ordering::Relaxed);
                                }
                            });
                        }
                    })
                },
            )?;
            has_moved |= moved > 0;
            if moved == 0 || gain < TOLERANCE * level.total {
                break;
            }
        }
        Ok(has_moved)
    }

    /// Once, each vertex that is alone may join another one of the same community of `within`.
    pub(crate) fn refine(&mut self, within: &Mover<'_>, team: &Team) -> Result<()> {
        let all = (0..self.level.len() as u32).filter(|at| self.level.degree(*at) > 0).collect();
        let choose = |mover: &Self, vertex: u32, tally: &mut Tally| mover.refined_choice(within, vertex, tally);
        self.batches(all, ROUNDS, team, choose, |mover, choices| {
            for choice in choices {
                // One that another vertex has joined stays, and none joins a community that is empty.
                let own = mover.communities[choice.vertex as usize];
                if mover.sizes[own as usize] == 1 && mover.sizes[choice.target as usize] > 0 {
                    mover.go(choice.vertex, choice.target);
                }
            }
            Ok(())
        })
    }

    /// Calls `choose` for the vertices batch by batch, side by side, and then `apply` with the choices of a batch, in the order
    /// of the vertices.
    fn batches(
        &mut self,
        vertices: Vec<u32>,
        round: u64,
        team: &Team,
        choose: impl Fn(&Self, u32, &mut Tally) -> Option<Choice> + Sync,
        mut apply: impl FnMut(&mut Self, &[Choice]) -> Result<()>,
    ) -> Result<()> {
        let seed = mixed(self.options.seed, round);
        if vertices.len() <= ONE_BY_ONE {
            let mut ordered = vertices;
            ordered.sort_unstable_by_key(|at| (mixed(seed, u64::from(*at)), *at));
            let mut tally = Tally::default();
            for vertex in ordered {
                team.check()?;
                if let Some(choice) = choose(self, vertex, &mut tally) {
                    apply(self, &[choice])?;
                }
            }
            return Ok(());
        }
        let mut batches: Vec<Vec<u32>> = vec![Vec::new(); BATCHES as usize];
        vertices.iter().for_each(|at| batches[(mixed(seed, u64::from(*at)) % BATCHES) as usize].push(*at));
        for batch in batches {
            let known = &*self;
            let choices = team.map_parts(batch.len().div_ceil(PART), |part| {
                let mut tally = Tally::default();
                let batch = chunk(&batch, part, PART);
                batch.iter().filter_map(|vertex| choose(known, *vertex, &mut tally)).collect::<Vec<_>>()
            })?;
            apply(self, &choices.concat())?;
        }
        Ok(())
    }

    /// What a vertex gains by moving is `gain / W` of modularity.
    fn choice(&self, vertex: u32, tally: &mut Tally) -> Option<Choice> {
        let (level, own) = (self.level, self.communities[vertex as usize]);
        tally.clear(level.degree(vertex));
        level.for_each_cell(vertex, |other, weight| {
            if other != vertex {
                tally.add(self.communities[other as usize], weight);
            }
        });
        let strength = level.strengths[vertex as usize];
        let stay = tally.get(own) - self.expected(strength, self.strengths[own as usize] - strength);
        let (target, best) = self.best(own, strength, tally)?;
        let gain = best - stay;
        (gain > ROUNDING * strength).then_some(Choice { vertex, target, gain })
    }

    /// As [`Mover::choice`], for a vertex that is alone and joins one of its community in `within`. It must be well connected with that
    /// community: no less than expected (Traag 2019, algorithm A.2).
    fn refined_choice(&self, within: &Mover<'_>, vertex: u32, tally: &mut Tally) -> Option<Choice> {
        let (level, own) = (self.level, self.communities[vertex as usize]);
        if self.sizes[own as usize] != 1 {
            return None;
        }
        tally.clear(level.degree(vertex));
        let (bounds, mut inside) = (within.communities[vertex as usize], 0.0);
        level.for_each_cell(vertex, |other, weight| {
            if other != vertex && within.communities[other as usize] == bounds {
                tally.add(self.communities[other as usize], weight);
                inside += weight;
            }
        });
        let strength = level.strengths[vertex as usize];
        if inside < self.expected(strength, within.strengths[bounds as usize] - strength) {
            return None;
        }
        let (target, gain) = self.best(own, strength, tally)?;
        (gain > ROUNDING * strength).then_some(Choice { vertex, target, gain })
    }

    /// The best of the other communities in a tally, and what a vertex has there. Of several, the one of the least number.
    fn best(&self, own: u32, strength: f64, tally: &Tally) -> Option<(u32, f64)> {
        let mut best: Option<(u32, f64)> = None;
        for (community, weight) in tally.sums().filter(|(community, _)| *community != own) {
            let score = weight - self.expected(strength, self.strengths[community as usize]);
            if best.is_none_or(|(other, most)| score > most || (score == most && community < other)) {
                best = Some((community, score));
            }
        }
        best
    }

    /// The weight that is expected between a vertex and others, by their strengths.
    #[inline]
    fn expected(&self, strength: f64, others: f64) -> f64 {
        self.options.resolution * strength * others / self.level.total
    }

    fn go(&mut self, vertex: u32, target: u32) {
        let own = std::mem::replace(&mut self.communities[vertex as usize], target) as usize;
        let strength = self.level.strengths[vertex as usize];
        self.strengths[own] -= strength;
        self.strengths[target as usize] += strength;
        self.sizes[own] -= 1;
        self.sizes[target as usize] += 1;
    }
}

/// The vertices that are due, ascending. After that, none is.
fn take_due(level: &Level<'_>, is_due: &[AtomicBool], team: &Team) -> Result<Vec<u32>> {
    let parts = level.parts();
    let due = team.map_parts(parts.len(), |part| {
        let take = |at: &usize| is_due[*at].load(Ordering::Relaxed) && is_due[*at].swap(false, Ordering::Relaxed);
        parts[part].clone().filter(take).map(|at| at as u32).collect::<Vec<u32>>()
    })?;
    Ok(due.concat())
}
