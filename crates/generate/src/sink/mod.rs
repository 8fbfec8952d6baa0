//! The destination of generated elements.
//!
//! A generator hands over batches of columns. A batch has vertices of one label set with consecutive numbers, or edges
//! of one label with the numbers of their ends.

pub(crate) mod count;
pub(crate) mod csv;
pub(crate) mod graphson;
pub(crate) mod memory;

use mangrove::{Result, Value};
use smol_str::SmolStr;

/// The values of one property in a batch.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum GeneratedValues {
    /// One boolean a row.
    Bool(Vec<bool>),
    /// One 32-bit integer a row.
    I32(Vec<i32>),
    /// One 64-bit integer a row.
    I64(Vec<i64>),
    /// One double a row.
    F64(Vec<f64>),
    /// One text a row.
    Text(Vec<SmolStr>),
    /// At most one text a row.
    OptionalText(Vec<Option<SmolStr>>),
    /// The numbers of the rows that have values, ascending, each with one or more values of any type. Only a row of a
    /// vertex may have several values; they are a multi-property.
    Several(Vec<(u32, Vec<Value>)>),
}

/// A property key and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedColumn {
    /// The property key.
    pub key: SmolStr,
    /// Its values, for the rows of the batch.
    pub values: GeneratedValues,
}

impl GeneratedColumn {
    /// A column of this key.
    pub fn new(key: impl Into<SmolStr>, values: GeneratedValues) -> Self {
        GeneratedColumn { key: key.into(), values }
    }
}

/// The ids of the vertices of a batch.
#[derive(Clone, Debug, PartialEq)]
pub enum GeneratedIds {
    /// The user id of a vertex is its number.
    Numbers,
    /// These numbers are the values of a property `id`, distinct within the table. The store chooses the ids.
    Local(Vec<i64>),
    /// These distinct texts are the user ids.
    Texts(Vec<SmolStr>),
}

/// Vertices of one label set with consecutive numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedVertices {
    /// The name of their table. Vertices of one table have the same columns and the same kind of ids; local ids are
    /// distinct within the table. One table may have several label sets.
    pub table: SmolStr,
    /// The label set; several labels are written `a::b`.
    pub label: SmolStr,
    /// The number of the first vertex: the count of vertices that were handed over before.
    pub first: u64,
    /// The count of vertices.
    pub len: usize,
    /// Their ids, one a vertex.
    pub ids: GeneratedIds,
    /// Properties.
    pub columns: Vec<GeneratedColumn>,
}

/// Edges of one label.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedEdges {
    /// The label.
    pub label: SmolStr,
    /// The tables of the sources and of the targets, if all sources are of one table and all targets are of one table.
    pub tables: Option<(SmolStr, SmolStr)>,
    /// The vertex numbers of source and target, one pair an edge.
    pub ends: Vec<(u64, u64)>,
    /// Properties.
    pub columns: Vec<GeneratedColumn>,
}

/// The progress of a generator, in units of its own that take about equally long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerateProgress {
    /// The elements that the generator is making now.
    pub stage: &'static str,
    /// The units of this stage that are done.
    pub done: u64,
    /// All units of this stage.
    pub total: u64,
}

/// The destination of generated elements. An error ends the generator. The owner of the sink then drops the batches
/// that the sink has taken.
pub trait GraphSink {
    /// Takes vertices.
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()>;

    /// Takes edges, whose ends were handed over before.
    fn edges(&mut self, batch: GeneratedEdges) -> Result<()>;

    /// Takes a report of the generator's progress.
    fn progress(&mut self, _progress: GenerateProgress) {}
}

/// A sink that drops every batch.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl GraphSink for NullSink {
    fn vertices(&mut self, _batch: GeneratedVertices) -> Result<()> {
        Ok(())
    }

    fn edges(&mut self, _batch: GeneratedEdges) -> Result<()> {
        Ok(())
    }
}
