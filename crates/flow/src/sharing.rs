//! The work that a thread of an open run shares: which parcels it offers, and which of its own are not worked off.

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{FastMap, FastSet};

use crate::batch::Batch;
use crate::board::{Board, Token};
use crate::cancel::Groups;
use crate::clock::Clock;
use crate::group::GroupId;
use crate::lane_order::LaneNumber;
use crate::message::Message;
use crate::mutation::{self, Mutation};
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
    /// The fewest rows after the row at hand of a message that is cut in two, if it has not had a step yet.
    pub(crate) fn split_rows_min(&self) -> usize {
        if self.shares_all { 1 } else { SPLIT_ROWS_MIN }
    }
}

/// Handing a message over costs less than a microsecond, and a hundred rows take several.
const SPLIT_ROWS_MIN: usize = 128;

/// The end of a group, or what is left of it, while parcels of its token are not worked off.
pub(crate) struct ParkedEnd<B> {
    /// The lane that it was taken from.
    pub lane: LaneNumber,
    pub message: Box<Message<B>>,
}

/// What the home of an open run knows of the work that it has shared.
pub(crate) struct Sharing<B: Batch> {
    board: Arc<Board<B>>,
    sharers: Sharers,
    /// In a run with late reads: for each operator, true if messages at it may be worked off in any order. Others may,
    /// too, if they are shared.
    any_order: Option<Arc<[bool]>>,
    /// The tokens with parcels that are not worked off.
    away: FastSet<Token>,
    /// The ends that wait for them (FLOW-21): one for each port of the operator.
    ends: FastMap<Token, Vec<ParkedEnd<B>>>,
    /// The operators that, with all before them, wait until a message is back (FLOW-33): one entry for each message.
    halted: Vec<OpId>,
    /// True if work of the query itself was cancelled while parcels were not worked off.
    was_cut: bool,
}

impl<B: Batch> Sharing<B> {
    pub fn new(board: Arc<Board<B>>, sharers: Sharers) -> Self {
        Sharing {
            board,
            sharers,
            any_order: None,
            away: FastSet::default(),
            ends: FastMap::default(),
            halted: Vec::new(),
            was_cut: false,
        }
    }

    pub fn board(&self) -> &Arc<Board<B>> {
        &self.board
    }

    /// Returns true if parcels are not worked off.
    pub fn is_away(&self) -> bool {
        !self.away.is_empty()
    }

    /// Returns true if the query had enough results while parcels were not worked off.
    pub fn was_cut(&self) -> bool {
        self.was_cut
    }

    /// Returns true if parcels of the token are not worked off.
    pub fn is_token_away(&self, token: Token) -> bool {
        self.away.contains(&token)
    }

    /// Notes that parcels of these tokens are offered.
    pub fn are_away(&mut self, tokens: impl IntoIterator<Item = Token>) {
        self.away.extend(tokens);
    }

    /// Notes that the parcels of a token are worked off. Returns the ends that waited for them (FLOW-21).
    pub fn is_back(&mut self, token: Token) -> Vec<ParkedEnd<B>> {
        self.away.remove(&token);
        self.ends.remove(&token).unwrap_or_default()
    }

    pub fn sharers(&self) -> &Sharers {
        &self.sharers
    }

    /// Keeps the end of a group, which was taken from this lane, until the parcels of its token are worked off (FLOW-21).
    pub fn park(&mut self, lane: LaneNumber, message: Box<Message<B>>) {
        let token = Token { operator: message.operator, group: message.group };
        self.ends.entry(token).or_default().push(ParkedEnd { lane, message });
    }

    pub fn set_sharers(&mut self, sharers: Sharers) {
        self.sharers = sharers;
    }

    pub fn allow_any_order(&mut self, operators: Arc<[bool]>) {
        self.any_order = Some(operators);
    }

    /// Returns true if messages at an operator must keep their order.
    pub fn keeps_order(&self, operator: OpId) -> bool {
        let at = usize::from(operator);
        !self.sharers.stealable[at] && !self.any_order.as_ref().is_some_and(|operators| operators[at])
    }

    /// Notes that a message waits, and with it this operator and all before it (FLOW-33).
    pub fn halt(&mut self, operator: OpId) {
        if !mutation::is_set(Mutation::OrderOfWaitingIsIgnored) {
            self.halted.push(operator);
        }
    }

    /// Notes that a message for which [`Sharing::halt`] was called is back.
    pub fn resume(&mut self, operator: OpId) {
        if let Some(at) = self.halted.iter().position(|halted| *halted == operator) {
            self.halted.swap_remove(at);
        }
    }

    /// Returns true if no message waits at this operator or after it (FLOW-33).
    pub fn may_call(&self, operator: OpId) -> bool {
        self.halted.iter().all(|halted| *halted < operator)
    }

    /// Publishes the cancellations that a call has made. Returns the groups that they concern.
    pub fn publish(&mut self, groups: &mut Groups) -> Vec<GroupId> {
        let changes = groups.take_changes();
        let mut of_query = changes.iter().filter(|(group, _)| *group == GroupId::ROOT).flat_map(|(_, list)| list);
        if of_query.any(|cancellation| cancellation.tags.is_none()) && self.is_away() {
            self.was_cut = true;
        }
        let changed: Vec<GroupId> = changes.iter().map(|(group, _)| *group).collect();
        if !changes.is_empty() {
            self.board.publish(changes);
        }
        changed
    }

    /// Blocks this thread, which is the home, until there is something to do, but not for much longer than this.
    pub fn wait(&self, at_most: Duration, clock: &dyn Clock) {
        let board = &self.board;
        if board.look(clock, || board.has_arrivals() || board.has_offers()) {
            return;
        }
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
