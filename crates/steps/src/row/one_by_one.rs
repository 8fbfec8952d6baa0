//! Sends rows one at a time, where side effects show in which order traversers go through the steps.

use std::collections::VecDeque;

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::Result;

use crate::rows::Rows;

/// Sends each row in a message of its own, and the next one when the operators downstream are done with it (FLOW-14).
/// Rows of cancelled instances are left out, because they must fill no side effect (STEPS-5).
#[derive(Default)]
pub(crate) struct OneByOne {
    /// The current message, and its first row that is not sent yet.
    pending: VecDeque<(GroupId, Rows, u32)>,
}

impl OneByOne {
    fn advance(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        while let Some((group, rows, next)) = self.pending.front_mut() {
            let (group, row) = (*group, *next);
            if row as usize >= rows.len() || out.is_cancelled(group) {
                self.pending.pop_front();
                continue;
            }
            *next += 1;
            if out.cancelled_tags(group).is_some_and(|tags| tags.contains(rows.tag(row as usize))) {
                continue;
            }
            let one = rows.take(&[row]);
            out.again();
            return out.emit(0, group, one);
        }
        Ok(())
    }
}

impl Operator<Rows> for OneByOne {
    fn recycle(&mut self) -> bool {
        self.pending.is_empty()
    }

    fn receive(&mut self, _port: u8, group: GroupId, batch: Rows, out: &mut Output<'_, Rows>) -> Result<()> {
        if batch.len() == 1 && self.pending.is_empty() {
            return out.emit(0, group, batch);
        }
        self.pending.push_back((group, batch, 0));
        self.advance(out)
    }

    fn resume(&mut self, out: &mut Output<'_, Rows>) -> Result<()> {
        self.advance(out)
    }
}
