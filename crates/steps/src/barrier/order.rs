//! `order()`: sorts the rows of each instance by computed columns, or by keys of their objects.
//!
//! Rows are held until their group has ended. With a limit, only the first rows of each instance are held: whenever
//! there are twice as many as needed, they are sorted and cut, and the first key of the last row left becomes the
//! *bar*. A row that arrives after that and does not pass the bar cannot be among the first, so it is dropped at once.
//! Number keys are compared with the bar as an array. The sort is stable, so a row whose only key equals the bar does
//! not pass.
//!
//! If the first keys of all held rows have one type (integers, floats, texts), they are sorted as words ([`rank`]).
//! Values are compared only if words are equal and do not decide.

mod rank;

use std::cmp::Ordering;

use mangrove_flow::{GroupId, Operator, Output, QueryControl};
use mangrove_graph::compare::watched;
use mangrove_graph::{FastMap, GraphView, Numbers, Result, Value, pieces};
use mangrove_gremlin::Order as Way;
use mangrove_plan::logical::Operand;

use crate::barrier::range::position;
use crate::computed::keys::{KeyReader, KeySource, KeyValues};
use crate::context::execution::ExecutionContext;
use crate::context::random::Random;
use crate::rows::held::HeldRows;
use crate::rows::{Rows, Tags};
use crate::values::element_order::ElementOrder;

/// Sorts the rows of each instance; with a limit, keeps only the first ones.
pub(crate) struct Order {
    /// The readers of the keys; empty if the keys are in computed columns.
    readers: Vec<KeyReader>,
    held: HeldRows,
    /// The bar of each group: the first key of the last kept row, if the group has one instance and enough rows.
    bars: FastMap<GroupId, Value>,
    sorter: RowSorter,
}

struct RowSorter {
    ways: Vec<Way>,
    /// The operand of the limit, and its value in this run.
    limit: Option<(Operand, u64)>,
    random: Random,
}

impl Order {
    /// Sorts by one computed column or key for each criterion.
    pub fn new(ways: Vec<Way>, taken: KeySource, limit: Option<Operand>) -> Self {
        let limit = limit.map(|operand| (operand, 0));
        let sorter = RowSorter { ways, limit, random: Random::default() };
        Order { readers: taken.readers(), held: HeldRows::default(), bars: FastMap::default(), sorter }
    }

    /// Drops the rows that do not pass the bar, and puts the keys of the others into computed columns.
    fn take_keys(&mut self, group: GroupId, batch: Rows, context: &ExecutionContext) -> Result<Rows> {
        if self.readers.is_empty() {
            return Ok(batch);
        }
        let objects = &batch.objects;
        let keys = self.readers.iter_mut().map(|reader| reader.read(objects, context));
        let keys = keys.collect::<Result<Vec<KeyValues<'_>>>>()?;
        let bar = self.bars.get(&group).filter(|_| batch.tags == Tags::One);
        let passing = match (bar, keys.first()) {
            (Some(bar), Some(KeyValues::Numbers(numbers))) => self.sorter.numbers_that_pass(numbers, bar),
            (Some(bar), Some(KeyValues::Values(column))) => {
                let passes = |row: &u32| column[*row as usize].as_ref().is_some_and(|key| self.sorter.passes(key, bar));
                Some((0..column.len() as u32).filter(passes).collect())
            }
            _ => None,
        };
        Ok(match passing {
            Some(rows) => {
                let computed = keys.iter().map(|keys| keys.gather(&rows)).collect();
                Rows { computed, ..batch.take(&rows) }
            }
            None => {
                let computed = keys.into_iter().map(KeyValues::into_computed).collect();
                Rows { computed, ..batch }
            }
        })
    }
}

impl RowSorter {
    /// Returns true if a row with this first key may come before the last kept row.
    fn passes(&self, key: &Value, bar: &Value) -> bool {
        let order = match self.ways.first() {
            Some(Way::Asc) => watched::order(key, bar),
            Some(Way::Desc) => watched::order(bar, key),
            Some(Way::Shuffle) | None => return true,
        };
        order.is_lt() || (order.is_eq() && self.ways.len() > 1)
    }

    /// Returns the rows whose numbers pass the bar; `None` if the numbers and the bar cannot be compared as words.
    fn numbers_that_pass(&self, numbers: &Numbers, bar: &Value) -> Option<Vec<u32>> {
        let way = *self.ways.first()?;
        let bar = rank::of_number(bar, numbers.kind?.is_float(), way)?;
        let below = if self.ways.len() > 1 { bar.checked_add(1) } else { Some(bar) };
        let mut passing = vec![0; numbers.len()];
        let mut count = 0;
        let mut take = |row: usize, rank: u64| {
            // Without a branch for each row: few rows pass, and the processor cannot predict which.
            passing[count] = row as u32;
            count += usize::from(below.is_none_or(|below| rank < below));
        };
        match numbers.kind?.is_float() {
            true => numbers.floats.iter().enumerate().for_each(|(row, n)| take(row, rank::of_float(*n, way))),
            false => numbers.integers.iter().enumerate().for_each(|(row, n)| take(row, rank::of_integer(*n, way))),
        }
        passing.truncate(count);
        Some(passing)
    }

