//! Batches of an upsert that a client of a server sends. Clients name vertices and edges by user ids.

use std::collections::HashSet;

use mangrove_graph::{EdgeId, GraphView, Result, UserId, Value, VertexId};
use mangrove_load::rows::{EdgeRows, VertexRows, columns_of};
use mangrove_load::{EdgeBatch, LoadSink, PropertyColumn, Upserted, VertexIdentity};
use mangrove_txn::Transaction;

use super::edges::upsert_edges;
use super::{UpsertSink, upsert_vertices};
use crate::state::Database;

/// The outcome of a row, with the user id of its element; null if the row was refused.
pub(crate) type RowOutcome = (Value, Upserted<()>);

/// Writes vertices as one transaction. Returns the outcome of every row.
pub(crate) fn vertices(database: &Database, rows: &VertexRows) -> Result<Vec<RowOutcome>> {
    UpsertSink::new(database).commit(|transaction| {
        let outcomes = upsert_vertices(transaction, &rows.label, &rows.batch, &rows.identity)?;
        named(outcomes, |vertices, ids| transaction.vertex_user_ids(vertices, ids))
    })
}

/// Writes edges as one transaction. Returns the outcome of every row. A row is refused if one of its ends does not
/// exist.
pub(crate) fn edges(database: &Database, rows: &EdgeRows) -> Result<Vec<RowOutcome>> {
    UpsertSink::new(database).commit(|transaction| {
        let sources: Vec<UserId> = rows.ends.iter().map(|(source, _)| source.clone()).collect();
        let targets: Vec<UserId> = rows.ends.iter().map(|(_, target)| target.clone()).collect();
        let (mut from, mut to) = (Vec::new(), Vec::new());
        transaction.find_vertices(&sources, &mut from)?;
        transaction.find_vertices(&targets, &mut to)?;
        let whole: Vec<usize> = (0..rows.ends.len()).filter(|row| from[*row].is_some() && to[*row].is_some()).collect();
        let mut written = write(transaction, rows, &whole, &from, &to)?.into_iter();
        let mut outcomes = Vec::with_capacity(rows.ends.len());
        for row in 0..rows.ends.len() {
            outcomes.push(match (from[row], to[row]) {
                (Some(_), Some(_)) => written.next().expect("one for each row that has both ends"),
                (None, _) => gone("source", &sources[row]),
                (_, None) => gone("target", &targets[row]),
            });
        }
        Ok(outcomes)
    })
}

/// The user id of the vertex with this id or with this value of a key; null if there is none.
pub(crate) fn find(database: &Database, identity: &VertexIdentity, id: &UserId) -> Result<Value> {
    let Some(vertex) = UpsertSink::new(database).find(identity, id)? else { return Ok(Value::Null) };
    let mut ids = Vec::new();
    database.inner.manager.begin_read()?.vertex_user_ids(&[vertex], &mut ids)?;
    Ok(ids.pop().unwrap_or(Value::Null))
}

fn gone(end: &str, id: &UserId) -> RowOutcome {
    (Value::Null, Upserted::Refused(format!("the {end} vertex {id} is not in the graph, or was deleted meanwhile")))
}

/// Writes the rows whose ends exist.
fn write(
    transaction: &Transaction,
    rows: &EdgeRows,
    whole: &[usize],
    from: &[Option<VertexId>],
    to: &[Option<VertexId>],
) -> Result<Vec<RowOutcome>> {
    let ends = whole.iter().filter_map(|row| Some((from[*row]?, to[*row]?))).collect();
    let columns = match whole.len() == rows.ends.len() {
        true => columns_of(&rows.columns, &(0..whole.len())),
        false => rows.columns.iter().map(|column| chosen(column, whole)).collect(),
    };
    let ids = rows.ids.as_ref().map(|ids| whole.iter().map(|row| ids[*row].clone()).collect());
    let mut met = Vec::new();
    transaction.find_edges(&rows.met, &mut met)?;
    let met: HashSet<EdgeId> = met.into_iter().flatten().collect();
    let batch = EdgeBatch { ends, ids, columns };
    let outcomes = upsert_edges(transaction, &rows.label, &batch, &rows.identity, &met)?;
    named(outcomes, |edges, ids| transaction.edge_user_ids(edges, ids))
}

fn chosen(column: &PropertyColumn, rows: &[usize]) -> PropertyColumn {
    PropertyColumn { key: column.key.clone(), values: rows.iter().map(|row| column.values[*row].clone()).collect() }
}

/// Adds the user ids of the elements to the outcomes.
fn named<T: Copy>(
    outcomes: Vec<Upserted<T>>,
    ids_of: impl FnOnce(&[T], &mut Vec<Value>) -> Result<()>,
) -> Result<Vec<RowOutcome>> {
    let element = |outcome: &Upserted<T>| match outcome {
        Upserted::Created(element) | Upserted::Updated(element) | Upserted::Unchanged(element) => Some(*element),
        Upserted::Refused(_) => None,
    };
    let elements: Vec<T> = outcomes.iter().filter_map(element).collect();
    let mut ids = Vec::with_capacity(elements.len());
    ids_of(&elements, &mut ids)?;
    let mut ids = ids.into_iter();
    let mut next = || ids.next().unwrap_or(Value::Null);
    let named = |outcome| match outcome {
        Upserted::Created(_) => (next(), Upserted::Created(())),
        Upserted::Updated(_) => (next(), Upserted::Updated(())),
        Upserted::Unchanged(_) => (next(), Upserted::Unchanged(())),
        Upserted::Refused(reason) => (Value::Null, Upserted::Refused(reason)),
    };
    Ok(outcomes.into_iter().map(named).collect())
}
