//! From a user's id to the elements that have had it: open addressing with lock-free, batched reads.
//!
//! A slot is two words: a key word and an internal id, linear probing. A removed entry leaves a tombstone, which
//! goes when its table is built anew. Integers
//! have tables of their own, whose key word is the integer itself, mixed so that it spreads (a bijection:
//! equal words are equal integers, nothing needs verifying). The key word of strings and UUIDs is a hash;
//! whoever asks verifies the candidate against its page. A table is replaced as a whole when it grows;
//! inserts take turns on their shard's mutex, readers take no lock.
//!
//! The index answers with *candidates*: every element that ever had the id. Visibility decides, so an id can
//! be used again after its element was deleted. Automatic ids are not in here (`store` decodes them).

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_graph::{Result, UserId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicU64, Mutex};
use mangrove_reclaim::{EpochCell, Guarded, Pin, epoch};

use crate::memory::{Limbo, Memory, RecordKind};

const SHARDS: usize = 64;
const SHARD_SHIFT: u32 = 58;
const FIRST_SLOTS: usize = 8;
/// The id of a removed entry: no element has it.
const TOMBSTONE: u64 = u64::MAX;

/// A user id as the index looks for it.
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
                // Not kept anywhere but in memory, so the hash need not be the same tomorrow.
                let hash = foldhash::fast::FixedState::with_seed(0x6d61_6e67).hash_one(other);
                IdKey { word: mix(hash), is_int: false }
            }
        }
    }

    #[inline]
    pub(crate) fn of_int(number: i64) -> Self {
        IdKey { word: mix(number as u64), is_int: true }
    }

    /// The id as 64 bits; different ids may share them.
    pub(crate) fn hash(self) -> u64 {
        self.word
    }
}

#[derive(Debug, Default)]
struct Slot {
    key: AtomicU64,
    /// The internal id; 0 (no element has it: tablets count from 1) marks a free slot.
    id: AtomicU64,
}

#[derive(Debug)]
struct Table {
    slots: Box<[Slot]>,
}

impl Table {
    fn new(len: usize) -> Self {
        Table { slots: (0..len).map(|_| Slot::default()).collect() }
    }

    #[inline]
    fn home(&self, key: u64) -> usize {
        key as usize & (self.slots.len() - 1)
    }

    fn bytes(&self) -> usize {
        size_of_val(&*self.slots)
    }

    /// The ids under a key word until `each` returns true; the place of the free slot that ended the search.
    #[inline]
    fn probe(&self, key: u64, mut each: impl FnMut(u64) -> bool) -> usize {
        let mask = self.slots.len() - 1;
        let mut at = self.home(key);
        loop {
            // Acquire: its partner is the Release in `put`; the key word is written before.
            let id = self.slots[at].id.load(Ordering::Acquire);
            if id == 0 || (self.slots[at].key.load(Ordering::Relaxed) == key && id != TOMBSTONE && each(id)) {
                return at;
            }
            at = (at + 1) & mask;
        }
    }

    /// The entries that are not removed.
    fn entries(&self) -> impl Iterator<Item = (u64, u64)> {
        let entry = |slot: &Slot| (slot.key.load(Ordering::Relaxed), slot.id.load(Ordering::Relaxed));
        self.slots.iter().map(entry).filter(|&(_, id)| id != 0 && id != TOMBSTONE)
    }

    fn put(&self, key: u64, id: u64) {
        let slot = &self.slots[self.probe(key, |_| false)];
        slot.key.store(key, Ordering::Relaxed);
        slot.id.store(id, Ordering::Release);
    }
}

#[derive(Debug, Default)]
struct Counts {
    /// Slots that are not free, tombstones included.
    used: usize,
    /// Entries.
    live: usize,
}

#[derive(Debug)]
struct Shard {
    table: EpochCell<Table>,
    /// Held while the table changes.
    counts: Mutex<Counts, rank::IdIndexShard>,
}

