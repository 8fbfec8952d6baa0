//! The entries of an ordered index: sorted leaves under a directory that is replaced as a whole.
//!
//! ```text
//! directory (ArcSwap)     low₁         low₂         low₃
//!                  leaf₀   │   leaf₁    │   leaf₂    │   leaf₃      each with a lock of its own
//! ```
//!
//! An entry is a key and an element; entries are sorted by both. Leaf `i` has the entries from its low bound (inclusive)
//! to the low bound of leaf `i + 1`. A reader or writer loads the directory, finds its leaf there, and locks that leaf
//! alone. If the leaf is retired, it loads the directory again. So writers of different leaves do not meet.
//!
//! - A full leaf is *split*. Two new leaves and a new directory are published; then the old leaf is unlocked, retired.
//!   A leaf that has become empty is retired, too, and its range goes to its left neighbor.
//! - A thread that holds a leaf may take the mutex of the directory, and not the other way round
//!   (`mangrove_locks::rank`).
//! - The low bound of a leaf never changes. The high bound of a leaf that is not retired only grows.
//!
//! A scan that meets a retired leaf goes on from the leaf's low bound in a new directory. So it may meet an entry
//! twice, and it misses no entry that exists throughout the scan.

use std::cmp::Ordering;
use std::sync::Arc;

use arc_swap::ArcSwap;
use mangrove_graph::Result;
use mangrove_locks::{Guard, Mutex, RwLock, rank};
use parking_lot::RwLockWriteGuard;

use super::key::{IndexKey, Interval};
use super::{ElementBits, EntryChange, Ledger};
use crate::memory::Memory;

/// The most entries of a leaf. An insert moves half of them, and a split copies the directory. At this size both take
/// about a microsecond, up to ten million entries.
const LEAF_ENTRIES_MAX: usize = 512;

#[derive(Clone, Debug)]
struct LeafEntry {
    key: IndexKey,
    element: ElementBits,
}

impl LeafEntry {
    fn compare(&self, key: &IndexKey, element: ElementBits) -> Ordering {
        self.key.cmp(key).then(self.element.cmp(&element))
    }
}

#[derive(Debug, Default)]
struct Leaf {
    entries: Vec<LeafEntry>,
    /// The bytes that the entries own on the heap.
    heap_bytes: usize,
    retired: bool,
}

impl Leaf {
    fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<LeafEntry>() + self.heap_bytes
    }

    fn of(entries: Vec<LeafEntry>) -> Self {
        let heap_bytes = entries.iter().map(|entry| entry.key.heap_bytes()).sum();
        Leaf { entries, heap_bytes, retired: false }
    }

    /// Returns true if the entry before or at this position has the key.
    fn has_neighbor(&self, at: usize, key: &IndexKey) -> bool {
        at.checked_sub(1).is_some_and(|left| self.entries[left].key == *key)
            || self.entries.get(at).is_some_and(|right| right.key == *key)
    }
}

type LeafLock = RwLock<Leaf, rank::OrderedIndexLeaf>;
/// A leaf that is locked for writing.
type LockedLeaf<'a> = Guard<RwLockWriteGuard<'a, Leaf>, rank::OrderedIndexLeaf>;

/// The bytes of a leaf besides its entries: itself and its entry in the directory, with the counts of two `Arc`s.
const LEAF_BYTES: usize = size_of::<LeafLock>() + size_of::<LeafEntry>() + 6 * size_of::<usize>();

#[derive(Debug, Default)]
struct LeafDirectory {
    /// The low bounds. Leaf `i + 1` begins at bound `i`; the first leaf has none.
    lows: Vec<Arc<LeafEntry>>,
    leaves: Vec<Arc<LeafLock>>,
}

impl LeafDirectory {
    /// The number of the leaf that an entry belongs to.
    fn leaf_of(&self, key: &IndexKey, element: ElementBits) -> usize {
        self.lows.partition_point(|low| low.compare(key, element).is_le())
    }

    /// Returns true if the low bound of the leaf has this key, so that entries of the leaf before may have it, too.
    fn begins_with(&self, leaf: usize, key: &IndexKey) -> bool {
        leaf.checked_sub(1).and_then(|at| self.lows.get(at)).is_some_and(|low| low.key == *key)
    }

