//! The rows of tables that a program hands over, batch by batch.

use mangrove_graph::{Error, Result};

use super::row::{ParsedRows, TableRow, read_row};
use super::stored::{StoredColumns, StoredFields};
use crate::plan::TablePlan;
use crate::source::SourceBatch;
use crate::state::LoadContext;
use crate::values::ColumnType;

/// Calls `take` with the rows of a table, in their order. The table is read once.
pub(crate) fn each_batch(
    ctx: &mut LoadContext<'_>,
    plan: &TablePlan,
    mut take: impl FnMut(&mut LoadContext<'_>, ParsedRows) -> Result<()>,
) -> Result<()> {
    let source = ctx.sources.get_mut(plan.file).and_then(Option::take);
    let mut source = source.ok_or_else(|| Error::bug("a table of a program is read once"))?;
    let (mut before, mut bytes) = (0, 0);
    while let Some(SourceBatch { rows, columns, bytes: of_batch }) = source.next_batch()? {
        if columns.len() != plan.columns.len() || columns.iter().any(|column| column.len() != rows) {
            return Err(Error::invalid("a batch does not have a value for each column and row of the table"));
        }
        let mut batch = ParsedRows::default();
        for row in 0..rows {
            let fields = StoredFields { plan, names: &plan.columns[..], columns: &columns, row };
            let cells = Ok(read_row(plan, &fields, &mut batch.values));
            batch.rows.push(TableRow { line: before + row as u64 + 1, raw: 0..0, cells });
        }
        before += rows as u64;
        bytes += of_batch;
        batch.bytes_taken = bytes;
        take(ctx, batch)?;
    }
    Ok(())
}

/// All values have the types that they are given.
impl StoredColumns for [String] {
    fn name(&self, column: usize) -> &str {
        &self[column]
    }

    fn is_natural(&self, _: usize, _: &ColumnType) -> bool {
        true
    }
}
