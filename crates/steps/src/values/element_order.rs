//! The order of elements and properties among their kind. It needs more than their values hold, so it reads the graph.
//!
//! | kind | ordered by |
//! |---|---|
//! | vertices, edges | the ids that users know |
//! | properties | the name of the key, then the value |
//! | vertex properties | their ids: the vertex, then the key by first use, then the ordinal among values of one key |
//!
//! Elements inside collections are ordered by [`compare::order`](mangrove_graph::compare::order).

use std::cmp::Ordering;

use mangrove_flow::{BATCH_ROWS, QueryControl};
use mangrove_graph::compare::watched;
use mangrove_graph::{EdgeId, GraphView, Result, Value, VertexId, pieces};

use crate::limits::nesting;
use crate::limits::table::PartitionedTable;

/// The user ids of the elements among some values.
#[derive(Default)]
pub(crate) struct ElementIds {
    vertices: PartitionedTable<VertexId, Value>,
    edges: PartitionedTable<EdgeId, Value>,
    /// True if a value may hold collections.
    has_collections: bool,
    /// Ids that other threads have added.
    others: Vec<ElementIds>,
}

/// The approximate bytes of the id of an element, with its entry in a table.
const ELEMENT_ID_BYTES: u64 = 64;

impl ElementIds {
    /// Adds the ids of the elements among some values. They are read a message at a time.
    pub fn add<'v>(
        &mut self,
        values: impl Iterator<Item = &'v Value>,
        view: &dyn GraphView,
        control: &QueryControl,
    ) -> Result<()> {
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        for value in values {
            self.has_collections |= may_hold_collections(value);
            match value {
                Value::Vertex(id) => vertices.push(*id),
                Value::VertexProperty(property) => vertices.push(property.vertex),
                Value::Edge(id) => edges.push(*id),
                _ => {}
            }
            if vertices.len() + edges.len() >= BATCH_ROWS {
                control.check()?;
                self.read(&mut vertices, &mut edges, view)?;
            }
        }
        self.read(&mut vertices, &mut edges, view)
    }

    fn read(&mut self, vertices: &mut Vec<VertexId>, edges: &mut Vec<EdgeId>, view: &dyn GraphView) -> Result<()> {
        let mut ids = Vec::new();
        if !vertices.is_empty() {
            view.vertex_user_ids(vertices, &mut ids)?;
            for (vertex, id) in vertices.drain(..).zip(ids.drain(..)) {
                self.vertices.get_or_insert_with(vertex, || id);
            }
        }
        if !edges.is_empty() {
            view.edge_user_ids(edges, &mut ids)?;
            for (edge, id) in edges.drain(..).zip(ids.drain(..)) {
                self.edges.get_or_insert_with(edge, || id);
            }
        }
        Ok(())
    }

    /// Adds the ids that another thread has added, without moving them: the tables may be large.
    pub fn join(&mut self, other: ElementIds) {
        self.has_collections |= other.has_collections;
        self.others.push(other);
    }

    /// Returns true if it has no ids.
    pub fn is_empty(&self) -> bool {
        self.bytes() == 0
    }

    /// Returns the bytes of the ids.
    pub fn bytes(&self) -> u64 {
        let others: u64 = self.others.iter().map(ElementIds::bytes).sum();
        (self.vertices.len() + self.edges.len()) as u64 * ELEMENT_ID_BYTES + others
    }

    fn vertex(&self, id: &VertexId) -> Option<&Value> {
        self.vertices.get(id).or_else(|| self.others.iter().find_map(|other| other.vertex(id)))
    }

    fn edge(&self, id: &EdgeId) -> Option<&Value> {
        self.edges.get(id).or_else(|| self.others.iter().find_map(|other| other.edge(id)))
    }

    /// Returns the size of the pieces in which these values are sorted.
    pub fn piece(&self) -> usize {
        if self.has_collections { pieces::MERGED } else { pieces::COMPARED }
    }
}

/// The order of some values, whose elements have these ids.
#[derive(Clone, Copy)]
pub(crate) struct ElementOrder<'a> {
    view: &'a dyn GraphView,
    ids: &'a ElementIds,
}

fn may_hold_collections(value: &Value) -> bool {
    nesting::is_collection(value) || matches!(value, Value::VertexProperty(_) | Value::Property(_))
}

impl<'a> ElementOrder<'a> {
    pub fn new(view: &'a dyn GraphView, ids: &'a ElementIds) -> Self {
        ElementOrder { view, ids }
    }

    /// Compares two values.
    pub fn compare(&self, a: &Value, b: &Value) -> Ordering {
        match (a, b) {
            (Value::Vertex(x), Value::Vertex(y)) => self.vertices_in_order(*x, *y),
            (Value::Edge(x), Value::Edge(y)) => match (self.ids.edge(x), self.ids.edge(y)) {
                (Some(a), Some(b)) => watched::order(a, b),
                _ => x.cmp(y),
            },
            (Value::VertexProperty(x), Value::VertexProperty(y)) => self
                .vertices_in_order(x.vertex, y.vertex)
                .then_with(|| (x.key, x.ordinal).cmp(&(y.key, y.ordinal)))
                .then_with(|| watched::order(&x.value, &y.value)),
            (Value::Property(x), Value::Property(y)) => {
                let by_name = || self.view.key_name(x.key).cmp(&self.view.key_name(y.key));
                let by_key = if x.key == y.key { Ordering::Equal } else { by_name() };
                by_key.then_with(|| watched::order(&x.value, &y.value))
            }
            _ => watched::order(a, b),
        }
    }

    fn vertices_in_order(&self, a: VertexId, b: VertexId) -> Ordering {
        match (self.ids.vertex(&a), self.ids.vertex(&b)) {
            (Some(x), Some(y)) => watched::order(x, y),
            _ => a.cmp(&b),
        }
    }
}
