//! Redoing commits of another process in a store that readers use: the writes of a follower.
//!
//! The other process, the *owner*, has chosen ids and slots, checked ids, unique values and rules, and met conflicts.
//! A follower repeats its commits one after another, each as a transaction of its own, and has no other writers. So
//! there is nothing to choose or to check, but every element must come into the slot that its id names:
//!
//! | the slot | what happens |
//! |---|---|
//! | was never used | the slots before it that were never used either become free slots |
//! | is free | it is taken out of the account of free slots |
//! | has an element that has ended or was rolled back | the caller has collectors take that element apart first ([`Store::slots_in_use`]) |
//! | has an element that has not ended | an error: the after-images contradict the store |
//!
//! A page that the follower makes has room for every slot that the owner may use, because after-images do not say how
//! large the owner's page is.
//!
//! *Not here:* the order of commits and their timestamps (`txn`), and the recovery of a store that no reader uses
//! (`load::restore`).

use mangrove_graph::{
    Direction, EdgeId, ElementId, ElementKind, Error, ErrorKind, KeyId, LabelSetId, Result, TabletId, UserId, VertexId,
};
use mangrove_reclaim::epoch;
use mangrove_reclaim::sync::yield_now;

use super::Writer;
use super::redo::Redo;
use crate::cell::Content;
use crate::page::{
    EdgePage, PAGE_SLOTS, PageCore, PageName, PagePosition, SlotPage, SlotPosition, TableName, Tablet, VertexPage,
    page_core, roomiest,
};
use crate::store::{Slot, Store, edge, vertex};
use crate::version::{CLOSED, NEVER, claimed_by};

/// The error that after-images do not fit the store.
fn contradiction(element: ElementId, what: &str) -> Error {
    Error::new(ErrorKind::Damaged, format!("a commit of the log does not fit this graph: {element:?} {what}"))
}

/// The page of a slot, as the account of free slots knows it.
fn page_of(slot: SlotPosition) -> PagePosition {
    PagePosition { number: slot.page.number as usize, tablet: slot.page.tablet }
}

impl Writer<'_> {
    /// Redoes the after-images of one commit of another process, in their order. Before the transaction began,
    /// [`Store::slots_in_use`] has returned none for them.
    ///
    /// Fails with `Damaged` if an after-image contradicts the store, and with `MemoryLimit` if the graph is too large.
    /// After an error the caller rolls the transaction back.
    pub fn redo(&mut self, images: &[Redo]) -> Result<()> {
        for image in images {
            self.store.memory.check()?;
            match image {
                Redo::Insert { element, labels, ends, user_id } => {
                    self.redo_insert(*element, *labels, *ends, user_id.as_ref())?;
                }
                Redo::Delete(element) => self.redo_delete(*element)?,
                Redo::Property { element, key, content } => self.redo_property(*element, *key, content)?,
            }
        }
        Ok(())
    }

    fn redo_insert(
        &mut self,
        element: ElementId,
        labels: LabelSetId,
        ends: Option<(VertexId, VertexId)>,
        id: Option<&UserId>,
    ) -> Result<()> {
        if labels.0 as usize >= self.store.catalog().label_set_count() {
            return Err(contradiction(element, "has a label set without a name"));
        }
        let ends = match (element, ends) {
            (ElementId::Vertex(_), _) => None,
            (ElementId::Edge(_), None) => return Err(contradiction(element, "has no ends")),
            (ElementId::Edge(id), Some((source, target))) if source.tablet() == id.tablet() => {
                Some([self.redo_end(element, source)?, self.redo_end(element, target)?])
            }
            (ElementId::Edge(_), Some(_)) => return Err(contradiction(element, "is not in the tablet of its source")),
        };
        let slot = self.store.place(element, labels)?;
        let as_element = if ends.is_some() { edge } else { vertex };
        let external = VertexId::from_bits(element.to_bits()).external();
        if let (ElementId::Edge(id), Some([(source, _), (target, _)])) = (element, ends) {
            let (_, page) = self.store.edge_page(id).expect("the slot was placed");
            page.set_ends(slot.at, source, target, &self.store.memory, &self.pin);
        }
        match self.begin_element(element, &slot, external, id, as_element) {
            Ok(true) => {}
            Ok(false) => return Err(contradiction(element, "has a number that another element has chosen as its id")),
            Err(error) => return Err(contradiction(element, &format!("cannot have its id: {error}"))),
        }
        if let (ElementId::Edge(id), Some([source, target])) = (element, ends) {
            self.append(source.0, Direction::Out, labels, target, id);
            self.append(target.0, Direction::In, labels, source, id);
        }
        Ok(())
    }

    /// An end of an edge, with its label set.
    fn redo_end(&self, element: ElementId, end: VertexId) -> Result<(VertexId, LabelSetId)> {
        match self.seen(ElementId::Vertex(end)) {
            Ok(slot) => Ok((end, slot.core.label)),
            Err(_) => Err(contradiction(element, &format!("ends in {end:?}, and there is no such vertex"))),
        }
    }

    fn redo_delete(&mut self, element: ElementId) -> Result<()> {
        let slot = self.store.slot(element).ok_or_else(|| contradiction(element, "is deleted and is not there"))?;
        if claimed_by(slot.core.version(slot.at).1) == Some(self.snapshot.txn) {
            // It ended with one of its vertices.
            return Ok(());
        }
        if !slot.visible(&self.snapshot) {
            return Err(contradiction(element, "is deleted and is not there"));
        }
        match element {
            ElementId::Vertex(id) => self.delete_vertex(id),
            ElementId::Edge(id) => self.delete_edge(id),
        }
    }

    fn redo_property(&mut self, element: ElementId, key: KeyId, content: &Content) -> Result<()> {
        if key.0 as usize >= self.store.catalog().key_count() {
            return Err(contradiction(element, "gets a property under a key without a name"));
        }
        let Ok(slot) = self.seen(element) else {
            return Err(contradiction(element, "gets a property and is not there"));
        };
        if *content == Content::Absent {
            return self.remove(element, key);
        }
        let column = slot.core.column_or_create(key, &self.store.memory);
        let cell = slot.tablet.values.encode_content(content.clone(), &self.store.memory);
        self.write_cell(element, &slot, key, column, cell)?;
        // The owner has checked that unique values are unique when the whole commit is done. In the middle of one that
        // may not be so.
        let mut outcome = Ok(());
        slot.tablet.values.values(cell, |value| {
            if outcome.is_ok() {
                outcome = self.add_entries(element, &slot, key, value, false);
            }
        });
        outcome
    }
}

