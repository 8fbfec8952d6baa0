//! Tablets: a share of the vertices with all their adjacency, properties and out-edges.
//!
//! A tablet owns its pages and the pools that their records come from, so that it can later be moved,
//! checkpointed or dropped as one piece. A page is registered once and never moves.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use mangrove_graph::{ElementKind, TabletId};
use mangrove_locks::rank;
use mangrove_reclaim::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex};
use mangrove_reclaim::{Pin, Usage};

use crate::adjacency::{AdjacencyTable, ListStorage};
use crate::cell::undo::{UndoPool, UndoReader};
use crate::cell::{RawCell, ValueRegion};
use crate::memory::{ChunkedArray, Garbage, Memory, RecordKind};
use crate::page::{EdgePage, FreeSlots, PageCore, TableName, Tasks, VertexPage};

/// The pages of one kind in one tablet.
#[derive(Debug)]
pub(crate) struct PageTable<P> {
    pages: ChunkedArray<OnceLock<Box<P>>, 4>,
    count: AtomicU32,
}

impl<P> PageTable<P> {
    fn new() -> Self {
        PageTable { pages: ChunkedArray::new(RecordKind::Directory), count: AtomicU32::new(0) }
    }

    /// The page of a number.
    #[inline]
    pub(crate) fn get(&self, number: usize) -> Option<&P> {
        self.pages.get(number as u64)?.get().map(|page| &**page)
    }

    /// How many pages there are. The last ones may still be on their way in; what they hold is visible to
    /// nobody who counts now.
    pub(crate) fn count(&self) -> usize {
        self.count.load(Ordering::Acquire) as usize
    }

    /// Adds a page and returns its number.
    pub(crate) fn add(&self, page: Box<P>, memory: &Memory) -> u32 {
        let number = self.count.fetch_add(1, Ordering::AcqRel);
        let entry = self.pages.ensure(u64::from(number), memory);
        assert!(entry.set(page).is_ok(), "page number {number} is given out once");
        number
    }

    /// Puts a page in the place that it had before, in a directory that nobody else uses yet. False if the place is
    /// taken.
    pub(crate) fn put(&self, number: u32, page: Box<P>, memory: &Memory) -> bool {
        self.count.fetch_max(number + 1, Ordering::AcqRel);
        self.pages.ensure(u64::from(number), memory).set(page).is_ok()
    }

    /// The pages there are.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        (0..self.count()).filter_map(|number| self.get(number))
    }

    /// The pages there are, with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &P)> {
        (0..self.count()).filter_map(|number| Some((number, self.get(number)?)))
    }

    fn bytes(&self) -> usize {
        self.pages.bytes()
    }
}

/// Which page takes the next element of a label set.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// Tablet << 32 | page number + 1; 0 before the first page.
    at: AtomicU64,
    /// Held while the next page is made.
    pub(crate) turn: Mutex<(), rank::PageTurn>,
    /// Slots that elements left: taken first.
    pub(crate) free: FreeSlots,
}

impl Cursor {
    /// Tablet and page.
    #[inline]
    pub(crate) fn get(&self) -> Option<(TabletId, usize)> {
        let at = self.at.load(Ordering::Acquire);
        (at != 0).then(|| (TabletId((at >> 32) as u16), (at as u32 - 1) as usize))
    }

    pub(crate) fn set(&self, tablet: TabletId, page: u32) {
        self.at.store((u64::from(tablet.0) << 32) | u64::from(page + 1), Ordering::Release);
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Tablet {
    pub(crate) id: TabletId,
    pub(crate) vertices: PageTable<VertexPage>,
    pub(crate) edges: PageTable<EdgePage>,
    /// Where new edges go, by label set.
    pub(crate) edge_cursors: ChunkedArray<Cursor, 3>,
    pub(crate) values: ValueRegion,
    pub(crate) undo: UndoPool,
    pub(crate) lists: ListStorage,
    /// What the collector has to do here.
    pub(crate) tasks: Mutex<Tasks, rank::CollectorTasks>,
    /// Held by the collector that works here.
    pub(crate) turn: Mutex<(), rank::CollectorTurn>,
    /// Whether there may be pages with free slots to be frozen, once they are left alone.
    has_new_free_slots: AtomicBool,
}

impl Tablet {
    pub(crate) fn new(id: TabletId) -> Self {
        Tablet {
            id,
            vertices: PageTable::new(),
            edges: PageTable::new(),
            edge_cursors: ChunkedArray::new(RecordKind::Directory),
            values: ValueRegion::new(),
            undo: UndoPool::new(RecordKind::Undo),
            lists: ListStorage::new(),
            tasks: Mutex::default(),
            turn: Mutex::default(),
            has_new_free_slots: AtomicBool::new(false),
        }
    }

    /// Says that a page may have become one with free slots to be frozen.
    pub(crate) fn note_free_slots(&self) {
        // Mostly set already, and then its line stays with everybody.
        if !self.has_new_free_slots.load(Ordering::SeqCst) {
            self.has_new_free_slots.store(true, Ordering::SeqCst);
        }
    }

    /// Whether there may be such pages, before the caller looks at them.
    pub(crate) fn take_new_free_slots(&self) -> bool {
        self.has_new_free_slots.swap(false, Ordering::SeqCst)
    }

    /// The undo records, to be read under this pin.
    #[inline]
    pub(crate) fn undo_under<'p>(&'p self, pin: &'p Pin) -> UndoReader<'p> {
        UndoReader::new(&self.undo, pin)
    }

    /// An adjacency table and its page.
    pub(crate) fn table(&self, name: TableName) -> Option<(&VertexPage, &AdjacencyTable)> {
        let page = self.vertices.get(name.page as usize)?;
        Some((page, page.tables(name.direction).get(name.label.0)?))
    }

    /// How much of its pools is in use.
    pub(crate) fn usage(&self) -> [(RecordKind, Usage); 4] {
        let (headers, tails) = self.lists.usage();
        [
            (RecordKind::Undo, self.undo.usage()),
            (RecordKind::Value, self.values.usage()),
            (RecordKind::ListHeader, headers),
            (RecordKind::Tail, tails),
        ]
    }

    pub(crate) fn add_bytes(&self, add: &mut impl FnMut(RecordKind, usize)) {
        self.vertices.iter().for_each(|page| page.add_bytes(add));
        self.edges.iter().for_each(|page| page.add_bytes(add));
        add(RecordKind::Directory, self.vertices.bytes() + self.edges.bytes() + self.edge_cursors.bytes());
        add(RecordKind::Value, self.values.bytes());
        add(RecordKind::Undo, self.undo.bytes());
        let (headers, tails, own_blocks) = self.lists.bytes();
        add(RecordKind::Block, own_blocks);
        add(RecordKind::ListHeader, headers);
        add(RecordKind::Tail, tails);
    }
}

/// The garbage that a cell is when nothing names it any more.
pub(crate) fn value_garbage(tablet: &Tablet, cell: RawCell) -> Option<Garbage> {
    cell.is_record().then_some(Garbage::Value { tablet: tablet.id.0, record: cell.word })
}

/// What vertices and edges have in common, of a page.
pub(crate) fn page_core(tablet: &Tablet, kind: ElementKind, number: usize) -> Option<&PageCore> {
    match kind {
        ElementKind::Vertex => tablet.vertices.get(number).map(|page| &page.core),
        ElementKind::Edge => tablet.edges.get(number).map(|page| &page.core),
    }
}
