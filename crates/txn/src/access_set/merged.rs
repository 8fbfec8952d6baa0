//! Write sets of many transactions, merged: each item once, with the last timestamp at which it was changed.
//!
//! A serializable transaction that is open for a long time must be compared with the write sets of millions of commits.
//! One by one, these take too much memory (about 500 bytes each) and too long to compare. Here the write sets of up to
//! 2^16 consecutive timestamps are one sorted array, of 10 bytes an item, which is merged with a read set.
//!
//! - *Times are exact.* An item that was read at a timestamp has changed since if and only if its last change is after
//!   that timestamp. So no other change needs to be kept.
//! - *Items are kept as fingerprints*, 64 bits of an item's hash. Two items with the same fingerprint are taken for
//!   one. That may show a conflict that does not exist, and never hides one.
//! - *Images*, which predicates are checked against, are kept in the same way: each value once, by kind of element, key
//!   and label set.
//! - *Large* write sets, which are compressed already, are kept apart and unchanged.

use std::cmp::Ordering;
use std::hash::BuildHasher;
use std::sync::Arc;

use hashbrown::HashMap;
use mangrove_graph::compare::order;
use mangrove_graph::{ElementKind, KeyId, LabelSetId, Value};

use super::writes::ValueImage;
use super::{Item, ItemSet, NewestNames, Predicate, WriteSet};

/// The most timestamps that merged writes may span: changes are dated with 16 bits.
pub const MERGED_SPAN_MAX: u64 = 1 << 16;

impl Item {
    fn fingerprint(self) -> u64 {
        // The seed is fixed, because fingerprints of many transactions are compared. None is stored on disk.
        foldhash::quality::FixedState::with_seed(0x6d65_7267).hash_one(self)
    }
}

/// Items to look up in merged writes: fingerprints, each with the timestamp at which the item was read.
#[derive(Debug, Default)]
pub struct ReadTimestamps(Vec<(u64, u64)>);

impl ReadTimestamps {
    /// Adds an item that was read at a timestamp.
    pub fn add(&mut self, item: Item, timestamp: u64) {
        self.0.push((item.fingerprint(), timestamp));
    }

    /// Adds a set of items that were all read at a timestamp.
    pub fn add_all(&mut self, items: &ItemSet, timestamp: u64) {
        self.0.reserve(items.len());
        items.each(|item| self.add(item, timestamp));
    }

    /// Sorts the items. Must be called after the last item was added, and before [`MergedWrites::change`].
    pub fn freeze(&mut self) {
        self.0.sort_unstable();
        self.0.dedup();
    }
}

/// Distinct entries in ascending order, each with the date of its last change. A date is a timestamp, counted from the
/// first one of the span.
#[derive(Debug)]
struct Dated<T> {
    entries: Box<[T]>,
    dates: Box<[u16]>,
}

impl<T> Default for Dated<T> {
    fn default() -> Self {
        Dated { entries: Box::default(), dates: Box::default() }
    }
}

impl<T: PartialEq> Dated<T> {
    /// Makes the array from changes in the order of their dates.
    fn of(mut changes: Vec<(T, u16)>, order: impl Fn(&T, &T) -> Ordering) -> Self {
        // The sort is stable, so the last of several equal entries has the latest date. It recognizes runs that are
        // sorted already (parts merged before) and merges them.
        changes.sort_by(|(a, _), (b, _)| order(a, b));
        let (mut entries, mut dates): (Vec<T>, Vec<u16>) = (Vec::new(), Vec::new());
        for (entry, date) in changes {
            match dates.last_mut() {
                Some(last) if entries.last() == Some(&entry) => *last = date,
                _ => {
                    entries.push(entry);
                    dates.push(date);
                }
            }
        }
        Dated { entries: entries.into(), dates: dates.into() }
    }

    fn iter(&self) -> impl Iterator<Item = (&T, u16)> {
        self.entries.iter().zip(self.dates.iter().copied())
    }

    fn bytes(&self) -> usize {
        self.entries.len() * (size_of::<T>() + size_of::<u16>())
    }
}

/// A kind of element (true: vertex), a key and a label set: images of the same group are compared with each other.
type ImageGroup = (bool, KeyId, LabelSetId);

