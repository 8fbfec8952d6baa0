//! Sends rows one at a time, where side effects show in which order traversers go through the steps.

use mangrove_flow::{Cursor, GroupId, Kernel, Output, Step};
use mangrove_graph::Result;

use crate::rows::Rows;

/// Sends each row in a message of its own, and the next one when the operators downstream are done with it (FLOW-14).
/// The runtime has left out the rows of cancelled instances, which must fill no side effect (STEPS-5).
pub(crate) struct OneByOne;

impl Kernel<Rows> for OneByOne {
    fn step(&mut self, rows: &mut Rows, at: &mut Cursor, group: GroupId, out: &mut Output<'_, Rows>) -> Result<Step> {
        if rows.len() == 1 {
            out.emit(0, group, std::mem::take(rows))?;
            return Ok(Step::Done);
        }
        out.emit(0, group, rows.take(&[at.row]))?;
        at.go_to(at.row as usize + 1);
        Ok(if (at.row as usize) < rows.len() { Step::More } else { Step::Done })
    }
}
