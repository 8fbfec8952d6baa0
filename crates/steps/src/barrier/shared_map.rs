//! A side effect that is a map, as several instances add to it.

use std::sync::Arc;

use mangrove_graph::compare::Equivalent;
use mangrove_graph::{Error, Result, Value};
use mangrove_plan::logical::Name;

use crate::meter::Meter;
use crate::table::Table;

/// About what a key costs in the table of places, beside what its map holds.
const PLACE_BYTES: usize = 48;

/// Where in the map each of its keys is, as far as one operator has seen: keys only come, and each keeps its place.
#[derive(Default)]
pub struct SharedMap {
    places: Table<Equivalent, usize>,
}

/// The entries of the map, to be added to.
pub struct Entries<'a> {
    entries: Vec<(Value, Value)>,
    places: &'a mut Table<Equivalent, usize>,
}

impl SharedMap {
    /// Takes the map of a side effect, or an empty one, to add to it. `step` is what adds, for the error if it is no map.
    pub fn of(&mut self, old: Option<Value>, step: &str, name: &Name, meter: &mut Meter<'_>) -> Result<Entries<'_>> {
        let entries = match old {
            None => Vec::new(),
            Some(Value::Map(entries)) => unshared(entries, meter)?,
            Some(other) => {
                return Err(Error::evaluation(format!(
                    "{step}(\"{name}\") needs a map in the side effect and met a {}",
                    other.type_name()
                )));
            }
        };
        let new = entries.iter().enumerate().skip(self.places.len());
        for (at, (key, _)) in new {
            meter.hold(PLACE_BYTES)?;
            self.places.get_or_insert_with(Equivalent(key.clone()), || at);
        }
        Ok(Entries { entries, places: &mut self.places })
    }

    /// Forgets everything: another query follows.
    pub fn rest(&mut self) {
        self.places = Table::default();
    }
}

/// The entries of a map: a copy where something else holds it, too.
fn unshared(entries: Arc<Vec<(Value, Value)>>, meter: &mut Meter<'_>) -> Result<Vec<(Value, Value)>> {
    if Arc::strong_count(&entries) > 1 {
        meter.charge(entries.len() * size_of::<(Value, Value)>())?;
    }
    Ok(Arc::unwrap_or_clone(entries))
}

impl Entries<'_> {
    /// Puts a value under a key: `join` of the one that is there and the new one, where there is one.
    pub fn put(&mut self, key: Value, value: Value, join: impl FnOnce(Value, Value) -> Result<Value>) -> Result<()> {
        let next = self.entries.len();
        let (&mut place, _) = self.places.get_or_insert_with(Equivalent(key.clone()), || next);
        match self.entries.get_mut(place) {
            Some((_, there)) => *there = join(std::mem::replace(there, Value::Null), value)?,
            None => self.entries.push((key, value)),
        }
        Ok(())
    }

    /// The map.
    pub fn into_value(self) -> Value {
        Value::map(self.entries)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meter::limited_context;

    /// Adds one entry as an instance of a nested traversal does; how many keys the operator had to look at.
    fn add(map: &mut SharedMap, old: Option<Value>, key: i32) -> Value {
        let context = limited_context(1 << 20, None);
        let mut entries = map.of(old, "group", &"x".into(), &mut Meter::new(&context)).unwrap();
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
        assert_eq!(mine.places.len(), 99 + usize::from(99 % 3 != 0));
    }

    #[test]
    fn a_key_that_another_operator_put_there_is_found() {
        let (mut mine, mut other) = (SharedMap::default(), SharedMap::default());
        let value = add(&mut mine, None, 1);
        let value = add(&mut other, Some(value), 2);
        let value = add(&mut mine, Some(value), 2);
        let Value::Map(entries) = value else { panic!("no map") };
        assert_eq!(entries.len(), 2);
        let context = limited_context(1 << 20, None);
        assert!(mine.of(Some(Value::I32(1)), "group", &"x".into(), &mut Meter::new(&context)).is_err());
    }
}
