//! Paths from vertices to others.

use super::output::{ColumnInfo, ColumnKind, ColumnValues, Output};
use super::{AlgorithmInfo, DIRECTED, OF_VERTEX, OptionInfo, SOURCE, StateBytes};
use crate::algorithm::{bfs, sssp};

pub(super) const BFS: AlgorithmInfo = AlgorithmInfo {
    name: "bfs",
    summary: "The number of edges on a shortest path from a vertex to each one that it reaches",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "depth", kind: ColumnKind::Counts, meaning: "the number of edges from the source" },
    ],
    options: &[SOURCE, DIRECTED],
    state: StateBytes { position: 13, cell: 0 },
    run: |given| {
        let projection = given.projection(None)?;
        let source = given.vertex("source", &projection)?;
        let depths = bfs::run(&projection, source, bfs::Follow::Outgoing, given.team)?;
        let depths = depths.into_iter().map(|depth| (depth != bfs::UNREACHED).then_some(u64::from(depth)));
        Ok(Output::of_positions(&projection, "depth", depths.collect(), ColumnValues::Counts))
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
    run: |given| {
        let key = given.key("weight")?.ok_or_else(|| given.missing("weight"))?;
        let delta = match given.get("delta") {
            None => None,
            Some(_) => Some(given.number("delta", 1.0, f64::MIN_POSITIVE..=f64::MAX)?),
        };
        let projection = given.projection(Some(key))?;
        let source = given.vertex("source", &projection)?;
        let distances = sssp::run(&projection, source, delta, given.team)?;
        let distances = distances.into_iter().map(|distance| distance.is_finite().then_some(distance));
        Ok(Output::of_positions(&projection, "distance", distances.collect(), ColumnValues::Numbers))
    },
};
