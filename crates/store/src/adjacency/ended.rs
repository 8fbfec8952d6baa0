//! The packed edges of a table that may have ended since it was last compacted: a Bloom filter of one hash.
//!
//! A dirty list says that some edge of its run has ended, but not which. If readers and compaction *checked* every edge
//! of the run, that is, read its version words, each would cost them a cache line. So a transaction that ends an edge
//! first *names* the edge: it sets the edge's bit in the filter. Only named edges are checked. A transaction that ends
//! all edges of a list names the list.
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

use mangrove_graph::EdgeId;
use mangrove_reclaim::sync::AtomicU64;

use crate::memory::{Memory, RecordKind};

/// Bits for every change that the table takes until it is due: one other edge in 16 is checked in vain, at most.
const BITS_A_CHANGE: usize = 16;
/// Bits for every slot of the page, at least, since tables grow.
const BITS_A_SLOT: usize = 8;
const BITS_MIN: usize = 64;
/// How many edges are looked up together.
const EDGES_A_LOOK: usize = 64;

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
    fn bit_of(&self, edge: EdgeId) -> (usize, u64) {
        let bit = edge.to_bits().wrapping_mul(0x9e37_79b9_7f4a_7c15) >> self.shift;
        (self.first as usize + (bit >> 6) as usize, 1 << (bit & 63))
    }

    /// Returns true if one of the filters has the bit.
    #[inline]
    fn has(&self, (word, bit): (usize, u64)) -> bool {
        // Acquire, and in this order: a bit that has left the first filter is in the second (`Names::take`).
        let named = self.words[word].named.load(Ordering::Acquire);
        // No branch between the two: a reader asks for one edge after another, and most answers are no.
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

    /// Names an edge before its list is marked (STORE-15). The table has this many slots and is due after this many
    /// changes.
    pub(super) fn name(&self, edge: EdgeId, slots: usize, changes: usize, memory: &Memory) {
        let names = self.names(slots, changes, memory);
        names.add(names.bit_of(edge));
    }

    /// Names all edges of the list at a slot before it is marked; otherwise as [`Ended::name`].
    pub(super) fn name_list(&self, at: usize, slots: usize, changes: usize, memory: &Memory) {
        self.names(slots, changes, memory).add((at / 64, 1 << (at % 64)));
    }

    /// Starts loading the word that naming an edge changes.
    pub(super) fn prefetch(&self, edge: EdgeId) {
        if let Some(names) = self.0.get() {
            mangrove_reclaim::prefetch::prefetch(&names.words[names.bit_of(edge).0]);
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

/// The edges of a table that have to be checked: named edges, and edges that share a bit with one of these.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Suspects<'a> {
    names: Option<&'a Names>,
}

impl Suspects<'_> {
    /// Returns true if no edge was ever named.
    pub(crate) fn is_empty(&self) -> bool {
        self.names.is_none()
    }

    /// Puts the names back that were taken.
    pub(crate) fn give_back(&self) {
        for Word { named, taken } in self.names.iter().flat_map(|names| &names.words) {
            let taken = taken.load(Ordering::Relaxed);
            if taken != 0 {
                named.fetch_or(taken, Ordering::Release);
            }
        }
    }

    /// Puts the name of an edge back that was taken.
    pub(crate) fn name_again(&self, edge: EdgeId) {
        self.names.iter().for_each(|names| names.add(names.bit_of(edge)));
    }

    /// Returns true if all edges of the list at a slot have to be checked.
    #[inline]
    pub(crate) fn has_list(&self, at: usize) -> bool {
        self.names.is_some_and(|names| names.has((at / 64, 1 << (at % 64))))
    }

    /// Calls `each` with the positions of the edges that have to be checked, of a list that was not named.
    #[inline]
    pub(crate) fn each_among(&self, edges: &[EdgeId], mut each: impl FnMut(usize)) {
        let Some(names) = self.names else { return };
        for (look, edges) in edges.chunks(EDGES_A_LOOK).enumerate() {
            let has = |(at, edge): (usize, &EdgeId)| u64::from(names.has(names.bit_of(*edge))) << at;
            let mut bits = edges.iter().enumerate().map(has).fold(0, |bits, bit| bits | bit);
            while bits != 0 {
                each(look * EDGES_A_LOOK + bits.trailing_zeros() as usize);
                bits &= bits - 1;
            }
        }
    }

    /// Returns true if an edge of a list that was not named has to be checked.
    #[inline]
    pub(crate) fn has(&self, edge: EdgeId) -> bool {
        self.names.is_some_and(|names| names.has(names.bit_of(edge)))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use mangrove_graph::TabletId;

    fn edge(n: u64) -> EdgeId {
        EdgeId::new(TabletId(1), n)
    }

    #[test]
    fn named_edges_are_suspected_and_few_others_are() {
        let (ended, memory) = (Ended::default(), Memory::new(u64::MAX));
        let suspects = ended.take();
        assert!(suspects.is_empty() && !suspects.has(edge(1)) && !suspects.has_list(1));
        (0..1_000).for_each(|n| ended.name(edge(n * 3), 1_024, 1_000, &memory));
        assert_eq!(memory.report().total_bytes(), ended.bytes() as u64);
        let suspects = ended.take();
        assert!((0..1_000).all(|n| suspects.has(edge(n * 3))));
        let others = (0..10_000).filter(|n| n % 3 != 0 || *n >= 3_000);
        let in_vain = others.filter(|&n| suspects.has(edge(n))).count();
        assert!(in_vain < 1_200, "{in_vain} of 9,000");

        ended.name(edge(5_000_000), 1_024, 1_000, &memory);
        ended.name_list(70, 1_024, 1_000, &memory);
        assert!(suspects.has(edge(5_000_000)) && suspects.has_list(70) && !suspects.has_list(6));
        let suspects = ended.take();
        let is_left = suspects.has(edge(5_000_000)) && suspects.has_list(70);
        assert!(is_left, "what came after the names were taken stays for the next compaction");
        assert!((0..1_000).filter(|&n| suspects.has(edge(n * 3))).count() < 100);
        suspects.give_back();
        assert!(ended.take().has_list(70));
        let suspects = ended.take();
        assert!(!suspects.has(edge(5_000_000)) && !suspects.has_list(70));
    }

    #[test]
    fn a_filter_that_is_too_small_suspects_more_and_misses_none() {
        let (ended, memory) = (Ended::default(), Memory::new(u64::MAX));
        (0..1_000).for_each(|n| ended.name(edge(n), 8, 1, &memory));
        let suspects = ended.take();
        assert!((0..1_000).all(|n| suspects.has(edge(n))) && suspects.has(edge(12_345)));
    }
}
