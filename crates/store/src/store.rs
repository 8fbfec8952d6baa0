//! The store: all tablets and indexes of a graph, and how an element's slot is found or reserved.
//!
//! It owns the other structures and keeps no invariant of its own between them; `write` and `garbage` do. Everything
//! that it hands out is found by id and checked by generation, so an id of an element that is gone finds nothing.

mod element;
mod rules;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use arc_swap::ArcSwap;
use crossbeam_utils::CachePadded;
use mangrove_graph::connections::Connections;
use mangrove_graph::{Catalog, EdgeId, ElementId, ElementKind, LabelSetId, MemoryBudget, TabletId, UserId, VertexId};
use mangrove_locks::{Mutex, rank};
use mangrove_reclaim::Pin;

pub(crate) use self::element::Element;
use crate::cell::{Content, RawCell};
use crate::change_log::{ChangeLog, EdgeWrites};
use crate::connections::ConnectionFacts;
use crate::index::{IdIndex, IdKey, PropertyIndex};
use crate::memory::{ChunkedArray, Limbo, LogQueue, Memory, MemoryReport, Reclaimed, RecordKind, Space};
use crate::page::{Cursor, EdgePage, PAGE_SLOTS, PageCore, PagePosition, SlotPage, Tablet, VertexPage, page_core};
use crate::schema::Schema;
use crate::sizes::StoreSizes;
use crate::version::Snapshot;
use crate::version::installing::Installing;

/// Options of a store.
#[derive(Clone, Debug)]
pub struct StoreOptions {
    /// The number of tablets that the vertices are spread over: 1 to 65,535.
    pub tablet_count: u16,
    /// Writes are refused while the graph uses this much memory or more.
    pub memory_limit_bytes: u64,
    /// The memory budget of the process, in which the graph counts.
    pub memory_budget: MemoryBudget,
    /// The sizes at which structures take another form.
    pub sizes: StoreSizes,
    /// A restored store notes which pages have other lists after replayed commits, as it does for later ones (STORE-37), so
    /// that [`Store::pages_with_changed_lists`] knows. It costs an entry of a map for each edge that is added or removed.
    pub notes_replayed_lists: bool,
}

impl Default for StoreOptions {
    fn default() -> Self {
        StoreOptions {
            tablet_count: 64,
            memory_limit_bytes: u64::MAX,
            memory_budget: MemoryBudget::unlimited(),
            sizes: StoreSizes::default(),
            notes_replayed_lists: false,
        }
    }
}

/// The multi-version graph in memory.
#[derive(Debug)]
pub struct Store {
    catalog: CatalogCell,
    pub(crate) memory: Memory,
    pub(crate) tablets: Box<[Tablet]>,
    pub(crate) vertex_ids: IdIndex,
    pub(crate) edge_ids: IdIndex,
    pub(crate) indexes: ArcSwap<Vec<Arc<PropertyIndex>>>,
    /// Held while the list of indexes changes.
    pub(crate) index_changes: Mutex<IndexChanges, rank::IndexChanges>,
    /// The rules that commits are checked by.
    pub(crate) schema: Schema,
    /// The facts about edges that plans rely on.
    pub(crate) connections: ConnectionFacts,
    /// The cursors for new vertices, by label set.
    pub(crate) vertex_cursors: ChunkedArray<Cursor, 3>,
    /// Counts the pages of vertices, which go to the tablets in turn.
    pub(crate) next_tablet: AtomicU32,
    pub(crate) sizes: StoreSizes,
    /// Replayed commits, too, note on pages of vertices that their lists have changed (STORE-37).
    pub(crate) notes_replayed_lists: bool,
    /// Whether commits note the properties of edges that they write.
    pub(crate) edge_writes: EdgeWrites,
    pub(crate) change_log: ChangeLog,
    /// Logs of commits that wait for collection.
    pub(crate) queue: LogQueue,
    /// Large commits that are being finalized.
    pub(crate) installing: Installing,
    /// The largest timestamp that was ever found to be the oldest snapshot.
    pub(crate) oldest_seen: CachePadded<AtomicU64>,
    /// Memory and records that writers and committers have unlinked.
    pub(crate) limbo: CachePadded<Limbo>,
    /// Memory and records that collectors have unlinked. Much of it comes at once, so collectors give it back
    /// themselves.
    pub(crate) collectors_limbo: Limbo,
    /// The approximate number of tasks that tablets were given since a collector last looked. It decides whether a
    /// collector is woken.
    pub(crate) tasks_given: CachePadded<AtomicU64>,
    pub(crate) reclaimed: CachePadded<Reclaimed>,
}

