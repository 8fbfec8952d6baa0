//! Record batches as a table to load: what its columns are for.

use arrow_array::{Array, ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{FieldRef, Schema, SchemaRef};
use mangrove_graph::{Error, Result};
use mangrove_load::{RowSource, SourceBatch, SourceBlock, SourceElements, SourceLabel, SourceProperty, SourceTable};
use smol_str::SmolStr;

use super::decode::{check_type, values};

/// The most rows that become values at a time.
const ROWS_AT_ONCE: usize = 8 * 1024;

/// Where the labels of rows come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrowLabel {
    /// All rows have this label; `a::b` is a set of two.
    Constant(SmolStr),
    /// A column of this name has the labels. Semicolons separate several.
    Column(SmolStr),
    /// The labels of the column, together with one that all rows have.
    Both {
        /// The label of all rows.
        constant: SmolStr,
        /// The name of the column.
        column: SmolStr,
    },
}

/// The elements that the rows of a table become. Columns are named by their names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArrowElements {
    /// Vertices.
    Vertices {
        /// The column of their ids: integers, text or UUIDs. `None`: the graph chooses ids, and no edge of the load can name the
        /// vertices.
        id: Option<SmolStr>,
    },
    /// Edges.
    Edges {
        /// The column with the ids of their sources.
        source: SmolStr,
        /// The column with the ids of their targets.
        target: SmolStr,
        /// The column of their ids; `None`: the graph chooses ids.
        id: Option<SmolStr>,
    },
}

/// A table of record batches that is loaded.
pub struct ArrowTable<'a> {
    /// Its name, in progress, reports and errors.
    pub name: String,
    /// What its rows become.
    pub elements: ArrowElements,
    /// The labels of the rows.
    pub label: ArrowLabel,
    /// The columns that become properties; `None`: all that have no other use.
    pub properties: Option<Vec<SmolStr>>,
    /// Property keys for columns with other names: column and key.
    pub renames: Vec<(SmolStr, SmolStr)>,
    /// The rows.
    pub rows: Box<dyn RecordBatchReader + Send + 'a>,
    /// About how many bytes all rows take, for progress; 0 if that is not known.
    pub bytes: u64,
}

impl std::fmt::Debug for ArrowTable<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut table = f.debug_struct("ArrowTable");
        table.field("name", &self.name).field("elements", &self.elements).field("label", &self.label);
        table.field("properties", &self.properties).field("renames", &self.renames).finish_non_exhaustive()
    }
}

impl<'a> ArrowTable<'a> {
    /// Vertices with ids in a column, one label, and all other columns as properties.
    pub fn vertices(
        name: &str,
        label: ArrowLabel,
        id: Option<&str>,
        rows: Box<dyn RecordBatchReader + Send + 'a>,
    ) -> Self {
        let elements = ArrowElements::Vertices { id: id.map(SmolStr::from) };
        ArrowTable { name: name.into(), elements, label, properties: None, renames: Vec::new(), rows, bytes: 0 }
    }

    /// Edges with the ids of their ends in two columns, one label, and all other columns as properties.
    pub fn edges(
        name: &str,
        label: ArrowLabel,
        source: &str,
        target: &str,
        rows: Box<dyn RecordBatchReader + Send + 'a>,
    ) -> Self {
        let elements = ArrowElements::Edges { source: source.into(), target: target.into(), id: None };
        ArrowTable { name: name.into(), elements, label, properties: None, renames: Vec::new(), rows, bytes: 0 }
    }

