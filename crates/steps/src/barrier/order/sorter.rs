//! Sorting rows by computed columns, and comparing rows of several sorted batches.

use std::cell::OnceCell;
use std::cmp::Ordering;

use mangrove_flow::QueryControl;
use mangrove_graph::compare::watched;
use mangrove_graph::{GraphView, Result, Value, pieces};
use mangrove_gremlin::Order as Way;

use super::rank::{self, RankKind, Ranks};
use crate::context::random::Random;
use crate::rows::{ComputedColumn, NumberSlice, Rows, Tags};
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

    /// Returns the words of the first keys of rows of one instance, from this row on, if they have any.
    pub fn ranks(&self, rows: &Rows, from: usize) -> Option<Ranks> {
        match (&rows.tags, &self.ways[..], rows.computed.first()) {
            (Tags::One, [way @ (Way::Asc | Way::Desc), rest @ ..], Some(column)) if !rest.contains(&Way::Shuffle) => {
                rank::ranks(&column[from..], *way)
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
        if let Some(ranks) = self.ranks(rows, 0) {
            let (kind, further) = (ranks.kind, FurtherKeys::default());
            let piece = (self.ways.len() > 1).then(|| ids.piece());
            let (order, words) = rank::sort(ranks, piece, control, |a, b| {
                further.compare(self, kind, &elements, rows, (a as usize, b as usize))
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

/// The words of the keys after the first one. They are made when two first keys are equal.
#[derive(Default)]
struct FurtherKeys(OnceCell<Vec<Option<Ranks>>>);

impl FurtherKeys {
    /// Compares two rows whose first keys have equal words of a kind.
    fn compare(
        &self,
        sorter: &RowSorter,
        first: RankKind,
        elements: &ElementOrder<'_>,
        rows: &Rows,
        (a, b): (usize, usize),
    ) -> Ordering {
        if first.is_exact() && sorter.ways.len() == 1 {
            return Ordering::Equal;
        }
        let words = self.0.get_or_init(|| {
            let of_column = |(column, way): (&ComputedColumn, &Way)| rank::ranks(column, *way);
            rows.computed.iter().zip(&sorter.ways).skip(1).map(of_column).collect()
        });
        let by_value = |column: usize| compare_key(column, sorter.ways[column], elements, (rows, a), (rows, b));
        let by_first = if first.is_exact() { Ordering::Equal } else { by_value(0) };
        words.iter().zip(1..).fold(by_first, |order, (ranks, column)| {
            order.then_with(|| match ranks {
                Some(ranks) if ranks.kind.is_exact() => ranks.words[a].cmp(&ranks.words[b]),
                Some(ranks) => ranks.words[a].cmp(&ranks.words[b]).then_with(|| by_value(column)),
                None => by_value(column),
            })
        })
    }
}

/// Compares the keys of two rows.
pub(super) fn compare_keys(
    ways: &[Way],
    elements: &ElementOrder<'_>,
    (a_rows, a): (&Rows, usize),
    (b_rows, b): (&Rows, usize),
) -> Ordering {
    let compare = |(column, way): (usize, &Way)| compare_key(column, *way, elements, (a_rows, a), (b_rows, b));
    ways.iter().enumerate().map(compare).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Compares one key of two rows.
fn compare_key(
    column: usize,
    way: Way,
    elements: &ElementOrder<'_>,
    (a_rows, a): (&Rows, usize),
    (b_rows, b): (&Rows, usize),
) -> Ordering {
    match (a_rows.computed_value(column, a), b_rows.computed_value(column, b), way) {
        (Some(x), Some(y), Way::Asc) => elements.compare(x, y),
        (Some(x), Some(y), Way::Desc) => elements.compare(y, x),
        _ => Ordering::Equal,
    }
}
