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

use mangrove_graph::compare::watched;
use mangrove_graph::{EdgeId, FastMap, GraphView, Result, Value, VertexId, pieces};

use crate::limits::nesting;

/// The order of some values, with the user ids of the elements among them.
pub(crate) struct ElementOrder<'a> {
    view: &'a dyn GraphView,
    vertices: FastMap<VertexId, Value>,
    edges: FastMap<EdgeId, Value>,
    piece: usize,
}

fn may_hold_collections(value: &Value) -> bool {
    nesting::is_collection(value) || matches!(value, Value::VertexProperty(_) | Value::Property(_))
}

impl<'a> ElementOrder<'a> {
    /// The order of these values. The ids of all elements among them are read at once.
    pub fn of<'v>(values: impl Iterator<Item = &'v Value>, view: &'a dyn GraphView) -> Result<Self> {
        let (mut vertices, mut edges) = (Vec::new(), Vec::new());
        let mut piece = pieces::COMPARED;
        for value in values {
            if may_hold_collections(value) {
                piece = pieces::MERGED;
            }
            match value {
                Value::Vertex(id) => vertices.push(*id),
                Value::VertexProperty(property) => vertices.push(property.vertex),
                Value::Edge(id) => edges.push(*id),
                _ => {}
            }
        }
        let (mut vertex_ids, mut edge_ids) = (Vec::new(), Vec::new());
        if !vertices.is_empty() {
            view.vertex_user_ids(&vertices, &mut vertex_ids)?;
        }
        if !edges.is_empty() {
            view.edge_user_ids(&edges, &mut edge_ids)?;
        }
        Ok(ElementOrder {
            view,
            piece,
            vertices: vertices.into_iter().zip(vertex_ids).collect(),
            edges: edges.into_iter().zip(edge_ids).collect(),
        })
    }

    /// Returns the size of the pieces in which these values are sorted.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// Compares two values.
    pub fn compare(&self, a: &Value, b: &Value) -> Ordering {
        match (a, b) {
            (Value::Vertex(x), Value::Vertex(y)) => self.vertices_in_order(*x, *y),
            (Value::Edge(x), Value::Edge(y)) => match (self.edges.get(x), self.edges.get(y)) {
                (Some(a), Some(b)) => watched::order(a, b),
                _ => x.cmp(y),
            },
            (Value::VertexProperty(x), Value::VertexProperty(y)) => self
                .vertices_in_order(x.vertex, y.vertex)
                .then_with(|| (x.key, x.ordinal).cmp(&(y.key, y.ordinal)))
                .then_with(|| watched::order(&x.value, &y.value)),
            (Value::Property(x), Value::Property(y)) => {
                let by_name = || {
                    let catalog = self.view.catalog();
                    catalog.key_name(x.key).cmp(&catalog.key_name(y.key))
                };
                let by_key = if x.key == y.key { Ordering::Equal } else { by_name() };
                by_key.then_with(|| watched::order(&x.value, &y.value))
            }
            _ => watched::order(a, b),
        }
    }

    fn vertices_in_order(&self, a: VertexId, b: VertexId) -> Ordering {
        match (self.vertices.get(&a), self.vertices.get(&b)) {
            (Some(x), Some(y)) => watched::order(x, y),
            _ => a.cmp(&b),
        }
    }
}
