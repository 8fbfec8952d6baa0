//! Functions of collections. Members are the same if they are equivalent, as in `dedup()`.

use std::borrow::Cow;
use std::sync::Arc;

use hashbrown::{HashMap, HashSet};
use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::function::CollectionFunction;

use super::text::{TextWriter, Texts};
use super::{Given, KEYED_BYTES, MEMBER_BYTES, check_members, class};
use crate::meter::{Making, Meter};
use crate::row::local::{self, elements};

type Set = HashSet<Equivalent, foldhash::fast::RandomState>;

/// The values without repetition, the first of equivalent ones.
pub(crate) fn distinct(values: impl IntoIterator<Item = Value>, meter: &mut Meter<'_>) -> Result<Vec<Value>> {
    let mut seen = Set::default();
    let mut kept = Vec::new();
    for value in values {
        meter.charge(KEYED_BYTES)?;
        if seen.insert(Equivalent(value.clone())) {
            kept.push(value);
        }
    }
    Ok(kept)
}

/// The values in a table.
fn hashed(values: &[Value], meter: &mut Meter<'_>) -> Result<Set> {
    let mut set = Set::default();
    for value in values {
        meter.charge(KEYED_BYTES)?;
        set.insert(Equivalent(value.clone()));
    }
    Ok(set)
}

/// The values of which something holds.
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
    given: &[Given<'_>],
    texts: &Texts,
    meter: &mut Meter<'_>,
) -> Result<Value> {
    let given = given.first().copied().unwrap_or(Given::Result(None));
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

/// The members of a collection; where they have to be made, they are charged.
fn elements_of<'a>(value: &'a Value, meter: &mut Meter<'_>) -> Result<Cow<'a, [Value]>> {
    Ok(match value {
        Value::List(values) | Value::Set(values) => Cow::Borrowed(values),
        Value::Path(path) => Cow::Borrowed(&path.objects),
        other => {
            meter.charge(local::size(other).saturating_mul(MEMBER_BYTES))?;
            Cow::Owned(elements(other)?.unwrap_or_default())
        }
    })
}

/// The members of what a step is applied to.
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

/// The members of a step's argument.
fn others<'a>(function: CollectionFunction, given: Given<'a>, meter: &mut Meter<'_>) -> Result<Cow<'a, [Value]>> {
    let name = function.name();
    let found = match given.value() {
        Some(value @ (Value::List(_) | Value::Set(_) | Value::BulkSet(_) | Value::Path(_))) => {
            return elements_of(value, meter);
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
fn merge_maps(entries: &[(Value, Value)], given: Given<'_>, meter: &mut Meter<'_>) -> Result<Value> {
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

/// The entries of a map that grows, with a table of where each key is.
pub(crate) struct Entries {
    entries: Vec<(Value, Value)>,
    places: HashMap<Equivalent, usize, foldhash::fast::RandomState>,
}

impl Entries {
    /// The entries of a map.
    pub fn of(entries: &[(Value, Value)], meter: &mut Meter<'_>) -> Result<Self> {
        let mut all = Entries { entries: Vec::new(), places: HashMap::default() };
        entries.iter().try_for_each(|(key, value)| all.put(key.clone(), value.clone(), meter))?;
        Ok(all)
    }

    /// The value under a key, if it is there.
    fn get_mut(&mut self, key: &Value) -> Option<&mut Value> {
        let at = *self.places.get(&Equivalent(key.clone()))?;
        Some(&mut self.entries[at].1)
    }

    /// Puts an entry into the map, in the place of the one under the same key.
    pub fn put(&mut self, key: Value, value: Value, meter: &mut Meter<'_>) -> Result<()> {
        meter.charge(MEMBER_BYTES + KEYED_BYTES)?;
        match self.get_mut(&key) {
            Some(there) => *there = value,
            None => {
                self.places.insert(Equivalent(key.clone()), self.entries.len());
                self.entries.push((key, value));
            }
        }
        Ok(())
    }

    /// The map.
    pub fn into_map(self) -> Value {
        Value::map(self.entries)
    }
}

/// The members as one text; nulls are left out. Of nothing but nulls comes null.
fn conjoin(members: &[Value], given: Given<'_>, texts: &Texts, meter: &mut Meter<'_>) -> Result<Value> {
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
    let mut pairs = Making::new(meter, 0);
    for a in members {
        for b in others {
            // A pair is a list of two in the list of all.
            meter.charge(5 * MEMBER_BYTES)?;
            pairs.push(Value::list(vec![a.clone(), b.clone()]));
        }
    }
    Ok(Value::list(pairs.done()))
}

/// Every member with its place, from 0. What is no collection is the only member of one.
pub(super) fn index(object: &Value, map: bool, meter: &mut Meter<'_>) -> Result<Value> {
    meter.charge(local::size(object).saturating_mul(MEMBER_BYTES))?;
    let members = elements(object)?.unwrap_or_else(|| vec![object.clone()]);
    let place = |at: usize| Value::I32(i32::try_from(at).unwrap_or(i32::MAX));
    if map {
        meter.charge(members.len() * 2 * MEMBER_BYTES)?;
        return Ok(Value::map(members.into_iter().enumerate().map(|(at, value)| (place(at), value)).collect()));
    }
    let mut placed = Making::new(meter, 0);
    for (at, value) in members.into_iter().enumerate() {
        meter.charge(5 * MEMBER_BYTES)?;
        placed.push(Value::list(vec![value, place(at)]));
    }
    Ok(Value::list(placed.done()))
}