    /// Returns the rows in order; with a limit, only the first ones of each instance.
    fn sort(&mut self, rows: &Rows, view: &dyn GraphView, control: &QueryControl) -> Result<Vec<u32>> {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        if self.ways.contains(&Way::Shuffle) {
            self.random.shuffle(&mut order);
        }
        let elements = ElementOrder::of(rows.computed.iter().flatten().flatten(), view)?;
        let ways = &self.ways;
        let ranks = match (&rows.tags, &ways[..], rows.computed.first()) {
            (Tags::One, [way @ (Way::Asc | Way::Desc), rest @ ..], Some(column)) if !rest.contains(&Way::Shuffle) => {
                rank::ranks(column, *way)
            }
            _ => None,
        };
        match ranks {
            Some(ranks) => {
                rank::sort(ranks, (ways.len() > 1).then(|| elements.piece()), &mut order, control, |a, b| {
                    compare_rows(rows, ways, &elements, a as usize, b as usize)
                })?
            }
            None => pieces::sort(
                &mut order,
                elements.piece(),
                || control.check(),
                |&a, &b| {
                    let (a, b) = (a as usize, b as usize);
                    rows.tag(a).cmp(&rows.tag(b)).then_with(|| compare_rows(rows, ways, &elements, a, b))
                },
            )?,
        }
        if let Some((_, limit)) = self.limit {
            self.cut(rows, &mut order, limit);
        }
        Ok(order)
    }

    /// Keeps the first `limit` traversers of each instance.
    fn cut(&self, rows: &Rows, order: &mut Vec<u32>, limit: u64) {
        let (mut tag, mut taken) = (None, 0_u64);
        order.retain(|&row| {
            let row = row as usize;
            if tag != Some(rows.tag(row)) {
                (tag, taken) = (Some(rows.tag(row)), 0);
            }
            let keep = taken < limit;
            taken = taken.saturating_add(rows.bulk(row));
            keep
        });
    }

    /// Returns the bar that sorted and cut rows set, if there are enough of them.
    fn bar(&self, rows: &Rows) -> Option<Value> {
        let (_, limit) = self.limit.as_ref()?;
        let held = (0..rows.len()).map(|row| rows.bulk(row)).fold(0, u64::saturating_add);
        let is_set = rows.tags == Tags::One && held >= *limit && !self.ways.contains(&Way::Shuffle);
        is_set.then(|| rows.computed_value(0, rows.len().checked_sub(1)?).cloned()).flatten()
    }
}

fn compare_rows(rows: &Rows, ways: &[Way], elements: &ElementOrder<'_>, a: usize, b: usize) -> Ordering {
    for (column, way) in ways.iter().enumerate() {
        let (Some(x), Some(y)) = (rows.computed_value(column, a), rows.computed_value(column, b)) else { continue };
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

impl Operator<Rows> for Order {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        if let Some((operand, limit)) = &mut self.sorter.limit {
            *limit = position(operand, "limit()", context)?;
        }
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.readers.iter_mut().for_each(KeyReader::recycle);
        self.sorter.random.recycle();
        self.held.is_empty() && self.bars.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if self.sorter.ways.contains(&Way::Shuffle) {
            self.sorter.random.begin(out.context(), out.control());
        }
        let batch = self.take_keys(group, batch, out.context())?;
        // An unproductive by() drops the row.
        let is_complete = |r: &usize| batch.computed.iter().all(|column| column[*r].is_some());
        let rows = if (0..batch.len()).all(|r| is_complete(&r)) {
            batch
        } else {
            batch.take(&(0..batch.len()).filter(is_complete).map(|r| r as u32).collect::<Vec<_>>())
        };
        if rows.is_empty() {
            return Ok(());
        }
        self.held.add(group, rows, out)?;
        if self.sorter.limit.is_none() {
            return Ok(());
        }
        let Order { readers, held, bars, sorter } = self;
        let (view, control) = (&out.context().view, out.control());
        held.thin(group, out, |rows| {
            let rows = rows.take(&sorter.sort(rows, &**view, control)?);
            if !readers.is_empty()
                && let Some(bar) = sorter.bar(&rows)
            {
                bars.insert(group, bar);
            }
            Ok(rows)
        })
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        self.bars.remove(&group);
        if let Some(mut rows) = self.held.take(group, out) {
            let order = self.sorter.sort(&rows, &*out.context().view, out.control())?;
            rows.computed.clear();
            for chunk in order.chunks(mangrove_flow::BATCH_ROWS) {
                out.control().check()?;
                out.emit(0, group, rows.take(chunk))?;
            }
        }
        out.finish_all(group, instances)
    }
}
