//! Which vertices are alike, and what programs learn that from.

use super::output::{Column, ColumnInfo, ColumnKind, ColumnValues, Output, VERTEX, made};
use super::{AlgorithmInfo, DIRECTED, OF_VERTEX, OptionInfo, SEED, SOURCES, StateBytes};
use crate::algorithm::fast_rp::{self, FastRpOptions};
use crate::algorithm::random_walks::{self, WalkOptions};
use crate::algorithm::similarity::{self, Measure, SimilarityOptions};

/// Vectors between two looks whether the query has ended.
const VECTORS_A_CHECK: usize = 1 << 10;

pub(super) const FAST_RP: AlgorithmInfo = AlgorithmInfo {
    name: "fast_rp",
    summary: "A vector for each vertex, so that vertices with similar neighborhoods have similar vectors",
    columns: &[OF_VERTEX, ColumnInfo { name: "embedding", kind: ColumnKind::Vectors, meaning: "the vector" }],
    options: &[
        OptionInfo {
            name: "dimensions",
            allowed: "a whole number from 1 to 4096",
            default: Some("128"),
            meaning: "the numbers of a vector",
        },
        OptionInfo {
            name: "weights",
            allowed: "a list of numbers",
            default: Some("[0, 1, 1]"),
            meaning: "what the neighbors count, their neighbors, and so on",
        },
        OptionInfo {
            name: "own_weight",
            allowed: "a number",
            default: Some("0"),
            meaning: "what the random vector of the vertex itself counts",
        },
        OptionInfo {
            name: "degree_power",
            allowed: "a number from -10 to 10",
            default: Some("0"),
            meaning: "the exponent of the number of edges: below 0, vertices with many edges count less",
        },
        SEED,
        DIRECTED,
    ],
    // With vectors of 128 numbers.
    state: StateBytes { position: 2_112, cell: 0 },
    plan: |given| {
        let defaults = FastRpOptions::default();
        let weights = given.numbers("weights")?;
        let weights = weights.map(|weights| weights.into_iter().map(|weight| weight as f32).collect());
        let options = FastRpOptions {
            width: given.integer("dimensions", defaults.width as i64, 1..=4_096)? as usize,
            weights: weights.unwrap_or(defaults.weights),
            own_weight: given.number("own_weight", 0.0, f64::from(f32::MIN)..=f64::from(f32::MAX))? as f32,
            degree_power: given.number("degree_power", 0.0, -10.0..=10.0)? as f32,
            seed: given.seed()?,
        };
        // The vectors of two rounds, their sum, and the results.
        let state = StateBytes { position: 64 + 16 * options.width as u64, cell: 0 };
        let plan = given.on(None, move |projection| {
            let vectors = fast_rp::run(projection, &options, given.team)?;
            let numbering = projection.numbering();
            let count = numbering.vertex_count() as usize;
            // All room at once: to move a hundred megabytes takes too long for a query that is to end.
            let (mut vertices, mut numbers) = (Vec::with_capacity(count), Vec::with_capacity(count * options.width));
            for at in numbering.present(0..numbering.positions()) {
                if vertices.len() % VECTORS_A_CHECK == 0 {
                    given.team.check()?;
                }
                vertices.push(numbering.vertex(at));
                numbers.extend_from_slice(&vectors[at as usize * options.width..][..options.width]);
            }
            let vertices = Column { name: VERTEX, values: ColumnValues::Vertices(vertices) };
            let vectors = Column { name: "embedding", values: ColumnValues::Vectors { width: options.width, numbers } };
            Ok(Output { columns: vec![vertices, vectors] })
        })?;
        Ok(plan.with_state(state))
    },
};

