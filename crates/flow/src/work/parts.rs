//! The parts of an end that any thread of an open run works off (FLOW-49).
//!
//! ```text
//!  home:    end ─► finish_step ──► [ part ][ part ][ part ]    the end waits      finish_step ─► …
//!                                     │       │       └─ taken back ─► work_part ─┐   ▲
//!  helper:                            └─ take ┴──────► work_part ─► kernel ─► …   ┴─ done
//! ```
//!
//! A part is a message on the board, like a parcel, with the token of the end. So the end waits as an end waits for
//! parcels (FLOW-21). It differs from a parcel in three ways: it waits at an operator with state; it is never cut; and
//! one that the home takes back counts until it is worked off, because the end would go before it in the inbox.

use std::sync::Arc;

use mangrove_graph::{Error, Result};

use super::Work;
use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Parcel, Token};
use crate::cancel::Disposition;
use crate::control::QueryControl;
use crate::cursor::{Detail, Step};
use crate::lanes::Place;
use crate::message::{Body, Message};
use crate::mutation::{self, Mutation};
use crate::operator::Output;
use crate::sharing::ParkedEnd;

impl<B: Batch> Work<B> {
    /// Offers the parts that a call with an end has handed out. The end waits for them.
    pub(super) fn wait_for_parts(
        &mut self,
        place: Place,
        mut end: Box<Message<B>>,
        instances: u32,
        step: Step,
        control: &Arc<QueryControl>,
    ) -> Result<()> {
        let Message { operator, port, group: ended, .. } = *end;
        let (token, lane) = (Token { operator, group: ended }, place.lane);
        let parts = std::mem::take(&mut self.router.handed_out);
        let Some(sharing) = self.sharing.as_mut().filter(|_| step == Step::More) else {
            return Err(Error::bug("only an end that goes on, of an open run, hands out parts"));
        };
        let parcels = parts.into_iter().map(|(group, part)| {
            let mut message = self.router.message(operator, port, group, Body::Part { ended, lane });
            message.cursor.detail = Detail::Held(part);
            Parcel { token, message }
        });
        sharing.board().offer(parcels.collect());
        sharing.are_away([token]);
        end.body = Body::Closing { instances };
        if mutation::is_set(Mutation::EndOvertakesParts) {
            return self.router.put_back(lane, end, control);
        }
        sharing.park(lane, end);
        Ok(())
    }

    /// Lets an end go on that has waited for the parcels or parts of its token.
    pub(super) fn end_goes_on(&mut self, end: ParkedEnd<B>, control: &Arc<QueryControl>) -> Result<()> {
        let ParkedEnd { lane, message } = end;
        match message.body {
            // FLOW-42: it comes back.
            Body::Closing { .. } => self.router.bring_before_all_of(lane, message, control),
            _ => {
                self.router.accept_shared(message);
                Ok(())
            }
        }
    }

    /// Gives a part to its operator. A part of a cancelled group is dropped: the end releases what it would have used.
    pub(super) fn take_part(
        &mut self,
        place: Place,
        mut part: Box<Message<B>>,
        control: &Arc<QueryControl>,
    ) -> Result<()> {
        let Message { operator, group, ref body, ref mut cursor, .. } = *part;
        let Body::Part { ended, .. } = *body else { return Err(Error::bug("only a part comes here")) };
        if !matches!(self.router.groups.disposition(group, operator), Disposition::Drop) {
            let work = |operator: &mut AnyOperator<B>, out: &mut Output<'_, B>| operator.work_part(group, cursor, out);
            if self.call(operator, control, work)? == Step::More {
                return self.router.put_back(place.lane, part, control);
            }
        }
        self.stats[usize::from(operator)].messages += 1;
        // A helper says it of all its parcels.
        if let Some(sharing) = &self.sharing
            && !mutation::is_set(Mutation::PartTakenBackIsDone)
        {
            sharing.board().worked_off(Token { operator, group: ended }, 1);
        }
        self.router.worked_off(part);
        Ok(())
    }
}
