//! `order()`: sorts the rows of each instance by slots.

use std::cmp::Ordering;

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::{GraphView, Result};
use mangrove_gremlin::Order as Way;
use mangrove_plan::logical::Operand;

use crate::barrier::held::HeldRows;
use crate::barrier::range::position;
use crate::element_order::ElementOrder;
use crate::environment::Environment;
use crate::random::Random;
use crate::rows::Rows;

/// Sorts; with a limit, keeps only the first of each instance.
pub struct Order {
    held: HeldRows,
    sorter: Sorter,
}

struct Sorter {
    ways: Vec<Way>,
    /// The operand of the limit, and its value in this run.
    limit: Option<(Operand, u64)>,
    /// What shuffles.
    random: Random,
}

impl Order {
    /// Sorts by one slot a way.
    pub fn new(ways: Vec<Way>, limit: Option<Operand>) -> Self {
        let limit = limit.map(|operand| (operand, 0));
        Order { held: HeldRows::default(), sorter: Sorter { ways, limit, random: Random::default() } }
    }
}

impl Sorter {
    /// The rows in order; with a limit, only the first of each instance.
    fn sort(&mut self, rows: &Rows, view: &dyn GraphView) -> Result<Vec<u32>> {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        if self.ways.contains(&Way::Shuffle) {
            self.random.shuffle(&mut order);
        }
        let elements = ElementOrder::of(rows.slots.iter().flatten().flatten(), view)?;
        let ways = &self.ways;
        order.sort_by(|&a, &b| {
            let (a, b) = (a as usize, b as usize);
            rows.tag(a).cmp(&rows.tag(b)).then_with(|| compare_rows(rows, ways, &elements, a, b))
        });
        if let Some((_, limit)) = self.limit {
            self.cut(rows, &mut order, limit);
        }
        Ok(order)
    }

    /// Keeps `limit` traversers an instance.
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
}

fn compare_rows(rows: &Rows, ways: &[Way], elements: &ElementOrder<'_>, a: usize, b: usize) -> Ordering {
    for (slot, way) in ways.iter().enumerate() {
        let (Some(x), Some(y)) = (rows.slot(slot, a), rows.slot(slot, b)) else { continue };
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
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        if let Some((operand, limit)) = &mut self.sorter.limit {
            *limit = position(operand, "limit()", environment)?;
        }
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.sorter.random.rest();
        self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if self.sorter.ways.contains(&Way::Shuffle) {
            self.sorter.random.begin(out);
        }
        // An unproductive by() drops the row.
        let complete: Vec<u32> = (0..batch.len())
            .filter(|&r| (0..batch.slots.len()).all(|s| batch.slot(s, r).is_some()))
            .map(|r| r as u32)
            .collect();
        let rows = if complete.len() == batch.len() { batch } else { batch.take(&complete) };
        if rows.is_empty() {
            return Ok(());
        }
        self.held.add(group, rows, out)?;
        if self.sorter.limit.is_none() {
            return Ok(());
        }
        let Order { held, sorter } = self;
        let view = &out.surroundings().view;
        held.thin(group, out, |rows| Ok(rows.take(&sorter.sort(rows, &**view)?)))
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(mut rows) = self.held.take(group, out) {
            let order = self.sorter.sort(&rows, &*out.surroundings().view)?;
            rows.slots.clear();
            for chunk in order.chunks(mangrove_flow::BATCH_ROWS) {
                out.emit(0, group, rows.take(chunk))?;
            }
        }
        out.finish_all(group, instances)
    }
}
