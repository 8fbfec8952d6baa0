//! Two hops from the root to ends that are compared with the root, with its neighbors, or with a sibling.
//!
//! ```text
//! Σ over the middles m of the root: weight(m) · Σ over the ends z of m: value(z)
//! ```
//!
//! `value(z)` is the weight of `z`, or 0 if a comparison rejects it. It lies in an array of all ends, in which a few places
//! are changed for each root: those of the neighbors that close the walk, and of the root. So an end that is met costs an
//! addition. If the end differs from a sibling `y`, the sum of the weights of all other siblings is a factor.

use std::sync::Arc;

use mangrove_graph::VertexId;

use super::lists::NeighborLists;
use super::pairs::Sum;
use super::weights::{PageId, PageNumbers, SLOTS, VertexWeights};

/// The ends of the second hop from the vertices of a page, as places among all ends.
#[derive(Debug)]
pub(super) struct EndPage {
    pub page: PageId,
    /// The weight of each slot's vertex.
    pub weights: Box<[u64; SLOTS]>,
    /// Where the list of each slot ends.
    pub list_ends: Vec<u32>,
    pub places: Vec<u32>,
}

impl EndPage {
    /// The lists of the vertices of a page; ends without a weight are left out.
    pub fn new(
        (page, weights): (PageId, Box<[u64; SLOTS]>),
        number: usize,
        lists: &NeighborLists,
        ends: &VertexWeights,
    ) -> Self {
        let (mut list_ends, mut places) = (Vec::with_capacity(SLOTS), Vec::new());
        for slot in 0..SLOTS {
            places.extend(lists.get(number, slot).iter().filter_map(|end| ends.place(*end)).map(|place| place as u32));
            list_ends.push(places.len() as u32);
        }
        EndPage { page, weights, list_ends, places }
    }

    pub fn bytes(&self) -> u64 {
        (SLOTS * size_of::<u64>() + (self.list_ends.len() + self.places.len()) * size_of::<u32>()) as u64
    }
}

/// The second hop from all middles.
#[derive(Debug)]
pub(super) struct SecondHop {
    numbers: PageNumbers,
    pages: Vec<EndPage>,
    ends: Arc<VertexWeights>,
    /// The weights of all ends.
    flat: Vec<u64>,
    /// True if a sum of as many weights as any list has might need more than 64 bits.
    is_large: bool,
}

impl SecondHop {
    pub fn new(pages: Vec<EndPage>, ends: Arc<VertexWeights>) -> Self {
        let flat = ends.flat();
        let largest = flat.iter().max().copied().unwrap_or_default();
        // A list has fewer than 2^32 ends.
        let is_large = largest > u64::from(u32::MAX);
        SecondHop { numbers: PageNumbers::new(pages.iter().map(|page| page.page)), pages, ends, flat, is_large }
    }

    /// The weight of a middle, and the places of its ends.
    #[inline]
    fn of(&self, middle: VertexId) -> (u64, &[u32]) {
        let Some(number) = self.numbers.get(middle) else { return (0, &[]) };
        let (page, slot) = (&self.pages[number], middle.offset());
        let from = if slot == 0 { 0 } else { page.list_ends[slot - 1] };
        (page.weights[slot], &page.places[from as usize..page.list_ends[slot] as usize])
    }

    pub fn bytes(&self) -> u64 {
        self.flat.len() as u64 * 8
    }
}

/// The comparisons of the end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparisons {
    /// An edge from the root must be there (true), or must not.
    pub closing: Option<bool>,
    pub differs: bool,
    pub sibling: bool,
}

/// A root with the lists of its neighbors. Those that no comparison needs are empty.
#[derive(Clone, Copy)]
pub(super) struct Root<'a> {
    pub vertex: VertexId,
    pub middles: &'a [VertexId],
    pub closing: &'a [VertexId],
    pub siblings: &'a [VertexId],
    pub sibling_ends: Option<&'a VertexWeights>,
}

