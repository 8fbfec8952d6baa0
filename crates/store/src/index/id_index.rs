//! The id index: from a chosen id to the elements that have or had it. Reads are batched and take no lock.
//!
//! The index has shards, and a shard is a hash table with open addressing and linear probing. A bucket is two words: a
//! *key word* and an internal id.
//!
//! | ids | key word | a candidate |
//! |---|---|---|
//! | integers, in tables of their own | the integer, mixed by a bijection so that it spreads | has the id |
//! | strings and UUIDs | a hash | is compared with the id on its page by the reader |
//!
//! Writers take turns on the mutex of their shard. A removed entry leaves a tombstone, which goes when the table is
//! built anew. A full table is replaced as a whole, and readers of the old one finish there.
//!
//! The index answers with *candidates*: all elements that have the id, and those that had it and are not collected yet.
//! The reader's snapshot decides, so an id can be chosen again after its element was deleted. External numbers are not
//! in the index; `store` decodes them.

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_graph::{Result, UserId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicU64, Mutex};
use mangrove_reclaim::{EpochCell, Guarded, Pin, epoch};

use crate::memory::{Limbo, Memory, RecordKind};

const SHARDS: usize = 64;
const SHARD_SHIFT: u32 = 58;
const FIRST_BUCKETS: usize = 8;
/// The internal id of a removed entry. No element has it.
const TOMBSTONE: u64 = u64::MAX;

/// A user id in the form that the index looks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IdKey {
    word: u64,
    is_int: bool,
}

/// The finalizer of MurmurHash3: a bijection on 64 bits whose output bits each depend on all input bits.
#[inline]
fn mix(mut word: u64) -> u64 {
    word ^= word >> 33;
    word = word.wrapping_mul(0xff51_afd7_ed55_8ccd);
    word ^= word >> 33;
    word = word.wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    word ^ (word >> 33)
}

impl IdKey {
    #[inline]
    pub(crate) fn of(id: &UserId) -> Self {
        match id {
            UserId::Int(n) => IdKey::of_int(n.number),
            other => {
                // The hash is kept in memory only, so it may change with the program.
                let hash = foldhash::fast::FixedState::with_seed(0x6d61_6e67).hash_one(other);
                IdKey { word: mix(hash), is_int: false }
            }
        }
    }

    #[inline]
    pub(crate) fn of_int(number: i64) -> Self {
        IdKey { word: mix(number as u64), is_int: true }
    }

    /// The id as 64 bits, which different ids may share.
    pub(crate) fn hash(self) -> u64 {
        self.word
    }
}

#[derive(Debug, Default)]
struct Bucket {
    key: AtomicU64,
    /// The internal id; 0 marks a free bucket. No element has id 0, since tablets count from 1.
    id: AtomicU64,
}

#[derive(Debug)]
struct IdTable {
    buckets: Box<[Bucket]>,
}

impl IdTable {
    fn new(len: usize) -> Self {
        IdTable { buckets: (0..len).map(|_| Bucket::default()).collect() }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        key as usize & (self.buckets.len() - 1)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.buckets)
    }

    /// Calls `each` with the ids under a key word until it returns true. Returns the position of the bucket that ended
    /// the search: the one with the last id, or a free one.
    #[inline]
    fn probe(&self, key: u64, mut each: impl FnMut(u64) -> bool) -> usize {
        let mask = self.buckets.len() - 1;
        let mut at = self.home(key);
        loop {
            // Acquire: its partner is the Release in `put`, which stores the key word first.
            let id = self.buckets[at].id.load(Ordering::Acquire);
            if id == 0 || (self.buckets[at].key.load(Ordering::Relaxed) == key && id != TOMBSTONE && each(id)) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The entries that are not removed: key word and internal id.
    fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let entry = |bucket: &Bucket| (bucket.key.load(Ordering::Relaxed), bucket.id.load(Ordering::Relaxed));
        self.buckets.iter().map(entry).filter(|&(_, id)| id != 0 && id != TOMBSTONE)
    }

    /// Adds an entry. The caller holds the shard's lock, and the table has a free bucket.
    fn put(&self, key: u64, id: u64) {
        let bucket = &self.buckets[self.probe(key, |_| false)];
        bucket.key.store(key, Ordering::Relaxed);
        bucket.id.store(id, Ordering::Release);
    }
}

#[derive(Debug, Default)]
struct ShardCounts {
    /// Buckets that are not free, including tombstones.
    used: usize,
    /// Entries that are not removed.
    live: usize,
}

