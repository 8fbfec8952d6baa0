//! `timeLimit(ms)`: lets rows through for a time, counted from the first row of each instance. The time is that of the
//! query's clock.

use std::ops::Range;

use mangrove_flow::{GroupId, OpId, Operator, Output};
use mangrove_graph::Result;
use mangrove_plan::logical::Operand;

use crate::context::execution::ExecutionContext;
use crate::rows::held::ByInstance;
use crate::rows::{Rows, Tags};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Lets rows through until the time of their instance is over, then cancels the operators upstream for that instance.
pub(crate) struct TimeLimit {
    operand: Operand,
    nanos: u64,
    upstream: Range<OpId>,
    /// The time of each instance that has had a row.
    began: ByInstance<InstanceTime>,
}

/// The time of one instance.
#[derive(Clone, Copy)]
enum InstanceTime {
    /// It runs since this reading of the clock, in nanoseconds.
    Since(u64),
    /// It is over, and the operators upstream are cancelled for the instance.
    Over,
}

impl TimeLimit {
    /// A limit in milliseconds; `upstream` are the operators before this one in its chain.
    pub fn new(operand: Operand, upstream: Range<OpId>) -> Self {
        TimeLimit { operand, nanos: 0, upstream, began: ByInstance::default() }
    }
}

impl Operator<Rows> for TimeLimit {
    fn begin(&mut self, context: &ExecutionContext) -> Result<()> {
        let millis = context.resolve_integer(&self.operand, "the argument of timeLimit()")?;
        // A negative limit is no time at all.
        self.nanos = u64::try_from(millis).unwrap_or(0).saturating_mul(NANOS_PER_MILLI);
        Ok(())
    }

    fn recycle(&mut self) -> bool {
        self.began.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let now = out.control().clock().now_nanos();
        let began = self.began.group(group);
        let mut kept: Vec<u32> = Vec::with_capacity(batch.len());
        for row in 0..batch.len() {
            let tag = batch.tag(row);
            let time = ByInstance::entry(began, tag, || InstanceTime::Since(now));
            match *time {
                InstanceTime::Over => continue,
                InstanceTime::Since(start) if now.saturating_sub(start) < self.nanos => {
                    kept.push(row as u32);
                    continue;
                }
                InstanceTime::Since(_) => *time = InstanceTime::Over,
            }
            match &batch.tags {
                // The group has one instance, so the time of the whole group is over.
                Tags::One => out.cancel(group, self.upstream.clone()),
                Tags::Many(_) => out.cancel_tag(group, self.upstream.clone(), tag),
            }
        }
        let mut rows = batch.take(&kept);
        rows.computed.clear();
        out.emit(0, group, rows)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        self.began.drop_group(group, out);
        out.finish_all(group, instances)
    }
}
