//! Where loaded elements go.
//!
//! The loader knows nothing of a store: it hands over batches, column by column, in the shape a bulk loader
//! wants them. A batch holds elements of one label; every column has one value a row, and
//! [`Value::Null`] says that the row does not have the property.

use mangrove_graph::{Result, UserId, Value, VertexId};
use smol_str::SmolStr;

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

/// Where loaded elements go. A label may be a set, written `a::b`.
///
/// The loader promises: elements whose ids users chose come before those whose ids the store chooses (so that
/// no automatic number is taken when it is chosen), user ids are distinct over all batches (of vertices, and apart from them of edges)
/// unless the load replaces what exists, edges join vertices that were returned by [`Sink::vertices`] or [`Sink::find`], and all vertices of a load come before its
/// first edge. An error ends the load; what was handed over before is for the sink's owner to drop.
pub trait Sink {
    /// Takes vertices; returns their internal ids, one a row.
    fn vertices(&mut self, label: &str, batch: VertexBatch) -> Result<Vec<VertexId>>;

    /// Takes edges.
    fn edges(&mut self, label: &str, batch: EdgeBatch) -> Result<()>;

    /// The vertex that is there already under an id of an id space (the empty name is that of the ids users
    /// know). Asked only by loads that [replace](crate::LoadOptions::upsert), for ends of edges whose vertices are in no file.
    fn find(&mut self, space: &str, id: &UserId) -> Result<Option<VertexId>> {
        let _ = (space, id);
        Ok(None)
    }

    /// Hears, now and then, how many bytes the loader holds besides what it handed over; an error ends the load.
    fn holds(&mut self, bytes: u64) -> Result<()> {
        let _ = bytes;
        Ok(())
    }
}
