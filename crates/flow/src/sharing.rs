//! The work that a thread of an open run shares: which parcels it offers, and which of its own are not worked off.

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::{FastMap, FastSet};

use crate::batch::Batch;
use crate::board::{Board, Token};
use crate::cancel::Groups;
use crate::message::Message;

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
    pub(crate) fn split_rows_min(&self) -> usize {
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

    /// Notes that parcels of these tokens are offered.
    pub fn are_away(&mut self, tokens: impl IntoIterator<Item = Token>) {
        self.away.extend(tokens);
    }

    /// Notes that the parcels of a token are worked off. Returns the end that waited for them (FLOW-21).
    pub fn is_back(&mut self, token: Token) -> Option<Box<Message<B>>> {
        self.away.remove(&token);
        self.parked.remove(&token)
    }

    pub fn sharers(&self) -> &Sharers {
        &self.sharers
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
