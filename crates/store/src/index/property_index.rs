//! Property indexes: from values to the elements that may have them.
//!
//! An index is of vertices or of edges. It is on one key or several, of all elements of its kind or of those with a
//! label. It may be *unique*.
//!
//! | index | answers | keys are equal |
//! |---|---|---|
//! | hash | equality on all its keys | by `compare::equal`, which compares numbers of all types |
//! | ordered | equality on its first keys, and equality or a range on the next | by `compare::order`, which agrees |
//!
//! Entries are *candidates*. A writer adds an entry when it writes a value, every reader checks an entry against the
//! values that it sees, and a collector removes an entry when no version needs it. So an index needs no versions, and
//! the entries that a rollback leaves are harmless until they are removed.
//!
//! An entry that a version needs is not removed. A writer stores the cell, passes a fence, and then adds the entry. A
//! collector takes the lock that adding takes, passes a fence, looks at the cells, and removes the entry if none has
//! the value. If the collector did not see a cell, its writer adds the entry after the collector has unlocked.
//!
//! `write::index_build` makes an index while other transactions write, and `write::index_entries` says which entries a
//! element has.
//!
//! | module | what it holds |
//! |---|---|
//! | `key` | the key of an entry, its order and hash, and intervals of keys |
//! | `hashed`, `ordered` | the two structures |

mod hashed;
mod key;
mod ordered;

use std::sync::atomic::{AtomicU64, Ordering};

use mangrove_graph::statistics::IndexStatistics;
use mangrove_graph::{ElementId, ElementKind, IndexId, IndexInfo, IndexRange, KeyId, LabelId, Result, Value};

use self::hashed::HashEntries;
pub(crate) use self::key::IndexKey;
use self::key::Interval;
use self::ordered::OrderedEntries;
use crate::memory::{Memory, RecordKind};
use crate::version::NEVER;

/// The most keys that an index may have.
pub const INDEX_KEYS_MAX: usize = 8;

/// The definition of a new index.
#[derive(Clone, Debug)]
pub struct IndexOptions {
    /// Whether the index covers vertices or edges.
    pub element: ElementKind,
    /// The label of the elements that the index covers; `None`: all elements of the kind.
    pub label: Option<LabelId>,
    /// The property keys, most significant first: 1 to [`INDEX_KEYS_MAX`] different ones.
    pub keys: Vec<KeyId>,
    /// True for an ordered index, which also answers ranges.
    pub ordered: bool,
    /// True if two elements must not have the same values.
    pub unique: bool,
}

/// An index with figures of its size.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexReport {
    /// The definition of the index.
    pub info: IndexInfo,
    /// True if the index is complete, so that queries use it.
    pub online: bool,
    /// The number of entries: one for each element and value that the element has or recently had.
    pub entries: u64,
    /// The number of different values among the entries; of a composite index, of different combinations. In an ordered
    /// index, a value whose entries lie in two leaves may count twice.
    pub distinct: u64,
    /// The memory of the index in bytes.
    pub bytes: u64,
}

/// The bits of the id of an indexed element. The index knows whether it is a vertex or an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct ElementBits(pub(crate) u64);

/// The effect of adding or removing an entry.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum EntryChange {
    /// Nothing changed: the entry to be added existed already.
    Nothing,
    /// One entry more or less, whose key other entries share.
    Entry,
    /// One entry more or less, the only one of its key.
    Key,
}

/// The memory of one index in bytes, which is also counted in the store's memory.
#[derive(Debug, Default)]
struct Ledger {
    bytes: AtomicU64,
}

impl Ledger {
    /// Counts that an allocation of `before` bytes was replaced by one of `after` bytes. 0 stands for no allocation.
    fn resize(&self, before: usize, after: usize, memory: &Memory) {
        if before == after {
            return;
        }
        if before > 0 {
            memory.remove(RecordKind::PropertyIndex, before);
            self.bytes.fetch_sub(before as u64, Ordering::Relaxed);
        }
        if after > 0 {
            memory.add(RecordKind::PropertyIndex, after);
            self.bytes.fetch_add(after as u64, Ordering::Relaxed);
        }
    }

