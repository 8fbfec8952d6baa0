//! The descriptor words of a table: a small table from slot to word while few vertices have a list, an array over all
//! slots once many do, and nothing where no vertex has one.
//!
//! All forms are one atomic word a slot to their users: what is not there is 0, and a word is replaced by compare-and-
//! swap. In the sparse form that happens under a latch, so that a table that is full can be copied into a larger one
//! or into the array while nobody changes it; readers take no latch, and one that still reads the table from before
//! reads the words as they were at a moment under its pin (`sparse` says why that is as good).
//!
//! A collector *empties* a table whose lists have all gone, so that readers pass over it at the cost of two looks
//! ([`Descriptors::is_empty`]): a graph whose edges get other labels with time does not keep an array for every label
//! there has been. The array is changed by writers without the latch; so before it goes, the collector replaces each of
//! its words, which are 0, by [`FROZEN`]. Whoever exchanges a word in between finds that and waits for the latch. If a word
//! is not 0, all become 0 again and the table stays.
//!
//! Why a reader of an array that goes is right. Let it have to find a list: because an edge was committed before its
//! snapshot, or because of a pair of fences. Then the word was stored before the reader's first look, and stays other
//! than 0 while the reader runs; so nothing is emptied from before that look on, and the forms that it meets are the
//! one with the word or later ones. For the same reason a reader that finds neither array nor small table looks
//! for the array once more: only growth can have come in between, if there is anything that it must find.

use std::sync::atomic::Ordering;

use crate::epoch::{EpochCell, EpochSlice, Pin};
use crate::limbo::Space;
use crate::memory::RecordKind;
use crate::sparse::{Full, SparseCells};
use crate::sync::{AtomicU64, Mutex};

/// A sparse table has at most one entry for so many slots of the page: an entry takes as much as two words.
const SPARSE_SHARE: usize = 4;
/// An array for this many slots is small enough to begin with.
const DENSE_SLOTS: usize = 16;
/// In place of a 0 of an array that may be about to go; no descriptor is like it. Readers take it for 0.
const FROZEN: u64 = u64::MAX;

/// A word as its users know it.
#[inline]
fn thawed(word: u64) -> u64 {
    if word == FROZEN { 0 } else { word }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The dense form, while it is there.
    words: EpochSlice<AtomicU64>,
    /// The sparse form, while it is there: never for long beside the dense one.
    sparse: EpochCell<SparseCells>,
    /// Held by who changes the sparse form, makes the dense one, or takes either away.
    latch: Mutex<()>,
}

impl Descriptors {
    /// Words of a page with this many slots, all 0.
    pub(super) fn new(slots: usize) -> Self {
        Descriptors { words: EpochSlice::empty(slots), sparse: EpochCell::default(), latch: Mutex::new(()) }
    }

    /// How many slots the page has.
    pub(super) fn slot_count(&self) -> usize {
        self.words.len()
    }

    pub(super) fn bytes(&self, pin: &Pin) -> usize {
        self.words.bytes() + self.sparse.get(pin).map_or(0, SparseCells::bytes)
    }

    /// Whether nobody has a list.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        // The third look: see the module.
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

    #[inline]
    fn load_dense(words: &[AtomicU64], at: usize) -> u64 {
        // Acquire: its partners are the compare-and-swaps that publish headers and runs, and `fill`.
        words.get(at).map_or(0, |word| thawed(word.load(Ordering::Acquire)))
    }

    #[inline(never)]
    fn load_sparse(&self, at: usize, pin: &Pin) -> u64 {
        match self.sparse.get(pin) {
            Some(cells) => cells.find(at).map_or(0, |cell| cell.word()),
            // No list is there, or the table has become dense between the two looks.
            None => self.words.get(pin).map_or(0, |words| Self::load_dense(words, at)),
        }
    }

    /// Appends the words of the first slots; those beyond the page's capacity are 0.
    pub(super) fn append(&self, slots: usize, out: &mut Vec<u64>, pin: &Pin) {
        let start = out.len();
        // The sparse form first: where it has gone, the dense one is there.
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
        out.extend(words.iter().map(|word| thawed(word.load(Ordering::Acquire))));
        out.resize(start + slots, 0);
    }

    /// Starts loading the word of a slot.
    #[inline]
    pub(super) fn prefetch(&self, at: usize, pin: &Pin) {
        if let Some(word) = self.words.get(pin).and_then(|words| words.get(at)) {
            crate::prefetch::prefetch(word);
        }
    }

    /// The slots that may have a word other than 0, ascending. For collectors: nobody else empties the table meanwhile.
    pub(crate) fn slots(&self, pin: &Pin) -> impl Iterator<Item = usize> + use<> {
        let some = self.sparse.get(pin).map(SparseCells::slots).unwrap_or_default();
        // Asked last: what became dense since then is looked at as a whole.
        let (some, all) = match self.words.get(pin) {
            Some(words) => (Vec::new(), words.len()),
            None => (some, 0),
        };
        some.into_iter().chain(0..all)
    }

