//! The work that a thread of an open run shares: which parcels it offers, and which of its own are not worked off.

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{Error, FastMap, FastSet, Result};

use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, Homebound, Parcel, Token};
use crate::control::QueryControl;
use crate::group::Groups;
use crate::mutation::{self, Mutation};
use crate::router::{Body, Message, charge};
use crate::runtime::Work;
use crate::topology::OpId;

/// The operators of a run at which messages may be shared.
#[derive(Clone, Debug)]
pub struct Sharers {
    /// For each operator, true if it is a kernel whose messages may be worked off by any thread, in any order.
    pub stealable: Arc<[bool]>,
    /// For tests: a thread shares its only message, too, and cuts small ones.
    pub shares_all: bool,
}

impl Sharers {
    /// The fewest rows after the row at hand of a message that is cut in two.
    fn split_rows_min(&self) -> usize {
        if self.shares_all { 1 } else { SPLIT_ROWS_MIN }
    }
}

/// Handing a message over costs less than a microsecond, and a hundred rows take several.
const SPLIT_ROWS_MIN: usize = 128;

/// What the home of an open run knows of the work that it has shared.
pub(crate) struct Sharing<B: Batch> {
    board: Arc<Board<B>>,
    sharers: Sharers,
    /// The tokens with parcels that are not worked off.
    away: FastSet<Token>,
    /// The ends that wait for them (FLOW-21).
    parked: FastMap<Token, Box<Message<B>>>,
}

impl<B: Batch> Sharing<B> {
    pub fn new(board: Arc<Board<B>>, sharers: Sharers) -> Self {
        Sharing { board, sharers, away: FastSet::default(), parked: FastMap::default() }
    }

    pub fn board(&self) -> &Arc<Board<B>> {
        &self.board
    }

    /// Returns true if parcels are not worked off.
    pub fn is_away(&self) -> bool {
        !self.away.is_empty()
    }

    /// Returns true if parcels of the token are not worked off.
    pub fn is_token_away(&self, token: Token) -> bool {
        self.away.contains(&token)
    }

    /// Keeps the end of a group until the parcels of its token are worked off (FLOW-21).
    pub fn park(&mut self, end: Box<Message<B>>) {
        self.parked.insert(Token { operator: end.operator, group: end.group }, end);
    }

    /// Publishes the cancellations that a call has made.
    pub fn publish(&self, groups: &mut Groups) {
        let changes = groups.take_changes();
        if !changes.is_empty() {
            self.board.publish(changes);
        }
    }

    /// Blocks this thread, which is the home, until there is something to do, but not for longer than this.
    pub fn wait(&self, at_most: Duration) {
        let thread = std::thread::current();
        if self.board.sleep_at_home(Box::new(move || thread.unpark())) {
            std::thread::park_timeout(at_most);
            self.board.wake_at_home();
        }
    }
}

/// Helpers let go of the run before it ends, whatever its outcome.
impl<B: Batch> Drop for Sharing<B> {
    fn drop(&mut self) {
        self.board.end();
    }
}

