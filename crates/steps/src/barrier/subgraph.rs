//! `subgraph()`: edges and the vertices at their ends, gathered in a side effect.
//!
//! The side effect holds ids, each once. Properties are read when the graph leaves as a result. Until then it is small,
//! and every step sees the same graph. Both ends of each of its edges are in it, and elements are never removed.

use std::sync::Arc;

use mangrove_flow::{Cursor, Detail, GroupId, Operator, Output, QueryControl, Step, TagSet};
use mangrove_graph::{EdgeId, Error, GraphValue, Result, Value, VertexId};
use mangrove_plan::logical::Name;

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::limits::table::PartitionedTable;
use crate::rows::held::HeldRows;
use crate::rows::{ObjectColumn, Rows};

/// The bytes of an entry in a set of known elements, and of an element of the graph with its entry.
const INDEX_BYTES: usize = 16;
const ELEMENT_BYTES: u64 = (size_of::<Value>() + INDEX_BYTES) as u64;

type KnownElements<T> = PartitionedTable<T>;

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

    /// Adds edges of one batch that the graph lacks, and their ends. Charges them for as long as the query runs.
    fn gather(
        &mut self,
        graph: &mut GraphValue,
        edges: &[EdgeId],
        context: &ExecutionContext,
        control: &QueryControl,
    ) -> Result<()> {
        // Other operators may have added to the same graph. Elements are never removed, so the new ones are at the end.
        let mut meter = Meter::new(control);
        for vertex in graph.vertices.iter().skip(self.vertices.len()).filter_map(vertex) {
            meter.hold(INDEX_BYTES)?;
            self.vertices.insert(vertex);
        }
        for edge in graph.edges.iter().skip(self.edges.len()).filter_map(edge) {
            meter.hold(INDEX_BYTES)?;
            self.edges.insert(edge);
        }
        let before = graph.vertices.len() + graph.edges.len();
        // An edge comes with at most two vertices.
        let most = 3 * edges.len() as u64 * ELEMENT_BYTES;
        control.charge(most)?;
        let new: Vec<EdgeId> = edges.iter().copied().filter(|edge| self.edges.insert(*edge)).collect();
        let (mut sources, mut targets) = (Vec::new(), Vec::new());
        context.view.edge_ends(&new, &mut sources, &mut targets)?;
        for end in sources.iter().zip(&targets).flat_map(|(source, target)| [*source, *target]) {
            if self.vertices.insert(end) {
                graph.vertices.push(end.into());
            }
        }
        graph.edges.extend(new.into_iter().map(Value::from));
        let added = graph.vertices.len() + graph.edges.len() - before;
        control.release(most - added as u64 * ELEMENT_BYTES);
        Ok(())
    }

    /// Adds the edges of the next batch of a group that has ended.
    fn add_next(&mut self, group: GroupId, at: &mut Cursor, out: &Output<'_, Rows>) -> Result<Step> {
        let (context, control) = (out.context(), out.control());
        let mut edges = Vec::new();
        let has_more = self.held.change(group, at.row as usize, out, |rows| {
            edges = edges_of(&rows.objects)?;
            Ok(())
        })?;
        at.row += 1;
        let name = self.name.clone();
        context.side_effects.update(&name, |old| match old {
            None => Err(Error::bug("a side effect that was begun is there")),
            Some(Value::Graph(graph)) => {
                if Arc::strong_count(&graph) > 1 {
                    control.charge(size_of_val(&graph.vertices[..]) as u64 + size_of_val(&graph.edges[..]) as u64)?;
                }
                let mut graph = Arc::unwrap_or_clone(graph);
                self.gather(&mut graph, &edges, context, control)?;
                Ok(Value::Graph(Arc::new(graph)))
            }
            Some(other) => Err(Error::evaluation(format!(
                "subgraph(\"{name}\") needs a graph in the side effect and met {}",
                a_type(&other)
            ))),
        })?;
        Ok(if has_more { Step::More } else { Step::Done })
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
        ObjectColumn::Numbers(numbers) => {
            numbers.slice().values().next().map_or(Ok(Vec::new()), |number| Err(refused(number.type_name())))
        }
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

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    /// Each step adds one batch; after that, each step sends one, and the detail of the cursor is no more at its start.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if let Detail::Start = at.detail {
            if self.add_next(group, at, out)? == Step::More {
                return Ok(Step::More);
            }
            at.detail = Detail::Words([0; 2]);
        }
        if self.held.send_next(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
