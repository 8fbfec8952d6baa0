//! The end of a restore: the steps that need all tablets.
//!
//! The order matters. Edges are checked against vertices first, since packing the adjacency relies on their ends. Pages
//! are published before the indexes are filled, since the indexes find elements through them. No other thread has the
//! store until [`Restore::finish`] returns it.

use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_graph::{ElementId, ElementKind, IndexInfo, PAGE_SLOTS, TabletId, UserId, VertexId};
use mangrove_reclaim::epoch;
use parking_lot::Mutex;

use super::{Damage, Outcome, PageRecord, Pages, Restore, damage};
use crate::index::{IdKey, PropertyIndex};
use crate::load::image::chosen_id;
use crate::load::pack::pack;
use crate::load::staged::{HasPageCore, StagedPages};
use crate::page::{Cursor, EdgePage, PageCore, PageName, PagePosition, SlotPage, Tablet, VertexPage, roomiest};
use crate::store::{Store, edge, vertex};
use crate::version::{BASE_TS, NEVER, Snapshot};
use crate::write::Duplicate;

/// A phase of [`Restore::finish`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum RestorePhase {
    /// Checking that the ends of every edge exist.
    Checking,
    /// Packing the adjacency.
    Packing,
    /// Filling the id indexes.
    Ids,
    /// Filling the property indexes.
    Indexes,
}

/// Figures of a restored store.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct RestoreSummary {
    /// The number of vertices.
    pub vertices: u64,
    /// The number of edges.
    pub edges: u64,
    /// The number of pages of both.
    pub pages: u64,
}

/// A restored store.
#[derive(Debug)]
pub struct Restored {
    /// The store. All snapshots see all of it.
    pub store: Store,
    /// Figures of its content.
    pub summary: RestoreSummary,
}

/// Pages that are not published, with tablet and number.
type NumberedPages<P> = Vec<(TabletId, u32, Box<P>)>;

impl Restore {
    /// Makes the store from all images and redo. Snapshots use the indexes from `now` on, a timestamp at or above all
    /// those of redo. `next_index` is the number of the next index. `threads` threads work in parallel, and `progress`
    /// is called when a phase begins.
    pub fn finish(
        self,
        indexes: &[IndexInfo],
        next_index: u32,
        now: u64,
        threads: usize,
        progress: &mut dyn FnMut(RestorePhase),
    ) -> Result<Restored, Damage> {
        let Restore { mut store, tablets, follows } = self;
        let (mut vertices, mut edges, mut changed_lists) = (Vec::new(), Vec::new(), Vec::new());
        for (at, tablet) in tablets.into_iter().enumerate() {
            let (id, pages) = (TabletId(at as u16 + 1), tablet.into_inner());
            store.freeze_pages(id, ElementKind::Vertex, pages.vertices, &mut vertices)?;
            store.freeze_pages(id, ElementKind::Edge, pages.edges, &mut edges)?;
            changed_lists.extend(pages.changed_lists);
        }
        if follows {
            // The other process fills all pages that have room.
            vertices.iter_mut().for_each(|(_, _, page)| page.core.unseal());
            edges.iter_mut().for_each(|(_, _, page)| page.core.unseal());
        } else {
            store.choose_cursors(&mut vertices, &mut edges);
        }
        let vertices = StagedPages::of(store.tablets.len(), vertices);
        let edges = StagedPages::of(store.tablets.len(), edges);
        progress(RestorePhase::Checking);
        side_by_side(threads, &edges.pages, |(tablet, number, page)| check_ends(*tablet, *number, page, &vertices))?;
        progress(RestorePhase::Packing);
        pack(&store, &vertices, &edges, &mut || Ok(())).expect("only the check fails");
        let summary = RestoreSummary {
            vertices: count(&vertices),
            edges: count(&edges),
            pages: (vertices.pages.len() + edges.pages.len()) as u64,
        };
        *store.next_tablet.get_mut() = vertices.pages.len() as u32;
        publish(&store, vertices, edges);
        for ((tablet, number), ts) in changed_lists {
            // STORE-37.
            store.note_lists_of(VertexId::new(tablet, u64::from(number) * PAGE_SLOTS), ts);
        }
        progress(RestorePhase::Ids);
        side_by_side(threads, &store.tablets, |tablet| store.enter_elements(tablet))?;
        progress(RestorePhase::Indexes);
        store.restore_indexes(indexes, next_index, now, threads)?;
        Ok(Restored { store, summary })
    }
}

