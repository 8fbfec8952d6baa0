//! Pages that a load has filled and not published yet.
//!
//! No other thread sees a staged page, so a loader writes it without version words or locks. A page gets its number when
//! it is begun; publishing the pages in the order of their numbers makes the numbers true.

use std::collections::BTreeSet;

use mangrove_graph::{Catalog, LabelId, TabletId, VertexId};

use crate::memory::Memory;
use crate::page::{EdgePage, PageCore, PagePosition, VertexPage};

/// The index of a page that does not exist.
pub(crate) const NO_PAGE: u32 = u32::MAX;

/// Pages of one kind that are not published yet.
pub(crate) struct StagedPages<P> {
    /// Tablet, number and page, in the order in which they were begun.
    pub(crate) pages: Vec<(TabletId, u32, Box<P>)>,
    /// For each tablet (counting from 0) and page number, the index in `pages`, or [`NO_PAGE`].
    indexes: Vec<Vec<u32>>,
    /// Slots that stay empty, since another element has their external number as its chosen id: index of the page, and
    /// offset.
    pub(crate) free_slots: BTreeSet<(u32, usize)>,
}

impl<P> StagedPages<P> {
    pub(crate) fn new(tablets: usize) -> Self {
        StagedPages { pages: Vec::new(), indexes: vec![Vec::new(); tablets], free_slots: BTreeSet::new() }
    }

    /// Pages that have numbers already.
    pub(crate) fn of(tablets: usize, pages: Vec<(TabletId, u32, Box<P>)>) -> Self {
        let mut staged = StagedPages { pages, ..StagedPages::new(tablets) };
        for (index, (tablet, number, _)) in staged.pages.iter().enumerate() {
            let numbers = &mut staged.indexes[usize::from(tablet.0) - 1];
            if numbers.len() <= *number as usize {
                numbers.resize(*number as usize + 1, NO_PAGE);
            }
            numbers[*number as usize] = index as u32;
        }
        staged
    }

    /// The index of a page in `pages`.
    #[inline]
    pub(crate) fn index_of(&self, tablet: TabletId, page: usize) -> Option<usize> {
        let index = *self.indexes.get(usize::from(tablet.0).wrapping_sub(1))?.get(page)?;
        (index != NO_PAGE).then_some(index as usize)
    }

    /// Adds a page under the tablet's next number. Returns its index in `pages`.
    pub(crate) fn add(&mut self, tablet: TabletId, page: P) -> u32 {
        let numbers = &mut self.indexes[usize::from(tablet.0) - 1];
        let index = u32::try_from(self.pages.len()).expect("fewer than 2^32 pages fit in memory");
        self.pages.push((tablet, numbers.len() as u32, Box::new(page)));
        numbers.push(index);
        index
    }
}

/// A page of vertices or of edges.
pub(crate) trait HasPageCore {
    fn core(&self) -> &PageCore;
    fn core_mut(&mut self) -> &mut PageCore;
}

impl HasPageCore for VertexPage {
    fn core(&self) -> &PageCore {
        &self.core
    }
    fn core_mut(&mut self) -> &mut PageCore {
        &mut self.core
    }
}

impl HasPageCore for EdgePage {
    fn core(&self) -> &PageCore {
        &self.core
    }
    fn core_mut(&mut self) -> &mut PageCore {
        &mut self.core
    }
}

impl<P: HasPageCore> StagedPages<P> {
    /// The page and offset of an element, if its slot was filled. Ids of both kinds have the same bits.
    pub(crate) fn find(&self, id: VertexId) -> Option<(&PageCore, usize)> {
        let (_, _, page) = &self.pages[self.index_of(id.tablet(), id.page())?];
        (id.offset() < page.core().used()).then_some((page.core(), id.offset()))
    }

    /// The labels of a staged element.
    pub(crate) fn labels_of(&self, id: VertexId, catalog: &Catalog) -> Vec<LabelId> {
        self.find(id).map(|(core, _)| catalog.labels_of(core.label)).unwrap_or_default()
    }

    /// Returns true if a slot stays empty.
    pub(crate) fn is_free(&self, id: VertexId) -> bool {
        let index = self.index_of(id.tablet(), id.page());
        index.is_some_and(|index| self.free_slots.contains(&(index as u32, id.offset())))
    }

    /// Removes the elements of the slots that stay empty. Returns the pages and offsets of these slots.
    pub(crate) fn leave_empty(&mut self, memory: &Memory) -> Vec<(PagePosition, usize)> {
        let left = std::mem::take(&mut self.free_slots).into_iter().map(|(index, at)| {
            let (tablet, number, page) = &self.pages[index as usize];
            page.core().leave_empty(at, memory);
            (PagePosition { number: *number as usize, tablet: *tablet }, at)
        });
        left.collect()
    }
}
