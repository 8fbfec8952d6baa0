//! A hash table that grows without a long pause.
//!
//! A table that doubles moves all its entries in one call. With ten million entries that takes tenths of a second, in
//! which the query cannot be ended. So a large table consists of [`PARTS`] parts by bits of the hash, each of which
//! doubles alone.

use std::hash::{BuildHasher, Hash};

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

/// The parts of a large table.
const PARTS: usize = 256;

/// A table of more entries is large.
const WHOLE_MAX: usize = 1 << 15;

/// A map; with `()` as value, a set.
#[derive(Debug)]
pub(crate) struct PartitionedTable<K, V = ()> {
    hasher: RandomState,
    /// All entries of a table that is not large.
    whole: HashTable<(K, V)>,
    /// [`PARTS`] of a large one, otherwise none.
    parts: Vec<HashTable<(K, V)>>,
    len: usize,
}

impl<K, V> Default for PartitionedTable<K, V> {
    fn default() -> Self {
        PartitionedTable { hasher: RandomState::default(), whole: HashTable::new(), parts: Vec::new(), len: 0 }
    }
}

/// Returns the part of a hash. A part finds its entries by the lowest and the highest bits of the hash, so those must
/// vary within it: the parts use bits between.
fn part_of(hash: u64) -> usize {
    (hash >> 48) as usize % PARTS
}

impl<K: Hash + Eq, V> PartitionedTable<K, V> {
    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns the number of entries that fit without growing.
    pub fn capacity(&self) -> usize {
        self.whole.capacity() + self.parts.iter().map(HashTable::capacity).sum::<usize>()
    }

    /// Returns the value of a key, inserting it if the key is new, and true if it is new.
    pub fn get_or_insert_with(&mut self, key: K, value: impl FnOnce() -> V) -> (&mut V, bool) {
        let hash = self.hasher.hash_one(&key);
        match self.entry(hash, |known| *known == key) {
            Entry::Occupied(entry) => (&mut entry.into_mut().1, false),
            Entry::Vacant(entry) => (&mut entry.insert((key, value())).into_mut().1, true),
        }
    }

    /// Returns the entry of a key, given by its hash and a test. A vacant entry counts as filled.
    fn entry(&mut self, hash: u64, is_key: impl Fn(&K) -> bool) -> Entry<'_, (K, V)> {
        if self.len == WHOLE_MAX && self.parts.is_empty() {
            self.split();
        }
        let part = if self.parts.is_empty() { &mut self.whole } else { &mut self.parts[part_of(hash)] };
        let entry = part.entry(hash, |(known, _)| is_key(known), |(known, _)| self.hasher.hash_one(known));
        self.len += usize::from(matches!(entry, Entry::Vacant(_)));
        entry
    }

    /// Returns the value of a key.
    pub fn get(&self, key: &K) -> Option<&V> {
        let hash = self.hasher.hash_one(key);
        let part = if self.parts.is_empty() { &self.whole } else { &self.parts[part_of(hash)] };
        part.find(hash, |(known, _)| known == key).map(|(_, value)| value)
    }

    /// Returns the keys, in any order.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        std::iter::once(&self.whole).chain(&self.parts).flatten().map(|(key, _)| key)
    }

    /// Keeps the entries for which `stays` returns true.
    pub fn retain(&mut self, mut stays: impl FnMut(&K, &mut V) -> bool) {
        let mut len = 0;
        for part in std::iter::once(&mut self.whole).chain(&mut self.parts) {
            part.retain(|(key, value)| stays(key, value));
            len += part.len();
        }
        self.len = len;
    }

    /// Removes all entries. A large table frees its memory.
    pub fn clear(&mut self) {
        self.parts = Vec::new();
        self.whole.clear();
        self.len = 0;
    }

    /// Takes the table apart: calls `take` with each entry.
    pub fn for_each(self, mut take: impl FnMut(K, V)) {
        let parts = std::iter::once(self.whole).chain(self.parts);
        parts.flatten().for_each(|(key, value)| take(key, value));
    }

    fn split(&mut self) {
        let whole = std::mem::take(&mut self.whole);
        self.parts.resize_with(PARTS, HashTable::new);
        for (key, value) in whole {
            let hash = self.hasher.hash_one(&key);
            self.parts[part_of(hash)].insert_unique(hash, (key, value), |(known, _)| self.hasher.hash_one(known));
        }
    }
}

impl<K: Hash + Eq> PartitionedTable<K> {
    /// An empty set whose keys are hashed by `hasher`, so that several tables can do with one hash of a key.
    pub fn hashed_by(hasher: RandomState) -> Self {
        PartitionedTable { hasher, ..PartitionedTable::default() }
    }

    /// Returns the hash of a key, or of what is hashed as one.
    pub fn hash_of(&self, key: &impl Hash) -> u64 {
        self.hasher.hash_one(key)
    }

    /// As [`PartitionedTable::insert`], for a key given by the hash that the table's hasher has made of it, and by a test.
    /// The key is made only if it is new.
    pub fn insert_hashed(&mut self, hash: u64, is_key: impl Fn(&K) -> bool, key: impl FnOnce() -> K) -> bool {
        match self.entry(hash, is_key) {
            Entry::Occupied(_) => false,
            Entry::Vacant(entry) => {
                entry.insert((key(), ()));
                true
            }
        }
    }

    /// Adds a key. Returns true if it is new.
    pub fn insert(&mut self, key: K) -> bool {
        self.get_or_insert_with(key, || ()).1
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_table_is_a_map(keys in prop::collection::vec(0..50_u64, 0..200), many in any::<bool>()) {
            let (mut table, mut expected) = (PartitionedTable::default(), HashMap::new());
            if many {
                for key in 1_000..1_000 + 2 * WHOLE_MAX as u64 {
                    table.get_or_insert_with(key, || key);
                    expected.insert(key, key);
                }
            }
            for (at, key) in keys.into_iter().enumerate() {
                let is_new = !expected.contains_key(&key);
                let value = *expected.entry(key).or_insert(at as u64);
                let (found, was_new) = table.get_or_insert_with(key, || at as u64);
                prop_assert_eq!((*found, was_new), (value, is_new));
            }
            prop_assert_eq!(table.len(), expected.len());
            prop_assert!((0..60).all(|key| table.get(&key) == expected.get(&key)));
            table.retain(|key, value| key % 3 > 0 || *value > 100);
            expected.retain(|key, value| key % 3 > 0 || *value > 100);
            prop_assert_eq!(table.len(), expected.len());
            prop_assert!(table.keys().all(|key| expected.contains_key(key)));
            table.clear();
            prop_assert!(table.len() == 0 && table.get(&1).is_none() && table.capacity() <= 2 * WHOLE_MAX);
        }
    }

    #[test]
    fn a_large_table_grows_part_by_part() {
        let mut table = PartitionedTable::default();
        let mut capacity = 0;
        for key in 0..1_000_000_u64 {
            table.insert(key);
            if key > WHOLE_MAX as u64 {
                // At a million entries a part has four thousand.
                let more = table.capacity() - capacity;
                assert!(more <= 16_384, "room for {more} more entries was made in one call");
            }
            capacity = table.capacity();
        }
        assert_eq!(table.len(), 1_000_000);
    }
}
