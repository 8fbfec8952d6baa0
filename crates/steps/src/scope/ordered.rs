//! The ordered scope: its results leave in the order of the rows that entered.
//!
//! Row-by-row operators on one node keep the order by themselves (FLOW-11). Branches do not, and over several nodes
//! rows take different ways. Where the plan requires the order, such operators run inside this scope: each row gets its
//! index as a tag, and the results are sorted by it. Rows keep all their columns.

use mangrove_flow::{Batch as _, Cursor, GroupId, Operator, Output, QueryControl, Step, TagSet};
use mangrove_graph::Result;

use crate::rows::{Rows, Tags};
use crate::scope::queue::{LeavingRows, WaitQueue};

struct WaitingBatch {
    tags: Tags,
    results: Option<Rows>,
}

/// The operator of an ordered scope.
#[derive(Default)]
pub(crate) struct OrderedScope {
    queue: WaitQueue<WaitingBatch>,
}

const ENTER: usize = 0;
const EXIT: usize = 1;

impl Operator<Rows> for OrderedScope {
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
        let count = batch.len() as u32;
        let tags = std::mem::replace(&mut batch.tags, Tags::Many((0..count).collect()));
        let outer = tags.clone().into_outer();
        let number = self.queue.push(group, WaitingBatch { tags, results: None });
        let inside = out.open_group(group, outer);
        self.queue.enter(inside, number);
        out.emit(ENTER, inside, batch)?;
        out.finish(ENTER, inside, count)
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
        self.queue.release(EXIT, out, leaving)
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