impl Store {
    /// Returns true if [`Store::slots_in_use`] returns any.
    pub fn has_slots_in_use(&self, images: &[Redo]) -> bool {
        images.iter().any(|image| match image {
            Redo::Insert { element, .. } => self.last_in_slot(*element).is_some(),
            _ => false,
        })
    }

    /// The last elements of the slots that these after-images put new elements into, as far as the slots are not free
    /// yet. These elements have ended or were rolled back, so collectors will give the slots back.
    pub fn slots_in_use(&self, images: &[Redo]) -> Vec<ElementId> {
        let inserted = images.iter().filter_map(|image| match image {
            Redo::Insert { element, .. } => Some(*element),
            _ => None,
        });
        inserted.filter_map(|element| self.last_in_slot(element)).collect()
    }

    /// The element that had the slot of a new element before, if it is gone and the slot is not free yet.
    fn last_in_slot(&self, element: ElementId) -> Option<ElementId> {
        let slot = SlotPosition::of(element);
        let (kind, page, at) = (slot.page.kind, page_of(slot), slot.offset);
        let tablet = self.tablet(page.tablet)?;
        let core = page_core(tablet, kind, page.number).filter(|core| at < core.used())?;
        let (begin, end) = core.version(at);
        // One that the caller's own transaction ends is gone when that transaction has committed.
        let is_there = begin != NEVER && end >= CLOSED && claimed_by(end).is_none();
        let slots = SlotPage { kind, position: page, core };
        if is_there || core.is_used_up(at) || self.cursor(tablet, kind, core.label).free.has_slot(slots, at) {
            return None;
        }
        let last = VertexId::from_bits(element.to_bits()).with_generation(core.generation(at)).to_bits();
        Some(if kind == ElementKind::Vertex { vertex(last) } else { edge(last) })
    }

    /// The adjacency tables that have cells of an edge.
    pub(crate) fn tables_of(&self, id: EdgeId) -> Option<[(TabletId, TableName); 2]> {
        let (_, page) = self.edge_page(id)?;
        let (source, target) = page.ends(id.offset(), &epoch::pin());
        let label = page.core.label;
        let table = |at: VertexId, direction| (at.tablet(), TableName { page: at.page() as u32, direction, label });
        Some([table(source, Direction::Out), table(target, Direction::In)])
    }

