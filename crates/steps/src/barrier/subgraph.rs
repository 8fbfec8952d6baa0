//! `subgraph()`: edges and the vertices at their ends, gathered in a side effect.
//!
//! The side effect holds ids, each once. Properties are read when the graph leaves as a result. Until then it is small,
//! and every step sees the same graph. Both ends of each of its edges are in it, and elements are never removed.

use std::sync::Arc;

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::{EdgeId, Error, FastSet, GraphValue, Result, Value, VertexId};
use mangrove_plan::logical::Name;

use crate::context::execution::ExecutionContext;
use crate::rows::held::HeldRows;
use crate::rows::{ObjectColumn, Rows};

/// The bytes of an element of the graph, with its entry in the set of known elements.
const ELEMENT_BYTES: u64 = size_of::<Value>() as u64 + 16;

type KnownElements<T> = FastSet<T>;

/// Adds the edge of every row to a side effect when the group has ended, then sends the rows on.
pub(crate) struct Subgraph {
    name: Name,
    held: HeldRows,
    /// The vertices and edges of the side effect that this operator has seen: the first `len()` of each.
    vertices: KnownElements<VertexId>,
    edges: KnownElements<EdgeId>,
}

impl Subgraph {
    pub fn new(name: Name) -> Self {
        Subgraph {
            name,
            held: HeldRows::default(),
            vertices: KnownElements::default(),
            edges: KnownElements::default(),
        }
    }

    /// Adds edges that the graph lacks, and their ends. Returns the number of elements added.
    fn gather(&mut self, graph: &mut GraphValue, edges: &[EdgeId], context: &ExecutionContext) -> Result<usize> {
        // Other operators may have added to the same graph. Elements are never removed, so the new ones are at the end.
        self.vertices.extend(graph.vertices.iter().skip(self.vertices.len()).filter_map(vertex));
        self.edges.extend(graph.edges.iter().skip(self.edges.len()).filter_map(edge));
        let before = graph.vertices.len() + graph.edges.len();
        let new: Vec<EdgeId> = edges.iter().copied().filter(|edge| self.edges.insert(*edge)).collect();
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        context.view.edge_ends(&new, &mut sources, &mut targets)?;
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

/// Returns the edges of a column. Fails for any other object.
fn edges_of(objects: &ObjectColumn) -> Result<Vec<EdgeId>> {
    let refused = |kind: &str| {
        Error::evaluation(format!(
            "subgraph() gathers edges, and met a {kind}; the vertices at their ends come with them: use outE(), inE() \
             or bothE() before it"
        ))
    };
    match objects {
        ObjectColumn::Edges(ids) => Ok(ids.clone()),
        ObjectColumn::Vertices(ids) if ids.is_empty() => Ok(Vec::new()),
        ObjectColumn::Vertices(_) => Err(refused("vertex")),
        ObjectColumn::Values(values) => {
            values.iter().map(|value| edge(value).ok_or_else(|| refused(value.type_name()))).collect()
        }
    }
}

impl Operator<Rows> for Subgraph {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let empty = || Value::Graph(Arc::new(GraphValue::default()));
        context.side_effects.update(&self.name, |old| Ok(old.unwrap_or_else(empty)))
    }

    fn recycle(&mut self) -> bool {
        self.vertices = KnownElements::default();
        self.edges = KnownElements::default();
        self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(rows) = self.held.take(group, out) {
            let edges = edges_of(&rows.objects)?;
            let (name, context) = (self.name.clone(), out.context());
            let mut added = 0;
            context.side_effects.update(&name, |old| match old {
                None => Err(Error::bug("a side effect that was begun is there")),
                Some(Value::Graph(graph)) => {
                    let mut graph = Arc::unwrap_or_clone(graph);
                    added = self.gather(&mut graph, &edges, context)?;
                    Ok(Value::Graph(Arc::new(graph)))
                }
                Some(other) => Err(Error::evaluation(format!(
                    "subgraph(\"{name}\") needs a graph in the side effect and met a {}",
                    other.type_name()
                ))),
            })?;
            // A side effect stays charged until the query ends.
            out.control().charge(added as u64 * ELEMENT_BYTES)?;
            for chunk in rows.chunks() {
                out.emit(0, group, chunk)?;
            }
        }
        out.finish_all(group, instances)
    }
}
