//! Where loaded elements go.
//!
//! The loader knows nothing of a store: it hands over batches, column by column, in the shape a bulk loader
//! wants them. A batch holds elements of one label; every column has one value a row, and
//! [`Value::Null`] says that the row does not have the property.

use mangrove_graph::{Error, Result, UserId, Value, VertexId};
use smol_str::SmolStr;

use crate::identity::{EdgeIdentity, VertexIdentity};

/// One property key and its value in every row of a batch.
#[derive(Clone, Debug, PartialEq)]
pub struct Column {
    /// The property key.
    pub key: SmolStr,
    /// One value a row; [`Value::Null`] where the row does not have the property.
    pub values: Vec<Value>,
}

/// How many values a multi-property keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cardinality {
    /// Every value, in order.
    List,
    /// Every distinct value.
    Set,
}

/// A value of a multi-property with its meta-properties.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiValue {
    /// The value.
    pub value: Value,
    /// The properties of the property.
    pub meta: Vec<(SmolStr, Value)>,
}

/// A vertex property that does not fit a column: several values, or values with meta-properties.
#[derive(Clone, Debug, PartialEq)]
pub struct MultiProperty {
    /// The row of the vertex in its batch.
    pub row: u32,
    /// The property key. Other rows of the batch may have a plain value under it in a column; this row does not.
    pub key: SmolStr,
    /// How the values are kept.
    pub cardinality: Cardinality,
    /// At least one value.
    pub values: Vec<MultiValue>,
}

impl MultiProperty {
    /// Adds a value; a set keeps one of several equal ones.
    pub(crate) fn push(&mut self, value: MultiValue) {
        let double = |other: &MultiValue| mangrove_graph::compare::equal(&other.value, &value.value);
        if self.cardinality == Cardinality::List || !self.values.iter().any(double) {
            self.values.push(value);
        }
    }
}

/// Vertices of one label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VertexBatch {
    /// How many vertices: the length of every column, and of `ids` where there are any.
    pub len: usize,
    /// The ids that users will know the vertices by; `None`: the store chooses.
    pub ids: Option<Vec<UserId>>,
    /// Properties with one plain value.
    pub columns: Vec<Column>,
    /// Properties with several values or with meta-properties, ascending by row.
    pub multi: Vec<MultiProperty>,
}

/// Edges of one label.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EdgeBatch {
    /// Source and target of each edge.
    pub ends: Vec<(VertexId, VertexId)>,
    /// The ids that users will know the edges by; `None`: the store chooses.
    pub ids: Option<Vec<UserId>>,
    /// Properties.
    pub columns: Vec<Column>,
}

/// What became of an element of an upsert.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Upserted<T> {
    /// It was added.
    Created(T),
    /// It was there, with other values.
    Updated(T),
    /// It was there as the row has it.
    Unchanged(T),
    /// It was left out, for this reason.
    Refused(String),
}

/// Where loaded elements go. A label may be a set, written `a::b`.
///
/// The loader promises: elements whose ids users chose come before those whose ids the store chooses (so that
/// no automatic number is taken when it is chosen), user ids are distinct over all batches (of vertices, and apart from them of edges),
/// and so are the keys that identify elements; edges join vertices that the sink returned, and all vertices of a load come before its
/// first edge. An error ends the load; what was handed over before is for the sink's owner to drop.
///
/// A plain load calls [`Sink::vertices`] and [`Sink::edges`]. A load that [upserts](crate::LoadOptions::upsert) calls the methods of
/// that name instead, and [`Sink::find`].
pub trait Sink {
    /// Takes vertices; returns their internal ids, one a row.
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>>;

    /// Takes edges.
    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()>;

    /// Takes vertices that may be in the graph already; says of each row what became of it. What the batch says replaces
    /// what is there under the same keys.
    fn upsert_vertices(
        &mut self,
        label: &str,
        batch: VertexBatch,
        identity: &VertexIdentity,
    ) -> Result<Vec<Upserted<VertexId>>> {
        let _ = (label, batch, identity);
        Err(only_adds())
    }

    /// Takes edges that may be in the graph already; likewise.
    fn upsert_edges(&mut self, label: &str, batch: EdgeBatch, identity: &EdgeIdentity) -> Result<Vec<Upserted<()>>> {
        let _ = (label, batch, identity);
        Err(only_adds())
    }

    /// The vertex of the graph that is known by an id, or by this value of a key of one property; for ends of
    /// edges whose vertices are in no file of the load.
    fn find(&mut self, identity: &VertexIdentity, id: &UserId) -> Result<Option<VertexId>> {
        let _ = (identity, id);
        Ok(None)
    }

    /// Hears, now and then, how many bytes the loader holds besides what it handed over; an error ends the load.
    fn holds(&mut self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }
}

fn only_adds() -> Error {
    Error::unsupported("this load only adds elements; it cannot replace what is in the graph")
}
