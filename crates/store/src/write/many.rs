//! Writing one property of many vertices at once.
//!
//! Vertices of one page that follow one another in the order of their ids are a *run*, which is written together: the
//! page and the column are looked up once, and one fence makes the stores of the whole run come before its looks (*store,
//! then look*). Every value has a claim and an undo record of its own, as if it were written alone.

use std::sync::atomic::{Ordering, fence};

use mangrove_graph::{ElementId, ElementKind, KeyId, Result, Value, VertexId};

use crate::cell::column::{WriteClaim, Written};
use crate::memory::Write;
use crate::store::{Slot, Store};
use crate::version::contested;
use crate::write::{Writer, check_storable, conflict};

/// A column becomes dense at once if a run has at least this part of the slots of its page.
const DENSE: usize = 4;

impl Store {
    /// Returns true if a unique index of vertices covers a key.
    pub fn is_unique_of_vertices(&self, key: KeyId) -> bool {
        let indexes = self.indexes.load();
        let mut covering = indexes.iter().map(|index| &index.info).filter(|info| info.keys.contains(&key));
        covering.any(|info| info.unique && info.element == ElementKind::Vertex)
    }
}

impl Writer<'_> {
    /// Sets the values under a key of many vertices, each to the one beside it. What is then there is what a
    /// [`Writer::set_vertex_property`] of each, with cardinality single, leaves.
    ///
    /// Fails with a conflict if a unique index covers the key and another element has one of the values: a caller that
    /// wants to know which one writes them one by one.
    pub fn set_vertex_properties(&mut self, key: KeyId, values: &[(VertexId, Value)]) -> Result<()> {
        self.store.memory.check()?;
        for (vertex, value) in values {
            check_storable(value)?;
            self.seen(ElementId::Vertex(*vertex))?;
        }
        // All vertices were seen, and the transaction goes on seeing them. So only a conflict can fail from here on.
        self.log.reserve(values.len());
        let goes_on = |(one, _): &(VertexId, Value), (next, _): &(VertexId, Value)| {
            (one.tablet(), one.page()) == (next.tablet(), next.page()) && one.offset() < next.offset()
        };
        values.chunk_by(goes_on).try_for_each(|run| self.set_run(key, run))
    }

    fn set_run(&mut self, key: KeyId, run: &[(VertexId, Value)]) -> Result<()> {
        let slot_of = |vertex: VertexId| self.store.slot(ElementId::Vertex(vertex)).expect("the vertex was seen");
        let Slot { tablet, core, .. } = slot_of(run[0].0);
        let slot = |vertex: VertexId| Slot { tablet, core, at: vertex.offset() };
        let column = core.column_or_create(key, &self.store.memory);
        if run.len() >= core.capacity() / DENSE {
            column.make_dense(self.store.space());
        }
        for (vertex, value) in run {
            let (element, slot) = (ElementId::Vertex(*vertex), slot(*vertex));
            let fresh_element = core.version(slot.at).0 == self.claim;
            let claim = WriteClaim { snapshot: &self.snapshot, claim: self.claim, fresh_element };
            let cell = tablet.values.encode(value.clone(), &self.store.memory);
            match column.write(slot.at, cell, &claim, &tablet.undo, self.store.space()) {
                Ok(Written::InPlace(old)) => {
                    self.store.forget_value(element, &slot, key, old);
                    self.store.discard(tablet, old);
                }
                Ok(Written::Undo(undo)) => self.claimed(Write::Property { element, key, undo }),
                Err(_) => {
                    self.store.discard(tablet, cell);
                    return Err(conflict("changed the same property"));
                }
            }
        }
        // Store, then look. Pairs with the fence after a claim of the end word, and with the one in `create_index`.
        fence(Ordering::SeqCst);
        if run.iter().any(|(vertex, _)| contested(core.version(vertex.offset()).1, &self.snapshot)) {
            return Err(conflict("is deleting the same element"));
        }
        let is_covered = self
            .store
            .indexes
            .load()
            .iter()
            .any(|index| self.store.key_position(&index.info, (ElementKind::Vertex, core.label), key).is_some());
        if is_covered {
            for (vertex, value) in run {
                self.index(ElementId::Vertex(*vertex), &slot(*vertex), key, value)?;
            }
        }
        Ok(())
    }
}
