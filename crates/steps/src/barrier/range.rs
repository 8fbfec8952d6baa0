//! `range()`, `limit()`, `skip()`, `tail()`: positions in an instance's stream, counted by bulk.

use std::ops::Range as IdRange;

use mangrove_flow::{GroupId, OpId, Operator, Output};
use mangrove_graph::Result;

use crate::barrier::held::{ByInstance, HeldRows};
use crate::rows::{Rows, Tags};

/// Positions `low..high`. When an instance has all it may let through, what is upstream of here and works
/// for it is cancelled.
pub struct Range {
    low: u64,
    high: Option<u64>,
    upstream: IdRange<OpId>,
    seen: ByInstance<u64>,
}

impl Range {
    /// Positions from `low` up to, not including, `high`; `upstream` are the operators before it in its
    /// chain.
    pub fn new(low: u64, high: Option<u64>, upstream: IdRange<OpId>) -> Self {
        Range { low, high, upstream, seen: ByInstance::default() }
    }
}

impl Operator<Rows> for Range {
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
            if from >= high && from > 0 {
                continue;
            }
            *position = to;
            let inside = to.min(high).saturating_sub(from.max(low));
            if inside > 0 {
                kept.push(row as u32);
                bulks.push(inside);
            }
            if to >= high {
                match &batch.tags {
                    // The one instance of its group is satisfied: so is the group.
                    Tags::One => out.cancel(group, self.upstream.clone()),
                    Tags::Many(_) => out.cancel_tag(group, self.upstream.clone(), tag),
                }
            }
        }
        let mut rows = batch.take(&kept);
        rows.slots.clear();
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
    count: u64,
    held: HeldRows,
}

impl Tail {
    /// The last `count`.
    pub fn new(count: u64) -> Self {
        Tail { count, held: HeldRows::default() }
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
    fn receive(&mut self, _port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        batch.slots.clear();
        self.held.add(group, batch, out)?;
        self.held.thin(group, out, |rows| last(rows, self.count))
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
