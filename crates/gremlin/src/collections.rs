//! Building collections that keep the invariants of [`Value`]: the members of a set and the keys of a map are unique,
//! and a collection of literals is itself a literal.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Arc;

use mangrove_graph::compare::{equivalent, hash_equivalent};
use mangrove_graph::{Detached, Value};

use crate::bytecode::Argument;

/// A set. Of equivalent values, the first stays.
pub(crate) fn set(values: Vec<Value>) -> Value {
    let first: Vec<bool> = {
        let mut seen = HashSet::with_capacity(values.len());
        values.iter().map(|value| seen.insert(MemberKey(value))).collect()
    };
    Value::Set(Arc::new(values.into_iter().zip(first).filter(|(_, first)| *first).map(|(value, _)| value).collect()))
}

/// A map. Of equivalent keys, the first position and the last value stay.
pub(crate) fn map(entries: Vec<(Value, Value)>) -> Value {
    let positions: Vec<usize> = {
        let mut known = HashMap::with_capacity(entries.len());
        let mut positions = Vec::with_capacity(entries.len());
        for (key, _) in &entries {
            let next = known.len();
            positions.push(*known.entry(MemberKey(key)).or_insert(next));
        }
        positions
    };
    let mut unique: Vec<(Value, Value)> = Vec::with_capacity(entries.len());
    for ((key, value), position) in entries.into_iter().zip(positions) {
        match unique.get_mut(position) {
            Some(entry) => entry.1 = value,
            None => unique.push((key, value)),
        }
    }
    Value::map(unique)
}

/// A value under [`equivalent`], with a hash and an equality that stay cheap for sets and maps of sets and maps.
/// Clients choose these values, and comparing them pairwise would let a short script run for hours.
struct MemberKey<'a>(&'a Value);

impl Hash for MemberKey<'_> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        match self.0 {
            Value::List(items) => items.iter().for_each(|item| MemberKey(item).hash(state)),
            // The order of the members does not matter, nor does that of the summands.
            Value::Set(items) => sum(items.iter().map(|item| digest(&MemberKey(item)))).hash(state),
            Value::Map(entries) => sum(entries.iter().map(|(k, v)| digest(&(MemberKey(k), MemberKey(v))))).hash(state),
            Value::BulkSet(entries) => entries.iter().for_each(|(item, bulk)| (MemberKey(item), bulk).hash(state)),
            Value::Detached(element) => match element.as_ref() {
                Detached::Vertex { id, .. } | Detached::Edge { id, .. } => MemberKey(id).hash(state),
                Detached::VertexProperty(property) => MemberKey(&property.id).hash(state),
                Detached::Property { key, value } => (key, MemberKey(value)).hash(state),
            },
            scalar => hash_equivalent(scalar, state),
        }
    }
}

impl PartialEq for MemberKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        match (self.0, other.0) {
            (Value::List(a), Value::List(b)) => {
                a.len() == b.len() && a.iter().zip(b.iter()).all(|(a, b)| MemberKey(a) == MemberKey(b))
            }
            (Value::Set(a), Value::Set(b)) => {
                let known: HashSet<MemberKey<'_>> = a.iter().map(MemberKey).collect();
                a.len() == b.len() && b.iter().all(|item| known.contains(&MemberKey(item)))
            }
            (Value::Map(a), Value::Map(b)) => {
                let known: HashMap<MemberKey<'_>, MemberKey<'_>> =
                    a.iter().map(|(k, v)| (MemberKey(k), MemberKey(v))).collect();
                a.len() == b.len() && b.iter().all(|(k, v)| known.get(&MemberKey(k)) == Some(&MemberKey(v)))
            }
            (a, b) => equivalent(a, b),
        }
    }
}

impl Eq for MemberKey<'_> {}

fn digest(hashed: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    hashed.hash(&mut hasher);
    hasher.finish()
}

fn sum(digests: impl Iterator<Item = u64>) -> u64 {
    digests.fold(0, u64::wrapping_add)
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

/// The values of the items. If one of them is no literal, the items are returned.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn set_of(values: &[i32]) -> Value {
        set(values.iter().copied().map(Value::I32).collect())
    }

    #[test]
    fn equivalent_elements_and_keys_are_one() {
        let nan = || Value::F64(f64::NAN);
        let Value::Set(items) = set(vec![nan(), nan(), Value::I32(1), Value::I64(1), set_of(&[1, 2]), set_of(&[2, 1])])
        else {
            panic!("no set")
        };
        assert_eq!(items.len(), 4);
        let entry = |key: Value, n| (key, Value::I32(n));
        let inner = |a, b| map(vec![entry(Value::I32(a), 0), entry(Value::I32(b), 0)]);
        let Value::Map(entries) = map(vec![entry(inner(1, 2), 1), entry(Value::Null, 2), entry(inner(2, 1), 3)]) else {
            panic!("no map")
        };
        assert_eq!(entries.iter().map(|(_, n)| n.clone()).collect::<Vec<_>>(), [Value::I32(3), Value::I32(2)]);
    }

    #[test]
    fn sets_of_sets_do_not_take_quadratic_time() {
        let many: Vec<Value> = (0..100_000).map(|i| set_of(&[i])).collect();
        let Value::Set(items) = set(many) else { panic!("no set") };
        assert_eq!(items.len(), 100_000);
        let wide: Vec<i32> = (0..100_000).collect();
        let Value::Set(items) = set(vec![set_of(&wide), set_of(&wide)]) else { panic!("no set") };
        assert_eq!(items.len(), 1);
    }
}
