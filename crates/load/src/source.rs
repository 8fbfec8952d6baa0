//! Tables that a program hands over instead of files: their columns, what these are for, and their rows, block by block.

use mangrove_graph::{Result, Value};
use smol_str::SmolStr;

/// Some rows of a table, by column.
#[derive(Debug, Default)]
pub struct SourceBatch {
    /// The number of rows: the length of each column.
    pub rows: usize,
    /// By column of the table, a value a row: [`Value::Null`] if there is none, or why the value cannot be kept.
    pub columns: Vec<Vec<Result<Value, String>>>,
    /// About how many bytes the rows take, for progress.
    pub bytes: u64,
}

/// Some rows of a table that need not be values yet. The load makes values of several blocks at a time, on its threads.
pub trait SourceBlock: Send {
    /// The number of rows.
    fn rows(&self) -> usize;

    /// The rows as values. An error ends the load.
    fn into_batch(self: Box<Self>) -> Result<SourceBatch>;
}

impl SourceBlock for SourceBatch {
    fn rows(&self) -> usize {
        self.rows
    }

    fn into_batch(self: Box<Self>) -> Result<SourceBatch> {
        Ok(*self)
    }
}

/// The rows of a table, which are read once, on the thread that loads.
pub trait RowSource {
    /// The next rows; `None` at the end. An error ends the load.
    fn next_block(&mut self) -> Result<Option<Box<dyn SourceBlock>>>;
}

/// Where the labels of rows come from. A constant and a column together make a label set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SourceLabel {
    /// A label that all rows have.
    pub constant: Option<SmolStr>,
    /// The column with the labels of the rows. Semicolons separate several.
    pub column: Option<usize>,
}

/// A column that becomes a property.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceProperty {
    /// The column.
    pub column: usize,
    /// The property key.
    pub key: SmolStr,
}

/// The elements that the rows of a table become. Columns are named by their positions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SourceElements {
    /// Vertices.
    Vertices {
        /// Their labels.
        label: SourceLabel,
        /// The column of their ids; `None`: the graph chooses ids.
        id: Option<usize>,
        /// Their properties.
        properties: Vec<SourceProperty>,
    },
    /// Edges.
    Edges {
        /// Their labels.
        label: SourceLabel,
        /// The column with the ids of their sources.
        source: usize,
        /// The column with the ids of their targets.
        target: usize,
        /// The column of their ids; `None`: the graph chooses ids.
        id: Option<usize>,
        /// Their properties.
        properties: Vec<SourceProperty>,
    },
}

/// A table that a program hands over.
pub struct SourceTable<'a> {
    /// Its name, in progress, reports and errors.
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// What its rows become.
    pub elements: SourceElements,
    /// Its rows.
    pub rows: Box<dyn RowSource + 'a>,
    /// About how many bytes all rows take, for progress; 0 if that is not known.
    pub bytes: u64,
}

impl std::fmt::Debug for SourceTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut table = f.debug_struct("SourceTable");
        table.field("name", &self.name).field("columns", &self.columns).field("elements", &self.elements);
        table.finish_non_exhaustive()
    }
}
