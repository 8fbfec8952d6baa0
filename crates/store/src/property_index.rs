//! Property indexes: from a value to the vertices that may have it.
//!
//! Entries are *candidates*: added when a value is written, never removed in this version, and re-checked by
//! every reader against the visible value. So an index needs no versions of its own, and a rollback leaves
//! nothing to clean but entries that no longer check out.
//!
//! An index is built while others write: it is registered first, so that every write from then on adds its
//! entry; then all pages are scanned, every version of every cell. A writer stores the cell first and looks
//! for indexes second, the builder does it the other way round, with a SeqCst fence between the two steps on
//! both sides: one of them notices. Only when the scan is through is the index offered to readers.
//!
//! Keys: a hash index hashes so that numbers equal across types meet (`compare::equal`), an ordered one
//! sorts by `compare::order`, where they are equal too.

use std::cmp::Ordering as Order;
use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, Hash, Hasher};
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};

use hashbrown::HashMap;
use mangrove_graph::compare::{equal, hash_equivalent, is_number, order};
use mangrove_graph::numeric::to_f64;
use mangrove_graph::{IndexId, IndexInfo, IndexRange, KeyId, LabelId, Result, Value, VertexId};
use parking_lot::RwLock;

use crate::memory::{Memory, RecordKind};
use crate::version::NEVER;

const SHARDS: usize = 16;
/// What one entry is counted as.
const ENTRY_BYTES: usize = 64;

/// What an index is to be like.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Only vertices with this label; `None`: all.
    pub label: Option<LabelId>,
    /// The property.
    pub key: KeyId,
    /// Answers ranges too.
    pub ordered: bool,
    /// Refuses a second vertex with the same value.
    pub unique: bool,
}

type FastHash = foldhash::fast::RandomState;

/// The vertices under one key of the index.
#[derive(Debug)]
enum Postings {
    One(VertexId),
    Many(HashSet<VertexId, FastHash>),
}

impl Postings {
    /// Whether the vertex is new here.
    fn add(&mut self, vertex: VertexId) -> bool {
        match self {
            Postings::One(one) if *one == vertex => false,
            Postings::One(one) => {
                *self = Postings::Many([*one, vertex].into_iter().collect());
                true
            }
            Postings::Many(many) => many.insert(vertex),
        }
    }

    fn each(&self, mut each: impl FnMut(VertexId)) {
        match self {
            Postings::One(one) => each(*one),
            Postings::Many(many) => many.iter().for_each(|v| each(*v)),
        }
    }
}

/// A value ordered by `compare::order`.
#[derive(Debug)]
struct Ordered(Value);

impl PartialEq for Ordered {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}
impl Eq for Ordered {}
impl PartialOrd for Ordered {
    fn partial_cmp(&self, other: &Self) -> Option<Order> {
        Some(self.cmp(other))
    }
}
impl Ord for Ordered {
    fn cmp(&self, other: &Self) -> Order {
        order(&self.0, &other.0)
    }
}

#[derive(Debug)]
enum Entries {
    Hash(Box<[RwLock<HashMap<u64, Postings, FastHash>>]>),
    Ordered(RwLock<BTreeMap<Ordered, Postings>>),
}

/// See the module.
#[derive(Debug)]
pub(crate) struct PropertyIndex {
    pub(crate) info: IndexInfo,
    /// The first snapshot that may use the index; `NEVER` while it is built.
    usable_from: AtomicU64,
    entries: Entries,
    entry_count: AtomicU64,
}

impl PropertyIndex {
    pub(crate) fn new(id: IndexId, options: &IndexOptions) -> Self {
        let entries = if options.ordered {
            Entries::Ordered(RwLock::default())
        } else {
            Entries::Hash((0..SHARDS).map(|_| RwLock::default()).collect())
        };
        let IndexOptions { label, key, ordered, unique } = *options;
        PropertyIndex {
            info: IndexInfo { id, label, key, ordered, unique },
            usable_from: AtomicU64::new(NEVER),
            entries,
            entry_count: AtomicU64::new(0),
        }
    }

    /// Offers the index to snapshots from this one on.
    pub(crate) fn publish(&self, from: u64) {
        self.usable_from.store(from, Ordering::Release);
    }

    pub(crate) fn usable_at(&self, begin_ts: u64) -> bool {
        self.usable_from.load(Ordering::Acquire) <= begin_ts
    }

