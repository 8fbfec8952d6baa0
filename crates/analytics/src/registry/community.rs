//! Which vertices belong together.

use mangrove_graph::Result;

use super::given::{Given, least_ids, positions_by_id};
use super::output::{ColumnInfo, ColumnKind, ColumnValues, Output};
use super::plan::Plan;
use super::{AlgorithmInfo, DIRECTED, OF_VERTEX, OptionInfo, SEED, StateBytes, rounds};
use crate::algorithm::louvain::{Communities, ModularityOptions};
use crate::algorithm::{cdlp, lcc, leiden, louvain, peer_pressure, scc, wcc};
use crate::projection::{Orientation, Projection};
use crate::team::Team;

const COMPONENT: ColumnInfo = ColumnInfo {
    name: "component",
    kind: ColumnKind::Vertices,
    meaning: "the vertex of the least id in the component",
};

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
    plan: |given| {
        let rounds = given.rounds(10)?;
        given.on(None, move |projection| {
            let by_id = positions_by_id(given.view, projection.numbering(), given.team)?;
            let mut labels = vec![0; projection.positions()];
            by_id.iter().enumerate().for_each(|(rank, at)| labels[*at as usize] = rank as u64);
            let labels = cdlp::run(projection, labels, rounds, given.team)?;
            let vertex = |rank: u64| Some(projection.numbering().vertex(by_id[rank as usize]));
            let communities = (0..labels.len() as u32)
                .map(|at| projection.numbering().exists(at).then(|| labels[at as usize]).and_then(vertex));
            Ok(Output::of_positions(projection, "community", communities.collect(), ColumnValues::Vertices))
        })
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
    state: StateBytes { position: 56, cell: 28 },
    plan: |given| {
        given.on(None, move |projection| {
            let coefficients = lcc::run(projection, given.team)?.into_iter().map(Some);
            Ok(Output::of_positions(projection, "coefficient", coefficients.collect(), ColumnValues::Numbers))
        })
    },
};

const COMMUNITY: ColumnInfo = ColumnInfo {
    name: "community",
    kind: ColumnKind::Vertices,
    meaning: "the vertex of the least id in the community",
};

const MODULARITY_OPTIONS: &[OptionInfo] = &[
    OptionInfo {
        name: "weight",
        allowed: "a property key",
        default: Some("all edges have the weight 1"),
        meaning: "the property of edges that is their weight, from 0 on; an edge without it has the weight 1",
    },
    OptionInfo {
        name: "resolution",
        allowed: "a number from 0 on",
        default: Some("1"),
        meaning: "with more, communities are smaller",
    },
    SEED,
    OptionInfo {
        name: "levels",
        allowed: "a whole number from 1 on",
        default: Some("32"),
        meaning: "the most levels: how often communities become the vertices of a smaller graph",
    },
];

type FindCommunities = fn(&Projection, &ModularityOptions, &Team) -> Result<Communities>;

fn communities<'g>(given: &'g Given<'g>, find: FindCommunities) -> Result<Plan<'g>> {
    let default = ModularityOptions::default();
    let options = ModularityOptions {
        resolution: given.number("resolution", default.resolution, 0.0..=f64::MAX)?,
        seed: given.seed()?,
        levels: given.integer("levels", i64::from(default.levels), 1..=i64::from(u32::MAX))? as u32,
    };
    given.on_rows(Orientation::Undirected, given.key("weight")?, move |projection| {
        let found = find(projection, &options, given.team)?.of_positions;
        let communities = least_ids(given.view, projection, &found, given.team)?;
        Ok(Output::of_positions(projection, "community", communities, ColumnValues::Vertices))
    })
}

pub(super) const LEIDEN: AlgorithmInfo = AlgorithmInfo {
    name: "leiden",
    summary: "A community for each vertex, so that their modularity is high and each is connected",
    columns: &[OF_VERTEX, COMMUNITY],
    options: MODULARITY_OPTIONS,
    state: StateBytes { position: 160, cell: 30 },
    plan: |given| communities(given, leiden::run),
};

pub(super) const LOUVAIN: AlgorithmInfo = AlgorithmInfo {
    name: "louvain",
    summary: "A community for each vertex, so that their modularity is high",
    columns: &[OF_VERTEX, COMMUNITY],
    options: MODULARITY_OPTIONS,
    state: StateBytes { position: 120, cell: 30 },
    plan: |given| communities(given, louvain::run),
};

pub(super) const PEER_PRESSURE: AlgorithmInfo = AlgorithmInfo {
    name: "peer_pressure",
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
    plan: |given| {
        let rounds = given.rounds(30)?;
        given.on(None, move |projection| {
            let by_id = positions_by_id(given.view, projection.numbering(), given.team)?;
            let (mut labels, mut strengths) = (vec![0; projection.positions()], vec![0.0; projection.positions()]);
            for (rank, at) in by_id.iter().enumerate() {
                (labels[*at as usize], strengths[*at as usize]) = (rank as u64, 1.0);
            }
            let clusters = peer_pressure::run(projection, &labels, &strengths, rounds, given.team)?;
            let vertex = |rank: u64| Some(projection.numbering().vertex(by_id[rank as usize]));
            let clusters = (0..clusters.len() as u32)
                .map(|at| projection.numbering().exists(at).then(|| clusters[at as usize]).and_then(vertex));
            Ok(Output::of_positions(projection, "cluster", clusters.collect(), ColumnValues::Vertices))
        })
    },
};

pub(super) const SCC: AlgorithmInfo = AlgorithmInfo {
    name: "scc",
    summary: "A strong component for each vertex: the vertices that paths connect in both directions",
    columns: &[OF_VERTEX, COMPONENT],
    options: &[DIRECTED],
    state: StateBytes { position: 96, cell: 0 },
    plan: |given| {
        given.on(None, move |projection| {
            let components = scc::run(projection, given.team)?;
            let components = least_ids(given.view, projection, &components, given.team)?;
            Ok(Output::of_positions(projection, "component", components, ColumnValues::Vertices))
        })
    },
};

pub(super) const WCC: AlgorithmInfo = AlgorithmInfo {
    name: "wcc",
    summary: "A component for each vertex: the vertices that edges connect, whatever their direction",
    columns: &[OF_VERTEX, COMPONENT],
    options: &[DIRECTED],
    state: StateBytes { position: 64, cell: 0 },
    plan: |given| {
        given.on(None, move |projection| {
            let components = wcc::run(projection, given.team)?;
            let components = least_ids(given.view, projection, &components, given.team)?;
            Ok(Output::of_positions(projection, "component", components, ColumnValues::Vertices))
        })
    },
};
