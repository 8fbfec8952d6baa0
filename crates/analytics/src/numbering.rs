//! Positions: numbers below 2³² for the vertices of a moment, so that an algorithm keeps its state in arrays.
//!
//! Every page of vertices has 1,024 positions in a row, whether its slots have vertices or not. So a position is found from an
//! id by one look into a table of pages, and slots without a vertex are *holes*. The number of a page in the order of positions is
//! its *ordinal*. A new numbering gives ordinals in the order of ids. When it is refreshed, pages keep their ordinals, and new
//! pages get the next ones.

use std::ops::Range;
use std::sync::Arc;

use mangrove_graph::{Error, PAGE_SLOTS, Result, VertexId, VertexPage};

use crate::directory::Directory;
pub use crate::directory::NO_POSITION;

/// The positions of a page.
pub(crate) const SLOTS: usize = PAGE_SLOTS as usize;
/// The most pages: positions have 32 bits, and the last one means that there is none.
const PAGES_MAX: usize = u32::MAX as usize / SLOTS;
/// Words of the bits of a page.
const WORDS: usize = SLOTS / 64;

/// The vertices of a page.
#[derive(Clone, Debug)]
pub(crate) struct PageVertices {
    /// A bit for each slot.
    present: [u64; WORDS],
    /// The generation of each slot; empty if all are 0.
    generations: Arc<[u16]>,
}

impl PageVertices {
    /// These vertices of one page, whose slots ascend.
    pub(crate) fn of(vertices: &[VertexId]) -> Self {
        debug_assert!(vertices.is_sorted_by(|one, next| one.offset() < next.offset()), "slots ascend");
        let mut present = [0; WORDS];
        let slots =
            vertices.first().map_or(0, |first| first.offset())..vertices.last().map_or(0, |last| last.offset() + 1);
        if slots.len() == vertices.len() {
            // Mostly a page has no holes. Then nothing is done for each vertex.
            for (at, word) in present.iter_mut().enumerate() {
                let below = |slot: usize| match slot.saturating_sub(at * 64) {
                    slots @ 0..64 => (1 << slots) - 1,
                    _ => u64::MAX,
                };
                *word = below(slots.end) & !below(slots.start);
            }
        } else {
            vertices.iter().for_each(|id| present[id.offset() / 64] |= 1 << (id.offset() % 64));
        }
        let mut generations = Vec::new();
        let all_bits = vertices.iter().fold(0, |bits, id| bits | id.to_bits());
        if VertexId::from_bits(all_bits).generation() != 0 {
            generations.resize(SLOTS, 0);
            vertices.iter().for_each(|id| generations[id.offset()] = id.generation());
        }
        PageVertices { present, generations: generations.into() }
    }

    /// The bytes that they take in a numbering.
    pub(crate) fn bytes(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.generations)) as u64
    }
}

/// The positions of the vertices of a moment.
#[derive(Clone, Debug, Default)]
pub struct Numbering {
    directory: Directory,
    /// By ordinal, the id of a page's first slot, in its first generation.
    pages: Vec<VertexId>,
    /// By ordinal, as in [`PageVertices`].
    generations: Vec<Arc<[u16]>>,
    /// A bit for each position.
    present: Vec<u64>,
    count: u64,
}

impl Numbering {
    /// Gives these pages ordinals, those of `old` first. No vertex is present until its page is set.
    ///
    /// # Errors
    ///
    /// If there are more than four billion positions.
    pub(crate) fn of_pages(old: Option<&Numbering>, pages: &[VertexPage]) -> Result<Self> {
        let mut numbering = old.cloned().unwrap_or_default();
        let is_new = |page: &&VertexPage| old.is_none_or(|old| old.ordinal(page.first).is_none());
        let new: Vec<VertexId> = pages.iter().filter(is_new).map(|page| page.first).collect();
        numbering.pages.extend(new);
        let count = numbering.pages.len();
        if count > PAGES_MAX {
            return Err(Error::unsupported("the graph has more than four billion places for vertices"));
        }
        numbering.generations.resize_with(count, Arc::default);
        numbering.present.resize(count * WORDS, 0);
        numbering.directory = Directory::of(&numbering.pages);
        Ok(numbering)
    }

