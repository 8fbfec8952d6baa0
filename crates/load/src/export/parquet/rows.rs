//! Rows of named values as a Parquet file: results of queries and of algorithms.
//!
//! A column has the type of its values: whole numbers are INT64, other numbers DOUBLE or FLOAT, texts BYTE_ARRAY, and lists of one type are
//! lists. A column with values of several types has them as text.

use std::path::Path;
use std::sync::Arc;

use mangrove_graph::{Result, Value};
use parquet::basic::{Compression, Repetition};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::GROUP_ROWS;
use super::column::{Column, Stored, failed};
use crate::export::kind::Scalar;
use crate::export::output::ExportFile;
use crate::export::text::write_scalar;

/// Writes rows to a file, which gets its name when it is complete. Each row has a value for each name.
///
/// # Errors
///
/// If the file cannot be written.
pub fn write_rows(path: &Path, names: &[&str], rows: &[Vec<Value>]) -> Result<()> {
    let types: Vec<RowType> = (0..names.len()).map(|at| RowType::of(rows.iter().map(|row| &row[at]))).collect();
    let mut columns: Vec<Column> = names
        .iter()
        .zip(&types)
        .map(|(name, of)| {
            let repetition = if of.is_list { Repetition::REPEATED } else { Repetition::OPTIONAL };
            Column::new((*name).to_owned(), of.stored, repetition)
        })
        .collect();
    let fields = columns.iter().map(|column| Ok(Arc::new(column.to_type()?))).collect::<Result<_>>()?;
    let root = Type::group_type_builder("rows").with_fields(fields).build().map_err(failed)?;
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(concat!("mangrove ", env!("CARGO_PKG_VERSION")).to_owned())
        .build();
    let output = ExportFile::create(path)?;
    let mut file = SerializedFileWriter::new(output, Arc::new(root), Arc::new(properties)).map_err(failed)?;
    for some in rows.chunks(GROUP_ROWS) {
        for (at, (column, of)) in columns.iter_mut().zip(&types).enumerate() {
            some.iter().try_for_each(|row| of.add(&row[at], column))?;
        }
        let mut group = file.next_row_group().map_err(failed)?;
        columns.iter_mut().try_for_each(|column| column.write(&mut group))?;
        group.close().map_err(failed)?;
    }
    file.into_inner().map_err(failed)?.finish()
}

/// The type of a column.
#[derive(Clone, Copy, Debug)]
struct RowType {
    stored: Stored,
    is_list: bool,
}

impl RowType {
    /// The type that fits all values.
    fn of<'v>(values: impl Iterator<Item = &'v Value> + Clone) -> Self {
        let mut some = values.clone().filter(|value| !matches!(value, Value::Null)).peekable();
        let is_list = some.peek().is_some() && some.all(|value| matches!(value, Value::List(_)));
        let scalars = |value: &'v Value| match value {
            Value::List(items) if is_list => items.as_slice(),
            Value::Null => &[],
            one => std::slice::from_ref(one),
        };
        let mut stored = None;
        for value in values.flat_map(scalars) {
            let of_value = match value {
                Value::I32(_) | Value::I64(_) => Stored::Int(64),
                Value::F32(_) => Stored::F32,
                Value::F64(_) => Stored::F64,
                Value::Bool(_) => Stored::Bool,
                _ => Stored::Text(Scalar::String),
            };
            match stored {
                None => stored = Some(of_value),
                Some(stored) if stored == of_value => {}
                Some(_) => return RowType { stored: Stored::Text(Scalar::String), is_list },
            }
        }
        RowType { stored: stored.unwrap_or(Stored::Text(Scalar::String)), is_list }
    }

    /// Adds the value of a row.
    fn add(self, value: &Value, column: &mut Column) -> Result<()> {
        match value {
            Value::Null => column.nothing(),
            Value::List(items) if self.is_list => {
                let items = items.iter().map(|item| self.fitting(item)).collect::<Result<Vec<_>>>()?;
                column.list(&items)?;
            }
            one => {
                column.one(&self.fitting(one)?)?;
            }
        }
        Ok(())
    }

    /// The value, as text if the column is text.
    fn fitting(self, value: &Value) -> Result<Value> {
        if !matches!(self.stored, Stored::Text(_)) || matches!(value, Value::String(_)) {
            return Ok(value.clone());
        }
        let mut text = Vec::new();
        write_scalar(&mut text, Scalar::of(value), value)?;
        Ok(Value::string(String::from_utf8_lossy(&text).as_ref()))
    }
}
