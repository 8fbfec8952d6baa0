//! Settling: a full page whose elements every snapshot sees loses its version words.
//!
//! Version words are there for as long as somebody may see an element differently. When every slot of a page holds an
//! element that all snapshots see and nobody is ending, or none at all, the page is again what a bulk load makes: `clean`
//! slots but some holes, and no words. The words may be wanted again at any moment, by whoever deletes an element there or
//! uses a hole. So they are *closed* first:
//!
//! ```text
//! collector: end words NEVER ─▶ CLOSED, one by one ──▶ clean, holes ──▶ words away
//! deleter:   end word NEVER ─▶ claim; meets CLOSED ──▶ takes new words, whose begins are the base, and claims there
//! ```
//!
//! 1. An end word is claimed by compare-and-swap from `NEVER` only: nobody claims a closed one.
//! 2. If one word cannot be closed, because it is claimed, the others are opened again and the page keeps its words.
//! 3. Readers take `CLOSED` for "not ended", which is true for whom the words are still there: the deletion that they
//!    miss is claimed in new words, later than anything such a reader sees.
//! 4. New words say that the elements began with the base, and that the holes never did. For snapshots from the oldest
//!    one on that is the same as what really was.
//! 5. The places of holes are withdrawn first, and only if they are all there (`free_places`): so nobody is on the way
//!    from such a place to a begin word, which would be taken away under him. He who takes such a place later makes new
//!    words.
//! 6. Who makes new words runs a transaction, or has a place of the page. So between his look at the holes and his words,
//!    no element comes or goes that all snapshots see: he does not make them of holes that are no more.
//!
//! Pages without holes are settled as soon as the last element is seen; those with holes when they were left alone for
//! a while ([`crate::Store::compact`]), since the next element in a hole costs version words for the whole page.
//!
//! One thread at a time settles in a tablet; nobody reserves a slot of a full page, or of one loaded in bulk, but by a free
//! place.

use std::sync::atomic::Ordering;

use crate::epoch::Pin;
use crate::image::SlotSet;
use crate::limbo::Garbage;
use crate::memory::Memory;
use crate::page::PageCore;
use crate::version::{CLOSED, NEVER, TIMESTAMP_MAX, VersionPair};

/// What became of a page that somebody wanted to settle.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Settling {
    /// It is settled.
    Done,
    /// Some snapshot does not see an element yet: worth another look later.
    TooYoung,
    /// Somebody ends an element, or there are holes: whoever begins the next one here lists the page again, and a walk
    /// over quiet pages finds it.
    NotNow,
}

/// The page of a kind that a collector is about to settle.
pub(crate) struct Closing<'a> {
    pub(crate) memory: &'a Memory,
    pub(crate) garbage: &'a mut Vec<Garbage>,
    pub(crate) pin: &'a Pin,
    /// How many places were withdrawn: as many holes there may be.
    pub(crate) holes: usize,
}

impl PageCore {
    /// How many slots have no element and are nobody's, as the version words say.
    pub(crate) fn count_holes(&self, pin: &Pin) -> usize {
        let words = self.current_versions(pin).unwrap_or_default();
        words[..self.used().min(words.len())].iter().filter(|pair| pair.load() == (NEVER, NEVER)).count()
    }

    /// Takes the version words away if every snapshot from `oldest` on sees every slot alike. `while_closed` is told the
    /// holes before that, at a time at which no element of the page is over, or becomes it.
    pub(crate) fn settle(
        &self,
        oldest: u64,
        closing: &mut Closing<'_>,
        while_closed: impl FnOnce(Option<&SlotSet>, &mut Closing<'_>),
    ) -> Settling {
        let Some(words) = self.current_versions(closing.pin) else { return Settling::NotNow };
        let filled = if self.is_full_for_good() { self.used() } else { 0 };
        let (mut is_young, mut holes) = (false, SlotSet::default());
        for (at, pair) in words[..filled].iter().enumerate() {
            match pair.load() {
                (NEVER, NEVER) if closing.holes > 0 => holes.insert(at),
                (begin, NEVER) if begin <= TIMESTAMP_MAX => is_young |= begin > oldest,
                _ => return Settling::NotNow,
            }
        }
        if is_young {
            return Settling::TooYoung;
        }
        // A place that is just being given back is a hole, too, and was not withdrawn.
        if filled == 0 || holes.len() != closing.holes || !close(&words[..filled], &holes) {
            return Settling::NotNow;
        }
        let holes = (!holes.is_empty()).then_some(holes);
        while_closed(holes.as_ref(), closing);
        self.take_versions(filled, holes, closing.memory, closing.garbage);
        Settling::Done
    }
}

/// Closes the end words of all elements, or none.
fn close(words: &[VersionPair], holes: &SlotSet) -> bool {
    let elements = || words.iter().enumerate().filter(|(at, _)| !holes.contains(*at));
    for (at, pair) in elements() {
        if pair.end.compare_exchange(NEVER, CLOSED, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            // Nobody else changes a closed word.
            elements()
                .take_while(|(other, _)| *other < at)
                .for_each(|(_, pair)| pair.end.store(NEVER, Ordering::SeqCst));
            return false;
        }
    }
    true
}
