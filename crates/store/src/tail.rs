//! Tails of adjacency lists: rows of cells in an arena.
//!
//! A tail is a chain of rows. A row is one link cell followed by its cells; rows double from 4 to 1,024
//! cells, link included, so a vertex with one live edge takes a cache line and a supernode's rows amortize.
//! Cells are written once, under the list's latch, and published by the list's count (`adjacency`).
//! Rows are not given back before compaction (not part of this version).

use std::sync::atomic::{AtomicU64, Ordering};

use crate::memory::{Memory, RecordKind};
use crate::segments::Segments;

const BASE_LOG2: u32 = 10;
/// Cells of the first row of a tail.
pub(crate) const FIRST_ROW: u64 = 4;
/// Cells of the longest rows.
pub(crate) const LAST_ROW: u64 = 1 << BASE_LOG2;

/// A neighbor and the edge that leads there; in the first cell of a row: the next row, and nothing.
#[derive(Debug, Default)]
pub(crate) struct TailCell {
    pub(crate) neighbor: AtomicU64,
    pub(crate) edge: AtomicU64,
}

/// The rows of one tablet.
#[derive(Debug)]
pub(crate) struct TailArena {
    cells: Segments<TailCell, BASE_LOG2>,
    next: AtomicU64,
}

impl TailArena {
    pub(crate) fn new() -> Self {
        // Position 0 stands for "no row".
        TailArena { cells: Segments::new(RecordKind::Tail), next: AtomicU64::new(1) }
    }

    /// A row of `len` zeroed cells.
    pub(crate) fn allocate(&self, len: u64, memory: &Memory) -> u64 {
        debug_assert!(len <= LAST_ROW, "a row of {len} cells fits no chunk");
        loop {
            // Relaxed: the row is private until the list links it.
            let start = self.next.fetch_add(len, Ordering::Relaxed);
            if Segments::<TailCell, BASE_LOG2>::is_contiguous(start, len) {
                self.cells.ensure(start, memory);
                return start;
            }
        }
    }

    /// The cells of a row, link first.
    #[inline]
    pub(crate) fn row(&self, start: u64, len: u64) -> &[TailCell] {
        self.cells.slice(start, len as usize).expect("a row that was allocated lies in one chunk")
    }

    pub(crate) fn bytes(&self) -> usize {
        self.cells.bytes()
    }
}
