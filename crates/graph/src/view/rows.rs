//! The columns that the methods of [`GraphView`](super::GraphView) fill: neighbors, values and properties, with the
//! input row of each.
//!
//! The caller owns these columns and uses them again. The `row` column of a call's results ascends (GRAPH-1). Parallel
//! columns have the same length, except that a column that was not asked for is empty.

use std::sync::Arc;

use crate::ids::{EdgeId, KeyId, VertexId};
use crate::value::Value;

/// The neighbors that an expansion has met, as parallel columns.
#[derive(Default, Debug)]
pub struct Expansion {
    /// The input row of each neighbor, ascending.
    pub row: Vec<u32>,
    /// The vertex at the other end.
    pub neighbor: Vec<VertexId>,
    /// The edge; empty if the request did not ask for edges.
    pub edge: Vec<EdgeId>,
}

impl Expansion {
    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.row.clear();
        self.neighbor.clear();
        self.edge.clear();
    }

    /// The number of neighbors.
    pub fn len(&self) -> usize {
        self.neighbor.len()
    }

    /// Returns true if there are no neighbors.
    pub fn is_empty(&self) -> bool {
        self.neighbor.is_empty()
    }
}

/// Values of properties, as parallel columns. An input row has as many entries as its element has values.
#[derive(Default, Debug)]
pub struct ValueRows {
    /// The input row of each value, ascending.
    pub row: Vec<u32>,
    /// The values.
    pub value: Vec<Value>,
}

impl ValueRows {
    /// Forgets the content and keeps the memory.
    pub fn clear(&mut self) {
        self.row.clear();
        self.value.clear();
    }
}

/// One property of an element, as [`GraphView::vertex_properties`](super::GraphView::vertex_properties) and
/// [`GraphView::edge_properties`](super::GraphView::edge_properties) append it.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyRow {
    /// The input row.
    pub row: u32,
    /// The key.
    pub key: KeyId,
    /// The number that tells this value from the others under the key; 0 for edges.
    pub ordinal: u32,
    /// The value.
    pub value: Value,
    /// Meta-properties; empty for edges.
    pub meta: Arc<Vec<(KeyId, Value)>>,
}
