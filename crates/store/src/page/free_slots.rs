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
//! A page knows which of its slots have no element: by its version words, or by its set of free slots while it is
//! frozen. The account knows which of those are free, that is, have no owner either. Only this module compares the two,
//! so every slot that loses its element or its owner is given back here ([`FreeSlots::give`]), whether it can be used
//! again or not. A slot that is given back nowhere keeps its page from ever being frozen.
//!
//! - **STORE-25.** A page's free slots are listed, or used up, or the page is frozen and they are in its set. Those of
//!   a withdrawn page are none of these until the collector puts them back. The account changes under one lock.
//! - A collector withdraws a page's slots only if they are all its slots without an element (STORE-24). So no
//!   transaction owns a slot there that was handed out and has no element yet.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;

use mangrove_graph::{EdgeId, ElementId, ElementKind, GENERATION_MAX, TabletId, VertexId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicU64, Mutex};
use mangrove_reclaim::{Pin, epoch};

use crate::page::{PAGE_SLOTS, PageCore, SlotPosition, SlotSet};

/// A page of a label set. The order is by number, lowest first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct PagePosition {
    pub(crate) number: usize,
    pub(crate) tablet: TabletId,
}

/// A page whose free slots the account keeps.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotPage<'a> {
    pub(crate) kind: ElementKind,
    pub(crate) position: PagePosition,
    pub(crate) core: &'a PageCore,
}

impl SlotPage<'_> {
    /// The bits of the id that the last element of a slot had.
    fn last_id(&self, at: usize) -> u64 {
        let PagePosition { number, tablet } = self.position;
        let slot = self.core.slot_number(number as u64 * PAGE_SLOTS, at);
        match self.kind {
            ElementKind::Vertex => VertexId::new(tablet, slot).to_bits(),
            ElementKind::Edge => EdgeId::new(tablet, slot).to_bits(),
        }
    }

    /// The last ids of the free slots that the page had when it was frozen, without those that are used up.
    fn frozen_ids(&self) -> Vec<u64> {
        let pin = epoch::pin();
        let free_slots = self.core.free_slots(&pin).into_iter().flat_map(SlotSet::iter);
        free_slots.filter(|&at| !self.core.is_used_up(at)).map(|at| self.last_id(at)).collect()
    }
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
    /// How many slots can be taken: those of open and of roomy pages.
    takeable: usize,
}

/// The account of free slots of a label set. Invariant: STORE-25.
#[derive(Debug, Default)]
pub(crate) struct FreeSlots {
    lists: Mutex<Lists, rank::FreeSlots>,
    /// How many slots can be taken, so that a caller that finds none takes no lock. Changed under the lock.
    len: AtomicU64,
}

/// The slots of a page that a collector has withdrawn.
#[derive(Debug)]
#[must_use = "withdrawn slots are lost unless they are put back"]
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
    /// Takes a frozen page out of the account. Returns how many free slots it had.
    fn unfreeze(&mut self, page: PagePosition) -> usize {
        if let Some(free_slots) = self.roomy.remove(&page) {
            self.takeable -= free_slots;
            return free_slots;
        }
        self.cramped.remove(&page).unwrap_or(0)
    }

    /// Lists free slots of a page one by one.
    fn list(&mut self, page: PagePosition, ids: impl IntoIterator<Item = u64>) {
        let listed = self.open.entry(page).or_default();
        let before = listed.len();
        listed.extend(ids);
        self.takeable += listed.len() - before;
    }

    /// Lists the free slots of a page, if the page was frozen. `ids` gives the last ids of its free slots that are not
    /// used up.
    fn open(&mut self, page: PagePosition, ids: impl FnOnce(PagePosition) -> Vec<u64>) {
        let free_slots = self.unfreeze(page);
        if free_slots > 0 {
            let ids = ids(page);
            assert_eq!(ids.len(), free_slots, "the set of {page:?} has the free slots that were counted");
            self.list(page, ids);
        }
    }

    /// Returns true if a page has a list or is counted as frozen.
    fn has(&self, page: PagePosition) -> bool {
        self.open.contains_key(&page) || self.roomy.contains_key(&page) || self.cramped.contains_key(&page)
    }

    /// Adds up what `takeable` says.
    fn count_takeable(&self) -> usize {
        self.open.values().map(Vec::len).sum::<usize>() + self.roomy.values().sum::<usize>()
    }
}