    /// The number of the leaf that begins at this bound, or of the one that took its range over.
    fn leaf_from(&self, low: Option<&LeafEntry>) -> usize {
        low.map_or(0, |low| self.leaf_of(&low.key, low.element))
    }

    /// A copy with a leaf replaced by others. The first of these begins where the old leaf did, the others at `lows`.
    fn replaced(&self, at: usize, leaves: Vec<Leaf>, lows: Vec<Arc<LeafEntry>>) -> LeafDirectory {
        let mut next = LeafDirectory { lows: self.lows.clone(), leaves: self.leaves.clone() };
        let leaves = leaves.into_iter().map(|leaf| Arc::new(RwLock::new(leaf)));
        next.leaves.splice(at..=at, leaves);
        next.lows.splice(at..at, lows);
        next
    }
}

#[derive(Debug)]
pub(super) struct OrderedEntries {
    directory: ArcSwap<LeafDirectory>,
    /// Held while the directory changes; true after the index was dropped.
    changes: Mutex<bool, rank::OrderedIndexDirectory>,
}

impl OrderedEntries {
    pub(super) fn new(ledger: &Ledger, memory: &Memory) -> Self {
        let directory = LeafDirectory { lows: Vec::new(), leaves: vec![Arc::default()] };
        ledger.resize(0, LEAF_BYTES, memory);
        OrderedEntries { directory: ArcSwap::from_pointee(directory), changes: Mutex::new(false) }
    }

    /// Adds an entry, and appends to `others` the other elements with the key. If two threads add to one key, at least
    /// the second meets the first.
    pub(super) fn add(
        &self,
        key: IndexKey,
        element: ElementBits,
        others: Option<&mut Vec<ElementBits>>,
        ledger: &Ledger,
        memory: &Memory,
    ) -> EntryChange {
        let probe = others.is_some().then(|| key.clone());
        let (added, runs_on) = loop {
            let directory = self.directory.load();
            let Some(at) = directory.leaves.get(directory.leaf_of(&key, element)) else { return EntryChange::Nothing };
            let leaf = at.write();
            if !leaf.retired {
                break self.insert(&directory, leaf, key, element, ledger, memory);
            }
        };
        if let (Some(others), Some(probe)) = (others, probe)
            && runs_on
        {
            // Every thread adds first and looks second, both under locks of leaves. So one of two meets the other.
            self.equal(&probe, |v| {
                if v != element {
                    others.push(v);
                }
            });
        }
        added
    }

    /// Adds an entry to a leaf. Returns true as the second if other entries may have the key.
    fn insert(
        &self,
        directory: &LeafDirectory,
        mut leaf: LockedLeaf<'_>,
        key: IndexKey,
        element: ElementBits,
        ledger: &Ledger,
        memory: &Memory,
    ) -> (EntryChange, bool) {
        let number = directory.leaf_of(&key, element);
        let runs_over = directory.begins_with(number, &key) || directory.begins_with(number + 1, &key);
        match leaf.entries.binary_search_by(|entry| entry.compare(&key, element)) {
            Ok(_) => (EntryChange::Nothing, true),
            Err(at) => {
                let shares_key = leaf.has_neighbor(at, &key);
                let is_first = !shares_key && !directory.begins_with(number, &key);
                let before = leaf.bytes();
                leaf.heap_bytes += key.heap_bytes();
                leaf.entries.insert(at, LeafEntry { key, element });
                ledger.resize(before, leaf.bytes(), memory);
                if leaf.entries.len() > LEAF_ENTRIES_MAX {
                    self.split(leaf, ledger, memory);
                }
                (if is_first { EntryChange::Key } else { EntryChange::Entry }, shares_key || runs_over)
            }
        }
    }

