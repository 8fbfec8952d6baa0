//! The algorithms by their names, with the options that they take: what command lines, services and documentation are made of.
//!
//! An option is a name and a value. What is not given has its default. An unknown name, a value of another type and one out of
//! range are errors that say what is allowed.
//!
//! | file | holds |
//! |---|---|
//! | `given` | options, and how they are read |
//! | `plan` | what a run reads, holds and does |
//! | `output` | what algorithms find: columns |
//! | `paths`, `centrality`, `community`, `similarity`, `structure` | the algorithms of these kinds |

mod centrality;
mod community;
mod given;
mod output;
mod paths;
mod plan;
mod similarity;
mod structure;

use mangrove_graph::{Error, ErrorKind, GraphView, Result, Value};

use self::given::Given;
pub use self::given::OptionInfo;
pub use self::output::{Column, ColumnInfo, ColumnKind, ColumnValues, Output, VERTEX};
pub use self::plan::MemoryEstimate;
use self::plan::Plan;
use crate::cache::ProjectionCache;
pub use crate::choice::StateBytes;
use crate::team::Team;

/// The most rounds that an algorithm makes.
const ROUNDS_MAX: i64 = 1_000_000;

/// An algorithm.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// Its name.
    pub name: &'static str,
    /// What it computes, in a sentence.
    pub summary: &'static str,
    /// The columns of its results, in their order. Results leave out columns at the end that an option must ask for.
    pub columns: &'static [ColumnInfo],
    /// Its options, besides [`COMMON`].
    pub options: &'static [OptionInfo],
    /// The memory that it needs besides the projection.
    pub state: StateBytes,
    /// Checks the options, without reading the graph.
    plan: for<'g> fn(&'g Given<'g>) -> Result<Plan<'g>>,
}

/// All algorithms, by their names.
pub const ALGORITHMS: &[&AlgorithmInfo] = &[
    &paths::ALL_SHORTEST_PATHS,
    &centrality::BETWEENNESS,
    &paths::BFS,
    &community::CDLP,
    &centrality::CLOSENESS,
    &structure::COLORING,
    &centrality::DEGREE,
    &similarity::FAST_RP,
    &structure::FOREST,
    &centrality::HARMONIC,
    &centrality::HITS,
    &structure::INDEPENDENT_SET,
    &structure::K_CORE,
    &paths::K_HOP,
    &paths::K_SHORTEST_PATHS,
    &structure::K_TRUSS,
    &structure::K_TRUSS_EDGES,
    &centrality::KATZ,
    &community::LCC,
    &community::LEIDEN,
    &community::LOUVAIN,
    &structure::MATCHING,
    &centrality::PAGERANK,
    &community::PEER_PRESSURE,
    &similarity::RANDOM_WALKS,
    &community::SCC,
    &paths::SHORTEST_PATH,
    &similarity::SIMILARITY,
    &paths::SSSP,
    &structure::TRIANGLES,
    &community::WCC,
];

/// The options that every algorithm has.
pub const COMMON: &[OptionInfo] = &[
    OptionInfo {
        name: "vertices",
        allowed: "a label",
        default: Some("all vertices"),
        meaning: "the label of the vertices",
    },
    OptionInfo { name: "edges", allowed: "a label", default: Some("all edges"), meaning: "the label of the edges" },
    OptionInfo {
        name: "projection",
        allowed: "the name of a projection",
        default: Some("none"),
        meaning: "read this named projection, which decides vertices, edges and directions",
    },
];

/// Of algorithms that edges have a direction for, unless they are told that they have none.
const DIRECTED: OptionInfo = OptionInfo {
    name: "directed",
    allowed: "true or false",
    default: Some("true"),
    meaning: "whether an edge leads from its source to its target only",
};

const SOURCE: OptionInfo =
    OptionInfo { name: "source", allowed: "the id of a vertex", default: None, meaning: "the vertex to begin at" };

const TARGET: OptionInfo =
    OptionInfo { name: "target", allowed: "the id of a vertex", default: None, meaning: "the vertex to end at" };

/// Of algorithms that find something for each of some vertices.
const SOURCES: OptionInfo = OptionInfo {
    name: "sources",
    allowed: "the id of a vertex, or a list of ids",
    default: Some("all vertices"),
    meaning: "the vertices to begin at",
};

/// Of algorithms that need no weights.
const WEIGHT: OptionInfo = OptionInfo {
    name: "weight",
    allowed: "a property key",
    default: Some("every edge counts 1"),
    meaning: "the property of edges that is their weight; an edge without it has the weight 1",
};

/// Of algorithms with random choices.
const SEED: OptionInfo = OptionInfo {
    name: "seed",
    allowed: "a whole number from 0 on",
    default: Some("0"),
    meaning: "decides the random choices: the same seed finds the same",
};

/// The column of the vertex that a row is about.
const OF_VERTEX: ColumnInfo = ColumnInfo { name: VERTEX, kind: ColumnKind::Vertices, meaning: "the vertex" };

/// The option `rounds`, with its default.
const fn rounds(default: &'static str) -> OptionInfo {
    OptionInfo {
        name: "rounds",
        allowed: "a whole number from 1 on",
        default: Some(default),
        meaning: "the most rounds",
    }
}

/// The algorithm of a name.
///
/// # Errors
///
/// If there is none; the error names all.
pub fn find(name: &str) -> Result<&'static AlgorithmInfo> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name).copied().ok_or_else(|| {
        let known: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        Error::new(ErrorKind::NotFound, format!("there is no algorithm '{name}'. There are: {}", known.join(", ")))
    })
}

impl AlgorithmInfo {
    /// All options.
    pub fn all_options(&self) -> impl Iterator<Item = &'static OptionInfo> {
        self.options.iter().chain(COMMON)
    }

    /// Runs the algorithm on what a view shows. The query of the team is charged for the memory of its state.
    ///
    /// # Errors
    ///
    /// If an option is unknown, missing or not allowed; if the view fails; if the query of the team has ended; or if there is no memory for
    /// the run.
    pub fn run(
        &self,
        view: &dyn GraphView,
        projections: &ProjectionCache,
        options: &[(String, Value)],
        team: &Team,
    ) -> Result<Output> {
        self.check_names(options)?;
        let given = Given { algorithm: self, view, projections, options, team };
        (self.plan)(&given)?.run(view, projections, team)
    }

    /// The memory that a run would need. The graph is not read.
    ///
    /// # Errors
    ///
    /// If an option is unknown, missing or not allowed.
    pub fn estimate(
        &self,
        view: &dyn GraphView,
        projections: &ProjectionCache,
        options: &[(String, Value)],
    ) -> Result<MemoryEstimate> {
        self.check_names(options)?;
        let team = Team::alone();
        (self.plan)(&Given { algorithm: self, view, projections, options, team: &team })?.estimate(view, projections)
    }

    /// Fails if an option is unknown.
    fn check_names(&self, options: &[(String, Value)]) -> Result<()> {
        if let Some((name, _)) = options.iter().find(|(name, _)| self.all_options().all(|known| known.name != name)) {
            let known: Vec<&str> = self.all_options().map(|option| option.name).collect();
            let message = format!("{} has no option '{name}'. There are: {}", self.name, known.join(", "));
            return Err(Error::invalid(message));
        }
        Ok(())
    }
}
