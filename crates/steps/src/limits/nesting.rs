//! Bounds on collections: how deep they nest, and how often they hold the same collection.
//!
//! - **STEPS-2.** No value nests deeper than the engine's recursion can follow: values are dropped, compared and
//!   encoded by recursion. A chain of steps wraps an object at most [`LEVELS_MAX`](mangrove_plan::limits::LEVELS_MAX)
//!   times. Only two things pass the same step again and could wrap for ever: a loop (`repeat(fold())`) and a side
//!   effect that is put into itself (`sideEffect(cap('x').aggregate('x'))`). So [`check_all`] sees the values that a
//!   loop carries into its next iteration, and the values that are put into a side effect.
//! - **STEPS-3.** A reader that goes through a collection meets at most [`REPEATED_MAX`] values that it has met before.
//!   Collections share members: thirty times `project('a','b').by().by()` takes a few kilobytes, and a program that
//!   hashes, compares or encodes it meets 2^30 values. So a collection is checked when it is made. Values that it holds
//!   once are bounded by their memory.

use std::any::Any;
use std::sync::{Arc, Weak};

use mangrove_flow::QueryControl;
use mangrove_graph::{Error, FastMap, Result, Tree, Value};

use crate::limits::table::PartitionedTable;

/// The deepest nesting of a value that a loop carries or a side effect holds (STEPS-2).
pub(crate) const NESTING_MAX: u32 = 256;

/// The maximum number of values that a reader of a collection meets again (STEPS-3).
pub(crate) const REPEATED_MAX: u64 = 1 << 24;

/// The same limit for one result: detaching and writing it touch every part each time it is met.
const RETURNED_REPEATED_MAX: u64 = 1 << 22;

/// Values walked between two checks of the limits of the query.
const LOOK_VALUES: u64 = 1 << 16;

/// The extent of a shared collection of at least this many values is remembered for the next one that holds it.
const LARGE_VALUES: u64 = 1 << 10;

/// The maximum number of extents remembered.
const KNOWN_MAX: usize = 16;

/// Checks collections that are made one after the other. A large one that many of them hold is walked once.
#[derive(Default)]
pub(crate) struct NestingWatcher {
    known: FastMap<usize, KnownExtent>,
}

struct KnownExtent {
    /// Keeps the address from being used again. The members may be freed.
    _collection: Weak<dyn Any + Send + Sync>,
    extent: Extent,
    /// A lower bound of its different values.
    distinct: u64,
}

impl NestingWatcher {
    /// Fails if a reader of this value, which was just made, would meet the same values too often.
    pub fn check(&mut self, value: &Value, control: &QueryControl) -> Result<()> {
        if has_collections(value) {
            let mut walk = ValueWalk::new(Some(&mut self.known), Some(control));
            let extent = walk.extent(value)?;
            walk.check_repeated(extent, REPEATED_MAX)?;
        }
        Ok(())
    }

    /// Forgets all extents.
    pub fn clear(&mut self) {
        self.known.clear();
    }
}

/// Fails if a reader of one of these values, which were just made, would meet the same values too often.
pub(crate) fn check_made<'a>(values: impl IntoIterator<Item = &'a Value>, control: &QueryControl) -> Result<()> {
    let mut watcher = NestingWatcher::default();
    values.into_iter().try_for_each(|value| watcher.check(value, control))
}

/// Fails if writing one of these results would take too long, because it holds the same values too often.
pub fn check_results<'a>(values: impl IntoIterator<Item = &'a Value>, control: &QueryControl) -> Result<()> {
    for value in values.into_iter().filter(|value| has_collections(value)) {
        control.check()?;
        let mut walk = ValueWalk::new(None, Some(control));
        let extent = walk.extent(value)?;
        walk.check_repeated(extent, RETURNED_REPEATED_MAX)?;
    }
    Ok(())
}

