//! Tails of adjacency lists: rows of cells in an arena.
//!
//! A tail is a chain of rows. A row is one link cell followed by its cells. Rows double from 4 to 1,024 cells, link
//! included, so a vertex with one live edge takes a cache line, and a supernode's rows amortize. Cells are written
//! once, under the list's latch, and published by the list's count (STORE-16). Rows come back when a compaction makes
//! their list packed again.

use std::sync::atomic::Ordering;

use mangrove_reclaim::sync::AtomicU64;
use mangrove_reclaim::{Pin, Usage};

use crate::memory::{Arena, Garbage, Memory, RecordKind};

const CHUNK_LOG2: u32 = 10;
/// Cells of the first row of a tail.
pub(crate) const FIRST_ROW: u64 = 4;
/// Cells of the longest rows.
pub(crate) const LAST_ROW: u64 = 1 << CHUNK_LOG2;

/// A neighbor and the edge that leads there; in the first cell of a row: the next row, and nothing.
#[derive(Debug, Default)]
pub(crate) struct TailCell {
    pub(crate) neighbor: AtomicU64,
    pub(crate) edge: AtomicU64,
}

/// The rows of one tablet. Row 0 stands for "no row".
#[derive(Debug)]
pub(crate) struct TailArena {
    cells: Arena<TailCell, CHUNK_LOG2>,
}

impl TailArena {
    pub(crate) fn new() -> Self {
        TailArena { cells: Arena::new(RecordKind::Tail) }
    }

    /// A row of `len` cells without a successor.
    pub(crate) fn allocate<'p>(&'p self, len: u64, memory: &Memory, pin: &'p Pin) -> (u64, &'p [TailCell]) {
        let (start, cells) = self.cells.allocate(len, memory, pin);
        // Relaxed: the row is private until the list links it.
        cells[0].neighbor.store(0, Ordering::Relaxed);
        (start, cells)
    }

    /// Takes back a row, a grace period after it was unlinked.
    pub(crate) fn free(&self, start: u64, len: u64) {
        self.cells.free(start, len);
    }

    /// Gives up the memory of empty chunks. Returns how many chunks.
    pub(crate) fn give_back_chunks(&self, memory: &Memory, garbage: &mut Vec<Garbage>) -> usize {
        self.cells.give_back_chunks(memory, garbage)
    }

    /// How many cells are given out, and the bytes of free rows.
    pub(crate) fn usage(&self) -> Usage {
        self.cells.usage()
    }

    /// The cells of a row, link first.
    #[inline]
    pub(crate) fn row<'p>(&'p self, start: u64, len: u64, pin: &'p Pin) -> &'p [TailCell] {
        self.cells.row(start, len, pin).expect("a row that a list names was not given back")
    }

    pub(crate) fn bytes(&self) -> usize {
        self.cells.bytes()
    }
}
