//! The trait [`LoadSink`], and the batches it takes.
//!
//! A batch holds elements of one label, column by column, in the shape that a bulk loader wants. Every column has one
//! value a row; [`Value::Null`] means that the row does not have the property.

use super::identity::{EdgeIdentity, VertexIdentity};
use mangrove_graph::{Error, Result, UserId, Value, VertexId};
use smol_str::SmolStr;

/// One property key and its value in every row of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct PropertyColumn {
    /// The property key.
    pub key: SmolStr,
    /// One value a row; [`Value::Null`] if the row does not have the property.
    pub values: Vec<Value>,
}

/// The values that a property with several values keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Every value, in order.
    List,
    /// Every distinct value.
    Set,
}

/// A value of a multi-property with its meta-properties.
#[derive(Clone, Debug, PartialEq)]
pub struct ValueWithMeta {
    /// The value.
    pub value: Value,
    /// The properties of the property.
    pub meta: Vec<(SmolStr, Value)>,
}

/// A vertex property that does not fit a column: several values, or values with meta-properties.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiPropertyRow {
    /// The row of the vertex in its batch.
    pub row: u32,
    /// The property key. Other rows of the batch may have a plain value under it in a column; this row has none there.
    pub key: SmolStr,
    /// How the values are kept.
    pub cardinality: Cardinality,
    /// At least one value.
    pub values: Vec<ValueWithMeta>,
}

impl MultiPropertyRow {
    /// Adds a value; a set keeps one of several equal ones.
    pub(crate) fn push(&mut self, value: ValueWithMeta) {
        let double = |other: &ValueWithMeta| mangrove_graph::compare::equal(&other.value, &value.value);
        if self.cardinality == Cardinality::List || !self.values.iter().any(double) {
            self.values.push(value);
        }
    }
}

/// Vertices of one label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VertexBatch {
    /// The number of vertices: the length of every column, and of `ids` if there are any.
    pub len: usize,
    /// The user ids of the vertices; `None`: the store chooses ids.
    pub ids: Option<Vec<UserId>>,
    /// Properties with one plain value.
    pub columns: Vec<PropertyColumn>,
    /// Properties with several values or with meta-properties. Rows ascend.
    pub multi: Vec<MultiPropertyRow>,
}

/// Edges of one label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeBatch {
    /// Source and target of each edge.
    pub ends: Vec<(VertexId, VertexId)>,
    /// The user ids of the edges; `None`: the store chooses ids.
    pub ids: Option<Vec<UserId>>,
    /// Properties.
    pub columns: Vec<PropertyColumn>,
}

/// The outcome of an element of an upsert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upserted<T> {
    /// The element was added.
    Created(T),
    /// The element was in the graph with other values, which were replaced.
    Updated(T),
    /// The element was in the graph with the same values.
    Unchanged(T),
    /// The element was not written, for this reason.
    Refused(String),
}

/// Takes the elements of a load. A label may be a set, written `a::b`.
///
/// The loader promises:
///
/// - All vertices of a load come before its first edge, and an edge joins vertices that the sink returned (LOAD-3).
/// - Elements with ids that users chose come before those whose ids the store chooses. So the store gives no element an
///   automatic number that a later row of the files names.
/// - The user ids of vertices are distinct over all batches, and so are those of edges. Keys that identify elements are
///   distinct, too (LOAD-7).
///
/// An error ends the load. The owner of the sink decides what happens to the elements that it was given before.
///
/// A plain load calls [`LoadSink::vertices`] and [`LoadSink::edges`]. A load that [upserts](crate::LoadOptions::upsert)
/// calls the methods of that name instead, and [`LoadSink::find`].
pub trait LoadSink {
    /// Adds vertices. Returns their internal ids, one a row.
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>>;

    /// Adds edges.
    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()>;

    /// Adds vertices, or changes those that are in the graph already, and returns the outcome of each row. A value of
    /// the batch replaces the value under the same key in the graph.
    fn upsert_vertices(
        &mut self,
        label: &str,
        batch: VertexBatch,
        identity: &VertexIdentity,
    ) -> Result<Vec<Upserted<VertexId>>> {
        let _ = (label, batch, identity);
        Err(only_adds())
    }

    /// Adds edges, or changes those that are in the graph already, and returns the outcome of each row.
    fn upsert_edges(&mut self, label: &str, batch: EdgeBatch, identity: &EdgeIdentity) -> Result<Vec<Upserted<()>>> {
        let _ = (label, batch, identity);
        Err(only_adds())
    }

    /// The vertex of the graph with this id, or with this value of a key of one property. The loader asks for ends of
    /// edges whose vertices are in no file of the load.
    fn find(&mut self, identity: &VertexIdentity, id: &UserId) -> Result<Option<VertexId>> {
        let _ = (identity, id);
        Ok(None)
    }

    /// The loader calls this from time to time with the number of bytes that it holds, besides the batches that it
    /// handed over. An error ends the load.
    fn holds(&mut self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }
}

fn only_adds() -> Error {
    Error::unsupported("this load only adds elements; it cannot replace what is in the graph")
}
