//! Rows one at a time: where side effects show in which order traversers go through the steps.

use std::collections::VecDeque;

use mangrove_flow::{GroupId, Operator, Output};
use mangrove_graph::Result;

use crate::rows::Rows;

/// Sends each row in a message of its own, and the next one when everything downstream is done with it. Rows of instances
/// that have been cancelled meanwhile are left out: what they would fill is not asked for any more.
#[derive(Default)]
pub struct OneByOne {
    /// The message that is worked off, and its first row that has not been sent.
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
    fn rest(&mut self) -> bool {
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
