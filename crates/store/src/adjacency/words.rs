//! The descriptor words of a table, in one of three forms.
//!
//! | form | while |
//! |---|---|
//! | nothing | no vertex has a list |
//! | sparse: a small table from slot to word | few vertices have one |
//! | dense: an array over all slots | many have one |
//!
//! The table is a [`SparseForm`], as that of a column is. `cell::sparse_form` says why the arrays of the two differ.
//!
//! To their users, all forms are one atomic word a slot: a missing word is 0, and a word is replaced by
//! compare-and-swap. In the sparse form that happens under a latch, so that a full table can be copied while no thread
//! changes it. Readers take no latch (STORE-11).
//!
//! - **STORE-12.** A collector takes a form away under the latch, with the tablet's turn, while the table has no
//!   previous layout (STORE-17: no cursor is inside a list). Before an array goes, each of its words is replaced by
//!   [`CLOSED`], in an exchange that succeeds on 0 alone; if one word is not 0, all become 0 again and the table stays.
//!   A thread that meets `CLOSED` in an exchange waits for the latch. So no word is stored into an array that is gone.
//!
//! A table whose lists have all gone is emptied so that readers pass over it at the cost of two looks
//! ([`Descriptors::is_empty`]): a graph whose edges get other labels with time keeps no array for every label that
//! there has been.
//!
//! Why reading an array that is being removed is safe. Suppose that the reader must find a list: an edge was committed
//! before its snapshot, or a pair of fences promises it. Then the word was stored before the reader's first look, and
//! stays other than 0 while the reader runs. So nothing is emptied from that look on, and the reader meets the form
//! with the word or a newer one. For the same reason, a reader that finds neither array nor small table looks for the
//! array once more: if there is a list that it must find, only growth can have come in between.

use std::sync::atomic::Ordering;

use mangrove_locks::rank;
use mangrove_reclaim::prefetch::prefetch_range_once;
use mangrove_reclaim::sync::{AtomicBool, AtomicU64};
use mangrove_reclaim::{EpochSlice, Pin};

use crate::cell::sparse::SparseCells;
use crate::cell::sparse_form::{SparseForm, SparseRule};
use crate::memory::{RecordKind, Space};

/// An entry of a table takes as much memory as two words of the array.
const SPARSE_RULE: SparseRule = SparseRule { slots_an_entry: 4, kind: RecordKind::Descriptor };
/// Stands for 0 in an array that may be about to go (STORE-12). No descriptor equals it, and readers take it for 0.
const CLOSED: u64 = u64::MAX;

/// Words that are read together.
const TOGETHER: usize = 64;
/// How many words ahead of their use words are loaded: a kilobyte.
const AHEAD: usize = 128;

/// A word as readers see it: `CLOSED` is 0.
#[inline]
fn opened(word: u64) -> u64 {
    if word == CLOSED { 0 } else { word }
}

/// The descriptor words of a table. Invariant: STORE-12.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The dense form, while the table has it.
    words: EpochSlice<AtomicU64>,
    /// The sparse form, while the table has it; never for long beside the dense one.
    sparse: SparseForm<rank::ListDescriptors>,
    /// Whether a word may have changed since [`Descriptors::fill`]: true before the first change is made (STORE-39).
    have_changed: AtomicBool,
}

impl Descriptors {
    /// Words of a page with this many slots, all 0.
    pub(super) fn new(slots: usize) -> Self {
        Descriptors {
            words: EpochSlice::empty(slots),
            sparse: SparseForm::default(),
            have_changed: AtomicBool::new(false),
        }
    }

    pub(super) fn bytes(&self, pin: &Pin) -> usize {
        self.words.bytes() + self.sparse.bytes(pin)
    }

