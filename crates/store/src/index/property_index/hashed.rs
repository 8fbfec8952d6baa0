//! The entries of a hash index: shards of tables from the hash of a key to the elements under it.
//!
//! The keys themselves are not kept. Two keys with the same hash share their elements, and readers tell them apart when
//! they check candidates. So entries are small. A collector that removes an entry must therefore ask by hash whether a
//! version of the element still needs it (`write::index_entries` does).

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use mangrove_graph::Result;
use mangrove_locks::{RwLock, rank};

use super::{ElementBits, EntryChange, Ledger};
use crate::memory::Memory;

const SHARDS: usize = 16;

type FastHash = foldhash::fast::RandomState;
type ElementSet = hashbrown::HashSet<ElementBits, FastHash>;

/// The elements under one hash. Several are in a box, so that the usual single one takes little memory.
#[derive(Debug)]
enum Postings {
    One(ElementBits),
    Many(Box<ElementSet>),
}

impl Postings {
    /// Adds an element. Returns true if it is new.
    fn add(&mut self, element: ElementBits) -> bool {
        match self {
            Postings::One(one) if *one == element => false,
            Postings::One(one) => {
                *self = Postings::Many(Box::new([*one, element].into_iter().collect()));
                true
            }
            Postings::Many(many) => many.insert(element),
        }
    }

    fn has(&self, element: ElementBits) -> bool {
        match self {
            Postings::One(one) => *one == element,
            Postings::Many(many) => many.contains(&element),
        }
    }

    /// Removes an element. Returns true if none is left.
    fn remove(&mut self, element: ElementBits) -> bool {
        let Postings::Many(many) = self else { return true };
        many.remove(&element);
        // A set of one becomes `One`. Others give memory back when they are a quarter full.
        match (many.len(), many.iter().next()) {
            (1, Some(&one)) => *self = Postings::One(one),
            (len, _) if len < many.capacity() / 4 => many.shrink_to_fit(),
            _ => {}
        }
        false
    }

    fn each(&self, mut each: impl FnMut(ElementBits)) {
        match self {
            Postings::One(one) => each(*one),
            Postings::Many(many) => many.iter().for_each(|v| each(*v)),
        }
    }

    fn len(&self) -> usize {
        match self {
            Postings::One(_) => 1,
            Postings::Many(many) => many.len(),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Postings::One(_) => 0,
            Postings::Many(many) => size_of::<ElementSet>() + many.allocation_size(),
        }
    }
}

#[derive(Debug, Default)]
struct Shard {
    table: HashMap<u64, Postings, FastHash>,
    /// True after the index was dropped. Then nothing is added.
    closed: bool,
}

#[derive(Debug)]
pub(super) struct HashEntries {
    shards: Box<[RwLock<Shard, rank::HashIndexShard>]>,
}

impl HashEntries {
    pub(super) fn new() -> Self {
        HashEntries { shards: (0..SHARDS).map(|_| RwLock::default()).collect() }
    }

    fn shard(&self, hash: u64) -> &RwLock<Shard, rank::HashIndexShard> {
        // Other bits than those by which the table finds its buckets.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Adds an entry, and appends to `others` the other elements with the hash. If two threads add to one key, the
    /// second meets the first.
    pub(super) fn add(
        &self,
        hash: u64,
        element: ElementBits,
        others: Option<&mut Vec<ElementBits>>,
        ledger: &Ledger,
        memory: &Memory,
    ) -> EntryChange {
        let mut shard = self.shard(hash).write();
        if shard.closed {
            return EntryChange::Nothing;
        }
        let table_before = shard.table.allocation_size();
        let added = match shard.table.entry(hash) {
            Entry::Occupied(mut entry) => {
                let postings = entry.get_mut();
                if let Some(others) = others {
                    postings.each(|v| others.push(v));
                }
                let before = postings.bytes();
                let is_new = postings.add(element);
                ledger.resize(before, postings.bytes(), memory);
                if is_new { EntryChange::Entry } else { EntryChange::Nothing }
            }
            Entry::Vacant(entry) => {
                entry.insert(Postings::One(element));
                EntryChange::Key
            }
        };
        ledger.resize(table_before, shard.table.allocation_size(), memory);
        added
    }

    /// Removes an entry, unless `is_needed` returns true under the lock that adding it takes.
    pub(super) fn remove_if(
        &self,
        hash: u64,
        element: ElementBits,
        is_needed: impl FnOnce() -> bool,
        ledger: &Ledger,
        memory: &Memory,
    ) -> Option<EntryChange> {
        let mut shard = self.shard(hash).write();
        let postings = shard.table.get_mut(&hash)?;
        if !postings.has(element) || is_needed() {
            return None;
        }
        let before = postings.bytes();
        if !postings.remove(element) {
            ledger.resize(before, postings.bytes(), memory);
            return Some(EntryChange::Entry);
        }
        shard.table.remove(&hash);
        if shard.table.len() < shard.table.capacity() / 4 {
            let before = shard.table.allocation_size();
            shard.table.shrink_to_fit();
            ledger.resize(before, shard.table.allocation_size(), memory);
        }
        Some(EntryChange::Key)
    }

    /// Appends the elements under a hash, unless the list would then have more than `most`. Returns false if it would.
    pub(super) fn candidates(&self, hash: u64, most: usize, out: &mut Vec<ElementBits>) -> bool {
        let shard = self.shard(hash).read();
        let Some(postings) = shard.table.get(&hash) else { return true };
        let is_room = postings.len() <= most.saturating_sub(out.len());
        if is_room {
            postings.each(|v| out.push(v));
        }
        is_room
    }

    /// How many elements there are under a hash.
    pub(super) fn count(&self, hash: u64) -> usize {
        self.shard(hash).read().table.get(&hash).map_or(0, Postings::len)
    }

    /// Calls `each` with the elements of every hash that has more than one, until it fails.
    pub(super) fn each_group<E>(&self, mut each: impl FnMut(&[ElementBits]) -> Result<(), E>) -> Result<(), E> {
        self.shards.iter().try_for_each(|shard| {
            shard.read().table.values().try_for_each(|postings| match postings {
                Postings::One(_) => Ok(()),
                Postings::Many(many) => each(&many.iter().copied().collect::<Vec<_>>()),
            })
        })
    }

    /// Empties the index for good.
    pub(super) fn close(&self, ledger: &Ledger, memory: &Memory) {
        for shard in &self.shards {
            let mut shard = shard.write();
            shard.closed = true;
            let table = std::mem::take(&mut shard.table);
            table.values().for_each(|postings| ledger.resize(postings.bytes(), 0, memory));
            ledger.resize(table.allocation_size(), 0, memory);
        }
    }

    /// The bytes in use, added up from the tables.
    pub(super) fn walk(&self) -> usize {
        let of =
            |shard: &Shard| shard.table.allocation_size() + shard.table.values().map(Postings::bytes).sum::<usize>();
        self.shards.iter().map(|shard| of(&shard.read())).sum()
    }
}