impl<B: Batch> Work<B> {
    /// On the home: receives what helpers have sent, and shares work if another thread has none.
    pub fn meet_helpers(&mut self, control: &Arc<QueryControl>) -> Result<()> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let board = sharing.board.clone();
        if board.has_arrivals() {
            for arrival in board.receive() {
                match arrival {
                    Homebound::Message(message) => self.router.accept_shared(message),
                    Homebound::Failed(error, operator) => {
                        self.fail_at(operator);
                        return Err(error);
                    }
                    Homebound::Done(token) => {
                        let end = self.sharing.as_mut().and_then(|sharing| {
                            sharing.away.remove(&token);
                            sharing.parked.remove(&token)
                        });
                        if let Some(end) = end {
                            self.router.accept_shared(end);
                        }
                    }
                }
            }
        }
        if self.router.next_ready().is_none() {
            // The home works off itself what no helper has taken.
            if let Some(Parcel { token, message, .. }) = board.take_back() {
                self.router.accept_shared(message);
                board.worked_off(token);
            }
        } else if board.is_somebody_hungry()
            && let Some(sharing) = &self.sharing
        {
            let sharers = sharing.sharers.clone();
            self.share(&board, &sharers, None, control)?;
        }
        Ok(())
    }

    /// Offers about half of the messages that wait at the lowest of these operators: work that is nearest to the source
    /// has the most to follow. On a helper, they belong to the token of its parcel.
    pub fn share(
        &mut self,
        board: &Board<B>,
        sharers: &Sharers,
        token: Option<Token>,
        control: &Arc<QueryControl>,
    ) -> Result<()> {
        let all: Arc<[bool]>;
        let stealable = if mutation::is_set(Mutation::OrderIsIgnored) {
            all = self
                .router
                .local
                .clone()
                .unwrap_or_else(|| self.operators.iter().map(AnyOperator::is_kernel).collect());
            &all
        } else {
            &sharers.stealable
        };
        let Some((operator, count)) = self.router.lowest_waiting(stealable) else { return Ok(()) };
        let mut messages = if count > 1 {
            self.router.take_oldest(operator, count / 2)
        } else {
            self.split_oldest(operator, sharers.split_rows_min(), control)?.into_iter().collect()
        };
        if messages.is_empty() && (sharers.shares_all || self.router.has_work_beside(operator, count)) {
            messages = self.router.take_oldest(operator, count);
        }
        if messages.is_empty() {
            return Ok(());
        }
        let parcels = self.parcels_of(messages, token);
        if let Some(sharing) = &mut self.sharing {
            sharing.away.extend(parcels.iter().map(|parcel| parcel.token));
        }
        board.offer(parcels);
        Ok(())
    }

    /// Makes parcels of messages. On a helper, they belong to the token of its own parcel.
    fn parcels_of(&self, messages: Vec<Box<Message<B>>>, token: Option<Token>) -> Vec<Parcel<B>> {
        let parcel = |message: Box<Message<B>>| {
            let own = Token { operator: message.operator, group: message.group };
            let ancestry = self.router.groups.ancestry(message.group);
            Parcel { token: token.unwrap_or(own), message, ancestry }
        };
        messages.into_iter().map(parcel).collect()
    }

    /// On a helper: makes parcels of all its messages, in ascending order of their operators.
    pub fn parcels_of_all(&mut self, token: Token, control: &Arc<QueryControl>) -> Result<Vec<Parcel<B>>> {
        let messages = self.router.take_all(control)?;
        Ok(self.parcels_of(messages, Some(token)))
    }

    /// Cuts the oldest batch that waits at an operator in two. Returns the second part, charged.
    fn split_oldest(
        &mut self,
        operator: OpId,
        rows_min: usize,
        control: &Arc<QueryControl>,
    ) -> Result<Option<Box<Message<B>>>> {
        let Some(context) = &*self.context else { return Ok(None) };
        let inbox = &mut self.router.inboxes[operator as usize];
        let Some(message) = inbox.entering.iter_mut().find(|message| message.is_data()) else { return Ok(None) };
        let Message { port, group, body, cursor, .. } = &mut **message;
        let (port, group) = (*port, *group);
        let Body::Data { batch: Some(input), charged } = body else { return Ok(None) };
        let held = *charged + cursor.bytes();
        let Some(part) = self.operators[operator as usize].split(input, cursor, rows_min, context)? else {
            return Ok(None);
        };
        // FLOW-13: each part is charged for itself.
        *charged = input.bytes() as u64;
        let left = *charged + cursor.bytes();
        control.release(held);
        control.charge(left)?;
        let mut second = self.router.message(operator, port, group, Body::data(part.batch));
        second.cursor = part.cursor;
        charge(&mut second, control)?;
        control.charge(second.cursor.bytes())?;
        Ok(Some(second))
    }

    /// On a helper: shortens what it has gathered for the home ([`crate::Operator::combine`]), and charges it (FLOW-22).
    pub fn combine_homebound(&mut self, control: &Arc<QueryControl>) -> Result<()> {
        let context = self.context.clone();
        let Some(context) = &*context else { return Err(Error::bug("a helper has the context during its turn")) };
        let Work { operators, router, .. } = self;
        for message in &mut router.homebound {
            let Message { operator, port, body, .. } = &mut **message;
            if let Body::Data { batch, .. } = body
                && let Some(whole) = batch.take()
            {
                *batch = Some(operators[*operator as usize].combine(*port, whole, context, control)?);
            }
            charge(message, control)?;
        }
        Ok(())
    }
}
