//! The first rows of one instance among those that have come, found without sorting or moving them.
//!
//! A look compares the first rows so far with the rows that have come since, and keeps the numbers of the first ones of both.
//! The others stay where they are until they are worth a copy of the rows.
//!
//! ```text
//!  rows     r0 r1 r2 r3 r4 │ r5 r6        looked at: r0 to r4
//!  first    r1 r4          │              the next look: r1, r4, r5, r6
//! ```

use std::cmp::Ordering;

use super::rank::{RankKind, Ranks};
use super::sorter::{RowSorter, compare_keys};
use crate::rows::Rows;
use crate::values::element_order::ElementOrder;

/// See the header of this file.
#[derive(Default)]
pub(super) struct Selection {
    /// The first rows of those looked at, in no order: the word of each, and its number.
    first: Vec<(u64, u32)>,
    /// The rows before this one were looked at.
    looked_at: usize,
    /// The kind of the words.
    kind: Option<RankKind>,
    /// See [`Selection::last`].
    last: Option<usize>,
}

impl Selection {
    /// Returns the number of the first row that was not looked at.
    pub fn looked_at(&self) -> usize {
        self.looked_at
    }

    /// Returns the number of the first rows.
    pub fn len(&self) -> usize {
        self.first.len()
    }

    /// Returns the number of rows looked at that are none of the first ones.
    pub fn dropped(&self) -> usize {
        self.looked_at - self.first.len()
    }

    /// Looks at the rows from [`Selection::looked_at`] on, whose words are `ranks`, and leaves the first `count` rows. Returns
    /// false if words of another kind have come: then nothing has changed.
    pub fn look(
        &mut self,
        sorter: &RowSorter,
        elements: &ElementOrder<'_>,
        rows: &Rows,
        ranks: Ranks,
        count: usize,
    ) -> bool {
        if self.kind.is_some_and(|kind| kind != ranks.kind) {
            return false;
        }
        let is_exact = sorter.is_exact(ranks.kind);
        let compare = |a: &(u64, u32), b: &(u64, u32)| {
            let by_keys = || match is_exact {
                true => Ordering::Equal,
                false => compare_keys(&sorter.ways, elements, (rows, a.1 as usize), (rows, b.1 as usize)),
            };
            // Equal rows keep the order in which they came.
            a.0.cmp(&b.0).then_with(by_keys).then(a.1.cmp(&b.1))
        };
        self.kind = Some(ranks.kind);
        self.first.extend(ranks.words.into_iter().zip(self.looked_at as u32..));
        self.looked_at = rows.len();
        self.last = None;
        if let Some(last) = count.checked_sub(1).filter(|last| *last < self.first.len()) {
            self.last = Some(self.first.select_nth_unstable_by(last, compare).1.1 as usize);
            self.first.truncate(count);
        }
        true
    }

    /// Returns the number of the last of the first rows, if the last look has left as many as it should.
    pub fn last(&self) -> Option<usize> {
        self.last
    }

    /// Takes the dropped rows out. Returns false if there are none.
    pub fn take_out(&mut self, rows: &mut Rows) -> bool {
        if self.dropped() == 0 {
            return false;
        }
        self.first.sort_unstable_by_key(|(_, row)| *row);
        let new = self.looked_at as u32..rows.len() as u32;
        let kept: Vec<u32> = self.first.iter().map(|(_, row)| *row).chain(new).collect();
        *rows = rows.take(&kept);
        self.first.iter_mut().zip(0..).for_each(|((_, row), number)| *row = number);
        (self.looked_at, self.last) = (self.first.len(), None);
        true
    }
}

#[cfg(test)]
mod tests {
    use mangrove_graph::Value;
    use mangrove_gremlin::Order as Way;
    use proptest::prelude::*;

    use super::*;
    use crate::context::random::Random;
    use crate::fake_view::modern;
    use crate::rows::{ObjectColumn, Tags};
    use crate::values::element_order::ElementIds;

    /// A row for each pair of keys. Its object is its number.
    fn rows(keys: &[(i64, i64)], first: usize) -> Rows {
        let objects = (first..first + keys.len()).map(|number| Value::I64(number as i64)).collect();
        let mut rows = Rows::of(ObjectColumn::Values(objects));
        rows.tags = Tags::One;
        rows.computed = vec![
            keys.iter().map(|(key, _)| Some(Value::I64(*key))).collect(),
            keys.iter().map(|(_, key)| Some(Value::I64(*key))).collect(),
        ];
        rows
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]
        #[test]
        fn a_selection_is_the_begin_of_a_stable_sort(
            messages in prop::collection::vec((prop::collection::vec((0..6_i64, 0..3_i64), 1..30), any::<bool>()), 1..8),
            count in 1..40_usize,
        ) {
            let sorter = RowSorter { ways: vec![Way::Desc, Way::Asc], limit: Some(count as u64), random: Random::default() };
            let (g, ids) = (modern(), ElementIds::default());
            let (mut selection, mut held, mut all) = (Selection::default(), Rows::default(), Vec::new());
            for (keys, takes_out) in messages {
                held.append(rows(&keys, all.len()));
                all.extend(keys);
                let ranks = sorter.ranks(&held, selection.looked_at()).expect("numbers have words");
                prop_assert!(selection.look(&sorter, &ElementOrder::new(&*g.view, &ids), &held, ranks, count));
                let mut expected: Vec<usize> = (0..all.len()).collect();
                expected.sort_by_key(|row| (-all[*row].0, all[*row].1));
                expected.truncate(count);
                let number = |row: usize| held.objects.get(row);
                let last = (all.len() >= count).then(|| Value::I64(expected[count - 1] as i64));
                prop_assert_eq!(selection.last().map(number), last);
                let mut found: Vec<Value> = selection.first.iter().map(|(_, row)| number(*row as usize)).collect();
                found.sort_by_key(mangrove_graph::numeric::integer);
                expected.sort_unstable();
                prop_assert_eq!(&found, &expected.iter().map(|row| Value::I64(*row as i64)).collect::<Vec<_>>());
                if takes_out {
                    selection.take_out(&mut held);
                    prop_assert_eq!(held.objects.clone().into_values(), found, "in the order in which they came");
                }
            }
        }
    }
}
