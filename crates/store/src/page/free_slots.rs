//! The account of free slots of a label set: slots that elements left, and which transaction gets them.
//!
//! A page with free slots is in one of these states:
//!
//! | state | its free slots | handed out |
//! |---|---|---|
//! | *open* | listed here one by one; the page has version words | first, lowest page first, so that pages fill from the front and free slots gather in few pages |
//! | frozen and *roomy* (a sixteenth of its slots or more are free) | in the page's set of free slots; counted here | when no page is open: the lowest such page is opened |
//! | frozen and *cramped* | the same | not before another element leaves the page |
//! | *withdrawn* | taken out by a collector that is about to freeze the page | no |
//!
//! Opening a frozen page costs version words for all its slots, so it has to be worth it. A slot whose generations are
//! *used up* is never handed out; it is counted, so that its page can be frozen.
//!
//! Invariants, all kept under one lock:
//!
//! 1. A page's free slots are listed, or used up, or the page is frozen and they are in its set; those of a withdrawn
//!    page are none of these until the collector puts them back.
//! 2. A collector withdraws a page's slots only if they are all its free slots (STORE-24). So no transaction owns a
//!    slot there that was handed out and has no element yet.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use mangrove_graph::TabletId;
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicU64, Mutex};

/// A page of a label set. The order is by number, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PagePosition {
    pub(crate) number: usize,
    pub(crate) tablet: TabletId,
}

/// A frozen page is roomy if at least one slot in this many is free.
const ROOMY_PART: usize = 16;

#[derive(Debug, Default)]
struct Lists {
    /// Open pages: the ids of the last elements of their free slots, which name tablet and generation, too. No page is
    /// here without a slot.
    open: BTreeMap<PagePosition, Vec<u64>>,
    /// Frozen pages that are roomy: how many free slots they have.
    roomy: BTreeMap<PagePosition, usize>,
    /// Frozen pages that are cramped: how many free slots they have.
    cramped: BTreeMap<PagePosition, usize>,
    /// How many slots of a page are used up, whether the page is frozen or not. They are counted nowhere else.
    used_up: BTreeMap<PagePosition, usize>,
}

/// The account of free slots of a label set. Invariants: see the header of this file.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    lists: Mutex<Lists, rank::FreeSlots>,
    /// How many slots can be taken, so that a caller that finds none takes no lock. Changed under the lock.
    len: AtomicU64,
}

/// The slots of a page that a collector has withdrawn.
#[derive(Debug)]
pub(crate) struct Withdrawn {
    page: PagePosition,
    open: Vec<u64>,
    free_slots: usize,
    used_up: usize,
}

impl Withdrawn {
    /// How many free slots these are, used-up ones included.
    pub(crate) fn slot_count(&self) -> usize {
        self.open.len() + self.free_slots + self.used_up
    }
}

impl Lists {
    /// Takes a frozen page out of the account. Returns how many free slots it had, and how many of them could be taken.
    fn unfreeze(&mut self, page: PagePosition) -> (usize, usize) {
        match self.roomy.remove(&page) {
            Some(free_slots) => (free_slots, free_slots),
            None => (self.cramped.remove(&page).unwrap_or(0), 0),
        }
    }

    /// Lists the free slots of a page that an element has just left, if the page was frozen. Returns how many more
    /// slots can be taken.
    fn open(&mut self, page: PagePosition, free_slots: impl FnOnce(PagePosition) -> Vec<u64>) -> usize {
        let (holes_listed, to_be_had) = self.unfreeze(page);
        if holes_listed > 0 {
            self.open.entry(page).or_default().extend(free_slots(page));
        }
        holes_listed - to_be_had
    }
}

impl FreeSlots {
    /// Takes a slot, if there is one: the id of its last element. `free_slots` gives the last ids of a frozen page's
    /// free slots that are not used up.
    #[inline]
    pub(crate) fn take(&self, free_slots: impl FnOnce(PagePosition) -> Vec<u64>) -> Option<u64> {
        // Relaxed: a hint; the lock orders what matters.
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut lists = self.lists.lock();
        if lists.open.is_empty() {
            let (page, _) = lists.roomy.pop_first()?;
            lists.open.insert(page, free_slots(page));
        }
        let mut lowest = lists.open.first_entry()?;
        let bits = lowest.get_mut().pop().expect("a page that is listed has a slot");
        if lowest.get().is_empty() {
            lowest.remove();
        }
        self.add(-1);
        Some(bits)
    }

    /// Gives back a slot, by the id of its element. `free_slots` as for [`FreeSlots::take`].
    pub(crate) fn give(&self, page: PagePosition, bits: u64, free_slots: impl FnOnce(PagePosition) -> Vec<u64>) {
        let mut lists = self.lists.lock();
        let more = lists.open(page, free_slots) + 1;
        lists.open.entry(page).or_default().push(bits);
        self.add(more as i64);
    }

    /// Gives back a slot whose generations are used up. `free_slots` as for [`FreeSlots::take`].
    pub(crate) fn use_up(&self, page: PagePosition, free_slots: impl FnOnce(PagePosition) -> Vec<u64>) {
        let mut lists = self.lists.lock();
        let more = lists.open(page, free_slots);
        *lists.used_up.entry(page).or_default() += 1;
        self.add(more as i64);
    }

    /// Counts slots that can be taken from here on, or no more. The caller holds the lock.
    fn add(&self, slots: i64) {
        self.len.store(self.len.load(Ordering::Relaxed).wrapping_add_signed(slots), Ordering::Relaxed);
    }