pub(super) const RANDOM_WALKS: AlgorithmInfo = AlgorithmInfo {
    name: "random_walks",
    summary: "Random walks from each vertex, which stay near it or move away as p and q say (node2vec)",
    columns: &[ColumnInfo {
        name: "walk",
        kind: ColumnKind::VertexLists,
        meaning: "the vertices of the walk, of which the first is its source",
    }],
    options: &[
        SOURCES,
        OptionInfo {
            name: "walks",
            allowed: "a whole number from 1 on",
            default: Some("10"),
            meaning: "the walks from each source",
        },
        OptionInfo {
            name: "steps",
            allowed: "a whole number from 0 on",
            default: Some("80"),
            meaning: "the most edges of a walk",
        },
        OptionInfo {
            name: "p",
            allowed: "a number above 0",
            default: Some("1"),
            meaning: "the larger, the seldomer a walk goes back to where it came from",
        },
        OptionInfo {
            name: "q",
            allowed: "a number above 0",
            default: Some("1"),
            meaning: "the larger, the seldomer a walk goes away from where it came from",
        },
        SEED,
        OptionInfo {
            name: "limit",
            allowed: "a whole number from 1 on",
            default: Some("100000000"),
            meaning: "the most vertices that all walks may have together; with more the algorithm fails",
        },
        DIRECTED,
    ],
    // With ten walks of 80 steps.
    state: StateBytes { position: 13_000, cell: 4 },
    plan: |given| {
        let defaults = WalkOptions::default();
        let above_zero = f64::MIN_POSITIVE..=f64::MAX;
        let options = WalkOptions {
            walks: given.integer("walks", defaults.walks as i64, 1..=i64::MAX)? as usize,
            steps: given.integer("steps", defaults.steps as i64, 0..=i64::MAX)? as usize,
            p: given.number("p", defaults.p, above_zero.clone())?,
            q: given.number("q", defaults.q, above_zero)?,
            seed: given.seed()?,
            limit: given.integer("limit", defaults.limit as i64, 1..=i64::MAX)? as u64,
        };
        let sources = given.check_sources()?;
        let plan = given.on(None, move |projection| {
            let sources = given.sources(projection)?;
            let walks = random_walks::run(projection, &sources, &options, given.team)?;
            let vertices = made(&walks.positions, given.team, |at| projection.numbering().vertex(*at))?;
            let values = ColumnValues::VertexLists { ends: walks.ends, vertices };
            Ok(Output { columns: vec![Column { name: "walk", values }] })
        })?;
        // The walks as positions, and as vertices.
        let of_source =
            (options.steps as u64).saturating_add(1).saturating_mul(options.walks as u64).saturating_mul(16);
        Ok(match sources {
            None => plan.with_state(StateBytes { position: of_source.saturating_add(40), cell: 4 }),
            Some(count) => plan
                .with_state(StateBytes { position: 40, cell: 4 })
                .with_results(move |_| of_source.saturating_mul(count as u64)),
        })
    },
};

pub(super) const SIMILARITY: AlgorithmInfo = AlgorithmInfo {
    name: "similarity",
    summary: "For each vertex the other ones that lead to the same neighbors, the most similar first",
    columns: &[
        ColumnInfo { name: "one", kind: ColumnKind::Vertices, meaning: "the vertex" },
        ColumnInfo { name: "other", kind: ColumnKind::Vertices, meaning: "one that is similar to it" },
        ColumnInfo { name: "similarity", kind: ColumnKind::Numbers, meaning: "above 0, and at most 1" },
    ],
    options: &[
        OptionInfo {
            name: "measure",
            allowed: "'jaccard', 'overlap' or 'cosine'",
            default: Some("jaccard"),
            meaning: "what the number of common neighbors is divided by: those of both, of the one with fewer, or the geometric mean",
        },
        OptionInfo {
            name: "top",
            allowed: "a whole number from 1 on",
            default: Some("10"),
            meaning: "the most rows of a vertex",
        },
        OptionInfo {
            name: "least",
            allowed: "a number from 0 to 1",
            default: Some("0"),
            meaning: "the least similarity of a row",
        },
        OptionInfo {
            name: "min_degree",
            allowed: "a whole number from 1 on",
            default: Some("1"),
            meaning: "vertices with fewer neighbors are left out",
        },
        OptionInfo {
            name: "max_degree",
            allowed: "a whole number from 1 on",
            default: Some("no limit"),
            meaning: "vertices with more neighbors are left out",
        },
        DIRECTED,
    ],
    // With ten rows a vertex.
    state: StateBytes { position: 500, cell: 16 },
    plan: |given| {
        let measure = match given.text("measure")? {
            None | Some("jaccard") => Measure::Jaccard,
            Some("overlap") => Measure::Overlap,
            Some("cosine") => Measure::Cosine,
            Some(_) => return Err(given.misfit("measure")),
        };
        let count = |name: &str, default: i64| -> mangrove_graph::Result<usize> {
            Ok(given.integer(name, default, 1..=i64::MAX)? as usize)
        };
        let options = SimilarityOptions {
            measure,
            top: count("top", 10)?,
            least: given.number("least", 0.0, 0.0..=1.0)?,
            degrees: count("min_degree", 1)?..=count("max_degree", i64::MAX)?,
        };
        given.on(None, move |projection| {
            let rows = similarity::run(projection, &options, given.team)?;
            let vertex = |at: u32| projection.numbering().vertex(at);
            let one = ColumnValues::Vertices(made(&rows, given.team, |row| vertex(row.one))?);
            let other = ColumnValues::Vertices(made(&rows, given.team, |row| vertex(row.other))?);
            let similarity = ColumnValues::Numbers(made(&rows, given.team, |row| row.similarity)?);
            let columns = [("one", one), ("other", other), ("similarity", similarity)];
            Ok(Output { columns: columns.into_iter().map(|(name, values)| Column { name, values }).collect() })
        })
    },
};