/// Fails if one of these values nests too deep (STEPS-2) or holds the same values too often (STEPS-3). Checks the
/// limits of the query between two collections. A collection that stands twice in a row is walked once.
pub(crate) fn check_all<'a>(values: impl IntoIterator<Item = &'a Value>, control: &QueryControl) -> Result<()> {
    let mut last = &Value::Null;
    for value in values.into_iter().filter(|value| is_collection(value)) {
        if !is_same(value, last) {
            control.check()?;
            check_with(value, Some(control))?;
            last = value;
        }
    }
    Ok(())
}

fn check_with(value: &Value, control: Option<&QueryControl>) -> Result<()> {
    let mut walk = ValueWalk::new(None, control);
    let extent = walk.extent(value)?;
    if extent.height > NESTING_MAX {
        return Err(Error::evaluation(format!(
            "a loop or a side effect holds a collection that nests more than {NESTING_MAX} deep; unfold() it before \
             it is \
             carried on"
        )));
    }
    walk.check_repeated(extent, REPEATED_MAX)
}

/// Fails for a parameter that nests too deep: a session may keep a result in a variable and wrap it in every request.
pub(crate) fn check_parameter(name: &str, value: &Value) -> Result<()> {
    let mut walk = ValueWalk::new(None, None);
    let extent = walk.extent(value)?;
    if extent.height > NESTING_MAX {
        return Err(Error::invalid(format!("the value of `{name}` nests more than {NESTING_MAX} deep")));
    }
    walk.check_repeated(extent, REPEATED_MAX)
}

/// Returns true if a value holds others.
pub(crate) fn is_collection(value: &Value) -> bool {
    matches!(
        value,
        Value::List(_)
            | Value::Set(_)
            | Value::Map(_)
            | Value::Entry(_)
            | Value::BulkSet(_)
            | Value::Path(_)
            | Value::Tree(_)
            | Value::Graph(_)
    )
}

/// Returns true if a value is a collection that holds collections; others cannot repeat a value.
fn has_collections(value: &Value) -> bool {
    match value {
        Value::List(values) | Value::Set(values) => values.iter().any(is_collection),
        Value::Map(entries) => entries.iter().any(|(key, value)| is_collection(key) || is_collection(value)),
        Value::BulkSet(values) => values.iter().any(|(value, _)| is_collection(value)),
        other => is_collection(other),
    }
}

/// Returns true if two values are one collection in memory.
fn is_same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::List(a), Value::List(b)) | (Value::Set(a), Value::Set(b)) => Arc::ptr_eq(a, b),
        (Value::Map(a), Value::Map(b)) => Arc::ptr_eq(a, b),
        (Value::BulkSet(a), Value::BulkSet(b)) => Arc::ptr_eq(a, b),
        _ => false,
    }
}

/// The values and levels that a reader meets on its way through a value.
#[derive(Clone, Copy)]
struct Extent {
    /// The number of values, each as often as it is met; the value itself counts as one.
    values: u64,
    /// The levels of collections.
    height: u32,
}

const SCALAR: Extent = Extent { values: 1, height: 0 };

/// A walk through a value that enters each shared collection once.
struct ValueWalk<'a> {
    /// The shared collections met so far, by address. The walked value keeps them alive.
    met: PartitionedTable<usize, Extent>,
    known: Option<&'a mut FastMap<usize, KnownExtent>>,
    control: Option<&'a QueryControl>,
    /// The number of values walked.
    looked_at: u64,
    /// The largest `distinct` of a remembered collection that was met.
    known_distinct: u64,
    next_look: u64,
}

impl<'a> ValueWalk<'a> {
    fn new(known: Option<&'a mut FastMap<usize, KnownExtent>>, control: Option<&'a QueryControl>) -> Self {
        ValueWalk {
            met: PartitionedTable::default(),
            known,
            control,
            looked_at: 0,
            known_distinct: 0,
            next_look: LOOK_VALUES,
        }
    }

