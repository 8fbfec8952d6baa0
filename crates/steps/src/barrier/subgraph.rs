//! `subgraph()`: edges and the vertices at their ends, gathered in a side effect.
//!
//! What is gathered are ids. The elements with their properties are read when the graph leaves as a result; until then
//! it is small, and every step sees the same graph.

use std::sync::Arc;

use hashbrown::HashSet;
use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::{EdgeId, Error, GraphValue, Result, Value, VertexId};
use mangrove_plan::logical::Name;

use crate::barrier::held::HeldRows;
use crate::environment::Environment;
use crate::rows::{Column, Rows};

/// What an element of the graph costs, with its place among those that are known.
const ELEMENT_BYTES: u64 = size_of::<Value>() as u64 + 16;

type Known<T> = HashSet<T, foldhash::fast::RandomState>;

/// Adds the edge of every row to a side effect when all rows have come, then lets the rows go on.
pub struct Subgraph {
    name: Name,
    held: HeldRows,
    /// What the side effect holds, as far as this operator has seen.
    vertices: Known<VertexId>,
    edges: Known<EdgeId>,
}

impl Subgraph {
    /// Gathers in this side effect.
    pub fn new(name: Name) -> Self {
        Subgraph { name, held: HeldRows::default(), vertices: Known::default(), edges: Known::default() }
    }

    /// Adds edges that are not there yet, and their ends.
    fn gather(&mut self, graph: &mut GraphValue, edges: &[EdgeId], environment: &Environment) -> Result<usize> {
        // Others may have added to the same graph; members only come.
        self.vertices.extend(graph.vertices.iter().skip(self.vertices.len()).filter_map(vertex));
        self.edges.extend(graph.edges.iter().skip(self.edges.len()).filter_map(edge));
        let before = graph.vertices.len() + graph.edges.len();
        let new: Vec<EdgeId> = edges.iter().copied().filter(|edge| self.edges.insert(*edge)).collect();
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        environment.view.edge_ends(&new, &mut sources, &mut targets)?;
        for end in sources.iter().zip(&targets).flat_map(|(source, target)| [*source, *target]) {
            if self.vertices.insert(end) {
                graph.vertices.push(end.into());
            }
        }
        graph.edges.extend(new.into_iter().map(Value::from));
        Ok(graph.vertices.len() + graph.edges.len() - before)
    }
}

fn vertex(value: &Value) -> Option<VertexId> {
    match value {
        Value::Vertex(id) => Some(*id),
        _ => None,
    }
}

fn edge(value: &Value) -> Option<EdgeId> {
    match value {
        Value::Edge(id) => Some(*id),
        _ => None,
    }
}

/// The edges that rows hold; anything else is refused.
fn edges_of(objects: &Column) -> Result<Vec<EdgeId>> {
    let refused = |kind: &str| {
        Error::evaluation(format!(
            "subgraph() gathers edges, and met a {kind}; the vertices at their ends come with them: use outE(), inE() \
             or bothE() before it"
        ))
    };
    match objects {
        Column::Edges(ids) => Ok(ids.clone()),
        Column::Vertices(ids) if ids.is_empty() => Ok(Vec::new()),
        Column::Vertices(_) => Err(refused("vertex")),
        Column::Values(values) => {
            values.iter().map(|value| edge(value).ok_or_else(|| refused(value.type_name()))).collect()
        }
    }
}

impl Operator<Rows> for Subgraph {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let empty = || Value::Graph(Arc::new(GraphValue::default()));
        environment.side_effects.update(&self.name, |old| Ok(old.unwrap_or_else(empty)))
    }

    fn rest(&mut self) -> bool {
        self.vertices = Known::default();
        self.edges = Known::default();
        self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(rows) = self.held.take(group, out) {
            let edges = edges_of(&rows.objects)?;
            let (name, environment) = (self.name.clone(), out.surroundings());
            let mut added = 0;
            environment.side_effects.update(&name, |old| match old {
                None => Err(Error::bug("a side effect that was begun is there")),
                Some(Value::Graph(graph)) => {
                    let mut graph = Arc::unwrap_or_clone(graph);
                    added = self.gather(&mut graph, &edges, environment)?;
                    Ok(Value::Graph(Arc::new(graph)))
                }
                Some(other) => Err(Error::evaluation(format!(
                    "subgraph(\"{name}\") needs a graph in the side effect and met a {}",
                    other.type_name()
                ))),
            })?;
            // A side effect is charged for until the query ends.
            out.context().charge(added as u64 * ELEMENT_BYTES)?;
            for chunk in rows.chunks() {
                out.emit(0, group, chunk)?;
            }
        }
        out.finish_all(group, instances)
    }
}
