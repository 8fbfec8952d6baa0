//! Functions of collections. Members are the same if they are equivalent, as in `dedup()`.

use std::sync::Arc;

use hashbrown::HashSet;
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::function::CollectionFunction;

use super::text::Texts;
use super::{Given, check_members, check_text, class};
use crate::row::local::elements;

type Set = HashSet<Equivalent, foldhash::fast::RandomState>;

/// The values without repetition, the first of equivalent ones.
pub(crate) fn distinct(values: Vec<Value>) -> Vec<Value> {
    let mut seen = Set::default();
    values.into_iter().filter(|value| seen.insert(Equivalent(value.clone()))).collect()
}

pub(super) fn apply(function: CollectionFunction, object: &Value, given: &[Given<'_>], texts: &Texts) -> Result<Value> {
    let given = given.first().copied().unwrap_or(Given::Result(None));
    if let (CollectionFunction::Merge, Value::Map(entries)) = (function, object) {
        return merge_maps(entries, given);
    }
    let members = members(function, object)?;
    if function == CollectionFunction::Conjoin {
        return conjoin(&members, given, texts);
    }
    let others = others(function, given)?;
    if function != CollectionFunction::Product {
        check_members(function.name(), members.len().saturating_add(others.len()))?;
    }
    let hashed = |values: &[Value]| values.iter().cloned().map(Equivalent).collect::<Set>();
    let set = |values: Vec<Value>| Value::Set(Arc::new(distinct(values)));
    Ok(match function {
        CollectionFunction::Combine => Value::list([members, others].concat()),
        CollectionFunction::Merge => set([members, others].concat()),
        CollectionFunction::Difference => {
            let there = hashed(&others);
            set(members.into_iter().filter(|value| !there.contains(&Equivalent(value.clone()))).collect())
        }
        CollectionFunction::Intersect => {
            let there = hashed(&others);
            set(members.into_iter().filter(|value| there.contains(&Equivalent(value.clone()))).collect())
        }
        CollectionFunction::Disjunct => {
            let (here, there) = (hashed(&members), hashed(&others));
            let in_one = |value: &Value| {
                let value = Equivalent(value.clone());
                here.contains(&value) != there.contains(&value)
            };
            set(members.into_iter().chain(others).filter(in_one).collect())
        }
        CollectionFunction::Product => product(&members, &others)?,
        CollectionFunction::Conjoin => return Err(Error::bug("conjoin() has been done by now")),
    })
}

/// The members of what a step is applied to.
fn members(function: CollectionFunction, object: &Value) -> Result<Vec<Value>> {
    let name = function.name();
    match object {
        Value::Null => Err(Error::evaluation(format!("Incoming traverser for {name} step can't be null"))),
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) => {
            Ok(elements(object)?.unwrap_or_default())
        }
        other => Err(Error::evaluation(format!(
            "{name} step can only take an array or an Iterable type for incoming traversers, encountered {}",
            class(other)
        ))),
    }
}

/// The members of a step's argument.
fn others(function: CollectionFunction, given: Given<'_>) -> Result<Vec<Value>> {
    let name = function.name();
    let found = match given.value() {
        Some(value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_))) => {
            return Ok(elements(value)?.unwrap_or_default());
        }
        found => found,
    };
    Err(Error::evaluation(match (given, found) {
        (Given::Result(_), None | Some(Value::Null)) => {
            format!("traversal argument for {name} step must yield an iterable type, not null")
        }
        (Given::Result(_), Some(other)) => {
            format!("traversal argument for {name} step must yield an iterable type, encountered {}", class(other))
        }
        (Given::Constant(Value::Map(_)), _) => {
            format!("{name} step type mismatch: expected argument to be Iterable but got Map")
        }
        (Given::Constant(other), _) => {
            format!("{name} step can only take an array or an Iterable as an argument, encountered {}", class(other))
        }
    }))
}

/// Both maps in one; where both have a key, the argument's entry holds.
fn merge_maps(entries: &[(Value, Value)], given: Given<'_>) -> Result<Value> {
    let more = match given.value() {
        Some(Value::Map(more)) => more,
        None | Some(Value::Null) => {
            return Err(Error::evaluation(
                "merge step expected provided argument to evaluate to a Map, encountered null",
            ));
        }
        Some(other) => {
            return Err(Error::evaluation(format!(
                "merge step expected provided argument to evaluate to a Map, encountered {}",
                class(other)
            )));
        }
    };
    let mut merged = entries.to_vec();
    for (key, value) in more.iter() {
        put(&mut merged, key.clone(), value.clone());
    }
    Ok(Value::map(merged))
}

/// Puts an entry into a map, in the place of the one under the same key.
pub(crate) fn put(entries: &mut Vec<(Value, Value)>, key: Value, value: Value) {
    match entries.iter_mut().find(|(known, _)| mangrove_graph::compare::equivalent(known, &key)) {
        Some(entry) => entry.1 = value,
        None => entries.push((key, value)),
    }
}

/// The members as one text; nulls are left out. Of nothing but nulls comes null.
fn conjoin(members: &[Value], given: Given<'_>, texts: &Texts) -> Result<Value> {
    let Some(Value::String(separator)) = given.value() else {
        return Err(Error::invalid("conjoin() takes a string to put between members"));
    };
    if !members.is_empty() && members.iter().all(|member| matches!(member, Value::Null)) {
        return Ok(Value::Null);
    }
    let mut text = String::new();
    for (at, member) in members.iter().filter(|member| !matches!(member, Value::Null)).enumerate() {
        text.push_str(if at > 0 { separator } else { "" });
        texts.write(member, &mut text);
        check_text("conjoin", text.len())?;
    }
    Ok(Value::from(text))
}

fn product(members: &[Value], others: &[Value]) -> Result<Value> {
    check_members("product", members.len().saturating_mul(others.len()))?;
    let pairs = members.iter().flat_map(|a| others.iter().map(move |b| Value::list(vec![a.clone(), b.clone()])));
    Ok(Value::list(pairs.collect()))
}

/// Every member with its place, from 0. What is no collection is the only member of one.
pub(super) fn index(object: &Value, map: bool) -> Result<Value> {
    let members = elements(object)?.unwrap_or_else(|| vec![object.clone()]);
    let placed =
        members.into_iter().enumerate().map(|(at, value)| (Value::I32(i32::try_from(at).unwrap_or(i32::MAX)), value));
    Ok(if map {
        Value::map(placed.collect())
    } else {
        Value::list(placed.map(|(at, value)| Value::list(vec![value, at])).collect())
    })
}
