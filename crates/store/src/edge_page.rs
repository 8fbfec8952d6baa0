//! Pages of edges: what they have beside what all pages have, the ends of each edge and the votes on its place.
//!
//! The ends are an array of the page's slots. A settled page of which much is free has them *packed*: those of its
//! elements only, in the order of their slots, found by counting the elements before. They are unpacked before the first
//! of its places is used again.
//!
//! ```text
//! ends      source 8 | target 8                      a slot
//! packed    set of slots 128 | elements before each word 2 x 16 | source 8, target 8      an element
//! ```
//!
//! - The one form is published before the other is taken away, so a reader finds one of the two, if need be at the
//!   second look. Both say the same of every element that the reader may ask for.
//! - They are packed while nobody has a place of the page that was handed out (`free_places`), and written to by nobody
//!   but who has.

use std::sync::atomic::Ordering;

use mangrove_graph::{LabelSetId, VertexId};

use crate::epoch::{self, EpochCell, EpochSlice, Pin};
use crate::image::SlotSet;
use crate::limbo::Garbage;
use crate::memory::{Memory, RecordKind};
use crate::page::PageCore;
use crate::sync::{AtomicU8, AtomicU64, spin_loop};

#[derive(Debug, Default)]
struct Ends {
    source: AtomicU64,
    target: AtomicU64,
}

impl Ends {
    fn set(&self, source: VertexId, target: VertexId) {
        self.source.store(source.to_bits(), Ordering::Relaxed);
        self.target.store(target.to_bits(), Ordering::Relaxed);
    }

    fn get(&self) -> (VertexId, VertexId) {
        let [source, target] = [&self.source, &self.target].map(|end| end.load(Ordering::Relaxed));
        (VertexId::from_bits(source), VertexId::from_bits(target))
    }
}

/// The ends of some slots.
#[derive(Debug)]
struct PackedEnds {
    slots: SlotSet,
    /// How many of the slots are before each word of the set.
    before: [u16; SlotSet::WORDS],
    ends: Box<[(VertexId, VertexId)]>,
}

impl PackedEnds {
    fn new(slots: SlotSet, of: &[Ends]) -> Self {
        let (mut before, mut count) = ([0; SlotSet::WORDS], 0);
        for (word, before) in slots.words().iter().zip(&mut before) {
            *before = count;
            count += word.count_ones() as u16;
        }
        PackedEnds { slots, before, ends: slots.iter().map(|at| of[at].get()).collect() }
    }

    /// The place of a slot's ends, if it is in the set.
    fn place(&self, at: usize) -> Option<usize> {
        let below = self.slots.words()[at / 64] & ((1 << (at % 64)) - 1);
        self.slots.contains(at).then(|| usize::from(self.before[at / 64]) + below.count_ones() as usize)
    }

    /// The ends of a slot; of one that is not in the set those of no edge.
    fn get(&self, at: usize) -> (VertexId, VertexId) {
        self.place(at).map_or((VertexId::from_bits(0), VertexId::from_bits(0)), |place| self.ends[place])
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ends)
    }
}

/// A page of edges with their ends.
#[derive(Debug)]
pub(crate) struct EdgePage {
    pub(crate) core: PageCore,
    /// There, or `packed` is.
    ends: EpochSlice<Ends>,
    packed: EpochCell<PackedEnds>,
    /// How many parts of an edge that is over are gone: see [`EdgePage::vote`]. Made with the first vote.
    votes: EpochSlice<AtomicU8>,
}

/// The cells of an edge leave two lists, and its columns are cleared: then its place is free.
const VOTES: u8 = 3;
/// The ends of a settled page are packed when this part of its slots is free.
const PACKED_PART: usize = 8;

