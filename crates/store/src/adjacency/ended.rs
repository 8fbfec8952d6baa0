//! The packed edges of a table that may have ended since it was last compacted: a Bloom filter of two hashes.
//!
//! A dirty list says that some edge of its run has ended, but not which. If readers and compaction *checked* every edge
//! of the run, that is, read its version words, each would cost them a cache line. So a transaction that ends an edge
//! first *names* the edge: it sets the edge's bits in the filter. Only named edges are checked. A transaction that ends
//! all edges of a list names the list.
//!
//! The first bit of an edge depends on its list and on the neighbor in its cell, and the second one on its id. So a reader who only
//! wants the neighbors loads the ids of few edges: those to neighbors whose bit is set. Of parallel edges, the second bit tells which has ended.
//!
//! - **STORE-15.** An edge is named after its end was claimed and before its list is marked. A compaction moves the names
//!   to a second filter before it takes them out of the first, and they stay there until the next compaction moves names.
//!   It checks every edge that one of the filters names, in every list that it packs, clean ones too. In lists
//!   that it passes over it names those edges again that are not frozen. All other packed edges are as they were when they
//!   were packed.
//!
//! Why a reader may take the packed edges that neither filter names. Suppose that the reader's snapshot does not see a
//! packed edge of a list that the reader has found. So a transaction has ended the edge and committed before the
//! reader's transaction began, and had named the edge before. If a compaction has moved the name since, it is
//! in the second filter, until another compaction moves names. That one waits until the reader's transaction has ended if the first one
//! has replaced a list (STORE-17), and otherwise finds the name in the first filter, where it was given back. If a compaction has moved
//! the name before the reader found the list, the compaction has checked the edge, and packed it only if it had not ended.
//!
//! The reader looks into the first filter before the second. A name that it misses in the first was moved, and is in the
//! second by then.
//!
//! An edge that compaction finds still claimed goes into a tail, and every reader checks the edges of tails.
//!
//! A name too many costs a check and nothing else. So a rollback takes no name back, and a filter that has become too
//! small makes compaction and readers slower but not wrong.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_reclaim::sync::AtomicU64;

use crate::memory::{Memory, RecordKind};

/// Bits for every change that the table takes until it is due: of the other edges, about one in 8 has its first bit set when it is due,
/// and one in 64 both. What the second filter has comes on top.
const BITS_A_CHANGE: usize = 16;
/// Bits for every slot of the page, at least, since tables grow.
const BITS_A_SLOT: usize = 8;
const BITS_MIN: usize = 64;
/// Words that are loaded ahead of their use at most: a part of the second-level cache.
const AHEAD_WORDS_MAX: usize = 1 << 13;
/// Words of a cache line.
const WORDS_A_LINE: usize = 64 / size_of::<Word>();
/// How many cells are looked up together.
const CELLS_A_LOOK: usize = 64;
/// Odd numbers without a pattern: an id and a slot are multiplied by one each.
const OF_ID: u64 = 0x9e37_79b9_7f4a_7c15;
const OF_SLOT: u64 = 0xd6e8_feb8_6659_fd93;

/// The edges of a table that a transaction has begun to end. Made with the first, and in a box, since most tables have
/// none. Invariant: STORE-15.
#[derive(Debug, Default)]
pub(crate) struct Ended(OnceLock<Box<Names>>);

#[derive(Debug)]
struct Names {
    /// A bit for every list, by its slot, and then the filters: a power of two of words.
    words: Box<[Word]>,
    /// Where the filter begins.
    first: u32,
    /// How many bits a hash is shifted to become the number of a bit of the filter.
    shift: u32,
}

/// A word of both filters, in one cache line, because readers look at both.
#[derive(Debug, Default)]
#[repr(align(16))]
struct Word {
    /// Of the first filter.
    named: AtomicU64,
    /// Of the second filter: what the last compaction took out of `named`.
    taken: AtomicU64,
}

