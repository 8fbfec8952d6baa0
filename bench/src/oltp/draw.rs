//! The random choices of one thread: templates, vertices, edges, and new ids.
//!
//! The GDI mixes choose among all vertices that ever existed. LBV's values are sampled from the loaded graph. LBV's
//! removals (Q18, Q19) remove what the same thread has added, oldest first, if there is anything. Otherwise a fast
//! database would empty the graph within seconds, and most operations would find nothing.
//!
//! In a *level* population, additions beyond a small backlog are replaced by removals, so the graph neither grows nor
//! shrinks. A population with *turnover* is level, too, but removes the loaded edges first, so in time all edges are
//! replaced.

use std::collections::VecDeque;
use std::sync::Arc;

use mangrove::EdgeId;
use smol_str::SmolStr;

use super::graph::{EDGE_VALUES, Graph};
use super::skew::Picker;
use super::template::{Mix, Operations, Parameter, Template, Verb};
use crate::people;
use mangrove_generate::random::RandomStream;

/// The arguments of a template.
#[derive(Clone, Debug)]
pub struct Arguments {
    /// A vertex.
    pub vertex: u64,
    /// A second vertex.
    pub other: u64,
    /// The number of a vertex that does not exist yet.
    pub new: u64,
    /// An edge.
    pub edge: EdgeId,
    /// An integer.
    pub number: i64,
    /// A name.
    pub text: SmolStr,
}

/// Whether the graph may grow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Population {
    /// The graph grows as the mix says.
    Free,
    /// Threads remove again what they add.
    Level,
    /// Like `Level`, but every thread begins with its share of the loaded edges, as if it had added them.
    Turnover {
        /// The number of threads that share the edges.
        threads: usize,
    },
}

/// In a level population, the largest number of elements that a thread keeps beyond those it began with.
const BACKLOG_MAX: usize = 1_000;

/// The choices of one thread.
pub struct Draw {
    graph: Arc<Graph>,
    operations: Operations,
    picker: Picker,
    population: Population,
    random: RandomStream,
    /// Cumulative shares of the templates, in units of 2^-32.
    thresholds: Vec<u32>,
    /// The templates that remove a vertex and an edge, as indexes into the mix.
    removals: [Option<usize>; 2],
    added_vertices: VecDeque<u64>,
    added_edges: VecDeque<EdgeId>,
    edge_backlog_max: usize,
    arguments: Arguments,
}

impl Draw {
    /// The choices of a thread; `seed` is its number, from 0.
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

    /// The next template, as an index into the mix.
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

    /// The arguments for a template.
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

    /// Records what a committed transaction has added.
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

    /// Draws templates as if every transaction committed. Returns the growth of the numbers of vertices and edges.
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
