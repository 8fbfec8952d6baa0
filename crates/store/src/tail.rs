//! Tails of adjacency lists: rows of cells in an arena.
//!
//! A tail is a chain of rows. A row is one link cell followed by its cells; rows double from 4 to 1,024
//! cells, link included, so a vertex with one live edge takes a cache line and a supernode's rows amortize.
//! Cells are written once, under the list's latch, and published by the list's count (`adjacency`).
//! Rows come back with the compaction that makes their list packed again, to a free list for each length.

use std::sync::atomic::Ordering;

use crate::memory::{Memory, RecordKind};
use crate::segments::{FreeList, Segments, Usage};
use crate::sync::AtomicU64;

const BASE_LOG2: u32 = 10;
/// Cells of the first row of a tail.
pub(crate) const FIRST_ROW: u64 = 4;
/// Cells of the longest rows.
pub(crate) const LAST_ROW: u64 = 1 << BASE_LOG2;

const ROW_LENGTHS: usize = (LAST_ROW / FIRST_ROW).ilog2() as usize + 1;

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
    /// Rows of `FIRST_ROW << k` cells that came back.
    free: [FreeList; ROW_LENGTHS],
    /// Cells of rows that are given out.
    live_cells: AtomicU64,
}

impl TailArena {
    pub(crate) fn new() -> Self {
        // Position 0 stands for "no row".
        TailArena {
            cells: Segments::new(RecordKind::Tail),
            next: AtomicU64::new(1),
            free: Default::default(),
            live_cells: AtomicU64::new(0),
        }
    }

    /// The place in `free` of rows of `len` cells.
    fn length_class(len: u64) -> usize {
        (len / FIRST_ROW).ilog2() as usize
    }

    /// A row of `len` cells without a successor.
    pub(crate) fn allocate(&self, len: u64, memory: &Memory) -> u64 {
        debug_assert!(len <= LAST_ROW, "a row of {len} cells fits no chunk");
        self.live_cells.fetch_add(len, Ordering::Relaxed);
        if let Some((start, next)) = self.free[Self::length_class(len)].take() {
            // As for records of a pool.
            if let Some(next) = next.and_then(|next| self.cells.get(next)) {
                crate::prefetch::prefetch(next);
            }
            // Relaxed: as below.
            self.row(start, len)[0].neighbor.store(0, Ordering::Relaxed);
            return start;
        }
        loop {
            // Relaxed: the row is private until the list links it.
            let start = self.next.fetch_add(len, Ordering::Relaxed);
            if Segments::<TailCell, BASE_LOG2>::is_contiguous(start, len) {
                self.cells.ensure(start, memory);
                return start;
            }
        }
    }

    /// Gives back a row that nobody reads any more.
    pub(crate) fn free(&self, start: u64, len: u64) {
        self.live_cells.fetch_sub(len, Ordering::Relaxed);
        self.free[Self::length_class(len)].give(start);
    }

    /// How many cells are given out, and the bytes of rows that came back.
    pub(crate) fn usage(&self) -> Usage {
        let free_cells: u64 = (0..ROW_LENGTHS).map(|class| self.free[class].len() * (FIRST_ROW << class)).sum();
        let live = self.live_cells.load(Ordering::Relaxed);
        Usage { live, free_bytes: free_cells * size_of::<TailCell>() as u64 }
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
