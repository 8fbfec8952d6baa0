//! Positions: numbers below 2³² for the vertices of a moment, so that an algorithm keeps its state in arrays.
//!
//! Every page of vertices has 1,024 positions in a row, whether its slots have vertices or not. So a position is found from an
//! id by one look into a table of pages, and slots without a vertex are *holes*. Pages are numbered tablet by tablet, and by
//! their numbers within a tablet: positions ascend as ids do.

use std::ops::Range;

use mangrove_graph::{Error, GraphView, LabelFilter, PAGE_SLOTS, Result, ScanCursor, Share, TabletId, VertexId};

/// Vertices that are scanned at a time.
const SCANNED: usize = 1 << 14;
/// In the table of pages: a page without positions.
const NO_PAGE: u32 = u32::MAX;
/// The most pages: positions have 32 bits, and the last one means that there is none.
const PAGES_MAX: usize = (u32::MAX / PAGE_SLOTS as u32) as usize;

/// The position of no vertex.
pub const NO_POSITION: u32 = u32::MAX;

/// The positions of the vertices of a moment.
#[derive(Clone, Debug)]
pub struct Numbering {
    /// For each tablet, the number of each of its pages in the order of positions, or [`NO_PAGE`].
    ordinals: Vec<Vec<u32>>,
    /// For each page, the first position of its vertices as an id, of generation 0.
    pages: Vec<VertexId>,
    /// For each page, the generations of its vertices; empty if all are 0.
    generations: Vec<Vec<u16>>,
    /// A bit for each position.
    present: Vec<u64>,
    count: u64,
    /// For each tablet, its positions.
    tablets: Vec<Range<u32>>,
}

impl Numbering {
    /// Numbers the vertices of these labels.
    ///
    /// # Errors
    ///
    /// If there are more than four billion positions, or if the view fails.
    pub fn of(view: &dyn GraphView, labels: &LabelFilter) -> Result<Self> {
        let (mut cursor, mut ids) = (ScanCursor::default(), Vec::new());
        let mut numbering = Numbering {
            ordinals: Vec::new(),
            pages: Vec::new(),
            generations: Vec::new(),
            present: Vec::new(),
            count: 0,
            tablets: Vec::new(),
        };
        loop {
            ids.clear();
            let is_end = view.scan_vertices(labels, Share::ALL, &mut cursor, SCANNED, &mut ids)?;
            for &id in &ids {
                numbering.add(id)?;
            }
            if is_end {
                return Ok(numbering);
            }
        }
    }

    /// Adds a vertex. Those of a page follow one another.
    fn add(&mut self, id: VertexId) -> Result<()> {
        let base = VertexId::from_bits(id.with_generation(0).to_bits() - id.offset() as u64);
        if self.pages.last() != Some(&base) {
            if self.pages.len() == PAGES_MAX {
                return Err(Error::unsupported("the graph has more than four billion places for vertices"));
            }
            let tablet = usize::from(id.tablet().0);
            if self.ordinals.len() <= tablet {
                self.ordinals.resize_with(tablet + 1, Vec::new);
                self.tablets.resize(tablet + 1, 0..0);
            }
            let ordinals = &mut self.ordinals[tablet];
            if ordinals.len() <= id.page() {
                ordinals.resize(id.page() + 1, NO_PAGE);
            }
            let ordinal = self.pages.len() as u32;
            ordinals[id.page()] = ordinal;
            let range = &mut self.tablets[tablet];
            if range.start == range.end {
                range.start = ordinal * PAGE_SLOTS as u32;
            }
            range.end = (ordinal + 1) * PAGE_SLOTS as u32;
            self.pages.push(base);
            self.generations.push(Vec::new());
            self.present.resize(self.pages.len() * (PAGE_SLOTS / 64) as usize, 0);
        }
        if id.generation() != 0 {
            let generations = self.generations.last_mut().expect("a page was added");
            generations.resize(PAGE_SLOTS as usize, 0);
            generations[id.offset()] = id.generation();
        }
        let position = (self.pages.len() as u32 - 1) * PAGE_SLOTS as u32 + id.offset() as u32;
        self.present[position as usize / 64] |= 1 << (position % 64);
        self.count += 1;
        Ok(())
    }

    /// The number of positions, holes included.
    pub fn positions(&self) -> u32 {
        self.pages.len() as u32 * PAGE_SLOTS as u32
    }

    /// The number of vertices.
    pub fn vertex_count(&self) -> u64 {
        self.count
    }

    /// The tablets with vertices, and their positions, ascending.
    pub fn tablets(&self) -> impl Iterator<Item = (TabletId, Range<u32>)> + '_ {
        let numbered = self.tablets.iter().enumerate().filter(|(_, range)| range.start < range.end);
        numbered.map(|(tablet, range)| (TabletId(tablet as u16), range.clone()))
    }

    /// Returns true if a position is that of a vertex.
    #[inline]
    pub fn exists(&self, position: u32) -> bool {
        self.present[position as usize / 64] >> (position % 64) & 1 == 1
    }

    /// The positions of vertices in a range, ascending.
    pub fn present(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        range.filter(|position| self.exists(*position))
    }

    /// The position of a place; [`NO_POSITION`] if its page has none. The generation does not count.
    #[inline]
    pub fn position(&self, id: VertexId) -> u32 {
        let ordinals = self.ordinals.get(usize::from(id.tablet().0));
        match ordinals.and_then(|ordinals| ordinals.get(id.page())) {
            Some(&ordinal) if ordinal != NO_PAGE => ordinal * PAGE_SLOTS as u32 + id.offset() as u32,
            _ => NO_POSITION,
        }
    }

    /// The vertex at a position. Panics if it is none of [`Numbering::positions`].
    #[inline]
    pub fn vertex(&self, position: u32) -> VertexId {
        let (page, offset) = (position as usize / PAGE_SLOTS as usize, position as usize % PAGE_SLOTS as usize);
        let id = VertexId::from_bits(self.pages[page].to_bits() + offset as u64);
        match self.generations[page].get(offset) {
            Some(&generation) => id.with_generation(generation),
            None => id,
        }
    }

    /// The bytes that the numbering holds.
    pub fn bytes(&self) -> u64 {
        let ordinals: usize = self.ordinals.iter().map(|ordinals| ordinals.len() * 4 + 24).sum();
        let generations: usize = self.generations.iter().map(|generations| generations.len() * 2 + 24).sum();
        (ordinals + generations + self.pages.len() * 8 + self.present.len() * 8 + self.tablets.len() * 8) as u64
    }
}
