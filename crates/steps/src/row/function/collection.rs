//! Functions of collections: `combine()`, `merge()`, `intersect()`, `conjoin()`, `product()` and similar steps. Two
//! members are equal if they are equivalent, as in `dedup()`.

use std::borrow::Cow;
use std::sync::Arc;

use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, FastSet, Result, Value};
use mangrove_plan::function::CollectionFunction;

use super::text::{TextWriter, Texts};
use super::{ArgumentValue, check_members, class};
use crate::limits::meter::{MadeSoFar, Meter};
use crate::values::collection::{self, Entries, KEYED_BYTES, MEMBER_BYTES, distinct, elements};

type ValueSet = FastSet<Equivalent>;

/// Returns the values in a hash set.
fn hashed(values: &[Value], meter: &mut Meter<'_>) -> Result<ValueSet> {
    let mut set = ValueSet::default();
    for value in values {
        meter.charge(KEYED_BYTES)?;
        set.insert(Equivalent(value.clone()));
    }
    Ok(set)
}

/// Returns the values for which `holds` is true.
fn filtered(
    values: impl IntoIterator<Item = Value>,
    holds: impl Fn(&Equivalent) -> bool,
    meter: &mut Meter<'_>,
) -> Result<Vec<Value>> {
    let mut kept = Vec::new();
    for value in values {
        meter.pass(KEYED_BYTES)?;
        let value = Equivalent(value);
        if holds(&value) {
            kept.push(value.0);
        }
    }
    Ok(kept)
}

pub(super) fn apply(
    function: CollectionFunction,
    object: &Value,
    given: &[ArgumentValue<'_>],
    texts: &Texts,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    let given = given.first().copied().unwrap_or(ArgumentValue::Result(None));
    if let (CollectionFunction::Merge, Value::Map(entries)) = (function, object) {
        return merge_maps(entries, given, meter);
    }
    let members = members(function, object, meter)?;
    if function == CollectionFunction::Conjoin {
        return conjoin(&members, given, texts, meter);
    }
    let others = others(function, given, meter)?;
    if function == CollectionFunction::Product {
        return product(&members, &others, meter);
    }
    let count = members.len().saturating_add(others.len());
    check_members(function.name(), count)?;
    let all = || members.iter().chain(&*others).cloned();
    match function {
        CollectionFunction::Combine => {
            meter.charge(count * MEMBER_BYTES)?;
            Ok(Value::list(all().collect()))
        }
        CollectionFunction::Merge => set(all(), meter),
        CollectionFunction::Difference => {
            let there = hashed(&others, meter)?;
            set(filtered(members.iter().cloned(), |value| !there.contains(value), meter)?, meter)
        }
        CollectionFunction::Intersect => {
            let there = hashed(&others, meter)?;
            set(filtered(members.iter().cloned(), |value| there.contains(value), meter)?, meter)
        }
        CollectionFunction::Disjunct => {
            let (here, there) = (hashed(&members, meter)?, hashed(&others, meter)?);
            let in_one = |value: &Equivalent| here.contains(value) != there.contains(value);
            set(filtered(all(), in_one, meter)?, meter)
        }
        CollectionFunction::Product | CollectionFunction::Conjoin => {
            Err(Error::bug("product() and conjoin() have been done by now"))
        }
    }
}

fn set(values: impl IntoIterator<Item = Value>, meter: &mut Meter<'_>) -> Result<Value> {
    distinct(values, meter).map(|values| Value::Set(Arc::new(values)))
}

/// Returns the members of a collection. If they must be copied, they are charged.
fn elements_of<'a>(value: &'a Value, meter: &mut Meter<'_>) -> Result<Cow<'a, [Value]>> {
    Ok(match value {
        Value::List(values) | Value::Set(values) => Cow::Borrowed(values),
        Value::Path(path) => Cow::Borrowed(&path.objects),
        other => {
            meter.charge(collection::size(other).saturating_mul(MEMBER_BYTES))?;
            Cow::Owned(elements(other)?.unwrap_or_default())
        }
    })
}

/// Returns the members of the object that a step is applied to.
fn members<'a>(function: CollectionFunction, object: &'a Value, meter: &mut Meter<'_>) -> Result<Cow<'a, [Value]>> {
    let name = function.name();
    match object {
        Value::Null => Err(Error::evaluation(format!("Incoming traverser for {name} step can't be null"))),
        Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_) => elements_of(object, meter),
        other => Err(Error::evaluation(format!(
            "{name} step can only take an array or an Iterable type for incoming traversers, encountered {}",
            class(other)
        ))),
    }
}