    fn bytes(&self) -> usize {
        self.bytes.load(Ordering::Relaxed) as usize
    }
}

#[derive(Debug)]
enum IndexEntries {
    Hash(HashEntries),
    Ordered(OrderedEntries),
}

/// A property index.
#[derive(Debug)]
pub(crate) struct PropertyIndex {
    pub(crate) info: IndexInfo,
    /// The timestamp of the first snapshot that may use the index; `NEVER` while it is being made.
    usable_from: AtomicU64,
    entries: IndexEntries,
    entry_count: AtomicU64,
    distinct_count: AtomicU64,
    ledger: Ledger,
}

impl PropertyIndex {
    /// An empty index that no snapshot may use yet.
    pub(crate) fn new(id: IndexId, options: &IndexOptions, memory: &Memory) -> Self {
        let ledger = Ledger::default();
        let entries = if options.ordered {
            IndexEntries::Ordered(OrderedEntries::new(&ledger, memory))
        } else {
            IndexEntries::Hash(HashEntries::new())
        };
        let IndexOptions { element, label, ordered, unique, .. } = *options;
        PropertyIndex {
            info: IndexInfo { id, element, label, keys: options.keys.as_slice().into(), ordered, unique },
            usable_from: AtomicU64::new(NEVER),
            entries,
            entry_count: AtomicU64::new(0),
            distinct_count: AtomicU64::new(0),
            ledger,
        }
    }

    /// Lets snapshots from this timestamp on use the index.
    pub(crate) fn publish(&self, from: u64) {
        self.usable_from.store(from, Ordering::Release);
    }

    /// Returns true if a snapshot at this timestamp may use the index.
    pub(crate) fn usable_at(&self, begin_ts: u64) -> bool {
        self.usable_from.load(Ordering::Acquire) <= begin_ts
    }

    /// The element of the index with these bits.
    pub(crate) fn element(&self, bits: ElementBits) -> ElementId {
        ElementId::from_bits(self.info.element, bits.0)
    }

    /// Adds an entry, and appends to `others` the elements that have entries with an equal key. If two writers add the
    /// same value, the second meets the first. In an ordered index each may meet the other.
    pub(crate) fn add(
        &self,
        key: IndexKey,
        element: ElementId,
        others: Option<&mut Vec<ElementBits>>,
        memory: &Memory,
    ) {
        let bits = self.bits_of(element);
        let added = match &self.entries {
            IndexEntries::Hash(entries) => entries.add(key.hash_equal(), bits, others, &self.ledger, memory),
            IndexEntries::Ordered(entries) => entries.add(key, bits, others, &self.ledger, memory),
        };
        if added != EntryChange::Nothing {
            self.entry_count.fetch_add(1, Ordering::Relaxed);
            self.distinct_count.fetch_add(u64::from(added == EntryChange::Key), Ordering::Relaxed);
        }
    }

    /// Removes an entry, unless `is_needed` returns true under the lock that adding the entry takes. Returns true if it
    /// was removed.
    pub(crate) fn remove_if(
        &self,
        key: &IndexKey,
        element: ElementId,
        is_needed: impl FnOnce() -> bool,
        memory: &Memory,
    ) -> bool {
        let bits = self.bits_of(element);
        let removed = match &self.entries {
            IndexEntries::Hash(entries) => entries.remove_if(key.hash_equal(), bits, is_needed, &self.ledger, memory),
            IndexEntries::Ordered(entries) => entries.remove_if(key, bits, is_needed, &self.ledger, memory),
        };
        if let Some(removed) = removed {
            self.entry_count.fetch_sub(1, Ordering::Relaxed);
            if removed == EntryChange::Key {
                let less = |count: u64| Some(count.saturating_sub(1));
                let _ = self.distinct_count.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
            }
        }
        removed.is_some()
    }