impl EdgePage {
    /// A page for transactions.
    pub(crate) fn live(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::live(label, capacity, memory), memory)
    }

    /// A page to be filled in bulk.
    pub(crate) fn clean(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::clean(label, capacity), memory)
    }

    fn with_core(core: PageCore, memory: &Memory) -> Self {
        let (ends, votes) = (EpochSlice::empty(core.capacity()), EpochSlice::empty(core.capacity()));
        let page = EdgePage { ends, packed: EpochCell::default(), core, votes };
        memory.add(RecordKind::EdgePage, size_of::<EdgePage>());
        page.unpacked(&epoch::pin(), memory);
        page
    }

    fn own_bytes(&self) -> usize {
        let pin = epoch::pin();
        let packed = self.packed.get(&pin).map_or(0, PackedEnds::bytes);
        size_of::<EdgePage>() + self.ends.bytes() + packed + self.votes.bytes()
    }

    // --- Votes --------------------------------------------------------------------------------------

    /// Starts loading what [`EdgePage::vote`] changes.
    #[inline]
    pub(crate) fn prefetch_vote(&self, at: usize, pin: &Pin) {
        if let Some(votes) = self.votes.get(pin) {
            crate::prefetch::prefetch(&votes[at]);
        }
    }

    /// Says that a part of an edge that is over is gone. Whether it was the last, so that the place may be given back.
    pub(crate) fn vote(&self, at: usize, memory: &Memory, pin: &Pin) -> bool {
        let capacity = self.core.capacity();
        let (votes, is_new) = self.votes.get_or_init(pin, || (0..capacity).map(|_| AtomicU8::new(0)).collect());
        if is_new {
            memory.add(RecordKind::EdgePage, size_of_val(votes));
        }
        // Acquire and Release: who has the last vote gives back what the others have let go.
        let is_last = votes[at].fetch_add(1, Ordering::AcqRel) + 1 == VOTES;
        if is_last {
            // For the next element: nobody else is left.
            votes[at].store(0, Ordering::Relaxed);
        }
        is_last
    }

    // --- Ends ---------------------------------------------------------------------------------------

    /// The ends of all slots, unpacked where they are packed.
    fn unpacked<'p>(&'p self, pin: &'p Pin, memory: &Memory) -> &'p [Ends] {
        let (ends, is_new) = self.ends.get_or_init(pin, || {
            let ends: Box<[Ends]> = (0..self.core.capacity()).map(|_| Ends::default()).collect();
            if let Some(packed) = self.packed.get(pin) {
                packed.slots.iter().zip(&packed.ends).for_each(|(at, &(source, target))| ends[at].set(source, target));
            }
            ends
        });
        if is_new {
            memory.add(RecordKind::EdgePage, size_of_val(ends));
        }
        ends
    }

    /// Sets the ends, before the edge begins. What is left of a packed form stays until the page is settled again.
    // Relaxed: whoever sees the edge begun (or published in bulk) sees its ends.
    pub(crate) fn set_ends(&self, at: usize, source: VertexId, target: VertexId, memory: &Memory, pin: &Pin) {
        self.unpacked(pin, memory)[at].set(source, target);
    }

    /// As [`EdgePage::set_ends`], of a page that nobody else has yet.
    pub(crate) fn set_own_ends(&mut self, at: usize, source: VertexId, target: VertexId) {
        let ends = self.ends.get_mut().expect("a page is made with the ends of all slots");
        ends[at].set(source, target);
    }

    /// Source and target.
    #[inline]
    pub(crate) fn ends(&self, at: usize, pin: &Pin) -> (VertexId, VertexId) {
        loop {
            if let Some(ends) = self.ends.get(pin) {
                return ends[at].get();
            }
            if let Some(packed) = self.packed.get(pin) {
                return packed.get(at);
            }
            // Unpacked, since we looked for that form.
            spin_loop();
        }
    }

    #[inline]
    pub(crate) fn prefetch_ends(&self, at: usize, pin: &Pin) {
        if let Some(ends) = self.ends.get(pin) {
            ends.get(at).into_iter().for_each(crate::prefetch::prefetch);
        } else if let Some(packed) = self.packed.get(pin)
            && let Some(place) = packed.place(at)
        {
            crate::prefetch::prefetch(&packed.ends[place]);
        }
    }

    /// Gives up what a settled page does not need: votes, and the ends of places without an element. By a collector,
    /// while it has withdrawn the page's free places and closed its end words: so no edge here is over, or begins.
    pub(crate) fn shrink(&self, holes: Option<&SlotSet>, memory: &Memory, garbage: &mut Vec<Garbage>, pin: &Pin) {
        let votes = self.votes.bytes();
        if votes > 0 {
            memory.remove(RecordKind::EdgePage, votes);
            garbage.extend(self.votes.take().map(Garbage::Box));
        }
        let slots: SlotSet =
            (0..self.core.used()).filter(|&at| holes.is_none_or(|holes| !holes.contains(at))).collect();
        let free = holes.map_or(0, SlotSet::len);
        if free * PACKED_PART < self.core.capacity() {
            // Used again since they were packed.
            if self.ends.is_some() {
                self.replace_packed(None, memory, garbage, pin);
            }
        } else if self.ends.is_some() || self.packed.get(pin).is_some_and(|packed| packed.slots != slots) {
            // The new form first, the old one then.
            let ends = self.unpacked(pin, memory);
            self.replace_packed(Some(PackedEnds::new(slots, ends)), memory, garbage, pin);
            memory.remove(RecordKind::EdgePage, size_of_val(ends));
            garbage.extend(self.ends.take().map(Garbage::Box));
        }
    }

    fn replace_packed(&self, new: Option<PackedEnds>, memory: &Memory, garbage: &mut Vec<Garbage>, pin: &Pin) {
        let before = self.packed.get(pin).map_or(0, PackedEnds::bytes);
        memory.resize(RecordKind::EdgePage, before, new.as_ref().map_or(0, PackedEnds::bytes));
        garbage.extend(self.packed.swap(new).map(Garbage::Box));
    }

    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        add(RecordKind::EdgePage, self.own_bytes());
        self.core.add_bytes(add);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::TabletId;

    use super::*;
    use crate::limbo::Limbo;

    fn vertex(number: u64) -> VertexId {
        VertexId::new(TabletId(1), number)
    }

    #[test]
    fn packed_ends_are_those_of_the_elements_and_come_back() {
        let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
        let page = EdgePage::clean(LabelSetId(0), 1_024, &memory);
        let pin = epoch::pin();
        (0..1_024).for_each(|at| page.set_ends(at, vertex(at as u64), vertex(at as u64 + 7), &memory, &pin));
        (0..1_024).for_each(|_| assert!(page.core.reserve().is_some()));
        let is_hole = |at: &usize| at % 3 == 1 || *at > 900;
        let holes: SlotSet = (0..1_024).filter(is_hole).collect();
        let mut garbage = Vec::new();
        assert!(!page.vote(5, &memory, &pin));
        let before = memory.report().total_bytes();
        page.shrink(Some(&holes), &memory, &mut garbage, &pin);
        assert!(memory.report().total_bytes() < before);
        assert_eq!(
            page.own_bytes() as u64 + page.core.current_versions(&pin).map_or(0, |words| size_of_val(words) as u64),
            { memory.report().total_bytes() }
        );
        for at in 0..1_024 {
            let expected =
                if is_hole(&at) { (0, 0) } else { (vertex(at as u64).to_bits(), vertex(at as u64 + 7).to_bits()) };
            let (source, target) = page.ends(at, &pin);
            assert_eq!((source.to_bits(), target.to_bits()), expected, "{at}");
        }
        // One of the places is used again.
        page.set_ends(1, vertex(8), vertex(9), &memory, &pin);
        assert_eq!((page.ends(1, &pin), page.ends(0, &pin)), ((vertex(8), vertex(9)), (vertex(0), vertex(7))));
        page.shrink(None, &memory, &mut garbage, &pin);
        assert_eq!(page.ends(1_023, &pin), (VertexId::from_bits(0), VertexId::from_bits(0)));
        drop(pin);
        limbo.take_in(garbage);
        epoch::wait_for_readers();
        limbo.release_boxes();
    }
}