/// State of the thread that changes the list of indexes.
#[derive(Debug, Default)]
pub(crate) struct IndexChanges {
    /// The number of the next index.
    pub(crate) next_id: u32,
}

/// The catalog, which has no `Debug` of its own.
struct CatalogCell(Catalog);

impl std::fmt::Debug for CatalogCell {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Catalog")
    }
}

/// An element's slot: its page and the tablet whose pools the page's records come from.
#[derive(Clone, Copy)]
pub(crate) struct Slot<'a> {
    pub(crate) tablet: &'a Tablet,
    pub(crate) core: &'a PageCore,
    pub(crate) at: usize,
}

impl Slot<'_> {
    #[inline]
    /// Returns true if the snapshot sees the element in the slot.
    pub(crate) fn visible(&self, snapshot: &Snapshot<'_>) -> bool {
        self.core.visible(self.at, snapshot)
    }
}

impl Store {
    /// An empty store. Panics when `tablet_count` is 0.
    pub fn new(options: &StoreOptions) -> Self {
        assert!(options.tablet_count > 0, "a store has at least one tablet");
        let memory = Memory::drawing_on(&options.memory_budget, options.memory_limit_bytes);
        // Tablets count from 1, so that no id is 0.
        let tablets = (1..=options.tablet_count).map(|n| Tablet::new(TabletId(n))).collect();
        Store {
            catalog: CatalogCell(Catalog::new()),
            vertex_ids: IdIndex::new(&memory),
            edge_ids: IdIndex::new(&memory),
            tablets,
            indexes: ArcSwap::default(),
            index_changes: Mutex::default(),
            schema: Schema::default(),
            connections: ConnectionFacts::default(),
            vertex_cursors: ChunkedArray::new(RecordKind::Directory),
            next_tablet: AtomicU32::new(0),
            sizes: options.sizes.within_limits(),
            notes_replayed_lists: options.notes_replayed_lists,
            edge_writes: EdgeWrites::default(),
            change_log: ChangeLog::default(),
            queue: LogQueue::new(),
            installing: Installing::default(),
            oldest_seen: CachePadded::default(),
            limbo: CachePadded::default(),
            collectors_limbo: Limbo::default(),
            tasks_given: CachePadded::default(),
            reclaimed: CachePadded::default(),
            memory,
        }
    }

