//! The table that finds the positions of a page from an id.
//!
//! A new projection asks it for each cell, so it is one array, and many ids are looked up together: first where to
//! look, by arithmetic that the compiler does for several ids at a time, and then the looks.
//!
//! Mostly the pages of each tablet follow one another, by their numbers and by their positions, as they do in a new projection of all vertices. Then
//! a position is the place in the tablet and the first position of the tablet, without a look for the page.
//!
//! Otherwise an array has an entry for every page of a tablet that is no greater than the greatest page of any: at most 4 bytes for each page and
//! tablet of the graph. Stores fill their tablets evenly, and then it has few entries too many.

use mangrove_graph::{PAGE_SLOTS, VertexId};

/// The position of no vertex.
pub const NO_POSITION: u32 = u32::MAX;

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
    /// By tablet, if all pages from the first one on have positions that follow one another in every tablet; otherwise empty.
    stretches: Vec<Stretch>,
}

/// The positions of a tablet whose pages follow one another.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    /// The position of the first place.
    first: u32,
    /// The last place with a position; -1 if there is none.
    last: i32,
}

impl Directory {
    /// Of the ids of the first slots of pages, in the order of the pages' ordinals.
    pub(crate) fn of(pages: &[VertexId]) -> Self {
        let tablets = || pages.iter().map(|id| u64::from(id.tablet().0));
        let (Some(first_tablet), Some(last)) = (tablets().min(), tablets().max()) else { return Directory::default() };
        let pages_of_tablet = pages.iter().map(|id| id.page() + 1).max().unwrap_or_default();
        let bits = pages_of_tablet.next_power_of_two().ilog2();
        let bases = vec![NO_PAGE; ((last - first_tablet + 1) << bits) as usize];
        let mut directory = Directory { first_tablet, bits, bases, stretches: stretches(pages) };
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

    /// Appends the position of each of these places, or [`NO_POSITION`]. Returns true if each has one.
    pub(crate) fn append_positions(&self, ids: &[VertexId], out: &mut Vec<u32>) -> bool {
        let begin = out.len();
        if self.append_by_tablet(ids, out) {
            return true;
        }
        out.truncate(begin);
        let position = |id: &VertexId| self.base(*id).map_or(NO_POSITION, |base| base | id.offset() as u32);
        out.extend(ids.iter().map(position));
        !out[begin..].contains(&NO_POSITION)
    }

    /// As [`Directory::append_positions`], if all are found by their tablets. Otherwise what is appended has no meaning.
    fn append_by_tablet(&self, ids: &[VertexId], out: &mut Vec<u32>) -> bool {
        let stretches = &*self.stretches;
        let mut positions = [0; TOGETHER];
        out.reserve(ids.len());
        for ids in ids.chunks(TOGETHER) {
            // Negative if one place is beyond the last one of its tablet.
            let mut rest = 0;
            for (position, id) in positions.iter_mut().zip(ids) {
                let Some(stretch) = stretches.get(usize::from(id.tablet().0)) else { return false };
                // Places from 2³¹ on are negative here. There are none from 2³² on: a graph with more places has no numbering.
                let place = id.to_bits() as u32;
                rest |= stretch.last.wrapping_sub(place as i32) | place as i32;
                *position = stretch.first.wrapping_add(place);
            }
            if rest < 0 {
                return false;
            }
            out.extend_from_slice(&positions[..ids.len()]);
        }
        true
    }
}

/// The positions of each tablet, if its pages follow one another from the first one on.
fn stretches(pages: &[VertexId]) -> Vec<Stretch> {
    let mut stretches: Vec<Stretch> = Vec::new();
    for (ordinal, id) in pages.iter().enumerate() {
        let (tablet, position) = (usize::from(id.tablet().0), ordinal as u32 * PAGE_SLOTS as u32);
        if stretches.len() <= tablet {
            stretches.resize(tablet + 1, Stretch { first: 0, last: -1 });
        }
        let stretch = &mut stretches[tablet];
        let places = (stretch.last + 1) as u32;
        if places == 0 {
            stretch.first = position;
        }
        let is_next = id.page() as u64 * PAGE_SLOTS == u64::from(places) && position - stretch.first == places;
        let Some(last) = stretch.last.checked_add(PAGE_SLOTS as i32).filter(|_| is_next) else { return Vec::new() };
        stretch.last = last;
    }
    stretches
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
        // Alone, together with ids that have no entry, and without such ids.
        let mut found = Vec::new();
        assert!(!directory.append_positions(&ids, &mut found));
        assert_eq!(found, expected);
        found.clear();
        for (id, expected) in ids.iter().zip(&expected) {
            assert_eq!(directory.append_positions(&[*id], &mut found), *expected != NO_POSITION);
        }
        assert_eq!(found, expected);
        let there = [id(4, 0, 9), id(3, 5, 1_023), id(3, 1, 0)];
        found.clear();
        assert!(!directory.append_positions(&there.repeat(50), &mut found));
        assert_eq!(found, [3 * 1_024 + 9, 1_024 + 1_023, NO_POSITION].repeat(50));
        found.clear();
        assert!(directory.append_positions(&there[..2].repeat(50), &mut found));
        assert_eq!(found, [3 * 1_024 + 9, 1_024 + 1_023].repeat(50));
    }

    /// All pages of a tablet, as a new numbering has them: then a place is enough to find the position.
    #[test]
    fn places_beyond_the_last_page_of_a_tablet_have_no_positions() {
        let pages: Vec<VertexId> = [(2, 3), (5, 1), (6, 2)]
            .into_iter()
            .flat_map(|(tablet, count)| (0..count).map(move |page| id(tablet, page, 0)))
            .collect();
        let directory = Directory::of(&pages);
        assert_eq!(directory.stretches.len(), 7);
        let there: Vec<VertexId> =
            pages.iter().flat_map(|page| [*page, VertexId::from_bits(page.to_bits() + 1_023)]).collect();
        let expected: Vec<u32> =
            (0..pages.len() as u32).flat_map(|ordinal| [ordinal * 1_024, ordinal * 1_024 + 1_023]).collect();
        let mut found = Vec::new();
        assert!(directory.append_positions(&there.repeat(40), &mut found));
        assert_eq!(found, expected.repeat(40));
        // The generation does not count.
        found.clear();
        assert!(directory.append_positions(&[there[3].with_generation(700)], &mut found));
        assert_eq!(found, [expected[3]]);
        for unknown in [id(2, 3, 0), id(5, 1, 7), id(3, 0, 0), id(6, 1 << 21, 0), id(9, 0, 0)] {
            found.clear();
            assert!(!directory.append_positions(&[there[0], unknown, there[1]], &mut found), "{unknown:?}");
            assert_eq!(found, [expected[0], NO_POSITION, expected[1]]);
        }
    }

    #[test]
    fn without_pages_there_are_no_positions() {
        let mut found = Vec::new();
        Directory::of(&[]).append_positions(&[id(0, 0, 0), id(9, 9, 9)], &mut found);
        assert_eq!(found, [NO_POSITION; 2]);
    }
}
