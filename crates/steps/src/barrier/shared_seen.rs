//! The set of rows that a `dedup()` has let through, if several threads work on the query.
//!
//! Vertices and edges of instance 0 are bits, which threads set without a lock ([`shared_bits`](super::shared_bits)). For
//! all else, the set consists of shards, each under a lock. Vertices and edges of other instances are bits of pages there
//! (`element_set`), other values are entries of hash tables.
//!
//! A thread remembers values that it knows to be in the set ([`known_keys`](super::known_keys)). It sorts the other rows of
//! a batch by shard and takes the lock of each shard once. It holds one lock at a time. Each thread begins at a shard of
//! its own, and a shard that another thread holds comes last. So threads seldom wait.
//!
//! ```text
//!  rows ─► known to the thread? ── yes ─► dropped
//!                  │ no
//!                  └─► by shard ─► table of the shard, under its lock ─► new rows
//! ```

use std::hash::BuildHasher;
use std::sync::atomic::{AtomicUsize, Ordering};

use foldhash::fast::RandomState;
use mangrove_graph::Value;
use parking_lot::Mutex;

use crate::barrier::element_set::{ElementPages, ElementSet, page_hash};
use crate::barrier::known_keys::KnownKeys;
use crate::barrier::seen::{ENTRY_BYTES, SeenParts, SeenRows};
use crate::barrier::seen_key::{RowKey, SeenKey};
use crate::barrier::shared_bits::{KnownSegments, SharedBits};
use crate::limits::sizes::Sizes;
use crate::limits::table::PartitionedTable;
use crate::rows::{ObjectColumn, Rows, Tags};

/// The shards of a set. There are more than threads, so that two of them seldom want the same one.
const SHARDS: usize = 64;

/// A part of the set.
struct Shard {
    vertices: ElementPages,
    edges: ElementPages,
    /// Hashed by the hasher of the set.
    values: PartitionedTable<(u32, SeenKey)>,
    /// The bytes that the values among them point to.
    held: u64,
}

impl Shard {
    fn new(hasher: RandomState) -> Self {
        let values = PartitionedTable::hashed_by(hasher);
        Shard { vertices: ElementPages::default(), edges: ElementPages::default(), values, held: 0 }
    }

    fn bytes(&self) -> u64 {
        self.vertices.bytes() + self.edges.bytes() + self.values.len() as u64 * ENTRY_BYTES + self.held
    }

    /// Adds the key of a row. Returns true if it is new.
    fn insert(&mut self, hash: u64, tag: u32, key: RowKey<'_>, sizes: &mut Sizes) -> bool {
        match key {
            RowKey::Vertex(bits) => self.vertices.insert(tag, bits),
            RowKey::Edge(bits) => self.edges.insert(tag, bits),
            other => {
                let is_key = |(of, known): &(u32, SeenKey)| *of == tag && other.is(known);
                self.values.insert_hashed(hash, is_key, || {
                    self.held += other.held_bytes(sizes);
                    (tag, other.to_seen())
                })
            }
        }
    }
}

/// Returns the shard of the elements of a page, by the hash of the page.
fn shard_of_page(hash: u64) -> usize {
    (hash >> (u64::BITS - SHARDS.ilog2())) as usize
}

/// Returns the shard of a value by its hash. The values of a shard differ in the bits by which its table finds them: the
/// lowest and the 16 highest ones.
fn shard_of_value(hash: u64) -> usize {
    (hash >> 40) as usize % SHARDS
}

/// See the header of this file.
pub(crate) struct SharedSeen {
    /// Hashes instances with values, for shards, tables and what threads remember.
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
    is_new: IsNew,
    rows: SortedRows,
    vertices: KnownSegments,
    edges: KnownSegments,
    values: KnownKeys,
}

impl Scratch {
    /// Drops what it knows of sets.
    pub fn forget_sets(&mut self) {
        (self.vertices, self.edges, self.values) = Default::default();
    }
}

/// For each row of a batch, true if it is the first of its kind.
type IsNew = Vec<bool>;

