//! The messages that wait for reads, in a run whose view may be late.

use std::sync::Arc;

use mangrove_graph::{Error, Hold, Result};

use super::Work;
use crate::asking::{Answer, Asking, Parking, Wait, held};
use crate::batch::Batch;
use crate::board::{Board, Parked, Token};
use crate::cancel::{Disposition, Groups};
use crate::control::QueryControl;
use crate::cursor::Cursor;
use crate::group::GroupId;
use crate::lanes::Place;
use crate::late::ReadCredit;
use crate::message::{Body, Message};
use crate::router::charge_rest;
use crate::topology::OpId;

impl<B: Batch> Work<B> {
    /// Prepares for late reads, if the view may be late: from now on the work asks it (FLOW-31).
    pub fn read_late(&mut self, board: &Arc<Board<B>>, credit: ReadCredit) {
        let is_late = self.context.as_ref().as_ref().is_some_and(|context| B::late(context).is_some());
        self.asking = is_late.then(|| Box::new(Asking::new(board.clone(), credit)));
    }

    /// Asks the view for what the next step of a message reads.
    pub(super) fn ask(
        &mut self,
        id: OpId,
        port: u8,
        input: &B,
        cursor: &Cursor,
        control: &Arc<QueryControl>,
    ) -> Result<Answer> {
        let (Some(asking), Some(context)) = (&self.asking, &*self.context) else { return Ok(Answer::Go(None)) };
        let answer = asking.ask(&mut self.operators[id as usize], port, input, cursor, context, control);
        answer.inspect_err(|_| self.failed = Some(id))
    }

    /// Lets a message wait for what its next step reads.
    pub(super) fn wait(&mut self, mut message: Box<Message<B>>, wait: Wait, control: &Arc<QueryControl>) -> Result<()> {
        let Some(asking) = &self.asking else { return Err(Error::bug("only a late read is waited for")) };
        charge_rest(&mut message, control)?;
        let Message { operator, group, .. } = *message;
        let is_refused = matches!(wait, Wait::Refused { .. });
        // FLOW-33. All messages that a helper works on may be worked off in any order.
        let halts = self.sharing.as_ref().is_some_and(|sharing| is_refused || sharing.keeps_order(operator));
        let parking = asking.park(message, wait, halts, control);
        match parking.inspect_err(|_| self.failed = Some(operator))? {
            Parking::Waits => {
                // What comes back meanwhile waits on the board until the home looks there.
                if let Some(sharing) = &mut self.sharing {
                    sharing.are_away([Token { operator, group }]);
                    if halts {
                        sharing.halt(operator);
                    }
                }
                Ok(())
            }
            Parking::GoesOn(parked, hold) => self.come_back(Parked { halts: false, ..*parked }, hold, control),
        }
    }

    /// Puts a message that has waited back to the front of its inbox.
    pub(super) fn come_back(
        &mut self,
        parked: Parked<B>,
        hold: Option<Hold>,
        control: &Arc<QueryControl>,
    ) -> Result<()> {
        let Parked { mut message, halts, _under_way: under_way, .. } = parked;
        let operator = message.operator;
        drop(under_way);
        message.hold = hold.map(|hold| held(hold, control)).transpose()?;
        if halts && let Some(sharing) = &mut self.sharing {
            sharing.resume(operator);
        }
        self.router.bring_before_all(message, control)
    }

    /// In a run with late reads: the next operator that may be called (FLOW-33). If no other one may, a message whose
    /// hold keeps memory of the view goes on, because the view may wait for that memory.
    pub(super) fn next_callable(&mut self) -> Option<Place> {
        let next = self.router.next_ready()?;
        match &self.sharing {
            Some(sharing) if !sharing.may_call(next.operator) && !self.router.has_returned(next) => {
                self.router.bring_held_forward()
            }
            _ => Some(next),
        }
    }

    /// Forgets the reads of messages that are cancelled, after a change of the cancellations of these groups.
    #[cold]
    pub(super) fn forget_cancelled(&mut self, changed: &[GroupId], control: &Arc<QueryControl>) {
        let (Some(sharing), Some(asking)) = (&mut self.sharing, &self.asking) else { return };
        let groups = &self.router.groups;
        let forgotten = sharing.board().forget(|message| is_cancelled(groups, changed, message, control));
        for (ticket, mut parked) in forgotten {
            asking.forget(ticket, self.context.as_ref().as_ref());
            let Message { operator, body, cursor, .. } = &mut *parked.message;
            if let Body::Data { batch, charged } = body {
                control.release(std::mem::take(charged) + cursor.bytes());
                *batch = None;
            }
            *cursor = Cursor::default();
            if parked.halts {
                sharing.resume(*operator);
            }
            // FLOW-12: between nodes, each message counts when it is taken out.
            if self.router.nodes > 1 {
                self.router.accept_shared(parked.message);
            }
        }
    }

    /// At the end of the run: tells the view that nothing waits for reads.
    pub fn forget_reads(&mut self) {
        if let Some(asking) = self.asking.take() {
            asking.forget_all(self.context.as_ref().as_ref());
        }
    }
}

/// Returns true if no row of a message that waits is left to work off. Drops the rows of cancelled instances of these
/// groups.
fn is_cancelled<B: Batch>(
    groups: &Groups,
    changed: &[GroupId],
    message: &mut Message<B>,
    control: &QueryControl,
) -> bool {
    let Message { operator, group, body, cursor, .. } = message;
    match groups.disposition(*group, *operator) {
        Disposition::Drop => true,
        Disposition::DropTags(tags) if changed.contains(group) => {
            let Body::Data { batch: Some(batch), .. } = body else { return false };
            let before = cursor.bytes();
            batch.discard(&tags, cursor);
            let after = cursor.bytes();
            control.release(before.saturating_sub(after));
            // Charged even if it fails; then the next charge fails, too.
            let _ = control.charge(after.saturating_sub(before));
            batch.rows() == 0
        }
        Disposition::DropTags(_) | Disposition::Deliver => false,
    }
}
