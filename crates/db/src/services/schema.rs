//! The services `mangrove.schema.…`: list, create and drop rules.

use mangrove_graph::{ElementKind, Error, ErrorKind, Result, Value};
use mangrove_store::schema::RuleId;
use smol_str::SmolStr;

use super::registry::{Arguments, row};
use crate::management::count;
use crate::schema::{RuleDefinition, RuleDescription};
use crate::state::Database;

pub(super) fn require(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let (kind, label, key) = (arguments.element()?, name(arguments, "label")?, name(arguments, "key")?);
    define(database, &RuleDefinition::Required { kind, label, key })
}

pub(super) fn value_type(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let (kind, label, key) = (arguments.element()?, name(arguments, "label")?, name(arguments, "key")?);
    let value_type = name(arguments, "type")?;
    define(database, &RuleDefinition::Typed { kind, label, key, value_type })
}

pub(super) fn ends(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let pairs = match arguments.get("ends") {
        Some(Value::List(pairs)) if !pairs.is_empty() => {
            pairs.iter().map(|pair| ends_pair(arguments, pair)).collect::<Result<_>>()?
        }
        _ => return Err(arguments.missing("ends", ENDS)),
    };
    define(database, &RuleDefinition::Ends { label: name(arguments, "label")?, pairs })
}

pub(super) fn drop(database: &Database, arguments: &Arguments<'_>) -> Result<Vec<Value>> {
    let Some(given) = arguments.get("id") else { return Err(arguments.missing("id", "the number of a rule")) };
    let number = mangrove_graph::numeric::integer(given).and_then(|n| u32::try_from(n).ok());
    let id = RuleId(number.ok_or_else(|| arguments.misfit("id", "the number of a rule", given))?);
    let dropped = database.rules().into_iter().find(|rule| rule.id == id);
    let dropped = dropped.ok_or_else(|| {
        let message = format!("there is no rule {}; mangrove.schema.list shows which there are", id.0);
        Error::new(ErrorKind::NotFound, message)
    })?;
    database.drop_rule(id)?;
    Ok(vec![shown(&dropped)])
}

pub(super) fn list(database: &Database, _: &Arguments<'_>) -> Result<Vec<Value>> {
    Ok(database.rules().iter().map(shown).collect())
}

/// The form of pairs of labels, for error messages.
const ENDS: &str = "a list of pairs of labels, as [['person', 'person'], ['person', 'company']]";

fn define(database: &Database, definition: &RuleDefinition) -> Result<Vec<Value>> {
    let id = database.define_rule(definition)?;
    Ok(database.rules().iter().filter(|rule| rule.id == id).map(shown).collect())
}

fn name(arguments: &Arguments<'_>, of: &str) -> Result<SmolStr> {
    arguments.text(of)?.map(Into::into).ok_or_else(|| arguments.missing(of, "a name"))
}

fn ends_pair(arguments: &Arguments<'_>, pair: &Value) -> Result<(SmolStr, SmolStr)> {
    match pair {
        Value::List(labels) => match labels.as_slice() {
            [Value::String(from), Value::String(to)] => Ok((from.clone(), to.clone())),
            _ => Err(arguments.missing("ends", ENDS)),
        },
        _ => Err(arguments.missing("ends", ENDS)),
    }
}

fn shown(rule: &RuleDescription) -> Value {
    let (what, element, label, key, value_type, ends) = match &rule.definition {
        RuleDefinition::Required { kind, label, key } => ("required", *kind, label, Some(key), None, None),
        RuleDefinition::Typed { kind, label, key, value_type } => {
            ("type", *kind, label, Some(key), Some(value_type), None)
        }
        RuleDefinition::Ends { label, pairs } => ("ends", ElementKind::Edge, label, None, None, Some(pairs)),
    };
    let text = |name: Option<&SmolStr>| name.map_or(Value::Null, |name| Value::String(name.clone()));
    let pair = |(from, to): &(SmolStr, SmolStr)| Value::list(vec![text(Some(from)), text(Some(to))]);
    row([
        ("id", count(u64::from(rule.id.0))),
        ("rule", what.into()),
        ("element", element.name().into()),
        ("label", text(Some(label))),
        ("key", text(key)),
        ("type", text(value_type)),
        ("ends", ends.map_or(Value::Null, |pairs| Value::list(pairs.iter().map(pair).collect()))),
        ("online", rule.online.into()),
        ("text", rule.text.as_str().into()),
    ])
}
