//! What one thread's transactions are about: vertices and edges at random, and new ids.
//!
//! The GDI mixes pick among all vertices there have been. LBV's values are sampled from the loaded graph; its
//! removals (Q18, Q19) take back what the same thread has added, oldest first, where there is anything: a fast
//! database would otherwise have emptied the graph within seconds and measured nothing but misses. In a *level*
//! population additions beyond a small backlog are replaced by removals, so that the graph neither grows nor shrinks; in
//! one with *turnover*, too, but there the loaded edges are the first to be removed, so that in time all are replaced.

use std::collections::VecDeque;
use std::sync::Arc;

use mangrove::EdgeId;
use smol_str::SmolStr;

use super::graph::{EDGE_VALUES, Graph};
use super::skew::Picker;
use super::template::{Mix, Operations, Parameter, Template, Verb};
use crate::people;
use mangrove_generate::random::RandomStream;

/// What a template is done with.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// A vertex.
    pub vertex: u64,
    /// Another.
    pub other: u64,
    /// A number that no vertex has.
    pub new: u64,
    /// An edge.
    pub edge: EdgeId,
    /// An integer.
    pub number: i64,
    /// A string: a name.
    pub text: SmolStr,
}

/// Whether a graph may grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Population {
    /// It grows as the mix says.
    Free,
    /// What is added is removed again.
    Level,
    /// As `Level`, but every thread begins with its part of the loaded edges as if it had added them.
    Turnover {
        /// How many threads share the edges.
        threads: usize,
    },
}

/// Elements a thread keeps at most beyond those it began with, where the population is level.
const BACKLOG_MAX: usize = 1_000;

/// One thread's choices.
pub struct Draw {
    graph: Arc<Graph>,
    operations: Operations,
    picker: Picker,
    population: Population,
    random: RandomStream,
    /// Shares, added up, in parts of 2^32.
    thresholds: Vec<u32>,
    /// Templates that remove a vertex and an edge, by their place in the mix.
    removals: [Option<usize>; 2],
    added_vertices: VecDeque<u64>,
    added_edges: VecDeque<EdgeId>,
    edge_backlog_max: usize,
    arguments: Arguments,
}

impl Draw {
    /// The choices of thread `seed`, counting from 0.
    pub fn new(
        graph: &Arc<Graph>,
        operations: Operations,
        mix: &Mix,
        picker: Picker,
        population: Population,
        seed: u64,
    ) -> Self {
        let (total, mut sum) = (mix.total(), 0.0);
        let mut threshold = |share: f64| {
            sum += share;
            (sum / total * f64::from(u32::MAX)) as u32
        };
        let place = |verb: Verb| mix.entries.iter().position(|(template, _)| template.verb == verb);
        let mut random = RandomStream::from_seed(mangrove_generate::random::mix(seed ^ 0x0117));
        let mut own: Vec<EdgeId> = match population {
            Population::Turnover { threads } => {
                graph.edges.iter().skip(seed as usize).step_by(threads).copied().collect()
            }
            Population::Free | Population::Level => Vec::new(),
        };
        random.shuffle(&mut own);
        Draw {
            thresholds: mix.entries.iter().map(|(_, share)| threshold(*share)).collect(),
            removals: [place(Verb::DeleteVertex), place(Verb::DeleteEdge)],
            operations,
            picker,
            population,
            random,
            added_vertices: VecDeque::new(),
            edge_backlog_max: own.len() + BACKLOG_MAX,
            added_edges: own.into(),
            arguments: Arguments {
                vertex: 0,
                other: 0,
                new: 0,
                edge: EdgeId::from_bits(0),
                number: 0,
                text: SmolStr::default(),
            },
            graph: graph.clone(),
        }
    }

    /// The next template, by its place in the mix.
    #[inline]
    pub fn template(&mut self, mix: &Mix) -> usize {
        let bits = self.random.bits() as u32;
        let last = self.thresholds.len() - 1;
        let place = self.thresholds.iter().position(|&threshold| bits < threshold).unwrap_or(last);
        if self.population == Population::Free {
            return place;
        }
        let verb = mix.entries[place].0.verb;
        let [vertex, edge] = self.removals;
        match (vertex, edge) {
            (Some(removal), _) if verb.adds_vertex() && self.added_vertices.len() >= BACKLOG_MAX => removal,
            (_, Some(removal)) if verb.adds_edge() && self.added_edges.len() >= self.edge_backlog_max => removal,
            _ => place,
        }
    }

    /// What to do it with.
    pub fn arguments(&mut self, template: &Template) -> &Arguments {
        for parameter in &template.uses {
            match parameter {
                Parameter::Vertex => self.arguments.vertex = self.vertex(template.verb),
                Parameter::Other => self.arguments.other = self.any_vertex(),
                Parameter::Edge => self.arguments.edge = self.edge(template.verb),
                Parameter::New => self.arguments.new = self.graph.new_number(),
                Parameter::Number => self.arguments.number = self.random.below(EDGE_VALUES) as i64,
                Parameter::Text => self.arguments.text = people::name(self.random.below(self.graph.vertex_count)),
            }
        }
        &self.arguments
    }

