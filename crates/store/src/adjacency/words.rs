//! The descriptor words of a table: a small table from slot to word while few vertices have a list, an array over all
//! slots once many do.
//!
//! Both forms are one atomic word a slot to their users: what is not there is 0, and a word is replaced by compare-and-
//! swap. In the sparse form that happens under a latch, so that a table that is full can be copied into a larger one
//! or into the array while nobody changes it; readers take no latch, and one that still reads the table from before
//! reads the words as they were at a moment under its pin (`sparse` says why that is as good). Dense is for good.

use std::sync::atomic::Ordering;

use crate::epoch::{self, EpochCell};
use crate::limbo::Space;
use crate::memory::RecordKind;
use crate::once::OnceSlice;
use crate::sparse::{Full, SparseCells};
use crate::sync::{AtomicU64, Mutex};

/// A sparse table has at most one entry for so many slots of the page: an entry takes as much as two words.
const SPARSE_SHARE: usize = 4;
/// An array for this many slots is small enough to begin with.
const DENSE_SLOTS: usize = 16;

/// See the module.
#[derive(Debug)]
pub(crate) struct Descriptors {
    /// The dense form, once it is there.
    words: OnceSlice<AtomicU64>,
    /// The sparse form, until the dense one is there.
    sparse: EpochCell<SparseCells>,
    /// Held by who changes the sparse form.
    latch: Mutex<()>,
}

impl Descriptors {
    /// Words of a page with this many slots, all 0.
    pub(super) fn new(slots: usize) -> Self {
        let slots = u32::try_from(slots).expect("a page has at most 1,024 slots");
        Descriptors { words: OnceSlice::empty(slots), sparse: EpochCell::default(), latch: Mutex::new(()) }
    }

    /// How many slots the page has.
    pub(super) fn slot_count(&self) -> usize {
        self.words.len()
    }

    pub(super) fn bytes(&self) -> usize {
        self.words.bytes() + self.sparse.get(&epoch::pin()).map_or(0, SparseCells::bytes)
    }

    /// The word of a slot; 0 beyond the page's capacity.
    #[inline]
    pub(super) fn load(&self, at: usize) -> u64 {
        match self.words.get() {
            // Acquire: its partners are the compare-and-swaps that publish headers and runs, and `fill`.
            Some(words) => words.get(at).map_or(0, |word| word.load(Ordering::Acquire)),
            None => self.load_sparse(at),
        }
    }

    #[inline(never)]
    fn load_sparse(&self, at: usize) -> u64 {
        match self.sparse.get(&epoch::pin()) {
            Some(cells) => cells.find(at).map_or(0, |cell| cell.word()),
            // No list was ever there, or it has become dense between the two looks.
            None => self.words.get().and_then(|words| words.get(at)).map_or(0, |word| word.load(Ordering::Acquire)),
        }
    }

    /// Appends the words of the first slots; those beyond the page's capacity are 0.
    pub(super) fn append(&self, slots: usize, out: &mut Vec<u64>) {
        let start = out.len();
        let pin = epoch::pin();
        // The sparse form first: where it has gone, the dense one is there.
        if self.words.get().is_none()
            && let Some(cells) = self.sparse.get(&pin)
        {
            out.resize(start + slots, 0);
            let words = &mut out[start..];
            for (at, cell) in cells.iter().filter(|(at, _)| *at < slots) {
                words[at] = cell.word();
            }
            return;
        }
        let words = self.words.get().map_or(&[][..], |words| &words[..slots.min(words.len())]);
        // Acquire: as in `load`.
        out.extend(words.iter().map(|word| word.load(Ordering::Acquire)));
        out.resize(start + slots, 0);
    }

    /// Starts loading the word of a slot.
    #[inline]
    pub(super) fn prefetch(&self, at: usize) {
        if let Some(word) = self.words.get().and_then(|words| words.get(at)) {
            crate::prefetch::prefetch(word);
        }
    }

    /// The slots that may have a word other than 0, ascending.
    pub(crate) fn slots(&self) -> impl Iterator<Item = usize> + use<> {
        let pin = epoch::pin();
        let some = self.sparse.get(&pin).map(SparseCells::slots).unwrap_or_default();
        // Asked last: what became dense since then is looked at as a whole.
        let (some, all) = match self.words.get() {
            Some(words) => (Vec::new(), words.len()),
            None => (some, 0),
        };
        some.into_iter().chain(0..all)
    }

    /// Replaces a word, if it is still `old`; otherwise returns the one that is there.
    pub(super) fn exchange(&self, at: usize, old: u64, new: u64, space: Space<'_>) -> Result<(), u64> {
        let dense = |words: &[AtomicU64]| {
            // SeqCst: the bits of a word are part of a check of the Dekker kind (`compaction`).
            words[at].compare_exchange(old, new, Ordering::SeqCst, Ordering::Acquire).map(|_| ())
        };
        if let Some(words) = self.words.get() {
            return dense(words);
        }
        let _latch = self.latch.lock();
        let pin = epoch::pin();
        loop {
            if let Some(words) = self.words.get() {
                return dense(words);
            }
            let Some(cells) = self.sparse.get(&pin) else {
                self.begin(space);
                continue;
            };
            match cells.find_or_insert(at) {
                Ok(cell) if cell.word() == old => {
                    cell.set_word(new);
                    return Ok(());
                }
                Ok(cell) => return Err(cell.word()),
                Err(Full) => self.grow(cells, space),
            }
        }
    }

