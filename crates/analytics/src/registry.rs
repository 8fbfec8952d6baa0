//! The algorithms by their names, with the options that they take: what command lines, services and documentation are made of.
//!
//! An option is a name and a value. What is not given has its default. An unknown name, a value of another type and one out of
//! range are errors that say what is allowed.

use mangrove_graph::{
    Error, ErrorKind, GraphView, KeyId, LabelFilter, Result, UserId, Value, VertexId, compare, numeric,
};

use crate::algorithm::pagerank::{Dangling, PageRankOptions};
use crate::algorithm::{bfs, cdlp, lcc, pagerank, sssp, wcc};
use crate::numbering::Numbering;
use crate::projection::{Orientation, Projection, ProjectionOptions};
use crate::team::Team;

/// The most rounds that an algorithm makes.
const ROUNDS_MAX: i64 = 1_000_000;

/// An option of an algorithm.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct OptionInfo {
    /// Its name.
    pub name: &'static str,
    /// What it may be, in words.
    pub allowed: &'static str,
    /// The value that it has if it is not given; `None`: it must be given.
    pub default: Option<&'static str>,
    /// What it means.
    pub meaning: &'static str,
}

/// An algorithm.
#[derive(Clone, Copy, Debug)]
pub struct AlgorithmInfo {
    /// Its name.
    pub name: &'static str,
    /// What it computes, in a sentence.
    pub summary: &'static str,
    /// What the column of results is named.
    pub column: &'static str,
    /// Its options, besides [`COMMON`].
    pub options: &'static [OptionInfo],
    run: fn(&Given<'_>) -> Result<Found>,
}

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
        name: "directed",
        allowed: "true or false",
        default: Some("true"),
        meaning: "whether an edge leads from its source to its target only",
    },
];

const SOURCE: OptionInfo =
    OptionInfo { name: "source", allowed: "the id of a vertex", default: None, meaning: "the vertex to begin at" };

/// All algorithms, by their names.
pub const ALGORITHMS: &[AlgorithmInfo] = &[
    AlgorithmInfo {
        name: "bfs",
        summary: "The number of edges on a shortest path from a vertex to each one that it reaches",
        column: "depth",
        options: &[SOURCE],
        run: |given| {
            let projection = given.projection(None)?;
            let source = given.source(&projection)?;
            let depths = bfs::run(&projection, source, bfs::Follow::Outgoing, given.team)?;
            let depths = depths.into_iter().map(|depth| (depth != bfs::UNREACHED).then_some(u64::from(depth)));
            Ok(Found::of(&projection, depths.collect(), ColumnValues::Counts))
        },
    },
    AlgorithmInfo {
        name: "cdlp",
        summary: "A community for each vertex, by the labels that most of its neighbors have",
        column: "community",
        options: &[OptionInfo {
            name: "rounds",
            allowed: "a whole number from 1 on",
            default: Some("10"),
            meaning: "the most rounds",
        }],
        run: |given| {
            let projection = given.projection(None)?;
            let by_id = positions_by_id(given.view, projection.numbering())?;
            let mut labels = vec![0; projection.positions()];
            by_id.iter().enumerate().for_each(|(rank, at)| labels[*at as usize] = rank as u64);
            let labels = cdlp::run(&projection, labels, given.rounds(10)?, given.team)?;
            let vertex = |rank: u64| Some(projection.numbering().vertex(by_id[rank as usize]));
            let communities = (0..labels.len() as u32)
                .map(|at| projection.numbering().exists(at).then(|| labels[at as usize]).and_then(vertex));
            Ok(Found::of(&projection, communities.collect(), ColumnValues::Vertices))
        },
    },
    AlgorithmInfo {
        name: "lcc",
        summary: "How many of the edges that the neighbors of a vertex may have among them are there, from 0 to 1",
        column: "coefficient",
        options: &[],
        run: |given| {
            let projection = given.projection(None)?;
            let coefficients = lcc::run(&projection, given.team)?.into_iter().map(Some);
            Ok(Found::of(&projection, coefficients.collect(), ColumnValues::Numbers))
        },
    },
    AlgorithmInfo {
        name: "pagerank",
        summary: "How often a walk along random edges is at each vertex; the sum of all ranks is 1",
        column: "rank",
        options: &[
            OptionInfo {
                name: "damping",
                allowed: "a number from 0 to 1",
                default: Some("0.85"),
                meaning: "the probability of following an edge",
            },
            OptionInfo {
                name: "rounds",
                allowed: "a whole number from 1 on",
                default: Some("20"),
                meaning: "the most rounds",
            },
            OptionInfo {
                name: "tolerance",
                allowed: "a number from 0 on",
                default: Some("0"),
                meaning: "end when all changes of a round have at most this sum",
            },
            OptionInfo {
                name: "dangling",
                allowed: "'spread' or 'drop'",
                default: Some("spread"),
                meaning: "what happens to the rank of vertices without outgoing edges: over all vertices, or nowhere",
            },
        ],
        run: |given| {
            let dangling = match given.text("dangling")? {
                None | Some("spread") => Dangling::Spread,
                Some("drop") => Dangling::Drop,
                Some(_) => return Err(given.misfit("dangling")),
            };
            let options = PageRankOptions {
                damping: given.number("damping", 0.85, 0.0..=1.0)?,
                rounds: given.rounds(20)?,
                tolerance: given.number("tolerance", 0.0, 0.0..=f64::MAX)?,
                dangling,
            };
            let projection = given.projection(None)?;
            let ranks = pagerank::run(&projection, &options, given.team)?.ranks.into_iter().map(Some);
            Ok(Found::of(&projection, ranks.collect(), ColumnValues::Numbers))
        },
    },
    AlgorithmInfo {
        name: "sssp",
        summary: "The length of a shortest path from a vertex to each one that it reaches",
        column: "distance",
        options: &[
            SOURCE,
            OptionInfo {
                name: "weight",
                allowed: "a property key",
                default: None,
                meaning: "the property of edges that is their length; an edge without it has the length 1",
            },
            OptionInfo {
                name: "delta",
                allowed: "a number above 0",
                default: Some("the average length"),
                meaning: "the width of a bucket: it changes the time, and not the result",
            },
        ],
        run: |given| {
            let key = given.text("weight")?.ok_or_else(|| given.missing("weight"))?;
            let key = given.view.key_of(key).ok_or_else(|| {
                Error::new(
                    ErrorKind::NotFound,
                    format!("no element has a property '{key}': name the length of the edges"),
                )
            })?;
            let delta = match given.get("delta") {
                None => None,
                Some(_) => Some(given.number("delta", 1.0, f64::MIN_POSITIVE..=f64::MAX)?),
            };
            let projection = given.projection(Some(key))?;
            let source = given.source(&projection)?;
            let distances = sssp::run(&projection, source, delta, given.team)?;
            let distances = distances.into_iter().map(|distance| distance.is_finite().then_some(distance));
            Ok(Found::of(&projection, distances.collect(), ColumnValues::Numbers))
        },
    },
    AlgorithmInfo {
        name: "wcc",
        summary: "A component for each vertex: the vertices that edges connect, whatever their direction",
        column: "component",
        options: &[],
        run: |given| {
            let projection = given.projection(None)?;
            let numbering = projection.numbering();
            let vertex = |at: u32| numbering.exists(at).then(|| numbering.vertex(at));
            let components = wcc::run(&projection, given.team)?.into_iter().map(vertex);
            Ok(Found::of(&projection, components.collect(), ColumnValues::Vertices))
        },
    },
];