impl Names {
    fn new(slots: usize, changes: usize, memory: &Memory) -> Self {
        let bits = (changes * BITS_A_CHANGE).max(slots * BITS_A_SLOT).max(BITS_MIN).next_power_of_two();
        let first = slots.div_ceil(64);
        let words = (0..first + bits / 64).map(|_| Word::default()).collect();
        let names = Names { words, first: first as u32, shift: 64 - bits.ilog2() };
        memory.add(RecordKind::Descriptor, names.bytes());
        names
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.words)
    }

    #[inline]
    fn bit_of(&self, hash: u64) -> (usize, u64) {
        let bit = hash >> self.shift;
        (self.first as usize + (bit >> 6) as usize, 1 << (bit & 63))
    }

    /// The first bit of the edges to a neighbor, in the list at a slot.
    #[inline]
    fn bit_of_neighbor(&self, at: usize, neighbor: VertexId) -> (usize, u64) {
        // The neighbor exists as long as the edge, so its generation says nothing.
        let place = neighbor.with_generation(0).to_bits();
        self.bit_of(place.wrapping_mul(OF_ID).wrapping_add((at as u64).wrapping_mul(OF_SLOT)))
    }

    /// The second bit of an edge.
    #[inline]
    fn bit_of_edge(&self, edge: EdgeId) -> (usize, u64) {
        self.bit_of(edge.to_bits().wrapping_mul(OF_ID))
    }

    /// Names the edge of a cell, in the list at a slot.
    fn name(&self, at: usize, (neighbor, edge): (VertexId, EdgeId)) {
        self.add(self.bit_of_neighbor(at, neighbor));
        self.add(self.bit_of_edge(edge));
    }

    /// Returns true if one of the filters has the bit.
    #[inline]
    fn has(&self, (word, bit): (usize, u64)) -> bool {
        // Acquire, and in this order: a bit that has left the first filter is in the second (`Names::take`).
        let named = self.words[word].named.load(Ordering::Acquire);
        // No branch between the two: a reader asks for one cell after another, and most answers are no.
        (named | self.words[word].taken.load(Ordering::Relaxed)) & bit != 0
    }

    /// Moves all names to the second filter, in place of those that are there.
    fn take(&self) {
        for Word { named, taken } in &self.words {
            let mut bits = named.load(Ordering::Acquire);
            loop {
                taken.store(bits, Ordering::Relaxed);
                // Release: a reader that finds the bits gone finds them in the second filter. Acquire: its partner is the Release
                // in `add`.
                match bits {
                    0 => break,
                    _ => match named.compare_exchange(bits, 0, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(_) => break,
                        Err(more) => bits = more,
                    },
                }
            }
        }
    }

    fn add(&self, (word, bit): (usize, u64)) {
        // Release: a thread that finds the name sees the claim. A bit that is set may be taken just then, so it is set again.
        self.words[word].named.fetch_or(bit, Ordering::Release);
    }
}

impl Ended {
    fn names(&self, slots: usize, changes: usize, memory: &Memory) -> &Names {
        self.0.get_or_init(|| Box::new(Names::new(slots, changes, memory)))
    }

    /// Names the edge of a cell before the list, the one at a slot, is marked (STORE-15). The table has this many slots and is due
    /// after this many changes.
    pub(super) fn name(&self, at: usize, cell: (VertexId, EdgeId), slots: usize, changes: usize, memory: &Memory) {
        self.names(slots, changes, memory).name(at, cell);
    }

    /// Names all edges of the list at a slot before it is marked; otherwise as [`Ended::name`].
    pub(super) fn name_list(&self, at: usize, slots: usize, changes: usize, memory: &Memory) {
        self.names(slots, changes, memory).add((at / 64, 1 << (at % 64)));
    }

