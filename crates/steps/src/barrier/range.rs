//! `range()`, `limit()`, `skip()`, `tail()`: positions in an instance's stream, counted by bulk.

use std::ops::Range as IdRange;

use mangrove_flow::{GroupId, OpId, Operator, Output};
use mangrove_graph::{Error, Result};
use mangrove_plan::logical::Operand;

use crate::barrier::held::{ByInstance, HeldRows};
use crate::environment::Environment;
use crate::rows::{Rows, Tags};

/// Positions `low..high`. When an instance has all it may let through, what is upstream of here and works
/// for it is cancelled.
pub struct Range {
    operands: (Operand, Option<Operand>),
    low: u64,
    high: Option<u64>,
    upstream: IdRange<OpId>,
    /// Upstream is cancelled by the first row past the end.
    looks_past: bool,
    seen: ByInstance<u64>,
}

impl Range {
    /// Positions from `low` up to, not including, `high`; `upstream` are the operators before it in its
    /// chain. With `looks_past`, they are cancelled by the first row past the end and not by the last before it: where
    /// side effects show how far they have come, the language takes one more.
    pub fn new(low: Operand, high: Option<Operand>, upstream: IdRange<OpId>, looks_past: bool) -> Self {
        Range { operands: (low, high), low: 0, high: None, upstream, looks_past, seen: ByInstance::default() }
    }
}

/// A position from 0 up; a negative number means the end, which no stream reaches.
pub fn position(operand: &Operand, what: &str, environment: &Environment) -> Result<u64> {
    let number = environment.resolve_integer(operand, &format!("the argument of {what}"))?;
    Ok(u64::try_from(number).unwrap_or(u64::MAX))
}

impl Operator<Rows> for Range {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let number = |operand| environment.resolve_integer(operand, "the argument of range()");
        let (low, high) = (number(&self.operands.0)?, self.operands.1.as_ref().map(number).transpose()?);
        self.low = u64::try_from(low).map_err(|_| Error::invalid("range() cannot begin before position 0"))?;
        // A negative end means none.
        self.high = high.and_then(|high| u64::try_from(high).ok());
        if self.high.is_some_and(|high| high < self.low) {
            return Err(Error::invalid("range() cannot end before it begins"));
        }
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.seen.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let (low, high) = (self.low, self.high.unwrap_or(u64::MAX));
        let seen = self.seen.group(group);
        let mut kept: Vec<u32> = Vec::with_capacity(batch.len());
        let mut bulks: Vec<u64> = Vec::with_capacity(batch.len());
        for row in 0..batch.len() {
            let tag = batch.tag(row);
            let position = ByInstance::entry(seen, tag, || 0);
            let (from, to) = (*position, position.saturating_add(batch.bulk(row)));
            // One that is satisfied was cancelled; `limit(0)` is so from its first row on.
            if from >= high && from > 0 && !self.looks_past {
                continue;
            }
            *position = to;
            let inside = to.min(high).saturating_sub(from.max(low));
            if inside > 0 {
                kept.push(row as u32);
                bulks.push(inside);
            }
            let is_over = if self.looks_past { from >= high } else { to >= high };
            if is_over {
                match &batch.tags {
                    // The one instance of its group is satisfied: so is the group.
                    Tags::One => out.cancel(group, self.upstream.clone()),
                    Tags::Many(_) => out.cancel_tag(group, self.upstream.clone(), tag),
                }
            }
        }
        let mut rows = batch.take(&kept);
        rows.computed.clear();
        if rows.bulk.is_some() {
            rows.bulk = Some(bulks);
        }
        out.emit(0, group, rows)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        self.seen.take(group, instances, out);
        out.finish_all(group, instances)
    }
}

/// The last `count` of each instance.
pub struct Tail {
    operand: Operand,
    count: u64,
    held: HeldRows,
}

impl Tail {
    /// The last of so many.
    pub fn new(operand: Operand) -> Self {
        Tail { operand, count: 0, held: HeldRows::default() }
    }
}

/// The rows that stand for the last `count` traversers of their instances.
fn last(rows: &Rows, count: u64) -> Rows {
    let mut left: Vec<u64> = Vec::new();
    let mut kept = Vec::new();
    for row in (0..rows.len()).rev() {
        let tag = rows.tag(row) as usize;
        if left.len() <= tag {
            left.resize(tag + 1, count);
        }
        let take = left[tag].min(rows.bulk(row));
        if take > 0 {
            left[tag] -= take;
            kept.push((row as u32, take));
        }
    }
    kept.reverse();
    let (kept, bulks): (Vec<u32>, Vec<u64>) = kept.into_iter().unzip();
    let mut ends = rows.take(&kept);
    if ends.bulk.is_some() {
        ends.bulk = Some(bulks);
    }
    ends
}

impl Operator<Rows> for Tail {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        self.count = position(&self.operand, "tail()", environment)?;
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.held.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        batch.computed.clear();
        self.held.add(group, batch, out)?;
        self.held.thin(group, out, |rows| Ok(last(rows, self.count)))
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        if let Some(rows) = self.held.take(group, out) {
            for chunk in last(&rows, self.count).chunks() {
                out.emit(0, group, chunk)?;
            }
        }
        out.finish_all(group, instances)
    }
}
