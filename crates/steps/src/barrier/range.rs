//! `range()`, `limit()`, `skip()`, `tail()`: rows by their position in the stream of an instance, counted by bulk.
//!
//! A satisfied instance cancels the work that the operators upstream still do for it (FLOW-8).

use std::ops::Range as IdRange;

use mangrove_flow::{Cursor, GroupId, OpId, Operator, Output, Step, TagSet};
use mangrove_graph::{Error, Result};
use mangrove_plan::logical::Operand;

use crate::context::execution::ExecutionContext;
use crate::rows::held::{ByInstance, HeldRows};
use crate::rows::{Rows, Tags};

/// Lets positions `low..high` of each instance through, then cancels the operators upstream for that instance.
pub(crate) struct Range {
    operands: (Operand, Option<Operand>),
    low: u64,
    high: Option<u64>,
    upstream: IdRange<OpId>,
    /// True if the first row past the end cancels, instead of the last row let through.
    looks_past: bool,
    seen: ByInstance<u64>,
}

impl Range {
    /// Lets positions `low..high` through; `upstream` are the operators before this one in its chain. With
    /// `looks_past`, the first row past the end cancels them: TinkerPop takes one more row, and side effects may show
    /// that.
    pub fn new(low: Operand, high: Option<Operand>, upstream: IdRange<OpId>, looks_past: bool) -> Self {
        Range { operands: (low, high), low: 0, high: None, upstream, looks_past, seen: ByInstance::default() }
    }
}

/// Returns a position from 0 up. A negative number means the end, which no stream reaches.
pub(crate) fn position(operand: &Operand, what: &str, context: &ExecutionContext) -> Result<u64> {
    let number = context.resolve_integer(operand, &format!("the argument of {what}"))?;
    Ok(u64::try_from(number).unwrap_or(u64::MAX))
}

impl Operator<Rows> for Range {
    fn is_by_group(&self) -> bool {
        true
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let number = |operand| context.resolve_integer(operand, "the argument of range()");
        let (low, high) = (number(&self.operands.0)?, self.operands.1.as_ref().map(number).transpose()?);
        self.low = u64::try_from(low).map_err(|_| Error::invalid("range() cannot begin before position 0"))?;
        // A negative end means no end.
        self.high = high.and_then(|high| u64::try_from(high).ok());
        if self.high.is_some_and(|high| high < self.low) {
            return Err(Error::invalid("range() cannot end before it begins"));
        }
        Ok(())
    }

    fn recycle(&mut self) -> bool {
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
            // A satisfied instance was cancelled already; with `limit(0)`, its first row satisfies it.
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
                    // The group has one instance, so the whole group is satisfied.
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
        self.seen.drop_group(group, out);
        out.finish_all(group, instances)
    }
}

/// Keeps the last `count` traversers of each instance.
pub(crate) struct Tail {
    operand: Operand,
    count: u64,
    held: HeldRows,
}

impl Tail {
    pub fn new(operand: Operand) -> Self {
        Tail { operand, count: 0, held: HeldRows::default() }
    }

    /// Drops the rows that are not among the last ones.
    fn thin(&mut self, group: GroupId, out: &Output<'_, Rows>) -> Result<()> {
        let mut last = Last::new(self.count);
        self.held.thin(group, out, |rows| last.of(rows))
    }
}

/// The number of traversers of each instance that are still to be kept, while batches are gone through from the last
/// one to the first.
struct Last {
    count: u64,
    left: Vec<u64>,
}

impl Last {
    fn new(count: u64) -> Self {
        Last { count, left: Vec::new() }
    }

    /// Returns the rows of the previous batch that stand for traversers to be kept.
    fn of(&mut self, rows: Rows) -> Rows {
        let mut kept = Vec::new();
        for row in (0..rows.len()).rev() {
            let tag = rows.tag(row) as usize;
            if self.left.len() <= tag {
                self.left.resize(tag + 1, self.count);
            }
            let take = self.left[tag].min(rows.bulk(row));
            if take > 0 {
                self.left[tag] -= take;
                kept.push((row as u32, take));
            }
        }
        kept.reverse();
        let (kept, bulks): (Vec<u32>, Vec<u64>) = kept.into_iter().unzip();
        let mut ends = rows.keep(&kept);
        if ends.bulk.is_some() {
            ends.bulk = Some(bulks);
        }
        ends
    }
}

impl Operator<Rows> for Tail {
    fn is_by_group(&self) -> bool {
        true
    }

    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        self.count = position(&self.operand, "tail()", context)?;
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.held.is_empty()
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.held.cancelled(group, tags, out);
    }

    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        batch.computed.clear();
        self.held.add(group, batch, out)?;
        if self.held.is_full(group) { self.thin(group, out) } else { Ok(()) }
    }

    fn finish_step(
        &mut self,
        _port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if at.is_start() {
            self.thin(group, out)?;
            at.row = 1;
        }
        if self.held.send_next(group, 0, out)? == Step::More {
            return Ok(Step::More);
        }
        out.finish_all(group, instances)?;
        Ok(Step::Done)
    }
}