/// The rows of a batch that are looked up in shards.
#[derive(Default)]
struct SortedRows {
    first: FirstShard,
    /// The rows, each with its hash, and the shard of each.
    rows: Vec<(u32, u64)>,
    shards: Vec<u8>,
    /// The rows in the order of their shards, and where the rows of each shard end.
    by_shard: Vec<(u32, u64)>,
    ends: Vec<u32>,
}

/// The shard that a thread begins with.
struct FirstShard(usize);

impl Default for FirstShard {
    fn default() -> Self {
        /// The threads that begin one after the other are far apart: 64 divided by the golden ratio.
        const APART: usize = 39;
        static NEXT: AtomicUsize = AtomicUsize::new(0);
        FirstShard(NEXT.fetch_add(APART, Ordering::Relaxed) % SHARDS)
    }
}

impl SortedRows {
    fn push(&mut self, row: usize, hash: u64, shard: usize) {
        self.rows.push((row as u32, hash));
        self.shards.push(shard as u8);
    }

    /// Sorts the rows by shard. Returns the shards that have rows, one in each bit.
    fn sort(&mut self) -> u64 {
        let SortedRows { rows, shards, by_shard, ends, .. } = self;
        // A counting sort: `ends` first holds where the rows of each shard begin.
        ends.clear();
        ends.resize(SHARDS, 0);
        shards.iter().for_each(|shard| ends[usize::from(*shard)] += 1);
        let mut begin = 0;
        for end in ends.iter_mut() {
            begin += std::mem::replace(end, begin);
        }
        by_shard.clear();
        by_shard.resize(rows.len(), (0, 0));
        let mut used = 0;
        for (row, shard) in rows.drain(..).zip(shards.drain(..)) {
            let at = &mut ends[usize::from(shard)];
            by_shard[*at as usize] = row;
            *at += 1;
            used |= 1 << shard;
        }
        used
    }

    /// Returns the rows of a shard.
    fn of_shard(&self, shard: usize) -> &[(u32, u64)] {
        let begin = if shard == 0 { 0 } else { self.ends[shard - 1] };
        &self.by_shard[begin as usize..self.ends[shard] as usize]
    }
}

/// The number of rows in a word of bits is that of the shards.
const _: () = assert!(SHARDS == u64::BITS as usize);

impl SharedSeen {
    /// A set that contains what one thread has seen. The query stays charged for it as before.
    pub fn new(seen: SeenRows) -> Self {
        let hasher = RandomState::default();
        let shard = || Mutex::new(Shard::new(hasher.clone()));
        let set = SharedSeen {
            shards: std::iter::repeat_with(shard).take(SHARDS).collect(),
            hasher: hasher.clone(),
            vertices: SharedBits::default(),
            edges: SharedBits::default(),
            moved: seen.bytes(),
        };
        let SeenParts { vertices, edges, values } = seen.into_parts();
        set.add_pages(vertices, &set.vertices, |shard| &mut shard.vertices);
        set.add_pages(edges, &set.edges, |shard| &mut shard.edges);
        values.for_each(|tag, key| {
            let entry = (tag, key);
            set.shards[shard_of_value(hasher.hash_one(&entry))].lock().values.insert(entry);
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
            _ => pages(&mut self.shards[shard_of_page(page.hash())].lock()).insert_page(page),
        });
    }

    /// The bytes of its tables.
    fn own_bytes(&self) -> u64 {
        let shards: u64 = self.shards.iter().map(|shard| shard.lock().bytes()).sum();
        self.vertices.bytes() + self.edges.bytes() + shards
    }

