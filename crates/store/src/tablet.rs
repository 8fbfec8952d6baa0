//! Tablets: a share of the vertices with all their adjacency, properties and out-edges.
//!
//! A tablet owns its pages and the pools that their records come from, so that it can later be moved,
//! checkpointed or dropped as one piece. A page is registered once and never moves.

use std::sync::OnceLock;
use std::sync::atomic::Ordering;

use mangrove_graph::TabletId;

use crate::adjacency::{AdjacencyTable, ListStorage};
use crate::cell::ValueRegion;
use crate::edge_page::EdgePage;
use crate::epoch::Pin;
use crate::free_places::FreePlaces;
use crate::garbage::{TableName, Tasks};
use crate::memory::{Memory, RecordKind};
use crate::page::VertexPage;
use crate::segments::{Segments, Usage};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex};
use crate::undo::{UndoPool, UndoReader};

/// The pages of one kind in one tablet.
#[derive(Debug)]
pub(crate) struct Directory<P> {
    pages: Segments<OnceLock<Box<P>>, 4>,
    count: AtomicU32,
}

impl<P> Directory<P> {
    fn new() -> Self {
        Directory { pages: Segments::new(RecordKind::Directory), count: AtomicU32::new(0) }
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
    pub(crate) turn: Mutex<()>,
    /// Places that elements left: taken first.
    pub(crate) free: FreePlaces,
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
    pub(crate) vertices: Directory<VertexPage>,
    pub(crate) edges: Directory<EdgePage>,
    /// Where new edges go, by label set.
    pub(crate) edge_cursors: Segments<Cursor, 3>,
    pub(crate) values: ValueRegion,
    pub(crate) undo: UndoPool,
    pub(crate) lists: ListStorage,
    /// What the collector has to do here.
    pub(crate) tasks: Mutex<Tasks>,
    /// Held by the collector that works here.
    pub(crate) turn: Mutex<()>,
    /// Whether there may be pages with holes to be settled, once they are left alone.
    has_new_holes: AtomicBool,
}

impl Tablet {
    pub(crate) fn new(id: TabletId) -> Self {
        Tablet {
            id,
            vertices: Directory::new(),
            edges: Directory::new(),
            edge_cursors: Segments::new(RecordKind::Directory),
            values: ValueRegion::new(),
            undo: UndoPool::new(RecordKind::Undo),
            lists: ListStorage::new(),
            tasks: Mutex::default(),
            turn: Mutex::default(),
            has_new_holes: AtomicBool::new(false),
        }
    }

    /// Says that a page may have become one with holes to be settled.
    pub(crate) fn note_holes(&self) {
        // Mostly set already, and then its line stays with everybody.
        if !self.has_new_holes.load(Ordering::SeqCst) {
            self.has_new_holes.store(true, Ordering::SeqCst);
        }
    }

    /// Whether there may be such pages, before the caller looks at them.
    pub(crate) fn take_new_holes(&self) -> bool {
        self.has_new_holes.swap(false, Ordering::SeqCst)
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
