//! Sorting rows by computed columns, and comparing rows of several sorted batches.

use std::cmp::Ordering;

use mangrove_flow::QueryControl;
use mangrove_graph::compare::watched;
use mangrove_graph::{GraphView, Result, Value, pieces};
use mangrove_gremlin::Order as Way;

use super::rank::{self, RankKind, Ranks};
use crate::context::random::Random;
use crate::rows::{NumberSlice, Rows, Tags};
use crate::values::element_order::{ElementIds, ElementOrder};

/// Sorts rows by their tags, then by their computed columns, one for each way.
pub(super) struct RowSorter {
    pub ways: Vec<Way>,
    /// The maximum number of traversers of each instance that are needed.
    pub limit: Option<u64>,
    pub random: Random,
}

/// Rows in order.
pub(super) struct SortedRows {
    /// The rows, by their numbers.
    pub order: Vec<u32>,
    /// The words of the rows in order, if the first keys have any.
    pub words: Option<(RankKind, Vec<u64>)>,
}

impl RowSorter {
    /// Returns true if rows come in no order of their own: they are shuffled.
    pub fn shuffles(&self) -> bool {
        self.ways.contains(&Way::Shuffle)
    }

    /// Returns true if equal words mean that rows are equal.
    pub fn is_exact(&self, kind: RankKind) -> bool {
        kind.is_exact() && self.ways.len() == 1
    }

    /// Returns true if a row with this first key may come before the last kept row.
    pub fn passes(&self, key: &Value, bar: &Value) -> bool {
        let order = match self.ways.first() {
            Some(Way::Asc) => watched::order(key, bar),
            Some(Way::Desc) => watched::order(bar, key),
            Some(Way::Shuffle) | None => return true,
        };
        order.is_lt() || (order.is_eq() && self.ways.len() > 1)
    }

    /// Returns the rows whose numbers pass the bar; `None` if the numbers and the bar cannot be compared as words.
    pub fn numbers_that_pass(&self, numbers: NumberSlice<'_>, bar: &Value) -> Option<Vec<u32>> {
        let way = *self.ways.first()?;
        let bar = rank::of_number(bar, numbers.kind().is_float(), way)?;
        let below = if self.ways.len() > 1 { bar.checked_add(1) } else { Some(bar) };
        let mut passing = vec![0; numbers.len()];
        let mut count = 0;
        let mut take = |row: usize, rank: u64| {
            // Without a branch for each row: few rows pass, and the processor cannot predict which.
            passing[count] = row as u32;
            count += usize::from(below.is_none_or(|below| rank < below));
        };
        match numbers {
            NumberSlice::Floats(_, numbers) => {
                numbers.iter().enumerate().for_each(|(row, n)| take(row, rank::of_float(*n, way)));
            }
            NumberSlice::Integers(_, numbers) => {
                numbers.iter().enumerate().for_each(|(row, n)| take(row, rank::of_integer(*n, way)));
            }
        }
        passing.truncate(count);
        Some(passing)
    }

    /// Returns the numbers of the first `count` rows in order, ascending, and the number of the last of them in order;
    /// `None` for no rows. `ranks` are the words of the rows, of which there are more than `count`.
    pub fn first_rows(
        &self,
        ranks: Ranks,
        rows: &Rows,
        ids: &ElementIds,
        view: &dyn GraphView,
        count: usize,
    ) -> Option<(Vec<u32>, usize)> {
        let is_exact = self.is_exact(ranks.kind);
        let elements = ElementOrder::new(view, ids);
        let mut order: Vec<(u64, u32)> = ranks.words.into_iter().zip(0..).collect();
        let compare = |a: &(u64, u32), b: &(u64, u32)| {
            let by_keys = || match is_exact {
                true => Ordering::Equal,
                false => compare_keys(&self.ways, &elements, (rows, a.1 as usize), (rows, b.1 as usize)),
            };
            // Equal rows keep the order in which they came.
            a.0.cmp(&b.0).then_with(by_keys).then(a.1.cmp(&b.1))
        };
        let (_, last, _) = order.select_nth_unstable_by(count.checked_sub(1)?, compare);
        let last = last.1 as usize;
        let mut first: Vec<u32> = order[..count].iter().map(|(_, row)| *row).collect();
        first.sort_unstable();
        Some((first, last))
    }

    /// Returns the words of the first keys, if rows of one instance have any.
    pub fn ranks(&self, rows: &Rows) -> Option<Ranks> {
        match (&rows.tags, &self.ways[..], rows.computed.first()) {
            (Tags::One, [way @ (Way::Asc | Way::Desc), rest @ ..], Some(column)) if !rest.contains(&Way::Shuffle) => {
                rank::ranks(column, *way)
            }
            _ => None,
        }
    }

    /// Returns rows in order. Equal rows keep the order in which they came. `ids` has the ids of their elements.
    pub fn sort(
        &mut self,
        rows: &Rows,
        ids: &ElementIds,
        view: &dyn GraphView,
        control: &QueryControl,
    ) -> Result<SortedRows> {
        let elements = ElementOrder::new(view, ids);
        if let Some(ranks) = self.ranks(rows) {
            let ways = &self.ways;
            let kind = ranks.kind;
            let piece = (ways.len() > 1).then(|| ids.piece());
            let (order, words) = rank::sort(ranks, piece, control, |a, b| {
                compare_keys(ways, &elements, (rows, a as usize), (rows, b as usize))
            })?;
            return Ok(SortedRows { order, words: Some((kind, words)) });
        }
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        if self.ways.contains(&Way::Shuffle) {
            self.random.shuffle(&mut order);
        }
        let ways = &self.ways;
        let compare = |&a: &u32, &b: &u32| {
            let (a, b) = (a as usize, b as usize);
            let by_tag = rows.tag(a).cmp(&rows.tag(b));
            by_tag.then_with(|| compare_keys(ways, &elements, (rows, a), (rows, b)))
        };
        pieces::sort(&mut order, ids.piece(), || control.check(), compare)?;
        Ok(SortedRows { order, words: None })
    }
}

/// Compares the keys of two rows.
pub(super) fn compare_keys(
    ways: &[Way],
    elements: &ElementOrder<'_>,
    (a_rows, a): (&Rows, usize),
    (b_rows, b): (&Rows, usize),
) -> Ordering {
    for (column, way) in ways.iter().enumerate() {
        let (Some(x), Some(y)) = (a_rows.computed_value(column, a), b_rows.computed_value(column, b)) else { continue };
        let order = match way {
            Way::Asc => elements.compare(x, y),
            Way::Desc => elements.compare(y, x),
            Way::Shuffle => Ordering::Equal,
        };
        if order.is_ne() {
            return order;
        }
    }
    Ordering::Equal
}