/// The merged write sets of a span of timestamps: each item once, with the timestamp of its last change.
#[derive(Debug)]
pub struct MergedWrites {
    /// The span begins after this timestamp.
    after: u64,
    items: Dated<u64>,
    images: HashMap<ImageGroup, Dated<Value>, foldhash::fast::FixedState>,
    large: Vec<(u64, Arc<WriteSet>)>,
    newest: NewestNames,
    bytes: usize,
}

/// Changes that are not sorted yet.
#[derive(Default)]
struct UnsortedChanges {
    items: Vec<(u64, u16)>,
    images: HashMap<ImageGroup, Vec<(Value, u16)>, foldhash::fast::FixedState>,
    large: Vec<(u64, Arc<WriteSet>)>,
    newest: NewestNames,
}

impl UnsortedChanges {
    fn add(&mut self, writes: &WriteSet, date: u16) {
        writes.items().each(|item| self.items.push((item.fingerprint(), date)));
        for ValueImage { kind, key, labels, value } in writes.images() {
            let group = (*kind == ElementKind::Vertex, *key, *labels);
            self.images.entry(group).or_default().push((value.clone(), date));
        }
    }

    fn add_merged(&mut self, part: &MergedWrites, shift: u16) {
        self.items.extend(part.items.iter().map(|(item, date)| (*item, date + shift)));
        for (group, values) in &part.images {
            let values = values.iter().map(|(value, date)| (value.clone(), date + shift));
            self.images.entry(*group).or_default().extend(values);
        }
        self.large.extend(part.large.iter().cloned());
        self.newest.join(part.newest);
    }

    fn merge(self, after: u64) -> MergedWrites {
        let UnsortedChanges { items, images, mut large, newest } = self;
        let items = Dated::of(items, u64::cmp);
        let images = images.into_iter().map(|(group, values)| (group, Dated::of(values, order)));
        let images: HashMap<_, Dated<Value>, _> = images.collect();
        large.shrink_to_fit();
        let image_bytes: usize = images.values().map(|values| size_of::<Dated<Value>>() + values.bytes()).sum();
        let large_bytes: usize = large.iter().map(|(_, writes)| writes.bytes()).sum();
        let bytes = size_of::<MergedWrites>() + items.bytes() + image_bytes + large_bytes;
        MergedWrites { after, items, images, large, newest, bytes }
    }
}

impl MergedWrites {
    /// Merges write sets with their timestamps, which ascend from `after + 1` and span at most [`MERGED_SPAN_MAX`].
    pub fn of(after: u64, sets: &[(u64, Arc<WriteSet>)]) -> Self {
        let mut changes = UnsortedChanges::default();
        for (ts, writes) in sets {
            changes.newest.join(writes.newest());
            if writes.is_large() {
                changes.large.push((*ts, writes.clone()));
            } else {
                changes.add(writes, date(after, *ts));
            }
        }
        changes.merge(after)
    }

    /// Merges adjacent spans, the oldest first. Together they span at most [`MERGED_SPAN_MAX`].
    pub fn join<'a>(parts: impl IntoIterator<Item = &'a MergedWrites>) -> Self {
        let (mut changes, mut first) = (UnsortedChanges::default(), None);
        for part in parts {
            let after = *first.get_or_insert(part.after);
            let shift = u16::try_from(part.after - after).expect("joined spans are short");
            changes.add_merged(part, shift);
        }
        changes.merge(first.unwrap_or_default())
    }

    /// The approximate size in bytes.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The largest numbers of label sets and keys among the writes.
    pub fn newest(&self) -> NewestNames {
        self.newest
    }

    fn timestamp(&self, date: u16) -> u64 {
        self.after + 1 + u64::from(date)
    }

    /// The large write sets, which are not merged, with their timestamps.
    pub fn large(&self) -> impl Iterator<Item = (u64, &WriteSet)> {
        self.large.iter().map(|(ts, writes)| (*ts, &**writes))
    }

    /// Returns true if one of the items was changed after it was read. `reads` must be frozen. Large write sets are not
    /// considered.
    pub fn change(&self, reads: &ReadTimestamps) -> bool {
        let mut at = 0;
        for &(item, timestamp) in &reads.0 {
            at += gallop(&self.items.entries[at..], item);
            match self.items.entries.get(at) {
                None => return false,
                Some(&found) if found == item && self.timestamp(self.items.dates[at]) > timestamp => return true,
                Some(_) => {}
            }
        }
        false
    }

    /// Returns true if a predicate may have another answer because of the writes after a timestamp. Large write sets
    /// are not considered.
    pub fn meet_after(&self, timestamp: u64, predicate: &Predicate) -> bool {
        self.images.iter().any(|((is_vertex, key, labels), values)| {
            let kind = if *is_vertex { ElementKind::Vertex } else { ElementKind::Edge };
            predicate.takes(kind, *key, *labels)
                && values.iter().any(|(value, date)| self.timestamp(date) > timestamp && predicate.holds(value))
        })
    }
}