/// The values of a column.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnValues {
    /// Vertices.
    Vertices(Vec<VertexId>),
    /// Whole numbers.
    Counts(Vec<u64>),
    /// Numbers.
    Numbers(Vec<f64>),
}

/// A value for each vertex that has one.
#[derive(Clone, PartialEq, Debug)]
pub struct Column {
    /// The name.
    pub name: &'static str,
    /// The vertices, ascending.
    pub vertices: Vec<VertexId>,
    /// Their values, in the same order.
    pub values: ColumnValues,
}

/// The vertices with a value, and their values.
struct Found {
    vertices: Vec<VertexId>,
    values: ColumnValues,
}

impl Found {
    /// By the values of all positions, those of holes left out.
    fn of<T>(projection: &Projection, values: Vec<Option<T>>, make: fn(Vec<T>) -> ColumnValues) -> Self {
        let numbering = projection.numbering();
        let of_vertices = values.into_iter().enumerate().filter(|(at, _)| numbering.exists(*at as u32));
        let (vertices, values) =
            of_vertices.filter_map(|(at, value)| Some((numbering.vertex(at as u32), value?))).unzip();
        Found { vertices, values: make(values) }
    }
}

/// The algorithm of a name.
///
/// # Errors
///
/// If there is none; the error names all.
pub fn find(name: &str) -> Result<&'static AlgorithmInfo> {
    ALGORITHMS.iter().find(|algorithm| algorithm.name == name).ok_or_else(|| {
        let known: Vec<&str> = ALGORITHMS.iter().map(|algorithm| algorithm.name).collect();
        Error::new(ErrorKind::NotFound, format!("there is no algorithm '{name}'. There are: {}", known.join(", ")))
    })
}

impl AlgorithmInfo {
    /// All options.
    pub fn all_options(&self) -> impl Iterator<Item = &'static OptionInfo> {
        self.options.iter().chain(COMMON)
    }

    /// Runs the algorithm on what a view shows.
    ///
    /// # Errors
    ///
    /// If an option is unknown, missing or not allowed; if the view fails; or if the query of the team has ended.
    pub fn run(&self, view: &dyn GraphView, options: &[(String, Value)], team: &Team) -> Result<Column> {
        if let Some((name, _)) = options.iter().find(|(name, _)| self.all_options().all(|known| known.name != name)) {
            let known: Vec<&str> = self.all_options().map(|option| option.name).collect();
            let message = format!("{} has no option '{name}'. There are: {}", self.name, known.join(", "));
            return Err(Error::invalid(message));
        }
        let Found { vertices, values } = (self.run)(&Given { algorithm: self, view, options, team })?;
        Ok(Column { name: self.column, vertices, values })
    }
}