    fn check_repeated(&self, extent: Extent, max: u64) -> Result<()> {
        // Remembered collections may overlap with walked ones and with each other, so the larger count is used, not the
        // sum.
        if extent.values.saturating_sub(self.looked_at.max(self.known_distinct)) <= max {
            return Ok(());
        }
        Err(Error::evaluation(format!(
            "collections that hold the same collections again and again come to {} values, more than {max} of which \
             are repeated; unfold() them, or return their parts one by one",
            extent.values
        )))
    }

    fn extent(&mut self, value: &Value) -> Result<Extent> {
        match value {
            Value::List(list) | Value::Set(list) => self.shared(list, |walk| walk.all(list.iter())),
            Value::Map(map) => self.shared(map, |walk| walk.all(map.iter().flat_map(|(key, value)| [key, value]))),
            Value::Entry(entry) => self.shared(entry, |walk| walk.all([&entry.0, &entry.1])),
            Value::BulkSet(set) => self.shared(set, |walk| walk.all(set.iter().map(|(value, _)| value))),
            Value::Path(path) => self.shared(path, |walk| walk.all(&path.objects)),
            Value::Tree(tree) => self.shared(tree, |walk| walk.tree(tree)),
            Value::Graph(graph) => self.shared(graph, |walk| walk.all(graph.vertices.iter().chain(&graph.edges))),
            _ => {
                self.looked_at += 1;
                Ok(SCALAR)
            }
        }
    }

    /// Returns the extent of a collection. If others hold it, too, it is walked once.
    fn shared<T: Any + Send + Sync>(
        &mut self,
        collection: &Arc<T>,
        members: impl FnOnce(&mut Self) -> Result<Extent>,
    ) -> Result<Extent> {
        if Arc::strong_count(collection) == 1 {
            return members(self);
        }
        let address = Arc::as_ptr(collection).addr();
        if let Some(extent) = self.met.get(&address) {
            return Ok(*extent);
        }
        if let Some(known) = self.known.as_ref().and_then(|known| known.get(&address)) {
            self.known_distinct = self.known_distinct.max(known.distinct);
            return Ok(known.extent);
        }
        let before = self.looked_at;
        let extent = members(self)?;
        self.met.get_or_insert_with(address, || extent);
        let distinct = self.looked_at - before;
        if let Some(known) = self.known.as_mut().filter(|_| distinct >= LARGE_VALUES) {
            if known.len() == KNOWN_MAX {
                known.clear();
            }
            let weak: Weak<T> = Arc::downgrade(collection);
            known.insert(address, KnownExtent { _collection: weak, extent, distinct });
        }
        Ok(extent)
    }

    fn all<'v>(&mut self, members: impl IntoIterator<Item = &'v Value>) -> Result<Extent> {
        self.looked_at += 1;
        let mut whole = Extent { values: 1, height: 0 };
        for member in members {
            whole = whole.with(self.extent(member)?);
            if self.looked_at >= self.next_look {
                self.next_look = self.looked_at + LOOK_VALUES;
                self.control.map_or(Ok(()), QueryControl::check)?;
            }
        }
        Ok(Extent { height: whole.height.saturating_add(1), ..whole })
    }

    fn tree(&mut self, tree: &Tree) -> Result<Extent> {
        let mut whole = self.all(tree.branches.iter().map(|(key, _)| key))?;
        for (_, below) in &tree.branches {
            let below = self.tree(below)?;
            whole = whole.with(Extent { height: below.height.saturating_add(1), ..below });
        }
        Ok(whole)
    }
}

