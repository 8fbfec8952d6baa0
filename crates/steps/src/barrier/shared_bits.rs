//! A set of the ids of elements, to which several threads add without a lock.
//!
//! Ids with the same highest bits share a *segment*, an array of pages. A page is an array of bits, one for each id. It is
//! made when the first of its elements is added. A bit is only ever set, so no thread waits for another one: of those
//! that set a bit at the same time, the one that found it clear has added the element.
//!
//! ```text
//!  id ─► segment ── table, and a copy of it for each thread
//!           └─► page ── array of 128 pointers
//!                 └─► word, bit
//! ```

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use mangrove_graph::FastMap;
use parking_lot::RwLock;

/// The words of a page, and the elements of a word. The vertices of a page of the store share a page here.
const PAGE_WORDS: usize = 16;
const WORD_ELEMENTS: u64 = u64::BITS as u64;

/// The pages of a segment. Each tablet of a graph has segments of its own, and all are made anew in each run. With 4,096 pages,
/// making and freeing those of a graph of 300,000 vertices took 1.4 ms (2026-11-27).
const SEGMENT_PAGES: usize = 1 << 7;

type BitPage = [AtomicU64; PAGE_WORDS];

/// The pages of ids with the same highest bits.
struct Segment(Box<[OnceLock<Box<BitPage>>]>);

impl Segment {
    fn new() -> Self {
        Segment((0..SEGMENT_PAGES).map(|_| OnceLock::new()).collect())
    }

    const BYTES: u64 = (SEGMENT_PAGES * size_of::<OnceLock<Box<BitPage>>>()) as u64;
}

/// See the header of this file.
pub(super) struct SharedBits {
    /// No other set of the process has this number.
    number: u64,
    segments: RwLock<FastMap<u64, Arc<Segment>>>,
    bytes: AtomicU64,
}

impl Default for SharedBits {
    fn default() -> Self {
        static SETS: AtomicU64 = AtomicU64::new(1);
        let number = SETS.fetch_add(1, Ordering::Relaxed);
        SharedBits { number, segments: RwLock::default(), bytes: AtomicU64::new(0) }
    }
}

/// The segments of a set that a thread has met. It may then meet another set.
#[derive(Default)]
pub(super) struct KnownSegments {
    /// The number of the set.
    set: u64,
    /// The segments in the order in which the thread met them. It holds each of them once: if it took a reference for each
    /// look-up, threads would pass the count of references to and fro.
    segments: Vec<Arc<Segment>>,
    /// The place of a segment, by its number.
    places: FastMap<u64, usize>,
    /// The number and the place of the segment that it met last.
    last: Option<(u64, usize)>,
    /// The bytes that its calls have added.
    added: u64,
}

impl KnownSegments {
    /// Returns the bytes that sets have grown by since the last call.
    pub fn take_added(&mut self) -> u64 {
        std::mem::take(&mut self.added)
    }
}

impl SharedBits {
    /// Returns a number that no other set of the process has.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Adds an element, given by the bits of its id. Returns true if it is new.
    pub fn insert(&self, bits: u64, known: &mut KnownSegments) -> bool {
        let bit = 1 << (bits % WORD_ELEMENTS);
        let word = self.word(bits / WORD_ELEMENTS, known);
        // Relaxed: no other memory is published with a bit. A look is cheaper than a change, so it comes first.
        word.load(Ordering::Relaxed) & bit == 0 && word.fetch_or(bit, Ordering::Relaxed) & bit == 0
    }

    /// Adds the elements of rows, and notes which rows are the first with their element. Returns the bytes that the set has
    /// grown by.
    pub fn insert_all(&self, ids: impl Iterator<Item = u64>, known: &mut KnownSegments, is_new: &mut [bool]) -> u64 {
        ids.zip(is_new).for_each(|(bits, is_new)| *is_new = self.insert(bits, known));
        known.take_added()
    }

    /// Adds those of 64 elements with adjacent ids whose bits are set. `word` is the id of the first one, divided by 64.
    pub fn set(&self, word: u64, elements: u64, known: &mut KnownSegments) {
        self.word(word, known).fetch_or(elements, Ordering::Relaxed);
    }

    /// Returns the word of 64 elements with adjacent ids. `word` is the id of the first one, divided by 64.
    #[inline]
    fn word<'k>(&self, word: u64, known: &'k mut KnownSegments) -> &'k AtomicU64 {
        let page = word / PAGE_WORDS as u64;
        if known.set != self.number {
            *known = KnownSegments { set: self.number, added: known.added, ..KnownSegments::default() };
        }
        let place = self.place_of(page / SEGMENT_PAGES as u64, known);
        let KnownSegments { segments, added, .. } = known;
        let page = segments[place].0[page as usize % SEGMENT_PAGES].get_or_init(|| {
            self.grow(size_of::<BitPage>() as u64, added);
            Box::default()
        });
        &page[word as usize % PAGE_WORDS]
    }

    /// Returns the place at which the thread knows a segment.
    fn place_of(&self, number: u64, known: &mut KnownSegments) -> usize {
        if let Some((last, place)) = known.last
            && last == number
        {
            return place;
        }
        let place = *known.places.entry(number).or_insert_with(|| {
            known.segments.push(self.find(number, &mut known.added));
            known.segments.len() - 1
        });
        known.last = Some((number, place));
        place
    }

    /// Returns a segment, making it if there is none.
    #[cold]
    fn find(&self, number: u64, added: &mut u64) -> Arc<Segment> {
        if let Some(segment) = self.segments.read().get(&number) {
            return segment.clone();
        }
        let new = || {
            self.grow(Segment::BYTES, added);
            Arc::new(Segment::new())
        };
        self.segments.write().entry(number).or_insert_with(new).clone()
    }

    fn grow(&self, bytes: u64, added: &mut u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        *added += bytes;
    }

    /// Returns the bytes of the set.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    const PAGE_ELEMENTS: u64 = PAGE_WORDS as u64 * WORD_ELEMENTS;

    proptest! {
        #[test]
        fn a_set_of_bits_is_a_set(
            ids in prop::collection::vec((0..3_u64, 0..3_u64, 0..200_u64), 0..200),
        ) {
            let (set, mut known, mut expected) = (SharedBits::default(), KnownSegments::default(), BTreeSet::new());
            for (tablet, far, near) in ids {
                let id = (tablet << 48) + far * (PAGE_ELEMENTS * SEGMENT_PAGES as u64 - 100) + near;
                prop_assert_eq!(set.insert(id, &mut known), expected.insert(id));
                // Another thread knows no segment yet.
                prop_assert!(!set.insert(id, &mut KnownSegments::default()));
            }
        }
    }

    #[test]
    fn one_of_several_threads_adds_an_element() {
        let set = SharedBits::default();
        let added: usize = std::thread::scope(|scope| {
            let add = |_| {
                let mut known = KnownSegments::default();
                (0..100_000).filter(|id| set.insert(id * 3, &mut known)).count()
            };
            let threads: Vec<_> = (0..4).map(|thread| scope.spawn(move || add(thread))).collect();
            threads.into_iter().map(|thread| thread.join().expect("a thread ends")).sum()
        });
        assert_eq!(added, 100_000);
        let pages = 300_000_u64.div_ceil(PAGE_ELEMENTS);
        let segments = pages.div_ceil(SEGMENT_PAGES as u64);
        assert_eq!(set.bytes(), segments * Segment::BYTES + pages * size_of::<BitPage>() as u64);
    }
}
