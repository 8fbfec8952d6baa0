//! The rows of Parquet files, parsed by several threads: a row group is a job, and a few thousand rows are a batch.

use mangrove_graph::{Result, UserId, Value};
use smol_str::SmolStr;

use super::row::{ParsedRows, RejectReason, RowFields, RowId, TableRow, kind_of, not_an_id, not_of_type, read_row};
use crate::export::scalar_text;
use crate::parallel::{Deliver, in_order};
use crate::parquet::{PageBudget, ParquetCell, ParquetColumn, ParquetField, ParquetFile, damaged, guarded};
use crate::plan::{IdPlan, LabelPlan, PropertyPlan, RowsPlan, TablePlan};
use crate::state::LoadContext;
use crate::values::{ColumnType, list_items};

/// The most rows of one batch.
const ROWS_MAX: u64 = 4 * 1024;
/// About the most values of a batch in a column of lists.
const VALUES: u64 = 256 * 1024;

/// A row group.
struct Job {
    group: usize,
    /// Rows of the file before it.
    rows_before: u64,
    /// Bytes of the row groups before it, without and with it.
    bytes: (u64, u64),
}

/// Calls `take` with the parsed rows of a file, in their order.
pub(crate) fn each_batch(
    ctx: &mut LoadContext<'_>,
    plan: &TablePlan,
    file: &ParquetFile,
    mut take: impl FnMut(&mut LoadContext<'_>, ParsedRows) -> Result<()>,
) -> Result<()> {
    let columns = needed_columns(plan, file);
    let mut next = Job { group: 0, rows_before: 0, bytes: (0, 0) };
    let jobs = || {
        let Some(group) = file.metadata.row_groups().get(next.group) else { return Ok(None) };
        let rows = u64::try_from(group.num_rows()).map_err(|_| damaged("a row group has fewer than no rows"))?;
        let bytes = group.columns().iter().map(|chunk| u64::try_from(chunk.compressed_size()).unwrap_or(0));
        // A footer may lie about sizes; this one only serves progress.
        let bytes = next.bytes.1.saturating_add(bytes.fold(0, u64::saturating_add)).min(file.len);
        let job = Job { group: next.group, rows_before: next.rows_before, bytes: (next.bytes.1, bytes) };
        next = Job { group: next.group + 1, rows_before: next.rows_before.saturating_add(rows), bytes: (bytes, bytes) };
        Ok(Some(job))
    };
    let work =
        |job: Job, deliver: &mut Deliver<'_, ParsedRows>| guarded(|| read_group(plan, file, &columns, &job, deliver));
    in_order(ctx.threads, jobs, work, |batch| take(ctx, batch))
}

/// The columns that a plan reads, ascending. There is at least one, because a column says how many rows there are.
fn needed_columns(plan: &TablePlan, file: &ParquetFile) -> Vec<usize> {
    let mut columns: Vec<usize> = plan.properties().iter().map(|property| property.column).collect();
    let of_label = |label: &LabelPlan| label.column;
    match &plan.rows {
        RowsPlan::Vertices(plan) => {
            columns.extend(plan.id.as_ref().map(|id| id.column));
            columns.extend(of_label(&plan.label));
        }
        RowsPlan::Edges(plan) => {
            columns.extend([plan.source.column.column, plan.target.column.column]);
            columns.extend(plan.id.as_ref().map(|id| id.column));
            columns.extend(of_label(&plan.label));
        }
        RowsPlan::Values(plan) => columns.push(plan.owner.column.column),
    }
    if columns.is_empty() {
        columns.extend(file.fields.iter().position(|field| field.shape.is_ok()));
    }
    columns.sort_unstable();
    columns.dedup();
    columns
}

fn read_group(
    plan: &TablePlan,
    file: &ParquetFile,
    needed: &[usize],
    job: &Job,
    deliver: &mut Deliver<'_, ParsedRows>,
) -> Result<()> {
    let group = file.metadata.row_group(job.group);
    let rows = group.num_rows().unsigned_abs();
    let budget = PageBudget::default();
    let mut open = needed
        .iter()
        .map(|at| Ok((*at, ParquetColumn::open(file, group, &file.fields[*at], &budget)?)))
        .collect::<Result<Vec<_>>>()?;
    let values = needed.iter().flat_map(|at| file.fields[*at].leaves.clone());
    let values =
        values.filter_map(|leaf| group.columns().get(leaf)).map(|chunk| chunk.num_values().unsigned_abs()).max();
    let per_row = values.unwrap_or(0) / rows.max(1);
    let batch_rows = (VALUES / per_row.max(1)).clamp(1, ROWS_MAX);
    let mut columns: Vec<Vec<ParquetCell>> = file.fields.iter().map(|_| Vec::new()).collect();
    let mut done = 0;
    while done < rows {
        let count = batch_rows.min(rows - done);
        for (at, column) in &mut open {
            columns[*at] = column.read(count as usize)?;
        }
        let mut batch = ParsedRows::default();
        for row in 0..count as usize {
            let fields = StoredFields { plan, fields: &file.fields, columns: &columns, row };
            let cells = Ok(read_row(plan, &fields, &mut batch.values));
            batch.rows.push(TableRow { line: job.rows_before + done + row as u64 + 1, raw: 0..0, cells });
        }
        done += count;
        let (before, with) = job.bytes;
        batch.bytes_taken = before + ((with - before) as f64 * (done as f64 / rows as f64)) as u64;
        if !deliver(batch) {
            return Ok(());
        }
    }
    Ok(())
}

/// The fields of one row.
struct StoredFields<'r> {
    plan: &'r TablePlan,
    fields: &'r [ParquetField],
    columns: &'r [Vec<ParquetCell>],
    row: usize,
}

impl StoredFields<'_> {
    /// The value of a column; [`Value::Null`] if there is none.
    fn cell(&self, column: usize) -> Result<&Value, RejectReason> {
        let name = &self.fields[column].name;
        let cell = self.columns[column].get(self.row).ok_or_else(|| format!("the column '{name}' was not read"))?;
        match cell {
            Ok(Value::String(text)) if self.plan.nulls.iter().any(|null| *null == **text) => Ok(&Value::Null),
            Ok(value) => Ok(value),
            Err(reason) => Err(format!("the value in the column '{name}' cannot be kept: {reason}")),
        }
    }

    /// Returns true if the file gives a column this type.
    fn is_natural(&self, column: usize, kind: &ColumnType) -> bool {
        self.fields[column].shape.as_ref().is_ok_and(|shape| shape.kind == *kind)
    }
}

impl RowFields for StoredFields<'_> {
    fn value(&self, property: &PropertyPlan) -> Result<Value, RejectReason> {
        let (value, kind) = (self.cell(property.column)?, kind_of(property));
        if *value == Value::Null || self.is_natural(property.column, kind) {
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