#[derive(Debug)]
struct Shard {
    table: EpochCell<IdTable>,
    /// Held while the table changes.
    counts: Mutex<ShardCounts, rank::IdIndexShard>,
}

impl Shard {
    fn table(&self) -> Guarded<'_, IdTable> {
        self.table.load().expect("a shard always has a table")
    }

    #[inline]
    fn table_under<'p>(&'p self, pin: &'p Pin) -> &'p IdTable {
        self.table.get(pin).expect("a shard always has a table")
    }
}

/// The chosen ids of the elements of one kind.
#[derive(Debug)]
pub(crate) struct IdIndex {
    ints: Box<[Shard]>,
    others: Box<[Shard]>,
    /// True if an integer was ever chosen. Until then, external numbers need no check for a clash.
    has_ints: AtomicBool,
}

fn shards(memory: &Memory) -> Box<[Shard]> {
    let shard = |_| {
        let table = IdTable::new(FIRST_BUCKETS);
        memory.add(RecordKind::IdIndex, table.bytes());
        Shard { table: EpochCell::new(table), counts: Mutex::default() }
    };
    (0..SHARDS).map(shard).collect()
}

impl IdIndex {
    pub(crate) fn new(memory: &Memory) -> Self {
        IdIndex { ints: shards(memory), others: shards(memory), has_ints: AtomicBool::new(false) }
    }

    #[inline]
    fn shard(&self, key: IdKey) -> &Shard {
        let shards = if key.is_int { &self.ints } else { &self.others };
        &shards[(key.word >> SHARD_SHIFT) as usize]
    }

    /// Returns true if an integer id was ever inserted. The answer is in the order of all SeqCst fences.
    pub(crate) fn has_ints(&self) -> bool {
        self.has_ints.load(Ordering::SeqCst)
    }

    /// Starts loading the bucket that [`IdIndex::first_candidate`] reads first.
    #[inline]
    pub(crate) fn prefetch(&self, pin: &Pin, key: IdKey) {
        let table = self.shard(key).table_under(pin);
        mangrove_reclaim::prefetch::prefetch(&table.buckets[table.home(key.word)]);
    }

    /// One of the elements that may have the id, if there is any.
    #[inline]
    pub(crate) fn first_candidate(&self, pin: &Pin, key: IdKey) -> Option<u64> {
        let mut first = None;
        self.shard(key).table_under(pin).probe(key.word, |id| {
            first = Some(id);
            true
        });
        first
    }

    /// Calls `each` with the elements that may have the id, until it returns true.
    #[inline]
    pub(crate) fn candidates(&self, key: IdKey, each: impl FnMut(u64) -> bool) {
        self.shard(key).table().probe(key.word, each);
    }

    /// Adds an element under a key, unless `check` fails for one of the elements that are there already. If two threads
    /// insert under one key, the `check` of the second meets the element of the first.
    pub(crate) fn insert(
        &self,
        key: IdKey,
        id: u64,
        memory: &Memory,
        limbo: &Limbo,
        mut check: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(id != 0 && id != TOMBSTONE, "id {id:x} marks buckets without an entry");
        let shard = self.shard(key);
        let mut counts = shard.counts.lock();
        let mut verdict = Ok(());
        shard.table().probe(key.word, |other| {
            verdict = check(other);
            verdict.is_err()
        });
        verdict?;
        // A table is at most five eighths full, so an expected probe takes less than three buckets.
        if (counts.used + 1) * 8 > shard.table().buckets.len() * 5 {
            rebuild(shard, &mut counts, memory, limbo);
        }
        if key.is_int && !self.has_ints.load(Ordering::Relaxed) {
            self.has_ints.store(true, Ordering::SeqCst);
        }
        shard.table().put(key.word, id);
        counts.used += 1;
        counts.live += 1;
        Ok(())
    }

    /// Removes the entry of an element that no snapshot sees, if there is one.
    pub(crate) fn remove(&self, key: IdKey, id: u64) {
        let shard = self.shard(key);
        let mut counts = shard.counts.lock();
        let table = shard.table();
        let mut found = false;
        let at = table.probe(key.word, |other| {
            found = other == id;
            found
        });
        if found {
            // A reader that meets the tombstone probes on. The key word stays, so no reader takes the bucket for
            // another key's.
            table.buckets[at].id.store(TOMBSTONE, Ordering::Release);
            counts.live -= 1;
        }
    }

    /// The number of entries.
    #[cfg(all(test, not(feature = "model")))]
    pub(crate) fn len(&self) -> usize {
        self.ints.iter().chain(&self.others).map(|shard| shard.counts.lock().live).sum()
    }