fn date(after: u64, ts: u64) -> u16 {
    u16::try_from(ts - after - 1).expect("merged write sets span few timestamps")
}

/// The count of numbers below `wanted`, by steps that double, because `wanted` is often near the front.
fn gallop(ascending: &[u64], wanted: u64) -> usize {
    let mut step = 1;
    while step < ascending.len() && ascending[step - 1] < wanted {
        step *= 2;
    }
    let (from, to) = (step / 2, step.min(ascending.len()));
    from + ascending[from..to].partition_point(|number| *number < wanted)
}

#[cfg(test)]
mod tests {
    use mangrove_graph::{ElementId, TabletId, VertexId};
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

    use super::*;

    #[test]
    fn galloping_finds_what_a_search_finds() {
        let mut rng = SmallRng::seed_from_u64(1);
        for len in 0..70_u64 {
            let mut numbers: Vec<u64> = (0..len).map(|_| rng.random_range(0..100)).collect();
            numbers.sort_unstable();
            for wanted in 0..101 {
                assert_eq!(
                    gallop(&numbers, wanted),
                    numbers.partition_point(|n| *n < wanted),
                    "{wanted} in {numbers:?}"
                );
            }
        }
    }

    fn item(n: u64) -> Item {
        Item::cell(ElementId::Vertex(VertexId::new(TabletId(1), n)), KeyId(1))
    }

    #[test]
    fn merged_writes_know_what_changed_after_a_moment() {
        let mut rng = SmallRng::seed_from_u64(2);
        let mut met = [0; 2];
        for _ in 0..300 {
            let (after, count, range) = (rng.random_range(0..9), rng.random_range(1..60), rng.random_range(5..400));
            let written: Vec<Vec<u64>> = (0..count)
                .map(|_| (0..rng.random_range(0..30)).map(|_| rng.random_range(0..range)).collect())
                .collect();
            let sets: Vec<(u64, Arc<WriteSet>)> = written
                .iter()
                .zip(after + 1..)
                .map(|(items, ts)| (ts, Arc::new(WriteSet::of_items(items.iter().map(|n| item(*n))))))
                .collect();
            let whole = MergedWrites::of(after, &sets);
            let size = rng.random_range(1..20);
            let parts: Vec<MergedWrites> =
                sets.chunks(size).map(|part| MergedWrites::of(part[0].0 - 1, part)).collect();
            let joined = MergedWrites::join(&parts);
            for _ in 0..20 {
                let reads: Vec<(u64, u64)> = (0..rng.random_range(0..12))
                    .map(|_| (rng.random_range(0..range), rng.random_range(0..after + count + 2)))
                    .collect();
                let mut timestamps = ReadTimestamps::default();
                reads.iter().for_each(|(n, timestamp)| timestamps.add(item(*n), *timestamp));
                timestamps.freeze();
                let changed = |(n, timestamp): &(u64, u64)| {
                    written.iter().zip(after + 1..).any(|(items, ts)| ts > *timestamp && items.contains(n))
                };
                let expected = reads.iter().any(changed);
                assert_eq!((whole.change(&timestamps), joined.change(&timestamps)), (expected, expected));
                met[usize::from(expected)] += 1;
            }
            assert_eq!(whole.bytes(), joined.bytes());
        }
        assert!(met.iter().all(|count| *count > 500), "{met:?}");
    }

    #[test]
    fn an_item_takes_ten_bytes() {
        let sets: Vec<(u64, Arc<WriteSet>)> =
            (1..=65_536).map(|ts| (ts, Arc::new(WriteSet::of_items([item(ts), item(0)])))).collect();
        let parts: Vec<MergedWrites> = sets.chunks(256).map(|part| MergedWrites::of(part[0].0 - 1, part)).collect();
        let joined = MergedWrites::join(&parts);
        assert!(joined.bytes() < 65_536 * 10 + 1_000, "{} bytes", joined.bytes());
    }
}