/// Calls `work` with every item, from several threads. Returns the first damage that a thread finds.
fn side_by_side<T: Sync>(threads: usize, items: &[T], work: impl Fn(&T) -> Outcome + Sync) -> Outcome {
    let next = AtomicUsize::new(0);
    let found = Mutex::new(None);
    let run = || {
        while let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(damage) = work(item) {
                found.lock().get_or_insert(damage);
                next.store(items.len(), Ordering::Relaxed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 1..threads {
            scope.spawn(run);
        }
        run();
    });
    found.into_inner().map_or(Ok(()), Err)
}

fn count<P: HasPageCore>(staged: &StagedPages<P>) -> u64 {
    staged.pages.iter().map(|(_, _, page)| page.core().live_count()).sum()
}

/// Returns true if a slot has an element.
fn has_element(core: &PageCore, at: usize) -> bool {
    at < core.used() && core.version(at).0 != NEVER
}

/// The elements of a page: slot, and the bits of the id.
fn elements(tablet: TabletId, number: u32, core: &PageCore) -> impl Iterator<Item = (usize, VertexId)> {
    (0..core.used()).filter(|&at| has_element(core, at)).map(move |at| (at, id_of(tablet, number, core, at)))
}

/// The bits of the id that the element in a slot has, or that the last element there had.
fn id_of(tablet: TabletId, number: u32, core: &PageCore, at: usize) -> VertexId {
    VertexId::new(tablet, core.slot_number(u64::from(number) * PAGE_SLOTS, at))
}

/// Fails if an end of an edge on the page does not exist, or if an edge is not in the tablet of its source.
fn check_ends(tablet: TabletId, number: u32, page: &EdgePage, vertices: &StagedPages<VertexPage>) -> Outcome {
    let exists = |id: VertexId| {
        vertices.index_of(id.tablet(), id.page()).is_some_and(|index| {
            let core = &vertices.pages[index].2.core;
            has_element(core, id.offset()) && core.generation(id.offset()) == id.generation()
        })
    };
    let name = PageName { tablet, kind: ElementKind::Edge, number };
    for (at, _) in elements(tablet, number, &page.core) {
        let (source, target) = page.ends(at, &epoch::pin());
        if source.tablet() != tablet {
            let message = format!("the edge in slot {at} is not in the tablet of its source {source:?}");
            return Err(damage(name, message));
        }
        if let Some(missing) = [source, target].into_iter().find(|&end| !exists(end)) {
            return Err(damage(
                name,
                format!("the edge in slot {at} ends in {missing:?}, and there is no such vertex"),
            ));
        }
    }
    Ok(())
}

/// Publishes the pages under their old numbers (STORE-34).
fn publish(store: &Store, vertices: StagedPages<VertexPage>, edges: StagedPages<EdgePage>) {
    let tablet = |id| store.tablet(id).expect("pages are restored in tablets there are");
    for (id, number, page) in vertices.pages {
        let is_new = tablet(id).vertices.put(number, page, &store.memory);
        assert!(is_new, "page {number} of vertices is restored once");
    }
    for (id, number, page) in edges.pages {
        let is_new = tablet(id).edges.put(number, page, &store.memory);
        assert!(is_new, "page {number} of edges is restored once");
    }
}

impl Store {
    /// Sets counts, version words and change notes of the pages of a tablet, and moves the pages to `out` in the order
    /// of their numbers. Fails if the catalog has no name for a label set or a key.
    fn freeze_pages<P: PageRecord>(
        &self,
        tablet: TabletId,
        kind: ElementKind,
        pages: Pages<P>,
        out: &mut NumberedPages<P>,
    ) -> Outcome {
        let (set_count, key_count) = (self.catalog().label_set_count(), self.catalog().key_count());
        let mut pages: Vec<_> = pages.into_iter().collect();
        pages.sort_unstable_by_key(|(number, _)| *number);
        for (number, mut private) in pages {
            let (name, core) = (PageName { tablet, kind, number }, private.page.core_mut());
            if core.label.0 as usize >= set_count {
                return Err(damage(name, format!("it is of label set {}, which has no name", core.label.0)));
            }
            if let Some((key, _)) = core.columns().find(|(key, _)| key.0 as usize >= key_count) {
                return Err(damage(name, format!("it has values under key {}, which has no name", key.0)));
            }
            core.restore(private.used as usize, &private.live, private.changed, &self.memory);
            out.push((tablet, number, private.page));
        }
        Ok(())
    }

    /// Sets the cursors for new elements, each to the page with most room among its pages. The room of other pages
    /// stays empty; only a bulk load leaves any.
    fn choose_cursors(&mut self, vertices: &mut NumberedPages<VertexPage>, edges: &mut NumberedPages<EdgePage>) {
        for (labels, at) in roomiest(staged(vertices).map(|(at, _, core)| (core.label, core, at))) {
            let (tablet, number, page) = &mut vertices[at];
            page.core.unseal();
            self.vertex_cursors.ensure(u64::from(labels.0), &self.memory).set(*tablet, *number);
        }
        for ((_, labels), at) in roomiest(staged(edges).map(|(at, tablet, core)| ((tablet, core.label), core, at))) {
            let (id, number, page) = &mut edges[at];
            page.core.unseal();
            let tablet = self.tablet(*id).expect("pages are restored in tablets there are");
            tablet.edge_cursors.ensure(u64::from(labels.0), &self.memory).set(*id, *number);
        }
    }

    /// Adds the elements of a tablet to the id indexes, and makes its empty slots free.
    fn enter_elements(&self, tablet: &Tablet) -> Outcome {
        for (kind, as_element) in
            [(ElementKind::Vertex, vertex as fn(u64) -> ElementId), (ElementKind::Edge, edge as fn(u64) -> ElementId)]
        {
            for (number, core) in tablet.cores(kind) {
                let name = PageName { tablet: tablet.id, kind, number: number as u32 };
                self.enter_page(name, tablet, core, as_element)?;
                free_slots(name, core, self.cursor(tablet, kind, core.label), tablet);
            }
        }
        Ok(())
    }

    /// Adds the chosen ids of a page to the id index. Fails if two elements have one id.
    fn enter_page(
        &self,
        name: PageName,
        tablet: &Tablet,
        core: &PageCore,
        as_element: fn(u64) -> ElementId,
    ) -> Outcome {
        if !core.has_user_ids() {
            return Ok(());
        }
        let everything = Snapshot::committed(BASE_TS);
        for (at, bits) in elements(name.tablet, name.number, core) {
            let Some(id) = chosen_id(core, at, &tablet.values) else { continue };
            let twin = |other: ElementId| damage(name, format!("the id {id} of slot {at} is that of {other:?} too"));
            let mut found = None;
            let check = |other: u64| {
                if self.has_id(as_element(other), &id) {
                    found = Some(as_element(other));
                    return Err(mangrove_graph::Error::invalid("two elements have one id"));
                }
                Ok(())
            };
            let index = self.ids_of(as_element(0));
            let entered = index.insert(IdKey::of(&id), bits.to_bits(), &self.memory, &self.limbo, check);
            if let (Err(_), Some(other)) = (entered, found) {
                return Err(twin(other));
            }
            if let UserId::Int(_) = id
                && let Some((other, slot)) = self.automatic(&id, as_element)
                && slot.visible(&everything)
            {
                return Err(twin(other));
            }
        }
        Ok(())
    }

    /// Makes and fills the property indexes. Fails if two elements have the same values of a unique index.
    fn restore_indexes(&self, indexes: &[IndexInfo], next_index: u32, now: u64, threads: usize) -> Outcome {
        for info in indexes {
            let index = self.register_restored(info);
            side_by_side(threads, &self.tablets, |tablet| {
                self.index_tablet(&index, tablet, &Snapshot::committed(BASE_TS));
                Ok(())
            })?;
            index.publish(now);
            if info.unique {
                self.check_restored_unique(&index)?;
            }
        }
        self.reserve_index_numbers(next_index);
        Ok(())
    }

    /// Fails if two elements have the same values of a unique index, which no commit can have left.
    fn check_restored_unique(&self, index: &PropertyIndex) -> Outcome {
        let duplicate = self.first_duplicate(index, &Snapshot::committed(BASE_TS));
        let Some(Duplicate { elements: [one, _], values }) = duplicate else { return Ok(()) };
        // The bits of an id do not depend on the kind of the element.
        let (kind, id) = (one.kind(), VertexId::from_bits(one.to_bits()));
        let page = PageName { tablet: id.tablet(), kind, number: id.page() as u32 };
        let (shown, n) = (self.shown(&index.info.keys, &values), index.info.id.0);
        Err(damage(page, format!("two {} have {shown}, and index {n} keeps that unique", kind.plural())))
    }
}

/// Pages that are not published: position, tablet and core.
fn staged<P: HasPageCore>(pages: &NumberedPages<P>) -> impl Iterator<Item = (usize, TabletId, &PageCore)> {
    pages.iter().enumerate().map(|(at, (tablet, _, page))| (at, *tablet, page.core()))
}

/// Gives the slots of a page that have no element to the account of free slots. Each is known by the id of its last
/// element, so a new element gets the next generation (STORE-33).
fn free_slots(name: PageName, core: &PageCore, cursor: &Cursor, tablet: &Tablet) {
    let position = PagePosition { number: name.number as usize, tablet: name.tablet };
    let page = SlotPage { kind: name.kind, position, core };
    for at in (0..core.used()).filter(|&at| !has_element(core, at)) {
        cursor.free.give(page, at);
        tablet.note_free_slots();
    }
}