    /// The table for the loader.
    ///
    /// # Errors
    ///
    /// `InvalidArgument` if there is no column of a name; `Unsupported` if a column that is loaded has a type that is not.
    pub fn into_source(self) -> Result<SourceTable<'a>> {
        let schema = self.rows.schema();
        let named = |error: Error| error.context(&self.name);
        let Columns { fields, elements } = self.columns(&schema).map_err(named)?;
        let columns = fields.iter().map(|(_, field)| field.name().clone()).collect();
        let rows = Batches { rows: self.rows, schema, fields, open: None };
        Ok(SourceTable { name: self.name, columns, elements, rows: Box::new(rows), bytes: self.bytes })
    }

    fn columns(&self, schema: &Schema) -> Result<Columns> {
        let find = |name: &str| {
            let mut found = schema.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
            match (found.next(), found.next()) {
                (Some((at, _)), None) => Ok(at),
                (Some(_), Some(_)) => Err(Error::invalid(format!("the table has two columns '{name}'; rename one"))),
                (None, _) => {
                    let names: Vec<&str> = schema.fields().iter().map(|field| field.name().as_str()).collect();
                    Err(Error::invalid(format!("there is no column '{name}'; the columns are {}", names.join(", "))))
                }
            }
        };
        let mut needed = Needed { schema, fields: Vec::new() };
        let mut used = Vec::new();
        let mut role = |name: &SmolStr| {
            let at = find(name)?;
            used.push(at);
            needed.column(at)
        };
        let (constant, column) = match &self.label {
            ArrowLabel::Constant(constant) => (Some(constant.clone()), None),
            ArrowLabel::Column(column) => (None, Some(column)),
            ArrowLabel::Both { constant, column } => (Some(constant.clone()), Some(column)),
        };
        if constant.as_ref().is_some_and(|label| label.is_empty()) {
            return Err(Error::invalid("the label is empty: give it a name"));
        }
        let label = SourceLabel { constant, column: column.map(&mut role).transpose()? };
        let (ends, id) = match &self.elements {
            ArrowElements::Vertices { id } => (None, id),
            ArrowElements::Edges { source, target, id } => (Some((role(source)?, role(target)?)), id),
        };
        let id = id.as_ref().map(&mut role).transpose()?;
        let chosen = match &self.properties {
            None => (0..schema.fields().len()).filter(|at| !used.contains(at)).collect(),
            Some(names) => names.iter().map(|name| find(name)).collect::<Result<Vec<_>>>()?,
        };
        for (column, _) in &self.renames {
            find(column)?;
        }
        let mut properties = Vec::with_capacity(chosen.len());
        for at in chosen {
            let name = schema.field(at).name();
            let key = self.renames.iter().find(|(column, _)| *column == **name).map_or(name.as_str(), |(_, key)| key);
            if key.is_empty() {
                return Err(Error::invalid(format!("the column {at} has no name: rename it, or leave it out")));
            }
            properties.push(SourceProperty { column: needed.column(at)?, key: key.into() });
        }
        let elements = match ends {
            None => SourceElements::Vertices { label, id, properties },
            Some((source, target)) => SourceElements::Edges { label, source, target, id, properties },
        };
        Ok(Columns { fields: needed.fields, elements })
    }
}

/// The columns of a table that are read.
struct Columns {
    /// Their positions in the schema, and their fields.
    fields: Vec<(usize, FieldRef)>,
    elements: SourceElements,
}

struct Needed<'s> {
    schema: &'s Schema,
    fields: Vec<(usize, FieldRef)>,
}

impl Needed<'_> {
    /// The number of a column of the schema among those that are read.
    fn column(&mut self, at: usize) -> Result<usize> {
        if let Some(known) = self.fields.iter().position(|(other, _)| *other == at) {
            return Ok(known);
        }
        check_type(self.schema.field(at))?;
        self.fields.push((at, self.schema.fields()[at].clone()));
        Ok(self.fields.len() - 1)
    }
}

/// The rows of record batches.
struct Batches<'a> {
    rows: Box<dyn RecordBatchReader + Send + 'a>,
    schema: SchemaRef,
    fields: Vec<(usize, FieldRef)>,
    /// A batch, and how many of its rows were taken.
    open: Option<(RecordBatch, usize)>,
}

impl RowSource for Batches<'_> {
    fn next_block(&mut self) -> Result<Option<Box<dyn SourceBlock>>> {
        let (batch, from) = loop {
            match self.open.take() {
                Some((batch, from)) if from < batch.num_rows() => break (batch, from),
                _ => match self.rows.next() {
                    None => return Ok(None),
                    Some(Err(error)) => {
                        return Err(Error::invalid(format!("the record batches end with an error: {error}")));
                    }
                    Some(Ok(batch)) => self.open = Some((batch, 0)),
                },
            }
        };
        let rows = ROWS_AT_ONCE.min(batch.num_rows() - from);
        let mut columns = Vec::with_capacity(self.fields.len());
        for (at, field) in &self.fields {
            match batch.columns().get(*at) {
                Some(column) if column.data_type() == field.data_type() => {
                    columns.push((field.clone(), column.slice(from, rows)));
                }
                _ => {
                    let message = format!("a record batch does not have the columns of its schema, {}", self.schema);
                    return Err(Error::invalid(message));
                }
            }
        }
        let bytes = (batch.get_array_memory_size() as u128 * rows as u128 / batch.num_rows() as u128) as u64;
        self.open = Some((batch, from + rows));
        Ok(Some(Box::new(Block { rows, columns, bytes })))
    }
}

/// Some rows of a record batch.
struct Block {
    rows: usize,
    columns: Vec<(FieldRef, ArrayRef)>,
    bytes: u64,
}

impl SourceBlock for Block {
    fn rows(&self) -> usize {
        self.rows
    }

    fn into_batch(self: Box<Self>) -> Result<SourceBatch> {
        let columns = self.columns.iter().map(|(field, column)| values(field, column)).collect::<Result<_>>()?;
        Ok(SourceBatch { rows: self.rows, columns, bytes: self.bytes })
    }
}
