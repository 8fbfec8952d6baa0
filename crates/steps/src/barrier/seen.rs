//! The set of rows that a `dedup()` has let through, by scope instance.

use crate::barrier::element_set::ElementSet;
use crate::barrier::seen_key::{RowKey, SeenKey};
use crate::computed::keys::{KeyWord, number_word};
use crate::limits::sizes::Sizes;
use crate::limits::table::PartitionedTable;
use crate::rows::{ObjectColumn, Rows, Tags};

/// The values let through, by instance. Most are elements, numbers and short texts, which have small keys of their own.
#[derive(Default)]
pub(crate) struct SeenRows {
    vertices: ElementSet,
    edges: ElementSet,
    words: PartitionedTable<(u32, KeyWord)>,
    others: PartitionedTable<(u32, SeenKey)>,
    /// The bytes that the values among them point to.
    held: u64,
}

/// The approximate bytes of an entry: tag and key, control byte, load factor.
const WORD_BYTES: u64 = 40;
pub(super) const ENTRY_BYTES: u64 = 64;

/// A table of at most this many entries is kept for the next group.
const KEPT_MAX: usize = 1 << 12;

impl SeenRows {
    /// Returns the rows that are the first of their kind, and the bytes that remembering them adds.
    pub fn admit(&mut self, batch: Rows, computed: usize) -> (Rows, u64) {
        let before = self.bytes();
        let mut sizes = Sizes::default();
        let elements = match &batch.objects {
            ObjectColumn::Vertices(ids) if computed == 0 => {
                Some(insert_all(&mut self.vertices, &batch.tags, ids.iter().map(|id| id.to_bits())))
            }
            ObjectColumn::Edges(ids) if computed == 0 => {
                Some(insert_all(&mut self.edges, &batch.tags, ids.iter().map(|id| id.to_bits())))
            }
            _ => None,
        };
        let mut first = match (elements, &batch.objects) {
            (Some(new), _) => batch.keep(&new),
            (None, ObjectColumn::Numbers(_)) if computed == 0 => batch.filter(|rows, row| {
                let word = rows.objects.numbers().map(|numbers| number_word(numbers, row));
                word.is_some_and(|word| self.words.insert((rows.tag(row), word)))
            }),
            _ => batch.filter(|rows, row| self.admit_any(rows, row, computed, &mut sizes)),
        };
        first.computed.clear();
        first.bulk = None;
        (first, self.bytes() - before)
    }

    fn admit_any(&mut self, rows: &Rows, row: usize, computed: usize, sizes: &mut Sizes) -> bool {
        let tag = rows.tag(row);
        match RowKey::of(rows, row, computed) {
            None => false,
            Some(RowKey::Vertex(bits)) => self.vertices.insert(tag, bits),
            Some(RowKey::Edge(bits)) => self.edges.insert(tag, bits),
            Some(RowKey::Word(word)) => self.words.insert((tag, word)),
            Some(key) => {
                let hash = self.others.hash_of(&(tag, key));
                let is_key = |(of, known): &(u32, SeenKey)| *of == tag && key.is(known);
                self.others.insert_hashed(hash, is_key, || {
                    self.held += key.held_bytes(sizes);
                    (tag, key.to_seen())
                })
            }
        }
    }

    /// Empties the set. Returns false if its tables are too large to be kept.
    pub fn clear(&mut self) -> bool {
        self.vertices.clear();
        self.edges.clear();
        self.words.clear();
        self.others.clear();
        self.held = 0;
        let elements = self.vertices.capacity() + self.edges.capacity();
        elements + self.words.capacity() + self.others.capacity() <= KEPT_MAX
    }

    /// Returns about how many bytes the set takes.
    pub fn bytes(&self) -> u64 {
        let values = self.words.len() as u64 * WORD_BYTES + self.others.len() as u64 * ENTRY_BYTES;
        self.vertices.bytes() + self.edges.bytes() + values + self.held
    }

    /// Takes the set apart.
    pub(super) fn into_parts(self) -> SeenParts {
        let SeenRows { vertices, edges, words, others, .. } = self;
        SeenParts { vertices, edges, values: SeenValues { words, others } }
    }
}

/// What a set consists of.
pub(super) struct SeenParts {
    pub vertices: ElementSet,
    pub edges: ElementSet,
    /// All else.
    pub values: SeenValues,
}

/// The values of a set that are neither vertices nor edges.
pub(super) struct SeenValues {
    words: PartitionedTable<(u32, KeyWord)>,
    others: PartitionedTable<(u32, SeenKey)>,
}

impl SeenValues {
    /// Calls `take` with the instance and key of each value.
    pub fn for_each(self, mut take: impl FnMut(u32, SeenKey)) {
        self.words.for_each(|(tag, word), ()| take(tag, SeenKey::Word(word)));
        self.others.for_each(|(tag, key), ()| take(tag, key));
    }
}

/// Adds the elements of rows with these tags. Returns the rows with new ones.
fn insert_all(set: &mut ElementSet, tags: &Tags, bits: impl Iterator<Item = u64>) -> Vec<u32> {
    match tags {
        Tags::One => set.insert_all(bits.map(|bits| (0, bits))),
        Tags::Many(tags) => set.insert_all(tags.iter().copied().zip(bits)),
    }
}
