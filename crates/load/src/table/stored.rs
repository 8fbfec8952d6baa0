//! The fields of rows whose values have types: those of Parquet files, and those that a program hands over.

use std::fmt::Display;

use mangrove_graph::{UserId, Value};
use smol_str::SmolStr;

use super::row::{End, RejectReason, RowFields, RowId, kind_of, not_an_id, not_of_type};
use crate::export::scalar_text;
use crate::plan::{IdPlan, PropertyPlan, TablePlan};
use crate::values::{ColumnType, list_items};

/// A value, or why it cannot be kept.
pub(crate) type StoredCell<R> = std::result::Result<Value, R>;

/// The columns of a table whose values have types.
pub(crate) trait StoredColumns {
    /// The name of a column.
    fn name(&self, column: usize) -> &str;

    /// Returns true if the values of a column have this type as they are.
    fn is_natural(&self, column: usize, kind: &ColumnType) -> bool;
}

/// The fields of one row. `R` is the reason why a value cannot be kept.
pub(crate) struct StoredFields<'r, C: ?Sized, R> {
    pub(crate) plan: &'r TablePlan,
    pub(crate) names: &'r C,
    /// By column, the values of all rows.
    pub(crate) columns: &'r [Vec<StoredCell<R>>],
    pub(crate) row: usize,
}

impl<C: StoredColumns + ?Sized, R: Display> StoredFields<'_, C, R> {
    /// The value of a column; [`Value::Null`] if there is none.
    fn cell(&self, column: usize) -> Result<&Value, RejectReason> {
        let name = self.names.name(column);
        let cell = self.columns[column].get(self.row).ok_or_else(|| format!("the column '{name}' was not read"))?;
        match cell {
            Ok(Value::String(text)) if self.plan.nulls.iter().any(|null| *null == **text) => Ok(&Value::Null),
            Ok(value) => Ok(value),
            Err(reason) => Err(format!("the value in the column '{name}' cannot be kept: {reason}")),
        }
    }
}

impl<C: StoredColumns + ?Sized, R: Display> RowFields for StoredFields<'_, C, R> {
    fn value(&self, property: &PropertyPlan) -> Result<Value, RejectReason> {
        let (value, kind) = (self.cell(property.column)?, kind_of(property));
        if *value == Value::Null || self.names.is_natural(property.column, kind) {
            return Ok(value.clone());
        }
        convert(value, kind).ok_or_else(|| not_of_type(&text_of(value), property))
    }

    fn id(&self, id: &IdPlan) -> Result<Option<RowId>, RejectReason> {
        let value = self.cell(id.column)?;
        let found = match (value, &id.kind) {
            (Value::Null, _) => return Ok(None),
            (Value::String(text), None) => Some(RowId::of_text(text)),
            (value, None) => plain_id(value),
            (value, Some(kind)) => convert(value, kind).and_then(|value| RowId::of_value(&value)),
        };
        let kind = id.kind.as_ref().unwrap_or(&ColumnType::Id);
        found.map(Some).ok_or_else(|| not_an_id(&text_of(value), kind))
    }

    fn end(&self, id: &IdPlan) -> End {
        // Nearly all ids are whole numbers, which need no allocation.
        match (self.columns[id.column].get(self.row), &id.kind) {
            (Some(Ok(Value::I64(number))), None) => End::Int(*number),
            (Some(Ok(Value::I32(number))), None) => End::Int(i64::from(*number)),
            _ => match self.id(id) {
                Ok(None) => End::None,
                Ok(Some(id)) => End::Id(Box::new(id)),
                Err(reason) => End::Bad(reason),
            },
        }
    }

    fn text(&self, column: usize) -> Result<Option<SmolStr>, RejectReason> {
        Ok(match self.cell(column)? {
            Value::Null => None,
            Value::List(items) => {
                let texts: Vec<String> = items.iter().map(text_of).collect();
                Some(texts.join(";").into())
            }
            value => Some(text_of(value).into()),
        })
    }

    fn keys(&self, column: usize, separator: Option<char>) -> Vec<SmolStr> {
        match (self.cell(column), separator) {
            (Ok(Value::Null) | Err(_), _) => Vec::new(),
            (Ok(Value::List(items)), _) => items.iter().map(|item| text_of(item).into()).collect(),
            (Ok(Value::String(text)), Some(separator)) => {
                list_items(text, separator).map(|item| SmolStr::from(item.trim())).collect()
            }
            (Ok(value), _) => vec![text_of(value).into()],
        }
    }
}

/// The id that a value is, if the plan gives no type. Floats count if they are whole: other tools write a column of
/// whole numbers as floats if some are missing.
fn plain_id(value: &Value) -> Option<RowId> {
    let whole = match value {
        Value::I8(number) => i64::from(*number),
        Value::I16(number) => i64::from(*number),
        Value::I32(number) => i64::from(*number),
        Value::F64(number) if number.fract() == 0.0 && number.abs() < 9e15 => *number as i64,
        other => return RowId::of_value(other),
    };
    RowId::of_value(&UserId::int(whole).to_value())
}

/// Converts a value to a type: a text as the field of a text table is read, another value by way of its text.
fn convert(value: &Value, kind: &ColumnType) -> Option<Value> {
    Some(match (value, kind) {
        (Value::List(items), ColumnType::List(element, _)) => {
            Value::list(items.iter().map(|item| convert(item, element)).collect::<Option<_>>()?)
        }
        (Value::String(text), kind) => kind.parse(text)?,
        (value, ColumnType::Any) => value.clone(),
        (Value::Bytes(bytes), ColumnType::Bytes) => Value::Bytes(bytes.clone()),
        (Value::Bytes(bytes), kind) => kind.parse(std::str::from_utf8(bytes).ok()?)?,
        (Value::DateTime(time), ColumnType::DateTime(_)) => Value::DateTime(*time),
        (Value::DateTime(time), ColumnType::Millis(_)) => Value::I64(time.epoch_millis()?),
        (Value::List(_) | Value::Map(_), _) => return None,
        (value, kind) => kind.parse(&text_of(value))?,
    })
}

/// A value as the text of a field.
fn text_of(value: &Value) -> String {
    scalar_text(value)
}
