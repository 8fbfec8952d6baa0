//! The ordered scope: its results leave in the order of the rows that entered.
//!
//! Row-by-row operators on one node keep the order by themselves (FLOW-11). Branches do not, and over several nodes
//! rows take different ways. Where the plan requires the order, such operators run inside this scope: each row gets its
//! index as a tag, and the results are sorted by it. Rows keep all their columns. With a limit on instances, a message
//! enters some rows at a time, each time as a batch of its own.

use mangrove_flow::{Batch as _, Cursor, GroupId, Operator, Output, QueryControl, Step, TagSet};
use mangrove_graph::Result;

use crate::rows::{Rows, Tags};
use crate::scope::queue::{LeavingRows, WaitQueue};

struct WaitingBatch {
    tags: Tags,
    /// The rows, before they have entered.
    rows: Option<Rows>,
    results: Option<Rows>,
}

/// The operator of an ordered scope.
#[derive(Default)]
pub(crate) struct OrderedScope {
    queue: WaitQueue<WaitingBatch>,
}

impl OrderedScope {
    fn wait(&mut self, group: GroupId, mut rows: Rows) -> u64 {
        let own = Tags::Many((0..rows.len() as u32).collect());
        let tags = std::mem::replace(&mut rows.tags, own);
        self.queue.push(group, WaitingBatch { tags, rows: Some(rows), results: None })
    }

    /// Lets a batch enter, unless it has.
    fn enter(&mut self, number: u64, out: &mut Output<'_, Rows>) -> Result<()> {
        let Some((batch, group)) = self.queue.state(number) else { return Ok(()) };
        let Some(rows) = batch.rows.take() else { return Ok(()) };
        let (count, outer) = (rows.len() as u32, batch.tags.clone().into_outer());
        let inside = out.open_group(group, outer);
        self.queue.enter(inside, number);
        out.emit(ENTER, inside, rows)?;
        out.finish(ENTER, inside, count)
    }
}

const ENTER: usize = 0;
const EXIT: usize = 1;

impl Operator<Rows> for OrderedScope {
    fn is_by_group(&self) -> bool {
        true
    }

    fn is_by_batch(&self) -> bool {
        true
    }

    fn recycle(&mut self) -> bool {
        self.queue.is_empty()
    }

    fn receive(&mut self, port: u8, group: GroupId, mut batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if port > 0 {
            let Some(number) = self.queue.batch_of(group) else { return Ok(()) };
            self.queue.charge(number, batch.bytes() as u64, out)?;
            if let Some((state, _)) = self.queue.state(number) {
                match &mut state.results {
                    Some(results) => results.append(batch),
                    None => state.results = Some(batch),
                }
            }
            return Ok(());
        }
        let max = out.policy().instances_max.map(|max| max.get() as usize);
        let Some(max) = max else {
            let number = self.wait(group, batch);
            return self.enter(number, out);
        };
        while !batch.is_empty() {
            let rest = batch.split_off(max.min(batch.len()));
            let bytes = batch.bytes() as u64;
            let number = self.wait(group, std::mem::replace(&mut batch, rest));
            self.queue.charge(number, bytes, out)?;
            if self.queue.head() == Some(number) {
                self.enter(number, out)?;
            }
        }
        Ok(())
    }

    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        self.queue.cancelled(group, tags, out);
    }

    /// Batches leave in steps; the row of the cursor is 1 after the first one.
    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, Rows>,
    ) -> Result<Step> {
        if at.is_start() {
            at.row = 1;
            if port == 0 {
                self.queue.end(group, instances);
            } else if let Some(number) = self.queue.leave(group) {
                out.close_group(group);
                self.queue.done(number);
            }
        }
        let step = self.queue.release(EXIT, out, leaving)?;
        if step == Step::Done
            && let Some(head) = self.queue.head()
        {
            self.enter(head, out)?;
        }
        Ok(step)
    }
}

/// Returns the results of a batch in the order of their tags, with the tags of the rows that they come from.
fn leaving(batch: WaitingBatch, control: &QueryControl) -> Result<LeavingRows> {
    let Some(mut results) = batch.results else { return Ok(LeavingRows::default()) };
    let inside: Vec<u32> = (0..results.len()).map(|row| results.tag(row)).collect();
    results.tags = match &batch.tags {
        Tags::One => Tags::One,
        Tags::Many(outer) => Tags::Many(inside.iter().map(|tag| outer[*tag as usize]).collect()),
    };
    LeavingRows::by_key(results, |row| inside[row as usize], control)
}
