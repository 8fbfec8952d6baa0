//! Places that elements left, and who gets them.
//!
//! A page with free places is either *open*, its places listed one by one, or *settled* (`settle`): it has no version
//! words, and its places are those in its set of holes. Open places are handed out first, those on the lowest page before
//! others: pages fill up from the front again, and holes gather in a few. When no page is open, the lowest settled one
//! is opened that has room enough to be worth it: an element on it takes version words for all its slots. The holes
//! of settled pages with less room wait until another element leaves the page; they are a sixteenth of the places at
//! most.
//!
//! A place has a number of generations. When they are *used up* it is free and is handed out no more: it is only counted,
//! so that its page can be settled.
//!
//! Invariants:
//!
//! 1. A page's free places are listed, or used up, or the page is settled and they are its holes; those of a page that a
//!    collector is about to settle are none of it, until it has or has not.
//! 2. All under one lock. Who settles a page takes its places out first, and only when they are all its holes: so nobody
//!    has a place there that was handed out and has no element yet.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use mangrove_graph::TabletId;

use crate::sync::{AtomicU64, Mutex};

/// A page, lowest number first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PageOf {
    pub(crate) number: usize,
    pub(crate) tablet: TabletId,
}

/// A page is worth being opened when this part of its slots is free.
const ROOMY_PART: usize = 16;

#[derive(Debug, Default)]
struct Lists {
    /// Of open pages, the ids of the places' last elements, which name tablet and generation, too; no page without any.
    open: BTreeMap<PageOf, Vec<u64>>,
    /// Settled pages that are worth being opened: how many holes they have.
    roomy: BTreeMap<PageOf, usize>,
    /// Other settled pages with holes.
    cramped: BTreeMap<PageOf, usize>,
    /// How many places of a page are used up, of settled pages and others. Nowhere else are they counted.
    used_up: BTreeMap<PageOf, usize>,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct FreePlaces {
    lists: Mutex<Lists>,
    /// How many are to be had, so that nobody takes the lock in vain.
    len: AtomicU64,
}

/// What a collector has taken out of the lists.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    page: PageOf,
    open: Vec<u64>,
    holes: usize,
    used_up: usize,
}

impl Withdrawn {
    /// How many holes these are, places that are used up among them.
    pub(crate) fn hole_count(&self) -> usize {
        self.open.len() + self.holes + self.used_up
    }
}

impl Lists {
    /// How many places are listed as holes of a settled page, which is settled no more as far as this is concerned; and
    /// how many of them were to be had.
    fn unsettle(&mut self, page: PageOf) -> (usize, usize) {
        match self.roomy.remove(&page) {
            Some(holes) => (holes, holes),
            None => (self.cramped.remove(&page).unwrap_or(0), 0),
        }
    }

    /// Lists the holes of a page that was settled until an element left it; how many more places are to be had.
    fn open(&mut self, page: PageOf, holes: impl FnOnce(PageOf) -> Vec<u64>) -> usize {
        let (holes_listed, to_be_had) = self.unsettle(page);
        if holes_listed > 0 {
            self.open.entry(page).or_default().extend(holes(page));
        }
        holes_listed - to_be_had
    }
}

impl FreePlaces {
    /// The last id of a place, if there is one. `holes` says the ids of the holes of a settled page that are not used up.
    #[inline]
    pub(crate) fn take(&self, holes: impl FnOnce(PageOf) -> Vec<u64>) -> Option<u64> {
        // Relaxed: a hint; the lock orders what matters.
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut lists = self.lists.lock();
        if lists.open.is_empty() {
            let (page, _) = lists.roomy.pop_first()?;
            lists.open.insert(page, holes(page));
        }
        let mut lowest = lists.open.first_entry()?;
        let bits = lowest.get_mut().pop().expect("a page that is listed has a place");
        if lowest.get().is_empty() {
            lowest.remove();
        }
        self.add(-1);
        Some(bits)
    }

    /// Gives back the place of an element by its id. `holes` as for [`FreePlaces::take`].
    pub(crate) fn give(&self, page: PageOf, bits: u64, holes: impl FnOnce(PageOf) -> Vec<u64>) {
        let mut lists = self.lists.lock();
        let more = lists.open(page, holes) + 1;
        lists.open.entry(page).or_default().push(bits);
        self.add(more as i64);
    }

    /// Gives back a place that is used up. `holes` as for [`FreePlaces::take`].
    pub(crate) fn use_up(&self, page: PageOf, holes: impl FnOnce(PageOf) -> Vec<u64>) {
        let mut lists = self.lists.lock();
        let more = lists.open(page, holes);
        *lists.used_up.entry(page).or_default() += 1;
        self.add(more as i64);
    }

    /// Counts places that are to be had from now on, or no more; by who has the lock.
    fn add(&self, places: i64) {
        self.len.store(self.len.load(Ordering::Relaxed).wrapping_add_signed(places), Ordering::Relaxed);
    }