impl Shard {
    fn table(&self) -> Guarded<'_, Table> {
        self.table.load().expect("a shard always has a table")
    }

    #[inline]
    fn table_under<'p>(&'p self, pin: &'p Pin) -> &'p Table {
        self.table.get(pin).expect("a shard always has a table")
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct IdIndex {
    ints: Box<[Shard]>,
    others: Box<[Shard]>,
    /// Whether an integer id was ever chosen: until then automatic ids need no check for a clash.
    has_ints: AtomicBool,
}

fn shards(memory: &Memory) -> Box<[Shard]> {
    let shard = |_| {
        let table = Table::new(FIRST_SLOTS);
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

    /// Whether an integer id was ever inserted, in the order of all SeqCst fences.
    pub(crate) fn has_ints(&self) -> bool {
        self.has_ints.load(Ordering::SeqCst)
    }

    /// Starts loading what [`IdIndex::first_candidate`] reads first.
    #[inline]
    pub(crate) fn prefetch(&self, pin: &Pin, key: IdKey) {
        let table = self.shard(key).table_under(pin);
        mangrove_reclaim::prefetch::prefetch(&table.slots[table.home(key.word)]);
    }

    /// One of the elements that may have the id.
    #[inline]
    pub(crate) fn first_candidate(&self, pin: &Pin, key: IdKey) -> Option<u64> {
        let mut first = None;
        self.shard(key).table_under(pin).probe(key.word, |id| {
            first = Some(id);
            true
        });
        first
    }

    /// The elements that may have the id, until `each` returns true.
    #[inline]
    pub(crate) fn candidates(&self, key: IdKey, each: impl FnMut(u64) -> bool) {
        self.shard(key).table().probe(key.word, each);
    }

    /// Adds an element, unless `check` refuses one of those already under the key. Of two inserts of one
    /// key, the second one's `check` meets the first one's element.
    pub(crate) fn insert(
        &self,
        key: IdKey,
        id: u64,
        memory: &Memory,
        limbo: &Limbo,
        mut check: impl FnMut(u64) -> Result<()>,
    ) -> Result<()> {
        debug_assert!(id != 0 && id != TOMBSTONE, "id {id:x} marks slots without an entry");
        let shard = self.shard(key);
        let mut counts = shard.counts.lock();
        let mut verdict = Ok(());
        shard.table().probe(key.word, |other| {
            verdict = check(other);
            verdict.is_err()
        });
        verdict?;
        // At most five eighths full: the expected probe stays under three slots.
        if (counts.used + 1) * 8 > shard.table().slots.len() * 5 {
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

    /// Removes an element that nobody sees any more.
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
            // Readers that see the tombstone go on; the key word stays, so none of them mistakes the slot.
            table.slots[at].id.store(TOMBSTONE, Ordering::Release);
            counts.live -= 1;
        }
    }

    /// How many entries there are.
    #[cfg(all(test, not(feature = "model")))]
    pub(crate) fn len(&self) -> usize {
        self.ints.iter().chain(&self.others).map(|shard| shard.counts.lock().live).sum()
    }

    /// Forgets everything: after a bulk load that was given up.
    pub(crate) fn clear(&self, memory: &Memory, limbo: &Limbo) {
        for shard in self.ints.iter().chain(&self.others) {
            let mut counts = shard.counts.lock();
            replace(shard, Table::new(FIRST_SLOTS), memory, limbo);
            *counts = Counts::default();
        }
        self.has_ints.store(false, Ordering::SeqCst);
    }

    pub(crate) fn bytes(&self) -> usize {
        self.ints.iter().chain(&self.others).map(|shard| shard.table().bytes()).sum()
    }
}

/// Replaces a full table by one without tombstones, twice as large unless those made it full.
fn rebuild(shard: &Shard, counts: &mut Counts, memory: &Memory, limbo: &Limbo) {
    let pin = epoch::pin();
    let old = shard.table_under(&pin);
    let is_crowded = counts.live * 4 > old.slots.len();
    let new = Table::new(if is_crowded { old.slots.len() * 2 } else { old.slots.len() });
    old.entries().for_each(|(key, id)| new.put(key, id));
    counts.used = counts.live;
    replace(shard, new, memory, limbo);
}

/// Readers may hold the old table a moment longer; it is counted out here.
fn replace(shard: &Shard, new: Table, memory: &Memory, limbo: &Limbo) {
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