    /// Removes all entries, after a bulk load that was given up.
    pub(crate) fn clear(&self, memory: &Memory, limbo: &Limbo) {
        for shard in self.ints.iter().chain(&self.others) {
            let mut counts = shard.counts.lock();
            replace(shard, IdTable::new(FIRST_BUCKETS), memory, limbo);
            *counts = ShardCounts::default();
        }
        self.has_ints.store(false, Ordering::SeqCst);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ints.iter().chain(&self.others).map(|shard| shard.table().bytes()).sum()
    }
}

/// Replaces a full table by one without tombstones. The new one is twice as large, unless the old one was full of
/// tombstones.
fn rebuild(shard: &Shard, counts: &mut ShardCounts, memory: &Memory, limbo: &Limbo) {
    let pin = epoch::pin();
    let old = shard.table_under(&pin);
    let is_crowded = counts.live * 4 > old.buckets.len();
    let new = IdTable::new(if is_crowded { old.buckets.len() * 2 } else { old.buckets.len() });
    old.entries().for_each(|(key, id)| new.put(key, id));
    counts.used = counts.live;
    replace(shard, new, memory, limbo);
}

/// Replaces a table. Readers may use the old one until its grace period is over, but it counts no more.
fn replace(shard: &Shard, new: IdTable, memory: &Memory, limbo: &Limbo) {
    memory.remove(RecordKind::IdIndex, shard.table().bytes());
    memory.add(RecordKind::IdIndex, new.bytes());
    limbo.retire(shard.table.swap(Some(new)));
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use mangrove_graph::Error;

    fn found(index: &IdIndex, id: &UserId) -> Vec<u64> {
        let mut ids = Vec::new();
        index.candidates(IdKey::of(id), |id| {
            ids.push(id);
            false
        });
        ids
    }

    #[test]
    fn every_inserted_id_is_found_and_the_memory_adds_up() {
        let memory = Memory::new(u64::MAX);
        let (index, limbo) = (IdIndex::new(&memory), Limbo::default());
        for n in 1..20_000_i64 {
            index.insert(IdKey::of(&UserId::int(n)), n as u64, &memory, &limbo, |_| Ok(())).unwrap();
            let name = UserId::String(format!("name{n}").into());
            index.insert(IdKey::of(&name), n as u64, &memory, &limbo, |_| Ok(())).unwrap();
        }
        for n in 1..20_000_i64 {
            assert_eq!(found(&index, &UserId::int(n)), [n as u64]);
            assert_eq!(found(&index, &UserId::String(format!("name{n}").into())), [n as u64]);
        }
        assert!(found(&index, &UserId::int(20_000)).is_empty());
        assert_eq!(index.bytes() as u64, memory.report().total_bytes());
    }

    #[test]
    fn a_refused_insert_leaves_nothing_and_an_accepted_one_stands_beside() {
        let memory = Memory::new(u64::MAX);
        let (index, limbo) = (IdIndex::new(&memory), Limbo::default());
        let id = UserId::from("a");
        index.insert(IdKey::of(&id), 1, &memory, &limbo, |_| Ok(())).unwrap();
        assert!(index.insert(IdKey::of(&id), 2, &memory, &limbo, |_| Err(Error::conflict("no"))).is_err());
        assert_eq!(found(&index, &id), [1]);
        index.insert(IdKey::of(&id), 3, &memory, &limbo, |_| Ok(())).unwrap();
        assert_eq!(found(&index, &id), [1, 3]);
    }

    #[test]
    fn removed_ids_are_gone_and_tables_stay_as_small_as_what_they_hold() {
        let memory = Memory::new(u64::MAX);
        let (index, limbo) = (IdIndex::new(&memory), Limbo::default());
        let fill = |from: i64| {
            for n in from..from + 1_000 {
                index.insert(IdKey::of_int(n), n as u64, &memory, &limbo, |_| Ok(())).unwrap();
            }
        };
        fill(1);
        let bytes = index.bytes();
        for round in 1..20 {
            let from = (round - 1) * 1_000 + 1;
            (from..from + 1_000).for_each(|n| index.remove(IdKey::of_int(n), n as u64));
            assert_eq!((index.len(), found(&index, &UserId::int(from))), (0, vec![]));
            fill(round * 1_000 + 1);
            assert_eq!((index.len(), found(&index, &UserId::int(from + 1_000))), (1_000, vec![from as u64 + 1_000]));
        }
        assert!(index.bytes() <= 3 * bytes, "{} bytes after {bytes}", index.bytes());
        assert_eq!(index.bytes() as u64, memory.report().total_bytes());
        crate::memory::release_boxes(&limbo);
    }
}
