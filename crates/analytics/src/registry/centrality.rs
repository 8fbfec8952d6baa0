//! How important a vertex is.

use mangrove_graph::Result;

use super::given::Given;
use super::output::{ColumnInfo, ColumnKind, ColumnValues, Output};
use super::plan::Plan;
use super::{AlgorithmInfo, DIRECTED, OF_VERTEX, OptionInfo, SEED, SOURCES, StateBytes, WEIGHT, rounds};
use crate::algorithm::betweenness::{self, BetweennessOptions};
use crate::algorithm::bfs::Follow;
use crate::algorithm::closeness::{self, ClosenessOptions, Measure};
use crate::algorithm::katz::{self, KatzOptions};
use crate::algorithm::pagerank::{self, Dangling, PageRankOptions, Precision};
use crate::algorithm::{degree, hits};
use crate::projection::Orientation;

/// Distances from all vertices are found in graphs of at most so many; from a sample in larger ones.
const EXACT_MAX: u64 = 100_000;
/// The sources of a sample, if their number is not given.
const SAMPLES: usize = 4_096;

const PATHS: OptionInfo = OptionInfo {
    name: "paths",
    allowed: "'in' or 'out'",
    default: Some("in"),
    meaning: "which paths count: those that lead to the vertex, or those that lead from it",
};

/// Of algorithms that search from every vertex of a small graph.
const SOME_SAMPLES: OptionInfo = OptionInfo {
    name: "samples",
    allowed: "a whole number from 1 on",
    default: Some("all vertices; 4096 in a graph of more than 100000"),
    meaning: "the number of random vertices whose distances count; with fewer than all, values are estimates",
};

const NORMALIZED: OptionInfo = OptionInfo {
    name: "normalized",
    allowed: "true or false",
    default: Some("false"),
    meaning: "whether values are divided by the greatest possible one",
};

/// The number of samples, if it is given.
fn samples(given: &Given<'_>) -> Result<Option<usize>> {
    let samples = given.integer("samples", 0, 1..=i64::MAX)? as usize;
    Ok(Some(samples).filter(|samples| *samples > 0))
}

/// A row for each vertex with its closeness.
fn nearness<'g>(given: &'g Given<'g>, measure: Measure, name: &'static str) -> Result<Plan<'g>> {
    let follow = match given.text("paths")? {
        None | Some("in") => Follow::Outgoing,
        Some("out") => Follow::Incoming,
        Some(_) => return Err(given.misfit("paths")),
    };
    let (samples, seed) = (samples(given)?, given.seed()?);
    given.on(None, move |projection| {
        let default = (projection.vertex_count() > EXACT_MAX).then_some(SAMPLES);
        let options = ClosenessOptions { measure, follow, samples: samples.or(default), seed };
        let values = closeness::run(projection, &options, given.team)?.into_iter().map(Some);
        Ok(Output::of_positions(projection, name, values.collect(), ColumnValues::Numbers))
    })
}

pub(super) const BETWEENNESS: AlgorithmInfo = AlgorithmInfo {
    name: "betweenness",
    summary: "On which part of the shortest paths between pairs of other vertices a vertex is, summed up over the pairs",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "betweenness", kind: ColumnKind::Numbers, meaning: "the sum of the parts" },
    ],
    options: &[
        OptionInfo {
            name: "samples",
            allowed: "a whole number from 1 on",
            default: Some("all vertices"),
            meaning: "the number of random vertices whose shortest paths count; with fewer than all, values are estimates",
        },
        SEED,
        NORMALIZED,
        DIRECTED,
    ],
    state: StateBytes { position: 64, cell: 0 },
    plan: |given| {
        let (samples, normalized) = (samples(given)?, given.flag("normalized", false)?);
        let options = BetweennessOptions { samples, seed: given.seed()?, normalized };
        given.on(None, move |projection| {
            let values = betweenness::run(projection, &options, given.team)?.into_iter().map(Some);
            Ok(Output::of_positions(projection, "betweenness", values.collect(), ColumnValues::Numbers))
        })
    },
};