    /// Adds an entry, and appends the vertices that were under an equal key before to `others`. Of two
    /// writers of one value, the second meets the first.
    pub(crate) fn add(&self, value: &Value, vertex: VertexId, others: Option<&mut Vec<VertexId>>, memory: &Memory) {
        let is_new = match &self.entries {
            Entries::Hash(shards) => {
                let hash = hash_equal(value);
                match shards[hash as usize % SHARDS].write().entry(hash) {
                    hashbrown::hash_map::Entry::Occupied(mut entry) => enter(entry.get_mut(), vertex, others),
                    hashbrown::hash_map::Entry::Vacant(entry) => {
                        entry.insert(Postings::One(vertex));
                        true
                    }
                }
            }
            Entries::Ordered(tree) => match tree.write().entry(Ordered(value.clone())) {
                std::collections::btree_map::Entry::Occupied(mut entry) => enter(entry.get_mut(), vertex, others),
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(Postings::One(vertex));
                    true
                }
            },
        };
        if is_new {
            self.entry_count.fetch_add(1, Ordering::Relaxed);
            memory.add(RecordKind::PropertyIndex, ENTRY_BYTES);
        }
    }

    /// The vertices that may have a value in the range; not in order, possibly more than once.
    pub(crate) fn candidates(&self, range: &IndexRange, out: &mut Vec<VertexId>) -> Result<()> {
        match (range, &self.entries) {
            (IndexRange::Equal(values), _) => values.iter().for_each(|value| self.equal_candidates(value, out)),
            (IndexRange::Between { low, high }, Entries::Ordered(tree)) => {
                if let Some(bounds) = bounds(low.as_ref(), high.as_ref()) {
                    tree.read().range(bounds).for_each(|(_, postings)| postings.each(|v| out.push(v)));
                }
            }
            (IndexRange::Between { .. }, Entries::Hash(_)) => {
                return Err(mangrove_graph::Error::bug(
                    "a hash index was asked for a range; only an ordered one has them",
                ));
            }
        }
        Ok(())
    }

    /// The vertices that may have this value.
    pub(crate) fn equal_candidates(&self, value: &Value, out: &mut Vec<VertexId>) {
        match &self.entries {
            Entries::Hash(shards) => {
                let hash = hash_equal(value);
                if let Some(postings) = shards[hash as usize % SHARDS].read().get(&hash) {
                    postings.each(|v| out.push(v));
                }
            }
            Entries::Ordered(tree) => {
                if let Some(postings) = tree.read().get(&Ordered(value.clone())) {
                    postings.each(|v| out.push(v));
                }
            }
        }
    }

    /// Calls `each` with the vertices of every key of the index that has more than one.
    pub(crate) fn each_group(&self, mut each: impl FnMut(&[VertexId]) -> Result<()>) -> Result<()> {
        let mut group = |postings: &Postings| match postings {
            Postings::One(_) => Ok(()),
            Postings::Many(many) => each(&many.iter().copied().collect::<Vec<_>>()),
        };
        match &self.entries {
            Entries::Hash(shards) => shards.iter().try_for_each(|shard| shard.read().values().try_for_each(&mut group)),
            Entries::Ordered(tree) => tree.read().values().try_for_each(group),
        }
    }

    pub(crate) fn bytes(&self) -> usize {
        self.entry_count.load(Ordering::Relaxed) as usize * ENTRY_BYTES
    }

    /// Counts the entries out of the memory report, when the index is dropped.
    pub(crate) fn release(&self, memory: &Memory) {
        for _ in 0..self.entry_count.load(Ordering::Relaxed) {
            memory.remove(RecordKind::PropertyIndex, ENTRY_BYTES);
        }
    }
}

fn enter(postings: &mut Postings, vertex: VertexId, others: Option<&mut Vec<VertexId>>) -> bool {
    if let Some(others) = others {
        postings.each(|v| others.push(v));
    }
    postings.add(vertex)
}

type Limit<'a> = Option<&'a (Value, bool)>;

/// The bounds of a tree range; `None` where it is empty (which `BTreeMap::range` would not forgive).
fn bounds(low: Limit<'_>, high: Limit<'_>) -> Option<(Bound<Ordered>, Bound<Ordered>)> {
    if let (Some((l, l_in)), Some((h, h_in))) = (low, high) {
        match order(l, h) {
            Order::Greater => return None,
            Order::Equal if !(*l_in && *h_in) => return None,
            _ => {}
        }
    }
    let bound = |limit: Limit<'_>| match limit {
        None => Bound::Unbounded,
        Some((value, true)) => Bound::Included(Ordered(value.clone())),
        Some((value, false)) => Bound::Excluded(Ordered(value.clone())),
    };
    Some((bound(low), bound(high)))
}