    /// The bits of an element of the index. Vertices and edges may have the same bits, so an element of the other kind
    /// would be taken for another element.
    fn bits_of(&self, element: ElementId) -> ElementBits {
        debug_assert_eq!(element.kind(), self.info.element, "an index has elements of one kind");
        ElementBits(element.to_bits())
    }

    /// Returns true if entries with these two values have equal keys in this index.
    pub(crate) fn keys_are_equal(&self, a: &Value, b: &Value) -> bool {
        match &self.entries {
            IndexEntries::Hash(_) => key::hash_of(a) == key::hash_of(b),
            IndexEntries::Ordered(_) => mangrove_graph::compare::order(a, b).is_eq(),
        }
    }

    /// Appends the elements that may have these values under the first keys, and a value in the range under the next
    /// key. They are in no particular order, and one may appear more than once. Returns false if the list would have
    /// more than `most`; it then lacks some.
    pub(crate) fn candidates(
        &self,
        prefix: &[Value],
        range: &IndexRange,
        most: usize,
        out: &mut Vec<ElementBits>,
    ) -> Result<bool> {
        let used = prefix.len() + 1;
        match (range, &self.entries) {
            (_, IndexEntries::Ordered(_)) if used > self.info.keys.len() => {
                return Err(mangrove_graph::Error::bug("an index was asked about more keys than it has"));
            }
            (IndexRange::Equal(values), IndexEntries::Ordered(entries)) => {
                for value in values {
                    let limit = (value.clone(), true);
                    if !entries.candidates(&Interval { prefix, low: Some(&limit), high: Some(&limit) }, most, out) {
                        return Ok(false);
                    }
                }
            }
            (IndexRange::Between { low, high }, IndexEntries::Ordered(entries)) => {
                return Ok(entries.candidates(&Interval { prefix, low: low.as_ref(), high: high.as_ref() }, most, out));
            }
            (IndexRange::Equal(values), IndexEntries::Hash(entries)) if used == self.info.keys.len() => {
                for value in values {
                    let all = prefix.iter().chain([value]).cloned().collect();
                    if !entries.candidates(IndexKey::new(all).hash_equal(), most, out) {
                        return Ok(false);
                    }
                }
            }
            (_, IndexEntries::Hash(_)) => {
                return Err(mangrove_graph::Error::bug(
                    "a hash index answers equality on all its keys, and was asked for something else",
                ));
            }
        }
        Ok(true)
    }

    /// About how many candidates there are for these values under the first keys and a range under the next key; `None`
    /// if the index does not answer that. Costs two searches for each value. In a hash index the number is exact, in an
    /// ordered one as [`OrderedEntries::count`] says.
    pub(crate) fn candidate_count(&self, prefix: &[Value], range: &IndexRange) -> Option<u64> {
        let used = prefix.len() + 1;
        let all = self.entry_count.load(Ordering::Relaxed);
        match (range, &self.entries) {
            (IndexRange::Equal(values), IndexEntries::Hash(entries)) if used == self.info.keys.len() => {
                let count = |value: &Value| {
                    let key = prefix.iter().chain([value]).cloned().collect();
                    entries.count(IndexKey::new(key).hash_equal()) as u64
                };
                Some(values.iter().map(count).sum())
            }
            (IndexRange::Equal(values), IndexEntries::Ordered(entries)) if used <= self.info.keys.len() => {
                let count = |value: &Value| {
                    let limit = (value.clone(), true);
                    entries.count(&Interval { prefix, low: Some(&limit), high: Some(&limit) }, all)
                };
                Some(values.iter().map(count).sum())
            }
            (IndexRange::Between { low, high }, IndexEntries::Ordered(entries)) if used <= self.info.keys.len() => {
                Some(entries.count(&Interval { prefix, low: low.as_ref(), high: high.as_ref() }, all))
            }
            _ => None,
        }
    }

