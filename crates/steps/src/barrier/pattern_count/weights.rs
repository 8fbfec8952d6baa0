//! The weights of vertices, a page of the store at a time.
//!
//! ```text
//!  tablet, page of a vertex ──► number of its page ──► 1,024 weights, one for each slot
//! ```
//!
//! A page on which no vertex has a weight other than 0 is not there. Vertices of a page have ids that follow one another,
//! so the weights of the ends of a sorted list are near to each other. Only one visible vertex has a slot, so weights are
//! found without a look at the generation of an id.
//!
//! - **STEPS-13.** A weight is exact, or [`MANY`], which stands for any number from there up. Sums and products keep this,
//!   as long as nothing is subtracted.

use mangrove_graph::{PAGE_SLOTS, TabletId, VertexId};

/// The slots of a page.
pub(super) const SLOTS: usize = PAGE_SLOTS as usize;

/// 2^64 - 1 or more (STEPS-13). A count that a vertex of this weight adds to is an overflow.
pub(super) const MANY: u64 = u64::MAX;

/// The approximate bytes of a page of weights.
pub(super) const PAGE_BYTES: u64 = 8 * PAGE_SLOTS + 64;

/// The page of the store that a vertex lies on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PageId {
    tablet: TabletId,
    number: usize,
}

impl PageId {
    pub fn of(vertex: VertexId) -> Self {
        PageId { tablet: vertex.tablet(), number: vertex.page() }
    }

    /// Returns the vertex in a slot of the page, in its first generation.
    pub fn vertex(self, slot: usize) -> VertexId {
        VertexId::new(self.tablet, self.number as u64 * PAGE_SLOTS + slot as u64)
    }
}

/// The number of each page among those that are there, by tablet and page.
#[derive(Debug, Default)]
pub(super) struct PageNumbers(Vec<Vec<u32>>);

impl PageNumbers {
    /// Stands for a page that is not there.
    const NONE: u32 = u32::MAX;

    /// Numbers pages in their order.
    pub fn new(pages: impl IntoIterator<Item = PageId>) -> Self {
        let mut tablets: Vec<Vec<u32>> = Vec::new();
        for (number, page) in (0..).zip(pages) {
            let tablet = usize::from(page.tablet.0);
            if tablets.len() <= tablet {
                tablets.resize_with(tablet + 1, Vec::new);
            }
            let numbers = &mut tablets[tablet];
            if numbers.len() <= page.number {
                numbers.resize(page.number + 1, Self::NONE);
            }
            numbers[page.number] = number;
        }
        PageNumbers(tablets)
    }

    /// Returns the number of a vertex's page.
    #[inline]
    pub fn get(&self, vertex: VertexId) -> Option<usize> {
        let number = *self.0.get(usize::from(vertex.tablet().0))?.get(vertex.page())?;
        (number != Self::NONE).then_some(number as usize)
    }
}

/// The weights of the vertices of a page.
#[derive(Debug)]
pub(super) struct WeightPage {
    pub page: PageId,
    pub weights: Box<[u64; SLOTS]>,
}

impl WeightPage {
    /// All weights are 0.
    pub fn new(page: PageId) -> Self {
        WeightPage { page, weights: Box::new([0; SLOTS]) }
    }

    pub fn is_empty(&self) -> bool {
        self.weights.iter().all(|weight| *weight == 0)
    }
}

/// The weights of all vertices of a variable.
#[derive(Debug, Default)]
pub(super) struct VertexWeights {
    numbers: PageNumbers,
    pages: Vec<WeightPage>,
}

impl VertexWeights {
    pub fn new(pages: Vec<WeightPage>) -> Self {
        VertexWeights { numbers: PageNumbers::new(pages.iter().map(|page| page.page)), pages }
    }

    /// Returns the weight of a vertex.
    #[inline]
    pub fn get(&self, vertex: VertexId) -> u64 {
        self.numbers.get(vertex).map_or(0, |number| self.pages[number].weights[vertex.offset()])
    }

    /// Returns the place of a vertex in [`VertexWeights::flat`]; `None` if its weight is 0.
    #[inline]
    pub fn place(&self, vertex: VertexId) -> Option<usize> {
        let number = self.numbers.get(vertex)?;
        (self.pages[number].weights[vertex.offset()] != 0).then(|| number * SLOTS + vertex.offset())
    }

    /// Returns the weights of a page's vertices, if one is not 0.
    pub fn page(&self, page: PageId) -> Option<&WeightPage> {
        self.numbers.get(page.vertex(0)).map(|number| &self.pages[number])
    }

    /// Returns all weights, page after page.
    pub fn flat(&self) -> Vec<u64> {
        self.pages.iter().flat_map(|page| page.weights.iter().copied()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_found_by_page_and_slot() {
        let vertex = |tablet, slot| VertexId::new(TabletId(tablet), slot);
        let mut pages = vec![WeightPage::new(PageId::of(vertex(3, 2048))), WeightPage::new(PageId::of(vertex(0, 5)))];
        pages[0].weights[7] = 11;
        pages[1].weights[5] = MANY;
        let weights = VertexWeights::new(pages);
        assert_eq!((weights.get(vertex(3, 2055)), weights.get(vertex(0, 5))), (11, MANY));
        assert_eq!((weights.get(vertex(3, 7)), weights.get(vertex(9, 0)), weights.get(vertex(3, 4096))), (0, 0, 0));
        assert_eq!(weights.get(vertex(3, 2055).with_generation(4)), 11);
        assert_eq!((weights.place(vertex(0, 5)), weights.place(vertex(0, 6))), (Some(SLOTS + 5), None));
        assert_eq!((weights.flat()[7], weights.flat()[SLOTS + 5], weights.flat().len()), (11, MANY, 2 * SLOTS));
    }
}