    fn vertex(&mut self, verb: Verb) -> u64 {
        let own = if self.removes_own(verb) { self.added_vertices.pop_front() } else { None };
        own.unwrap_or_else(|| self.any_vertex())
    }

    fn removes_own(&self, verb: Verb) -> bool {
        self.operations == Operations::Lbv && matches!(verb, Verb::DeleteVertex | Verb::DeleteEdge)
    }

    fn any_vertex(&mut self) -> u64 {
        let bound = match self.operations {
            Operations::Gdi => self.graph.number_count(),
            Operations::Lbv => self.graph.vertex_count,
        };
        self.picker.pick(&mut self.random, bound)
    }

    fn edge(&mut self, verb: Verb) -> EdgeId {
        let own = if self.removes_own(verb) { self.added_edges.pop_front() } else { None };
        own.unwrap_or_else(|| self.graph.edges[self.random.below(self.graph.edges.len() as u64) as usize])
    }

    /// Takes note of what a transaction that committed has added.
    pub fn note(&mut self, verb: Verb, created: Option<EdgeId>) {
        if self.operations == Operations::Gdi {
            return;
        }
        if verb.adds_vertex() {
            self.added_vertices.push_back(self.arguments.new);
        }
        self.added_edges.extend(created);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oltp::graph::Blueprint;
    use crate::oltp::skew::Skew;

    #[test]
    fn templates_come_in_their_shares() {
        let graph = Arc::new(Blueprint::kronecker(6).load(Operations::Gdi).unwrap());
        let mix = Operations::Gdi.mix("linkbench").unwrap();
        let picker = Picker::new(Skew::Uniform, graph.vertex_count);
        let mut draw = Draw::new(&graph, Operations::Gdi, &mix, picker, Population::Free, 1);
        const DRAWN: usize = 100_000;
        let mut counts = vec![0usize; mix.entries.len()];
        (0..DRAWN).for_each(|_| counts[draw.template(&mix)] += 1);
        for ((template, share), count) in mix.entries.iter().zip(counts) {
            let found = 100.0 * count as f64 / DRAWN as f64;
            assert!((found - share).abs() < 0.6, "{}: {found} % instead of {share} %", template.name);
        }
    }

    /// Draws templates as if every transaction was carried out at once; additions less removals of vertices and edges.
    fn growth(population: Population, drawn: usize) -> (i64, i64) {
        let graph = Arc::new(Blueprint::kronecker(6).load(Operations::Lbv).unwrap());
        let mix = Operations::Lbv.mix("write-intensive").unwrap();
        let mut draw = Draw::new(&graph, Operations::Lbv, &mix, Picker::Uniform, population, 0);
        let (mut vertices, mut edges) = (0, 0);
        for number in 0..drawn as u64 {
            let template = draw.template(&mix);
            let template = &mix.entries[template].0;
            draw.arguments(template);
            let created = template.verb.adds_edge().then(|| EdgeId::from_bits(number));
            draw.note(template.verb, created);
            vertices += i64::from(template.verb.adds_vertex()) - i64::from(template.verb == Verb::DeleteVertex);
            edges += i64::from(created.is_some()) - i64::from(template.verb == Verb::DeleteEdge);
        }
        (vertices, edges)
    }

    #[test]
    fn a_level_population_stays_within_its_backlog() {
        const DRAWN: usize = 100_000;
        let bound = BACKLOG_MAX as i64;
        for population in [Population::Level, Population::Turnover { threads: 2 }] {
            let (vertices, edges) = growth(population, DRAWN);
            assert!((0..=bound).contains(&vertices), "{population:?}: {vertices} vertices more");
            assert!((-bound..=bound).contains(&edges), "{population:?}: {edges} edges more");
        }
        let (vertices, edges) = growth(Population::Free, DRAWN);
        assert!(vertices > 2 * bound && edges > 2 * bound, "as the mix says: {vertices} and {edges} more");
    }

    #[test]
    fn turnover_shares_the_loaded_edges_among_threads() {
        let graph = Arc::new(Blueprint::kronecker(6).load(Operations::Lbv).unwrap());
        let mix = Operations::Lbv.mix("write-intensive").unwrap();
        let own = |seed| {
            let population = Population::Turnover { threads: 3 };
            Draw::new(&graph, Operations::Lbv, &mix, Picker::Uniform, population, seed).added_edges
        };
        let mut all: Vec<EdgeId> = (0..3).flat_map(own).collect();
        all.sort_unstable();
        let mut loaded = graph.edges.clone();
        loaded.sort_unstable();
        assert_eq!(all, loaded);
    }
}
