//! The services `mangrove.upsert.…`, to which `mangrove load --url` sends batches.

use mangrove_graph::{Result, Value};
use mangrove_load::Upserted;
use mangrove_load::rows::{EdgeRows, VertexRows, find_from_arguments};

use super::registry::{Arguments, row};
use crate::state::Database;
use crate::upsert::remote;

pub(super) fn vertices(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let rows = VertexRows::from_arguments(|name| arguments.get(name)).map_err(|error| arguments.located(error))?;
    Ok(vec![shown(remote::vertices(database, &rows)?)])
}

pub(super) fn edges(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let rows = EdgeRows::from_arguments(|name| arguments.get(name)).map_err(|error| arguments.located(error))?;
    Ok(vec![shown(remote::edges(database, &rows)?)])
}

pub(super) fn find(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let (identity, id) = find_from_arguments(|name| arguments.get(name)).map_err(|error| arguments.located(error))?;
    Ok(vec![row([("id", remote::find(database, &identity, &id)?)])])
}

/// One row with two lists, ids and outcomes, in the order of the rows of the batch.
fn shown(outcomes: Vec<remote::RowOutcome>) -> Value {
    let word = |outcome: &Upserted<()>| match outcome {
        Upserted::Created(()) => "created".into(),
        Upserted::Updated(()) => "updated".into(),
        Upserted::Unchanged(()) => "unchanged".into(),
        Upserted::Refused(reason) => Value::from(format!("refused: {reason}")),
    };
    let words = outcomes.iter().map(|(_, outcome)| word(outcome)).collect();
    let ids = outcomes.into_iter().map(|(id, _)| id).collect();
    row([("ids", Value::list(ids)), ("outcomes", Value::list(words))])
}
