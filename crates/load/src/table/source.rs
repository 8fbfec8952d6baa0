//! The rows of tables that a program hands over, block by block: a block is a job for one of several threads.

use mangrove_graph::{Error, Result};

use super::row::{EndLookup, ParsedRows, TableRow, read_row};
use super::stored::{StoredColumns, StoredFields};
use crate::parallel::in_order;
use crate::plan::TablePlan;
use crate::source::{SourceBatch, SourceBlock};
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
    let ends = EndLookup::of(ctx, plan);
    let (mut rows_before, mut bytes) = (0, 0);
    let jobs = || {
        let Some(block) = source.next_block()? else { return Ok(None) };
        let before = rows_before;
        rows_before += block.rows() as u64;
        Ok(Some((block, before)))
    };
    in_order(
        ctx.threads,
        jobs,
        |(block, before), deliver| {
            let mut batch = parse(plan, block, before)?;
            ends.iter().for_each(|ends| ends.resolve(&mut batch));
            deliver(batch);
            Ok(())
        },
        |mut batch| {
            bytes += batch.bytes_taken;
            batch.bytes_taken = bytes;
            take(ctx, batch)
        },
    )
}

/// The rows of a block after so many others. The bytes that they say are their own.
fn parse(plan: &TablePlan, block: Box<dyn SourceBlock>, before: u64) -> Result<ParsedRows> {
    let said = block.rows();
    let SourceBatch { rows, columns, bytes } = block.into_batch()?;
    let is_whole = |column: &Vec<_>| column.len() == rows;
    if rows != said || columns.len() != plan.columns.len() || !columns.iter().all(is_whole) {
        return Err(Error::invalid("a batch does not have a value for each column and row of the table"));
    }
    let mut batch = ParsedRows { bytes_taken: bytes, ..ParsedRows::default() };
    batch.rows.reserve(rows);
    batch.values.reserve(rows * plan.properties().len());
    for row in 0..rows {
        let fields = StoredFields { plan, names: &plan.columns[..], columns: &columns, row };
        let cells = Ok(read_row(plan, &fields, &mut batch.values));
        batch.rows.push(TableRow { line: before + row as u64 + 1, raw: 0..0, cells });
    }
    Ok(batch)
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