/// What an algorithm is given.
struct Given<'g> {
    algorithm: &'g AlgorithmInfo,
    view: &'g dyn GraphView,
    options: &'g [(String, Value)],
    team: &'g Team,
}

impl<'g> Given<'g> {
    fn get(&self, name: &str) -> Option<&'g Value> {
        // The last one counts.
        self.options.iter().rfind(|(given, _)| given == name).map(|(_, value)| value)
    }

    /// The error for a value that is not allowed.
    fn misfit(&self, name: &str) -> Error {
        let allowed =
            self.algorithm.all_options().find(|option| option.name == name).map_or("", |option| option.allowed);
        let shown = self.get(name).map(|value| format!("{value:?}")).unwrap_or_default();
        Error::invalid(format!("the option '{name}' of {} is {shown}. Allowed: {allowed}", self.algorithm.name))
    }

    /// The error for a value that must be given.
    fn missing(&self, name: &str) -> Error {
        let info = self.algorithm.all_options().find(|option| option.name == name);
        let (allowed, meaning) = info.map_or(("", ""), |option| (option.allowed, option.meaning));
        Error::invalid(format!("{} needs the option '{name}', {meaning}: {allowed}", self.algorithm.name))
    }

    fn text(&self, name: &str) -> Result<Option<&'g str>> {
        match self.get(name) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.as_str())),
            Some(_) => Err(self.misfit(name)),
        }
    }

    fn number(&self, name: &str, default: f64, allowed: std::ops::RangeInclusive<f64>) -> Result<f64> {
        let Some(value) = self.get(name) else { return Ok(default) };
        let number = match value {
            Value::F32(number) => Some(f64::from(*number)),
            Value::F64(number) => Some(*number),
            other => numeric::integer(other).map(|number| number as f64),
        };
        number.filter(|number| allowed.contains(number)).ok_or_else(|| self.misfit(name))
    }

    fn rounds(&self, default: u32) -> Result<u32> {
        let Some(value) = self.get("rounds") else { return Ok(default) };
        let rounds = numeric::integer(value).filter(|rounds| (1..=ROUNDS_MAX).contains(rounds));
        rounds.map(|rounds| rounds as u32).ok_or_else(|| self.misfit("rounds"))
    }

    fn labels(&self, name: &str) -> Result<LabelFilter> {
        let Some(label) = self.text(name)? else { return Ok(LabelFilter::Any) };
        match self.view.label_filter(&[label.into()]) {
            LabelFilter::Sets(sets) if sets.is_empty() => Err(Error::new(
                ErrorKind::NotFound,
                format!("the graph has no label '{label}', which is the option '{name}'"),
            )),
            filter => Ok(filter),
        }
    }

    fn projection(&self, weight: Option<KeyId>) -> Result<Projection> {
        let orientation = match self.get("directed") {
            None | Some(Value::Bool(true)) => Orientation::Directed,
            Some(Value::Bool(false)) => Orientation::Undirected,
            Some(_) => return Err(self.misfit("directed")),
        };
        let (vertices, edges) = (self.labels("vertices")?, self.labels("edges")?);
        let options = ProjectionOptions { vertices, edges, orientation, weight, ..ProjectionOptions::default() };
        Projection::of(self.view, &options, self.team)
    }

    /// The position of the vertex that the option names.
    fn source(&self, projection: &Projection) -> Result<u32> {
        let value = self.get("source").ok_or_else(|| self.missing("source"))?;
        let id = UserId::from_value(value).ok_or_else(|| self.misfit("source"))?;
        let mut found = Vec::new();
        self.view.find_vertices(&[id], &mut found)?;
        let numbering = projection.numbering();
        let position = found.into_iter().flatten().map(|vertex| numbering.position(vertex));
        let exists = |at: &u32| *at < numbering.positions() && numbering.exists(*at);
        position.into_iter().next().filter(exists).ok_or_else(|| {
            let message = format!("the graph of {} has no vertex with the id {value:?}", self.algorithm.name);
            Error::new(ErrorKind::NotFound, message)
        })
    }
}

/// The positions of all vertices, in the order of the ids that users see.
fn positions_by_id(view: &dyn GraphView, numbering: &Numbering) -> Result<Vec<u32>> {
    let positions: Vec<u32> = numbering.present(0..numbering.positions()).collect();
    let vertices: Vec<VertexId> = positions.iter().map(|at| numbering.vertex(*at)).collect();
    let mut ids = Vec::with_capacity(vertices.len());
    view.vertex_user_ids(&vertices, &mut ids)?;
    let mut by_id: Vec<(Value, u32)> = ids.into_iter().zip(positions).collect();
    by_id.sort_by(|(one, _), (other, _)| compare::order(one, other));
    Ok(by_id.into_iter().map(|(_, at)| at).collect())
}
