//! One batch, hop by hop.
//!
//! A hop works on the vertices that were met for the first time in the last one. First the rows of a chunk of targets are looked up
//! and their edges drawn; then the sources of all these edges get local numbers. Each of the two steps is a loop of
//! independent reads, which the processor overlaps.
//!
//! In a large hop, parts of the targets are drawn side by side. Local numbers are given by one thread, in the order of the
//! targets, so they are the same.

use mangrove_graph::{Error, Result};

use super::draw::{DrawRule, Drawer, row_random};
use super::locals::Locals;
use super::options::{SamplerOptions, Seeds, TemporalOf};
use super::rows::{InRow, InRows};
use super::sample::Sample;
use crate::random::Random;
use crate::team::Team;

/// Targets whose rows are looked up together.
const TOGETHER: usize = 64;
/// Targets of a part that is drawn beside others.
const PART: usize = 1 << 10;

/// The arrays of a thread, which are used for one batch after another.
#[derive(Debug, Default)]
pub(super) struct Scratch<L> {
    /// By vertex type.
    locals: Vec<L>,
    drawer: Drawer,
    drawn: Drawn,
}

/// The edges that were taken of the rows of some targets.
#[derive(Debug, Default)]
struct Drawn {
    /// By target, how many.
    counts: Vec<u32>,
    /// By edge, the position of the source.
    sources: Vec<u32>,
    /// By edge, its number.
    edges: Vec<i64>,
    /// Places in rows.
    places: Vec<u32>,
}

/// A batch that is being drawn.
pub(super) struct Batch<'a, G, L> {
    graph: &'a G,
    options: &'a SamplerOptions,
    /// That of the batch.
    random: Random,
    scratch: &'a mut Scratch<L>,
    /// By vertex type and local number.
    positions: Vec<Vec<u32>>,
    /// By vertex type and local number; empty if trees are not disjoint.
    trees: Vec<Vec<u32>>,
    /// By tree, the time of the seed; empty unless samples are temporal.
    times: Vec<i64>,
    /// By vertex type, the local number of the first vertex of the last hop.
    begins: Vec<usize>,
    sample: Sample,
}

impl<'a, G: InRows, L: Locals> Batch<'a, G, L> {
    pub(super) fn new(graph: &'a G, options: &'a SamplerOptions, random: Random, scratch: &'a mut Scratch<L>) -> Self {
        let (types, edge_types) = (graph.vertex_types(), graph.edge_types());
        scratch.locals.resize_with(types, L::default);
        scratch.locals.iter_mut().enumerate().for_each(|(at, locals)| locals.clear(graph.positions(at)));
        Batch {
            graph,
            options,
            random,
            scratch,
            positions: vec![Vec::new(); types],
            trees: vec![Vec::new(); types],
            times: Vec::new(),
            begins: vec![0; types],
            sample: Sample {
                sources: vec![Vec::new(); edge_types],
                targets: vec![Vec::new(); edge_types],
                edges: vec![Vec::new(); edge_types],
                edges_of_hops: vec![Vec::new(); edge_types],
                vertices_of_hops: vec![Vec::new(); types],
                ..Sample::default()
            },
        }
    }

    /// The bytes of the sample so far, with the numbers that it gets at its end.
    pub(super) fn bytes(&self) -> u64 {
        let vertices = self.positions.iter().map(Vec::len).sum::<usize>();
        let of_vertex = size_of::<u32>() + size_of::<i64>() * if self.options.disjoint { 2 } else { 1 };
        (vertices * of_vertex + self.sample.edge_count() * 3 * size_of::<i64>()) as u64
    }

