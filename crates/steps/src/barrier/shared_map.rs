//! A side effect that is a map, to which several instances add entries.

use std::sync::Arc;

use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::logical::Name;

use crate::context::type_name::a_type;
use crate::limits::meter::Meter;
use crate::limits::table::PartitionedTable;

/// The approximate bytes of a key in the table of indexes, besides its map.
const INDEX_BYTES: usize = 48;

/// The index of each key in the map, as far as one operator has seen. Keys are only added, and keep their indexes.
#[derive(Default)]
pub(crate) struct SharedMap {
    indexes: PartitionedTable<Equivalent, usize>,
}

/// The entries of the map while an operator adds to it.
pub(crate) struct SharedEntries<'a> {
    entries: Vec<(Value, Value)>,
    indexes: &'a mut PartitionedTable<Equivalent, usize>,
}

impl SharedMap {
    /// Opens the map of a side effect, or an empty one. `step` names the caller in the error if the side effect is no
    /// map.
    pub fn of(
        &mut self,
        old: Option<Value>,
        step: &str,
        name: &Name,
        meter: &mut Meter<'_>,
    ) -> Result<SharedEntries<'_>> {
        let entries = match old {
            None => Vec::new(),
            Some(Value::Map(entries)) => unshared(entries, meter)?,
            Some(other) => {
                return Err(Error::evaluation(format!(
                    "{step}(\"{name}\") needs a map in the side effect and met {}",
                    a_type(&other)
                )));
            }
        };
        let new = entries.iter().enumerate().skip(self.indexes.len());
        for (at, (key, _)) in new {
            meter.hold(INDEX_BYTES)?;
            self.indexes.get_or_insert_with(Equivalent(key.clone()), || at);
        }
        Ok(SharedEntries { entries, indexes: &mut self.indexes })
    }

    /// Ends a run.
    pub fn recycle(&mut self) {
        self.indexes = PartitionedTable::default();
    }
}

/// Returns the entries of a map: a copy if the map has another holder.
fn unshared(entries: Arc<Vec<(Value, Value)>>, meter: &mut Meter<'_>) -> Result<Vec<(Value, Value)>> {
    if Arc::strong_count(&entries) > 1 {
        meter.charge(entries.len() * size_of::<(Value, Value)>())?;
    }
    Ok(Arc::unwrap_or_clone(entries))
}

impl SharedEntries<'_> {
    /// Puts a value under a key. If the key is there, its value becomes `join` of the old and the new one.
    pub fn put(&mut self, key: Value, value: Value, join: impl FnOnce(Value, Value) -> Result<Value>) -> Result<()> {
        let next = self.entries.len();
        let (&mut index, _) = self.indexes.get_or_insert_with(Equivalent(key.clone()), || next);
        match self.entries.get_mut(index) {
            Some((_, there)) => *there = join(std::mem::replace(there, Value::Null), value)?,
            None => self.entries.push((key, value)),
        }
        Ok(())
    }

    /// Returns the map.
    pub fn into_value(self) -> Value {
        Value::map(self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::meter::limited_control;

    /// Adds one entry as an instance of a nested traversal does. Returns the number of keys that the operator had to
    /// look at.
    fn add(map: &mut SharedMap, old: Option<Value>, key: i32) -> Value {
        let control = limited_control(1 << 20, None);
        let mut entries = map.of(old, "group", &"x".into(), &mut Meter::new(&control)).unwrap();
        entries.put(Value::I32(key), Value::I32(1), |_, new| Ok(new)).unwrap();
        entries.into_value()
    }

    #[test]
    fn an_operator_looks_at_a_key_once_and_copies_no_map() {
        let (mut mine, mut other) = (SharedMap::default(), SharedMap::default());
        let mut value = add(&mut mine, None, 0);
        for key in 1..100 {
            let Value::Map(entries) = &value else { panic!("{value:?} is no map") };
            let (held, room) = (Arc::as_ptr(entries) as usize, entries.capacity() > entries.len());
            let buffer = entries.as_ptr();
            let adder = if key % 3 == 0 { &mut other } else { &mut mine };
            value = add(adder, Some(value), key);
            let Value::Map(entries) = &value else { panic!("{value:?} is no map") };
            assert!(held != 0 && (!room || entries.as_ptr() == buffer), "the map was copied at {key}");
            assert_eq!(entries.len(), key as usize + 1);
        }
        assert_eq!(mine.indexes.len(), 99 + usize::from(99 % 3 != 0));
    }

    #[test]
    fn a_key_that_another_operator_put_there_is_found() {
        let (mut mine, mut other) = (SharedMap::default(), SharedMap::default());
        let value = add(&mut mine, None, 1);
        let value = add(&mut other, Some(value), 2);
        let value = add(&mut mine, Some(value), 2);
        let Value::Map(entries) = value else { panic!("no map") };
        assert_eq!(entries.len(), 2);
        let control = limited_control(1 << 20, None);
        assert!(mine.of(Some(Value::I32(1)), "group", &"x".into(), &mut Meter::new(&control)).is_err());
    }
}
