//! The sparse form of a page's cells, and when it gives way to the dense form.
//!
//! Columns and the descriptors of adjacency tables hold a cell for each slot of a page, and begin without any:
//!
//! ```text
//! nothing ──first cell──▶ sparse: a table ──full──▶ a larger table ──full──▶ dense: arrays over all slots
//!         └─────────────────────── on a small page ──────────────────────────▶
//! ```
//!
//! A [`SparseForm`] is the part before the dense form: the table, if there is one, and the latch for changes of it. The
//! column or the adjacency table that *owns* the form has the arrays, and gives the rule by which the table grows.
//! Columns and descriptors share no dense form, because their readers do not follow the same protocol:
//!
//! | | column | descriptors |
//! |---|---|---|
//! | a dense cell is | a tag, a word and the head of an undo chain, in three arrays; the heads come later | one word |
//! | the dense form | is for good (STORE-9), so a reader may keep it | is taken away when every word is 0, so a reader needs a pin (STORE-12) |
//! | a writer | claims the cell at its undo chain, and then stores without looking | exchanges the word, and looks for `CLOSED` |
//! | a reader of a table | checks at the end that the table is still the owner's, since a cell names undo records that change | does not check, since a word says everything itself (STORE-11) |
//!
//! A hot reader loads the pointer to the dense form first, and comes here only if there is none.

use mangrove_locks::Rank;
use mangrove_reclaim::sync::Mutex;
use mangrove_reclaim::{EpochCell, Pin};

use crate::cell::sparse::{FIRST_ENTRIES, Full, SparseCell, SparseCells};
use crate::memory::{RecordKind, Space};

/// A page of at most this many slots gets the dense form at once: its arrays are small.
const DENSE_SLOTS: usize = 16;

/// The rule by which an owner's table gives way to arrays.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SparseRule {
    /// A table has at most one entry for this many slots of the page.
    pub(crate) slots_an_entry: usize,
    /// The memory of the table is counted under it.
    pub(crate) kind: RecordKind,
}

impl SparseRule {
    /// Returns true if a page of this many slots gets arrays instead of a table with this many entries.
    pub(crate) fn is_dense(self, entries: usize, slots: usize) -> bool {
        slots <= DENSE_SLOTS || entries * self.slots_an_entry > slots
    }
}

/// The table of a page's cells while few slots have one, or nothing. Invariants: STORE-10 for columns, STORE-12 for
/// descriptors, STORE-11 for both. `R` is the rank of the owner's latch.
#[derive(Debug)]
pub(crate) struct SparseForm<R> {
    table: EpochCell<SparseCells>,
    /// Held by a thread that changes a cell, or replaces the table, or makes the owner's dense form or takes it away.
    pub(crate) latch: Mutex<(), R>,
}

impl<R> Default for SparseForm<R> {
    fn default() -> Self {
        SparseForm { table: EpochCell::default(), latch: Mutex::new(()) }
    }
}

impl<R: Rank> SparseForm<R> {
    /// The table, if there is one.
    #[inline]
    pub(crate) fn get<'p>(&'p self, pin: &'p Pin) -> Option<&'p SparseCells> {
        self.table.get(pin)
    }

    /// Returns true if there is a table.
    #[inline]
    pub(crate) fn is_some(&self) -> bool {
        self.table.is_some()
    }

    /// Returns true if a table that was found under the pin has not been replaced.
    #[inline]
    pub(crate) fn is_current(&self, cells: &SparseCells, pin: &Pin) -> bool {
        self.table.get(pin).is_some_and(|now| std::ptr::eq(now, cells))
    }

    pub(crate) fn bytes(&self, pin: &Pin) -> usize {
        self.table.get(pin).map_or(0, SparseCells::bytes)
    }

    /// The cell of a slot, which is made if it is missing. If the page's `slots` are to be dense, it returns the table
    /// that the dense form takes over, if there is one. The caller holds the latch and has found no dense form.
    pub(crate) fn find_or_make<'p>(
        &'p self,
        at: usize,
        slots: usize,
        rule: SparseRule,
        space: Space<'_>,
        pin: &'p Pin,
    ) -> Result<&'p SparseCell, Option<&'p SparseCells>> {
        loop {
            let cells = self.table.get(pin);
            match cells.map(|cells| (cells, cells.find_or_insert(at))) {
                Some((_, Ok(cell))) => return Ok(cell),
                Some((cells, Err(Full))) if rule.is_dense(cells.next_len(), slots) => return Err(Some(cells)),
                Some((cells, Err(Full))) => self.replace(Some(cells.grown()), rule, space, pin),
                None if rule.is_dense(FIRST_ENTRIES, slots) => return Err(None),
                None => self.replace(Some(SparseCells::new()), rule, space, pin),
            }
        }
    }

    /// Replaces the table by another one or by nothing. The caller holds the latch.
    pub(crate) fn replace(&self, cells: Option<SparseCells>, rule: SparseRule, space: Space<'_>, pin: &Pin) {
        let bytes = cells.as_ref().map_or(0, SparseCells::bytes);
        space.memory.resize(rule.kind, self.bytes(pin), bytes);
        space.limbo.retire(self.table.swap(cells));
    }
}
