//! The rows of Parquet files, parsed by several threads: a row group is a job, and a few thousand rows are a batch.

use mangrove_graph::Result;

use super::row::{EndLookup, ParsedRows, TableRow, read_row};
use super::stored::{StoredColumns, StoredFields};
use crate::parallel::{Deliver, in_order};
use crate::parquet::{PageBudget, ParquetCell, ParquetColumn, ParquetField, ParquetFile, damaged, guarded};
use crate::plan::{LabelPlan, RowsPlan, TablePlan};
use crate::state::LoadContext;
use crate::values::ColumnType;

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
    let ends = EndLookup::of(ctx, plan);
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
    let work = |job: Job, deliver: &mut Deliver<'_, ParsedRows>| {
        let deliver = &mut |mut batch| {
            ends.iter().for_each(|ends| ends.resolve(&mut batch));
            deliver(batch)
        };
        guarded(|| read_group(plan, file, &columns, &job, deliver))
    };
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
            let fields = StoredFields { plan, names: &file.fields[..], columns: &columns, row };
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

impl StoredColumns for [ParquetField] {
    fn name(&self, column: usize) -> &str {
        &self[column].name
    }

    fn is_natural(&self, column: usize, kind: &ColumnType) -> bool {
        self[column].shape.as_ref().is_ok_and(|shape| shape.kind == *kind)
    }
}
