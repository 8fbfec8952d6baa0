//! Paths from vertices to others.

use mangrove_graph::VertexId;

use super::given::Given;
use super::output::{Column, ColumnInfo, ColumnKind, ColumnValues, Output, VERTEX};
use super::{AlgorithmInfo, DIRECTED, OF_VERTEX, OptionInfo, SOURCE, SOURCES, StateBytes, TARGET, WEIGHT};
use crate::algorithm::shortest_path::Path;
use crate::algorithm::{all_shortest_paths, bfs, k_hop, k_shortest_paths, shortest_path, sssp};
use crate::projection::Projection;

/// The most paths between two vertices.
const PATHS_MAX: i64 = 100_000;

/// A row of a pair of vertices: a target, and then an entry in three columns.
const ROW_OF_PAIR: u64 = 28;

/// The columns of paths.
const OF_PATH: &[ColumnInfo] = &[
    ColumnInfo { name: "path", kind: ColumnKind::VertexLists, meaning: "the vertices from the source to the target" },
    ColumnInfo {
        name: "length",
        kind: ColumnKind::Numbers,
        meaning: "the sum of the weights, or the number of edges without weights",
    },
];

/// A row for each path.
fn of_paths(projection: &Projection, paths: Vec<Path>) -> Output {
    let vertex = |at: &u32| projection.numbering().vertex(*at);
    let (mut ends, mut vertices, mut lengths) = (Vec::new(), Vec::<VertexId>::new(), Vec::new());
    for path in paths {
        vertices.extend(path.vertices.iter().map(vertex));
        ends.push(vertices.len());
        lengths.push(path.length);
    }
    let paths = Column { name: "path", values: ColumnValues::VertexLists { ends, vertices } };
    Output { columns: vec![paths, Column { name: "length", values: ColumnValues::Numbers(lengths) }] }
}

/// A greatest number of edges.
fn edges_max(given: &Given<'_>, name: &str, default: u32) -> mangrove_graph::Result<u32> {
    Ok(given.integer(name, i64::from(default), 0..=i64::from(u32::MAX))? as u32)
}

pub(super) const ALL_SHORTEST_PATHS: AlgorithmInfo = AlgorithmInfo {
    name: "all_shortest_paths",
    summary: "The number of edges on a shortest path from each vertex to each other one that it reaches",
    columns: &[
        ColumnInfo { name: "source", kind: ColumnKind::Vertices, meaning: "the first vertex" },
        ColumnInfo { name: "target", kind: ColumnKind::Vertices, meaning: "the last vertex" },
        ColumnInfo { name: "distance", kind: ColumnKind::Counts, meaning: "the number of edges, at least 1" },
    ],
    options: &[
        SOURCES,
        OptionInfo {
            name: "limit",
            allowed: "a whole number from 1 on",
            default: Some("10000000"),
            meaning: "the most rows; with more the algorithm fails",
        },
        DIRECTED,
    ],
    state: StateBytes { position: 24, cell: 0 },
    plan: |given| {
        let limit = given.integer("limit", 10_000_000, 1..=i64::MAX)? as usize;
        let sources = given.check_sources()?;
        let plan = given.on(None, move |projection| {
            let sources = given.sources(projection)?;
            let found = all_shortest_paths::run(projection, &sources, limit, given.team)?;
            let count = found.iter().map(|of_source| of_source.targets.len()).sum();
            let (mut from, mut to) = (Vec::with_capacity(count), Vec::with_capacity(count));
            let mut distances = Vec::with_capacity(count);
            let vertex = |at: u32| projection.numbering().vertex(at);
            // What has become a part of the columns is dropped.
            for of_source in found {
                given.team.check()?;
                from.extend(std::iter::repeat_n(vertex(of_source.source), of_source.targets.len()));
                to.extend(of_source.targets.iter().map(|target| vertex(*target)));
                distances.extend(of_source.rows().map(|(_, edges)| u64::from(edges)));
            }
            let source = Column { name: "source", values: ColumnValues::Vertices(from) };
            let target = Column { name: "target", values: ColumnValues::Vertices(to) };
            let distance = Column { name: "distance", values: ColumnValues::Counts(distances) };
            Ok(Output { columns: vec![source, target, distance] })
        })?;
        Ok(plan.with_results(move |vertices| {
            let rows = sources.map_or(vertices, |count| count as u64).saturating_mul(vertices).min(limit as u64);
            rows.saturating_mul(ROW_OF_PAIR)
        }))
    },
};

