//! The sparse form of a page's cells: a small table from slot to two words, in open addressing.
//!
//! Columns and adjacency tables begin sparse, and get an array over all slots only once enough of these are in use. A
//! graph without a schema has hundreds of both on every page, with a handful of cells each.
//!
//! ```text
//! entry   slot + 1: 16 | side 48 || word 64                       slot + 1 = 0: free
//! ```
//!
//! The owner decides what *side* and *word* mean. For a column they are tag, head and word of a cell; for an adjacency
//! table, nothing and the descriptor.
//!
//! - One thread at a time changes a table: the holder of its owner's latch. Readers take no latch.
//! - An entry keeps its slot. When a table is full, its owner publishes a larger one, or an array, with the same
//!   content. From then on it changes only that one, and retires the *superseded* table through the limbo.
//! - **STORE-11.** A reader of a superseded table reads the cells as they were at some time during its pin. Nothing
//!   that such a cell names is given out again before the pin ends, since it was unlinked after the pin began.
//!
//! For a cell that says everything itself, a superseded table is as good as a new one. Every word that the reader's
//! snapshot sees, or that a pair of fences promises, was stored before the reader loaded the pointer to the table. If
//! it had been stored in a newer table, the reader would have found that table. A reader that follows a cell to
//! something that changes (a column: undo records) checks afterwards that the table is still the owner's.

use std::sync::atomic::Ordering;

use mangrove_reclaim::sync::{AtomicU32, AtomicU64};

const SLOT_SHIFT: u32 = 48;
/// The largest side that fits in an entry.
pub(crate) const SIDE_MAX: u64 = (1 << SLOT_SHIFT) - 1;
/// How many entries the first table has.
pub(crate) const FIRST_ENTRIES: usize = 2;

/// A cell: slot, side and word.
#[derive(Debug, Default)]
pub(crate) struct SparseCell {
    /// Slot + 1, and the side; 0 in a free entry.
    key: AtomicU64,
    word: AtomicU64,
}

impl SparseCell {
    fn slot(&self) -> Option<usize> {
        // Relaxed: the caller holds the latch or has loaded the key with Acquire.
        (self.key.load(Ordering::Relaxed) >> SLOT_SHIFT).checked_sub(1).map(|slot| slot as usize)
    }

    /// The part beside the word.
    #[inline]
    pub(crate) fn side(&self) -> u64 {
        self.key.load(Ordering::Acquire) & SIDE_MAX
    }

    #[inline]
    pub(crate) fn word(&self) -> u64 {
        self.word.load(Ordering::Acquire)
    }

    /// Sets the side. The caller holds the latch.
    pub(crate) fn set_side(&self, side: u64) {
        assert!(side <= SIDE_MAX, "{side} does not fit beside a slot");
        let slot = self.key.load(Ordering::Relaxed) & !SIDE_MAX;
        self.key.store(slot | side, Ordering::Release);
    }

    /// Sets the word. The caller holds the latch. SeqCst, since descriptors of lists are part of a store-then-look pair
    /// (`write`).
    pub(crate) fn set_word(&self, word: u64) {
        self.word.store(word, Ordering::SeqCst);
    }

    /// Returns true if a missing cell would say the same.
    fn is_blank(&self) -> bool {
        self.side() == 0 && self.word() == 0
    }
}

/// A table from slot to cell. Invariant: STORE-11, kept by its owner.
#[derive(Debug)]
pub(crate) struct SparseCells {
    entries: Box<[SparseCell]>,
    used: AtomicU32,
}

/// How many of a table's entries may be in use. Small tables may fill up; larger ones keep an eighth free, so that a
/// look-up of a missing slot ends soon.
fn room(len: usize) -> usize {
    len - len / 8
}

/// The table has no room for another slot.
#[derive(Debug)]
pub(crate) struct Full;

impl SparseCells {
    /// An empty table for the first few cells.
    pub(crate) fn new() -> Self {
        SparseCells::with_entries(FIRST_ENTRIES)
    }

    /// An empty table with this many entries, a power of two.
    pub(crate) fn with_entries(count: usize) -> Self {
        SparseCells { entries: (0..count).map(|_| SparseCell::default()).collect(), used: AtomicU32::new(0) }
    }

    /// The buckets that a slot may be in, nearest first. Slots of a page follow one another, and so do their buckets.
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

    /// The cell of a slot, which is made if it is missing. The caller holds the latch.
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

    /// The cells with their slots, in no particular order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &SparseCell)> {
        self.entries.iter().filter_map(|cell| {
            // Acquire: as in `find`.
            let slot = (cell.key.load(Ordering::Acquire) >> SLOT_SHIFT).checked_sub(1)?;
            Some((slot as usize, cell))
        })
    }

    /// The slots that have a cell, ascending.
    pub(crate) fn slots(&self) -> Vec<usize> {
        let mut slots: Vec<usize> = self.iter().map(|(slot, _)| slot).collect();
        slots.sort_unstable();
        slots
    }

    /// How many entries the next table has: enough for one more cell, and about a quarter free if it has more than two.
    /// Blank cells are not counted.
    pub(crate) fn next_len(&self) -> usize {
        let live = self.iter().filter(|(_, cell)| !cell.is_blank()).count();
        ((live + 1) * 4 / 3).next_power_of_two().max(FIRST_ENTRIES)
    }

    /// How many entries a table needs for exactly this many cells.
    pub(crate) fn len_for(cells: usize) -> usize {
        let len = cells.next_power_of_two().max(FIRST_ENTRIES);
        if cells > room(len) { len * 2 } else { len }
    }

    /// The next table, with the same content except blank cells. The caller holds the latch.
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
