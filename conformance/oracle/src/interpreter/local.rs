//! The `Scope.local` forms: a step over the members of one collection.

use mangrove_graph::Value;
use mangrove_graph::compare::equivalent;

use super::filter::bounds;
use super::reduce::reduce_values;
use super::step::Step;
use super::{Outcome, unsupported};

/// The members of a collection or a path; `None` for any other object. Maps have no members, but entries.
pub(crate) fn members(value: &Value) -> Option<Vec<Value>> {
    Some(match value {
        Value::List(v) | Value::Set(v) => v.to_vec(),
        Value::BulkSet(v) => v
            .iter()
            .flat_map(|(value, times)| std::iter::repeat_n(value.clone(), usize::try_from(*times).unwrap_or(0)))
            .collect(),
        Value::Path(p) => p.objects.clone(),
        _ => return None,
    })
}

/// `count(local)` and the other local reductions.
pub(crate) fn reduce(name: &str, value: &Value) -> Outcome<Option<Value>> {
    match (members(value), value, name) {
        (Some(members), _, _) => reduce_values(name, &members),
        (None, Value::Map(entries), "count") => Ok(Some(Value::I64(entries.len() as i64))),
        (None, Value::Null | Value::Map(_), _) => unsupported(format!("{name}(local) of a {}", value.type_name())),
        (None, _, "count") => Ok(Some(Value::I64(1))),
        (None, _, _) => unsupported(format!("{name}(local) of a {}", value.type_name())),
    }
}

/// `dedup(local)`: a set.
pub(crate) fn dedup(value: &Value) -> Outcome<Option<Value>> {
    let Some(members) = members(value) else {
        return unsupported(format!("dedup(local) of a {}", value.type_name()));
    };
    let mut kept: Vec<Value> = Vec::new();
    for member in members {
        if !kept.iter().any(|k| equivalent(k, &member)) {
            kept.push(member);
        }
    }
    Ok(Some(Value::Set(kept.into())))
}

/// `limit(local, n)`, `range`, `skip` and `tail` likewise: a collection of the same type.
pub(crate) fn range(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    let cut = |v: &[Value]| Ok::<_, super::Failure>(v[bounds(step, v.len())?].to_vec());
    Ok(Some(match value {
        Value::List(v) => Value::list(cut(v)?),
        Value::Set(v) => Value::Set(cut(v)?.into()),
        Value::Map(v) => Value::map(v[bounds(step, v.len())?].to_vec()),
        other => return unsupported(format!("{}(local) of a {}", step.name, other.type_name())),
    }))
}

/// `sample(local, n)`, if the collection has at most n members.
pub(crate) fn sample(step: &Step<'_>, value: &Value) -> Outcome<Option<Value>> {
    match (value, step.numbers()?.first()) {
        (Value::List(v), Some(n)) if usize::try_from(*n).is_ok_and(|n| n >= v.len()) => Ok(Some(value.clone())),
        _ => unsupported("sample(local) that leaves something out"),
    }
}
