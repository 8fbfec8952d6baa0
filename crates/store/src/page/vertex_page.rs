//! Pages of vertices: a [`PageCore`], and the adjacency tables of the page's vertices.
//!
//! A page has a table for a direction and an edge label set as soon as one of its vertices has such an edge. Tables are
//! added and never removed. Their positions are stable, so cursors may keep them (RECLAIM-8).
//!
//! - **STORE-37.** A commit that adds or removes a vertex, or an edge of a vertex, notes its timestamp on the vertex's page
//!   before the timestamp is finished. Replayed commits do so in a store with
//!   [`crate::StoreOptions::notes_replayed_lists`]. So a page without such a note after `R` has at any `S > R` the vertices
//!   and the lists that it had at `R`.
//!
//! What such a commit has changed is in the `change_log` (STORE-38).

use std::sync::atomic::Ordering;

use crossbeam_utils::CachePadded;
use mangrove_graph::{Direction, LabelSetId};
use mangrove_reclaim::AppendMap;
use mangrove_reclaim::sync::AtomicU64;

use crate::adjacency::AdjacencyTable;
use crate::memory::{Memory, RecordKind};
use crate::page::PageCore;
#[cfg(not(feature = "model"))]
use crate::page::SECOND_LINE;
use crate::sizes::StoreSizes;
use crate::version::BASE_TS;

/// A page of vertices with their adjacency.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct VertexPage {
    /// Puts the fields of the core into the cache lines that [`PageCore`] says.
    _before: [u64; 2],
    pub(crate) core: PageCore,
    /// The timestamp of the last commit that changed the set of vertices, or a list of one of them (STORE-37).
    lists_changed: AtomicU64,
    /// The timestamp of the last commit that wrote a property of an edge in a list, if commits note that (`change_log`).
    edges_written: AtomicU64,
    outgoing: CachePadded<AppendMap<AdjacencyTable>>,
    incoming: CachePadded<AppendMap<AdjacencyTable>>,
}

#[cfg(not(feature = "model"))]
const _: () = assert!(std::mem::offset_of!(VertexPage, core) + SECOND_LINE == 64, "cache lines are as `PageCore` says");

impl VertexPage {
    /// Makes a page that transactions write to.
    pub(crate) fn live(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::live(label, capacity, memory), memory)
    }

    /// Makes a page that a bulk load fills.
    pub(crate) fn clean(label: LabelSetId, capacity: u32, memory: &Memory) -> Self {
        Self::with_core(PageCore::clean(label, capacity), memory)
    }

    fn with_core(core: PageCore, memory: &Memory) -> Self {
        memory.add(RecordKind::VertexPage, size_of::<VertexPage>());
        VertexPage {
            _before: [0; 2],
            core,
            lists_changed: AtomicU64::new(BASE_TS),
            edges_written: AtomicU64::new(BASE_TS),
            outgoing: CachePadded::default(),
            incoming: CachePadded::default(),
        }
    }

    /// The adjacency tables of a direction (not `Both`) by edge label set, in the order in which they were added.
    #[inline]
    pub(crate) fn tables(&self, direction: Direction) -> &AppendMap<AdjacencyTable> {
        match direction {
            Direction::In => &self.incoming,
            Direction::Out | Direction::Both => &self.outgoing,
        }
    }

    /// The table for edges of a label set, which is made if it is missing.
    pub(crate) fn table_or_create(
        &self,
        direction: Direction,
        label: LabelSetId,
        sizes: &StoreSizes,
        memory: &Memory,
    ) -> &AdjacencyTable {
        let make = || AdjacencyTable::new(self.core.capacity(), sizes);
        self.tables(direction).get_or_insert_with(label.0, (memory, RecordKind::Descriptor), make)
    }

    /// Notes that a commit has changed the vertices or the lists of the page, before the commit is finished (STORE-37).
    #[inline]
    pub(crate) fn note_lists(&self, ts: u64) {
        note(&self.lists_changed, ts);
    }

    /// Notes that a commit has written a property of an edge in a list of the page, before the commit is finished.
    #[inline]
    pub(crate) fn note_edge_write(&self, ts: u64) {
        note(&self.edges_written, ts);
    }

    /// The last timestamp that is noted on the page, for a reader that has begun the log of changes before (STORE-38).
    pub(crate) fn noted(&self) -> u64 {
        self.lists_changed.load(Ordering::SeqCst).max(self.edges_written.load(Ordering::SeqCst))
    }

    /// The timestamp of the last commit that changed a list of the page; the base if none has since it was loaded.
    pub(crate) fn lists_changed(&self) -> u64 {
        self.lists_changed.load(Ordering::Relaxed)
    }

    /// The timestamp of the last commit that wrote a property of an edge in a list of the page, of those that note it.
    pub(crate) fn edges_written(&self) -> u64 {
        self.edges_written.load(Ordering::Relaxed)
    }

    /// Calls `add` with the sizes of the page's parts in bytes.
    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        add(RecordKind::VertexPage, size_of::<VertexPage>());
        self.core.add_bytes(add);
        for (_, table) in self.outgoing.iter().chain(self.incoming.iter()) {
            let (descriptors, block) = table.bytes();
            add(RecordKind::Descriptor, descriptors);
            add(RecordKind::Block, block);
        }
        add(RecordKind::Descriptor, self.outgoing.bytes() + self.incoming.bytes());
    }
}

#[inline]
fn note(last: &AtomicU64, ts: u64) {
    // It is read first, as in `PageCore::note_change`. SeqCst: the look at the log comes after this (STORE-38).
    if last.load(Ordering::SeqCst) < ts {
        last.fetch_max(ts, Ordering::SeqCst);
    }
}
