//! Results as columns, for a reader that takes columns (Arrow).
//!
//! Maps of `project()` are never made: the computed columns of their rows are the columns. Numbers of one type stay an array.

use std::sync::Arc;

use mangrove_arrow::Results;
use mangrove_flow::NodeRuntime;
use mangrove_graph::{Error, Result, Value};
use mangrove_steps::{Meter, ObjectColumn, Rows, check_results, detach};
use smol_str::SmolStr;

use crate::options::Materialize;

/// The results as columns; the rows again if they are values.
pub(super) fn columns(
    mut rows: Rows,
    keys: Option<&Arc<[SmolStr]>>,
    runtime: &NodeRuntime<Rows>,
    materialize: Materialize,
) -> Result<std::result::Result<Results, Rows>> {
    let computed = rows.take_computed();
    if computed.is_empty() {
        return Ok(match rows {
            Rows { objects: ObjectColumn::Numbers(numbers), bulk: None, .. } => {
                Ok(Results::Numbers(numbers.into_numbers()))
            }
            other => Err(other),
        });
    }
    let keys = keys.cloned().ok_or_else(|| Error::bug("only results that are maps have computed columns"))?;
    let columns = computed.into_iter().map(|column| detached(column, runtime, materialize)).collect::<Result<_>>()?;
    let len = rows.len();
    Ok(Ok(match rows.bulk {
        None => Results::Maps { len, keys, columns },
        Some(bulk) => Results::Values(maps(&keys, columns, len).zip(bulk).collect()),
    }))
}

/// The maps with these keys and columns.
fn maps(keys: &[SmolStr], mut columns: Vec<Vec<Option<Value>>>, len: usize) -> impl Iterator<Item = Value> {
    (0..len).map(move |row| {
        let entry = |(key, column): (&SmolStr, &mut Vec<Option<Value>>)| {
            Some((Value::String(key.clone()), column.get_mut(row)?.take()?))
        };
        Value::map(keys.iter().zip(&mut columns).filter_map(entry).collect())
    })
}

/// A column whose elements are detached.
fn detached(
    mut column: Vec<Option<Value>>,
    runtime: &NodeRuntime<Rows>,
    materialize: Materialize,
) -> Result<Vec<Option<Value>>> {
    if column.iter().flatten().all(is_plain) {
        return Ok(column);
    }
    check_results(column.iter().flatten(), runtime.control())?;
    let context = runtime.context().ok_or_else(|| Error::bug("results come before the end"))?;
    let Some(detail) = materialize.detail(context.writer.is_none()) else { return Ok(column) };
    let places: Vec<usize> = (0..column.len()).filter(|row| column[*row].is_some()).collect();
    let values: Vec<Value> = column.iter_mut().filter_map(Option::take).collect();
    let values = detach(values, &*context.view, detail, &mut Meter::new(runtime.control()))?;
    places.into_iter().zip(values).for_each(|(row, value)| column[row] = Some(value));
    Ok(column)
}

/// Returns true for a value that neither is an element or a property nor has parts.
fn is_plain(value: &Value) -> bool {
    matches!(
        value,
        Value::Null
            | Value::Bool(_)
            | Value::I8(_)
            | Value::I16(_)
            | Value::I32(_)
            | Value::I64(_)
            | Value::F32(_)
            | Value::F64(_)
            | Value::String(_)
            | Value::DateTime(_)
            | Value::Duration(_)
    )
}