/// The arrays that a thread changes for each root.
#[derive(Debug)]
pub(super) struct WalkScratch {
    comparisons: Comparisons,
    /// The value of each end.
    values: Vec<u64>,
    /// The sum of the weights of the edges to each sibling.
    siblings: Vec<u64>,
    /// The places among the siblings that are not 0.
    touched: Vec<usize>,
}

impl WalkScratch {
    pub fn new(hop: &SecondHop, comparisons: Comparisons) -> Self {
        let places = hop.flat.len();
        let values = if comparisons.closing == Some(true) { vec![0; places] } else { hop.flat.clone() };
        let siblings = if comparisons.sibling { vec![0; places] } else { Vec::new() };
        WalkScratch { comparisons, values, siblings, touched: Vec::new() }
    }

    pub fn bytes(&self) -> u64 {
        (self.values.len() + self.siblings.len()) as u64 * 8
    }

    /// Returns the weighted walks from a root whose ends pass the comparisons, and counts the ends that were met.
    pub fn count(&mut self, hop: &SecondHop, root: Root<'_>, met: &mut usize) -> u128 {
        let Comparisons { closing, differs, .. } = self.comparisons;
        for place in root.closing.iter().filter_map(|end| hop.ends.place(*end)) {
            self.values[place] = if closing == Some(true) { hop.flat[place] } else { 0 };
        }
        let itself = if differs { hop.ends.place(root.vertex) } else { None };
        if let Some(place) = itself {
            self.values[place] = 0;
        }
        let total = match self.comparisons.sibling {
            true => self.beside_siblings(hop, root, met),
            false => self.alone(hop, root, met),
        };
        let resting = |place: usize| if closing == Some(true) { 0 } else { hop.flat[place] };
        for place in root.closing.iter().filter_map(|end| hop.ends.place(*end)).chain(itself) {
            self.values[place] = resting(place);
        }
        total
    }

    fn alone(&self, hop: &SecondHop, root: Root<'_>, met: &mut usize) -> u128 {
        let mut total: u128 = 0;
        for middle in root.middles {
            let (weight, places) = hop.of(*middle);
            if weight == 0 {
                continue;
            }
            *met += places.len();
            let values = places.iter().map(|place| self.values[*place as usize]);
            let sum = match hop.is_large {
                true => values.map(u128::from).sum(),
                false => u128::from(values.sum::<u64>()),
            };
            total = total.saturating_add(sum.saturating_mul(u128::from(weight)));
        }
        total
    }

