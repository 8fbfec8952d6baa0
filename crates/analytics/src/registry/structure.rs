//! How densely a graph is connected.
//!
//! Edges have no direction for these, so they take projections without.

use mangrove_graph::Result;

use super::given::Given;
use super::output::{Column, ColumnInfo, ColumnKind, ColumnValues, Output};
use super::plan::Plan;
use super::{AlgorithmInfo, OF_VERTEX, OptionInfo, SEED, StateBytes, WEIGHT};
use crate::algorithm::forest::{Extreme, ForestEdge};
use crate::algorithm::k_truss::TrussEdge;
use crate::algorithm::matching::UNMATCHED;
use crate::algorithm::{coloring, forest, independent_set, k_core, k_truss, matching, triangles};
use crate::projection::{Orientation, Projection};

/// A row for each vertex with a whole number.
fn counts<'g>(
    given: &'g Given<'g>,
    name: &'static str,
    run: impl FnOnce(&Projection) -> Result<Vec<u64>> + 'g,
) -> Result<Plan<'g>> {
    given.on_rows(Orientation::Undirected, None, move |projection| {
        let counts = run(projection)?.into_iter().map(Some).collect();
        Ok(Output::of_positions(projection, name, counts, ColumnValues::Counts))
    })
}

pub(super) const COLORING: AlgorithmInfo = AlgorithmInfo {
    name: "coloring",
    summary: "A color for each vertex, a number from 0 on, so that neighbors have different ones",
    columns: &[OF_VERTEX, ColumnInfo { name: "color", kind: ColumnKind::Counts, meaning: "the color" }],
    options: &[SEED],
    state: StateBytes { position: 56, cell: 8 },
    plan: |given| {
        let seed = given.seed()?;
        counts(given, "color", move |projection| {
            Ok(coloring::run(projection, seed, given.team)?.into_iter().map(u64::from).collect())
        })
    },
};

pub(super) const FOREST: AlgorithmInfo = AlgorithmInfo {
    name: "forest",
    summary: "As few edges as connect what is connected, with the least or the greatest sum of weights",
    columns: &[
        ColumnInfo { name: "source", kind: ColumnKind::Vertices, meaning: "one end of an edge" },
        ColumnInfo { name: "target", kind: ColumnKind::Vertices, meaning: "the other end" },
        ColumnInfo { name: "weight", kind: ColumnKind::Numbers, meaning: "its weight" },
    ],
    options: &[
        WEIGHT,
        OptionInfo {
            name: "sum",
            allowed: "'least' or 'greatest'",
            default: Some("least"),
            meaning: "which sum of the weights is wanted",
        },
    ],
    state: StateBytes { position: 80, cell: 0 },
    plan: |given| {
        let extreme = match given.text("sum")? {
            None | Some("least") => Extreme::Least,
            Some("greatest") => Extreme::Greatest,
            Some(_) => return Err(given.misfit("sum")),
        };
        given.on_rows(Orientation::Undirected, given.key("weight")?, move |projection| {
            let edges = forest::run(projection, extreme, given.team)?;
            let ends = |of: fn(&ForestEdge) -> u32| {
                ColumnValues::Vertices(edges.iter().map(|edge| projection.numbering().vertex(of(edge))).collect())
            };
            let weights = ColumnValues::Numbers(edges.iter().map(|edge| edge.weight).collect());
            Ok(Output {
                columns: vec![
                    Column { name: "source", values: ends(|edge| edge.ends.0) },
                    Column { name: "target", values: ends(|edge| edge.ends.1) },
                    Column { name: "weight", values: weights },
                ],
            })
        })
    },
};

pub(super) const INDEPENDENT_SET: AlgorithmInfo = AlgorithmInfo {
    name: "independent_set",
    summary: "Vertices of which no two are neighbors, and to which none can be added",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "member", kind: ColumnKind::Counts, meaning: "1 if the vertex is in the set, and 0 if not" },
    ],
    options: &[SEED],
    state: StateBytes { position: 56, cell: 8 },
    plan: |given| {
        let seed = given.seed()?;
        counts(given, "member", move |projection| {
            Ok(independent_set::run(projection, seed, given.team)?.into_iter().map(u64::from).collect())
        })
    },
};

