//! Freezing: a full page whose elements every snapshot sees loses its version words.
//!
//! A page needs version words only while snapshots may disagree about an element. When every slot of a page is either
//! free or holds an element that all snapshots see and no transaction is ending, the collector takes the words away. A
//! transaction may want words again at any time: to delete an element of the page, or to use a free slot. So the
//! collector *closes* the end words first:
//!
//! ```text
//! collector: end words NEVER ─▶ CLOSED, one by one ──▶ publishes the free slots ──▶ takes the words away
//! deleter:   end word NEVER ─▶ claim
//!            meets CLOSED ──▶ waits until the words are open again, and claims there, or until they are gone
//!            no words ──▶ makes new words, in which all elements began with the base, and claims there
//! ```
//!
//! - **STORE-21.** An end word is claimed by compare-and-swap from `NEVER` only, so no transaction claims a `CLOSED`
//!   word. A transaction that meets one waits until the collector has opened the word or taken it away.
//! - **STORE-22.** A page that is full and not frozen is looked at again after the commit of the next element that
//!   begins on it. A page with free slots is found by a walk over pages that were left alone.
//! - **STORE-24.** A page is frozen with free slots only after all of these were withdrawn from the account of free
//!   slots, and only if they are all its free slots. So no transaction is between taking such a slot and claiming its
//!   begin word.
//!
//! Why this is right:
//!
//! 1. If one word cannot be closed because it is claimed, the collector opens the others again, and the page keeps its
//!    words.
//! 2. Readers take `CLOSED` for "not ended". That is true for every reader that still has these words: a deletion that
//!    it misses is claimed in new words, later than anything that the reader sees.
//! 3. New words say that the elements began with the base and that the free slots never had an element. For snapshots
//!    from the oldest one on, that is the same as what happened.
//! 4. A thread that makes new words runs a transaction or owns a slot of the page. That holds back the oldest snapshot
//!    or the next freezing. So the free slots by which it fills in the words are still right when it publishes them.
//!
//! A page without free slots is frozen as soon as every snapshot sees its youngest element. A page with free slots is
//! frozen when it was left alone for a while ([`crate::Store::compact`]), since the next element in a free slot
//! costs version words for the whole page.
//!
//! One thread at a time freezes in a tablet. No writer reserves a slot of a full page, or of one that was loaded in
//! bulk, other than through the account of free slots.

use std::sync::atomic::Ordering;

use mangrove_reclaim::Pin;

use crate::memory::{Garbage, Memory};
use crate::page::{PageCore, SlotSet};
use crate::version::{CLOSED, NEVER, Standing, VersionPair};

/// The outcome of an attempt to freeze a page.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Freezing {
    /// It is frozen.
    Done,
    /// Some snapshot does not see an element yet: worth another look after that snapshot.
    TooYoung,
    /// The page is not full, a transaction ends an element, or free slots were not withdrawn. The next element that
    /// begins here lists the page again, or a walk over pages that were left alone finds it (STORE-22).
    NotNow,
}

/// The things that a collector freezes a page with.
pub(crate) struct Closing<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) garbage: &'a mut Vec<Garbage>,
    pub(crate) pin: &'a Pin,
    /// The number of slots that were withdrawn. The page must have exactly as many free slots (STORE-24).
    pub(crate) free_slots: usize,
}

impl PageCore {
    /// Returns true if so many used slots have no element, and all others have one that no transaction has ended.
    pub(crate) fn has_empty_slots(&self, count: usize, pin: &Pin) -> bool {
        self.may_be_frozen(count) && self.count_empty_slots(pin) == count
    }

    /// Returns false if some element has ended and still has its slot, or more slots than these are free: then the page
    /// is not frozen now. Elements are counted. So the many pages for which this is so beside a writer cost no look at a
    /// thousand version words.
    fn may_be_frozen(&self, free_slots: usize) -> bool {
        self.used() == self.live_count() as usize + free_slots
    }

    /// How many used slots have no element, as the version words say. A reserved slot counts until its owner claims the
    /// begin word.
    fn count_empty_slots(&self, pin: &Pin) -> usize {
        let words = self.current_versions(pin).unwrap_or_default();
        words[..self.used().min(words.len())].iter().filter(|pair| pair.load() == (NEVER, NEVER)).count()
    }

    /// Takes the version words away if every snapshot from `oldest` on sees every slot alike. Before that it calls
    /// `while_closed` with the free slots, at a time at which no element of the page is ended or being ended.
    pub(crate) fn freeze(
        &self,
        oldest: u64,
        closing: &mut Closing<'_>,
        while_closed: impl FnOnce(Option<&SlotSet>, &mut Closing<'_>),
    ) -> Freezing {
        if !self.may_be_frozen(closing.free_slots) {
            return Freezing::NotNow;
        }
        let Some(words) = self.current_versions(closing.pin) else { return Freezing::NotNow };
        // 0 for a page that is not full: it is not frozen.
        let filled = if self.is_full_for_good() { self.used() } else { 0 };
        let (mut is_young, mut free_slots) = (false, SlotSet::default());
        for (at, pair) in words[..filled].iter().enumerate() {
            match Standing::of(pair.load(), oldest) {
                Standing::Vacant if closing.free_slots > 0 => free_slots.insert(at),
                Standing::Frozen => {}
                Standing::Young => is_young = true,
                Standing::Vacant | Standing::Changing | Standing::Over => return Freezing::NotNow,
            }
        }
        if is_young {
            return Freezing::TooYoung;
        }
        // STORE-24. A slot that is just being given back is free, too, but was not withdrawn.
        if filled == 0 || free_slots.len() != closing.free_slots || !close(&words[..filled], &free_slots) {
            return Freezing::NotNow;
        }
        let free_slots = (!free_slots.is_empty()).then_some(free_slots);
        while_closed(free_slots.as_ref(), closing);
        self.take_versions(filled, free_slots, closing.memory, closing.garbage);
        Freezing::Done
    }
}

/// Closes the end words of all elements, or of none. Returns true if they are closed.
fn close(words: &[VersionPair], free_slots: &SlotSet) -> bool {
    let elements = || words.iter().enumerate().filter(|(at, _)| !free_slots.contains(*at));
    for (at, pair) in elements() {
        if pair.end.compare_exchange(NEVER, CLOSED, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            // STORE-21: no other thread changes a closed word.
            elements()
                .take_while(|(other, _)| *other < at)
                .for_each(|(_, pair)| pair.end.store(NEVER, Ordering::SeqCst));
            return false;
        }
    }
    true
}