    /// How many pages have ordinals.
    pub(crate) fn page_count(&self) -> usize {
        self.pages.len()
    }

    /// Returns true if these are all pages, in the order of their ordinals.
    pub(crate) fn is_of_pages(&self, pages: &[VertexPage]) -> bool {
        self.pages.iter().eq(pages.iter().map(|page| &page.first))
    }

    /// The vertices of a page.
    pub(crate) fn page(&self, ordinal: usize) -> PageVertices {
        let mut present = [0; WORDS];
        present.copy_from_slice(&self.present[ordinal * WORDS..(ordinal + 1) * WORDS]);
        PageVertices { present, generations: self.generations[ordinal].clone() }
    }

    /// Replaces the vertices of a page.
    pub(crate) fn set_page(&mut self, ordinal: usize, vertices: PageVertices) {
        let words = &mut self.present[ordinal * WORDS..(ordinal + 1) * WORDS];
        let count = |words: &[u64]| words.iter().map(|word| u64::from(word.count_ones())).sum::<u64>();
        self.count = self.count - count(words) + count(&vertices.present);
        words.copy_from_slice(&vertices.present);
        self.generations[ordinal] = vertices.generations;
    }

    /// The ordinal of the page of an id.
    #[inline]
    pub(crate) fn ordinal(&self, id: VertexId) -> Option<usize> {
        self.directory.base(id).map(|base| base as usize / SLOTS)
    }

    /// The number of positions, holes included.
    pub fn positions(&self) -> u32 {
        (self.pages.len() * SLOTS) as u32
    }

    /// The number of vertices.
    pub fn vertex_count(&self) -> u64 {
        self.count
    }

    /// Returns true if a position is that of a vertex.
    #[inline]
    pub fn exists(&self, position: u32) -> bool {
        self.present[position as usize / 64] >> (position % 64) & 1 == 1
    }

    /// A bit for each of the 64 positions from a multiple of 64 on: set for those of vertices.
    #[inline]
    pub(crate) fn word(&self, first: u32) -> u64 {
        self.present[first as usize / 64]
    }

    /// The positions of vertices in a range, ascending.
    pub fn present(&self, range: Range<u32>) -> impl Iterator<Item = u32> + '_ {
        range.filter(|position| self.exists(*position))
    }

    /// The position of a place; [`NO_POSITION`] if its page has none. The generation does not count.
    #[inline]
    pub fn position(&self, id: VertexId) -> u32 {
        self.directory.base(id).map_or(NO_POSITION, |base| base | id.offset() as u32)
    }

    /// Appends [`Numbering::position`] of each of these places. Returns true if each has one.
    #[inline]
    pub(crate) fn append_positions(&self, ids: &[VertexId], out: &mut Vec<u32>) -> bool {
        self.directory.append_positions(ids, out)
    }

    /// The position of a vertex, if it is one of those that are numbered.
    pub fn find(&self, vertex: VertexId) -> Option<u32> {
        let at = self.position(vertex);
        // A deleted vertex may have had the place before, in an earlier generation.
        (at < self.positions() && self.exists(at) && self.vertex(at) == vertex).then_some(at)
    }

    /// The vertex at a position. Panics if it is none of [`Numbering::positions`].
    #[inline]
    pub fn vertex(&self, position: u32) -> VertexId {
        let (page, offset) = (position as usize / SLOTS, position as usize % SLOTS);
        let id = VertexId::from_bits(self.pages[page].to_bits() + offset as u64);
        match self.generations[page].get(offset) {
            Some(&generation) => id.with_generation(generation),
            None => id,
        }
    }

    /// The bytes that the numbering holds.
    pub fn bytes(&self) -> u64 {
        let generations: usize = self.generations.iter().map(|generations| generations.len() * 2 + 32).sum();
        (generations + self.directory.bases.len() * 4 + self.pages.len() * 8 + self.present.len() * 8) as u64
    }
}
