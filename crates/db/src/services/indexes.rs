//! The services `mangrove.index.…`: list, create and drop indexes.

use mangrove_graph::{Error, ErrorKind, IndexId, Result, Value};
use smol_str::SmolStr;

use super::registry::{Arguments, row};
use crate::management::{IndexDefinition, IndexDescription, IndexKind, count};
use crate::state::Database;

pub(super) fn create(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let definition = IndexDefinition {
        element: arguments.element()?,
        label: arguments.text("label")?.map(Into::into),
        keys: keys(arguments)?,
        kind: arguments.text("kind")?.map_or(Ok(IndexKind::default()), str::parse)?,
        unique: arguments.flag("unique")?,
    };
    let id = database.define_index(&definition)?;
    Ok(database.indexes().iter().filter(|index| index.id == id).map(shown).collect())
}

pub(super) fn drop(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let wanted = wanted(arguments)?;
    let mut found = database.indexes();
    found.retain(|index| wanted(index));
    match &found[..] {
        [one] => {
            database.drop_index(one.id)?;
            Ok(vec![shown(one)])
        }
        [] => Err(Error::new(ErrorKind::NotFound, "there is no such index; mangrove.index.list shows which there are")),
        several => Err(Error::invalid(format!(
            "{} indexes are about this; name one by its 'id' (mangrove.index.list shows them)",
            several.len()
        ))),
    }
}

pub(super) fn list(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    Ok(database.indexes().iter().map(shown).collect())
}

/// A test for the index that the arguments of a call mean.
type IndexTest = Box<dyn Fn(&IndexDescription) -> bool>;

/// The test for the index that the arguments mean: by its number, or by its elements, label, keys and kind.
fn wanted(arguments: &Arguments<'_>) -> Result<IndexTest> {
    if let Some(id) = arguments.get("id") {
        let number = mangrove_graph::numeric::integer(id).and_then(|n| u32::try_from(n).ok());
        let id = IndexId(number.ok_or_else(|| arguments.misfit("id", "the number of an index", id))?);
        return Ok(Box::new(move |index| index.id == id));
    }
    let element = arguments.element()?;
    let label: Option<SmolStr> = arguments.text("label")?.map(Into::into);
    let keys = keys(arguments)?;
    let kind: Option<IndexKind> = arguments.text("kind")?.map(str::parse).transpose()?;
    Ok(Box::new(move |index| {
        let definition = &index.definition;
        definition.element == element
            && definition.label == label
            && definition.keys == keys
            && kind.is_none_or(|kind| definition.kind == kind)
    }))
}

/// The argument for property keys: one key or a list.
fn keys(arguments: &Arguments<'_>) -> Result<Vec<SmolStr>> {
    let one = |value: &Value| match value {
        Value::String(key) => Ok(key.clone()),
        other => Err(arguments.misfit("key", "the name of a property, or a list of names", other)),
    };
    match arguments.get("key") {
        None => Err(arguments.missing("key", "the name of a property, or a list of names")),
        Some(Value::List(keys)) => keys.iter().map(one).collect(),
        Some(key) => Ok(vec![one(key)?]),
    }
}

fn shown(index: &IndexDescription) -> Value {
    let IndexDefinition { element, label, keys, kind, unique } = &index.definition;
    row([
        ("id", count(u64::from(index.id.0))),
        ("element", element.name().into()),
        ("label", label.as_ref().map_or(Value::Null, |label| Value::String(label.clone()))),
        ("key", Value::list(keys.iter().map(|key| Value::String(key.clone())).collect())),
        ("kind", kind.name().into()),
        ("unique", (*unique).into()),
        ("online", index.online.into()),
        ("entries", count(index.entries)),
        ("distinct", count(index.distinct)),
        ("bytes", count(index.bytes)),
    ])
}
