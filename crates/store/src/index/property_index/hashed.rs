//! The entries of a hash index: shards of tables from the hash of a key to the vertices filed under it.
//!
//! Keys themselves are not kept: two that share a hash share their vertices, and the re-check of candidates
//! tells them apart. So an entry is small, and whoever takes one out must ask by hash, too, whether the vertex
//! still belongs there (`write::index_entries` does).

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use mangrove_graph::{Result, VertexId};
use mangrove_locks::{RwLock, rank};

use super::{Added, Ledger};
use crate::memory::Memory;

const SHARDS: usize = 16;

type FastHash = foldhash::fast::RandomState;
type VertexSet = hashbrown::HashSet<VertexId, FastHash>;

/// The vertices under one hash. Boxed where they are many, so that the usual one costs little.
#[derive(Debug)]
enum Postings {
    One(VertexId),
    Many(Box<VertexSet>),
}

impl Postings {
    /// Whether the vertex is new here.
    fn add(&mut self, vertex: VertexId) -> bool {
        match self {
            Postings::One(one) if *one == vertex => false,
            Postings::One(one) => {
                *self = Postings::Many(Box::new([*one, vertex].into_iter().collect()));
                true
            }
            Postings::Many(many) => many.insert(vertex),
        }
    }

    fn has(&self, vertex: VertexId) -> bool {
        match self {
            Postings::One(one) => *one == vertex,
            Postings::Many(many) => many.contains(&vertex),
        }
    }

    /// Takes a vertex out; true when none is left.
    fn remove(&mut self, vertex: VertexId) -> bool {
        let Postings::Many(many) = self else { return true };
        many.remove(&vertex);
        // A set that has shrunk to one is kept no longer; others give memory back now and then.
        match (many.len(), many.iter().next()) {
            (1, Some(&one)) => *self = Postings::One(one),
            (len, _) if len < many.capacity() / 4 => many.shrink_to_fit(),
            _ => {}
        }
        false
    }

    fn each(&self, mut each: impl FnMut(VertexId)) {
        match self {
            Postings::One(one) => each(*one),
            Postings::Many(many) => many.iter().for_each(|v| each(*v)),
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Postings::One(_) => 0,
            Postings::Many(many) => size_of::<VertexSet>() + many.allocation_size(),
        }
    }
}

#[derive(Debug, Default)]
struct Shard {
    table: HashMap<u64, Postings, FastHash>,
    /// The index was dropped: nothing is added any more.
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
        // Not the bits that the table itself picks its buckets by.
        &self.shards[(hash >> 32) as usize % SHARDS]
    }

    /// Adds an entry; of two that add to one key, the second is told of the first.
    pub(super) fn add(
        &self,
        hash: u64,
        vertex: VertexId,
        others: Option<&mut Vec<VertexId>>,
        ledger: &Ledger,
        memory: &Memory,
    ) -> Added {
        let mut shard = self.shard(hash).write();
        if shard.closed {
            return Added::Known;
        }
        let table_before = shard.table.allocation_size();
        let added = match shard.table.entry(hash) {
            Entry::Occupied(mut entry) => {
                let postings = entry.get_mut();
                if let Some(others) = others {
                    postings.each(|v| others.push(v));
                }
                let before = postings.bytes();
                let is_new = postings.add(vertex);
                ledger.resize(before, postings.bytes(), memory);
                if is_new { Added::Entry } else { Added::Known }
            }
            Entry::Vacant(entry) => {
                entry.insert(Postings::One(vertex));
                Added::Key
            }
        };
        ledger.resize(table_before, shard.table.allocation_size(), memory);
        added
    }

    /// Takes an entry out unless it is still needed, which is asked under the lock that adding it takes.
    pub(super) fn remove_if(
        &self,
        hash: u64,
        vertex: VertexId,
        still_there: impl FnOnce() -> bool,
        ledger: &Ledger,
        memory: &Memory,
    ) -> Option<Added> {
        let mut shard = self.shard(hash).write();
        let postings = shard.table.get_mut(&hash)?;
        if !postings.has(vertex) || still_there() {
            return None;
        }
        let before = postings.bytes();
        if !postings.remove(vertex) {
            ledger.resize(before, postings.bytes(), memory);
            return Some(Added::Entry);
        }
        shard.table.remove(&hash);
        if shard.table.len() < shard.table.capacity() / 4 {
            let before = shard.table.allocation_size();
            shard.table.shrink_to_fit();
            ledger.resize(before, shard.table.allocation_size(), memory);
        }
        Some(Added::Key)
    }

    pub(super) fn candidates(&self, hash: u64, out: &mut Vec<VertexId>) {
        if let Some(postings) = self.shard(hash).read().table.get(&hash) {
            postings.each(|v| out.push(v));
        }
    }

    /// Calls `each` with the vertices of every key that has more than one.
    pub(super) fn each_group<E>(&self, mut each: impl FnMut(&[VertexId]) -> Result<(), E>) -> Result<(), E> {
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

    /// The bytes in use, added up.
    pub(super) fn walk(&self) -> usize {
        let of =
            |shard: &Shard| shard.table.allocation_size() + shard.table.values().map(Postings::bytes).sum::<usize>();
        self.shards.iter().map(|shard| of(&shard.read())).sum()
    }
}