    fn beside_siblings(&mut self, hop: &SecondHop, root: Root<'_>, met: &mut usize) -> u128 {
        let mut all = Sum::default();
        for sibling in root.siblings {
            let weight = root.sibling_ends.map_or(1, |ends| ends.get(*sibling));
            match hop.ends.place(*sibling) {
                Some(place) if weight > 0 => {
                    if self.siblings[place] == 0 {
                        self.touched.push(place);
                    }
                    self.siblings[place] = self.siblings[place].saturating_add(weight);
                }
                // It equals no end.
                _ => all.add(weight),
            }
        }
        self.touched.iter().for_each(|place| all.add(self.siblings[*place]));
        let mut total: u128 = 0;
        for middle in root.middles {
            let (weight, places) = hop.of(*middle);
            if weight == 0 {
                continue;
            }
            *met += places.len();
            let mut sum: u128 = 0;
            for place in places {
                let value = self.values[*place as usize];
                if value != 0 {
                    let others = all.without(self.siblings[*place as usize]);
                    sum = sum.saturating_add(u128::from(value).saturating_mul(others));
                }
            }
            total = total.saturating_add(sum.saturating_mul(u128::from(weight)));
        }
        self.touched.drain(..).for_each(|place| self.siblings[place] = 0);
        total
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::TabletId;
    use proptest::prelude::*;

    use super::*;
    use crate::barrier::pattern_count::weights::{MANY, WeightPage};

    const VERTICES: usize = 6;

    fn vertex(slot: usize) -> VertexId {
        VertexId::new(TabletId(0), slot as u64)
    }

    fn weights(of: &[u64]) -> VertexWeights {
        let mut page = WeightPage::new(PageId::of(vertex(0)));
        page.weights[..of.len()].copy_from_slice(of);
        VertexWeights::new(vec![page])
    }

    /// The second hop from vertices of these weights, along these lists.
    fn second_hop(middles: &[u64], lists: &[Vec<usize>], ends: &[u64]) -> SecondHop {
        let ends = Arc::new(weights(ends));
        let (mut list_ends, mut places) = (Vec::new(), Vec::new());
        for slot in 0..SLOTS {
            let list = lists.get(slot).into_iter().flatten();
            places.extend(list.filter_map(|end| ends.place(vertex(*end))).map(|place| place as u32));
            list_ends.push(places.len() as u32);
        }
        let mut page = WeightPage::new(PageId::of(vertex(0)));
        page.weights[..middles.len()].copy_from_slice(middles);
        SecondHop::new(vec![EndPage { page: page.page, weights: page.weights, list_ends, places }], ends)
    }

    fn vertices(slots: &[usize]) -> Vec<VertexId> {
        slots.iter().map(|slot| vertex(*slot)).collect()
    }

    fn list() -> impl Strategy<Value = Vec<usize>> {
        prop::collection::vec(0..VERTICES, 0..8)
    }

    proptest! {
        /// Walks are those of nested loops, for one root after the other.
        #[test]
        fn walks_are_counted_one_by_one(
            middles in prop::collection::vec(0..3_u64, VERTICES),
            ends in prop::collection::vec(0..3_u64, VERTICES),
            of_siblings in prop::collection::vec(0..3_u64, VERTICES),
            lists in prop::collection::vec(list(), VERTICES),
            roots in prop::collection::vec((0..VERTICES, list(), list(), list()), 1..4),
            closing: Option<bool>,
            differs: bool,
            sibling: bool,
            plain_siblings: bool,
        ) {
            let hop = second_hop(&middles, &lists, &ends);
            let sibling_weights = weights(&of_siblings);
            let mut scratch = WalkScratch::new(&hop, Comparisons { closing, differs, sibling });
            for (root, first, closes, siblings) in roots {
                let mut expected = 0;
                for (middle, end) in first.iter().flat_map(|middle| lists[*middle].iter().map(move |end| (middle, end))) {
                    let closed = closing.is_none_or(|is_there| closes.contains(end) == is_there);
                    if !closed || differs && *end == root {
                        continue;
                    }
                    let others = siblings.iter().filter(|other| *other != end);
                    let weight = |other: &usize| if plain_siblings { 1 } else { of_siblings[*other] };
                    let times = if sibling { others.map(weight).sum() } else { 1 };
                    expected += middles[*middle] * ends[*end] * times;
                }
                let closes = if closing.is_some() { vertices(&closes) } else { Vec::new() };
                let root = Root {
                    vertex: vertex(root),
                    middles: &vertices(&first),
                    closing: &closes,
                    siblings: &vertices(&siblings),
                    sibling_ends: (!plain_siblings).then_some(&sibling_weights),
                };
                prop_assert_eq!(scratch.count(&hop, root, &mut 0), u128::from(expected));
            }
        }
    }

    #[test]
    fn large_weights_are_left_out_and_not_subtracted() {
        let hop = second_hop(&[1], &[vec![0, 1]], &[MANY, 2]);
        let middles = vertices(&[0]);
        let root = |siblings| Root { vertex: vertex(0), middles: &middles, closing: &[], siblings, sibling_ends: None };
        let comparisons = |differs, sibling| Comparisons { closing: None, differs, sibling };
        let mut alone = WalkScratch::new(&hop, comparisons(true, false));
        assert_eq!(alone.count(&hop, root(&[]), &mut 0), 2);
        let mut beside = WalkScratch::new(&hop, comparisons(false, true));
        let zero = vertices(&[0]);
        assert_eq!(beside.count(&hop, root(&zero), &mut 0), 2);
        let mut all = WalkScratch::new(&hop, comparisons(false, false));
        assert_eq!(all.count(&hop, root(&[]), &mut 0), u128::from(MANY) + 2);
    }
}
