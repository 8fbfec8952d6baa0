//! Runs templates through the typed interface.

use std::sync::Arc;

use mangrove::{
    Direction, EdgeId, Error, ExpandCursor, ExpandRequest, Expansion, GraphView, Isolation, LabelFilter, LabelSetId,
    Result, ScanCursor, Share, Transaction, Value, ValueRows, VertexId,
};
use mangrove_graph::{IndexRange, PropertyRow};

use super::draw::Arguments;
use super::graph::{Graph, NAME, NOTE, UPDATED, WEIGHT, label_of};
use super::session::{Done, Session, options};
use super::template::{Mix, Verb};
use crate::people;

/// A session of the typed interface, with its buffers.
pub struct Typed {
    graph: Arc<Graph>,
    verbs: Vec<Verb>,
    isolation: Isolation,
    found: Vec<Option<VertexId>>,
    expansion: Expansion,
    degrees: Vec<u64>,
    values: ValueRows,
    properties: Vec<PropertyRow>,
    vertices: Vec<VertexId>,
    edges: Vec<EdgeId>,
    labels: Vec<LabelSetId>,
}

/// The number of elements in one call of a scan.
const SCAN_BATCH: usize = 1_024;

impl Typed {
    /// A session on this graph.
    pub fn new(graph: &Arc<Graph>, mix: &Mix, isolation: Isolation) -> Self {
        Typed {
            graph: graph.clone(),
            verbs: mix.entries.iter().map(|(template, _)| template.verb).collect(),
            isolation,
            found: Vec::new(),
            expansion: Expansion::default(),
            degrees: Vec::new(),
            values: ValueRows::default(),
            properties: Vec::new(),
            vertices: Vec::new(),
            edges: Vec::new(),
            labels: Vec::new(),
        }
    }

    fn find(&mut self, view: &dyn GraphView, number: u64) -> Result<Option<VertexId>> {
        self.found.clear();
        view.find_vertices(&[people::id(number)], &mut self.found)?;
        Ok(self.found[0])
    }

    fn read(&mut self, verb: Verb, arguments: &Arguments) -> Result<Done> {
        let transaction = self.graph.database.begin_read()?;
        let rows = self.answer(transaction.view(), verb, arguments)?;
        transaction.commit()?;
        Ok(Done { rows, ..Done::default() })
    }

    fn answer(&mut self, view: &dyn GraphView, verb: Verb, arguments: &Arguments) -> Result<u64> {
        match verb {
            Verb::VerticesByName => return self.vertices_by_name(view, arguments),
            Verb::EdgesByProperty => return self.edges_by_property(view, arguments.number),
            Verb::EdgesByLabel => return self.edges_by_label(view),
            Verb::EdgeById => {
                self.edges.clear();
                self.edges.push(arguments.edge);
                view.retain_edges(&mut self.edges)?;
                return Ok(self.edges.len() as u64);
            }
            _ => {}
        }
        let Some(vertex) = self.find(view, arguments.vertex)? else { return Ok(0) };
        match verb {
            Verb::VertexProperties => {
                self.properties.clear();
                view.vertex_properties(&[vertex], None, &mut self.properties)?;
                Ok(self.properties.len() as u64)
            }
            Verb::CountEdges => {
                self.degrees.clear();
                view.degrees(&[vertex], Direction::Both, &LabelFilter::Any, &mut self.degrees)?;
                Ok(1 + self.degrees[0])
            }
            Verb::EdgesOfVertex => self.expand(view, vertex, Direction::Both, LabelFilter::Any, true),
            Verb::NeighborsIn => self.expand(view, vertex, Direction::In, LabelFilter::Any, false),
            Verb::NeighborsOut => self.expand(view, vertex, Direction::Out, LabelFilter::Any, false),
            Verb::NeighborsByLabel => {
                let labels = LabelFilter::Sets([self.graph.names.edge_labels[0]].into());
                self.expand(view, vertex, Direction::Both, labels, false)
            }
            Verb::EdgeLabelsIn => self.edge_labels(view, vertex, Direction::In),
            Verb::EdgeLabelsOut => self.edge_labels(view, vertex, Direction::Out),
            Verb::EdgeLabelsBoth => self.edge_labels(view, vertex, Direction::Both),
            _ => Ok(1),
        }
    }