    /// Returns the rows that are the first of their kind, and the bytes that remembering them adds.
    pub fn admit(&self, batch: Rows, computed: usize, scratch: &mut Scratch) -> (Rows, u64) {
        let added = match (&batch.objects, &batch.tags) {
            (ObjectColumn::Vertices(ids), Tags::One) if computed == 0 => {
                let is_new = begin(&mut scratch.is_new, &batch);
                self.vertices.insert_all(ids.iter().map(|id| id.to_bits()), &mut scratch.vertices, is_new)
            }
            (ObjectColumn::Edges(ids), Tags::One) if computed == 0 => {
                let is_new = begin(&mut scratch.is_new, &batch);
                self.edges.insert_all(ids.iter().map(|id| id.to_bits()), &mut scratch.edges, is_new)
            }
            _ => self.admit_any(&batch, |row| RowKey::of(&batch, row, computed), scratch),
        };
        let is_new = &scratch.is_new;
        let mut first = batch.filter(|_, row| is_new[row]);
        first.bulk = None;
        (first, added)
    }

    /// Returns the rows that are at a vertex for the first time, and those that are at no vertex; and the bytes that
    /// remembering them adds.
    pub fn admit_vertices(&self, batch: &Rows, scratch: &mut Scratch) -> (Vec<u32>, u64) {
        let vertex = |row: usize| match &batch.objects {
            ObjectColumn::Vertices(ids) => Some(ids[row]),
            ObjectColumn::Edges(_) | ObjectColumn::Numbers(_) => None,
            ObjectColumn::Values(values) => match &values[row] {
                Value::Vertex(id) => Some(*id),
                _ => None,
            },
        };
        let added = self.admit_any(batch, |row| vertex(row).map(|id| RowKey::Vertex(id.to_bits())), scratch);
        let is_new = &scratch.is_new;
        let new = (0..batch.len()).filter(|row| is_new[*row] || vertex(*row).is_none());
        (new.map(|row| row as u32).collect(), added)
    }

    /// Adds the keys of rows, and notes which are new. A row without a key is not.
    fn admit_any<'a>(&self, batch: &Rows, key_of: impl Fn(usize) -> Option<RowKey<'a>>, scratch: &mut Scratch) -> u64 {
        let Scratch { is_new, rows, vertices, edges, values } = scratch;
        let is_new = begin(is_new, batch);
        values.begin(self.vertices.number());
        for (row, is_new) in is_new.iter_mut().enumerate() {
            let Some(key) = key_of(row) else { continue };
            match (batch.tag(row), key) {
                (0, RowKey::Vertex(bits)) => *is_new = self.vertices.insert(bits, vertices),
                (0, RowKey::Edge(bits)) => *is_new = self.edges.insert(bits, edges),
                (tag, RowKey::Vertex(bits) | RowKey::Edge(bits)) => {
                    let hash = page_hash(tag, bits);
                    rows.push(row, hash, shard_of_page(hash));
                }
                (tag, key) => {
                    let hash = self.hasher.hash_one((tag, key));
                    if !values.knows(hash, tag, key) {
                        rows.push(row, hash, shard_of_value(hash));
                    }
                }
            }
        }
        let mut sizes = Sizes::default();
        let in_shards = self.each_shard(rows, |shard, row, hash| {
            is_new[row] = key_of(row).is_some_and(|key| shard.insert(hash, batch.tag(row), key, &mut sizes));
        });
        in_shards + vertices.take_added() + edges.take_added()
    }

    /// Calls `insert` for each row under the lock of its shard. Returns the bytes added.
    fn each_shard(&self, rows: &mut SortedRows, mut insert: impl FnMut(&mut Shard, usize, u64)) -> u64 {
        if rows.rows.is_empty() {
            return 0;
        }
        let (mut left, mut added) = (rows.sort(), 0);
        for waits in [false, true] {
            for at in (rows.first.0..SHARDS).chain(0..rows.first.0) {
                if left & 1 << at == 0 {
                    continue;
                }
                let lock = &self.shards[at];
                let Some(mut shard) = (if waits { Some(lock.lock()) } else { lock.try_lock() }) else { continue };
                left &= !(1 << at);
                let before = shard.bytes();
                rows.of_shard(at).iter().for_each(|(row, hash)| insert(&mut shard, *row as usize, *hash));
                added += shard.bytes() - before;
            }
        }
        added
    }

    /// Returns the bytes that the query is charged for the set.
    pub fn bytes(&self) -> u64 {
        self.moved.wrapping_add(self.own_bytes())
    }
}

