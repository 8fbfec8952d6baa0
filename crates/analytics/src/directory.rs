//! The table that finds the positions of a page from an id.
//!
//! A new projection asks it for each cell. Mostly the pages of each tablet follow one another, by their numbers and by their positions, as they do in a
//! new projection of all vertices. Then a position is the place in the tablet and the first position of the tablet, without a look for the page:
//! arithmetic that the compiler does for several ids at a time.
//!
//! Otherwise an array has an entry for every page of a tablet that is no greater than the greatest page of any: at most 4 bytes for each page and
//! tablet of the graph. Stores fill their tablets evenly, and then it has few entries too many.

use std::mem::MaybeUninit;

use mangrove_graph::{PAGE_SLOTS, VertexId};
use mangrove_reclaim::prefetch::prefetch_range_once;

/// The position of no vertex.
pub const NO_POSITION: u32 = u32::MAX;

/// The entry of a page without positions. Greater than the first position of any page.
const NO_PAGE: u32 = NO_POSITION - (PAGE_SLOTS as u32 - 1);
/// Ids that are looked up together.
const TOGETHER: usize = 64;
/// How many ids ahead of their use ids are loaded: two kilobytes.
const AHEAD: usize = 256;
/// Of graphs with more tablets, positions are found by pages alone.
const TABLETS: usize = 128;

/// The first positions of pages, by their tablets and numbers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Directory {
    /// The first tablet that has a page.
    first_tablet: u64,
    /// Each tablet has two to the power of this entries.
    bits: u32,
    pub(crate) bases: Vec<u32>,
    /// By tablet, if all pages from the first one on have positions that follow one another in every tablet, and if there are few tablets.
    stretches: Option<Box<[Stretch; TABLETS]>>,
}

/// The positions of a tablet whose pages follow one another: the lower half is the position of the first place, and the upper half
/// the last place with a position, or -1 if there is none. One word, so that a position and whether there is one are found together.
#[derive(Clone, Copy, Debug)]
struct Stretch(u64);

impl Stretch {
    const NONE: Stretch = Stretch::new(0, -1);

    const fn new(first: u32, last: i32) -> Self {
        Stretch((last as u32 as u64) << u32::BITS | first as u64)
    }

    fn first(self) -> u32 {
        self.0 as u32
    }

    fn last(self) -> i32 {
        (self.0 >> u32::BITS) as i32
    }
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
        let Some(stretches) = &self.stretches else { return false };
        append_positions(stretches, ids, out, true)
    }
}

/// Appends the position of each of these places, by the `best` instructions that the processor has or by those of every processor. Returns
/// as [`write_positions`] does.
fn append_positions(stretches: &[Stretch; TABLETS], ids: &[VertexId], out: &mut Vec<u32>, best: bool) -> bool {
    out.reserve(ids.len());
    let places = &mut out.spare_capacity_mut()[..ids.len()];
    let have_all = if best { write_with_best(stretches, ids, places) } else { write_positions(stretches, ids, places) };
    // SAFETY: there is room, and `write_positions` has written each of these places: there are as many as ids.
    #[expect(unsafe_code, reason = "to set the entries to 0 first takes a twentieth of the time of a projection")]
    unsafe {
        out.set_len(out.len() + ids.len());
    }
    have_all
}

/// [`write_positions`], by the best instructions that the processor has.
fn write_with_best(stretches: &[Stretch; TABLETS], ids: &[VertexId], positions: &mut [MaybeUninit<u32>]) -> bool {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has the instructions.
        #[expect(unsafe_code, reason = "the compiler does not know which instructions the processor has")]
        return unsafe { write_positions_avx2(stretches, ids, positions) };
    }
    write_positions(stretches, ids, positions)
}

/// [`write_positions`], by instructions for four ids at a time, which not every processor has: that takes two thirds of the time.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn write_positions_avx2(stretches: &[Stretch; TABLETS], ids: &[VertexId], positions: &mut [MaybeUninit<u32>]) -> bool {
    write_positions(stretches, ids, positions)
}