    /// The number of neighbors plus one, so that a vertex without neighbors differs from a missing vertex.
    fn expand(
        &mut self,
        view: &dyn GraphView,
        vertex: VertexId,
        direction: Direction,
        labels: LabelFilter,
        edges: bool,
    ) -> Result<u64> {
        let request = ExpandRequest { direction, labels, edges, limit: usize::MAX };
        self.expansion.clear();
        let mut cursor = ExpandCursor::default();
        while !view.expand(&[vertex], &request, &mut cursor, &mut self.expansion)? {}
        Ok(1 + self.expansion.len() as u64)
    }

    fn edge_labels(&mut self, view: &dyn GraphView, vertex: VertexId, direction: Direction) -> Result<u64> {
        self.expand(view, vertex, direction, LabelFilter::Any, true)?;
        self.labels.clear();
        view.edge_labels(&self.expansion.edge, &mut self.labels)?;
        self.labels.sort_unstable();
        self.labels.dedup();
        Ok(1 + self.labels.len() as u64)
    }

    fn vertices_by_name(&mut self, view: &dyn GraphView, arguments: &Arguments) -> Result<u64> {
        let index = self.graph.index.ok_or_else(|| Error::bug("this graph has no index on names"))?;
        let range = IndexRange::Equal(vec![Value::String(arguments.text.clone())]);
        self.vertices.clear();
        view.index_vertices(index, &[], &range, Share::ALL, &mut self.vertices)?;
        Ok(self.vertices.len() as u64)
    }

    fn scan(&mut self, view: &dyn GraphView, labels: &LabelFilter, each: &mut EachBatch<'_>) -> Result<u64> {
        let (mut cursor, mut rows) = (ScanCursor::default(), 0);
        loop {
            self.edges.clear();
            let ended = view.scan_edges(labels, Share::ALL, &mut cursor, SCAN_BATCH, &mut self.edges)?;
            rows += each(&self.edges, &mut self.values)?;
            if ended {
                return Ok(rows);
            }
        }
    }

    fn edges_by_property(&mut self, view: &dyn GraphView, number: i64) -> Result<u64> {
        let weight = self.graph.names.weight;
        self.scan(view, &LabelFilter::Any, &mut |edges, values| {
            values.clear();
            view.edge_values(edges, weight, values)?;
            Ok(values.value.iter().filter(|value| **value == Value::I64(number)).count() as u64)
        })
    }

    fn edges_by_label(&mut self, view: &dyn GraphView) -> Result<u64> {
        let rarest = self.graph.names.edge_labels[3];
        self.scan(view, &LabelFilter::Sets([rarest].into()), &mut |edges, _| Ok(edges.len() as u64))
    }

    fn write(&mut self, verb: Verb, arguments: &Arguments) -> Result<Done> {
        let transaction = self.graph.database.begin_with(options(self.isolation))?;
        let (rows, created) = self.change(&transaction, verb, arguments)?;
        let info = transaction.commit()?;
        Ok(Done { rows, writes: info.write_count, reads: info.read_count, created })
    }

    fn change(
        &mut self,
        transaction: &Transaction,
        verb: Verb,
        arguments: &Arguments,
    ) -> Result<(u64, Option<EdgeId>)> {
        match verb {
            Verb::AddVertex => self.add_vertex(transaction, arguments, true).map(|_| (1, None)),
            Verb::AddVertexAndEdges => self.add_vertex_and_edges(transaction, arguments),
            Verb::AddEdge | Verb::AddEdgeWithProperty => self.add_edge(transaction, verb, arguments),
            Verb::AddEdgeProperty | Verb::SetEdgeProperty | Verb::DeleteEdge | Verb::RemoveEdgeProperty => {
                self.change_edge(transaction, verb, arguments)
            }
            _ => self.change_vertex(transaction, verb, arguments),
        }
    }