impl Extent {
    fn with(self, member: Extent) -> Extent {
        Extent { values: self.values.saturating_add(member.values), height: self.height.max(member.height) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(value: &Value) -> Result<()> {
        check_with(value, None)
    }

    fn doubled(times: u32, of: Value) -> Value {
        (0..times).fold(of, |value, _| Value::list(vec![value.clone(), value]))
    }

    #[test]
    fn depth_has_a_bound() {
        let wrapped = |times: u32| (0..times).fold(Value::Null, |value, _| Value::list(vec![value]));
        assert!(check(&wrapped(NESTING_MAX)).is_ok());
        assert!(check(&wrapped(NESTING_MAX + 1)).unwrap_err().message().contains("deep"));
        assert!(check_parameter("x", &wrapped(NESTING_MAX)).is_ok());
        assert!(check_parameter("x", &wrapped(NESTING_MAX + 1)).unwrap_err().message().contains("`x`"));
    }

    #[test]
    fn repeated_values_have_a_bound() {
        for check in [check, |value: &Value| check_parameter("x", value)] {
            assert!(check(&doubled(22, Value::Null)).is_ok());
            assert!(check(&doubled(24, Value::Null)).unwrap_err().message().contains("repeated"));
            assert!(check(&doubled(200, Value::Null)).is_err());
        }
        // A value that is held once is bounded by its memory alone.
        assert!(check(&Value::list(vec![Value::list(vec![]); 2])).is_ok());
        let once = (0..3_000_000).map(|n| Value::list(vec![n.into()])).collect();
        assert!(check(&Value::list(once)).is_ok());
    }

    #[test]
    fn every_kind_of_collection_is_gone_through() {
        let wraps: [fn(Value) -> Value; 6] = [
            |v| Value::list(vec![v.clone(), v]),
            |v| Value::Set(Arc::new(vec![v.clone(), v])),
            |v| Value::map(vec![(v.clone(), v)]),
            |v| Value::Entry(Arc::new((v.clone(), v))),
            |v| Value::BulkSet(Arc::new(vec![(v.clone(), 1), (v, 1)])),
            |v| {
                Value::Path(Arc::new(mangrove_graph::PathValue {
                    labels: vec![vec![]; 2],
                    objects: vec![v.clone(), v],
                }))
            },
        ];
        for wrap in wraps {
            let value = (0..60).fold(Value::Null, |value, _| wrap(value));
            assert!(check(&value).is_err(), "{}", value.type_name());
        }
        let tree = |value: Value| {
            Value::Tree(Arc::new(Tree { branches: vec![(value.clone(), Tree::default()), (value, Tree::default())] }))
        };
        assert!(check(&(0..60).fold(Value::Null, |value, _| tree(value))).is_err());
    }

    fn control() -> QueryControl {
        let clock = Arc::new(mangrove_flow::clock::ManualClock::default());
        QueryControl::new(Default::default(), clock, Default::default())
    }

    #[test]
    fn a_watcher_finds_what_is_wrapped_in_what_it_knows() {
        let control = control();
        let large = Value::list(vec![Value::Null; 10_000]);
        let mut watcher = NestingWatcher::default();
        let mut value = large.clone();
        let mut times = 0;
        // Each of these shares all its members with a kept one, which is known when the next one is checked.
        let mut kept = Vec::new();
        let refused = loop {
            let [a, b] =
                [0, 1].map(|n| Value::list(vec![value.clone(), n.into(), Value::list(vec![Value::Null; 2_000])]));
            value = Value::list(vec![a, b]);
            kept.push(value.clone());
            times += 1;
            if let Err(error) = watcher.check(&value, &control) {
                break error;
            }
            assert!(times < 40, "a reader meets 2^40 values");
        };
        assert!(refused.message().contains("repeated"));
        assert!(times > 8, "2^8 times ten thousand values are no more than a reader may meet");
    }

    #[test]
    fn a_large_collection_that_many_hold_is_looked_at_once() {
        let control = control();
        let large = Value::list((0..1_000_000).map(|n| Value::list(vec![n.into()])).collect());
        let mut watcher = NestingWatcher::default();
        // A walk that entered each reference would meet 10^11 values.
        for n in 0..50_000 {
            watcher.check(&Value::map(vec![("n".into(), n.into()), ("all".into(), large.clone())]), &control).unwrap();
        }
        // The value that gets its address next is another one.
        drop(large);
        let other = doubled(60, Value::Null);
        assert!(watcher.check(&Value::list(vec![other]), &control).is_err());
    }
}
