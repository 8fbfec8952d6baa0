//! Pages of edges: a [`PageCore`], and the ends of each edge.
//!
//! The ends are an array of the page's slots. A frozen page with many free slots has them *packed*: only the ends of
//! its elements, in the order of their slots, found by counting the elements before. They are unpacked before the first
//! free slot is used again.
//!
//! ```text
//! ends      source 8 | target 8                      a slot
//! packed    set of slots 128 | elements before each word 2 x 16 | source 8, target 8      an element
//! ```
//!
//! One form of the ends is published before the other is taken away, so a reader finds one of the two, at the latest at
//! its second look. Both have the same ends for every element that the reader may ask for. Ends are packed only while
//! no writer owns a slot of the page (STORE-24), and are written only by a writer that owns one.

use std::sync::atomic::Ordering;

use mangrove_graph::{LabelSetId, VertexId};
use mangrove_reclaim::sync::{AtomicU64, spin_loop};
use mangrove_reclaim::{EpochCell, EpochSlice, Pin, epoch};

use crate::memory::{Garbage, Memory, RecordKind};
#[cfg(not(feature = "model"))]
use crate::page::SECOND_LINE;
use crate::page::{PageCore, SlotSet};

/// The ends of one slot.
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

    #[inline]
    fn get(&self) -> (VertexId, VertexId) {
        let of = |end: &AtomicU64| VertexId::from_bits(end.load(Ordering::Relaxed));
        (of(&self.source), of(&self.target))
    }
}

/// The ends of the slots in a set.
#[derive(Debug)]
struct PackedEnds {
    slots: SlotSet,
    /// How many slots of the set are before each of its words.
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

    /// The index of a slot's ends, if the slot is in the set.
    fn index_of(&self, at: usize) -> Option<usize> {
        let below = self.slots.words()[at / 64] & ((1 << (at % 64)) - 1);
        self.slots.contains(at).then(|| usize::from(self.before[at / 64]) + below.count_ones() as usize)
    }

    /// The ends of a slot; for a slot that is not in the set, those of no edge.
    fn get(&self, at: usize) -> (VertexId, VertexId) {
        self.index_of(at).map_or((VertexId::from_bits(0), VertexId::from_bits(0)), |index| self.ends[index])
    }

    fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.ends)
    }
}

/// A page of edges with their ends.
#[derive(Debug)]
#[repr(C, align(64))]
pub(crate) struct EdgePage {
    /// The ends of all slots. These or `packed` exist. If both do, these are right.
    ends: EpochSlice<Ends>,
    pub(crate) core: PageCore,
    packed: EpochCell<PackedEnds>,
}

#[cfg(not(feature = "model"))]
const _: () = assert!(std::mem::offset_of!(EdgePage, core) + SECOND_LINE == 64, "cache lines are as `PageCore` says");

/// The ends of a frozen page are packed when at least one in this many of its slots is free.
const PACKED_PART: usize = 8;

