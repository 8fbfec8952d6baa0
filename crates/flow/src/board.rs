//! The board of a run: where its home offers work to helpers, and where helpers put what they send home.
//!
//! A run has one *home*, the thread that began it. The home holds all state: operators with state, scope groups, the
//! counts of streams. A *helper* has replicas of the kernels alone. It takes a *parcel*: a message that waits at a
//! kernel. It works the message off, and all messages at kernels that follow from it. A message to an operator with
//! state goes home.
//!
//! ```text
//!             home                          board                        helper
//!  message at a kernel ── offer ──► [ parcel, parcel ] ── take ──► kernel ─► kernel ─► …
//!  inboxes of operators ◄─ receive ─ [ message, message, done ] ◄── send ──────┘
//! ```
//!
//! - **FLOW-20.** Work is asked for, not taken: the home and the helpers share only while somebody is hungry, and only
//!   between two steps. Until a run has a board, none of this costs it anything.
//! - **FLOW-21.** A parcel belongs to a *token*: the kernel and the group that its message came from at home. Parts of a
//!   parcel that are shared again belong to the same token. The end of the group waits at that kernel until every
//!   parcel of the token is worked off, and everything that they sent home has been received. So FLOW-3 holds.
//! - **FLOW-22.** A message is in one place: an inbox, the hands of a thread, or the board. What waits on the board is
//!   charged as in an inbox (FLOW-13).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::Duration;

use mangrove_graph::{Error, FastMap};
use parking_lot::{Condvar, Mutex};

use crate::group::GroupId;
use crate::router::Message;
use crate::topology::OpId;

/// The kernel and the group that a parcel came from (FLOW-21).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Token {
    pub operator: OpId,
    pub group: GroupId,
}

/// A message that any thread of the run may work off.
pub(crate) struct Parcel<B> {
    pub token: Token,
    pub message: Box<Message<B>>,
}

/// What comes home from helpers.
pub(crate) enum Homebound<B> {
    /// A message to an operator with state.
    Message(Box<Message<B>>),
    /// Every parcel of the token is worked off.
    Done(Token),
    /// A helper has failed.
    Failed(Error),
}

/// See the header of this file.
pub(crate) struct Board<B> {
    /// Threads of the run that have nothing to do. A hint: whoever offers looks again under the lock.
    hungry: AtomicU32,
    /// Entries of `homebound`, so that the home looks without the lock.
    arrivals: AtomicU32,
    is_over: AtomicBool,
    state: Mutex<BoardState<B>>,
    /// Signaled when a parcel is offered, when the home has received, and when the run is over.
    for_helpers: Condvar,
    /// Signaled when something comes home, and when a helper leaves.
    for_home: Condvar,
}

struct BoardState<B> {
    offered: VecDeque<Parcel<B>>,
    /// The parcels of each token that are not worked off.
    open: FastMap<Token, u32>,
    homebound: VecDeque<Homebound<B>>,
    helpers: u32,
}

/// Messages that may wait for the home before helpers wait for it.
const HOMEBOUND_MAX: usize = 64;

impl<B> Board<B> {
    pub fn new() -> Self {
        let state =
            BoardState { offered: VecDeque::new(), open: FastMap::default(), homebound: VecDeque::new(), helpers: 0 };
        Board {
            hungry: AtomicU32::new(0),
            arrivals: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            state: Mutex::new(state),
            for_helpers: Condvar::new(),
            for_home: Condvar::new(),
        }
    }

    /// Returns true if a thread of the run has nothing to do (FLOW-20).
    pub fn is_somebody_hungry(&self) -> bool {
        self.hungry.load(Ordering::Relaxed) > 0
    }

    /// Returns true if something waits for the home.
    pub fn has_arrivals(&self) -> bool {
        self.arrivals.load(Ordering::Relaxed) > 0
    }

    /// Offers parcels. Their number is added to that of their token first (FLOW-21).
    pub fn offer(&self, parcels: impl IntoIterator<Item = Parcel<B>>) {
        let mut state = self.state.lock();
        for parcel in parcels {
            *state.open.entry(parcel.token).or_default() += 1;
            state.offered.push_back(parcel);
            self.for_helpers.notify_one();
        }
        // The home may be the one that is hungry.
        self.for_home.notify_one();
    }