    /// Starts loading the words that naming the edge of a cell changes.
    pub(super) fn prefetch(&self, at: usize, (neighbor, edge): (VertexId, EdgeId)) {
        if let Some(names) = self.0.get() {
            for (word, _) in [names.bit_of_neighbor(at, neighbor), names.bit_of_edge(edge)] {
                mangrove_reclaim::prefetch::prefetch(&names.words[word]);
            }
        }
    }

    /// Starts loading the filters, unless they are large: for a reader of many dirty lists.
    pub(crate) fn prefetch_all(&self) {
        let words = self.0.get().map_or(&[][..], |names| &*names.words);
        if words.len() <= AHEAD_WORDS_MAX {
            words.iter().step_by(WORDS_A_LINE).for_each(mangrove_reclaim::prefetch::prefetch);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.get().map_or(0, |names| names.bytes())
    }

    /// For the compaction of the table: moves all names to the second filter.
    pub(crate) fn take(&self) -> Suspects<'_> {
        let suspects = self.suspects();
        suspects.names.into_iter().for_each(Names::take);
        suspects
    }

    /// The edges that have to be checked. A reader that calls this, or that asks what this returns, after it has found a list
    /// may rely on STORE-15 for the list.
    #[inline]
    pub(crate) fn suspects(&self) -> Suspects<'_> {
        Suspects { names: self.0.get().map(|names| &**names) }
    }
}

/// The edges of a table that have to be checked: named edges, and edges that share their bits with these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspects<'a> {
    names: Option<&'a Names>,
}

/// The suspects of one list, which was not named itself.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ListSuspects<'a> {
    names: &'a Names,
    at: usize,
}

impl<'a> Suspects<'a> {
    /// Puts the names back that were taken.
    pub(crate) fn give_back(&self) {
        for Word { named, taken } in self.names.iter().flat_map(|names| &names.words) {
            let taken = taken.load(Ordering::Relaxed);
            if taken != 0 {
                named.fetch_or(taken, Ordering::Release);
            }
        }
    }

    /// Returns true if all edges of the list at a slot have to be checked.
    #[inline]
    pub(crate) fn has_list(&self, at: usize) -> bool {
        self.names.is_some_and(|names| names.has((at / 64, 1 << (at % 64))))
    }

    /// The suspects of the list at a slot, which was not named; `None` if no edge was ever named.
    #[inline]
    pub(crate) fn of_list(&self, at: usize) -> Option<ListSuspects<'a>> {
        self.names.map(|names| ListSuspects { names, at })
    }
}

