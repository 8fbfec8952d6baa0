//! The set of rows that a `dedup()` has let through, if several threads work on the query.
//!
//! Vertices and edges of instance 0 are bits, which threads set without a lock ([`shared_bits`](super::shared_bits)). For
//! all else, the set consists of shards, each under a lock. A thread sorts the rows of a batch by shard and takes the lock
//! of each shard once. It holds one lock at a time. Vertices and edges of other instances are bits of pages there
//! (`element_set`), other values are entries of hash tables.

use std::hash::BuildHasher;

use foldhash::fast::RandomState;
use mangrove_graph::Value;
use parking_lot::Mutex;

use crate::barrier::element_set::{ElementPages, ElementSet, page_hash};
use crate::barrier::seen::{ENTRY_BYTES, SeenKey, SeenParts, SeenRows, computed_key, held_bytes};
use crate::barrier::shared_bits::{KnownSegments, SharedBits};
use crate::limits::sizes::Sizes;
use crate::limits::table::PartitionedTable;
use crate::rows::{ObjectColumn, Rows, Tags};

/// The shards of a set. There are more than threads, so that two of them seldom want the same one.
const SHARDS: usize = 64;

/// A part of the set.
#[derive(Default)]
struct Shard {
    vertices: ElementPages,
    edges: ElementPages,
    values: PartitionedTable<(u32, SeenKey)>,
    /// The bytes that the values among them point to.
    held: u64,
}

impl Shard {
    fn bytes(&self) -> u64 {
        self.vertices.bytes() + self.edges.bytes() + self.values.len() as u64 * ENTRY_BYTES + self.held
    }

    fn insert(&mut self, tag: u32, key: SeenKey) -> bool {
        match key {
            SeenKey::Vertex(bits) => self.vertices.insert(tag, bits),
            SeenKey::Edge(bits) => self.edges.insert(tag, bits),
            other => self.values.insert((tag, other)),
        }
    }
}

/// Returns the shard of an element. All elements of a page are in one.
fn shard_of_element(tag: u32, bits: u64) -> usize {
    shard_of_hash(page_hash(tag, bits))
}

fn shard_of_hash(page: u64) -> usize {
    (page >> (u64::BITS - SHARDS.ilog2())) as usize
}

/// See the header of this file.
pub(crate) struct SharedSeen {
    hasher: RandomState,
    /// The vertices and the edges of instance 0.
    vertices: SharedBits,
    edges: SharedBits,
    /// All else.
    shards: Box<[Mutex<Shard>]>,
    /// The bytes that the query was charged for the rows that one thread had seen before.
    moved: u64,
}

/// What a thread uses again for each batch.
#[derive(Default)]
pub(crate) struct Scratch {
    rows: SortedRows,
    vertices: KnownSegments,
    edges: KnownSegments,
}

impl Scratch {
    /// Drops what it knows of sets.
    pub fn forget_sets(&mut self) {
        (self.vertices, self.edges) = Default::default();
    }
}

/// The rows of a batch by shard.
#[derive(Default)]
struct SortedRows {
    /// The shard of each row.
    shards: Vec<u8>,
    /// The rows in the order of their shards, and where the rows of each shard end.
    by_shard: Vec<u32>,
    ends: Vec<u32>,
    /// For each row, true if it is the first of its kind.
    is_new: Vec<bool>,
}

impl SortedRows {
    fn begin(&mut self, rows: usize) {
        self.is_new.clear();
        self.is_new.resize(rows, false);
        self.shards.clear();
    }
}

impl SharedSeen {
    /// A set that contains what one thread has seen. The query stays charged for it as before.
    pub fn new(seen: SeenRows) -> Self {
        let set = SharedSeen {
            hasher: RandomState::default(),
            vertices: SharedBits::default(),
            edges: SharedBits::default(),
            shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
            moved: seen.bytes(),
        };
        let SeenParts { vertices, edges, values } = seen.into_parts();
        set.add_pages(vertices, &set.vertices, |shard| &mut shard.vertices);
        set.add_pages(edges, &set.edges, |shard| &mut shard.edges);
        values.for_each(|tag, key| {
            set.shards[set.shard_of(tag, &key)].lock().insert(tag, key);
        });
        // Only what comes later is charged anew.
        let moved = set.own_bytes();
        SharedSeen { moved: set.moved.wrapping_sub(moved), ..set }
    }

    /// As [`SharedSeen::new`], for vertices.
    pub fn of_vertices(vertices: ElementSet) -> Self {
        let charged = vertices.bytes();
        let set = SharedSeen::new(SeenRows::default());
        set.add_pages(vertices, &set.vertices, |shard| &mut shard.vertices);
        let moved = set.own_bytes();
        SharedSeen { moved: charged.wrapping_sub(moved), ..set }
    }

