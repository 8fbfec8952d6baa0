//! How deep collections may nest in one another, and how often they may hold the same one.
//!
//! Values are dropped, compared and encoded by recursion, so their depth must have a bound. One chain of steps wraps
//! an object at most as often as the plan allows ([`LEVELS_MAX`](mangrove_plan::limits::LEVELS_MAX)). Two things come to
//! the same step again, and could wrap for ever: a loop (`repeat(fold())`) and a side effect that is put into itself
//! (`sideEffect(cap('x').aggregate('x'))`). What a loop carries from one iteration to the next, and what is put into a
//! side effect, is looked at here.
//!
//! Collections share their members: thirty times `project('a','b').by().by()` takes a few kilobytes, and whoever hashes,
//! compares or encodes it meets 2^30 values. So a collection is also looked at when it is made. Values that it holds once
//! are bounded by the memory they take; those that a reader would meet again are bounded here ([`REPEATED_MAX`]).

use std::any::Any;
use std::collections::HashMap;
use std::sync::{Arc, Weak};

use foldhash::fast::RandomState;
use mangrove_flow::QueryContext;
use mangrove_graph::{Error, Result, Tree, Value};

use crate::table::Table;

/// The deepest nesting of what a loop carries or a side effect holds.
pub const NESTING_MAX: u32 = 256;

/// How many values a reader of a collection may meet that it has met before.
pub const REPEATED_MAX: u64 = 1 << 24;

/// The same of one result: whoever takes it apart and writes it does so with every part.
const RETURNED_REPEATED_MAX: u64 = 1 << 22;

/// How many values are looked at between two looks at the limits of the query.
const LOOK_VALUES: u64 = 1 << 16;

/// A shared collection of so many values is remembered for the next one that holds it.
const LARGE_VALUES: u64 = 1 << 10;

/// How many of these are remembered.
const KNOWN_MAX: usize = 16;

/// Looks at collections that were made one after the other: a large one that many of them hold is looked at once.
#[derive(Default)]
pub struct Watcher {
    known: HashMap<usize, Known, RandomState>,
}

struct Known {
    /// While it is here, no other collection is made at its address. Its members may be freed.
    _collection: Weak<dyn Any + Send + Sync>,
    extent: Extent,
    /// At least so many different values.
    distinct: u64,
}

impl Watcher {
    /// Fails if a reader of this value, which was just made, would meet the same values too often.
    pub fn check(&mut self, value: &Value, context: &QueryContext) -> Result<()> {
        if has_collections(value) {
            let mut walk = Walk::new(Some(&mut self.known), Some(context));
            let extent = walk.extent(value)?;
            walk.check_repeated(extent, REPEATED_MAX)?;
        }
        Ok(())
    }

    /// Forgets what was looked at.
    pub fn clear(&mut self) {
        self.known.clear();
    }
}

/// Fails if a reader of one of these values, which were just made, would meet the same values too often.
pub fn check_made<'a>(values: impl IntoIterator<Item = &'a Value>, context: &QueryContext) -> Result<()> {
    let mut watcher = Watcher::default();
    values.into_iter().try_for_each(|value| watcher.check(value, context))
}

/// Fails if one of these results holds the same values so often that there is no end in sight to writing it.
pub fn check_results<'a>(values: impl IntoIterator<Item = &'a Value>, context: &QueryContext) -> Result<()> {
    for value in values.into_iter().filter(|value| has_collections(value)) {
        context.check()?;
        let mut walk = Walk::new(None, Some(context));
        let extent = walk.extent(value)?;
        walk.check_repeated(extent, RETURNED_REPEATED_MAX)?;
    }
    Ok(())
}

/// Fails if one of these values nests too deep, or holds the same values too often; looks at the limits of the query
/// between two collections. A collection that stands twice in a row is looked at once.
pub fn check_all<'a>(values: impl IntoIterator<Item = &'a Value>, context: &QueryContext) -> Result<()> {
    let mut last = &Value::Null;
    for value in values.into_iter().filter(|value| is_collection(value)) {
        if !is_same(value, last) {
            context.check()?;
            check_with(value, Some(context))?;
            last = value;
        }
    }
    Ok(())
}

/// Fails for a value that nests too deep, or holds the same values too often.
pub fn check(value: &Value) -> Result<()> {
    check_with(value, None)
}