    /// The catalog of labels and keys.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog.0
    }

    /// The accounts that a structure needs to grow while other threads read it.
    #[inline]
    pub(crate) fn space(&self) -> Space<'_> {
        Space { memory: &self.memory, limbo: &self.limbo }
    }

    /// The memory of the store by kind, from counters (STORE-32).
    pub fn memory(&self) -> MemoryReport {
        let mut report = self.memory.report();
        for tablet in &self.tablets {
            for (kind, usage) in tablet.usage() {
                report.add_usage(kind, usage);
            }
        }
        report
    }

    /// The number of bytes that the graph may use before writes are refused.
    pub fn memory_limit(&self) -> u64 {
        self.memory.limit_bytes()
    }

    /// The memory budget of the process, in which the graph counts.
    pub fn memory_budget(&self) -> &MemoryBudget {
        self.memory.budget()
    }

    /// The numbers of vertices and of edges after all installed commits, from counters.
    pub fn live_counts(&self) -> (u64, u64) {
        fn sum<'a>(pages: impl Iterator<Item = &'a PageCore>) -> u64 {
            pages.map(PageCore::live_count).sum()
        }
        (
            sum(self.tablets.iter().flat_map(|tablet| tablet.vertices.iter().map(|page| &page.core))),
            sum(self.tablets.iter().flat_map(|tablet| tablet.edges.iter().map(|page| &page.core))),
        )
    }

    /// The epoch of [`Store::connections`]. It is read after the snapshot was taken for which the facts are to hold
    /// (STORE-36).
    pub fn connection_epoch(&self) -> Option<u64> {
        self.connections.epoch()
    }

    /// The facts about all edges of snapshots that were taken before the call; `None` if the store has too many label
    /// sets to keep them.
    pub fn connections(&self) -> Option<Arc<Connections>> {
        self.connections.current()
    }

    /// Fails if writes are refused until something is deleted or a limit is raised.
    pub fn check_memory(&self) -> mangrove_graph::Result<()> {
        self.memory.check_lasting()
    }

    /// Changes the number of bytes that the graph may use before writes are refused.
    pub fn set_memory_limit(&self, bytes: u64) {
        self.memory.set_limit(bytes);
    }

    /// The bytes in use, added up from the structures themselves, to check [`Store::memory`] (STORE-32). Takes time in
    /// proportion to the number of pages.
    pub fn memory_walk(&self) -> u64 {
        let mut total = self.vertex_ids.bytes() + self.edge_ids.bytes() + self.vertex_cursors.bytes();
        for tablet in &self.tablets {
            tablet.add_bytes(&mut |_, bytes| total += bytes);
        }
        total += self.queue.bytes() + self.change_log.bytes();
        total += self.indexes.load().iter().map(|index| index.bytes()).sum::<usize>();
        total as u64
    }

    /// Returns true if nothing was ever stored.
    pub fn is_empty(&self) -> bool {
        self.tablets.iter().all(|tablet| tablet.vertices.count() == 0 && tablet.edges.count() == 0)
    }

    #[inline]
    pub(crate) fn tablet(&self, id: TabletId) -> Option<&Tablet> {
        self.tablets.get(usize::from(id.0).wrapping_sub(1))
    }

    /// The page of a vertex, and its tablet; `None` if there is no such slot, or if another vertex has the slot.
    #[inline]
    pub(crate) fn vertex_page(&self, id: VertexId) -> Option<(&Tablet, &VertexPage)> {
        let tablet = self.tablet(id.tablet())?;
        let page = tablet.vertices.get(id.page())?;
        (id.offset() < page.core.capacity() && page.core.generation(id.offset()) == id.generation())
            .then_some((tablet, page))
    }

    /// About which part of the slots for vertices comes before a vertex in the order of ids, as a fraction of 2^32. A
    /// tablet counts as much as any other.
    pub(crate) fn place_of(&self, id: VertexId) -> u32 {
        let Some(tablet) = self.tablet(id.tablet()) else { return 0 };
        let slots = tablet.vertices.count() as u64 * PAGE_SLOTS;
        let slot = id.page() as u64 * PAGE_SLOTS + id.offset() as u64;
        // A slot index has 38 bits, so that much of the fraction fits into a word.
        let of_tablet = ((slot << 26) / slots.max(1)) << 6;
        let before = u64::from(id.tablet().0 - 1) << 32;
        u32::try_from((before + of_tablet) / self.tablets.len() as u64).unwrap_or(u32::MAX)
    }

    /// As [`Store::vertex_page`], but the offset may be beyond the page's capacity.
    #[inline]
    pub(crate) fn vertex_page_unchecked(&self, id: VertexId) -> Option<(&Tablet, &VertexPage)> {
        let tablet = self.tablet(id.tablet())?;
        let page = tablet.vertices.get(id.page())?;
        (page.core.is_first_generation() || self.vertex_page(id).is_some()).then_some((tablet, page))
    }

    /// The page of a vertex's id. Another vertex may have the slot by now.
    #[inline]
    pub(crate) fn vertex_page_of(&self, id: VertexId) -> Option<&VertexPage> {
        self.tablet(id.tablet())?.vertices.get(id.page())
    }

    /// The page of an edge, and its tablet; `None` if there is no such slot, or if another edge has the slot.
    #[inline]
    pub(crate) fn edge_page(&self, id: EdgeId) -> Option<(&Tablet, &EdgePage)> {
        let tablet = self.tablet(id.tablet())?;
        let page = tablet.edges.get(id.page())?;
        (id.offset() < page.core.capacity() && page.core.generation(id.offset()) == id.generation())
            .then_some((tablet, page))
    }

    /// The page of an edge's id. The page need not have the slot, and another edge may have it.
    #[inline]
    fn page_of_edge_id(&self, id: EdgeId) -> Option<&EdgePage> {
        self.tablet(id.tablet())?.edges.get(id.page())
    }

    /// As [`Store::page_of_edge_id`], without what only edges have.
    #[inline]
    pub(crate) fn edge_core(&self, id: EdgeId) -> Option<&PageCore> {
        self.page_of_edge_id(id).map(|page| &page.core)
    }

    /// Starts loading what leads to an edge on its page, `with_properties` or without: the first step to what the next two functions load.
    #[inline]
    pub(crate) fn prefetch_edge_page(&self, id: EdgeId, with_properties: bool) {
        if let Some(page) = self.page_of_edge_id(id) {
            page.core.prefetch();
            page.core.prefetch_counters();
            if with_properties {
                page.core.prefetch_first_column();
            }
        }
    }

    /// Starts loading the generation, the version words and the ends of an edge.
    #[inline]
    pub(crate) fn prefetch_edge(&self, id: EdgeId, pin: &Pin) {
        if let Some(page) = self.page_of_edge_id(id) {
            page.core.prefetch_version(pin, id.offset());
            page.prefetch_ends(id.offset(), pin);
        }
    }

    /// Starts loading what else the deletion of an edge looks at, and what the thread then changes when it collects the edge: properties.
    #[inline]
    pub(crate) fn prefetch_edge_properties(&self, id: EdgeId) {
        // A caller's id may name a slot that the page does not have.
        if let Some(page) = self.page_of_edge_id(id).filter(|page| id.offset() < page.core.capacity()) {
            page.core.columns().for_each(|(_, column)| column.prefetch(id.offset()));
        }
    }

    /// The page of the edge of a cell, in a list that was found under a pin that is still held. The edge has its slot for as
    /// long: the slot is given back a grace period after the cell has left the list (STORE-18). So its generation, which may
    /// be a cache miss, need not be compared.
    #[inline]
    pub(crate) fn edge_of_cell(&self, id: EdgeId) -> &PageCore {
        let core = self.edge_core(id).expect("a cell names an edge that was reserved");
        debug_assert_eq!(core.generation(id.offset()), id.generation(), "another edge has the slot of {id:?}");
        core
    }

    /// Starts loading the version words of the edges of some cells. Each step to them is taken for all edges before the next
    /// one, so that the misses of a step overlap.
    #[inline]
    pub(crate) fn prefetch_versions(&self, edges: impl Iterator<Item = EdgeId> + Clone, pin: &Pin) {
        edges.clone().for_each(|edge| self.edge_of_cell(edge).prefetch());
        for edge in edges {
            self.edge_of_cell(edge).prefetch_version_words(pin, edge.offset());
        }
    }

    /// The slot of an element, visible or not.
    #[inline]
    pub(crate) fn slot(&self, element: ElementId) -> Option<Slot<'_>> {
        match element {
            ElementId::Vertex(id) => {
                self.vertex_page(id).map(|(tablet, page)| Slot { tablet, core: &page.core, at: id.offset() })
            }
            ElementId::Edge(id) => {
                self.edge_page(id).map(|(tablet, page)| Slot { tablet, core: &page.core, at: id.offset() })
            }
        }
    }

    /// Reserves a slot for a new vertex: a free slot, or the next one of the page that is being filled.
    pub(crate) fn reserve_vertex(&self, label: LabelSetId) -> (VertexId, Slot<'_>) {
        let cursor = self.vertex_cursors.ensure(u64::from(label.0), &self.memory);
        if let Some((bits, _)) = cursor.free.take(|page| self.slot_page(ElementKind::Vertex, page)) {
            let last = VertexId::from_bits(bits);
            let (tablet, page) = self.vertex_page(last).expect("a slot is freed under its last generation");
            let at = last.offset();
            debug_assert!(page.core.is_vacant(at), "the slot of {last:?} was handed out with an element");
            let id = last.with_generation(page.core.next_generation(at, &self.memory));
            return (id, Slot { tablet, core: &page.core, at });
        }
        loop {
            let current = cursor.get();
            let mut full = None;
            if let Some((tablet, number)) = current {
                let tablet = self.tablet(tablet).expect("a cursor is in a tablet");
                let page = tablet.vertices.get(number).expect("a cursor is on a page");
                if let Some(at) = page.core.reserve() {
                    let id = VertexId::new(tablet.id, number as u64 * PAGE_SLOTS + at as u64);
                    return (id, Slot { tablet, core: &page.core, at });
                }
                full = Some((tablet, page.core.capacity()));
            }
            let _turn = cursor.turn.lock();
            if cursor.get() == current {
                let capacity = self.sizes.next_capacity(full.map(|(_, slots)| slots));
                // Small pages of a label set stay in one tablet, since each tablet that has vertices of the label set
                // also has pages of its own for their edges.
                let tablet = match full {
                    Some((tablet, _)) if capacity < self.sizes.page_slots_max => tablet,
                    _ => self.next_tablet(),
                };
                let page = Box::new(VertexPage::live(label, capacity, &self.memory));
                cursor.set(tablet.id, tablet.vertices.add(page, &self.memory));
            }
        }
    }

    /// The cursor for new elements of a kind and a label set. Vertices have one for all tablets, edges one in each
    /// tablet.
    pub(crate) fn cursor<'a>(&'a self, tablet: &'a Tablet, kind: ElementKind, label: LabelSetId) -> &'a Cursor {
        let cursors = match kind {
            ElementKind::Vertex => &self.vertex_cursors,
            ElementKind::Edge => &tablet.edge_cursors,
        };
        cursors.ensure(u64::from(label.0), &self.memory)
    }

    /// A page, as the account of free slots knows it.
    pub(crate) fn slot_page(&self, kind: ElementKind, position: PagePosition) -> SlotPage<'_> {
        let tablet = self.tablet(position.tablet).expect("a slot is in a tablet");
        let core = page_core(tablet, kind, position.number).expect("a slot is on a page");
        SlotPage { kind, position, core }
    }

    /// The tablet that gets the next page of vertices.
    pub(crate) fn next_tablet(&self) -> &Tablet {
        &self.tablets[self.next_tablet.fetch_add(1, Ordering::Relaxed) as usize % self.tablets.len()]
    }

    /// Reserves a slot for a new edge in the tablet of its source.
    pub(crate) fn reserve_edge<'a>(
        &'a self,
        tablet: &'a Tablet,
        label: LabelSetId,
        pin: &Pin,
    ) -> (EdgeId, &'a EdgePage, Slot<'a>) {
        let cursor = tablet.edge_cursors.ensure(u64::from(label.0), &self.memory);
        if let Some((bits, next)) = cursor.free.take(|page| self.slot_page(ElementKind::Edge, page)) {
            let last = EdgeId::from_bits(bits);
            if let Some(next) = next.map(EdgeId::from_bits) {
                self.prefetch_edge_page(next, false);
                self.prefetch_edge(next, pin);
            }
            let (_, page) = self.edge_page(last).expect("a slot is freed under its last generation");
            let at = last.offset();
            debug_assert!(page.core.is_vacant(at), "the slot of {last:?} was handed out with an element");
            let id = last.with_generation(page.core.next_generation(at, &self.memory));
            return (id, page, Slot { tablet, core: &page.core, at });
        }
        loop {
            let current = cursor.get();
            let mut full = None;
            if let Some((_, number)) = current {
                let page = tablet.edges.get(number).expect("a cursor is on a page");
                if let Some(at) = page.core.reserve() {
                    let id = EdgeId::new(tablet.id, number as u64 * PAGE_SLOTS + at as u64);
                    return (id, page, Slot { tablet, core: &page.core, at });
                }
                full = Some(page.core.capacity());
            }
            let _turn = cursor.turn.lock();
            if cursor.get() == current {
                let page = Box::new(EdgePage::live(label, self.sizes.next_capacity(full), &self.memory));
                cursor.set(tablet.id, tablet.edges.add(page, &self.memory));
            }
        }
    }

    /// The id index of an element's kind.
    pub(crate) fn ids_of(&self, element: ElementId) -> &IdIndex {
        match element {
            ElementId::Vertex(_) => &self.vertex_ids,
            ElementId::Edge(_) => &self.edge_ids,
        }
    }

    /// Returns true if a candidate of the id index has the id.
    pub(crate) fn has_id(&self, candidate: ElementId, id: &UserId) -> bool {
        matches!(id, UserId::Int(_))
            || self.slot(candidate).is_some_and(|slot| slot.core.has_user_id(slot.at, id, &slot.tablet.values))
    }

    /// The visible element with a user id. `element` makes an element id from internal bits.
    pub(crate) fn find(
        &self,
        id: &UserId,
        key: IdKey,
        snapshot: &Snapshot<'_>,
        element: fn(u64) -> ElementId,
    ) -> Option<ElementId> {
        let mut found = None;
        self.ids_of(element(0)).candidates(key, |bits| {
            let candidate = element(bits);
            let seen = self.slot(candidate).is_some_and(|slot| slot.visible(snapshot));
            if seen && self.has_id(candidate, id) {
                found = Some(candidate);
            }
            found.is_some()
        });
        found.or_else(|| {
            let (candidate, slot) = self.automatic(id, element)?;
            slot.visible(snapshot).then_some(candidate)
        })
    }

    /// The element that has an integer as its external number, and its slot. `None` if there is no such slot, or if the
    /// element has a chosen id.
    pub(crate) fn automatic(&self, id: &UserId, element: fn(u64) -> ElementId) -> Option<(ElementId, Slot<'_>)> {
        let UserId::Int(number) = id else { return None };
        let candidate = element(VertexId::from_external(number.number).to_bits());
        let slot = self.slot(candidate)?;
        slot.core.user_id(slot.at).is_absent().then_some((candidate, slot))
    }

    /// The user id of an element: the chosen one, or the external number.
    pub(crate) fn user_id(&self, slot: &Slot<'_>, external: i64) -> mangrove_graph::Value {
        match slot.core.user_id(slot.at) {
            RawCell::ABSENT => external.into(),
            cell => match slot.tablet.values.decode(cell) {
                Content::One(value) => value,
                _ => external.into(),
            },
        }
    }
}

/// The vertex of internal bits.
pub(crate) fn vertex(bits: u64) -> ElementId {
    ElementId::Vertex(VertexId::from_bits(bits))
}

/// The edge of internal bits.
pub(crate) fn edge(bits: u64) -> ElementId {
    ElementId::Edge(EdgeId::from_bits(bits))
}