    /// Replaces a word, if it is still `old`; otherwise returns the one that is there.
    pub(super) fn exchange(&self, at: usize, old: u64, new: u64, space: Space<'_>, pin: &Pin) -> Result<(), u64> {
        let dense = |words: &[AtomicU64]| {
            // SeqCst: the bits of a word are part of a check of the Dekker kind (`compaction`).
            words[at].compare_exchange(old, new, Ordering::SeqCst, Ordering::Acquire).map(|_| ())
        };
        if let Some(words) = self.words.get(pin) {
            match dense(words) {
                // About to go, or it has gone: who has the latch knows.
                Err(FROZEN) => {}
                outcome => return outcome,
            }
        }
        let _latch = self.latch.lock();
        loop {
            if let Some(words) = self.words.get(pin) {
                return dense(words)
                    .inspect_err(|&found| assert_ne!(found, FROZEN, "words are frozen under the latch"));
            }
            let Some(cells) = self.sparse.get(pin) else {
                self.begin(space, pin);
                continue;
            };
            match cells.find_or_insert(at) {
                Ok(cell) if cell.word() == old => {
                    cell.set_word(new);
                    return Ok(());
                }
                Ok(cell) => return Err(cell.word()),
                Err(Full) => self.grow(cells, space, pin),
            }
        }
    }

    /// Makes a word 0, and returns what it was.
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

    /// Gives a table its first words, in the form that fits them: `count` are not 0.
    pub(super) fn fill(&self, count: usize, words: impl Iterator<Item = u64>, space: Space<'_>, pin: &Pin) {
        let _latch = self.latch.lock();
        let len = SparseCells::len_for(count);
        assert!(self.is_empty(), "a table is filled once");
        if self.words.len() <= DENSE_SLOTS || len * SPARSE_SHARE > self.words.len() {
            let mut all: Vec<AtomicU64> = words.map(AtomicU64::new).collect();
            all.resize_with(self.words.len(), AtomicU64::default);
            return self.publish_dense(all.into(), 0, space, pin);
        }
        let cells = SparseCells::with_entries(len);
        for (at, word) in words.enumerate().filter(|&(_, word)| word != 0) {
            cells.find_or_insert(at).expect("the table was made for all of them").set_word(word);
        }
        self.replace_sparse(0, Some(cells), space);
    }

    /// Takes away the form of a table in which every word is 0; whether there is none now. By a collector that has the
    /// tablet's turn, when no cursor can be inside a list of the table.
    pub(super) fn empty(&self, space: Space<'_>, pin: &Pin) -> bool {
        let _latch = self.latch.lock();
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
            self.replace_sparse(cells.bytes(), None, space);
        }
        true
    }

    /// Gives an empty table its first form. By the holder of the latch.
    fn begin(&self, space: Space<'_>, pin: &Pin) {
        match self.words.len() <= DENSE_SLOTS {
            true => self.publish_dense((0..self.words.len()).map(|_| AtomicU64::new(0)).collect(), 0, space, pin),
            false => self.replace_sparse(0, Some(SparseCells::new()), space),
        }
    }

    /// Replaces a table that is full by a larger one or by the array. By the holder of the latch.
    fn grow(&self, cells: &SparseCells, space: Space<'_>, pin: &Pin) {
        if cells.next_len() * SPARSE_SHARE <= self.words.len() {
            return self.replace_sparse(cells.bytes(), Some(cells.grown()), space);
        }
        let words: Box<[AtomicU64]> = (0..self.words.len()).map(|_| AtomicU64::new(0)).collect();
        for (at, cell) in cells.iter() {
            // Relaxed: published with the array.
            words[at].store(cell.word(), Ordering::Relaxed);
        }
        self.publish_dense(words, cells.bytes(), space, pin);
    }

    /// By the holder of the latch, as is `replace_sparse`.
    fn publish_dense(&self, words: Box<[AtomicU64]>, bytes_before: usize, space: Space<'_>, pin: &Pin) {
        self.words.get_or_init(pin, || words);
        space.memory.add(RecordKind::Descriptor, self.words.bytes());
        if bytes_before > 0 {
            self.replace_sparse(bytes_before, None, space);
        }
    }

    fn replace_sparse(&self, bytes_before: usize, cells: Option<SparseCells>, space: Space<'_>) {
        let bytes = cells.as_ref().map_or(0, SparseCells::bytes);
        space.memory.resize(RecordKind::Descriptor, bytes_before, bytes);
        space.limbo.retire(self.sparse.swap(cells));
    }
}

/// Freezes every word, where all are 0; otherwise none. By the holder of the latch.
fn freeze(words: &[AtomicU64]) -> bool {
    // A look first: mostly there is a list.
    if words.iter().any(|word| word.load(Ordering::Relaxed) != 0) {
        return false;
    }
    // Acquire: what the writer of the 0 did comes before what is done with the table from here on.
    let freeze = |word: &AtomicU64| word.compare_exchange(0, FROZEN, Ordering::AcqRel, Ordering::Relaxed).is_ok();
    let frozen = words.iter().take_while(|word| freeze(word)).count();
    if frozen == words.len() {
        return true;
    }
    // Frozen words are changed by nobody else.
    words[..frozen].iter().for_each(|word| word.store(0, Ordering::Release));
    false
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::epoch;
    use crate::limbo::Limbo;
    use crate::memory::Memory;

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
            limbo.release_boxes();
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
            limbo.release_boxes();
        }
    }

    #[test]
    fn who_meets_a_frozen_word_takes_it_for_none() {
        let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
        let space = Space { memory: &memory, limbo: &limbo };
        let (words, pin) = (Descriptors::new(16), epoch::pin());
        words.exchange(3, 0, 7, space, &pin).unwrap();
        let array = words.words.get(&pin).expect("a small table is dense");
        assert!(!freeze(array));
        assert!(array.iter().all(|word| word.load(Ordering::Relaxed) != FROZEN));
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