/// Whether a value lies in a range: the re-check of a candidate.
pub(crate) fn in_range(range: &IndexRange, value: &Value) -> bool {
    match range {
        IndexRange::Equal(values) => values.iter().any(|v| equal(v, value)),
        IndexRange::Between { low, high } => {
            let above = low.as_ref().is_none_or(|(bound, inclusive)| match order(value, bound) {
                Order::Greater => true,
                Order::Equal => *inclusive,
                Order::Less => false,
            });
            let below = high.as_ref().is_none_or(|(bound, inclusive)| match order(value, bound) {
                Order::Less => true,
                Order::Equal => *inclusive,
                Order::Greater => false,
            });
            above && below
        }
    }
}

/// A hash that agrees with `compare::equal`.
fn hash_equal(value: &Value) -> u64 {
    // Only ever in memory, but the same for all shards and for the life of the index.
    let mut hasher = foldhash::fast::FixedState::with_seed(0x6d61_6e67).build_hasher();
    feed(value, &mut hasher);
    hasher.finish()
}

fn feed(value: &Value, hasher: &mut impl Hasher) {
    match value {
        // Numbers that are equal have the same nearest double; unequal ones that share it are told apart by
        // the re-check.
        _ if is_number(value) => match to_f64(value) {
            Some(0.0) | None => 0_u64.hash(hasher),
            Some(f) => f.to_bits().hash(hasher),
        },
        Value::List(values) => values.iter().for_each(|v| feed(v, hasher)),
        // Members may come in any order.
        Value::Set(values) => values.len().hash(hasher),
        Value::Map(entries) => entries.len().hash(hasher),
        other => hash_equivalent(other, hasher),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mangrove_graph::TabletId;

    fn vertex(n: u64) -> VertexId {
        VertexId::new(TabletId(1), n)
    }

    fn index(ordered: bool) -> PropertyIndex {
        let options = IndexOptions { label: None, key: KeyId(0), ordered, unique: false };
        PropertyIndex::new(IndexId(0), &options)
    }

    fn candidates(index: &PropertyIndex, range: &IndexRange) -> Vec<u64> {
        let mut out = Vec::new();
        index.candidates(range, &mut out).unwrap();
        let mut slots: Vec<u64> = out.into_iter().map(VertexId::slot).collect();
        slots.sort_unstable();
        slots
    }

    #[test]
    fn equal_numbers_of_any_type_meet() {
        let memory = Memory::new(u64::MAX);
        for index in [index(false), index(true)] {
            index.add(&Value::I32(29), vertex(1), None, &memory);
            index.add(&Value::F64(29.0), vertex(2), None, &memory);
            index.add(&Value::from("29"), vertex(3), None, &memory);
            let mut others = Vec::new();
            index.add(&Value::I64(29), vertex(4), Some(&mut others), &memory);
            assert_eq!(others.len(), 2);
            assert_eq!(candidates(&index, &IndexRange::Equal(vec![Value::I8(29)])), [1, 2, 4]);
        }
    }

    #[test]
    fn ranges_keep_their_bounds() {
        let memory = Memory::new(u64::MAX);
        let index = index(true);
        (0..10).for_each(|n| index.add(&Value::I32(n), vertex(n as u64), None, &memory));
        let between = |low: Option<(i32, bool)>, high: Option<(i32, bool)>| IndexRange::Between {
            low: low.map(|(v, b)| (Value::I32(v), b)),
            high: high.map(|(v, b)| (Value::I32(v), b)),
        };
        for (range, expected) in [
            (between(Some((3, true)), Some((5, false))), vec![3, 4]),
            (between(Some((7, false)), None), vec![8, 9]),
            (between(None, Some((1, true))), vec![0, 1]),
            (between(Some((5, false)), Some((5, true))), vec![]),
            (between(Some((6, true)), Some((5, true))), vec![]),
        ] {
            assert_eq!(candidates(&index, &range), expected, "{range:?}");
            assert!((0..10).all(|n| in_range(&range, &Value::I32(n)) == expected.contains(&(n as u64))));
        }
    }
}