    /// Takes the slot of an element's id, under the generation of the id, for the caller to begin the element.
    fn place(&self, element: ElementId, labels: LabelSetId) -> Result<Slot<'_>> {
        let slot = SlotPosition::of(element);
        let (kind, page, at) = (slot.page.kind, page_of(slot), slot.offset);
        let Some(tablet) = self.tablet(page.tablet) else { return Err(contradiction(element, "is in no tablet")) };
        let core = self.ensure_page(tablet, kind, page.number, labels);
        if core.label != labels {
            return Err(contradiction(element, "is on a page of another label set"));
        }
        if at >= core.capacity() {
            return Err(contradiction(element, "is beyond the last slot of its page"));
        }
        let free = &self.cursor(tablet, kind, labels).free;
        let slots = SlotPage { kind, position: page, core };
        self.free_through(tablet, slots, at);
        if core.reserve_up_to(at + 1).is_none() {
            if !core.is_vacant(at) || core.is_used_up(at) {
                return Err(contradiction(element, "is in a slot that has an element"));
            }
            // For a moment a collector may have all free slots of the page.
            while !free.take_at(slots, at) {
                yield_now();
            }
        }
        // Lower than before only if the page came from an image: it may have generations that no commit has used, and a
        // promoted follower does not know them.
        core.set_generation(at, slot.generation, &self.memory);
        Ok(Slot { tablet, core, at })
    }

    /// The page of a number, which is made if it is missing. Only a follower makes pages in this way, on one thread.
    fn ensure_page<'a>(
        &'a self,
        tablet: &'a Tablet,
        kind: ElementKind,
        number: usize,
        labels: LabelSetId,
    ) -> &'a PageCore {
        let capacity = PAGE_SLOTS as u32;
        match kind {
            ElementKind::Vertex => {
                let make = || Box::new(VertexPage::live(labels, capacity, &self.memory));
                &tablet.vertices.get_or_put(number as u32, make, &self.memory).core
            }
            ElementKind::Edge => {
                let make = || Box::new(EdgePage::live(labels, capacity, &self.memory));
                &tablet.edges.get_or_put(number as u32, make, &self.memory).core
            }
        }
    }

    /// Keeps the numbers of pages from pages that are made later. The last owner may have pages that no commit has
    /// written to, and images of them; this store lacks them (STORE-34).
    pub fn keep_page_numbers(&self, pages: impl IntoIterator<Item = PageName>) {
        for PageName { tablet, kind, number } in pages {
            match (self.tablet(tablet), kind) {
                (Some(tablet), ElementKind::Vertex) => tablet.vertices.keep_number(number),
                (Some(tablet), ElementKind::Edge) => tablet.edges.keep_number(number),
                (None, _) => {}
            }
        }
    }

    /// Returns true if there is a page of this name.
    pub fn has_page(&self, PageName { tablet, kind, number }: PageName) -> bool {
        self.tablet(tablet).is_some_and(|tablet| page_core(tablet, kind, number as usize).is_some())
    }

    /// Lets transactions of this process add elements: chooses the page that new elements of each label set fill, and
    /// makes the slots that were never used on all other pages free. Called once, when a follower becomes the owner and
    /// before the first transaction writes.
    pub fn begin_to_own(&self) {
        for kind in [ElementKind::Vertex, ElementKind::Edge] {
            for (tablet, number) in self.pages_to_fill(kind) {
                let core = page_core(tablet, kind, number).expect("a page is never taken away");
                self.cursor(tablet, kind, core.label).set(tablet.id, number as u32);
            }
        }
        for tablet in &self.tablets {
            for kind in [ElementKind::Vertex, ElementKind::Edge] {
                for (number, core) in tablet.cores(kind) {
                    let cursor = self.cursor(tablet, kind, core.label);
                    if cursor.get() != Some((tablet.id, number)) {
                        let page = PagePosition { number, tablet: tablet.id };
                        self.free_through(tablet, SlotPage { kind, position: page, core }, core.capacity());
                    }
                }
            }
        }
    }

    /// For each label set, the page with most room; of edges, for each label set of each tablet.
    fn pages_to_fill(&self, kind: ElementKind) -> impl Iterator<Item = (&Tablet, usize)> {
        let cores = self.tablets.iter().flat_map(|tablet| tablet.cores(kind).map(move |(n, core)| (tablet, n, core)));
        let pages = cores.map(|(tablet, number, core)| {
            let group = if kind == ElementKind::Edge { tablet.id.0 } else { 0 };
            ((group, core.label), core, (tablet, number))
        });
        roomiest(pages).into_values()
    }

    /// Makes the slots of a page that were never used free, up to this one. Returns false if the page has none.
    fn free_through(&self, tablet: &Tablet, page: SlotPage<'_>, end: usize) -> bool {
        let Some(first) = page.core.reserve_up_to(end) else { return false };
        let pin = epoch::pin();
        // STORE-25: a page whose free slots are listed has version words.
        page.core.versions(&pin, &self.memory);
        let free = &self.cursor(tablet, page.kind, page.core.label).free;
        (first..end).for_each(|at| free.give(page, at));
        tablet.note_free_slots();
        true
    }
}