    /// Takes the newest parcel back. The home works it off itself.
    pub fn take_back(&self) -> Option<Parcel<B>> {
        self.state.lock().offered.pop_back()
    }

    /// Sends messages home. Returns true if so many wait there that the helper should wait, too.
    pub fn send_home(&self, messages: &mut Vec<Box<Message<B>>>) -> bool {
        let mut state = self.state.lock();
        state.homebound.extend(messages.drain(..).map(Homebound::Message));
        self.announce(&state);
        state.homebound.len() > HOMEBOUND_MAX
    }

    /// Says that a parcel is worked off. Everything that it sends home was sent before.
    pub fn worked_off(&self, token: Token) {
        let mut state = self.state.lock();
        if let Some(count) = state.open.get_mut(&token) {
            *count -= 1;
            if *count == 0 {
                state.open.remove(&token);
                state.homebound.push_back(Homebound::Done(token));
                self.announce(&state);
            }
        }
    }

    /// Says that a helper has failed.
    pub fn failed(&self, error: Error) {
        let mut state = self.state.lock();
        state.homebound.push_back(Homebound::Failed(error));
        self.announce(&state);
    }

    fn announce(&self, state: &BoardState<B>) {
        self.arrivals.store(state.homebound.len() as u32, Ordering::Relaxed);
        self.for_home.notify_one();
    }

    /// Takes everything that has come home.
    pub fn receive(&self) -> VecDeque<Homebound<B>> {
        let mut state = self.state.lock();
        let mut all = std::mem::take(&mut state.homebound);
        // The home may have offered another parcel of a token meanwhile. Its end will be announced again.
        all.retain(|one| !matches!(one, Homebound::Done(token) if state.open.contains_key(token)));
        self.arrivals.store(0, Ordering::Relaxed);
        self.for_helpers.notify_all();
        all
    }

    /// Waits until something has come home or a parcel is offered, at most this long. For the home, if it has nothing to
    /// do.
    pub fn wait_at_home(&self, at_most: Duration) {
        let mut state = self.state.lock();
        if state.homebound.is_empty() && state.offered.is_empty() {
            self.hungry.fetch_add(1, Ordering::Relaxed);
            self.for_home.wait_for(&mut state, at_most);
            self.hungry.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Waits until a parcel is offered or the run is over, at most this long. For a helper that has nothing to do.
    pub fn wait_for_parcel(&self, at_most: Duration) -> Option<Parcel<B>> {
        let mut state = self.state.lock();
        if state.offered.is_empty() && !self.is_over() {
            self.hungry.fetch_add(1, Ordering::Relaxed);
            self.for_helpers.wait_for(&mut state, at_most);
            self.hungry.fetch_sub(1, Ordering::Relaxed);
        }
        state.offered.pop_front()
    }

    /// Waits until the home has received what waits for it, at most this long.
    pub fn wait_for_home(&self, at_most: Duration) {
        let mut state = self.state.lock();
        if state.homebound.len() > HOMEBOUND_MAX && !self.is_over() {
            self.for_helpers.wait_for(&mut state, at_most);
        }
    }

    /// Returns true if the run is over, whatever its outcome. Helpers leave.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Adds a helper, unless the run is over.
    pub fn join(&self) -> bool {
        let mut state = self.state.lock();
        if self.is_over() {
            return false;
        }
        state.helpers += 1;
        true
    }

    /// A helper leaves. It has let go of everything that belongs to the run.
    pub fn leave(&self) {
        self.state.lock().helpers -= 1;
        self.for_home.notify_one();
    }

    /// Ends the run for its helpers, and waits until they have left. What is on the board is dropped.
    pub fn end(&self) {
        let mut state = self.state.lock();
        self.is_over.store(true, Ordering::Release);
        self.for_helpers.notify_all();
        while state.helpers > 0 {
            self.for_home.wait(&mut state);
        }
        state.offered.clear();
        state.homebound.clear();
    }
}