/// Writes the position of each of these places. Returns false if one of them has none: then what is written has no meaning.
#[inline(always)]
fn write_positions(stretches: &[Stretch; TABLETS], ids: &[VertexId], positions: &mut [MaybeUninit<u32>]) -> bool {
    assert_eq!(ids.len(), positions.len(), "a position for each id");
    let (mut all_ids, mut all_found) = (0, 0);
    for (ids, positions) in ids.chunks(TOGETHER).zip(positions.chunks_mut(TOGETHER)) {
        prefetch_range_once(ids, AHEAD..AHEAD + TOGETHER);
        for (id, position) in ids.iter().zip(positions) {
            let Stretch(stretch) = stretches[usize::from(id.tablet().0) % TABLETS];
            let place = id.to_bits() & u64::from(u32::MAX);
            let upper = place << u32::BITS;
            // The lower half is the position. The upper half is how many places come after this one: negative, if it is beyond the last one. There
            // is no carry from the lower half to the upper one, if the place is no more than one beyond the last: positions have 32 bits.
            let found = stretch.wrapping_add(place).wrapping_sub(upper);
            position.write(found as u32);
            // Places from 2³¹ on are negative here. There are none from 2³² on: a graph with more places has no numbering.
            all_found |= found | upper;
            all_ids |= id.to_bits();
        }
    }
    (all_found as i64) >= 0 && usize::from(VertexId::from_bits(all_ids).tablet().0) < TABLETS
}

/// The positions of each tablet, if its pages follow one another from the first one on.
fn stretches(pages: &[VertexId]) -> Option<Box<[Stretch; TABLETS]>> {
    let mut stretches = Box::new([Stretch::NONE; TABLETS]);
    for (ordinal, id) in pages.iter().enumerate() {
        let position = ordinal as u32 * PAGE_SLOTS as u32;
        let stretch = stretches.get_mut(usize::from(id.tablet().0))?;
        let places = (stretch.last() + 1) as u32;
        let first = if places == 0 { position } else { stretch.first() };
        let is_next = id.page() as u64 * PAGE_SLOTS == u64::from(places) && position - first == places;
        let last = stretch.last().checked_add(PAGE_SLOTS as i32).filter(|_| is_next)?;
        *stretch = Stretch::new(first, last);
    }
    Some(stretches)
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::TabletId;
    use rand::rngs::SmallRng;
    use rand::{Rng, SeedableRng};

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
        assert!(directory.stretches.is_some());
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

    /// All ways to write positions find the same.
    #[test]
    fn positions_of_many_places_are_those_of_each() {
        let mut random = SmallRng::seed_from_u64(11);
        for (tablets, pages) in [(1, 40), (5, 7), (100, 2), (200, 1)] {
            let pages: Vec<VertexId> = (1..=tablets)
                .flat_map(|tablet| (0..pages + u64::from(tablet % 3)).map(move |page| id(tablet, page, 0)))
                .collect();
            let directory = Directory::of(&pages);
            assert_eq!(directory.stretches.is_some(), usize::from(tablets) < TABLETS);
            for length in [0, 1, 63, 64, 65, 1_000] {
                let ids: Vec<VertexId> = (0..length)
                    .map(|_| {
                        VertexId::from_bits(
                            pages[random.random_range(0..pages.len())].to_bits() + random.random_range(0..PAGE_SLOTS),
                        )
                    })
                    .collect();
                let one_by_one =
                    |id: &VertexId| directory.base(*id).map_or(NO_POSITION, |base| base | id.offset() as u32);
                let check = |ids: &[VertexId]| {
                    let expected: Vec<u32> = ids.iter().map(one_by_one).collect();
                    let mut found = vec![5];
                    let have_all = !expected.contains(&NO_POSITION);
                    assert_eq!(directory.append_positions(ids, &mut found), have_all);
                    assert_eq!(found[1..], expected);
                    if let Some(stretches) = &directory.stretches {
                        let mut found = Vec::new();
                        assert_eq!(append_positions(stretches, ids, &mut found, false), have_all);
                        assert!(!have_all || found == expected);
                    }
                };
                check(&ids);
                for place in
                    [2 * PAGE_SLOTS + 5, 9 * PAGE_SLOTS, 50 * PAGE_SLOTS, 1 << 31, (1 << 31) - 1, (1 << 32) - 1]
                {
                    for tablet in [0, 1, tablets, tablets + 1, tablets + TABLETS as u16, u16::MAX] {
                        let mut ids = ids.clone();
                        if length > 0 {
                            ids[random.random_range(0..length)] = VertexId::new(TabletId(tablet), place);
                        }
                        check(&ids);
                    }
                }
            }
        }
    }

    #[test]
    fn without_pages_there_are_no_positions() {
        let mut found = Vec::new();
        Directory::of(&[]).append_positions(&[id(0, 0, 0), id(9, 9, 9)], &mut found);
        assert_eq!(found, [NO_POSITION; 2]);
    }
}
