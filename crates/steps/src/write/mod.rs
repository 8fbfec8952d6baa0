//! Operators that write: `addV`, `addE`, `mergeV`, `mergeE`, `property`, `drop`, `io`.
//!
//! - **STEPS-7.** A writing step carries out one *statement* for each group, in one call, when the group ends. It holds
//!   the rows until then, writes in the order of the rows, ends the statement, and only then sends its results. So it
//!   never meets its own writes (`g.V().addV()` ends), the steps after it do, and no cancellation reaches a write that
//!   has begun.
//!
//! A row that stands for several traversers writes as often as it counts. All writes go through the transaction of the
//! query, which detects conflicts. Nothing is undone here: a failed write ends the query, and the owner of the
//! transaction rolls it back.

mod drop;
mod edge;
mod file;
mod property;
mod upsert;
mod vertex;

use std::fmt;

use mangrove_flow::{Cursor, GroupId, Operator, Output, QueryControl, Step, TagSet};
use mangrove_graph::{Error, LabelSetId, Result, UserId, Value};
use mangrove_plan::physical::ComputedOperand;
use mangrove_txn::Transaction;

pub(crate) use drop::Drop;
pub(crate) use edge::AddEdge;
pub(crate) use file::File;
pub(crate) use property::SetProperty;
pub(crate) use upsert::{SetFromMap, Upsert};
pub(crate) use vertex::AddVertex;

use crate::context::execution::ExecutionContext;
use crate::context::type_name::a_type;
use crate::rows::held::HeldRows;
use crate::rows::{Remember, Rows};

/// The writes of one kind of step.
pub(crate) trait Statement: Send {
    /// Writes for all rows of a group. Returns the rows that go on.
    fn write(&mut self, rows: Rows, ctx: &WriteContext<'_>) -> Result<Rows>;
}

/// The transaction, limits and execution context of a statement.
pub(crate) struct WriteContext<'a> {
    /// The execution context of the run.
    pub context: &'a ExecutionContext,
    /// The transaction of the query, which all writes go through.
    pub writer: &'a Transaction,
    /// The limits and memory account of the query.
    pub control: &'a QueryControl,
}

/// Runs a [`Statement`] in the dataflow, once for each group.
pub(crate) struct WriteBarrier<S> {
    statement: S,
    held: HeldRows,
    remember: Remember,
}

impl<S: Statement> WriteBarrier<S> {
    fn of(statement: S, remember: Remember) -> Self {
        WriteBarrier { statement, held: HeldRows::default(), remember }
    }
}

impl<S: Statement> Operator<Rows> for WriteBarrier<S> {
    fn recycle(&mut self) -> bool {
        self.held.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    /// The first step writes. After it, the row of the cursor is 1, and each step sends a batch of results.
    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if at.is_start() {
            at.row = 1;
            // STEPS-7: the rows of the whole group are here, and the results are sent after the statement has ended.
            if let Some((rows, charged)) = self.held.take(group, out)? {
                let context = out.context();
                let writer = context.writer()?;
                let ctx = WriteContext { context, writer, control: out.control() };
                let mut results = self.statement.write(rows, &ctx)?;
                writer.finish_statement()?;
                out.control().release(charged);
                results.remember(&self.remember);
                for chunk in results.chunks() {
                    self.held.add(group, chunk, out)?;
                }
            }
        }
        if self.held.send_next_computed(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}

/// Writes between two checks of the limits of the query.
const CHECK_EVERY: usize = 1024;

/// Calls `write` for each row as often as the row counts. Returns the row of each call.
fn for_each_traverser(
    rows: &Rows,
    ctx: &WriteContext<'_>,
    mut write: impl FnMut(usize) -> Result<()>,
) -> Result<Vec<u32>> {
    /// The approximate bytes of a result: its object, and its row's share of the other columns.
    const RESULT_BYTES: u64 = 16;
    /// A number of bytes above any limit: a bulk may stand for more traversers than 64 bits can count bytes for.
    const BYTES_MAX: u64 = 1 << 50;
    let count = (0..rows.len()).fold(0_u64, |n, row| n.saturating_add(rows.bulk(row)));
    let bytes = count.saturating_mul(RESULT_BYTES).min(BYTES_MAX);
    ctx.control.charge(bytes)?;
    let mut from = Vec::new();
    for row in 0..rows.len() {
        for _ in 0..rows.bulk(row) {
            if from.len().is_multiple_of(CHECK_EVERY) {
                ctx.control.check()?;
            }
            write(row)?;
            from.push(row as u32);
        }
    }
    ctx.control.release(bytes);
    Ok(from)
}

/// Returns rows with new objects, each of which stands for one traverser.
fn results(rows: &Rows, from: &[u32], objects: crate::rows::ObjectColumn) -> Rows {
    let mut made = rows.derive(from, objects);
    made.bulk.iter_mut().flatten().for_each(|bulk| *bulk = 1);
    made
}

/// The source of a written value.
enum ValueSource {
    Constant(Value),
    Computed(usize),
}

impl ValueSource {
    fn new(operand: &ComputedOperand, context: &ExecutionContext) -> Result<Self> {
        Ok(match operand {
            ComputedOperand::Operand(operand) => ValueSource::Constant(context.resolve(operand)?),
            ComputedOperand::Computed(column) => ValueSource::Computed(*column),
        })
    }

    /// Returns the value for a row. `what` names it in errors.
    fn value<'a>(&'a self, rows: &'a Rows, row: usize, what: impl fmt::Display) -> Result<&'a Value> {
        match self {
            ValueSource::Constant(value) => Ok(value),
            ValueSource::Computed(column) => rows
                .computed_value(*column, row)
                .ok_or_else(|| Error::evaluation(format!("the traversal that is to give {what} has no result"))),
        }
    }
}

/// Returns the label set that a label names, interning it if it is new.
fn label_set(label: &Value, ctx: &WriteContext<'_>) -> Result<LabelSetId> {
    let Value::String(text) = label else {
        return Err(Error::invalid(format!("a label must be a string, not {}", a_type(label))));
    };
    if text.split(mangrove_graph::LABEL_SEPARATOR).any(str::is_empty) {
        return Err(Error::invalid("a label must not be empty"));
    }
    Ok(ctx.context.view.catalog().intern_label_text(text))
}

/// Returns the id that the client chose.
fn user_id(id: &Value, ctx: &WriteContext<'_>) -> Result<UserId> {
    ctx.context.ids.read(id).ok_or_else(|| {
        Error::invalid(format!("an id is an integer of at most 64 bits, a string or a UUID, not {}", a_type(id)))
    })
}

#[cfg(test)]
mod tests;