    /// Returns true if no vertex has a list.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // The third look: only growth can have come in between (see the header of this file). It publishes the array
        // before it takes the table away, so a look that finds the table gone is followed by one that finds the array.
        !self.words.is_some() && !self.sparse.is_some() && !self.words.is_some()
    }

    /// The word of a slot; 0 beyond the page's capacity.
    #[inline]
    pub(super) fn load(&self, at: usize, pin: &Pin) -> u64 {
        match self.words.get(pin) {
            Some(words) => Self::load_dense(words, at),
            None => self.load_sparse(at, pin),
        }
    }

    /// Calls `each` with the position and the word of every one of these slots, as [`Descriptors::load`] finds it.
    #[inline]
    pub(super) fn load_each(&self, slots: impl Iterator<Item = usize>, pin: &Pin, mut each: impl FnMut(usize, u64)) {
        match self.words.get(pin) {
            Some(words) => slots.enumerate().for_each(|(row, at)| each(row, Self::load_dense(words, at))),
            None => slots.enumerate().for_each(|(row, at)| each(row, self.load_sparse(at, pin))),
        }
    }

    #[inline]
    fn load_dense(words: &[AtomicU64], at: usize) -> u64 {
        // Acquire: its partners are the compare-and-swaps that publish headers and runs, and `fill`.
        words.get(at).map_or(0, |word| opened(word.load(Ordering::Acquire)))
    }

    #[inline(never)]
    fn load_sparse(&self, at: usize, pin: &Pin) -> u64 {
        match self.sparse.get(pin) {
            Some(cells) => cells.find(at).map_or(0, |cell| cell.word()),
            // There is no list, or the table became dense between the two looks.
            None => self.words.get(pin).map_or(0, |words| Self::load_dense(words, at)),
        }
    }

    /// Appends the words of the first slots; those beyond the page's capacity are 0.
    pub(super) fn append(&self, slots: usize, out: &mut Vec<u64>, pin: &Pin) {
        let start = out.len();
        // The sparse form first: if it has gone, the dense one is there.
        if !self.words.is_some()
            && let Some(cells) = self.sparse.get(pin)
        {
            out.resize(start + slots, 0);
            let words = &mut out[start..];
            for (at, cell) in cells.iter().filter(|(at, _)| *at < slots) {
                words[at] = cell.word();
            }
            return;
        }
        let words = self.words.get(pin).map_or(&[][..], |words| &words[..slots.min(words.len())]);
        // Acquire: as in `load`.
        out.reserve(slots);
        for words in words.chunks(TOGETHER) {
            prefetch_range_once(words, AHEAD..AHEAD + TOGETHER);
            out.extend(words.iter().map(|word| opened(word.load(Ordering::Acquire))));
        }
        out.resize(start + slots, 0);
    }

    /// Starts loading the first words, before [`Descriptors::append`].
    pub(super) fn prefetch_first(&self, pin: &Pin) {
        if let Some(words) = self.words.get(pin) {
            prefetch_range_once(words, 0..AHEAD);
        }
    }

    /// Starts loading the word of a slot.
    #[inline]
    pub(super) fn prefetch(&self, at: usize, pin: &Pin) {
        if let Some(word) = self.words.get(pin).and_then(|words| words.get(at)) {
            mangrove_reclaim::prefetch::prefetch(word);
        }
    }

    /// The slots that may have a word other than 0, ascending. For collectors: no other thread empties the table in the
    /// meantime.
    pub(crate) fn slots(&self, pin: &Pin) -> impl Iterator<Item = usize> + use<> {
        let some = self.sparse.get(pin).map(SparseCells::slots).unwrap_or_default();
        // Asked last: a table that became dense since then is looked at as a whole.
        let (some, all) = match self.words.get(pin) {
            Some(words) => (Vec::new(), words.len()),
            None => (some, 0),
        };
        some.into_iter().chain(0..all)
    }

    /// Returns true if a word may have changed since [`Descriptors::fill`]. If not, all words were as it has set them at this moment (STORE-39).
    #[inline]
    pub(super) fn have_changed(&self) -> bool {
        // Acquire: its partner is the Release in `exchange`.
        self.have_changed.load(Ordering::Acquire)
    }

    /// Replaces a word if it is `old`; otherwise returns the one that is there.
    pub(super) fn exchange(&self, at: usize, old: u64, new: u64, space: Space<'_>, pin: &Pin) -> Result<(), u64> {
        // STORE-39: before the exchange, which publishes it with the word.
        if !self.have_changed.load(Ordering::Relaxed) {
            self.have_changed.store(true, Ordering::Release);
        }
        let dense = |words: &[AtomicU64]| {
            // SeqCst: the bits of a word are part of a store-then-look pair (`garbage::compaction`).
            words[at].compare_exchange(old, new, Ordering::SeqCst, Ordering::Acquire).map(|_| ())
        };
        if let Some(words) = self.words.get(pin) {
            match dense(words) {
                // The array is about to go, or it has gone. The holder of the latch knows (STORE-12).
                Err(CLOSED) => {}
                outcome => return outcome,
            }
        }
        let _latch = self.sparse.latch.lock();
        if self.words.get(pin).is_none() {
            match self.sparse.find_or_make(at, self.words.len(), SPARSE_RULE, space, pin) {
                Ok(cell) if cell.word() == old => {
                    cell.set_word(new);
                    return Ok(());
                }
                Ok(cell) => return Err(cell.word()),
                Err(full) => self.make_dense(full, space, pin),
            }
        }
        let words = self.words.get(pin).expect("an array is taken away under the latch");
        dense(words).inspect_err(|&found| assert_ne!(found, CLOSED, "words are closed under the latch"))
    }

    /// Makes a word 0 and returns the old one.
    pub(super) fn take(&self, at: usize, space: Space<'_>, pin: &Pin) -> u64 {
        let mut word = self.load(at, pin);
        while word != 0 {
            match self.exchange(at, word, 0, space, pin) {
                Ok(()) => break,
                Err(current) => word = current,
            }
        }
        word
    }

    /// Returns true if a table with this many words other than 0 gets an array.
    pub(super) fn is_dense(&self, count: usize) -> bool {
        SPARSE_RULE.is_dense(SparseCells::len_for(count), self.words.len())
    }

    /// Gives a table its first words, `count` of which are not 0, in the form that fits them.
    pub(super) fn fill(&self, count: usize, words: impl Iterator<Item = u64>, space: Space<'_>, pin: &Pin) {
        let _latch = self.sparse.latch.lock();
        assert!(self.is_empty(), "a table is filled once");
        if self.is_dense(count) {
            let mut all: Vec<AtomicU64> = words.map(AtomicU64::new).collect();
            all.resize_with(self.words.len(), AtomicU64::default);
            return self.publish_dense(all.into(), space, pin);
        }
        let cells = SparseCells::with_entries(SparseCells::len_for(count));
        for (at, word) in words.enumerate().filter(|&(_, word)| word != 0) {
            cells.find_or_insert(at).expect("the table was made for all of them").set_word(word);
        }
        self.sparse.replace(Some(cells), SPARSE_RULE, space, pin);
    }

    /// Takes away the form of a table in which every word is 0. Returns true if the table has none then. By a collector
    /// that has the tablet's turn, when no cursor can be inside a list of the table (STORE-12).
    pub(super) fn empty(&self, space: Space<'_>, pin: &Pin) -> bool {
        let _latch = self.sparse.latch.lock();
        if let Some(words) = self.words.get(pin) {
            if !freeze(words) {
                return false;
            }
            space.memory.remove(RecordKind::Descriptor, self.words.bytes());
            space.limbo.retire(self.words.take());
        }
        if let Some(cells) = self.sparse.get(pin) {
            if cells.iter().any(|(_, cell)| cell.word() != 0) {
                return false;
            }
            self.sparse.replace(None, SPARSE_RULE, space, pin);
        }
        true
    }

    /// Makes the array with the content of a full table, if there is one. The caller holds the latch, here and in
    /// `publish_dense`.
    fn make_dense(&self, full: Option<&SparseCells>, space: Space<'_>, pin: &Pin) {
        let words: Box<[AtomicU64]> = (0..self.words.len()).map(|_| AtomicU64::new(0)).collect();
        for (at, cell) in full.into_iter().flat_map(SparseCells::iter) {
            // Relaxed: the array publishes it.
            words[at].store(cell.word(), Ordering::Relaxed);
        }
        self.publish_dense(words, space, pin);
    }

    /// Publishes the array, and then takes the table away.
    fn publish_dense(&self, words: Box<[AtomicU64]>, space: Space<'_>, pin: &Pin) {
        self.words.get_or_init(pin, || words);
        space.memory.add(RecordKind::Descriptor, self.words.bytes());
        if self.sparse.is_some() {
            self.sparse.replace(None, SPARSE_RULE, space, pin);
        }
    }
}