pub(super) const BFS: AlgorithmInfo = AlgorithmInfo {
    name: "bfs",
    summary: "The number of edges on a shortest path from a vertex to each one that it reaches",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "depth", kind: ColumnKind::Counts, meaning: "the number of edges from the source" },
        ColumnInfo {
            name: "parent",
            kind: ColumnKind::Vertices,
            meaning: "with the option 'parents', the vertex before it on a shortest path; of the source, itself",
        },
    ],
    options: &[
        SOURCE,
        OptionInfo {
            name: "max_depth",
            allowed: "a whole number from 0 on",
            default: Some("no limit"),
            meaning: "the depth of the farthest vertices that are found",
        },
        OptionInfo {
            name: "parents",
            allowed: "true or false",
            default: Some("false"),
            meaning: "whether there is a column 'parent'",
        },
        DIRECTED,
    ],
    state: StateBytes { position: 25, cell: 0 },
    plan: |given| {
        let (depth_max, wants_parents) = (edges_max(given, "max_depth", u32::MAX)?, given.flag("parents", false)?);
        given.needs_id("source")?;
        given.on(None, move |projection| {
            let source = given.vertex("source", projection)?;
            let depths = bfs::within(projection, source, bfs::Follow::Outgoing, depth_max, given.team)?;
            let parents = match wants_parents {
                true => Some(bfs::parents(projection, &depths, bfs::Follow::Outgoing, given.team)?),
                false => None,
            };
            let parents = parents.map(|mut parents| {
                parents[source as usize] = source;
                let known = parents.into_iter().filter(|parent| *parent != bfs::UNREACHED);
                known.map(|parent| projection.numbering().vertex(parent)).collect()
            });
            let depths = depths.into_iter().map(|depth| (depth != bfs::UNREACHED).then_some(u64::from(depth)));
            let mut output = Output::of_positions(projection, "depth", depths.collect(), ColumnValues::Counts);
            let parents = parents.map(|parents| Column { name: "parent", values: ColumnValues::Vertices(parents) });
            output.columns.extend(parents);
            Ok(output)
        })
    },
};

pub(super) const K_HOP: AlgorithmInfo = AlgorithmInfo {
    name: "k_hop",
    summary: "How many other vertices are at most k edges away from each vertex",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "count", kind: ColumnKind::Counts, meaning: "the number of vertices, itself left out" },
    ],
    options: &[
        OptionInfo {
            name: "k",
            allowed: "a whole number from 0 on",
            default: Some("2"),
            meaning: "the most edges of a path to a vertex that counts",
        },
        SOURCES,
        DIRECTED,
    ],
    state: StateBytes { position: 40, cell: 0 },
    plan: |given| {
        let edges = edges_max(given, "k", 2)?;
        given.check_sources()?;
        given.on(None, move |projection| {
            let sources = given.sources(projection)?;
            let counts = k_hop::run(projection, &sources, edges, given.team)?;
            let vertices = sources.iter().map(|at| projection.numbering().vertex(*at)).collect();
            let vertices = Column { name: VERTEX, values: ColumnValues::Vertices(vertices) };
            Ok(Output { columns: vec![vertices, Column { name: "count", values: ColumnValues::Counts(counts) }] })
        })
    },
};

pub(super) const K_SHORTEST_PATHS: AlgorithmInfo = AlgorithmInfo {
    name: "k_shortest_paths",
    summary: "The k shortest paths from a vertex to another one that visit no vertex twice, the shortest first",
    columns: OF_PATH,
    options: &[
        SOURCE,
        TARGET,
        OptionInfo {
            name: "k",
            allowed: "a whole number from 1 to 100000",
            default: Some("3"),
            meaning: "the most paths",
        },
        WEIGHT,
        DIRECTED,
    ],
    state: StateBytes { position: 24, cell: 0 },
    plan: |given| {
        let (key, count) = (given.key("weight")?, given.integer("k", 3, 1..=PATHS_MAX)? as usize);
        given.needs_id("source")?;
        given.needs_id("target")?;
        given.on(key, move |projection| {
            let ends = (given.vertex("source", projection)?, given.vertex("target", projection)?);
            let paths = k_shortest_paths::run(projection, ends, count, key.is_some(), given.team)?;
            Ok(of_paths(projection, paths))
        })
    },
};

pub(super) const SHORTEST_PATH: AlgorithmInfo = AlgorithmInfo {
    name: "shortest_path",
    summary: "A shortest path from a vertex to another one; no row if there is no path",
    columns: OF_PATH,
    options: &[SOURCE, TARGET, WEIGHT, DIRECTED],
    state: StateBytes { position: 32, cell: 0 },
    plan: |given| {
        let key = given.key("weight")?;
        given.needs_id("source")?;
        given.needs_id("target")?;
        given.on(key, move |projection| {
            let (source, target) = (given.vertex("source", projection)?, given.vertex("target", projection)?);
            let path = match key {
                None => shortest_path::fewest_edges(projection, source, target, given.team)?,
                Some(_) => shortest_path::least_weight(projection, source, target, given.team)?,
            };
            Ok(of_paths(projection, path.into_iter().collect()))
        })
    },
};

pub(super) const SSSP: AlgorithmInfo = AlgorithmInfo {
    name: "sssp",
    summary: "The length of a shortest path from a vertex to each one that it reaches",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "distance", kind: ColumnKind::Numbers, meaning: "the length from the source" },
    ],
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
        DIRECTED,
    ],
    state: StateBytes { position: 24, cell: 4 },
    plan: |given| {
        let key = given.key("weight")?.ok_or_else(|| given.missing("weight"))?;
        let delta = match given.get("delta") {
            None => None,
            Some(_) => Some(given.number("delta", 1.0, f64::MIN_POSITIVE..=f64::MAX)?),
        };
        given.needs_id("source")?;
        given.on(Some(key), move |projection| {
            let source = given.vertex("source", projection)?;
            let distances = sssp::run(projection, source, delta, given.team)?;
            let distances = distances.into_iter().map(|distance| distance.is_finite().then_some(distance));
            Ok(Output::of_positions(projection, "distance", distances.collect(), ColumnValues::Numbers))
        })
    },
};