impl FreeSlots {
    /// Takes a slot, if there is one: the bits of the id of its last element. The second id is the likely result of the next call: the caller may
    /// load its slot ahead. `find` finds a page.
    #[inline]
    pub(crate) fn take<'a>(&self, find: impl FnOnce(PagePosition) -> SlotPage<'a>) -> Option<(u64, Option<u64>)> {
        self.take_id(|page| find(page).frozen_ids())
    }

    /// Takes this slot, if it is free and not used up.
    pub(crate) fn take_at(&self, page: SlotPage<'_>, at: usize) -> bool {
        self.take_id_of(page.position, page.last_id(at), |_| page.frozen_ids())
    }

    /// Returns true if [`FreeSlots::take_at`] would take this slot now.
    pub(crate) fn has_slot(&self, page: SlotPage<'_>, at: usize) -> bool {
        let lists = self.lists.lock();
        match lists.open.get(&page.position) {
            Some(listed) => listed.contains(&page.last_id(at)),
            None if !lists.has(page.position) || page.core.is_used_up(at) => false,
            None => page.core.free_slots(&epoch::pin()).is_some_and(|free_slots| free_slots.contains(at)),
        }
    }

    /// Gives back a slot that has neither an element nor an owner. A slot whose generations are used up is only
    /// counted.
    pub(crate) fn give(&self, page: SlotPage<'_>, at: usize) {
        self.give_last(page, ElementId::from_bits(page.kind, page.last_id(at)));
    }

    /// As [`FreeSlots::give`], for the slot that this element had last.
    pub(crate) fn give_last(&self, page: SlotPage<'_>, last: ElementId) {
        let SlotPosition { offset: at, generation, .. } = SlotPosition::of(last);
        assert!(at < page.core.used(), "slot {at} of {:?} was never handed out", page.position);
        debug_assert!(page.core.is_vacant(at), "slot {at} of {:?} is given back with an element", page.position);
        debug_assert_eq!(last.to_bits(), page.last_id(at), "another element had the slot last");
        match generation == GENERATION_MAX {
            false => self.give_id(page.position, last.to_bits(), |_| page.frozen_ids()),
            true => self.use_up(page.position, |_| page.frozen_ids()),
        }
    }

    /// Withdraws the free slots of a page, if they are all its slots without an element. By a collector that is about
    /// to freeze the page.
    pub(crate) fn withdraw(&self, page: SlotPage<'_>, pin: &Pin) -> Option<Withdrawn> {
        self.withdraw_if(page.position, |count| page.core.has_empty_slots(count, pin))
    }

    #[inline]
    fn take_id(&self, ids: impl FnOnce(PagePosition) -> Vec<u64>) -> Option<(u64, Option<u64>)> {
        // Relaxed: a hint; the lock orders what matters.
        if self.len.load(Ordering::Relaxed) == 0 {
            return None;
        }
        let mut lists = self.lists.lock();
        self.check(&lists);
        if lists.open.is_empty() {
            let (&page, _) = lists.roomy.first_key_value()?;
            lists.open(page, ids);
        }
        let bits = {
            let mut lowest = lists.open.first_entry()?;
            let bits = lowest.get_mut().pop().expect("a page that is listed has a slot");
            debug_assert_ne!(lowest.get().last(), Some(&bits), "a slot is listed once");
            if lowest.get().is_empty() {
                lowest.remove();
            }
            bits
        };
        lists.takeable -= 1;
        self.publish(&lists);
        let next = lists.open.first_key_value().and_then(|(_, listed)| listed.last());
        Some((bits, next.copied()))
    }

    fn take_id_of(&self, page: PagePosition, bits: u64, ids: impl FnOnce(PagePosition) -> Vec<u64>) -> bool {
        let mut lists = self.lists.lock();
        self.check(&lists);
        lists.open(page, ids);
        let Some(listed) = lists.open.get_mut(&page) else { return false };
        let found = listed.iter().rposition(|&listed| listed == bits);
        if let Some(at) = found {
            listed.swap_remove(at);
            if listed.is_empty() {
                lists.open.remove(&page);
            }
            lists.takeable -= 1;
        }
        self.publish(&lists);
        found.is_some()
    }

    fn give_id(&self, page: PagePosition, bits: u64, ids: impl FnOnce(PagePosition) -> Vec<u64>) {
        let mut lists = self.lists.lock();
        self.check(&lists);
        lists.open(page, ids);
        debug_assert_ne!(
            lists.open.get(&page).and_then(|listed| listed.last()),
            Some(&bits),
            "a slot of {page:?} is given back twice"
        );
        lists.list(page, [bits]);
        self.publish(&lists);
    }

    fn use_up(&self, page: PagePosition, ids: impl FnOnce(PagePosition) -> Vec<u64>) {
        let mut lists = self.lists.lock();
        self.check(&lists);
        lists.open(page, ids);
        *lists.used_up.entry(page).or_default() += 1;
        self.publish(&lists);
    }

    /// Checks that callers without the lock see what [`FreeSlots::publish`] stored last.
    fn check(&self, lists: &Lists) {
        debug_assert_eq!(self.len.load(Ordering::Relaxed), lists.takeable as u64, "the account's length is its own");
    }

    /// Shows callers without the lock how many slots can be taken. The caller holds the lock.
    fn publish(&self, lists: &Lists) {
        self.len.store(lists.takeable as u64, Ordering::Relaxed);
    }

    /// Withdraws the free slots of a page, if `are_all` says that so many are all. It is called under the lock, while no slot is
    /// handed out.
    fn withdraw_if(&self, page: PagePosition, are_all: impl FnOnce(usize) -> bool) -> Option<Withdrawn> {
        let mut lists = self.lists.lock();
        self.check(&lists);
        let listed = lists.open.get(&page).map_or(0, Vec::len);
        let frozen = lists.roomy.get(&page).or_else(|| lists.cramped.get(&page)).copied().unwrap_or(0);
        let used_up = lists.used_up.get(&page).copied().unwrap_or(0);
        if !are_all(listed + frozen + used_up) {
            return None;
        }
        let open = lists.open.remove(&page).unwrap_or_default();
        lists.takeable -= open.len();
        let free_slots = lists.unfreeze(page);
        debug_assert_eq!(lists.takeable, lists.count_takeable(), "what is withdrawn cannot be taken");
        self.publish(&lists);
        Some(Withdrawn { page, open, free_slots, used_up })
    }

    /// Puts back the withdrawn slots of a page of `capacity` slots, which is frozen or is not.
    pub(crate) fn put_back(&self, withdrawn: Withdrawn, capacity: usize, is_frozen: bool) {
        let slot_count = withdrawn.slot_count();
        assert!(slot_count <= capacity, "{:?} has {slot_count} free slots of {capacity}", withdrawn.page);
        let Withdrawn { page, open, free_slots, .. } = withdrawn;
        let frozen = if is_frozen { open.len() + free_slots } else { free_slots };
        let mut lists = self.lists.lock();
        self.check(&lists);
        // While a page is not frozen, a slot may have come back in the meantime.
        assert!(!is_frozen || !lists.has(page), "{page:?} was frozen without all its free slots");
        if !is_frozen && !open.is_empty() {
            lists.list(page, open);
        }
        if frozen > 0 && frozen * ROOMY_PART >= capacity {
            lists.takeable += frozen;
            lists.roomy.insert(page, frozen);
        } else if frozen > 0 {
            lists.cramped.insert(page, frozen);
        }
        debug_assert_eq!(lists.takeable, lists.count_takeable(), "what is put back is counted once");
        self.publish(&lists);
    }

    /// How many slots are free and not used up.
    pub(crate) fn len(&self) -> u64 {
        let lists = self.lists.lock();
        self.check(&lists);
        (lists.takeable + lists.cramped.values().sum::<usize>()) as u64
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

    fn take_id(free: &FreeSlots, ids: impl FnOnce(PagePosition) -> Vec<u64>) -> Option<u64> {
        free.take_id(ids).map(|(bits, _)| bits)
    }

    #[test]
    fn slots_on_the_lowest_page_go_first() {
        let free = FreeSlots::default();
        [(7, 70), (3, 30), (3, 31), (5, 50)]
            .into_iter()
            .for_each(|(number, bits)| free.give_id(page(number), bits, none));
        let taken: Vec<u64> = std::iter::from_fn(|| take_id(&free, none)).collect();
        assert_eq!((taken, free.len()), (vec![31, 30, 50, 70], 0));
    }

    #[test]
    fn a_page_is_frozen_only_with_all_its_free_slots() {
        let free = FreeSlots::default();
        [10, 11].into_iter().for_each(|bits| free.give_id(page(1), bits, none));
        // One slot was handed out, and has no element yet.
        assert_eq!(take_id(&free, none), Some(11));
        assert!(free.withdraw_if(page(1), |count| count == 2).is_none());
        let withdrawn = free.withdraw_if(page(1), |count| count == 1).unwrap();
        assert_eq!((take_id(&free, none), free.len()), (None, 0));
        free.put_back(withdrawn, 1_024, false);
        assert_eq!((take_id(&free, none), free.len()), (Some(10), 0));
    }

    #[test]
    fn a_slot_that_is_asked_for_is_taken_from_an_open_or_a_frozen_page() {
        let free = FreeSlots::default();
        [10, 11, 12].into_iter().for_each(|bits| free.give_id(page(1), bits, none));
        assert!(free.take_id_of(page(1), 11, none) && !free.take_id_of(page(1), 11, none));
        let withdrawn = free.withdraw_if(page(1), |count| count == 2).unwrap();
        // Neither listed nor in the set of a frozen page.
        assert!(!free.take_id_of(page(1), 10, none));
        free.put_back(withdrawn, 1_024, true);
        assert!(free.take_id_of(page(1), 10, |_| vec![10, 12]));
        assert_eq!((free.len(), take_id(&free, none), take_id(&free, none)), (1, Some(12), None));
    }

    #[test]
    fn slots_that_are_used_up_count_as_free_and_are_not_handed_out() {
        let free = FreeSlots::default();
        free.use_up(page(1), none);
        free.give_id(page(1), 10, none);
        assert!(free.withdraw_if(page(1), |count| count == 1).is_none());
        let withdrawn = free.withdraw_if(page(1), |count| count == 2).unwrap();
        assert_eq!(withdrawn.slot_count(), 2);
        free.put_back(withdrawn, 8, true);
        assert_eq!(
            (free.len(), take_id(&free, |_| vec![10]), take_id(&free, none), free.len()),
            (1, Some(10), None, 0)
        );
        // The last one is used up, too.
        free.use_up(page(1), none);
        let withdrawn = free.withdraw_if(page(1), |count| count == 2).unwrap();
        assert_eq!(withdrawn.slot_count(), 2);
        free.put_back(withdrawn, 8, true);
        assert_eq!((free.len(), take_id(&free, none)), (0, None));
    }

    #[test]
    fn frozen_pages_are_opened_when_it_is_worth_it() {
        let free = FreeSlots::default();
        let freeze = |number, free_slots: u64, capacity| {
            (0..free_slots).for_each(|bits| free.give_id(page(number), bits, none));
            let withdrawn = free.withdraw_if(page(number), |count| count == free_slots as usize).unwrap();
            free.put_back(withdrawn, capacity, true);
        };
        freeze(1, 2, 1_024);
        freeze(2, 3, 32);
        free.give_id(page(9), 90, none);
        assert_eq!((free.len(), take_id(&free, none)), (6, Some(90)));
        let free_slots = |found: PagePosition| {
            assert_eq!(found, page(2));
            vec![20, 21, 22]
        };
        assert_eq!(
            (take_id(&free, free_slots), take_id(&free, none), take_id(&free, none)),
            (Some(22), Some(21), Some(20))
        );
        assert_eq!((take_id(&free, none), free.len()), (None, 2));
        // Another element leaves the first page.
        free.give_id(page(1), 12, |_| vec![10, 11]);
        assert_eq!(
            (free.len(), take_id(&free, none), take_id(&free, none), take_id(&free, none)),
            (3, Some(12), Some(11), Some(10))
        );
    }
}