/// Closes every word if all are 0, otherwise none. Returns true if they are closed. The caller holds the latch.
fn freeze(words: &[AtomicU64]) -> bool {
    // A look first: mostly there is a list.
    if words.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
        return false;
    }
    // Acquire: everything that the writer of the 0 did comes before the uses of the table from here on.
    let close = |word: &AtomicU64| word.compare_exchange(0, CLOSED, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let closed = words.iter().take_while(|word| close(word)).count();
    if closed == words.len() {
        return true;
    }
    // STORE-12: no other thread changes a closed word.
    words[..closed].iter().for_each(|word| word.store(0, Ordering::Release));
    false
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::memory::Limbo;
    use crate::memory::Memory;
    use mangrove_reclaim::epoch;

    #[test]
    fn words_keep_their_slots_through_all_forms() {
        for slots in [8, 64, 1_024] {
            let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
            let space = Space { memory: &memory, limbo: &limbo };
            let words = Descriptors::new(slots);
            let pin = epoch::pin();
            let at = |n: usize| n * 37 % slots;
            for n in 0..slots {
                assert_eq!(words.load(at(n), &pin), 0);
                assert_eq!(words.exchange(at(n), 0, n as u64 + 1, space, &pin), Ok(()));
                assert_eq!(words.exchange(at(n), 0, 9, space, &pin), Err(n as u64 + 1));
                assert!((0..=n).all(|n| words.load(at(n), &pin) == n as u64 + 1));
                let mut all = vec![7];
                words.append(slots + 1, &mut all, &pin);
                assert!(
                    all[1..].iter().enumerate().all(|(slot, word)| *word == words.load(slot, &pin))
                        && all.len() == slots + 2
                );
                assert!((0..=n).all(|n| words.slots(&pin).any(|slot| slot == at(n))) && words.slots(&pin).is_sorted());
                assert_eq!(words.bytes(&pin) as u64, memory.report().total_bytes());
            }
            assert_eq!((words.load(slots, &pin), words.bytes(&pin)), (0, slots * 8));
            let third = words.load(3, &pin);
            assert_eq!((words.take(3, space, &pin), words.take(3, space, &pin), words.load(3, &pin)), (third, 0, 0));
            drop(pin);
            crate::memory::release_boxes(&limbo);
        }
    }

    #[test]
    fn a_table_without_lists_is_emptied_and_begins_again() {
        for slots in [8, 1_024] {
            let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
            let space = Space { memory: &memory, limbo: &limbo };
            let (words, pin) = (Descriptors::new(slots), epoch::pin());
            for count in [1, slots] {
                (0..count).for_each(|at| words.exchange(at, 0, 7, space, &pin).unwrap());
                (1..count).for_each(|at| assert_eq!(words.take(at, space, &pin), 7));
                assert!(!words.empty(space, &pin) && !words.is_empty(), "a list is left");
                assert_eq!(words.exchange(0, 7, 0, space, &pin), Ok(()));
                assert!(words.empty(space, &pin) && words.is_empty());
                assert!((0..=slots).all(|at| words.load(at, &pin) == 0));
                assert_eq!((words.bytes(&pin), memory.report().total_bytes()), (0, 0));
                assert!(words.slots(&pin).next().is_none() && words.empty(space, &pin));
            }
            drop(pin);
            crate::memory::release_boxes(&limbo);
        }
    }

    #[test]
    fn who_meets_a_closed_word_takes_it_for_none() {
        let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
        let space = Space { memory: &memory, limbo: &limbo };
        let (words, pin) = (Descriptors::new(16), epoch::pin());
        words.exchange(3, 0, 7, space, &pin).unwrap();
        let array = words.words.get(&pin).expect("a small table is dense");
        assert!(!freeze(array));
        assert!(array.iter().all(|word| word.load(Ordering::Relaxed) != CLOSED));
        words.take(3, space, &pin);
        assert!(freeze(array) && words.load(3, &pin) == 0);
        let mut all = Vec::new();
        words.append(16, &mut all, &pin);
        assert_eq!(all, [0; 16]);
    }

    #[test]
    fn a_table_is_filled_in_the_form_that_fits() {
        for count in [0, 1, 5, 100, 191, 192, 1_000] {
            let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
            let space = Space { memory: &memory, limbo: &limbo };
            let words = Descriptors::new(1_024);
            let pin = epoch::pin();
            words.fill(count, (0..1_024).map(|at| if at < count as u64 { at + 1 } else { 0 }), space, &pin);
            assert!((0..1_024).all(|at| words.load(at, &pin) == if at < count { at as u64 + 1 } else { 0 }));
            assert!(words.bytes(&pin) <= (count * 45 + 80).min(8_192), "{count}: {}", words.bytes(&pin));
            assert_eq!(words.bytes(&pin) as u64, memory.report().total_bytes());
        }
    }
}