    /// Appends the elements that may have exactly these values.
    pub(crate) fn equal_candidates(&self, key: &IndexKey, out: &mut Vec<ElementBits>) {
        match &self.entries {
            IndexEntries::Hash(entries) => {
                entries.candidates(key.hash_equal(), usize::MAX, out);
            }
            IndexEntries::Ordered(entries) => entries.equal_candidates(key, out),
        }
    }

    /// Calls `each` with the elements of every key that has more than one, until it fails.
    pub(crate) fn each_group<E>(&self, each: impl FnMut(&[ElementBits]) -> Result<(), E>) -> Result<(), E> {
        match &self.entries {
            IndexEntries::Hash(entries) => entries.each_group(each),
            IndexEntries::Ordered(entries) => entries.each_group(each),
        }
    }

    /// The size of the index.
    pub(crate) fn size(&self) -> IndexStatistics {
        IndexStatistics {
            index: self.info.id,
            entries: self.entry_count.load(Ordering::Relaxed),
            distinct: self.distinct_count.load(Ordering::Relaxed),
        }
    }

    /// The definition of the index, with figures of its size.
    pub(crate) fn report(&self) -> IndexReport {
        let IndexStatistics { entries, distinct, .. } = self.size();
        IndexReport {
            info: self.info.clone(),
            online: self.usable_at(NEVER - 1),
            entries,
            distinct,
            bytes: self.ledger.bytes() as u64,
        }
    }

    /// The bytes in use, added up from the structure itself.
    pub(crate) fn bytes(&self) -> usize {
        match &self.entries {
            IndexEntries::Hash(entries) => entries.walk(),
            IndexEntries::Ordered(entries) => entries.walk(),
        }
    }