/// Returns the members of a step's argument.
fn others<'a>(
    function: CollectionFunction,
    given: ArgumentValue<'a>,
    meter: &mut Meter<'_>,
) -> Result<Cow<'a, [Value]>> {
    let name = function.name();
    let found = match given.value() {
        Some(value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_))) => {
            return elements_of(value, meter);
        }
        found => found,
    };
    Err(Error::evaluation(match (given, found) {
        (ArgumentValue::Result(_), None | Some(Value::Null)) => {
            format!("traversal argument for {name} step must yield an iterable type, not null")
        }
        (ArgumentValue::Result(_), Some(other)) => {
            format!("traversal argument for {name} step must yield an iterable type, encountered {}", class(other))
        }
        (ArgumentValue::Constant(Value::Map(_)), _) => {
            format!("{name} step type mismatch: expected argument to be Iterable but got Map")
        }
        (ArgumentValue::Constant(other), _) => {
            format!("{name} step can only take an array or an Iterable as an argument, encountered {}", class(other))
        }
    }))
}

/// Merges two maps. If both have a key, the entry of the argument wins.
fn merge_maps(entries: &[(Value, Value)], given: ArgumentValue<'_>, meter: &mut Meter<'_>) -> Result<Value> {
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
    let mut merged = Entries::of(entries, meter)?;
    for (key, value) in more.iter() {
        merged.put(key.clone(), value.clone(), meter)?;
    }
    Ok(merged.into_map())
}

/// Joins the members into one text, without nulls. If there are only nulls, the result is null.
fn conjoin(members: &[Value], given: ArgumentValue<'_>, texts: &Texts, meter: &mut Meter<'_>) -> Result<Value> {
    let Some(Value::String(separator)) = given.value() else {
        return Err(Error::invalid("conjoin() takes a string to put between members"));
    };
    if !members.is_empty() && members.iter().all(|member| matches!(member, Value::Null)) {
        return Ok(Value::Null);
    }
    let mut text = TextWriter::new("conjoin", meter);
    for (at, member) in members.iter().filter(|member| !matches!(member, Value::Null)).enumerate() {
        text.push_str(if at > 0 { separator } else { "" })?;
        texts.write(member, &mut text)?;
    }
    Ok(text.into_value())
}

fn product(members: &[Value], others: &[Value], meter: &mut Meter<'_>) -> Result<Value> {
    let count = members.len().saturating_mul(others.len());
    check_members("product", count)?;
    let mut pairs = MadeSoFar::new(meter, 0);
    for a in members {
        for b in others {
            // A pair is a list of two inside the list of all pairs.
            meter.charge(5 * MEMBER_BYTES)?;
            pairs.push(Value::list(vec![a.clone(), b.clone()]));
        }
    }
    Ok(Value::list(pairs.done()))
}

/// Pairs every member with its index, from 0. A value that is no collection is its own only member.
pub(super) fn index(object: &Value, map: bool, meter: &mut Meter<'_>) -> Result<Value> {
    meter.charge(collection::size(object).saturating_mul(MEMBER_BYTES))?;
    let members = elements(object)?.unwrap_or_else(|| vec![object.clone()]);
    let position = |at: usize| Value::I32(i32::try_from(at).unwrap_or(i32::MAX));
    if map {
        meter.charge(members.len() * 2 * MEMBER_BYTES)?;
        return Ok(Value::map(members.into_iter().enumerate().map(|(at, value)| (position(at), value)).collect()));
    }
    let mut pairs = MadeSoFar::new(meter, 0);
    for (at, value) in members.into_iter().enumerate() {
        meter.charge(5 * MEMBER_BYTES)?;
        pairs.push(Value::list(vec![value, position(at)]));
    }
    Ok(Value::list(pairs.done()))
}