    /// Replaces a full leaf by two.
    fn split(&self, mut full: LockedLeaf<'_>, ledger: &Ledger, memory: &Memory) {
        let closed = self.changes.lock();
        if *closed {
            return;
        }
        let directory = self.directory.load();
        let number = directory.leaf_of(&full.entries[0].key, full.entries[0].element);
        // Ascending values (times, counters) fill the last leaf again and again, so it is cut near its end.
        let is_last = number + 1 == directory.leaves.len();
        let cut = if is_last { LEAF_ENTRIES_MAX * 7 / 8 } else { full.entries.len() / 2 };
        let before = full.bytes();
        let mut left = std::mem::take(&mut full.entries);
        let right = left.split_off(cut);
        left.shrink_to_fit();
        (full.heap_bytes, full.retired) = (0, true);
        let low = Arc::new(right[0].clone());
        ledger.resize(0, LEAF_BYTES + low.key.heap_bytes(), memory);
        let (left, right) = (Leaf::of(left), Leaf::of(right));
        ledger.resize(before, left.bytes(), memory);
        ledger.resize(0, right.bytes(), memory);
        self.directory.store(Arc::new(directory.replaced(number, vec![left, right], vec![low])));
    }

    /// Removes an entry, unless `is_needed` returns true under the lock that adding it takes.
    pub(super) fn remove_if(
        &self,
        key: &IndexKey,
        element: ElementBits,
        is_needed: impl FnOnce() -> bool,
        ledger: &Ledger,
        memory: &Memory,
    ) -> Option<EntryChange> {
        loop {
            let directory = self.directory.load();
            let number = directory.leaf_of(key, element);
            let mut leaf = directory.leaves.get(number)?.write();
            if leaf.retired {
                continue;
            }
            let at = leaf.entries.binary_search_by(|entry| entry.compare(key, element)).ok()?;
            if is_needed() {
                return None;
            }
            let before = leaf.bytes();
            leaf.heap_bytes -= leaf.entries[at].key.heap_bytes();
            leaf.entries.remove(at);
            if leaf.entries.len() < leaf.entries.capacity() / 4 {
                let kept = leaf.entries.len() * 2;
                leaf.entries.shrink_to(kept);
            }
            ledger.resize(before, leaf.bytes(), memory);
            let was_last = !leaf.has_neighbor(at, key) && !directory.begins_with(number, key);
            if leaf.entries.is_empty() {
                self.merge_away(leaf, directory.lows.get(number.wrapping_sub(1)), ledger, memory);
            }
            return Some(if was_last { EntryChange::Key } else { EntryChange::Entry });
        }
    }

    /// Retires an empty leaf, whose range goes to its left neighbor. The first leaf has no left neighbor and stays.
    fn merge_away(&self, mut empty: LockedLeaf<'_>, low: Option<&Arc<LeafEntry>>, ledger: &Ledger, memory: &Memory) {
        let Some(low) = low else { return };
        let closed = self.changes.lock();
        if *closed {
            return;
        }
        let directory = self.directory.load();
        let number = directory.leaf_from(Some(low));
        let mut next = LeafDirectory { lows: directory.lows.clone(), leaves: directory.leaves.clone() };
        next.leaves.remove(number);
        next.lows.remove(number - 1);
        empty.retired = true;
        ledger.resize(empty.bytes(), 0, memory);
        empty.entries = Vec::new();
        ledger.resize(LEAF_BYTES + low.key.heap_bytes(), 0, memory);
        self.directory.store(Arc::new(next));
    }

