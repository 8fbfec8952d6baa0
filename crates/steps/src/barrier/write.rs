//! Operators that write: `addV`, `addE`, `mergeV`, `mergeE`, `property`, `drop`, `io`.
//!
//! A writing step is one *statement* for each group: it keeps the rows until all have come, writes in row
//! order, ends the statement, and only then lets its results go. So it never meets what it is itself
//! writing (`g.V().addV()` ends), while whatever comes after it does. A row that stands for several
//! traversers writes as often as it counts.
//!
//! Everything goes through the query's transaction, which finds conflicts; nothing is undone here. A failed
//! write ends the query, and its owner rolls the transaction back.

mod drop;
mod edge;
mod file;
mod property;
mod upsert;
mod vertex;

use std::fmt;

use mangrove_flow::{GroupId, Operator, Output, QueryContext};
use mangrove_graph::{Error, LabelSetId, Result, UserId, Value};
use mangrove_plan::physical::ComputedOperand;
use mangrove_txn::Transaction;

pub use drop::Drop;
pub use edge::AddEdge;
pub use file::File;
pub use property::SetProperty;
pub use upsert::{SetFromMap, Upsert};
pub use vertex::AddVertex;

use super::held::HeldRows;
use crate::environment::Environment;
use crate::rows::{Remember, Rows};

/// What one kind of statement writes.
pub trait Statement: Send {
    /// Writes for all rows of a group and gives the rows that go on.
    fn write(&mut self, rows: Rows, scene: &Scene<'_>) -> Result<Rows>;
}

/// Where a statement is carried out.
pub struct Scene<'a> {
    /// The query's surroundings.
    pub environment: &'a Environment,
    /// The transaction.
    pub writer: &'a Transaction,
    /// Limits of the query.
    pub context: &'a QueryContext,
}

/// Runs a [`Statement`] in the dataflow, once a group.
pub struct WriteBarrier<S> {
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
    fn rest(&mut self) -> bool {
        self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        self.held.add(group, batch, out)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(rows) = self.held.take(group, out) {
            let environment = out.surroundings();
            let writer = environment.writer()?;
            let scene = Scene { environment, writer, context: out.context() };
            let mut results = self.statement.write(rows, &scene)?;
            writer.finish_statement()?;
            results.remember(&self.remember);
            for chunk in results.chunks() {
                out.emit(0, group, chunk)?;
            }
        }
        out.finish_all(group, instances)
    }
}

/// How many writes pass between two looks at the query's limits.
const CHECK_EVERY: usize = 1024;

/// Calls `write` for each row as often as the row counts, and gives the rows those calls are for.
fn for_each_traverser(rows: &Rows, scene: &Scene<'_>, mut write: impl FnMut(usize) -> Result<()>) -> Result<Vec<u32>> {
    /// About what a result costs: its object and its row's share of the other columns.
    const RESULT_BYTES: u64 = 16;
    /// More than any limit: a bulk can stand for more traversers than bytes can be counted.
    const BYTES_MAX: u64 = 1 << 50;
    let count = (0..rows.len()).fold(0_u64, |n, row| n.saturating_add(rows.bulk(row)));
    let bytes = count.saturating_mul(RESULT_BYTES).min(BYTES_MAX);
    scene.context.charge(bytes)?;
    let mut from = Vec::new();
    for row in 0..rows.len() {
        for _ in 0..rows.bulk(row) {
            if from.len().is_multiple_of(CHECK_EVERY) {
                scene.context.check()?;
            }
            write(row)?;
            from.push(row as u32);
        }
    }
    scene.context.release(bytes);
    Ok(from)
}

/// New objects made from rows: each stands for one traverser.
fn results(rows: &Rows, from: &[u32], objects: crate::rows::Column) -> Rows {
    let mut made = rows.derive(from, objects);
    made.bulk.iter_mut().flatten().for_each(|bulk| *bulk = 1);
    made
}

/// Where a value to write comes from.
enum Source {
    Constant(Value),
    Computed(usize),
}

impl Source {
    fn new(operand: &ComputedOperand, environment: &Environment) -> Result<Self> {
        Ok(match operand {
            ComputedOperand::Operand(operand) => Source::Constant(environment.resolve(operand)?),
            ComputedOperand::Computed(column) => Source::Computed(*column),
        })
    }

    /// The value for a row; `what` says what it is for.
    fn value<'a>(&'a self, rows: &'a Rows, row: usize, what: impl fmt::Display) -> Result<&'a Value> {
        match self {
            Source::Constant(value) => Ok(value),
            Source::Computed(column) => rows
                .computed_value(*column, row)
                .ok_or_else(|| Error::evaluation(format!("the traversal that is to give {what} has no result"))),
        }
    }
}

/// The label set that a label names.
fn label_set(label: &Value, scene: &Scene<'_>) -> Result<LabelSetId> {
    let Value::String(text) = label else {
        return Err(Error::invalid(format!("a label must be a string, not a {}", label.type_name())));
    };
    if text.split(mangrove_graph::LABEL_SEPARATOR).any(str::is_empty) {
        return Err(Error::invalid("a label must not be empty"));
    }
    Ok(scene.environment.view.catalog().intern_label_text(text))
}

/// The id that a user chose.
fn user_id(id: &Value, scene: &Scene<'_>) -> Result<UserId> {
    scene.environment.ids.read(id).ok_or_else(|| {
        Error::invalid(format!("an id is an integer of at most 64 bits, a string or a UUID, not a {}", id.type_name()))
    })
}

#[cfg(test)]
mod tests;