    /// Takes the seeds.
    pub(super) fn sow(&mut self, seeds: &[Seeds<'_>]) -> Result<()> {
        let mut tree = 0;
        for of in seeds {
            let at = of.vertex_type;
            if at >= self.positions.len() {
                return Err(Error::invalid(format!(
                    "seeds have vertex type {at}, and the graph has {}",
                    self.positions.len()
                )));
            }
            if !self.positions[at].is_empty() {
                return Err(Error::invalid(format!("seeds of vertex type {at} are given twice: put them together")));
            }
            self.graph.append_positions(at, of.numbers, &mut self.positions[at])?;
            self.take_times(of)?;
            let positions = &self.positions[at];
            if self.options.disjoint {
                self.trees[at].extend((0..positions.len() as u32).map(|seed| tree + seed));
            }
            for (local, position) in (0..).zip(positions) {
                let of_seed = if self.options.disjoint { tree + local } else { 0 };
                self.scratch.locals[at].number(of_seed, *position, local);
            }
            tree += positions.len() as u32;
        }
        for (of_hops, positions) in self.sample.vertices_of_hops.iter_mut().zip(&self.positions) {
            of_hops.push(positions.len());
        }
        Ok(())
    }

    /// The times of seeds: those that are given, or those of their vertices.
    fn take_times(&mut self, seeds: &Seeds<'_>) -> Result<()> {
        let Some(temporal) = self.options.temporal else { return Ok(()) };
        let positions = &self.positions[seeds.vertex_type];
        match (seeds.times, self.graph.vertex_times(seeds.vertex_type)) {
            (Some(times), _) if times.len() == positions.len() => self.times.extend_from_slice(times),
            (Some(times), _) => {
                return Err(Error::invalid(format!("{} seeds have {} times", positions.len(), times.len())));
            }
            (None, Some(times)) if temporal.of == TemporalOf::Vertices => {
                self.times.extend(positions.iter().map(|position| times[*position as usize]));
            }
            _ => return Err(Error::invalid("samples are temporal, and seeds have no times: give each seed a time")),
        }
        Ok(())
    }

    /// Takes edges of the vertices that were met in the last hop.
    pub(super) fn hop(&mut self, hop: usize, team: Option<&Team>) -> Result<()> {
        let ends: Vec<usize> = self.positions.iter().map(Vec::len).collect();
        for edge_type in 0..self.graph.edge_types() {
            let before = self.sample.edges[edge_type].len();
            let count = self.options.fanouts[edge_type][hop];
            if count != Some(0) {
                self.edge_type(hop, edge_type, count, &ends, team)?;
            }
            let taken = self.sample.edges[edge_type].len() - before;
            self.sample.edges_of_hops[edge_type].push(taken);
        }
        for (of_hops, (positions, end)) in self.sample.vertices_of_hops.iter_mut().zip(self.positions.iter().zip(&ends))
        {
            of_hops.push(positions.len() - end);
        }
        self.begins = ends;
        Ok(())
    }

    fn edge_type(
        &mut self,
        hop: usize,
        edge_type: usize,
        count: Option<usize>,
        ends: &[usize],
        team: Option<&Team>,
    ) -> Result<()> {
        let (source, target) = self.graph.ends(edge_type);
        let SamplerOptions { replace, weighted, temporal, .. } = *self.options;
        let source_times = self.graph.vertex_times(source);
        // Out of the batch for as long as edges are drawn and numbered in turns.
        let times = std::mem::take(&mut self.times);
        let draws = Draws {
            graph: self.graph,
            edge_type,
            rule: DrawRule { count, replace, weighted, temporal, source_times },
            random: self.random.of((hop as u64) << 32 | edge_type as u64),
            times: &times,
        };
        let (begin, end) = (self.begins[target], ends[target]);
        let of_targets = |from: usize, to: usize| {
            let trees = self.trees[target].get(from..to).unwrap_or_default();
            (&self.positions[target][from..to], trees)
        };
        if let Some(team) = team.filter(|_| end - begin > PART) {
            // Each part draws into arrays of its own.
            let part = |part: usize| {
                let from = begin + part * PART;
                let (positions, trees) = of_targets(from, end.min(from + PART));
                let (mut drawn, mut drawer) = (Drawn::default(), Drawer::default());
                draws.draw(positions, trees, &mut drawer, &mut drawn).map(|()| drawn)
            };
            let parts = team.map_parts((end - begin).div_ceil(PART), part)?;
            for (part, drawn) in parts.into_iter().enumerate() {
                self.number(edge_type, begin + part * PART, &drawn?);
            }
            self.times = times;
            return Ok(());
        }
        let mut drawn = std::mem::take(&mut self.scratch.drawn);
        for from in (begin..end).step_by(TOGETHER) {
            let to = end.min(from + TOGETHER);
            drawn.counts.clear();
            drawn.sources.clear();
            drawn.edges.clear();
            let trees = self.trees[target].get(from..to).unwrap_or_default();
            let positions = &self.positions[target][from..to];
            draws.draw(positions, trees, &mut self.scratch.drawer, &mut drawn)?;
            self.number(edge_type, from, &drawn);
        }
        self.scratch.drawn = drawn;
        self.times = times;
        Ok(())
    }

    /// Gives the sources of edges local numbers, and adds the edges to the sample. The targets have the local numbers from `first` on.
    fn number(&mut self, edge_type: usize, first: usize, drawn: &Drawn) {
        let (source, target) = self.graph.ends(edge_type);
        self.sample.edges[edge_type].extend_from_slice(&drawn.edges);
        let targets = &mut self.sample.targets[edge_type];
        for (local, count) in (first..).zip(&drawn.counts) {
            targets.extend(std::iter::repeat_n(local as i64, *count as usize));
        }
        let locals = &mut self.scratch.locals[source];
        let sources = &mut self.sample.sources[edge_type];
        if !self.options.disjoint {
            let positions = &mut self.positions[source];
            sources.extend(drawn.sources.iter().map(|position| {
                let next = positions.len() as u32;
                let local = locals.number(0, *position, next);
                if local == next {
                    positions.push(*position);
                }
                i64::from(local)
            }));
            return;
        }
        let mut at = 0;
        for (local, count) in (first..).zip(&drawn.counts) {
            let tree = self.trees[target][local];
            for position in &drawn.sources[at..at + *count as usize] {
                let next = self.positions[source].len() as u32;
                let local = locals.number(tree, *position, next);
                if local == next {
                    self.positions[source].push(*position);
                    self.trees[source].push(tree);
                }
                sources.push(i64::from(local));
            }
            at += *count as usize;
        }
    }

    /// The sample.
    pub(super) fn finish(mut self) -> Sample {
        self.sample.vertices = self
            .positions
            .iter()
            .enumerate()
            .map(|(at, positions)| {
                let mut numbers = Vec::with_capacity(positions.len());
                self.graph.append_numbers(at, positions, &mut numbers);
                numbers
            })
            .collect();
        if self.options.disjoint {
            let of_type = |trees: &Vec<u32>| trees.iter().map(|tree| i64::from(*tree)).collect();
            self.sample.trees = Some(self.trees.iter().map(of_type).collect());
        }
        self.sample
    }
}

/// How the edges of a type are drawn in a hop.
struct Draws<'a, G> {
    graph: &'a G,
    edge_type: usize,
    rule: DrawRule<'a>,
    /// That of the hop and the edge type.
    random: Random,
    times: &'a [i64],
}

impl<G: InRows> Draws<'_, G> {
    /// Appends the edges that are taken of the rows of targets.
    fn draw(&self, positions: &[u32], trees: &[u32], drawer: &mut Drawer, drawn: &mut Drawn) -> Result<()> {
        let mut rows: Vec<InRow<'_>> = Vec::with_capacity(TOGETHER);
        for (chunk, positions) in positions.chunks(TOGETHER).enumerate() {
            rows.clear();
            self.graph.append_rows(self.edge_type, positions, &mut rows)?;
            for (at, (row, position)) in rows.iter().zip(positions).enumerate() {
                let tree = trees.get(chunk * TOGETHER + at).copied().unwrap_or(0);
                let time = self.times.get(tree as usize).copied().unwrap_or(i64::MAX);
                drawn.places.clear();
                let random = row_random(self.random, tree, *position);
                drawer.take(&self.rule, row, time, random, &mut drawn.places);
                drawn.counts.push(drawn.places.len() as u32);
                drawn.sources.extend(drawn.places.iter().map(|place| row.sources[*place as usize]));
                drawn.edges.extend(drawn.places.iter().map(|place| (row.first_edge + u64::from(*place)) as i64));
            }
        }
        Ok(())
    }
}
