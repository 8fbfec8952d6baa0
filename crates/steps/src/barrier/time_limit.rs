//! `timeLimit(ms)`: what an instance gives within a time.

use std::ops::Range;

use mangrove_flow::{GroupId, OpId, Operator, Output};
use mangrove_graph::Result;
use mangrove_plan::logical::Operand;

use crate::barrier::held::ByInstance;
use crate::environment::Environment;
use crate::rows::{Rows, Tags};

const NANOS_PER_MILLI: u64 = 1_000_000;

/// Lets pass what comes within so many milliseconds of an instance's first row. Then what is upstream of here and works
/// for it is cancelled.
pub struct TimeLimit {
    operand: Operand,
    nanos: u64,
    upstream: Range<OpId>,
    /// When the first row of an instance came; `None` before.
    began: ByInstance<Option<u64>>,
}

impl TimeLimit {
    /// This limit; `upstream` are the operators before it in its chain.
    pub fn new(operand: Operand, upstream: Range<OpId>) -> Self {
        TimeLimit { operand, nanos: 0, upstream, began: ByInstance::default() }
    }
}

impl Operator<Rows> for TimeLimit {
    fn begin(&mut self, environment: &Environment) -> Result<()> {
        let millis = environment.resolve_integer(&self.operand, "the argument of timeLimit()")?;
        // No time at all for a negative one.
        self.nanos = u64::try_from(millis).unwrap_or(0).saturating_mul(NANOS_PER_MILLI);
        Ok(())
    }

    fn rest(&mut self) -> bool {
        self.began.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        let now = out.context().clock().now_nanos();
        let began = self.began.group(group);
        let mut kept: Vec<u32> = Vec::with_capacity(batch.len());
        for row in 0..batch.len() {
            let tag = batch.tag(row);
            let start = *ByInstance::entry(began, tag, || None).get_or_insert(now);
            if now.saturating_sub(start) < self.nanos {
                kept.push(row as u32);
                continue;
            }
            match &batch.tags {
                // The time of the one instance of its group is up: so is that of the group.
                Tags::One => out.cancel(group, self.upstream.clone()),
                Tags::Many(_) => out.cancel_tag(group, self.upstream.clone(), tag),
            }
        }
        let mut rows = batch.take(&kept);
        rows.computed.clear();
        out.emit(0, group, rows)
    }

    fn finish(&mut self, _port: u8, group: GroupId, instances: u32, out: &mut Output<'_, Rows>) -> Result<()> {
        self.began.take(group, instances, out);
        out.finish_all(group, instances)
    }
}
