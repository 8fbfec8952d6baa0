//! Rows of a file, as those of any table: row groups are jobs for threads, a few thousand rows a batch.

use mangrove_graph::{Result, UserId, Value};
use smol_str::SmolStr;

use super::assemble::{Cell, Column};
use super::pages::Budget;
use super::schema::Field;
use super::{ParquetFile, damaged, guarded};
use crate::column_type::{ColumnType, list_items};
use crate::context::Context;
use crate::export::scalar_text;
use crate::parallel::{Hand, in_order};
use crate::plan::{IdPlan, LabelPlan, PropertyPlan, Rows, TablePlan};
use crate::row::{Fields, Reason, Row, RowBatch, RowId, kind_of, not_an_id, not_of_type, read_row};

/// Rows of one batch.
const ROWS_MAX: u64 = 4 * 1024;
/// About how many values a batch may have in a column of lists.
const VALUES: u64 = 256 * 1024;

/// A row group.
struct Job {
    group: usize,
    /// Rows of the file before it.
    rows_before: u64,
    /// Bytes of the row groups before it, and with it.
    bytes: (u64, u64),
}

/// Shows the rows of a file, parsed, in their order.
pub(crate) fn each_batch(
    ctx: &mut Context<'_>,
    plan: &TablePlan,
    file: &ParquetFile,
    mut take: impl FnMut(&mut Context<'_>, RowBatch) -> Result<()>,
) -> Result<()> {
    let columns = needed_columns(plan, file);
    let mut next = Job { group: 0, rows_before: 0, bytes: (0, 0) };
    let jobs = || {
        let Some(group) = file.metadata.row_groups().get(next.group) else { return Ok(None) };
        let rows = u64::try_from(group.num_rows()).map_err(|_| damaged("a row group has fewer than no rows"))?;
        let bytes = group.columns().iter().map(|chunk| u64::try_from(chunk.compressed_size()).unwrap_or(0));
        // A footer may lie about sizes; this one is for progress only.
        let bytes = next.bytes.1.saturating_add(bytes.fold(0, u64::saturating_add)).min(file.len);
        let job = Job { group: next.group, rows_before: next.rows_before, bytes: (next.bytes.1, bytes) };
        next = Job { group: next.group + 1, rows_before: next.rows_before.saturating_add(rows), bytes: (bytes, bytes) };
        Ok(Some(job))
    };
    let work = |job: Job, hand: &mut Hand<'_, RowBatch>| guarded(|| read_group(plan, file, &columns, &job, hand));
    in_order(ctx.threads, jobs, work, |batch| take(ctx, batch))
}

/// The columns that a plan reads, ascending; at least one, which says how many rows there are.
fn needed_columns(plan: &TablePlan, file: &ParquetFile) -> Vec<usize> {
    let mut columns: Vec<usize> = plan.properties().iter().map(|property| property.column).collect();
    let of_label = |label: &LabelPlan| label.column;
    match &plan.rows {
        Rows::Vertices(plan) => {
            columns.extend(plan.id.as_ref().map(|id| id.column));
            columns.extend(of_label(&plan.label));
        }
        Rows::Edges(plan) => {
            columns.extend([plan.source.column.column, plan.target.column.column]);
            columns.extend(plan.id.as_ref().map(|id| id.column));
            columns.extend(of_label(&plan.label));
        }
        Rows::Values(plan) => columns.push(plan.owner.column.column),
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
    hand: &mut Hand<'_, RowBatch>,
) -> Result<()> {
    let group = file.metadata.row_group(job.group);
    let rows = group.num_rows().unsigned_abs();
    let budget = Budget::default();
    let mut open = needed
        .iter()
        .map(|at| Ok((*at, Column::open(file, group, &file.fields[*at], &budget)?)))
        .collect::<Result<Vec<_>>>()?;
    let values = needed.iter().flat_map(|at| file.fields[*at].leaves.clone());
    let values =
        values.filter_map(|leaf| group.columns().get(leaf)).map(|chunk| chunk.num_values().unsigned_abs()).max();
    let per_row = values.unwrap_or(0) / rows.max(1);
    let batch_rows = (VALUES / per_row.max(1)).clamp(1, ROWS_MAX);
    let mut columns: Vec<Vec<Cell>> = file.fields.iter().map(|_| Vec::new()).collect();
    let mut done = 0;
    while done < rows {
        let count = batch_rows.min(rows - done);
        for (at, column) in &mut open {
            columns[*at] = column.read(count as usize)?;
        }
        let mut batch = RowBatch::default();
        for row in 0..count as usize {
            let fields = StoredFields { plan, fields: &file.fields, columns: &columns, row };
            let cells = Ok(read_row(plan, &fields, &mut batch.values));
            batch.rows.push(Row { line: job.rows_before + done + row as u64 + 1, raw: 0..0, cells });
        }
        done += count;
        let (before, with) = job.bytes;
        batch.bytes_taken = before + ((with - before) as f64 * (done as f64 / rows as f64)) as u64;
        if !hand(batch) {
            return Ok(());
        }
    }
    Ok(())
}

/// The fields of one row.
struct StoredFields<'r> {
    plan: &'r TablePlan,
    fields: &'r [Field],
    columns: &'r [Vec<Cell>],
    row: usize,
}

impl StoredFields<'_> {
    /// A value; [`Value::Null`] where there is none.
    fn cell(&self, column: usize) -> Result<&Value, Reason> {
        let name = &self.fields[column].name;
        let cell = self.columns[column].get(self.row).ok_or_else(|| format!("the column '{name}' was not read"))?;
        match cell {
            Ok(Value::String(text)) if self.plan.nulls.iter().any(|null| *null == **text) => Ok(&Value::Null),
            Ok(value) => Ok(value),
            Err(reason) => Err(format!("the value in the column '{name}' cannot be kept: {reason}")),
        }
    }

    /// Whether a column has this type already.
    fn is_natural(&self, column: usize, kind: &ColumnType) -> bool {
        self.fields[column].shape.as_ref().is_ok_and(|shape| shape.kind == *kind)
    }
}

impl Fields for StoredFields<'_> {
    fn value(&self, property: &PropertyPlan) -> Result<Value, Reason> {
        let (value, kind) = (self.cell(property.column)?, kind_of(property));
        if *value == Value::Null || self.is_natural(property.column, kind) {
            return Ok(value.clone());
        }
        convert(value, kind).ok_or_else(|| not_of_type(&text_of(value), property))
    }

    fn id(&self, id: &IdPlan) -> Result<Option<RowId>, Reason> {
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

    fn text(&self, column: usize) -> Result<Option<SmolStr>, Reason> {
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

/// The id that a value without a type of its own stands for. Floats are what other tools make of a column of whole numbers where
/// some are missing.
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

/// A value as one of another type: texts are read as the fields of a text table are, other values by way of their text.
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
