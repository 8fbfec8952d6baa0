//! Building collections that keep the invariants of [`Value`]: unique set elements and map keys, and a
//! collection of nothing but literals is itself a literal.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use mangrove_graph::Value;
use mangrove_graph::compare::Equivalent;

use crate::bytecode::Argument;

/// A set; of equivalent values the first stays.
pub(crate) fn set(values: Vec<Value>) -> Value {
    let mut seen = HashSet::with_capacity(values.len());
    Value::Set(Arc::new(values.into_iter().filter(|value| seen.insert(Equivalent(value.clone()))).collect()))
}

/// A map; of equivalent keys the first place and the last value stay.
pub(crate) fn map(entries: Vec<(Value, Value)>) -> Value {
    let mut places = HashMap::with_capacity(entries.len());
    let mut unique: Vec<(Value, Value)> = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let place = *places.entry(Equivalent(key.clone())).or_insert(unique.len());
        match unique.get_mut(place) {
            Some(entry) => entry.1 = value,
            None => unique.push((key, value)),
        }
    }
    Value::map(unique)
}

/// A list argument: a literal if every item is one.
pub(crate) fn list_argument(items: Vec<Argument>) -> Argument {
    match literals(items) {
        Ok(values) => Argument::Value(Value::list(values)),
        Err(items) => Argument::List(items),
    }
}

/// A map argument: a literal if every key and value is one.
pub(crate) fn map_argument(entries: Vec<(Argument, Argument)>) -> Argument {
    let literal = |argument: &Argument| matches!(argument, Argument::Value(_));
    if !entries.iter().all(|(key, value)| literal(key) && literal(value)) {
        return Argument::Map(entries);
    }
    let value = |argument| match argument {
        Argument::Value(value) => value,
        _ => unreachable!("every entry was seen to be a literal"),
    };
    Argument::Value(map(entries.into_iter().map(|(k, v)| (value(k), value(v))).collect()))
}

/// The values of the items, or the items back if one of them is no literal.
pub(crate) fn literals(items: Vec<Argument>) -> Result<Vec<Value>, Vec<Argument>> {
    if !items.iter().all(|item| matches!(item, Argument::Value(_))) {
        return Err(items);
    }
    let value = |item| match item {
        Argument::Value(value) => Some(value),
        _ => None,
    };
    Ok(items.into_iter().filter_map(value).collect())
}
