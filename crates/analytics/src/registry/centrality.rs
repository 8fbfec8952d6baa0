//! How important a vertex is.

use super::output::{ColumnInfo, ColumnKind, ColumnValues, Output};
use super::{AlgorithmInfo, DIRECTED, OF_VERTEX, OptionInfo, StateBytes, rounds};
use crate::algorithm::pagerank::{self, Dangling, PageRankOptions};

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
            meaning: "what happens to the rank of vertices without outgoing edges: over all vertices, or nowhere",
        },
        DIRECTED,
    ],
    state: StateBytes { position: 40, cell: 0 },
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
        Ok(Output::of_positions(&projection, "rank", ranks.collect(), ColumnValues::Numbers))
    },
};
