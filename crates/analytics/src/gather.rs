//! Sums of values at the cells of rows, without a look at the length of the array for each cell.
//!
//! A round of PageRank reads one value a cell, and does nothing else with it than to add it. To compare each cell with the number of values took
//! up to 8 % of the round. Builds with debug assertions, as those of tests, compare.
//!
//! The cells are read once a round, and the values many times. So cells are loaded ahead in a way that leaves the values in the caches: that takes
//! another tenth off a round on Kronecker graphs. Short rows are not worth it.

use std::ops::{AddAssign, Range};

use mangrove_reclaim::prefetch::prefetch_once;

use crate::numbering::SLOTS;
use crate::projection::{Projection, each_page};

/// The cells of a cache line.
const LINE: usize = 64 / size_of::<u32>();
/// How many cells ahead of their use cells are loaded: two kilobytes. Half and twice as many are no faster.
const AHEAD: usize = 512;
/// Cells are loaded ahead on pages with this many cells or more: a cache line for each row, on average.
const AHEAD_MIN: usize = SLOTS * LINE;

impl Projection {
    /// Calls `each` with the sum of the values at the cells of [`Projection::incoming`], in their order, for each position in a range. Panics if
    /// a position has no value.
    #[inline]
    pub(crate) fn each_incoming_sum<T: Copy + Default + AddAssign>(
        &self,
        range: Range<usize>,
        values: &[T],
        mut each: impl FnMut(T),
    ) {
        assert!(values.len() >= self.positions(), "each position has a value");
        // Four sums at a time were slower by a fifth.
        let add = |sum: &mut T, cells: &[u32]| {
            for cell in cells {
                debug_assert!((*cell as usize) < values.len());
                // SAFETY: a cell is a position of the projection: `page_rows` and `amend` take cells from its numbering, or from rows of an
                // earlier projection, whose positions it keeps. So the cell is below `positions`, and there are as many values.
                *sum += *unsafe { values.get_unchecked(*cell as usize) };
            }
        };
        each_page(self.incoming_rows(), range, |page, slots| {
            // Two loops: in one, short rows were slower by a fifth.
            if page.cell_count() < AHEAD_MIN {
                page.each_row(slots, |row| {
                    let mut sum = T::default();
                    add(&mut sum, row);
                    each(sum);
                });
            } else {
                page.each_row(slots, |row| {
                    let mut sum = T::default();
                    for cells in row.chunks(LINE) {
                        prefetch_once(cells, AHEAD);
                        add(&mut sum, cells);
                    }
                    each(sum);
                });
            }
        });
    }
}
