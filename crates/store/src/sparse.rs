//! Cells of few slots of a page: a small table from slot to two words, in open addressing.
//!
//! Columns and adjacency tables begin with one of these and have an array over all slots only once enough of their
//! slots are in use: a graph without a schema has hundreds of both on every page, with a handful of cells each.
//!
//! ```text
//! entry   slot + 1: 16 | side 48 || word 64                       slot + 1 = 0: free
//! ```
//!
//! What *side* and *word* are is the owner's business: for a column tag, head and word of a cell, for an adjacency
//! table nothing and the descriptor.
//!
//! - One thread at a time changes a table: the holder of its owner's latch. Readers take no latch.
//! - An entry keeps its slot. A table that is full is *frozen*: its owner publishes a larger one, or an array, with the
//!   same content, changes that from then on, and retires the frozen one through the limbo.
//! - So whoever still reads a frozen table reads the cells as they were at a moment during its pin. For a cell that
//!   says everything itself, that is as good as having read at that moment: whatever the reader's snapshot sees, or what
//!   it is promised to find by a pair of fences, was done before it came for the table, and then it found the new one.
//!   And nothing that a frozen cell names is given out again before the reader's pin ends, since it was unlinked after
//!   the pin began (`epoch`). Who follows a cell to something that changes (a column: undo records) asks afterwards
//!   whether the table is still the owner's.

use std::sync::atomic::Ordering;

use crate::sync::{AtomicU32, AtomicU64};

const SLOT_SHIFT: u32 = 48;
/// What fits beside the slot.
pub(crate) const SIDE_MAX: u64 = (1 << SLOT_SHIFT) - 1;
const FIRST_ENTRIES: usize = 2;

/// A cell: see the module.
#[derive(Debug, Default)]
pub(crate) struct SparseCell {
    key: AtomicU64,
    word: AtomicU64,
}

impl SparseCell {
    fn slot(&self) -> Option<usize> {
        // Relaxed: the holder of the latch asks, or somebody who has loaded it with Acquire.
        (self.key.load(Ordering::Relaxed) >> SLOT_SHIFT).checked_sub(1).map(|slot| slot as usize)
    }

    /// What is kept beside the word.
    #[inline]
    pub(crate) fn side(&self) -> u64 {
        self.key.load(Ordering::Acquire) & SIDE_MAX
    }

    #[inline]
    pub(crate) fn word(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }

    /// By the holder of the latch.
    pub(crate) fn set_side(&self, side: u64) {
        assert!(side <= SIDE_MAX, "{side} does not fit beside a slot");
        let slot = self.key.load(Ordering::Relaxed) & !SIDE_MAX;
        self.key.store(slot | side, Ordering::Release);
    }

    /// By the holder of the latch. SeqCst, since the descriptors of lists are part of a check of the Dekker kind.
    pub(crate) fn set_word(&self, word: u64) {
        self.word.store(word, Ordering::SeqCst);
    }