fn check_with(value: &Value, context: Option<&QueryContext>) -> Result<()> {
    let mut walk = Walk::new(None, context);
    let extent = walk.extent(value)?;
    if extent.height > NESTING_MAX {
        return Err(Error::evaluation(format!(
            "a loop or a side effect holds a collection that nests more than {NESTING_MAX} deep; unfold() it before it is \
             carried on"
        )));
    }
    walk.check_repeated(extent, REPEATED_MAX)
}

/// Fails for a parameter that nests too deep: a session may keep a result in a variable and wrap it in every request.
pub fn check_parameter(name: &str, value: &Value) -> Result<()> {
    let mut walk = Walk::new(None, None);
    let extent = walk.extent(value)?;
    if extent.height > NESTING_MAX {
        return Err(Error::invalid(format!("the value of `{name}` nests more than {NESTING_MAX} deep")));
    }
    walk.check_repeated(extent, REPEATED_MAX)
}

/// Whether a value holds others.
pub fn is_collection(value: &Value) -> bool {
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

/// Whether a value is a collection that holds others; those that do not repeat nothing.
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

/// What a reader meets who goes through a value.
#[derive(Clone, Copy)]
struct Extent {
    /// Values, each as often as it is met; the value itself is one.
    values: u64,
    /// How many levels of collections.
    height: u32,
}

const SCALAR: Extent = Extent { values: 1, height: 0 };

/// Goes through a value, and through what is shared in it once.
struct Walk<'a> {
    /// The shared collections that it has met, by address. The value that is gone through holds them.
    met: Table<usize, Extent>,
    known: Option<&'a mut HashMap<usize, Known, RandomState>>,
    context: Option<&'a QueryContext>,
    /// How many values it has looked at.
    looked_at: u64,
    /// The most different values in one collection that was known before.
    known_distinct: u64,
    next_look: u64,
}

impl<'a> Walk<'a> {
    fn new(known: Option<&'a mut HashMap<usize, Known, RandomState>>, context: Option<&'a QueryContext>) -> Self {
        Walk { met: Table::default(), known, context, looked_at: 0, known_distinct: 0, next_look: LOOK_VALUES }
    }

    fn check_repeated(&self, extent: Extent, max: u64) -> Result<()> {
        // What is known may hold what was looked at, and another that is known: neither is counted twice.
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

    /// The extent of a collection; of one that others hold, too, it is worked out once.
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
            known.insert(address, Known { _collection: weak, extent, distinct });
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
                self.context.map_or(Ok(()), QueryContext::check)?;
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
    fn what_is_repeated_has_a_bound() {
        for check in [check, |value: &Value| check_parameter("x", value)] {
            assert!(check(&doubled(22, Value::Null)).is_ok());
            assert!(check(&doubled(24, Value::Null)).unwrap_err().message().contains("repeated"));
            assert!(check(&doubled(200, Value::Null)).is_err());
        }
        // What is there once takes its memory, and has no other bound.
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

    fn context() -> QueryContext {
        let clock = Arc::new(mangrove_flow::clock::ManualClock::default());
        QueryContext::new(Default::default(), clock, Default::default())
    }

    #[test]
    fn a_watcher_finds_what_is_wrapped_in_what_it_knows() {
        let context = context();
        let large = Value::list(vec![Value::Null; 10_000]);
        let mut watcher = Watcher::default();
        let mut value = large.clone();
        let mut times = 0;
        // Each of these shares all that it holds with what is kept, and is known when the next one is looked at.
        let mut kept = Vec::new();
        let refused = loop {
            let [a, b] =
                [0, 1].map(|n| Value::list(vec![value.clone(), n.into(), Value::list(vec![Value::Null; 2_000])]));
            value = Value::list(vec![a, b]);
            kept.push(value.clone());
            times += 1;
            if let Err(error) = watcher.check(&value, &context) {
                break error;
            }
            assert!(times < 40, "a reader meets 2^40 values");
        };
        assert!(refused.message().contains("repeated"));
        assert!(times > 8, "2^8 times ten thousand values are no more than a reader may meet");
    }

    #[test]
    fn a_large_collection_that_many_hold_is_looked_at_once() {
        let context = context();
        let large = Value::list((0..1_000_000).map(|n| Value::list(vec![n.into()])).collect());
        let mut watcher = Watcher::default();
        // Gone through each time, this would be 10^11 values.
        for n in 0..50_000 {
            watcher.check(&Value::map(vec![("n".into(), n.into()), ("all".into(), large.clone())]), &context).unwrap();
        }
        // What takes its place in memory is another one.
        drop(large);
        let other = doubled(60, Value::Null);
        assert!(watcher.check(&Value::list(vec![other]), &context).is_err());
    }
}
