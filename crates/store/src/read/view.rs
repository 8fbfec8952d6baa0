//! The graph as one snapshot shows it.
//!
//! The modules of this folder read batches through a [`StoreView`]. Each looks a fixed number of elements ahead and starts
//! loading the memory that it will need there, so that many cache misses overlap. The order of the ids in a batch does not
//! matter, since pages and tables are few and stay in the cache.

use mangrove_graph::{ElementId, Error, ErrorKind, Result};
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

    /// Calls `each` once, with a function that returns true for elements that the snapshot sees.
    pub(crate) fn retain(&self, mut each: impl FnMut(&dyn Fn(ElementId) -> bool)) {
        let pin = epoch::pin();
        let seen = |slot: Slot<'_>| slot.core.visible_under(&pin, slot.at, &self.snapshot);
        each(&|element| self.store.slot(element).is_some_and(seen));
    }
}