    /// Calls `each` with the entries for which `position` is `Equal`, in order, until it returns false. `position` is a
    /// function as [`Interval::position`].
    fn scan(&self, position: impl Fn(&IndexKey) -> Ordering, mut each: impl FnMut(&LeafEntry) -> bool) {
        let mut resume: Option<Option<Arc<LeafEntry>>> = None;
        'again: loop {
            let directory = self.directory.load();
            let first = match &resume {
                None => directory.lows.partition_point(|low| position(&low.key).is_lt()),
                Some(low) => directory.leaf_from(low.as_deref()),
            };
            for (number, leaf) in directory.leaves.iter().enumerate().skip(first) {
                let leaf = leaf.read();
                if leaf.retired {
                    resume = Some(number.checked_sub(1).map(|at| directory.lows[at].clone()));
                    continue 'again;
                }
                let from = leaf.entries.partition_point(|entry| position(&entry.key).is_lt());
                for entry in &leaf.entries[from..] {
                    if position(&entry.key).is_gt() || !each(entry) {
                        return;
                    }
                }
            }
            return;
        }
    }

    /// Calls `each` with the elements of all entries with this key.
    fn equal(&self, key: &IndexKey, mut each: impl FnMut(ElementBits)) {
        self.scan(
            |other| other.cmp(key),
            |entry| {
                each(entry.element);
                true
            },
        );
    }

    pub(super) fn equal_candidates(&self, key: &IndexKey, out: &mut Vec<ElementBits>) {
        self.equal(key, |element| out.push(element));
    }

    /// Appends the elements of all entries in an interval, until the list has `most`. Returns false if there are more.
    pub(super) fn candidates(&self, interval: &Interval<'_>, most: usize, out: &mut Vec<ElementBits>) -> bool {
        let mut is_whole = true;
        self.scan(
            |key| interval.position(key),
            |entry| {
                is_whole = out.len() < most;
                if is_whole {
                    out.push(entry.element);
                }
                is_whole
            },
        );
        is_whole
    }

    /// About how many entries an interval has, if the index has `all`. The directory is an equi-depth histogram: the
    /// leaves at both ends of the interval are searched, and those between count with the mean of all others. So the
    /// number is exact for an interval of at most two leaves, or of all, unless one of these is being replaced.
    pub(super) fn count(&self, interval: &Interval<'_>, all: u64) -> u64 {
        let directory = self.directory.load();
        let leaf_after = |is_before: fn(Ordering) -> bool| {
            directory.lows.partition_point(|low| is_before(interval.position(&low.key)))
        };
        let (first, last) = (leaf_after(Ordering::is_lt), leaf_after(Ordering::is_le));
        let leaves = directory.leaves.len() as u64;
        // The entries of a leaf in the interval, and all of its entries. A retired leaf has none of its own.
        let within = |number: usize| {
            let mean = (all / leaves.max(1), all / leaves.max(1));
            let Some(leaf) = directory.leaves.get(number) else { return mean };
            let leaf = leaf.read();
            if leaf.retired {
                return mean;
            }
            let from = leaf.entries.partition_point(|entry| interval.position(&entry.key).is_lt());
            let to = leaf.entries.partition_point(|entry| interval.position(&entry.key).is_le());
            (to.saturating_sub(from) as u64, leaf.entries.len() as u64)
        };
        let (at_first, of_first) = within(first);
        if first >= last {
            return at_first;
        }
        let (at_last, of_last) = within(last);
        let between = (last - first - 1) as u64;
        at_first + at_last + all.saturating_sub(of_first + of_last) * between / leaves.saturating_sub(2).max(1)
    }

    /// Calls `each` with the elements of every key that has more than one.
    pub(super) fn each_group<E>(&self, mut each: impl FnMut(&[ElementBits]) -> Result<(), E>) -> Result<(), E> {
        let mut outcome = Ok(());
        let mut group: (Option<IndexKey>, Vec<ElementBits>) = (None, Vec::new());
        self.scan(
            |_| Ordering::Equal,
            |entry| {
                if group.0.as_ref() != Some(&entry.key) {
                    outcome = if group.1.len() > 1 { each(&group.1) } else { Ok(()) };
                    group = (Some(entry.key.clone()), Vec::new());
                }
                group.1.push(entry.element);
                outcome.is_ok()
            },
        );
        outcome?;
        if group.1.len() > 1 { each(&group.1) } else { Ok(()) }
    }

    /// Empties the index for good.
    pub(super) fn close(&self, ledger: &Ledger, memory: &Memory) {
        let directory = {
            let mut closed = self.changes.lock();
            *closed = true;
            self.directory.swap(Arc::default())
        };
        for leaf in &directory.leaves {
            let mut leaf = leaf.write();
            ledger.resize(leaf.bytes(), 0, memory);
            *leaf = Leaf { retired: true, ..Leaf::default() };
            ledger.resize(LEAF_BYTES, 0, memory);
        }
        directory.lows.iter().for_each(|low| ledger.resize(low.key.heap_bytes(), 0, memory));
    }

    /// The bytes in use, added up from the leaves.
    pub(super) fn walk(&self) -> usize {
        let directory = self.directory.load();
        let leaves: usize = directory.leaves.iter().map(|leaf| LEAF_BYTES + leaf.read().bytes()).sum();
        leaves + directory.lows.iter().map(|low| low.key.heap_bytes()).sum::<usize>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mangrove_graph::Value;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::collections::BTreeSet;

    fn element(n: u64) -> ElementBits {
        ElementBits(n)
    }

    fn key(n: u64) -> IndexKey {
        IndexKey::One(Value::I64(n as i64))
    }

    fn content(entries: &OrderedEntries) -> Vec<(IndexKey, ElementBits)> {
        let mut all = Vec::new();
        entries.scan(
            |_| Ordering::Equal,
            |entry| {
                all.push((entry.key.clone(), entry.element));
                true
            },
        );
        all
    }

    #[test]
    fn random_changes_keep_order_content_and_accounts() {
        let (memory, ledger) = (Memory::new(u64::MAX), Ledger::default());
        let entries = OrderedEntries::new(&ledger, &memory);
        let (mut model, mut rng, mut distinct) = (BTreeSet::new(), StdRng::seed_from_u64(7), 0_i64);
        for round in 0..40_000_u64 {
            // Few keys with many elements each, so that keys run over several leaves; growing, then shrinking.
            let (k, v) = (rng.random_range(0..40_u64), rng.random_range(0..400_u64));
            if rng.random_bool(if round < 20_000 { 0.8 } else { 0.2 }) {
                let added = entries.add(key(k), element(v), None, &ledger, &memory);
                assert_eq!(model.insert((k, v)), added != EntryChange::Nothing);
                distinct += i64::from(added == EntryChange::Key);
            } else {
                let removed = entries.remove_if(&key(k), element(v), || false, &ledger, &memory);
                assert_eq!(model.remove(&(k, v)), removed.is_some());
                distinct -= i64::from(removed == Some(EntryChange::Key));
            }
        }
        let expected: Vec<_> = model.iter().map(|&(k, v)| (key(k), element(v))).collect();
        assert_eq!(content(&entries), expected);
        let keys = model.iter().map(|(k, _)| k).collect::<BTreeSet<_>>().len() as i64;
        assert!((distinct - keys).abs() <= 3, "{distinct} distinct keys were counted, there are {keys}");
        assert_eq!(ledger.bytes(), entries.walk());
        for (k, v) in &model {
            entries.remove_if(&key(*k), element(*v), || false, &ledger, &memory);
        }
        assert_eq!(entries.directory.load().leaves.len(), 1, "empty leaves were merged away");
        entries.close(&ledger, &memory);
        assert_eq!(ledger.bytes(), 0);
    }

    #[test]
    fn two_threads_that_add_to_one_key_do_not_miss_each_other() {
        let (memory, ledger) = (Memory::new(u64::MAX), Ledger::default());
        let entries = OrderedEntries::new(&ledger, &memory);
        for round in 0..2_000 {
            let add = |v| {
                let mut others = Vec::new();
                entries.add(key(round), element(v), Some(&mut others), &ledger, &memory);
                others
            };
            let (one, two) = std::thread::scope(|scope| {
                let one = scope.spawn(|| add(1));
                let two = add(2);
                (one.join().unwrap(), two)
            });
            assert!(one == [element(2)] || two == [element(1)], "{one:?} {two:?}");
        }
    }

    #[test]
    fn scans_beside_writers_meet_entries_that_exist_throughout() {
        let (memory, ledger) = (Memory::new(u64::MAX), Ledger::default());
        let entries = OrderedEntries::new(&ledger, &memory);
        for n in 0..3_000 {
            entries.add(key(n * 2), element(0), None, &ledger, &memory);
        }
        std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                for _ in 0..3 {
                    for n in 0..3_000 {
                        entries.add(key(n * 2 + 1), element(0), None, &ledger, &memory);
                    }
                    for n in 0..3_000 {
                        entries.remove_if(&key(n * 2 + 1), element(0), || false, &ledger, &memory);
                    }
                }
            });
            while !writer.is_finished() {
                let mut seen: Vec<_> = content(&entries).into_iter().map(|(key, _)| key).collect();
                seen.retain(|key| matches!(key, IndexKey::One(Value::I64(n)) if n % 2 == 0));
                seen.dedup();
                assert!(seen.len() >= 3_000);
            }
        });
        assert_eq!(content(&entries).len(), 3_000);
    }
}