    /// Empties a dropped index and frees its memory. Writers that still find it in an older list add nothing more.
    pub(crate) fn close(&self, memory: &Memory) {
        match &self.entries {
            IndexEntries::Hash(entries) => entries.close(&self.ledger, memory),
            IndexEntries::Ordered(entries) => entries.close(&self.ledger, memory),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mangrove_graph::{TabletId, VertexId};

    fn vertex(n: u64) -> ElementId {
        ElementId::Vertex(VertexId::new(TabletId(1), n))
    }

    fn index(keys: u32, ordered: bool, memory: &Memory) -> PropertyIndex {
        let keys = (0..keys).map(KeyId).collect();
        PropertyIndex::new(
            IndexId(0),
            &IndexOptions { element: ElementKind::Vertex, label: None, keys, ordered, unique: false },
            memory,
        )
    }

    fn candidates(index: &PropertyIndex, prefix: &[Value], range: &IndexRange) -> Vec<u64> {
        let mut out = Vec::new();
        assert!(index.candidates(prefix, range, usize::MAX, &mut out).unwrap());
        let mut slots: Vec<u64> = out.into_iter().map(|bits| VertexId::from_bits(bits.0).slot()).collect();
        slots.sort_unstable();
        slots
    }

    fn one(value: impl Into<Value>) -> IndexKey {
        IndexKey::One(value.into())
    }

    #[test]
    fn equal_numbers_of_any_type_meet() {
        let memory = Memory::new(u64::MAX);
        for index in [index(1, false, &memory), index(1, true, &memory)] {
            index.add(one(29), vertex(1), None, &memory);
            index.add(one(29.0), vertex(2), None, &memory);
            index.add(one("29"), vertex(3), None, &memory);
            let mut others = Vec::new();
            index.add(IndexKey::One(Value::I64(29)), vertex(4), Some(&mut others), &memory);
            assert_eq!(others.len(), 2);
            assert_eq!(candidates(&index, &[], &IndexRange::Equal(vec![Value::I8(29)])), [1, 2, 4]);
            let report = index.report();
            assert_eq!((report.entries, report.distinct), (4, 2));
        }
    }

    #[test]
    fn ranges_keep_their_bounds() {
        let memory = Memory::new(u64::MAX);
        let index = index(1, true, &memory);
        (0..10).for_each(|n| index.add(one(n), vertex(n as u64), None, &memory));
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
            assert_eq!(candidates(&index, &[], &range), expected, "{range:?}");
            assert!((0..10).all(|n| range.holds(&Value::I32(n)) == expected.contains(&(n as u64))));
        }
    }

    #[test]
    fn a_composite_index_answers_prefixes() {
        let memory = Memory::new(u64::MAX);
        let pair = |a: i32, b: i32| IndexKey::new(vec![a.into(), b.into()]);
        for ordered in [false, true] {
            let index = index(2, ordered, &memory);
            for n in 0..20 {
                index.add(pair(n / 10, n % 10), vertex(n as u64), None, &memory);
            }
            let equal = IndexRange::Equal(vec![Value::I32(3), Value::I32(5)]);
            assert_eq!(candidates(&index, &[Value::I32(1)], &equal), [13, 15]);
            if ordered {
                index.add(one(1), vertex(99), None, &memory);
                let range = IndexRange::Between { low: Some((Value::I32(8), true)), high: None };
                assert_eq!(candidates(&index, &[Value::I32(0)], &range), [8, 9]);
                let first = IndexRange::Equal(vec![Value::I32(1)]);
                assert_eq!(candidates(&index, &[], &first).len(), 11, "with the one that lacks the second key");
            }
        }
    }

    /// Value `n` has about `4_000 / n` entries, so some values fill several leaves and most lie many in a leaf.
    #[test]
    fn counts_of_ranges_are_near_the_number_of_candidates() {
        let memory = Memory::new(u64::MAX);
        let indexes = [index(1, false, &memory), index(1, true, &memory)];
        let mut elements = 0;
        for value in 1..400_i64 {
            for _ in 0..4_000 / value {
                elements += 1;
                indexes.iter().for_each(|index| index.add(one(value), vertex(elements), None, &memory));
            }
        }
        let value = |n: i64| Value::from(n);
        for index in &indexes {
            for n in [1, 2, 7, 50, 399, 400] {
                let range = IndexRange::Equal(vec![value(n), value(1_000)]);
                let (count, found) = (index.candidate_count(&[], &range), candidates(index, &[], &range).len() as u64);
                let count = count.expect("both answer equality");
                assert!(count.abs_diff(found) <= found / 3, "{n}: {count} for {found}");
            }
        }
        for (low, high) in [(1, 2), (3, 30), (30, 300), (250, 251), (300, 900), (500, 900), (9, 3)] {
            let range = IndexRange::Between { low: Some((value(low), true)), high: Some((value(high), false)) };
            let found = candidates(&indexes[1], &[], &range).len() as u64;
            let count = indexes[1].candidate_count(&[], &range).expect("an ordered index answers a range");
            assert!(count.abs_diff(found) <= found / 3, "{low} to {high}: {count} for {found}");
            assert_eq!(indexes[0].candidate_count(&[], &range), None);
        }
        assert_eq!(indexes[1].candidate_count(&[value(1)], &IndexRange::Equal(vec![value(1)])), None);
    }

    #[test]
    fn removed_entries_give_their_memory_back() {
        let memory = Memory::new(u64::MAX);
        for ordered in [false, true] {
            let index = index(1, ordered, &memory);
            for n in 0..5_000_i32 {
                index.add(
                    one(format!("a name that is long enough for the heap {}", n % 100)),
                    vertex(n as u64),
                    None,
                    &memory,
                );
            }
            assert_eq!(index.bytes() as u64, index.report().bytes);
            for n in 0..5_000_i32 {
                let key = one(format!("a name that is long enough for the heap {}", n % 100));
                assert!(!index.remove_if(&key, vertex(n as u64), || true, &memory), "it is still needed");
                assert!(index.remove_if(&key, vertex(n as u64), || false, &memory));
            }
            assert_eq!((index.report().entries, index.bytes() as u64), (0, index.report().bytes));
            index.close(&memory);
            index.add(one("late"), vertex(1), None, &memory);
        }
        assert_eq!(memory.report().total_bytes(), 0);
    }
}
