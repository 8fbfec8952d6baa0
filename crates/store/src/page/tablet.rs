//! Tablets: a share of the vertices, with their properties, their adjacency and the edges that leave them.
//!
//! A tablet owns its pages and the pools that their records come from, so no record is shared between tablets. A page
//! is registered once, under a number that it keeps (STORE-34), and never moves.

use std::collections::BTreeMap;
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

    /// The number of pages. The last ones may not be published yet; no snapshot that exists now sees an element there.
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

    /// Puts a restored page into the directory under its old number (STORE-34). No other thread uses the directory yet.
    /// Returns false if the number is taken.
    pub(crate) fn put(&self, number: u32, page: Box<P>, memory: &Memory) -> bool {
        self.count.fetch_max(number + 1, Ordering::AcqRel);
        self.pages.ensure(u64::from(number), memory).set(page).is_ok()
    }

    /// The page of a number, which is made and published if there is none.
    pub(crate) fn get_or_put(&self, number: u32, make: impl FnOnce() -> Box<P>, memory: &Memory) -> &P {
        let page = self.pages.ensure(u64::from(number), memory).get_or_init(make);
        self.count.fetch_max(number + 1, Ordering::AcqRel);
        page
    }

    /// Makes later pages have larger numbers than this one.
    pub(crate) fn keep_number(&self, number: u32) {
        self.count.fetch_max(number.saturating_add(1), Ordering::AcqRel);
    }

    /// The published pages.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &P> {
        (0..self.count()).filter_map(|number| self.get(number))
    }

    /// The published pages with their numbers, which may have gaps.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &P)> {
        (0..self.count()).filter_map(|number| Some((number, self.get(number)?)))
    }

    fn bytes(&self) -> usize {
        self.pages.bytes()
    }
}

/// The cursor for new elements of a label set: the page that takes the next one, and the free slots.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    /// Tablet << 32 | page number + 1; 0 before the first page.
    at: AtomicU64,
    /// Held while the next page is made.
    pub(crate) turn: Mutex<(), rank::PageTurn>,
    /// Slots that elements have left, which are taken first.
    pub(crate) free: FreeSlots,
}

impl Cursor {
    /// Tablet and number of the page, if there is one.
    #[inline]
    pub(crate) fn get(&self) -> Option<(TabletId, usize)> {
        let at = self.at.load(Ordering::Acquire);
        (at != 0).then(|| (TabletId((at >> 32) as u16), (at as u32 - 1) as usize))
    }

    /// Moves the cursor to a page.
    pub(crate) fn set(&self, tablet: TabletId, page: u32) {
        self.at.store((u64::from(tablet.0) << 32) | u64::from(page + 1), Ordering::Release);
    }
}

/// A share of the vertices, and the edges that leave them.
#[derive(Debug)]
pub(crate) struct Tablet {
    pub(crate) id: TabletId,
    pub(crate) vertices: PageTable<VertexPage>,
    pub(crate) edges: PageTable<EdgePage>,
    /// The cursors for new edges, by label set.
    pub(crate) edge_cursors: ChunkedArray<Cursor, 3>,
    pub(crate) values: ValueRegion,
    pub(crate) undo: UndoPool,
    pub(crate) lists: ListStorage,
    /// The tasks of collectors in this tablet.
    pub(crate) tasks: Mutex<Tasks, rank::CollectorTasks>,
    /// Held by the collector that works on vertices, pages and tables of this tablet.
    pub(crate) turn: Mutex<(), rank::CollectorTurn>,
    /// True if there may be pages with free slots that can be frozen when they are left alone.
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

    /// Notes that there may be a page with free slots to be frozen.
    pub(crate) fn note_free_slots(&self) {
        // Mostly the flag is set already, and then every core keeps a copy of its cache line.
        if !self.has_new_free_slots.load(Ordering::SeqCst) {
            self.has_new_free_slots.store(true, Ordering::SeqCst);
        }
    }

    /// Returns true if [`Tablet::note_free_slots`] was called since the last look. The caller takes the note before it
    /// looks at the pages, so that a page noted meanwhile is found by the next look.
    pub(crate) fn take_new_free_slots(&self) -> bool {
        self.has_new_free_slots.swap(false, Ordering::SeqCst)
    }

    /// The cores of all published pages of one kind, with the numbers of the pages.
    pub(crate) fn cores(&self, kind: ElementKind) -> impl Iterator<Item = (usize, &PageCore)> {
        let count = match kind {
            ElementKind::Vertex => self.vertices.count(),
            ElementKind::Edge => self.edges.count(),
        };
        (0..count).filter_map(move |number| Some((number, page_core(self, kind, number)?)))
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

    /// The use of each pool.
    pub(crate) fn usage(&self) -> [(RecordKind, Usage); 4] {
        let (headers, tails) = self.lists.usage();
        [
            (RecordKind::Undo, self.undo.usage()),
            (RecordKind::Value, self.values.usage()),
            (RecordKind::ListHeader, headers),
            (RecordKind::Tail, tails),
        ]
    }

    /// Calls `add` with the sizes of the tablet's parts in bytes.
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

/// The record of a cell as garbage, if the cell names one. No other cell may name the record.
pub(crate) fn value_garbage(tablet: &Tablet, cell: RawCell) -> Option<Garbage> {
    cell.is_record().then_some(Garbage::Value { tablet: tablet.id.0, record: cell.word })
}

/// The core of a page, by kind and number.
pub(crate) fn page_core(tablet: &Tablet, kind: ElementKind, number: usize) -> Option<&PageCore> {
    match kind {
        ElementKind::Vertex => tablet.vertices.get(number).map(|page| &page.core),
        ElementKind::Edge => tablet.edges.get(number).map(|page| &page.core),
    }
}

/// For each group of pages, the page with most room for new elements. A group whose pages are all full has none. A page
/// comes as its group, its core, and what stands for it in the answer.
pub(crate) fn roomiest<'a, G: Ord, T>(pages: impl Iterator<Item = (G, &'a PageCore, T)>) -> BTreeMap<G, T> {
    let mut best: BTreeMap<G, (usize, T)> = BTreeMap::new();
    for (group, core, page) in pages {
        let room = core.capacity() - core.used();
        if room > 0 && best.get(&group).is_none_or(|(most, _)| room > *most) {
            best.insert(group, (room, page));
        }
    }
    best.into_iter().map(|(group, (_, page))| (group, page)).collect()
}