    /// Takes the places of a page out if they are as many as `count_holes` says, asked while nobody is handed one:
    /// by a collector that is about to settle the page.
    pub(crate) fn withdraw(&self, page: PageOf, count_holes: impl FnOnce() -> usize) -> Option<Withdrawn> {
        let mut lists = self.lists.lock();
        let listed = lists.open.get(&page).map_or(0, Vec::len);
        let settled = lists.roomy.get(&page).or_else(|| lists.cramped.get(&page)).copied().unwrap_or(0);
        let used_up = lists.used_up.get(&page).copied().unwrap_or(0);
        if listed + settled + used_up != count_holes() {
            return None;
        }
        let open = lists.open.remove(&page).unwrap_or_default();
        let (holes, to_be_had) = lists.unsettle(page);
        self.add(-((open.len() + to_be_had) as i64));
        Some(Withdrawn { page, open, holes, used_up })
    }

    /// Puts back what was taken out of a page of `capacity` slots that is settled now, or is not.
    pub(crate) fn put_back(&self, withdrawn: Withdrawn, capacity: usize, is_settled: bool) {
        let Withdrawn { page, open, holes, .. } = withdrawn;
        let settled = if is_settled { open.len() + holes } else { holes };
        let mut lists = self.lists.lock();
        if !is_settled && !open.is_empty() {
            self.add(open.len() as i64);
            lists.open.entry(page).or_default().extend(open);
        }
        if settled > 0 && settled * ROOMY_PART >= capacity {
            self.add(settled as i64);
            lists.roomy.insert(page, settled);
        } else if settled > 0 {
            lists.cramped.insert(page, settled);
        }
    }

    /// How many places are free and not used up.
    pub(crate) fn len(&self) -> u64 {
        let lists = self.lists.lock();
        self.len.load(Ordering::Relaxed) + lists.cramped.values().sum::<usize>() as u64
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const fn page(number: usize) -> PageOf {
        PageOf { number, tablet: TabletId(1) }
    }

    fn none(page: PageOf) -> Vec<u64> {
        unreachable!("{page:?} is not settled")
    }

    #[test]
    fn places_on_the_lowest_page_go_first() {
        let free = FreePlaces::default();
        [(7, 70), (3, 30), (3, 31), (5, 50)].into_iter().for_each(|(number, bits)| free.give(page(number), bits, none));
        let taken: Vec<u64> = std::iter::from_fn(|| free.take(none)).collect();
        assert_eq!((taken, free.len()), (vec![31, 30, 50, 70], 0));
    }

    #[test]
    fn a_page_is_settled_only_with_all_its_holes() {
        let free = FreePlaces::default();
        [10, 11].into_iter().for_each(|bits| free.give(page(1), bits, none));
        // One place was handed out, and has no element yet.
        assert_eq!(free.take(none), Some(11));
        assert!(free.withdraw(page(1), || 2).is_none());
        let withdrawn = free.withdraw(page(1), || 1).unwrap();
        assert_eq!((free.take(none), free.len()), (None, 0));
        free.put_back(withdrawn, 1_024, false);
        assert_eq!((free.take(none), free.len()), (Some(10), 0));
    }

    #[test]
    fn places_that_are_used_up_count_as_holes_and_are_not_handed_out() {
        let free = FreePlaces::default();
        free.use_up(page(1), none);
        free.give(page(1), 10, none);
        assert!(free.withdraw(page(1), || 1).is_none());
        let withdrawn = free.withdraw(page(1), || 2).unwrap();
        assert_eq!(withdrawn.hole_count(), 2);
        free.put_back(withdrawn, 8, true);
        assert_eq!((free.len(), free.take(|_| vec![10]), free.take(none), free.len()), (1, Some(10), None, 0));
        // The last one is used up, too.
        free.use_up(page(1), none);
        let withdrawn = free.withdraw(page(1), || 2).unwrap();
        assert_eq!(withdrawn.hole_count(), 2);
        free.put_back(withdrawn, 8, true);
        assert_eq!((free.len(), free.take(none)), (0, None));
    }

    #[test]
    fn settled_pages_are_opened_when_it_is_worth_it() {
        let free = FreePlaces::default();
        let settle = |number, holes: u64, capacity| {
            (0..holes).for_each(|bits| free.give(page(number), bits, none));
            let withdrawn = free.withdraw(page(number), || holes as usize).unwrap();
            free.put_back(withdrawn, capacity, true);
        };
        settle(1, 2, 1_024);
        settle(2, 3, 32);
        free.give(page(9), 90, none);
        assert_eq!((free.len(), free.take(none)), (6, Some(90)));
        let holes = |found: PageOf| {
            assert_eq!(found, page(2));
            vec![20, 21, 22]
        };
        assert_eq!((free.take(holes), free.take(none), free.take(none)), (Some(22), Some(21), Some(20)));
        assert_eq!((free.take(none), free.len()), (None, 2));
        // Another element leaves the first page.
        free.give(page(1), 12, |_| vec![10, 11]);
        assert_eq!((free.len(), free.take(none), free.take(none), free.take(none)), (3, Some(12), Some(11), Some(10)));
    }
}
