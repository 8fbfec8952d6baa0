//! Asking a view that may be late for what a step will read.
//!
//! Home and helpers ask in the same way. A message that must wait goes to the board, which counts it as a parcel: the
//! end of its group waits for it (FLOW-21). Its read may be completed on any thread; the message then goes home.

use std::sync::Arc;

use mangrove_graph::{Completions, Hold, Result, Ticket, Want};

use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, Parked, Token};
use crate::control::QueryControl;
use crate::cursor::Cursor;
use crate::late::{Held, ReadCredit};
use crate::message::Message;

/// What a thread of a run needs to ask its view.
pub(crate) struct Asking<B: Batch> {
    board: Arc<Board<B>>,
    /// The same board, as views know it.
    completions: Arc<dyn Completions>,
    pub credit: ReadCredit,
    /// On a helper: the token of the parcel at hand.
    pub token: Option<Token>,
}

/// The answer for a message.
pub(crate) enum Answer {
    /// The step may be taken, while this is held.
    Go(Option<Box<Held>>),
    /// The message must wait.
    Wait(Wait),
}

/// The reason for which a message must wait.
pub(crate) enum Wait {
    /// Its reads are under way.
    Submitted { ticket: Ticket, reads: u32, bytes: u64 },
    /// It may ask again in a later round than this (FLOW-32).
    Refused { round: u64 },
}

/// What has become of a message that was to wait.
pub(crate) enum Parking<B> {
    /// It waits.
    Waits,
    /// It goes on, with what it asked for or to ask again.
    GoesOn(Box<Parked<B>>, Option<Hold>),
}

impl<B: Batch> Asking<B> {
    pub fn new(board: Arc<Board<B>>, credit: ReadCredit) -> Self {
        let completions: Arc<dyn Completions> = board.clone();
        Asking { board, completions, credit, token: None }
    }

    /// Asks for what the next step of a message reads.
    pub fn ask(
        &self,
        operator: &mut AnyOperator<B>,
        port: u8,
        input: &B,
        at: &Cursor,
        context: &B::Context,
        control: &Arc<QueryControl>,
    ) -> Result<Answer> {
        let Some(view) = B::late(context) else { return Ok(Answer::Go(None)) };
        let need = operator.needs(port, input, at, context, control)?;
        if need.is_nothing() {
            return Ok(Answer::Go(None));
        }
        let (ticket, round) = self.board.begin_read(self.credit);
        let Some(ticket) = ticket else { return Ok(Answer::Wait(Wait::Refused { round })) };
        let answer = view.want(&need, ticket, &self.completions);
        if !matches!(answer, Ok(Want::Submitted { .. })) {
            self.board.withdraw_read(ticket);
        }
        Ok(match answer? {
            Want::Ready(hold) => Answer::Go(Some(held(hold, control)?)),
            Want::Submitted { reads, bytes } => Answer::Wait(Wait::Submitted { ticket, reads, bytes }),
            Want::Full => Answer::Wait(Wait::Refused { round }),
        })
    }

    /// Lets a message, which is charged, wait. `halts` is true if the home calls no operator before it until it is back
    /// (FLOW-33).
    pub fn park(
        &self,
        message: Box<Message<B>>,
        wait: Wait,
        halts: bool,
        control: &Arc<QueryControl>,
    ) -> Result<Parking<B>> {
        let own = Token { operator: message.operator, group: message.group };
        let token = self.token.unwrap_or(own);
        let entry = |under_way| Box::new(Parked { token, message, halts, _under_way: under_way });
        match wait {
            Wait::Submitted { ticket, reads, bytes } => {
                let entry = entry(Some(control.charge_while(bytes)?));
                match self.board.park(ticket, entry, reads, bytes) {
                    None => Ok(Parking::Waits),
                    Some((entry, hold)) => Ok(Parking::GoesOn(entry, Some(hold?))),
                }
            }
            Wait::Refused { round } => match self.board.refuse(entry(None), round) {
                None => Ok(Parking::Waits),
                Some(entry) => Ok(Parking::GoesOn(entry, None)),
            },
        }
    }

    /// Tells the view that nothing waits for a ticket.
    pub fn forget(&self, ticket: Ticket, context: Option<&B::Context>) {
        if let Some(view) = context.and_then(B::late) {
            view.forget(ticket);
        }
    }

    /// Forgets all reads of the run.
    pub fn forget_all(&self, context: Option<&B::Context>) {
        self.board.forget_all().into_iter().for_each(|ticket| self.forget(ticket, context));
    }
}

/// Charges the query for a hold.
pub(crate) fn held(hold: Hold, control: &Arc<QueryControl>) -> Result<Box<Held>> {
    let charge = control.charge_while(hold.bytes())?;
    Ok(Box::new(Held { _hold: hold, _charge: charge }))
}
