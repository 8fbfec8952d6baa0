//! The services `mangrove.projection.…`: list, create, refresh and drop the projections that algorithms read by name.

use mangrove_analytics::Team;
use mangrove_analytics::named::{Choice, NamedProjection};
use mangrove_flow::schedule::Tenant;
use mangrove_graph::{Result, Value};

use super::registry::{Arguments, row};
use crate::state::Database;

pub(super) fn create(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let text = |name: &str| -> Result<Option<String>> { Ok(arguments.text(name)?.map(str::to_owned)) };
    let choice = Choice {
        vertices: text("vertices")?,
        edges: text("edges")?,
        is_undirected: arguments.get("directed").is_some() && !arguments.flag("directed")?,
        weight: text("weight")?,
    };
    let (transaction, team) = (database.begin_read()?, team(database, arguments)?);
    let named = database.projections().named();
    Ok(vec![shown(&named.create(name(arguments)?, choice, transaction.view(), &team)?)])
}

pub(super) fn refresh(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let (transaction, team) = (database.begin_read()?, team(database, arguments)?);
    Ok(vec![shown(&database.projections().named().get(name(arguments)?, transaction.view(), &team)?)])
}

pub(super) fn drop(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    Ok(vec![shown(&database.projections().named().drop(name(arguments)?)?)])
}

pub(super) fn list(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    Ok(database.projections().named().list().iter().map(shown).collect())
}

/// The threads that read a projection, until the query that calls ends.
fn team(database: &Database, arguments: &Arguments<'_>) -> Result<Team> {
    Ok(database.team_of(&Tenant::default(), 0)?.controlled_by(arguments.control.clone()))
}

fn name<'a>(arguments: &Arguments<'a>) -> Result<&'a str> {
    arguments.text("name")?.ok_or_else(|| arguments.missing("name", "the name of the projection"))
}

fn shown(named: &NamedProjection) -> Value {
    let NamedProjection { name, choice, projection } = named;
    let text = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
    let number = |number: u64| Value::I64(i64::try_from(number).unwrap_or(i64::MAX));
    row([
        ("name", name.as_str().into()),
        ("vertices", text(&choice.vertices)),
        ("edges", text(&choice.edges)),
        ("directed", Value::Bool(!choice.is_undirected)),
        ("weight", text(&choice.weight)),
        ("vertex_count", number(projection.vertex_count())),
        ("cell_count", number(projection.cell_count())),
        ("bytes", number(projection.bytes())),
        ("timestamp", projection.commit().map_or(Value::Null, number)),
    ])
}
