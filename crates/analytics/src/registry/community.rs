//! Which vertices belong together.

use super::given::positions_by_id;
use super::output::{ColumnInfo, ColumnKind, ColumnValues, Output};
use super::{AlgorithmInfo, DIRECTED, OF_VERTEX, StateBytes, rounds};
use crate::algorithm::{cdlp, lcc, peer_pressure, wcc};

pub(super) const CDLP: AlgorithmInfo = AlgorithmInfo {
    name: "cdlp",
    summary: "A community for each vertex, by the labels that most of its neighbors have",
    columns: &[
        OF_VERTEX,
        ColumnInfo {
            name: "community",
            kind: ColumnKind::Vertices,
            meaning: "the vertex whose label the community has",
        },
    ],
    options: &[rounds("10"), DIRECTED],
    state: StateBytes { position: 64, cell: 0 },
    run: |given| {
        let projection = given.projection(None)?;
        let by_id = positions_by_id(given.view, projection.numbering())?;
        let mut labels = vec![0; projection.positions()];
        by_id.iter().enumerate().for_each(|(rank, at)| labels[*at as usize] = rank as u64);
        let labels = cdlp::run(&projection, labels, given.rounds(10)?, given.team)?;
        let vertex = |rank: u64| Some(projection.numbering().vertex(by_id[rank as usize]));
        let communities = (0..labels.len() as u32)
            .map(|at| projection.numbering().exists(at).then(|| labels[at as usize]).and_then(vertex));
        Ok(Output::of_positions(&projection, "community", communities.collect(), ColumnValues::Vertices))
    },
};

pub(super) const LCC: AlgorithmInfo = AlgorithmInfo {
    name: "lcc",
    summary: "How many of the edges that the neighbors of a vertex may have among them are there, from 0 to 1",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "coefficient", kind: ColumnKind::Numbers, meaning: "the part that is there" },
    ],
    options: &[DIRECTED],
    state: StateBytes { position: 32, cell: 12 },
    run: |given| {
        let projection = given.projection(None)?;
        let coefficients = lcc::run(&projection, given.team)?.into_iter().map(Some);
        Ok(Output::of_positions(&projection, "coefficient", coefficients.collect(), ColumnValues::Numbers))
    },
};

pub(super) const PEER_PRESSURE: AlgorithmInfo = AlgorithmInfo {
    name: "peerpressure",
    summary: "A cluster for each vertex: the one that most of the vertices that point at it vote for",
    columns: &[
        OF_VERTEX,
        ColumnInfo {
            name: "cluster",
            kind: ColumnKind::Vertices,
            meaning: "the vertex that the cluster is named after",
        },
    ],
    options: &[rounds("30"), DIRECTED],
    state: StateBytes { position: 72, cell: 0 },
    run: |given| {
        let projection = given.projection(None)?;
        let by_id = positions_by_id(given.view, projection.numbering())?;
        let (mut labels, mut strengths) = (vec![0; projection.positions()], vec![0.0; projection.positions()]);
        for (rank, at) in by_id.iter().enumerate() {
            (labels[*at as usize], strengths[*at as usize]) = (rank as u64, 1.0);
        }
        let clusters = peer_pressure::run(&projection, &labels, &strengths, given.rounds(30)?, given.team)?;
        let vertex = |rank: u64| Some(projection.numbering().vertex(by_id[rank as usize]));
        let clusters = (0..clusters.len() as u32)
            .map(|at| projection.numbering().exists(at).then(|| clusters[at as usize]).and_then(vertex));
        Ok(Output::of_positions(&projection, "cluster", clusters.collect(), ColumnValues::Vertices))
    },
};

pub(super) const WCC: AlgorithmInfo = AlgorithmInfo {
    name: "wcc",
    summary: "A component for each vertex: the vertices that edges connect, whatever their direction",
    columns: &[
        OF_VERTEX,
        ColumnInfo { name: "component", kind: ColumnKind::Vertices, meaning: "a vertex of the component" },
    ],
    options: &[DIRECTED],
    state: StateBytes { position: 16, cell: 0 },
    run: |given| {
        let projection = given.projection(None)?;
        let numbering = projection.numbering();
        let vertex = |at: u32| numbering.exists(at).then(|| numbering.vertex(at));
        let components = wcc::run(&projection, given.team)?.into_iter().map(vertex);
        Ok(Output::of_positions(&projection, "component", components.collect(), ColumnValues::Vertices))
    },
};