pub(super) const CLOSENESS: AlgorithmInfo = AlgorithmInfo {
    name: "closeness",
    summary: "How few edges lead to a vertex from the others: the inverse of the mean distance, times the part of the others with a path",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "closeness", kind: ColumnKind::Numbers, meaning: "from 0 to 1, of which 1 is nearest" },
    ],
    options: &[PATHS, SOME_SAMPLES, SEED, DIRECTED],
    state: StateBytes { position: 64, cell: 0 },
    plan: |given| nearness(given, Measure::Closeness, "closeness"),
};

pub(super) const DEGREE: AlgorithmInfo = AlgorithmInfo {
    name: "degree",
    summary: "The number of edges of each vertex",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "out", kind: ColumnKind::Counts, meaning: "the number of outgoing edges" },
        ColumnInfo { name: "in", kind: ColumnKind::Counts, meaning: "the number of incoming edges" },
        ColumnInfo { name: "both", kind: ColumnKind::Counts, meaning: "the sum of the two: a loop counts twice" },
    ],
    options: &[],
    state: StateBytes { position: 48, cell: 0 },
    plan: |given| {
        given.on_rows(Orientation::Directed, None, move |projection| {
            let degrees = degree::run(projection, given.team)?;
            let of = |count: fn(&degree::Degree) -> u64| -> Vec<u64> { degrees.iter().map(count).collect() };
            let out = of(|degree| u64::from(degree.outgoing)).into_iter().map(Some).collect();
            Ok(Output::of_positions(projection, "out", out, ColumnValues::Counts)
                .and_positions(projection, "in", of(|degree| u64::from(degree.incoming)), ColumnValues::Counts)
                .and_positions(projection, "both", of(degree::Degree::both), ColumnValues::Counts))
        })
    },
};

pub(super) const HARMONIC: AlgorithmInfo = AlgorithmInfo {
    name: "harmonic",
    summary: "How few edges lead to a vertex from the others: the sum of the inverse distances",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "harmonic", kind: ColumnKind::Numbers, meaning: "the sum of the inverse distances" },
    ],
    options: &[PATHS, SOME_SAMPLES, SEED, NORMALIZED, DIRECTED],
    state: StateBytes { position: 64, cell: 0 },
    plan: |given| {
        let measure = if given.flag("normalized", false)? { Measure::HarmonicMean } else { Measure::Harmonic };
        nearness(given, measure, "harmonic")
    },
};

pub(super) const HITS: AlgorithmInfo = AlgorithmInfo {
    name: "hits",
    summary: "Hubs lead to good authorities, and good hubs lead to authorities; the squares of each have the sum 1",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "hub", kind: ColumnKind::Numbers, meaning: "how good the vertices are that it leads to" },
        ColumnInfo {
            name: "authority",
            kind: ColumnKind::Numbers,
            meaning: "how good the vertices are that lead to it",
        },
    ],
    options: &[
        rounds("100"),
        OptionInfo {
            name: "tolerance",
            allowed: "a number from 0 on",
            default: Some("1e-8"),
            meaning: "end when all changes of the hubs of a round have at most this sum",
        },
        DIRECTED,
    ],
    state: StateBytes { position: 64, cell: 0 },
    plan: |given| {
        let (rounds, tolerance) = (given.rounds(100)?, given.number("tolerance", 1e-8, 0.0..=f64::MAX)?);
        given.on(None, move |projection| {
            let found = hits::run(projection, rounds, tolerance, given.team)?;
            let hubs = found.hubs.into_iter().map(Some).collect();
            Ok(Output::of_positions(projection, "hub", hubs, ColumnValues::Numbers).and_positions(
                projection,
                "authority",
                found.authorities,
                ColumnValues::Numbers,
            ))
        })
    },
};

