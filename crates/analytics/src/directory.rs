//! The table that finds the positions of a page from an id.
//!
//! A new projection asks it for each cell, so it is one array, and many ids are looked up together: first where to
//! look, by arithmetic that the compiler does for several ids at a time, and then the looks.
//!
//! The array has an entry for every page of a tablet that is no greater than the greatest page of any: at most 4 bytes for each page and
//! tablet of the graph. Stores fill their tablets evenly, and then it has few entries too many.

use mangrove_graph::{PAGE_SLOTS, VertexId};

use crate::numbering::NO_POSITION;

/// The entry of a page without positions. Greater than the first position of any page.
const NO_PAGE: u32 = NO_POSITION - (PAGE_SLOTS as u32 - 1);
/// Ids that are looked up together.
const TOGETHER: usize = 64;

/// The first positions of pages, by their tablets and numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    /// The first tablet that has a page.
    first_tablet: u64,
    /// Each tablet has two to the power of this entries.
    bits: u32,
    pub(crate) bases: Vec<u32>,
}

impl Directory {
    /// Of the ids of the first slots of pages, in the order of the pages' ordinals.
    pub(crate) fn of(pages: &[VertexId]) -> Self {
        let tablets = || pages.iter().map(|id| u64::from(id.tablet().0));
        let (Some(first_tablet), Some(last)) = (tablets().min(), tablets().max()) else { return Directory::default() };
        let pages_of_tablet = pages.iter().map(|id| id.page() + 1).max().unwrap_or_default();
        let bits = pages_of_tablet.next_power_of_two().ilog2();
        let bases = vec![NO_PAGE; ((last - first_tablet + 1) << bits) as usize];
        let mut directory = Directory { first_tablet, bits, bases };
        for (ordinal, id) in pages.iter().enumerate() {
            let (entry, _) = directory.entry(*id);
            directory.bases[entry as usize] = ordinal as u32 * PAGE_SLOTS as u32;
        }
        directory
    }

    /// Where the entry of the page of an id is. There is none if the second number is not 0, or if the first is too great.
    #[inline]
    fn entry(&self, id: VertexId) -> (u64, u64) {
        let tablet = u64::from(id.tablet().0).wrapping_sub(self.first_tablet);
        let page = id.page() as u64;
        // A tablet before the first one has become a great number.
        (tablet << self.bits | page, page >> self.bits | tablet >> u16::BITS)
    }

    /// The first position of the page of an id.
    #[inline]
    pub(crate) fn base(&self, id: VertexId) -> Option<u32> {
        let (entry, beyond) = self.entry(id);
        self.bases.get(entry as usize).copied().filter(|base| beyond == 0 && *base != NO_PAGE)
    }

    /// Appends the position of each of these places, or [`NO_POSITION`].
    pub(crate) fn append_positions(&self, ids: &[VertexId], out: &mut Vec<u32>) {
        out.reserve(ids.len());
        let bases = &*self.bases;
        for ids in ids.chunks(TOGETHER) {
            let (mut entries, mut beyond) = ([0; TOGETHER], 0);
            for (to, id) in entries.iter_mut().zip(ids) {
                let (entry, is_beyond) = self.entry(*id);
                *to = entry;
                beyond |= is_beyond;
            }
            let begin = out.len();
            let look = |(id, entry): (&VertexId, &u64)| {
                bases.get(*entry as usize).copied().unwrap_or(NO_PAGE) | id.offset() as u32
            };
            if beyond == 0 {
                out.extend(ids.iter().zip(&entries).map(look));
            } else {
                out.extend(ids.iter().map(|id| self.base(*id).map_or(NO_PAGE, |base| base | id.offset() as u32)));
            }
            out[begin..]
                .iter_mut()
                .for_each(|position| *position |= if *position >= NO_PAGE { NO_POSITION } else { 0 });
        }
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::TabletId;

    use super::*;

    fn id(tablet: u16, page: u64, offset: u64) -> VertexId {
        VertexId::new(TabletId(tablet), page * PAGE_SLOTS + offset)
    }

    #[test]
    fn pages_that_are_there_have_positions_and_no_others() {
        let pages = [id(3, 0, 0), id(3, 5, 0), id(7, 2, 0), id(4, 0, 0)];
        let directory = Directory::of(&pages);
        let mut ids = Vec::new();
        for tablet in [0, 1, 2, 3, 4, 6, 7, 8, 9, u16::MAX] {
            ids.extend([0, 1, 2, 5, 6, 7, 8, 13, 1 << 20].map(|page| id(tablet, page, page % 3 + 1)));
        }
        let expected = |id: &VertexId| {
            let of_page = |first: &VertexId| first.tablet() == id.tablet() && first.page() == id.page();
            pages.iter().position(of_page).map_or(NO_POSITION, |ordinal| (ordinal * 1_024 + id.offset()) as u32)
        };
        let expected: Vec<u32> = ids.iter().map(expected).collect();
        let one_by_one = |id: &VertexId| directory.base(*id).map_or(NO_POSITION, |base| base | id.offset() as u32);
        assert_eq!(ids.iter().map(one_by_one).collect::<Vec<_>>(), expected);
        // Alone, in chunks with ids that have no entry, and in chunks without.
        let mut found = Vec::new();
        directory.append_positions(&ids, &mut found);
        assert_eq!(found, expected);
        found.clear();
        ids.iter().for_each(|id| directory.append_positions(&[*id], &mut found));
        assert_eq!(found, expected);
        let there = [id(4, 0, 9), id(3, 5, 1_023), id(3, 1, 0)];
        found.clear();
        directory.append_positions(&there.repeat(50), &mut found);
        assert_eq!(found, [3 * 1_024 + 9, 1_024 + 1_023, NO_POSITION].repeat(50));
    }

    #[test]
    fn without_pages_there_are_no_positions() {
        let mut found = Vec::new();
        Directory::of(&[]).append_positions(&[id(0, 0, 0), id(9, 9, 9)], &mut found);
        assert_eq!(found, [NO_POSITION; 2]);
    }
}