    /// Withdraws the free slots of a page, if they are as many as `count_free_slots` says. It is asked under the lock,
    /// while no slot is handed out. By a collector that is about to freeze the page.
    pub(crate) fn withdraw(&self, page: PagePosition, count_free_slots: impl FnOnce() -> usize) -> Option<Withdrawn> {
        let mut lists = self.lists.lock();
        let listed = lists.open.get(&page).map_or(0, Vec::len);
        let frozen = lists.roomy.get(&page).or_else(|| lists.cramped.get(&page)).copied().unwrap_or(0);
        let used_up = lists.used_up.get(&page).copied().unwrap_or(0);
        if listed + frozen + used_up != count_free_slots() {
            return None;
        }
        let open = lists.open.remove(&page).unwrap_or_default();
        let (free_slots, to_be_had) = lists.unfreeze(page);
        self.add(-((open.len() + to_be_had) as i64));
        Some(Withdrawn { page, open, free_slots, used_up })
    }

    /// Puts back the withdrawn slots of a page of `capacity` slots, which is frozen or is not.
    pub(crate) fn put_back(&self, withdrawn: Withdrawn, capacity: usize, is_frozen: bool) {
        let Withdrawn { page, open, free_slots, .. } = withdrawn;
        let frozen = if is_frozen { open.len() + free_slots } else { free_slots };
        let mut lists = self.lists.lock();
        if !is_frozen && !open.is_empty() {
            self.add(open.len() as i64);
            lists.open.entry(page).or_default().extend(open);
        }
        if frozen > 0 && frozen * ROOMY_PART >= capacity {
            self.add(frozen as i64);
            lists.roomy.insert(page, frozen);
        } else if frozen > 0 {
            lists.cramped.insert(page, frozen);
        }
    }

    /// How many slots are free and not used up.
    pub(crate) fn len(&self) -> u64 {
        let lists = self.lists.lock();
        self.len.load(Ordering::Relaxed) + lists.cramped.values().sum::<usize>() as u64
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    const fn page(number: usize) -> PagePosition {
        PagePosition { number, tablet: TabletId(1) }
    }

    fn none(page: PagePosition) -> Vec<u64> {
        unreachable!("{page:?} is not frozen")
    }

    #[test]
    fn slots_on_the_lowest_page_go_first() {
        let free = FreeSlots::default();
        [(7, 70), (3, 30), (3, 31), (5, 50)].into_iter().for_each(|(number, bits)| free.give(page(number), bits, none));
        let taken: Vec<u64> = std::iter::from_fn(|| free.take(none)).collect();
        assert_eq!((taken, free.len()), (vec![31, 30, 50, 70], 0));
    }

    #[test]
    fn a_page_is_frozen_only_with_all_its_free_slots() {
        let free = FreeSlots::default();
        [10, 11].into_iter().for_each(|bits| free.give(page(1), bits, none));
        // One slot was handed out, and has no element yet.
        assert_eq!(free.take(none), Some(11));
        assert!(free.withdraw(page(1), || 2).is_none());
        let withdrawn = free.withdraw(page(1), || 1).unwrap();
        assert_eq!((free.take(none), free.len()), (None, 0));
        free.put_back(withdrawn, 1_024, false);
        assert_eq!((free.take(none), free.len()), (Some(10), 0));
    }

    #[test]
    fn slots_that_are_used_up_count_as_free_and_are_not_handed_out() {
        let free = FreeSlots::default();
        free.use_up(page(1), none);
        free.give(page(1), 10, none);
        assert!(free.withdraw(page(1), || 1).is_none());
        let withdrawn = free.withdraw(page(1), || 2).unwrap();
        assert_eq!(withdrawn.slot_count(), 2);
        free.put_back(withdrawn, 8, true);
        assert_eq!((free.len(), free.take(|_| vec![10]), free.take(none), free.len()), (1, Some(10), None, 0));
        // The last one is used up, too.
        free.use_up(page(1), none);
        let withdrawn = free.withdraw(page(1), || 2).unwrap();
        assert_eq!(withdrawn.slot_count(), 2);
        free.put_back(withdrawn, 8, true);
        assert_eq!((free.len(), free.take(none)), (0, None));
    }

    #[test]
    fn frozen_pages_are_opened_when_it_is_worth_it() {
        let free = FreeSlots::default();
        let freeze = |number, free_slots: u64, capacity| {
            (0..free_slots).for_each(|bits| free.give(page(number), bits, none));
            let withdrawn = free.withdraw(page(number), || free_slots as usize).unwrap();
            free.put_back(withdrawn, capacity, true);
        };
        freeze(1, 2, 1_024);
        freeze(2, 3, 32);
        free.give(page(9), 90, none);
        assert_eq!((free.len(), free.take(none)), (6, Some(90)));
        let free_slots = |found: PagePosition| {
            assert_eq!(found, page(2));
            vec![20, 21, 22]
        };
        assert_eq!((free.take(free_slots), free.take(none), free.take(none)), (Some(22), Some(21), Some(20)));
        assert_eq!((free.take(none), free.len()), (None, 2));
        // Another element leaves the first page.
        free.give(page(1), 12, |_| vec![10, 11]);
        assert_eq!((free.len(), free.take(none), free.take(none), free.take(none)), (3, Some(12), Some(11), Some(10)));
    }
}