/// Begins a batch, none of whose rows is new yet.
fn begin<'a>(is_new: &'a mut IsNew, batch: &Rows) -> &'a mut [bool] {
    is_new.clear();
    is_new.resize(batch.len(), false);
    is_new
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU64;
    use std::time::Duration;

    use mangrove_graph::{NumberType, TabletId, VertexId};
    use proptest::prelude::*;

    use super::*;
    use crate::rows::NumberColumn;

    fn vertices(slots: impl Iterator<Item = u64>) -> Rows {
        Rows::of(ObjectColumn::Vertices(slots.map(|slot| VertexId::new(TabletId(0), slot)).collect()))
    }

    fn numbers(numbers: &[i64]) -> Rows {
        Rows::of(ObjectColumn::Values(numbers.iter().map(|number| Value::I64(*number)).collect()))
    }

    /// A text that fits into a word, one that is inline, one that is short, or one that is long.
    fn text(number: u64) -> Value {
        let zeros = [1, 12, 40, 100][number as usize % 4];
        Value::from(format!("{number:0zeros$}"))
    }

    fn texts(numbers: impl Iterator<Item = u64>) -> Rows {
        Rows::of(ObjectColumn::Values(numbers.map(text).collect()))
    }

    /// Returns rows of one of six forms, in some instances, and how many of their computed columns are compared.
    fn rows(form: u8, instances: u32, objects: &[u64]) -> (Rows, usize) {
        let integers = || objects.iter().map(|object| *object as i64).collect::<Vec<_>>();
        let column = |of: &dyn Fn(u64) -> Value| objects.iter().map(|object| Some(of(*object))).collect();
        let (mut rows, mut computed) = (numbers(&integers()), vec![]);
        match form {
            0 => rows = vertices(objects.iter().copied()),
            1 => {}
            2 => {
                let numbers = NumberColumn::of_integers(NumberType::I64, integers()).unwrap();
                rows = Rows::of(ObjectColumn::Numbers(numbers));
            }
            3 => rows = texts(objects.iter().copied()),
            4 => computed = vec![column(&text)],
            _ => computed = vec![column(&|object| text(object / 2)), column(&|object| Value::I64(object as i64 % 2))],
        }
        let compared = computed.len();
        rows.computed = computed;
        if instances > 1 {
            rows.tags = Tags::Many(objects.iter().map(|object| *object as u32 % instances).collect());
        }
        (rows, compared)
    }

    fn any_batches() -> impl Strategy<Value = Vec<(u8, u32, Vec<u64>)>> {
        let objects =
            prop_oneof![prop::collection::vec(0..2_000_u64, 0..100), prop::collection::vec(0..20_u64, 0..100)];
        // An operator always compares as many columns.
        let forms = prop_oneof![4 => (0..4_u8).boxed(), 1 => Just(4).boxed(), 1 => Just(5).boxed()];
        let batches = |form: u8| prop::collection::vec((if form < 4 { 0..4 } else { form..form + 1 }, 1..3_u32), 0..20);
        forms.prop_flat_map(batches).prop_flat_map(move |forms| {
            let objects = prop::collection::vec(objects.clone(), forms.len());
            (Just(forms), objects).prop_map(|(forms, objects)| {
                forms.into_iter().zip(objects).map(|((form, instances), objects)| (form, instances, objects)).collect()
            })
        })
    }

    proptest! {
        /// The shared set lets the same rows through as the set of one thread, also after a part came before it was
        /// shared, and if several threads look; and its bytes are what was charged. What a thread knows of another set
        /// changes nothing.
        #[test]
        fn a_shared_set_is_a_set(
            batches in any_batches(),
            alone in 0..20_usize,
            threads in prop::collection::vec(0..2_usize, 20),
            others in prop::collection::vec(0..20_usize, 0..3),
        ) {
            let (mut expected, mut first) = (SeenRows::default(), SeenRows::default());
            let mut charged = 0;
            let alone = alone.min(batches.len());
            for (form, instances, objects) in &batches[..alone] {
                let batch = || rows(*form, *instances, objects);
                expected.admit(batch().0, batch().1);
                charged += first.admit(batch().0, batch().1).1;
            }
            let (shared, other) = (SharedSeen::new(first), SharedSeen::new(SeenRows::default()));
            let mut scratches = [Scratch::default(), Scratch::default()];
            for (at, (form, instances, objects)) in batches.iter().enumerate().skip(alone) {
                let batch = || rows(*form, *instances, objects);
                let scratch = &mut scratches[threads[at]];
                if others.contains(&at) {
                    other.admit(batch().0, batch().1, scratch);
                }
                let (found, bytes) = shared.admit(batch().0, batch().1, scratch);
                charged += bytes;
                let (expected, _) = expected.admit(batch().0, batch().1);
                prop_assert_eq!(found.objects.into_values(), expected.objects.into_values());
                prop_assert!(found.computed.is_empty());
            }
            prop_assert_eq!(shared.bytes(), charged);
        }
    }

    /// Several threads admit the same batches, each in another order. Checks that each row comes through once.
    fn check_threads(batches: u64, distinct: u64, rows: impl Fn(u64) -> Rows + Sync) {
        let shared = SharedSeen::new(SeenRows::default());
        let (found, charged) = (AtomicU64::new(0), AtomicU64::new(0));
        std::thread::scope(|scope| {
            for thread in 0..4 {
                let (shared, found, charged, rows) = (&shared, &found, &charged, &rows);
                scope.spawn(move || {
                    let mut scratch = Scratch::default();
                    for batch in 0..batches {
                        let (new, bytes) = shared.admit(rows(batch * (2 * thread + 1) % batches), 0, &mut scratch);
                        found.fetch_add(new.len() as u64, Ordering::Relaxed);
                        charged.fetch_add(bytes, Ordering::Relaxed);
                    }
                });
            }
        });
        assert_eq!(found.into_inner(), distinct, "each row once");
        assert_eq!(shared.bytes(), charged.into_inner());
    }

    #[test]
    fn one_of_several_threads_lets_a_row_through() {
        check_threads(200, 200 * 100, |batch| vertices(batch * 100..(batch + 1) * 100));
        // A few texts, which threads remember, and many, more than they remember.
        check_threads(64, 500, |batch| texts((0..1_000).map(|row| (batch + row) * 7 % 500)));
        check_threads(64, 64 * 1_000, |batch| texts(batch * 1_000..(batch + 1) * 1_000));
    }

    #[test]
    fn values_are_spread_over_the_shards() {
        let shared = SharedSeen::new(SeenRows::default());
        let all: Vec<i64> = (0..64_000).collect();
        shared.admit(numbers(&all), 0, &mut Scratch::default());
        shared.admit(texts(0..64_000), 0, &mut Scratch::default());
        for shard in &shared.shards {
            let values = shard.lock().values.len();
            assert!((1_600..2_400).contains(&values), "{values} of 128,000 values are in one of 64 shards");
        }
    }

    #[test]
    fn a_thread_knows_rows_without_a_lock() {
        let (shared, mut scratch) = (SharedSeen::new(SeenRows::default()), Scratch::default());
        let batch = || texts((0..1_000).map(|row| row % 200 * 4 + row % 3));
        assert_eq!(shared.admit(batch(), 0, &mut scratch).0.len(), 600);
        let locks: Vec<_> = shared.shards.iter().map(|shard| shard.lock()).collect();
        let (sender, receiver) = std::sync::mpsc::channel();
        let found = std::thread::scope(|scope| {
            scope.spawn(|| {
                let found = shared.admit(batch(), 0, &mut scratch).0.len();
                sender.send(found).expect("the receiver waits");
            });
            let found = receiver.recv_timeout(Duration::from_secs(10));
            drop(locks);
            found
        });
        assert_eq!(found, Ok(0), "it does not wait for the locks");
    }
}
