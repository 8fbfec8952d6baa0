//! Collections as steps see them: their members, the number of their members, and maps that grow.
//!
//! A function that copies members charges them before ([`Meter`]), or leaves that to its caller, as [`elements`] does.

use std::sync::Arc;

use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, ErrorKind, Result, Tree, Value};

use crate::limits::meter::Meter;
use crate::limits::table::PartitionedTable;

/// The approximate bytes of a member of a list, and of a member of a set or map with its entry in a hash table.
pub(crate) const MEMBER_BYTES: usize = size_of::<Value>();
pub(crate) const KEYED_BYTES: usize = 3 * MEMBER_BYTES;

/// The maximum number of members that a bulk set is expanded to: 128 MiB of values, which are not charged.
const EXPANDED_MAX: u64 = 1 << 22;

/// Returns the members of a collection: the objects of a list, set or path, each object of a bulk set as often as it
/// counts, the entries of a map or tree. `None` if the value is no collection.
pub(crate) fn elements(value: &Value) -> Result<Option<Vec<Value>>> {
    Ok(Some(match value {
        Value::List(values) | Value::Set(values) => values.to_vec(),
        Value::BulkSet(set) => expanded(set)?,
        Value::Map(entries) => entries.iter().map(|entry| Value::Entry(Arc::new(entry.clone()))).collect(),
        Value::Path(path) => path.objects.clone(),
        Value::Tree(tree) => branches(tree).map(|branch| Value::Entry(Arc::new(branch))).collect(),
        _ => return Ok(None),
    }))
}

/// Returns the entries of a tree as a map: each key with the tree below it.
pub(crate) fn branches(tree: &Tree) -> impl Iterator<Item = (Value, Value)> {
    tree.branches.iter().map(|(key, below)| (key.clone(), Value::Tree(Arc::new(below.clone()))))
}

pub(crate) fn expanded(set: &[(Value, u64)]) -> Result<Vec<Value>> {
    let count = members(set);
    if count > EXPANDED_MAX {
        return Err(Error::new(
            ErrorKind::MemoryLimit,
            format!("a collection of {count} objects is more than a step can hold; unfold() works on it one by one"),
        ));
    }
    Ok(set.iter().flat_map(|(value, count)| std::iter::repeat_n(value.clone(), *count as usize)).collect())
}

/// Returns the number of members of a bulk set, counting repetitions.
pub(crate) fn members(set: &[(Value, u64)]) -> u64 {
    set.iter().fold(0_u64, |n, (_, count)| n.saturating_add(*count))
}

/// Returns the number of members that [`elements`] gives; 1 for a value that is no collection.
pub(crate) fn size(value: &Value) -> usize {
    usize::try_from(count(value)).unwrap_or(usize::MAX)
}

pub(crate) fn count(object: &Value) -> i64 {
    let size = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
    match object {
        Value::List(values) | Value::Set(values) => size(values.len()),
        Value::Map(entries) => size(entries.len()),
        Value::Path(path) => size(path.objects.len()),
        Value::Tree(tree) => size(tree.branches.len()),
        Value::BulkSet(set) => i64::try_from(members(set)).unwrap_or(i64::MAX),
        _ => 1,
    }
}

/// As [`size`], counting equal members of a bulk set once.
pub(crate) fn distinct_size(object: &Value) -> usize {
    match object {
        Value::BulkSet(set) => set.len(),
        other => size(other),
    }
}

/// Returns the first of all equivalent values.
pub(crate) fn distinct(values: impl IntoIterator<Item = Value>, meter: &mut Meter<'_>) -> Result<Vec<Value>> {
    let mut seen = PartitionedTable::<Equivalent>::default();
    let mut kept = Vec::new();
    for value in values {
        meter.charge(KEYED_BYTES)?;
        if seen.insert(Equivalent(value.clone())) {
            kept.push(value);
        }
    }
    Ok(kept)
}

/// Values of one kind that are appended between two checks of the limits.
const REPEATED_AT_ONCE: u64 = 1 << 12;

/// Appends a value as often as it counts. The caller has charged for it.
pub(crate) fn push_times(list: &mut Vec<Value>, value: Value, times: u64, meter: &mut Meter<'_>) -> Result<()> {
    let mut left = times;
    if list.capacity() == 0 {
        // A list with room for one value takes a quarter of the least that grows, and many folds are so short.
        list.reserve_exact(left.min(REPEATED_AT_ONCE) as usize);
    }
    while left > REPEATED_AT_ONCE {
        meter.pass(REPEATED_AT_ONCE as usize * MEMBER_BYTES)?;
        list.extend(std::iter::repeat_n(value.clone(), REPEATED_AT_ONCE as usize));
        left -= REPEATED_AT_ONCE;
    }
    list.extend(std::iter::repeat_n(value, left as usize));
    Ok(())
}

/// The entries of a map that grows, with the index of each key.
pub(crate) struct Entries {
    entries: Vec<(Value, Value)>,
    indexes: PartitionedTable<Equivalent, usize>,
}

impl Entries {
    /// Copies the entries of a map.
    pub fn of(entries: &[(Value, Value)], meter: &mut Meter<'_>) -> Result<Self> {
        let mut all = Entries { entries: Vec::new(), indexes: PartitionedTable::default() };
        entries.iter().try_for_each(|(key, value)| all.put(key.clone(), value.clone(), meter))?;
        Ok(all)
    }

    /// Puts an entry into the map. It replaces the value under an equal key.
    pub fn put(&mut self, key: Value, value: Value, meter: &mut Meter<'_>) -> Result<()> {
        meter.charge(MEMBER_BYTES + KEYED_BYTES)?;
        let next = self.entries.len();
        let (&mut at, is_new) = self.indexes.get_or_insert_with(Equivalent(key.clone()), || next);
        match is_new {
            true => self.entries.push((key, value)),
            false => self.entries[at].1 = value,
        }
        Ok(())
    }

    /// Returns the map.
    pub fn into_map(self) -> Value {
        Value::map(self.entries)
    }
}
