//! The graph as one snapshot shows it.
//!
//! The modules of this folder read batches through a [`StoreView`]. Each looks a fixed number of elements ahead and starts
//! loading the memory that it will need there, so that many cache misses overlap. The order of the ids in a batch does not
//! matter, since pages and tables are few and stay in the cache.

use mangrove_graph::{ElementId, Error, ErrorKind, Result, Value};
use mangrove_reclaim::epoch;

use crate::store::{Slot, Store};
use crate::version::Snapshot;

/// How many elements ahead a batch loads version words, columns and ends.
pub(crate) const LOOK_AHEAD: usize = 32;

/// The graph as a snapshot of a store shows it.
#[derive(Clone, Copy, Debug)]
pub struct StoreView<'a> {
    pub(crate) store: &'a Store,
    pub(crate) snapshot: Snapshot<'a>,
}

impl Store {
    /// The graph as this snapshot shows it. Every commit that the snapshot covers must be installed or announced; `txn`
    /// ensures that.
    pub fn view<'a>(&'a self, snapshot: Snapshot<'a>) -> StoreView<'a> {
        StoreView { store: self, snapshot: snapshot.amid(&self.installing) }
    }
}

impl<'a> StoreView<'a> {
    /// The slot of an element, visible or not. Fails with `NotFound` if there is none.
    pub(crate) fn existing_slot(&self, element: ElementId) -> Result<Slot<'a>> {
        self.store
            .slot(element)
            .ok_or_else(|| Error::new(ErrorKind::NotFound, format!("{element:?} is not an element of this graph")))
    }

    /// Appends the ids by which users know these elements, each given with its external number. Ids are loaded some elements ahead, so
    /// that reads of memory far apart overlap.
    pub(crate) fn push_user_ids(
        &self,
        elements: impl Iterator<Item = (ElementId, i64)> + Clone,
        out: &mut Vec<Value>,
    ) -> Result<()> {
        let _pin = epoch::pin();
        let mut ahead = elements.clone();
        let mut load_next = || {
            if let Some(slot) = ahead.next().and_then(|(element, _)| self.store.slot(element)) {
                slot.core.prefetch_user_id(slot.at);
            }
        };
        (0..LOOK_AHEAD).for_each(|_| load_next());
        for (element, external) in elements {
            load_next();
            out.push(self.store.user_id(&self.existing_slot(element)?, external));
        }
        Ok(())
    }

    /// Calls `each` once, with a function that returns true for elements that the snapshot sees.
    pub(crate) fn retain(&self, mut each: impl FnMut(&dyn Fn(ElementId) -> bool)) {
        let pin = epoch::pin();
        let seen = |slot: Slot<'_>| slot.core.visible_under(&pin, slot.at, &self.snapshot);
        each(&|element| self.store.slot(element).is_some_and(seen));
    }
}