    fn add_vertex(&mut self, transaction: &Transaction, arguments: &Arguments, full: bool) -> Result<VertexId> {
        let label = self.graph.names.labels[label_of(arguments.new)];
        let vertex = transaction.insert_vertex(label, Some(people::id(arguments.new)))?;
        transaction.set_vertex_property(NAME, &[(vertex, Value::String(arguments.text.clone()))])?;
        if full {
            transaction.set_vertex_property(UPDATED, &[(vertex, Value::I64(arguments.number))])?;
        }
        Ok(vertex)
    }

    fn add_vertex_and_edges(
        &mut self,
        transaction: &Transaction,
        arguments: &Arguments,
    ) -> Result<(u64, Option<EdgeId>)> {
        let vertex = self.add_vertex(transaction, arguments, false)?;
        let ends = [self.find(transaction.view(), arguments.vertex)?, self.find(transaction.view(), arguments.other)?];
        let ends: Vec<_> = ends.into_iter().flatten().map(|end| (vertex, end)).collect();
        transaction.insert_edges(self.graph.names.edge_labels[0], &ends)?;
        Ok((1, None))
    }

    fn add_edge(
        &mut self,
        transaction: &Transaction,
        verb: Verb,
        arguments: &Arguments,
    ) -> Result<(u64, Option<EdgeId>)> {
        self.found.clear();
        let ids = [people::id(arguments.vertex), people::id(arguments.other)];
        transaction.view().find_vertices(&ids, &mut self.found)?;
        let [Some(source), Some(target)] = self.found[..] else { return Ok((0, None)) };
        let edges = transaction.insert_edges(self.graph.names.edge_labels[0], &[(source, target)])?;
        if verb == Verb::AddEdgeWithProperty {
            transaction.set_edge_property(WEIGHT, &[(edges[0], Value::I64(arguments.number))])?;
        }
        Ok((1, Some(edges[0])))
    }

    fn change_edge(
        &mut self,
        transaction: &Transaction,
        verb: Verb,
        arguments: &Arguments,
    ) -> Result<(u64, Option<EdgeId>)> {
        self.edges.clear();
        self.edges.push(arguments.edge);
        transaction.view().retain_edges(&mut self.edges)?;
        let &[edge] = &self.edges[..] else { return Ok((0, None)) };
        let value = Value::I64(arguments.number);
        match verb {
            Verb::AddEdgeProperty => transaction.set_edge_property(NOTE, &[(edge, value)])?,
            Verb::SetEdgeProperty => transaction.set_edge_property(WEIGHT, &[(edge, value)])?,
            Verb::DeleteEdge => transaction.delete_edges(&[edge])?,
            _ => transaction.remove_edge_property(NOTE, &[edge])?,
        }
        Ok((1, None))
    }

    fn change_vertex(
        &mut self,
        transaction: &Transaction,
        verb: Verb,
        arguments: &Arguments,
    ) -> Result<(u64, Option<EdgeId>)> {
        let Some(vertex) = self.find(transaction.view(), arguments.vertex)? else { return Ok((0, None)) };
        let value = Value::I64(arguments.number);
        match verb {
            Verb::SetVertexProperty => transaction.set_vertex_property(UPDATED, &[(vertex, value)])?,
            Verb::AddVertexProperty => transaction.set_vertex_property(NOTE, &[(vertex, value)])?,
            Verb::DeleteVertex => transaction.delete_vertices(&[vertex])?,
            Verb::RemoveVertexProperty => transaction.remove_vertex_property(NOTE, &[vertex])?,
            other => return Err(Error::bug(format!("{other:?} does not change a vertex"))),
        }
        Ok((1, None))
    }
}

/// Counts the rows of a batch of edges; the buffer only saves allocations.
type EachBatch<'a> = dyn FnMut(&[EdgeId], &mut ValueRows) -> Result<u64> + 'a;

impl Session for Typed {
    fn perform(&mut self, template: usize, arguments: &Arguments) -> Result<Done> {
        let verb = self.verbs[template];
        if verb.is_writing() { self.write(verb, arguments) } else { self.read(verb, arguments) }
    }
}
