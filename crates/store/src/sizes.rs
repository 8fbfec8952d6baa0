//! Sizes at which structures of the store take another form.

use mangrove_graph::PAGE_SLOTS;

/// The longest packed run that a descriptor word describes by itself, in edges.
pub(crate) const LENGTH_MAX: u32 = (1 << 15) - 1;

/// Sizes at which structures of the store take another form.
///
/// The defaults were found by measurement. Tests choose smaller sizes, so that a few elements cross every boundary. A
/// store is right with any sizes, and a graph on disk does not depend on them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StoreSizes {
    /// The number of slots of the first page of a label set (of edges: in each tablet), a power of two. Later pages
    /// have more. A small page is soon full, and a large one is wasted on a rare label.
    pub first_page_slots: u32,
    /// The most slots of a page: up to 1,024.
    pub page_slots_max: u32,
    /// The longest packed run, in edges, that a descriptor word describes by itself: up to 32,767. A longer run has a
    /// list header.
    pub run_max: u32,
    /// The length, in edges, from which a compaction gives an adjacency list a block to itself, so that the other lists
    /// of the page can be packed without it. At most `run_max`.
    pub long_list: u32,
    /// The fewest changes that make a table of adjacency lists due for compaction. Fewer are not worth a new block.
    pub changes_min: u16,
}

impl StoreSizes {
    /// The smallest sizes: one slot, one edge, one change.
    pub const SMALLEST: StoreSizes =
        StoreSizes { first_page_slots: 1, page_slots_max: 1, run_max: 1, long_list: 1, changes_min: 1 };

    /// The sizes, each moved into the range that the store can work with.
    pub(crate) fn within_limits(self) -> Self {
        let page_slots_max = self.page_slots_max.clamp(1, PAGE_SLOTS as u32);
        let run_max = self.run_max.clamp(1, LENGTH_MAX);
        StoreSizes {
            first_page_slots: self.first_page_slots.clamp(1, PAGE_SLOTS as u32).next_power_of_two().min(page_slots_max),
            page_slots_max,
            run_max,
            long_list: self.long_list.clamp(1, run_max),
            changes_min: self.changes_min.clamp(1, u16::MAX / 2),
        }
    }

    /// The number of slots of the next page of a label set, after one with this many slots: 8, 24, 32, 64, 128, .. 512.
    /// The small pages together have 1,024 slots. Many labels have exactly one edge for every vertex of a page, and
    /// these edges should not need one more page.
    pub(crate) fn next_capacity(&self, before: Option<usize>) -> u32 {
        let first = self.first_page_slots;
        let slots = match before.map(|slots| slots as u32) {
            None => first,
            Some(slots) if slots == first => 3 * first,
            Some(slots) if slots == 3 * first => 4 * first,
            Some(slots) => 2 * slots,
        };
        slots.min(self.page_slots_max)
    }
}

impl Default for StoreSizes {
    fn default() -> Self {
        StoreSizes {
            first_page_slots: 8,
            page_slots_max: PAGE_SLOTS as u32,
            run_max: LENGTH_MAX,
            long_list: 4_096,
            changes_min: 128,
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    fn capacities(sizes: StoreSizes) -> Vec<u32> {
        let sizes = sizes.within_limits();
        let next = |before: &u32| Some(sizes.next_capacity(Some(*before as usize)));
        std::iter::successors(Some(sizes.next_capacity(None)), next).take(9).collect()
    }

    #[test]
    fn the_small_pages_of_a_label_set_hold_as_much_as_a_whole_one() {
        assert_eq!(capacities(StoreSizes::default()), [8, 24, 32, 64, 128, 256, 512, 1_024, 1_024]);
        assert_eq!(capacities(StoreSizes { page_slots_max: 40, ..StoreSizes::default() })[..5], [8, 24, 32, 40, 40]);
        assert_eq!(capacities(StoreSizes::SMALLEST), [1; 9]);
    }

    #[test]
    fn sizes_that_the_store_cannot_work_with_are_moved_into_its_range() {
        let none = StoreSizes { first_page_slots: 0, page_slots_max: 0, run_max: 0, long_list: 0, changes_min: 0 };
        assert_eq!(none.within_limits(), StoreSizes::SMALLEST);
        let all = StoreSizes {
            first_page_slots: u32::MAX,
            page_slots_max: u32::MAX,
            run_max: u32::MAX,
            long_list: u32::MAX,
            changes_min: u16::MAX,
        };
        let most = all.within_limits();
        assert_eq!((most.first_page_slots, most.page_slots_max), (1_024, 1_024));
        assert_eq!((most.run_max, most.long_list), (32_767, 32_767));
        assert_eq!(StoreSizes::default().within_limits(), StoreSizes::default());
    }
}