pub(super) const KATZ: AlgorithmInfo = AlgorithmInfo {
    name: "katz",
    summary: "How many walks lead to a vertex, of which each further edge makes a walk count less",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "katz", kind: ColumnKind::Numbers, meaning: "the sum over all walks to it" },
    ],
    options: &[
        OptionInfo {
            name: "alpha",
            allowed: "a number from 0 on",
            default: Some("0.85 / the most edges that lead to a vertex"),
            meaning: "what each edge of a walk multiplies it with",
        },
        OptionInfo {
            name: "beta",
            allowed: "a number from 0 on",
            default: Some("1"),
            meaning: "what a walk without edges counts",
        },
        rounds("1000"),
        OptionInfo {
            name: "tolerance",
            allowed: "a number from 0 on",
            default: Some("1e-9"),
            meaning: "end when all changes of a round have at most this part of the sum of all values",
        },
        DIRECTED,
    ],
    state: StateBytes { position: 48, cell: 0 },
    plan: |given| {
        let defaults = KatzOptions::default();
        let numbers = 0.0..=f64::MAX;
        let options = KatzOptions {
            alpha: match given.get("alpha") {
                None => None,
                Some(_) => Some(given.number("alpha", 0.0, numbers.clone())?),
            },
            beta: given.number("beta", defaults.beta, numbers.clone())?,
            rounds: given.rounds(defaults.rounds)?,
            tolerance: given.number("tolerance", defaults.tolerance, numbers)?,
        };
        given.on(None, move |projection| {
            let values = katz::run(projection, &options, given.team)?.into_iter().map(Some);
            Ok(Output::of_positions(projection, "katz", values.collect(), ColumnValues::Numbers))
        })
    },
};

pub(super) const PAGERANK: AlgorithmInfo = AlgorithmInfo {
    name: "pagerank",
    summary: "How often a walk along random edges is at each vertex; the sum of all ranks is 1",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "rank", kind: ColumnKind::Numbers, meaning: "the part of all steps that end there" },
    ],
    options: &[
        OptionInfo {
            name: "damping",
            allowed: "a number from 0 to 1",
            default: Some("0.85"),
            meaning: "the probability of following an edge",
        },
        rounds("20"),
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
            meaning: "what happens to the rank of vertices without outgoing edges: over all vertices or to the sources, or nowhere",
        },
        OptionInfo { meaning: "the vertices at which the walk begins anew", ..SOURCES },
        WEIGHT,
        OptionInfo {
            name: "precision",
            allowed: "'double' or 'single'",
            default: Some("double"),
            meaning: "how exact ranks are: single is faster, and has about six digits",
        },
        DIRECTED,
    ],
    state: StateBytes { position: 40, cell: 0 },
    plan: |given| {
        let dangling = match given.text("dangling")? {
            None | Some("spread") => Dangling::Spread,
            Some("drop") => Dangling::Drop,
            Some(_) => return Err(given.misfit("dangling")),
        };
        let key = given.key("weight")?;
        let options = PageRankOptions {
            damping: given.number("damping", 0.85, 0.0..=1.0)?,
            rounds: given.rounds(20)?,
            tolerance: given.number("tolerance", 0.0, 0.0..=f64::MAX)?,
            dangling,
            weighted: key.is_some(),
            precision: match given.text("precision")? {
                None | Some("double") => Precision::Double,
                Some("single") => Precision::Single,
                Some(_) => return Err(given.misfit("precision")),
            },
        };
        given.check_sources()?;
        given.on(key, move |projection| {
            let found = match given.vertices("sources", projection)? {
                None => pagerank::run(projection, &options, given.team)?,
                Some(sources) => pagerank::personalized(projection, &options, &sources, given.team)?,
            };
            let ranks = found.ranks.into_iter().map(Some);
            Ok(Output::of_positions(projection, "rank", ranks.collect(), ColumnValues::Numbers))
        })
    },
};