    /// Makes a word 0, and returns what it was.
    pub(super) fn take(&self, at: usize) -> u64 {
        if let Some(words) = self.words.get() {
            return words[at].swap(0, Ordering::AcqRel);
        }
        let _latch = self.latch.lock();
        if let Some(words) = self.words.get() {
            return words[at].swap(0, Ordering::AcqRel);
        }
        let pin = epoch::pin();
        let Some(cell) = self.sparse.get(&pin).and_then(|cells| cells.find(at)) else { return 0 };
        let word = cell.word();
        cell.set_word(0);
        word
    }

    /// Gives a table its first words, in the form that fits them: `count` are not 0.
    pub(super) fn fill(&self, count: usize, words: impl Iterator<Item = u64>, space: Space<'_>) {
        let _latch = self.latch.lock();
        let len = SparseCells::len_for(count);
        let pin = epoch::pin();
        assert!(self.words.get().is_none() && self.sparse.get(&pin).is_none(), "a table is filled once");
        if self.words.len() <= DENSE_SLOTS || len * SPARSE_SHARE > self.words.len() {
            let mut all: Vec<AtomicU64> = words.map(AtomicU64::new).collect();
            all.resize_with(self.words.len(), AtomicU64::default);
            return self.publish_dense(all.into(), 0, space);
        }
        let cells = SparseCells::with_entries(len);
        for (at, word) in words.enumerate().filter(|&(_, word)| word != 0) {
            cells.find_or_insert(at).expect("the table was made for all of them").set_word(word);
        }
        self.replace_sparse(0, Some(cells), space);
    }

    /// Gives an empty table its first form. By the holder of the latch.
    fn begin(&self, space: Space<'_>) {
        match self.words.len() <= DENSE_SLOTS {
            true => self.publish_dense((0..self.words.len()).map(|_| AtomicU64::new(0)).collect(), 0, space),
            false => self.replace_sparse(0, Some(SparseCells::new()), space),
        }
    }

    /// Replaces a table that is full by a larger one or by the array. By the holder of the latch.
    fn grow(&self, cells: &SparseCells, space: Space<'_>) {
        if cells.next_len() * SPARSE_SHARE <= self.words.len() {
            return self.replace_sparse(cells.bytes(), Some(cells.grown()), space);
        }
        let words: Box<[AtomicU64]> = (0..self.words.len()).map(|_| AtomicU64::new(0)).collect();
        for (at, cell) in cells.iter() {
            // Relaxed: published with the array.
            words[at].store(cell.word(), Ordering::Relaxed);
        }
        self.publish_dense(words, cells.bytes(), space);
    }

    /// By the holder of the latch, as is `replace_sparse`.
    fn publish_dense(&self, words: Box<[AtomicU64]>, bytes_before: usize, space: Space<'_>) {
        self.words.get_or_init(|| words);
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

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use crate::limbo::Limbo;
    use crate::memory::Memory;

    #[test]
    fn words_keep_their_slots_through_all_forms() {
        for slots in [8, 64, 1_024] {
            let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
            let space = Space { memory: &memory, limbo: &limbo };
            let words = Descriptors::new(slots);
            let at = |n: usize| n * 37 % slots;
            for n in 0..slots {
                assert_eq!(words.load(at(n)), 0);
                assert_eq!(words.exchange(at(n), 0, n as u64 + 1, space), Ok(()));
                assert_eq!(words.exchange(at(n), 0, 9, space), Err(n as u64 + 1));
                assert!((0..=n).all(|n| words.load(at(n)) == n as u64 + 1));
                let mut all = vec![7];
                words.append(slots + 1, &mut all);
                assert!(
                    all[1..].iter().enumerate().all(|(slot, word)| *word == words.load(slot)) && all.len() == slots + 2
                );
                assert!((0..=n).all(|n| words.slots().any(|slot| slot == at(n))) && words.slots().is_sorted());
                assert_eq!(words.bytes() as u64, memory.report().total_bytes());
            }
            assert_eq!((words.load(slots), words.bytes()), (0, slots * 8));
            let third = words.load(3);
            assert_eq!((words.take(3), words.take(3), words.load(3)), (third, 0, 0));
            limbo.release_boxes();
        }
    }

    #[test]
    fn a_table_is_filled_in_the_form_that_fits() {
        for count in [0, 1, 5, 100, 191, 192, 1_000] {
            let (memory, limbo) = (Memory::new(u64::MAX), Limbo::default());
            let space = Space { memory: &memory, limbo: &limbo };
            let words = Descriptors::new(1_024);
            words.fill(count, (0..1_024).map(|at| if at < count as u64 { at + 1 } else { 0 }), space);
            assert!((0..1_024).all(|at| words.load(at) == if at < count { at as u64 + 1 } else { 0 }));
            assert!(words.bytes() <= (count * 45 + 80).min(8_192), "{count}: {}", words.bytes());
            assert_eq!(words.bytes() as u64, memory.report().total_bytes());
        }
    }
}