    /// Adds the elements of a set, page by page: a run waits while it is opened.
    fn add_pages(&self, elements: ElementSet, bits: &SharedBits, pages: impl Fn(&mut Shard) -> &mut ElementPages) {
        let mut known = KnownSegments::default();
        elements.for_each_page(|page| match page.tag() {
            0 => page.words().into_iter().filter(|(_, elements)| *elements != 0).for_each(|(word, elements)| {
                bits.set(word, elements, &mut known);
            }),
            _ => pages(&mut self.shards[shard_of_hash(page.hash())].lock()).insert_page(page),
        });
    }

    /// The bytes of its tables.
    fn own_bytes(&self) -> u64 {
        let shards: u64 = self.shards.iter().map(|shard| shard.lock().bytes()).sum();
        self.vertices.bytes() + self.edges.bytes() + shards
    }

    fn shard_of(&self, tag: u32, key: &SeenKey) -> usize {
        match key {
            SeenKey::Vertex(bits) | SeenKey::Edge(bits) => shard_of_element(tag, *bits),
            other => self.hasher.hash_one(other) as usize % SHARDS,
        }
    }

    /// Returns the rows that are the first of their kind, and the bytes that remembering them adds.
    pub fn admit(&self, batch: Rows, computed: usize, scratch: &mut Scratch) -> (Rows, u64) {
        let Scratch { rows, vertices, edges } = scratch;
        rows.begin(batch.len());
        let added = match (&batch.objects, &batch.tags) {
            (ObjectColumn::Vertices(ids), Tags::One) if computed == 0 => {
                self.vertices.insert_all(ids.iter().map(|id| id.to_bits()), vertices, &mut rows.is_new)
            }
            (ObjectColumn::Edges(ids), Tags::One) if computed == 0 => {
                self.edges.insert_all(ids.iter().map(|id| id.to_bits()), edges, &mut rows.is_new)
            }
            _ => self.admit_any(&batch, computed, scratch),
        };
        let is_new = &scratch.rows.is_new;
        let mut first = batch.filter(|_, row| is_new[row]);
        first.bulk = None;
        (first, added)
    }

    /// Returns the rows that are at a vertex for the first time, and those that are at no vertex; and the bytes that
    /// remembering them adds.
    pub fn admit_vertices(&self, batch: &Rows, scratch: &mut Scratch) -> (Vec<u32>, u64) {
        let Scratch { rows, vertices, .. } = scratch;
        rows.begin(batch.len());
        let added = match (&batch.objects, &batch.tags) {
            (ObjectColumn::Vertices(ids), Tags::One) => {
                self.vertices.insert_all(ids.iter().map(|id| id.to_bits()), vertices, &mut rows.is_new)
            }
            (objects, _) => {
                let vertex = |row: usize| match objects {
                    ObjectColumn::Vertices(ids) => Some(ids[row]),
                    ObjectColumn::Edges(_) | ObjectColumn::Numbers(_) => None,
                    ObjectColumn::Values(values) => match &values[row] {
                        Value::Vertex(id) => Some(*id),
                        _ => None,
                    },
                };
                let shard = |row| vertex(row).map_or(0, |id| shard_of_element(batch.tag(row), id.to_bits()) as u8);
                rows.shards.extend((0..batch.len()).map(shard));
                let in_shards = self.each_shard(rows, |shard, row| match (batch.tag(row), vertex(row)) {
                    (_, None) => true,
                    (0, Some(id)) => self.vertices.insert(id.to_bits(), vertices),
                    (tag, Some(id)) => shard.vertices.insert(tag, id.to_bits()),
                });
                in_shards + vertices.take_added()
            }
        };
        let new = (0..batch.len()).filter(|row| rows.is_new[*row]).map(|row| row as u32).collect();
        (new, added)
    }

    fn admit_any(&self, batch: &Rows, computed: usize, scratch: &mut Scratch) -> u64 {
        let Scratch { rows, vertices, edges } = scratch;
        let mut sizes = Sizes::default();
        // Measured before the set becomes one more holder. A row without a key is dropped.
        let mut keys: Vec<(u64, Option<SeenKey>)> = Vec::with_capacity(batch.len());
        for row in 0..batch.len() {
            let held = held_bytes(batch, row, computed, &mut sizes) as u64;
            let key =
                if computed > 0 { computed_key(batch, row, computed) } else { Some(SeenKey::of(batch.object(row))) };
            rows.shards.push(key.as_ref().map_or(0, |key| self.shard_of(batch.tag(row), key)) as u8);
            keys.push((held, key));
        }
        let in_shards = self.each_shard(rows, |shard, row| {
            let (held, key) = &mut keys[row];
            let is_new = key.take().is_some_and(|key| match (batch.tag(row), key) {
                (0, SeenKey::Vertex(bits)) => self.vertices.insert(bits, vertices),
                (0, SeenKey::Edge(bits)) => self.edges.insert(bits, edges),
                (tag, key) => shard.insert(tag, key),
            });
            shard.held += if is_new { *held } else { 0 };
            is_new
        });
        in_shards + vertices.take_added() + edges.take_added()
    }

