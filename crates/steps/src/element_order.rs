//! The order of elements and properties among their kind, which needs more than their values hold.
//!
//! Gremlin orders vertices and edges by the ids users know, properties by the name of their key and then by value, and
//! vertex properties by their id; here that is the vertex, then the key in the order in which keys were first used, then
//! the place among values of one key. Inside collections elements are ordered as [`compare::order`](mangrove_graph::compare::order) has it.

use std::cmp::Ordering;

use hashbrown::HashMap;
use mangrove_graph::compare::watched;
use mangrove_graph::{EdgeId, GraphView, Result, Value, VertexId, pieces};

use crate::nesting;

type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// An order of values that knows the ids of the elements among them.
pub struct ElementOrder<'a> {
    view: &'a dyn GraphView,
    vertices: FastMap<VertexId, Value>,
    edges: FastMap<EdgeId, Value>,
    piece: usize,
}

fn may_hold_collections(value: &Value) -> bool {
    nesting::is_collection(value) || matches!(value, Value::VertexProperty(_) | Value::Property(_))
}

impl<'a> ElementOrder<'a> {
    /// For these values: the ids of all elements among them are read at once.
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

    /// In what pieces these values are sorted.
    pub fn piece(&self) -> usize {
        self.piece
    }

    /// How two values are ordered.
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