impl ListSuspects<'_> {
    #[inline]
    fn has_neighbor(&self, neighbor: VertexId) -> bool {
        self.names.has(self.names.bit_of_neighbor(self.at, neighbor))
    }

    /// Returns true if an edge has to be checked that is among those of [`ListSuspects::each_among`].
    #[inline]
    pub(crate) fn has_edge(&self, edge: EdgeId) -> bool {
        self.names.has(self.names.bit_of_edge(edge))
    }

    /// Returns true if the edge of a cell has to be checked.
    #[inline]
    pub(crate) fn has(&self, (neighbor, edge): (VertexId, EdgeId)) -> bool {
        self.has_neighbor(neighbor) && self.has_edge(edge)
    }

    /// Calls `each` with the positions of the edges to these neighbors that have to be checked, if [`ListSuspects::has_edge`] says so, too.
    #[inline]
    pub(crate) fn each_among(&self, neighbors: &[VertexId], mut each: impl FnMut(usize)) {
        for (look, neighbors) in neighbors.chunks(CELLS_A_LOOK).enumerate() {
            let has = |(at, neighbor): (usize, &VertexId)| u64::from(self.has_neighbor(*neighbor)) << at;
            let mut bits = neighbors.iter().enumerate().map(has).fold(0, |bits, bit| bits | bit);
            while bits != 0 {
                each(look * CELLS_A_LOOK + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Puts the name of the edge of a cell back that was taken.
    pub(crate) fn name_again(&self, cell: (VertexId, EdgeId)) {
        self.names.name(self.at, cell);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use mangrove_graph::TabletId;

    /// A cell: its edge has another number than its neighbor.
    fn cell(n: u64) -> (VertexId, EdgeId) {
        (VertexId::new(TabletId(1), n), EdgeId::new(TabletId(2), n * 5 % 10_007))
    }

    fn has(suspects: &Suspects<'_>, at: usize, cell: (VertexId, EdgeId)) -> bool {
        suspects.of_list(at).is_some_and(|of_list| of_list.has(cell))
    }

    #[test]
    fn named_edges_are_suspected_and_few_others_are() {
        let (ended, memory) = (Ended::default(), Memory::new(u64::MAX));
        let suspects = ended.take();
        assert!(suspects.of_list(1).is_none() && !suspects.has_list(1));
        (0..1_000).for_each(|n| ended.name(n as usize % 7, cell(n * 3), 1_024, 1_000, &memory));
        assert_eq!(memory.report().total_bytes(), ended.bytes() as u64);
        let suspects = ended.take();
        assert!((0..1_000).all(|n| has(&suspects, n as usize % 7, cell(n * 3))));
        let others = (0..10_000).filter(|n| n % 3 != 0 || *n >= 3_000);
        let in_vain = others.filter(|&n| has(&suspects, n as usize % 7, cell(n))).count();
        assert!(in_vain < 300, "{in_vain} of 9,000");
        let in_other_lists = (0..1_000).filter(|n| has(&suspects, (*n as usize + 1) % 7, cell(n * 3))).count();
        assert!(in_other_lists < 250, "{in_other_lists} of 1,000");
        let (neighbor, edge) = cell(9);
        let others = |of: &dyn Fn(u64) -> (VertexId, EdgeId)| (0..1_000).filter(|n| has(&suspects, 3, of(*n))).count();
        assert!(others(&|n| (neighbor, cell(n * 3 + 1).1)) < 250, "parallel edges are told apart");
        assert!(has(&suspects, 3, (neighbor.with_generation(5), edge)));

        ended.name(9, cell(5_000_000), 1_024, 1_000, &memory);
        ended.name_list(70, 1_024, 1_000, &memory);
        assert!(has(&suspects, 9, cell(5_000_000)) && suspects.has_list(70) && !suspects.has_list(6));
        let suspects = ended.take();
        let is_left = has(&suspects, 9, cell(5_000_000)) && suspects.has_list(70);
        assert!(is_left, "what came after the names were taken stays for the next compaction");
        assert!((0..1_000).filter(|&n| has(&suspects, n as usize % 7, cell(n * 3))).count() < 100);
        suspects.give_back();
        assert!(ended.take().has_list(70));
        let suspects = ended.take();
        assert!(!has(&suspects, 9, cell(5_000_000)) && !suspects.has_list(70));
        suspects.of_list(9).unwrap().name_again(cell(5_000_000));
        assert!(has(&suspects, 9, cell(5_000_000)));
    }

    #[test]
    fn positions_of_suspects_are_those_of_the_named_neighbors() {
        let (ended, memory) = (Ended::default(), Memory::new(u64::MAX));
        [3, 70, 64, 199].into_iter().for_each(|n| ended.name(12, cell(n), 1_024, 100_000, &memory));
        let neighbors: Vec<VertexId> = (0..200).map(|n| cell(n).0).collect();
        let mut found = Vec::new();
        ended.suspects().of_list(12).unwrap().each_among(&neighbors, |at| found.push(at));
        assert_eq!(found, [3, 64, 70, 199]);
    }

    #[test]
    fn a_filter_that_is_too_small_suspects_more_and_misses_none() {
        let (ended, memory) = (Ended::default(), Memory::new(u64::MAX));
        (0..1_000).for_each(|n| ended.name(5, cell(n), 8, 1, &memory));
        let suspects = ended.take();
        assert!((0..1_000).all(|n| has(&suspects, 5, cell(n))) && has(&suspects, 5, cell(12_345)));
    }
}