impl EdgePage {
    /// Makes a page that transactions write to.
    pub(crate) fn live(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::live(label, capacity, memory), memory)
    }

    /// Makes a page that a bulk load fills.
    pub(crate) fn clean(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::clean(label, capacity), memory)
    }

    fn with_core(core: PageCore, memory: &Memory) -> Self {
        let page = EdgePage { ends: EpochSlice::empty(core.capacity()), core, packed: EpochCell::default() };
        memory.add(RecordKind::EdgePage, size_of::<EdgePage>());
        page.unpacked(&epoch::pin(), memory);
        page
    }

    /// The bytes of the page without its core.
    fn own_bytes(&self) -> usize {
        let pin = epoch::pin();
        let packed = self.packed.get(&pin).map_or(0, PackedEnds::bytes);
        size_of::<EdgePage>() + self.ends.bytes() + packed
    }

    // --- Ends ---------------------------------------------------------------------------------------

    /// The ends of all slots. If they are packed, they are unpacked.
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

    /// Sets the ends, before the edge begins. A packed form that exists stays until the page is frozen again.
    // Relaxed: a reader that sees the edge begun (or published in bulk) sees its ends.
    pub(crate) fn set_ends(&self, at: usize, source: VertexId, target: VertexId, memory: &Memory, pin: &Pin) {
        self.unpacked(pin, memory)[at].set(source, target);
    }

    /// As [`EdgePage::set_ends`], for a page that is not published.
    pub(crate) fn set_own_ends(&mut self, at: usize, source: VertexId, target: VertexId) {
        let ends = self.ends.get_mut().expect("a page is made with the ends of all slots");
        ends[at].set(source, target);
    }

    /// Source and target of the edge in a slot.
    #[inline]
    pub(crate) fn ends(&self, at: usize, pin: &Pin) -> (VertexId, VertexId) {
        loop {
            if let Some(ends) = self.ends.get(pin) {
                return ends[at].get();
            }
            if let Some(packed) = self.packed.get(pin) {
                return packed.get(at);
            }
            // The ends were unpacked after this loop looked for that form.
            spin_loop();
        }
    }

    /// Starts loading the ends of a slot.
    #[inline]
    pub(crate) fn prefetch_ends(&self, at: usize, pin: &Pin) {
        if let Some(ends) = self.ends.get(pin) {
            ends.get(at).into_iter().for_each(mangrove_reclaim::prefetch::prefetch);
        } else if let Some(packed) = self.packed.get(pin)
            && let Some(index) = packed.index_of(at)
        {
            mangrove_reclaim::prefetch::prefetch(&packed.ends[index]);
        }
    }

    /// Gives up the memory that a frozen page does not need: the ends of free slots. The caller
    /// is a collector that has withdrawn the page's free slots and closed its end words. So no edge here has ended, and
    /// none begins or ends meanwhile (STORE-21, STORE-24).
    pub(crate) fn shrink(&self, free_slots: Option<&SlotSet>, memory: &Memory, garbage: &mut Vec<Garbage>, pin: &Pin) {
        let slots: SlotSet =
            (0..self.core.used()).filter(|&at| free_slots.is_none_or(|free_slots| !free_slots.contains(at))).collect();
        let free = free_slots.map_or(0, SlotSet::len);
        if free * PACKED_PART < self.core.capacity() {
            // A packed form is stale if the ends were unpacked after it was made.
            if self.ends.is_some() {
                self.replace_packed(None, memory, garbage, pin);
            }
        } else if self.ends.is_some() || self.packed.get(pin).is_some_and(|packed| packed.slots != slots) {
            // The new form is published before the old one goes.
            let ends = self.unpacked(pin, memory);
            self.replace_packed(Some(PackedEnds::new(slots, ends)), memory, garbage, pin);
            memory.remove(RecordKind::EdgePage, size_of_val(ends));
            garbage.extend(self.ends.take().map(Garbage::Box));
        }
    }

    /// Replaces the packed form, or takes it away.
    fn replace_packed(&self, new: Option<PackedEnds>, memory: &Memory, garbage: &mut Vec<Garbage>, pin: &Pin) {
        let before = self.packed.get(pin).map_or(0, PackedEnds::bytes);
        memory.resize(RecordKind::EdgePage, before, new.as_ref().map_or(0, PackedEnds::bytes));
        garbage.extend(self.packed.swap(new).map(Garbage::Box));
    }

    /// Calls `add` with the sizes of the page's parts in bytes.
    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        add(RecordKind::EdgePage, self.own_bytes());
        self.core.add_bytes(add);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::TabletId;

    use super::*;
    use crate::memory::Limbo;

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
        let is_free = |at: &usize| at % 3 == 1 || *at > 900;
        let free_slots: SlotSet = (0..1_024).filter(is_free).collect();
        let mut garbage = Vec::new();
        let before = memory.report().total_bytes();
        page.shrink(Some(&free_slots), &memory, &mut garbage, &pin);
        assert!(memory.report().total_bytes() < before);
        assert_eq!(
            page.own_bytes() as u64 + page.core.current_versions(&pin).map_or(0, |words| size_of_val(words) as u64),
            { memory.report().total_bytes() }
        );
        for at in 0..1_024 {
            let expected =
                if is_free(&at) { (0, 0) } else { (vertex(at as u64).to_bits(), vertex(at as u64 + 7).to_bits()) };
            let (source, target) = page.ends(at, &pin);
            assert_eq!((source.to_bits(), target.to_bits()), expected, "{at}");
        }
        // One of the slots is used again.
        page.set_ends(1, vertex(8), vertex(9), &memory, &pin);
        assert_eq!((page.ends(1, &pin), page.ends(0, &pin)), ((vertex(8), vertex(9)), (vertex(0), vertex(7))));
        page.shrink(None, &memory, &mut garbage, &pin);
        assert_eq!(page.ends(1_023, &pin), (VertexId::from_bits(0), VertexId::from_bits(0)));
        drop(pin);
        limbo.take_in(garbage);
        epoch::wait_for_readers();
        crate::memory::release_boxes(&limbo);
    }
}
