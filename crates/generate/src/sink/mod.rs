//! Where generated elements go.
//!
//! A generator hands over batches, column by column: vertices of one label set with consecutive numbers, edges of
//! one label with the numbers of their ends.

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
    /// A boolean a row.
    Bool(Vec<bool>),
    /// A 32-bit integer a row.
    I32(Vec<i32>),
    /// A 64-bit integer a row.
    I64(Vec<i64>),
    /// A double a row.
    F64(Vec<f64>),
    /// A text a row.
    Text(Vec<SmolStr>),
    /// A text, or none, a row.
    OptionalText(Vec<Option<SmolStr>>),
    /// The rows that have values of any type, ascending, with at least one value each. Several values are a
    /// multi-property (of vertices only).
    Several(Vec<(u32, Vec<Value>)>),
}

/// A property key and its values.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedColumn {
    /// The property key.
    pub key: SmolStr,
    /// Its values.
    pub values: GeneratedValues,
}

impl GeneratedColumn {
    /// A column.
    pub fn new(key: impl Into<SmolStr>, values: GeneratedValues) -> Self {
        GeneratedColumn { key: key.into(), values }
    }
}

/// What vertices are known by.
#[derive(Clone, Debug, PartialEq)]
pub enum GeneratedIds {
    /// Their numbers are the ids users know them by.
    Numbers,
    /// These numbers, distinct within the table, are a property `id`; the store chooses the vertex ids.
    Local(Vec<i64>),
    /// These distinct texts are the ids users know them by.
    Texts(Vec<SmolStr>),
}

/// Vertices of one label set with consecutive numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedVertices {
    /// Vertices of one table have the same columns, kind of ids and (where they are local) id space. One table may
    /// have several label sets.
    pub table: SmolStr,
    /// The label; several are written `a::b`.
    pub label: SmolStr,
    /// The number of the first: as many vertices were handed over before.
    pub first: u64,
    /// How many.
    pub len: usize,
    /// What they are known by.
    pub ids: GeneratedIds,
    /// Properties.
    pub columns: Vec<GeneratedColumn>,
}

/// Edges of one label.
#[derive(Clone, Debug, PartialEq)]
pub struct GeneratedEdges {
    /// The label.
    pub label: SmolStr,
    /// The tables of the sources and of the targets, where there is one of each.
    pub tables: Option<(SmolStr, SmolStr)>,
    /// The numbers of source and target of each edge.
    pub ends: Vec<(u64, u64)>,
    /// Properties.
    pub columns: Vec<GeneratedColumn>,
}

/// How far a generator is, in units of its own that ascend evenly with time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GenerateProgress {
    /// What is being made.
    pub stage: &'static str,
    /// Units made of this stage.
    pub done: u64,
    /// Units of this stage.
    pub total: u64,
}

/// Where generated elements go. An error ends the generator; what was handed over before is for the sink's
/// owner to drop.
pub trait GraphSink {
    /// Takes vertices.
    fn vertices(&mut self, batch: GeneratedVertices) -> Result<()>;

    /// Takes edges; both ends of each were handed over before.
    fn edges(&mut self, batch: GeneratedEdges) -> Result<()>;

    /// Hears how far the generator is.
    fn progress(&mut self, _progress: GenerateProgress) {}
}

/// Takes everything and keeps nothing.
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
