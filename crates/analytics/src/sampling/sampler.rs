//! Samplers: batches that are drawn side by side.

use mangrove_graph::{Draw, Error, Purpose, Result};
use parking_lot::Mutex;

use super::batch::{Batch, Scratch};
use super::locals::{ByPosition, Hashed, HashedTrees, Locals, Numbered};
use super::options::{SamplerOptions, Seeds, TemporalOf};
use super::rows::InRows;
use super::sample::Sample;
use crate::random::Random;
use crate::team::Team;

/// Up to this many positions of all types, the local numbers of a thread are an array.
const ARRAY_POSITIONS: u64 = 1 << 22;

/// Draws samples. One sampler serves many threads.
#[derive(Debug)]
pub struct Sampler {
    options: SamplerOptions,
    hops: usize,
    scratch: Pools,
}

/// The arrays of threads, by the table of local numbers that is in use.
#[derive(Debug, Default)]
struct Pools {
    by_position: Mutex<Vec<Scratch<ByPosition>>>,
    hashed: Mutex<Vec<Scratch<Hashed>>>,
    trees: Mutex<Vec<Scratch<HashedTrees>>>,
}

impl Sampler {
    /// A sampler with these options.
    ///
    /// # Errors
    ///
    /// If edge types differ in the number of hops, or temporal samples are to have trees in common.
    pub fn new(options: SamplerOptions) -> Result<Self> {
        let hops = options.fanouts.first().map_or(0, Vec::len);
        if let Some(other) = options.fanouts.iter().find(|of_type| of_type.len() != hops) {
            return Err(Error::invalid(format!(
                "one edge type has fan-outs for {hops} hops and another one for {}: give all the same number, with 0 for none",
                other.len()
            )));
        }
        if options.temporal.is_some() && !options.disjoint {
            return Err(Error::invalid("temporal samples have a tree for each seed: set disjoint"));
        }
        Ok(Sampler { options, hops, scratch: Pools::default() })
    }

    /// How samples are drawn.
    pub fn options(&self) -> &SamplerOptions {
        &self.options
    }

    /// Draws one batch, by the threads of a team if it is large. Its number tells it from the other batches of the sampler. Vertex
    /// types are given once each.
    ///
    /// # Errors
    ///
    /// If the options do not fit the graph, if there is no vertex of a number, if a seed has no time, if rows cannot be read, if
    /// the query of the team has ended, or if the budget of the team has no room for the sample.
    pub fn sample(&self, graph: &impl InRows, batch: u64, seeds: &[Seeds<'_>], team: &Team) -> Result<Sample> {
        self.check(graph)?;
        let mut held = team.budget().account(Purpose::Queries);
        self.draw(graph, batch, seeds, Some(team), &mut held)
    }

    /// Draws many batches side by side. They have the numbers from `first` on.
    ///
    /// # Errors
    ///
    /// As those of [`Sampler::sample`].
    pub fn sample_many(
        &self,
        graph: &impl InRows,
        first: u64,
        batches: &[Vec<Seeds<'_>>],
        team: &Team,
    ) -> Result<Vec<Sample>> {
        self.check(graph)?;
        let budget = team.budget();
        let drawn = team.map_parts(batches.len(), |at| {
            let mut held = budget.account(Purpose::Queries);
            let sample = self.draw(graph, first.wrapping_add(at as u64), &batches[at], None, &mut held)?;
            Ok((sample, held))
        })?;
        // The draws end when all samples are handed over.
        let drawn = drawn.into_iter().collect::<Result<Vec<_>>>()?;
        Ok(drawn.into_iter().map(|(sample, _)| sample).collect())
    }

    fn check(&self, graph: &impl InRows) -> Result<()> {
        let (given, types) = (self.options.fanouts.len(), graph.edge_types());
        if given != types {
            return Err(Error::invalid(format!(
                "fan-outs are given for {given} edge types, and the graph has {types}"
            )));
        }
        let has_times = match self.options.temporal.map(|temporal| temporal.of) {
            Some(TemporalOf::Vertices) => (0..graph.vertex_types()).any(|of| graph.vertex_times(of).is_some()),
            Some(TemporalOf::Edges) => (0..types).any(|of| graph.has_times(of)),
            None => true,
        };
        if !has_times {
            return Err(Error::invalid("samples are to be temporal, and no type of the graph has times"));
        }
        if self.options.weighted && !(0..types).any(|of| graph.has_weights(of)) {
            return Err(Error::invalid("samples are to be weighted, and no edge type of the graph has weights"));
        }
        Ok(())
    }

    /// Draws a batch. `held` grows with it.
    fn draw(
        &self,
        graph: &impl InRows,
        batch: u64,
        seeds: &[Seeds<'_>],
        team: Option<&Team>,
        held: &mut Draw,
    ) -> Result<Sample> {
        let positions = (0..graph.vertex_types()).map(|of| u64::from(graph.positions(of))).sum::<u64>();
        match self.options.numbered {
            _ if self.options.disjoint => self.draw_with(&self.scratch.trees, graph, batch, seeds, team, held),
            Numbered::BySize if positions > ARRAY_POSITIONS => {
                self.draw_with(&self.scratch.hashed, graph, batch, seeds, team, held)
            }
            Numbered::Hash => self.draw_with(&self.scratch.hashed, graph, batch, seeds, team, held),
            Numbered::BySize | Numbered::Array => {
                self.draw_with(&self.scratch.by_position, graph, batch, seeds, team, held)
            }
        }
    }

    fn draw_with<L: Locals>(
        &self,
        pool: &Mutex<Vec<Scratch<L>>>,
        graph: &impl InRows,
        batch: u64,
        seeds: &[Seeds<'_>],
        team: Option<&Team>,
        held: &mut Draw,
    ) -> Result<Sample> {
        let mut scratch = pool.lock().pop().unwrap_or_default();
        let random = Random::new(self.options.seed).of(batch);
        let mut drawn = Batch::new(graph, &self.options, random, &mut scratch);
        drawn.sow(seeds)?;
        held.resize(drawn.bytes())?;
        for hop in 0..self.hops {
            drawn.hop(hop, team)?;
            held.resize(drawn.bytes())?;
        }
        let sample = drawn.finish();
        // What an error leaves in the arrays does not matter: it drops them.
        pool.lock().push(scratch);
        Ok(sample)
    }
}