    /// Calls `insert` for each row under the lock of its shard, and notes which rows are new. Returns the bytes added.
    fn each_shard(&self, rows: &mut SortedRows, mut insert: impl FnMut(&mut Shard, usize) -> bool) -> u64 {
        let SortedRows { shards, by_shard, ends, is_new } = rows;
        // A counting sort: `ends` first holds where the rows of each shard begin.
        ends.clear();
        ends.resize(SHARDS, 0);
        shards.iter().for_each(|shard| ends[usize::from(*shard)] += 1);
        let mut begin = 0;
        for end in ends.iter_mut() {
            begin += std::mem::replace(end, begin);
        }
        by_shard.clear();
        by_shard.resize(shards.len(), 0);
        for (row, shard) in (0..).zip(&*shards) {
            let at = &mut ends[usize::from(*shard)];
            by_shard[*at as usize] = row;
            *at += 1;
        }
        let (mut added, mut begin) = (0, 0);
        for (shard, end) in self.shards.iter().zip(&*ends) {
            let rows = &by_shard[begin..*end as usize];
            begin = *end as usize;
            if rows.is_empty() {
                continue;
            }
            let mut shard = shard.lock();
            let before = shard.bytes();
            for row in rows {
                is_new[*row as usize] = insert(&mut shard, *row as usize);
            }
            added += shard.bytes() - before;
        }
        added
    }

    /// Returns the bytes that the query is charged for the set.
    pub fn bytes(&self) -> u64 {
        self.moved.wrapping_add(self.own_bytes())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::rows::NumberColumn;
    use mangrove_graph::{NumberType, TabletId, VertexId};
    use proptest::prelude::*;

    use super::*;

    fn vertices(slots: impl Iterator<Item = u64>) -> Rows {
        Rows::of(ObjectColumn::Vertices(slots.map(|slot| VertexId::new(TabletId(0), slot)).collect()))
    }

    fn numbers(numbers: &[i64]) -> Rows {
        Rows::of(ObjectColumn::Values(numbers.iter().map(|number| Value::I64(*number)).collect()))
    }

    proptest! {
        /// The shared set lets the same rows through as the set of one thread, also after a part came before it was
        /// shared, and its bytes are what was charged.
        #[test]
        fn a_shared_set_is_a_set(
            batches in prop::collection::vec((0..3_u8, prop::collection::vec(0..2_000_u64, 0..100)), 0..20),
            alone in 0..20_usize,
        ) {
            let rows = |(kind, objects): &(u8, Vec<u64>)| {
                let integers = || objects.iter().map(|object| *object as i64).collect::<Vec<_>>();
                match kind {
                    0 => vertices(objects.iter().copied()),
                    1 => numbers(&integers()),
                    _ => {
                        let numbers = NumberColumn::of_integers(NumberType::I64, integers()).unwrap();
                        Rows::of(ObjectColumn::Numbers(numbers))
                    }
                }
            };
            let (mut expected, mut first) = (SeenRows::default(), SeenRows::default());
            let mut charged = 0;
            let alone = alone.min(batches.len());
            for batch in &batches[..alone] {
                expected.admit(rows(batch), 0);
                charged += first.admit(rows(batch), 0).1;
            }
            let (shared, mut scratch) = (SharedSeen::new(first), Scratch::default());
            for batch in &batches[alone..] {
                let (found, bytes) = shared.admit(rows(batch), 0, &mut scratch);
                charged += bytes;
                prop_assert_eq!(found.objects.into_values(), expected.admit(rows(batch), 0).0.objects.into_values());
            }
            prop_assert_eq!(shared.bytes(), charged);
        }
    }

    #[test]
    fn one_of_several_threads_lets_a_row_through() {
        let shared = SharedSeen::new(SeenRows::default());
        let (found, charged) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (shared, found, charged) = (&shared, &found, &charged);
                scope.spawn(move || {
                    let mut scratch = Scratch::default();
                    for batch in 0..200_u64 {
                        // Each thread comes to the same vertices in another order.
                        let from = (batch * (2 * thread + 1)) % 200 * 100;
                        let (rows, bytes) = shared.admit(vertices(from..from + 100), 0, &mut scratch);
                        found.fetch_add(rows.len() as u64, Ordering::Relaxed);
                        charged.fetch_add(bytes, Ordering::Relaxed);
                    }
                });
            }
        });
        let distinct = 200 * 100;
        assert_eq!(found.into_inner(), distinct, "each vertex once");
        assert_eq!(shared.bytes(), charged.into_inner());
    }
}
