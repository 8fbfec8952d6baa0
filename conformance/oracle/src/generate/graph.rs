//! Random graphs, some of them sparse or empty, with self-loops, parallel edges, missing properties, keys with several
//! values, and meta-properties.

use mangrove_graph::{UserId, Value, VertexId};
use mangrove_gremlin::Cardinality;
use rand::Rng;
use rand::rngs::SmallRng;
use smol_str::SmolStr;

use super::schema::{self, EDGE_LABELS, KEYS, META_KEYS, MULTI_KEYS, VERTEX_LABELS};
use crate::graph::Graph;

/// The first id of edges. Ids of vertices begin at 1.
pub(crate) const EDGE_ID_MIN: i32 = 1_000;

pub(crate) fn random(rng: &mut SmallRng, vertex_count_max: usize) -> Graph {
    const FRESH: &str = "the ids of a new graph are all different";
    let mut graph = Graph::new();
    let vertex_count = if rng.random_bool(0.05) { 0 } else { rng.random_range(1..=vertex_count_max) };
    let mut vertices = Vec::new();
    for n in 0..vertex_count {
        let label = VERTEX_LABELS[rng.random_range(0..VERTEX_LABELS.len())];
        let vertex = graph.add_vertex(user_id(1 + n as i32), label).expect(FRESH);
        for key in KEYS.iter().filter(|k| k.on_vertices) {
            if rng.random_bool(0.7) {
                let value = schema::value(rng, &key.kind);
                let meta = if rng.random_bool(0.15) { metas(rng) } else { Vec::new() };
                graph.set_vertex_property(vertex, Cardinality::Single, key.name, value, &meta).expect(FRESH);
            }
        }
        for key in &MULTI_KEYS {
            let value_count = if rng.random_bool(0.4) { rng.random_range(1..4) } else { 0 };
            for _ in 0..value_count {
                let (value, meta) = (schema::value(rng, &key.kind), metas(rng));
                graph.set_vertex_property(vertex, Cardinality::List, key.name, value, &meta).expect(FRESH);
            }
        }
        vertices.push(vertex);
    }
    let edge_count = if vertices.is_empty() { 0 } else { rng.random_range(0..=vertex_count * 2) };
    for n in 0..edge_count {
        let (source, target) = ends(rng, &graph, &vertices);
        let label = EDGE_LABELS[rng.random_range(0..EDGE_LABELS.len())];
        let edge = graph.add_edge(user_id(EDGE_ID_MIN + n as i32), label, source, target).expect(FRESH);
        for key in KEYS.iter().filter(|k| !k.on_vertices) {
            if rng.random_bool(0.7) {
                let value = schema::value(rng, &key.kind);
                graph.set_edge_property(edge, key.name, value).expect(FRESH);
            }
        }
    }
    graph
}

/// Mostly two random vertices; sometimes one vertex twice, sometimes the ends of an earlier edge.
fn ends(rng: &mut SmallRng, graph: &Graph, vertices: &[VertexId]) -> (VertexId, VertexId) {
    let mut any = || vertices[rng.random_range(0..vertices.len())];
    let (source, target) = (any(), any());
    match rng.random_range(0..10) {
        0 => (source, source),
        1 => graph.edges().last().map_or((source, target), |(_, e)| (e.source, e.target)),
        _ => (source, target),
    }
}

/// A few meta-properties, often none.
fn metas(rng: &mut SmallRng) -> Vec<(SmolStr, Value)> {
    let mut chosen = Vec::new();
    for key in &META_KEYS {
        if rng.random_bool(0.4) {
            chosen.push((key.name.into(), schema::value(rng, &key.kind)));
        }
    }
    chosen
}

fn user_id(n: i32) -> Option<UserId> {
    UserId::from_value(&Value::I32(n))
}
