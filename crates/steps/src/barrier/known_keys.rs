//! The keys that a thread knows to be in a set that it shares with other threads ([`shared_seen`](super::shared_seen)).
//!
//! Most rows of a `dedup()` have a key that is in the set. A thread that remembers keys finds such a row without a lock.
//! Nothing leaves the set as long as it exists, so what a thread remembers stays true.
//!
//! A thread remembers [`KEYS_MAX`] keys of one set, the first that it meets. It stops if fewer than half of its rows
//! have a key that it remembers. Long values are not remembered, so the keys take half a megabyte at most, which the query
//! is not charged for.

use hashbrown::HashTable;
use hashbrown::hash_table::Entry;

use crate::barrier::seen_key::{RowKey, SeenKey};

/// The keys that a thread remembers.
const KEYS_MAX: usize = 1 << 12;

/// After this many looks, a thread decides whether it goes on. They are twice as many as the keys, so that it has met
/// each of [`KEYS_MAX`] equally frequent keys about twice.
const TRIAL_LOOKS: u32 = 2 * KEYS_MAX as u32;

/// See the header of this file. After a set, it may serve another one.
#[derive(Default)]
pub(super) struct KnownKeys {
    /// The number of the set.
    set: u64,
    /// The keys, each with its hash and instance.
    keys: HashTable<(u64, u32, SeenKey)>,
    /// The looks of this trial, and those that found a key.
    looks: u32,
    hits: u32,
    has_given_up: bool,
}

impl KnownKeys {
    /// Begins a batch for a set with this number. Forgets the keys of any other set.
    pub fn begin(&mut self, set: u64) {
        if self.set != set {
            *self = KnownKeys { set, ..KnownKeys::default() };
        }
    }

    /// Returns true if the set has the key of an instance, or if an earlier row of this batch has it. Otherwise, the caller
    /// adds the key to the set before the batch ends. `hash` is the hash of instance and key.
    pub fn knows(&mut self, hash: u64, tag: u32, key: RowKey<'_>) -> bool {
        if self.looks == TRIAL_LOOKS {
            self.end_trial();
        }
        if self.has_given_up {
            return false;
        }
        self.looks += 1;
        if !key.is_short() {
            return false;
        }
        let is_key = |(known_hash, of, known): &(u64, u32, SeenKey)| *known_hash == hash && *of == tag && key.is(known);
        let is_known = if self.keys.len() >= KEYS_MAX {
            self.keys.find(hash, is_key).is_some()
        } else {
            match self.keys.entry(hash, is_key, |(hash, ..)| *hash) {
                Entry::Occupied(_) => true,
                Entry::Vacant(entry) => {
                    entry.insert((hash, tag, key.to_seen()));
                    false
                }
            }
        };
        self.hits += u32::from(is_known);
        is_known
    }

    #[cold]
    fn end_trial(&mut self) {
        self.has_given_up = self.hits < TRIAL_LOOKS / 2;
        if self.has_given_up {
            self.keys = HashTable::new();
        }
        (self.looks, self.hits) = (0, 0);
    }
}

#[cfg(test)]
mod tests {
    use std::hash::BuildHasher;

    use foldhash::fast::RandomState;

    use super::*;

    /// Looks for words, and returns how many are known.
    fn look(known: &mut KnownKeys, hasher: &RandomState, words: impl Iterator<Item = u64>) -> usize {
        words.filter(|word| known.knows(hasher.hash_one(word), 0, RowKey::Word((0, *word)))).count()
    }

    #[test]
    fn a_thread_remembers_some_keys_and_gives_up_if_it_meets_others() {
        let (mut known, hasher) = (KnownKeys::default(), RandomState::default());
        known.begin(1);
        let (some, trial) = (KEYS_MAX as u64, u64::from(TRIAL_LOOKS));
        assert_eq!(look(&mut known, &hasher, 0..some), 0);
        assert_eq!(look(&mut known, &hasher, 0..some), KEYS_MAX, "half of the looks of the first trial");
        // A table that is full remembers nothing new.
        assert_eq!(look(&mut known, &hasher, (0..trial).map(|n| n % 2 * (some + n))), KEYS_MAX, "half of the second");
        assert_eq!(look(&mut known, &hasher, some..some + trial), 0);
        assert_eq!(look(&mut known, &hasher, 0..some), 0, "it has given up");
        assert!(known.keys.is_empty() && known.keys.capacity() == 0);
        // It tries again with another set.
        known.begin(2);
        assert_eq!(look(&mut known, &hasher, [7, 7, 8, 7].into_iter()), 2);
        known.begin(3);
        assert_eq!(look(&mut known, &hasher, [7, 8].into_iter()), 0, "these are keys of another set");
    }
}
