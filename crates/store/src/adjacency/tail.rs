//! Tails of adjacency lists: the cells that follow those in a list's header, as rows of an arena.
//!
//! The rows of a tail are a chain. A row is one link cell followed by its cells. Rows double from 4 to 1,024 cells, link
//! included, so the first one takes a cache line, and a supernode's rows amortize. Cells are written once, under the
//! list's latch, and published by the list's count (STORE-16). Rows come back when a compaction makes their list packed
//! again.

use std::ops::Range;
use std::sync::atomic::Ordering;

use mangrove_graph::{EdgeId, VertexId};
use mangrove_reclaim::sync::AtomicU64;
use mangrove_reclaim::{Pin, Usage};

use crate::memory::{Arena, Garbage, Memory, RecordKind};

const CHUNK_LOG2: u32 = 10;
/// Cells of the first row of a tail.
pub(crate) const FIRST_ROW: u64 = 4;
/// Cells of the longest rows.
pub(crate) const LAST_ROW: u64 = 1 << CHUNK_LOG2;

/// A neighbor and the edge that leads there. In the first cell of a row: the next row and nothing, or in the first row
/// of a tail: the next row and the last one.
#[derive(Debug, Default)]
pub(crate) struct TailCell {
    pub(crate) neighbor: AtomicU64,
    pub(crate) edge: AtomicU64,
}

impl TailCell {
    /// Writes a cell that the count of its list has not published.
    pub(super) fn set(&self, neighbor: VertexId, edge: EdgeId) {
        self.neighbor.store(neighbor.to_bits(), Ordering::Relaxed);
        self.edge.store(edge.to_bits(), Ordering::Relaxed);
    }
}

/// The length of the row that comes after one of this length.
pub(super) fn longer(len: u64) -> u64 {
    (len * 2).min(LAST_ROW)
}

/// Where a cell is in the rows of a tail.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// True if its row is the first one.
    pub(super) is_first: bool,
    /// The length of its row.
    pub(super) len: u64,
    /// The length of the row before that, if there is one.
    pub(super) len_before: u64,
    /// The position in the row, whose link cell is at 0.
    pub(super) at: usize,
}

impl Place {
    /// The place of the cell that so many others in rows come before.
    pub(super) fn of(position: u64) -> Self {
        let (mut at, mut len, mut len_before) = (position, FIRST_ROW, FIRST_ROW);
        while at >= len - 1 && len < LAST_ROW {
            at -= len - 1;
            (len_before, len) = (len, longer(len));
        }
        if at >= len - 1 {
            (at, len_before) = (at % (len - 1), len);
        }
        Place { is_first: position < FIRST_ROW - 1, len, len_before, at: at as usize + 1 }
    }
}

/// The cells of a tail from a position on.
pub(crate) struct TailCells<'a> {
    position: u64,
    count: u64,
    /// Those at hand, in the header or in a row.
    cells: std::slice::Iter<'a, TailCell>,
    /// The row after that, and its length.
    next: u64,
    next_len: u64,
    tails: &'a TailArena,
    pin: &'a Pin,
}

impl<'a> TailCells<'a> {
    /// The cells at these positions of a tail whose header has the first cells, and whose first row is this one.
    #[inline]
    pub(super) fn new(
        (first_cells, first_row): (&'a [TailCell], u64),
        positions: Range<u64>,
        tails: &'a TailArena,
        pin: &'a Pin,
    ) -> Self {
        let (count, position) = (positions.end, positions.start.min(positions.end));
        let cells = first_cells.iter();
        let mut tail = TailCells { position, count, cells, next: first_row, next_len: FIRST_ROW, tails, pin };
        tail.skip_cells(position as usize);
        tail
    }

    /// Leaves out this many cells from the beginning.
    #[inline]
    fn skip_cells(&mut self, mut count: usize) {
        while count > self.cells.len() {
            count -= self.cells.len();
            self.next_row();
        }
        self.cells = self.cells.as_slice()[count..].iter();
    }

    /// Goes on to the next row, which there is.
    fn next_row(&mut self) {
        let row = self.tails.row(self.next, self.next_len, self.pin);
        self.next = row[0].neighbor.load(Ordering::Acquire);
        self.next_len = longer(self.next_len);
        self.cells = row[1..].iter();
    }
}

impl Iterator for TailCells<'_> {
    /// The position, the neighbor and the edge.
    type Item = (u64, VertexId, EdgeId);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        if self.position >= self.count {
            return None;
        }
        if self.cells.len() == 0 {
            self.next_row();
        }
        let (cell, position) = (self.cells.next()?, self.position);
        self.position += 1;
        let neighbor = VertexId::from_bits(cell.neighbor.load(Ordering::Relaxed));
        Some((position, neighbor, EdgeId::from_bits(cell.edge.load(Ordering::Relaxed))))
    }
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

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_where_one_comes_to_by_filling_row_after_row() {
        let (mut len, mut len_before, mut at, mut is_first) = (FIRST_ROW, FIRST_ROW, 1, true);
        for position in 0..20_000 {
            let place = Place::of(position);
            assert_eq!((place.is_first, place.len, place.at), (is_first, len, at), "{position}");
            assert!(is_first || place.len_before == len_before, "{position}");
            at += 1;
            if at as u64 == len {
                (is_first, len_before, len, at) = (false, len, longer(len), 1);
            }
        }
        let many = 1_000_000_000;
        let rest = Place::of(many + LAST_ROW - 1);
        assert_eq!(rest, Place::of(many), "the longest rows follow one another");
    }
}
