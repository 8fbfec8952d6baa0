//! Settling: a full page whose elements every snapshot sees loses its version words.
//!
//! Version words are there for as long as somebody may see an element differently. When every slot of a page holds an
//! element that all snapshots see and nobody is ending, the page is again what a bulk load makes: `clean` slots and no
//! words. The words may be wanted again at any moment, by whoever deletes an element there. So they are *closed* first:
//!
//! ```text
//! collector: end words NEVER ─▶ CLOSED, one by one ──▶ clean = all ──▶ words away
//! deleter:   end word NEVER ─▶ claim; meets CLOSED ──▶ takes new words, whose begins are the base, and claims there
//! ```
//!
//! 1. An end word is claimed by compare-and-swap from `NEVER` only: nobody claims a closed one.
//! 2. If one word cannot be closed, because it is claimed, the others are opened again and the page keeps its words.
//! 3. Readers take `CLOSED` for "not ended", which is true for whom the words are still there: the deletion that they
//!    miss is claimed in new words, later than anything such a reader sees.
//! 4. New words say that the elements began with the base. For snapshots from the oldest one on that is the same as
//!    when they really did.
//!
//! One thread at a time settles in a tablet; nobody reserves a slot of a full page, or of one loaded in bulk.

use std::sync::atomic::Ordering;

use crate::epoch::{Pin, Retired};
use crate::memory::{Memory, RecordKind};
use crate::page::PageCore;
use crate::version::{CLOSED, NEVER, TIMESTAMP_MAX, VersionPair};

/// What became of a page that somebody wanted to settle.
#[derive(Debug)]
pub(crate) enum Settling {
    /// It is settled; the words go to a limbo.
    Done(Retired),
    /// Some snapshot does not see an element yet: worth another look later.
    TooYoung,
    /// Places are free, or somebody ends an element: whoever begins the next one here lists the page again.
    NotNow,
}

impl PageCore {
    /// Takes the version words away if every snapshot from `oldest` on sees every slot.
    pub(crate) fn settle(&self, oldest: u64, pin: &Pin, memory: &Memory) -> Settling {
        let Some(words) = self.current_versions(pin) else { return Settling::NotNow };
        let filled = if self.is_full_for_good() { self.used() } else { 0 };
        let mut is_young = false;
        for pair in &words[..filled] {
            let (begin, end) = pair.load();
            if begin > TIMESTAMP_MAX || end != NEVER {
                return Settling::NotNow;
            }
            is_young |= begin > oldest;
        }
        if is_young {
            return Settling::TooYoung;
        }
        if filled == 0 || !close(&words[..filled]) {
            return Settling::NotNow;
        }
        memory.remove(RecordKind::Version, size_of_val(words));
        self.set_clean(filled);
        self.take_versions().map_or(Settling::NotNow, Settling::Done)
    }
}

/// Closes all end words, or none.
fn close(words: &[VersionPair]) -> bool {
    for (at, pair) in words.iter().enumerate() {
        if pair.end.compare_exchange(NEVER, CLOSED, Ordering::SeqCst, Ordering::Relaxed).is_err() {
            // Nobody else changes a closed word.
            words[..at].iter().for_each(|pair| pair.end.store(NEVER, Ordering::SeqCst));
            return false;
        }
    }
    true
}
