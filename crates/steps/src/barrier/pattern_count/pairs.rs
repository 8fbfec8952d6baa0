//! Pairs of neighbors that are different vertices.
//!
//! With `a(x)` edges to a neighbor `x` along one leg and `b(y)` along the other, the pairs of a vertex are
//!
//! ```text
//! Σ_x a(x)·w(x) · Σ_{y ≠ x} b(y)·w'(y)
//! ```
//!
//! The inner sum is that over all `y` without one term, which both lists show if they are sorted. Nothing is subtracted
//! from a sum that is only known to be large (STEPS-13).

use mangrove_graph::VertexId;

use super::weights::{MANY, VertexWeights};

/// A sum of weights from which one may be taken out.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sum {
    /// The sum of the weights that are exact.
    exact: u128,
    /// How many others there are.
    many: usize,
}

impl Sum {
    #[inline]
    pub fn add(&mut self, weight: u64) {
        if weight == MANY {
            self.many += 1;
        } else {
            self.exact += u128::from(weight);
        }
    }

    /// Returns the sum without one of its terms, or without 0.
    #[inline]
    pub fn without(self, weight: u64) -> u128 {
        if self.many > usize::from(weight == MANY) {
            u128::MAX
        } else if weight == MANY {
            self.exact
        } else {
            self.exact - u128::from(weight)
        }
    }
}

/// Calls `each` with every different vertex of a sorted list and the sum of the weights of its edges.
fn each_end(sorted: &[VertexId], ends: Option<&VertexWeights>, mut each: impl FnMut(VertexId, u64)) {
    for run in sorted.chunk_by(|a, b| a == b) {
        let weight = ends.map_or(1, |ends| ends.get(run[0]));
        each(run[0], weight.saturating_mul(run.len() as u64));
    }
}

/// Returns the pairs of a neighbor in the first list and a different one in the second, weighted. Both lists are sorted.
pub(super) fn different_pairs(
    (first, first_ends): (&[VertexId], Option<&VertexWeights>),
    (second, second_ends): (&[VertexId], Option<&VertexWeights>),
    scratch: &mut Vec<(VertexId, u64)>,
) -> u128 {
    let mut sum = Sum::default();
    scratch.clear();
    each_end(second, second_ends, |vertex, weight| {
        sum.add(weight);
        scratch.push((vertex, weight));
    });
    let mut others = scratch.iter().peekable();
    let mut total: u128 = 0;
    each_end(first, first_ends, |vertex, weight| {
        while others.next_if(|(other, _)| *other < vertex).is_some() {}
        let same = others.peek().filter(|(other, _)| *other == vertex).map_or(0, |(_, weight)| *weight);
        total = total.saturating_add(u128::from(weight).saturating_mul(sum.without(same)));
    });
    total
}

#[cfg(test)]
mod tests {
    use mangrove_graph::TabletId;
    use proptest::prelude::*;

    use super::*;
    use crate::barrier::pattern_count::weights::{PageId, WeightPage};

    fn vertex(slot: u64) -> VertexId {
        VertexId::new(TabletId(0), slot)
    }

    fn weights(of: &[u64]) -> VertexWeights {
        let mut page = WeightPage::new(PageId::of(vertex(0)));
        page.weights[..of.len()].copy_from_slice(of);
        VertexWeights::new(vec![page])
    }

    proptest! {
        /// The pairs are those of two loops.
        #[test]
        fn pairs_are_counted_one_by_one(
            first in prop::collection::vec(0..6_u64, 0..12),
            second in prop::collection::vec(0..6_u64, 0..12),
            w in prop::collection::vec(0..4_u64, 6),
            plain: bool,
        ) {
            let held = weights(&w);
            let of = |slot: u64| if plain { 1 } else { w[slot as usize] };
            let expected: u64 = first.iter().flat_map(|x| second.iter().map(move |y| (x, y)))
                .filter(|(x, y)| x != y).map(|(x, y)| of(*x) * w[*y as usize]).sum();
            let list = |slots: &[u64]| {
                let mut list: Vec<VertexId> = slots.iter().map(|slot| vertex(*slot)).collect();
                list.sort_unstable();
                list
            };
            let (first, second) = (list(&first), list(&second));
            let first_ends = (!plain).then_some(&held);
            let pairs = different_pairs((&first, first_ends), (&second, Some(&held)), &mut Vec::new());
            prop_assert_eq!(pairs, u128::from(expected));
        }
    }

    #[test]
    fn a_large_weight_is_left_out_and_not_subtracted() {
        let held = weights(&[MANY, 3]);
        let list = [vertex(0), vertex(1)];
        let only = |at: usize| &list[at..=at];
        let pairs = |first, second| different_pairs((first, None), (second, Some(&held)), &mut Vec::new());
        assert_eq!(pairs(only(0), &list), 3);
        assert_eq!(pairs(only(1), &list), u128::MAX);
        assert_eq!(pairs(only(0), only(0)), 0);
    }
}