    /// Whether an empty slot says the same.
    fn is_blank(&self) -> bool {
        self.side() == 0 && self.word() == 0
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct SparseCells {
    entries: Box<[SparseCell]>,
    used: AtomicU32,
}

/// How many entries of so many may be in use: small tables may fill up, larger ones keep an eighth free, so that what is
/// not there is soon known.
fn room(len: usize) -> usize {
    len - len / 8
}

/// There is no room for another slot.
#[derive(Debug)]
pub(crate) struct Full;

impl SparseCells {
    /// A table for the first few.
    pub(crate) fn new() -> Self {
        SparseCells::with_entries(FIRST_ENTRIES)
    }

    /// A table with so many entries, a power of two.
    pub(crate) fn with_entries(count: usize) -> Self {
        SparseCells { entries: (0..count).map(|_| SparseCell::default()).collect(), used: AtomicU32::new(0) }
    }

    /// The places of a slot, nearest first. Slots of a page follow one another, and so do their places.
    #[inline]
    fn probes(&self, slot: usize) -> impl Iterator<Item = &SparseCell> {
        let mask = self.entries.len() - 1;
        (0..self.entries.len()).map(move |step| &self.entries[(slot + step) & mask])
    }

    /// The cell of a slot.
    #[inline]
    pub(crate) fn find(&self, slot: usize) -> Option<&SparseCell> {
        let wanted = slot as u64 + 1;
        for cell in self.probes(slot) {
            // Acquire: its partner is the Release in `insert`.
            match cell.key.load(Ordering::Acquire) >> SLOT_SHIFT {
                0 => return None,
                found if found == wanted => return Some(cell),
                _ => {}
            }
        }
        None
    }

    /// The cell of a slot, made where it is missing. By the holder of the latch.
    pub(crate) fn find_or_insert(&self, slot: usize) -> Result<&SparseCell, Full> {
        if let Some(cell) = self.find(slot) {
            return Ok(cell);
        }
        let used = self.used.load(Ordering::Relaxed) as usize;
        if used >= room(self.entries.len()) {
            return Err(Full);
        }
        let cell = self.probes(slot).find(|cell| cell.slot().is_none()).ok_or(Full)?;
        self.used.store(used as u32 + 1, Ordering::Relaxed);
        cell.key.store((slot as u64 + 1) << SLOT_SHIFT, Ordering::Release);
        Ok(cell)
    }

    /// The cells there are, with their slots, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &SparseCell)> {
        self.entries.iter().filter_map(|cell| {
            // Acquire: as in `find`.
            let slot = (cell.key.load(Ordering::Acquire) >> SLOT_SHIFT).checked_sub(1)?;
            Some((slot as usize, cell))
        })
    }

    /// The slots of those cells, ascending.
    pub(crate) fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.iter().map(|(slot, _)| slot).collect();
        slots.sort_unstable();
        slots
    }

    /// How many entries the next table has: so many that at least a quarter of them is free. Slots that an empty one
    /// says the same as do not come along.
    pub(crate) fn next_len(&self) -> usize {
        let live = self.iter().filter(|(_, cell)| !cell.is_blank()).count();
        ((live + 1) * 4 / 3).next_power_of_two().max(FIRST_ENTRIES)
    }

    /// How many entries a table has for so many cells and no more.
    pub(crate) fn len_for(cells: usize) -> usize {
        let len = cells.next_power_of_two().max(FIRST_ENTRIES);
        if cells > room(len) { len * 2 } else { len }
    }

    /// The next table, with the same content. By the holder of the latch.
    pub(crate) fn grown(&self) -> Self {
        let grown = SparseCells::with_entries(self.next_len());
        for (slot, cell) in self.iter().filter(|(_, cell)| !cell.is_blank()) {
            let copy = grown.find_or_insert(slot).expect("the table was made for all of them");
            copy.set_side(cell.side());
            copy.set_word(cell.word());
        }
        grown
    }

    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + size_of_val(&*self.entries)
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn cells_keep_their_slots_through_growth() {
        let mut cells = SparseCells::new();
        for n in 0..100 {
            let slot = n * 37 % 1_024;
            assert!(cells.find(slot).is_none());
            loop {
                match cells.find_or_insert(slot) {
                    Ok(cell) => {
                        cell.set_side(n as u64 + 1);
                        break cell.set_word(n as u64 * 3);
                    }
                    Err(Full) => cells = cells.grown(),
                }
            }
        }
        for n in 0..100 {
            let cell = cells.find(n * 37 % 1_024).expect("it was put there");
            assert_eq!((cell.side(), cell.word()), (n as u64 + 1, n as u64 * 3));
        }
        assert!(cells.find(1).is_none());
        assert_eq!(cells.iter().count(), 100);
        assert!(cells.bytes() <= 24 + 16 * 256);
    }

    #[test]
    fn blank_cells_are_left_behind() {
        let mut cells = SparseCells::new();
        for round in 0..1_000 {
            if cells.find_or_insert(round).is_err() {
                cells = cells.grown();
            }
            let cell = cells.find_or_insert(round).expect("there is room");
            cell.set_word(7);
            cell.set_word(0);
        }
        assert!(cells.entries.len() <= 4, "{}", cells.entries.len());
    }
}