pub(super) const K_CORE: AlgorithmInfo = AlgorithmInfo {
    name: "k_core",
    summary: "The greatest k for each vertex, so that it is in a part of the graph where all have k neighbors or more",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "core", kind: ColumnKind::Counts, meaning: "the number of the densest core" },
    ],
    options: &[],
    state: StateBytes { position: 48, cell: 8 },
    plan: |given| {
        counts(given, "core", move |projection| {
            Ok(k_core::run(projection, given.team)?.into_iter().map(u64::from).collect())
        })
    },
};

pub(super) const K_TRUSS: AlgorithmInfo = AlgorithmInfo {
    name: "k_truss",
    summary: "The greatest k for each vertex, so that an edge of it is in a part where all edges are in k - 2 triangles",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "truss", kind: ColumnKind::Counts, meaning: "the greatest number of its edges" },
    ],
    options: &[],
    state: StateBytes { position: 64, cell: 30 },
    plan: |given| {
        counts(given, "truss", move |projection| {
            Ok(k_truss::run(projection, given.team)?.of_positions.into_iter().map(u64::from).collect())
        })
    },
};

pub(super) const K_TRUSS_EDGES: AlgorithmInfo = AlgorithmInfo {
    name: "k_truss_edges",
    summary: "The greatest k for each pair of neighbors, so that it is in a part where all pairs are in k - 2 triangles",
    columns: &[
        ColumnInfo { name: "source", kind: ColumnKind::Vertices, meaning: "one end of an edge" },
        ColumnInfo { name: "target", kind: ColumnKind::Vertices, meaning: "the other end" },
        ColumnInfo { name: "truss", kind: ColumnKind::Counts, meaning: "its number, 2 or more" },
    ],
    options: &[],
    state: StateBytes { position: 64, cell: 60 },
    plan: |given| {
        given.on_rows(Orientation::Undirected, None, move |projection| {
            let edges = k_truss::run(projection, given.team)?.edges;
            let ends = |of: fn(&TrussEdge) -> u32| {
                ColumnValues::Vertices(edges.iter().map(|edge| projection.numbering().vertex(of(edge))).collect())
            };
            let numbers = ColumnValues::Counts(edges.iter().map(|edge| u64::from(edge.number)).collect());
            Ok(Output {
                columns: vec![
                    Column { name: "source", values: ends(|edge| edge.ends.0) },
                    Column { name: "target", values: ends(|edge| edge.ends.1) },
                    Column { name: "truss", values: numbers },
                ],
            })
        })
    },
};

pub(super) const MATCHING: AlgorithmInfo = AlgorithmInfo {
    name: "matching",
    summary: "A partner for vertices along edges of great weight, so that none has two; others have no row",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "partner", kind: ColumnKind::Vertices, meaning: "the vertex that it is matched with" },
    ],
    options: &[WEIGHT, SEED],
    state: StateBytes { position: 56, cell: 0 },
    plan: |given| {
        let seed = given.seed()?;
        given.on_rows(Orientation::Undirected, given.key("weight")?, move |projection| {
            let partners = matching::run(projection, seed, given.team)?.into_iter();
            let vertex = |at: u32| (at != UNMATCHED).then(|| projection.numbering().vertex(at));
            Ok(Output::of_positions(projection, "partner", partners.map(vertex).collect(), ColumnValues::Vertices))
        })
    },
};

pub(super) const TRIANGLES: AlgorithmInfo = AlgorithmInfo {
    name: "triangles",
    summary: "How many pairs of neighbors of each vertex are neighbors of each other",
    columns: &[OF_VERTEX, ColumnInfo { name: "triangles", kind: ColumnKind::Counts, meaning: "the number of pairs" }],
    options: &[],
    state: StateBytes { position: 56, cell: 12 },
    plan: |given| {
        counts(given, "triangles", move |projection| Ok(triangles::run(projection, given.team)?.of_positions))
    },
};
