//! The board of a run: the place where its home offers work to helpers, and where helpers put what they send home.
//!
//! A run has one *home*, the thread that runs its [`NodeRuntime`](crate::NodeRuntime). The home holds all state:
//! operators with state, scope groups, the counts of streams. A [`Helper`](crate::Helper) has replicas of the operators
//! and uses only their kernels. It takes a *parcel*: a message that waits at a kernel. It works the message off, and
//! all messages at kernels that follow from it. A message to an operator with state goes home.
//!
//! ```text
//!             home                          board                        helper
//!  message at a kernel ── offer ──► [ parcel, parcel ] ── take ──► kernel ─► kernel ─► …
//!  inboxes of operators ◄─ receive ─ [ message, message, done ] ◄── send ──────┘
//! ```
//!
//! A run whose view may be late has a board from its beginning, with or without helpers: messages wait there for reads
//! (`late`). Home and helpers put them there, and the thread that completes a read sends its message home.
//!
//! - **FLOW-20.** Work is asked for, not taken: a thread shares work only between two steps, and only while another
//!   thread of the run has none, or a helper is about to join. A run without a board pays nothing for this. Only parts of
//!   an end (FLOW-49) are offered at once: their operator chooses what is worth it.
//! - **FLOW-21.** A parcel belongs to a *token*: the operator and the group that its message came from at home. Parts of
//!   a parcel that are shared again belong to the same token. A message that waits for a read counts as a parcel, and
//!   is worked off when it is sent home. A part of an end counts as a parcel of the operator and the group of that end.
//!   The end of the group waits at that operator until every parcel of the token is worked off, and everything that
//!   they sent home has been received. So FLOW-3 holds.
//! - **FLOW-22.** A message is in one place: an inbox, the hands of a thread, or the board. What waits on the board is
//!   charged as in an inbox (FLOW-13), and so are reads under way.
//! - **FLOW-23.** A thread sleeps only after the board has registered how to wake it, and looks for work under the same
//!   lock. Work that is put on the board wakes it. So no thread sleeps beside work.

use std::collections::VecDeque;

use mangrove_graph::{Completions, Error, FastMap, Hold, Result, Ticket};

use crate::batch::Batch;
use crate::cancel::Cancellation;
use crate::clock::Clock;
use crate::control::Charge;
use crate::group::GroupId;
use crate::late::{Completed, Lot, ReadCredit};
use crate::message::Message;
use crate::mutation::{self, Mutation};
use crate::stats::{HelperStats, OperatorStats, ScopeCounts};
use crate::sync::{AtomicBool, AtomicU32, AtomicU64, Mutex, Ordering, Thread, current, park, spin_loop};
use crate::topology::OpId;

/// Wakes a thread or a task. It is called once, and must not block.
pub type Wake = Box<dyn FnOnce() + Send>;

/// The operator and the group that a parcel came from (FLOW-21).
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

/// A message that waits for a read, or until the run may ask for it.
pub(crate) struct Parked<B> {
    pub token: Token,
    pub message: Box<Message<B>>,
    /// True if the home calls no operator before it until it is back (FLOW-33).
    pub halts: bool,
    /// The bytes of its reads.
    pub _under_way: Option<Charge>,
}

/// What comes home from helpers, and from views.
pub(crate) enum Homebound<B> {
    /// A message to an operator with state.
    Message(Box<Message<B>>),
    /// A message that has waited: with what was read, or to ask again.
    Back(Box<Parked<B>>, Option<Hold>),
    /// Every parcel of the token is worked off.
    Done(Token),
    /// A helper or a read has failed, at this operator.
    Failed(Error, Option<OpId>),
}

/// See the header of this file.
pub(crate) struct Board<B> {
    /// Threads of the run that look for work or sleep. A hint, read without the lock.
    idle: AtomicU32,
    /// Helpers that will join soon. A hint.
    expected: AtomicU32,
    /// Parcels offered. A hint.
    offers: AtomicU32,
    /// Entries that wait for the home. A hint.
    arrivals: AtomicU32,
    is_over: AtomicBool,
    /// Counts the changes of `cancellations`.
    version: AtomicU64,
    /// By group: what the home has cancelled.
    cancellations: Mutex<FastMap<GroupId, Vec<Cancellation>>>,
    state: Mutex<BoardState<B>>,
}

struct BoardState<B> {
    offered: VecDeque<Parcel<B>>,
    /// The parcels of each token that are not worked off.
    open: FastMap<Token, u32>,
    homebound: VecDeque<Homebound<B>>,
    /// What waits for reads.
    late: Lot<Box<Parked<B>>>,
    /// Helpers in the middle of a turn: they hold the execution context.
    inside: u32,
    /// Helpers that sleep until there is work.
    sleepers: Vec<Wake>,
    /// Helpers that sleep until the home has received what waits for it.
    blocked: Vec<Wake>,
    /// The home, if it sleeps.
    home: Option<Wake>,
    /// The thread that waits for the ends of all turns.
    ending: Option<Thread>,
    stats: HelperStats,
}

/// How long a thread without work looks for some before it sleeps, in nanoseconds.
const LOOK_NANOS: u64 = 50_000;

/// Spins between two looks. They take some tenths of a microsecond.
const LOOK_SPINS: u32 = 16;

/// The most looks, however slowly the clock goes: that of a test may stand still.
const LOOKS_MAX: u32 = if cfg!(feature = "model") { 1 } else { 1 << 12 };

/// Messages that may wait for the home before helpers wait for it.
const HOMEBOUND_MAX: usize = 64;

impl<B> Board<B> {
    pub fn new() -> Self {
        let state = BoardState {
            offered: VecDeque::new(),
            open: FastMap::default(),
            homebound: VecDeque::new(),
            late: Lot::new(),
            inside: 0,
            sleepers: Vec::new(),
            blocked: Vec::new(),
            home: None,
            ending: None,
            stats: HelperStats::default(),
        };
        Board {
            idle: AtomicU32::new(0),
            expected: AtomicU32::new(0),
            offers: AtomicU32::new(0),
            arrivals: AtomicU32::new(0),
            is_over: AtomicBool::new(false),
            version: AtomicU64::new(0),
            cancellations: Mutex::new(FastMap::default()),
            state: Mutex::new(state),
        }
    }

    /// Returns true if a thread of the run has nothing to do, or a helper will join for which no parcel is offered
    /// (FLOW-20).
    pub fn has_idle_thread(&self) -> bool {
        let misses_offers = |expected| expected > 0 && expected > self.offers.load(Ordering::Relaxed);
        self.idle.load(Ordering::Relaxed) > 0 || misses_offers(self.expected.load(Ordering::Relaxed))
    }

    /// Returns true if a thread of the run has nothing to do, and nothing is on its way to one.
    pub fn lacks_work(&self) -> bool {
        self.idle.load(Ordering::Relaxed) > 0 && !self.has_offers() && !self.has_arrivals()
    }

    /// Says that so many helpers will join. Waking a thread takes tens of microseconds, in which the home offers work.
    pub fn expect(&self, helpers: u32) {
        self.expected.store(helpers, Ordering::Relaxed);
    }

    /// Says that a helper has joined. More may join than are expected.
    pub fn has_joined(&self) {
        // An error says that none is expected any more.
        let _ = self.expected.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |helpers| helpers.checked_sub(1));
    }

    /// Returns true if a parcel is offered.
    pub fn has_offers(&self) -> bool {
        self.offers.load(Ordering::Relaxed) > 0
    }

    /// Returns true if something waits for the home.
    pub fn has_arrivals(&self) -> bool {
        self.arrivals.load(Ordering::Relaxed) > 0
    }

    /// Returns true if the run is over, whatever its outcome.
    pub fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Looks for work on this thread for a moment. Returns true if there is some. A thread that the operating system wakes
    /// comes later than one that looks.
    pub fn look(&self, clock: &dyn Clock, has_work: impl Fn() -> bool) -> bool {
        let until = clock.now_nanos().saturating_add(LOOK_NANOS);
        self.idle.fetch_add(1, Ordering::Relaxed);
        for _ in 0..LOOKS_MAX {
            if has_work() || clock.now_nanos() >= until {
                break;
            }
            (0..LOOK_SPINS).for_each(|_| spin_loop());
        }
        self.idle.fetch_sub(1, Ordering::Relaxed);
        has_work()
    }

    /// Offers parcels, and wakes as many threads. The parcels count towards their tokens from here on (FLOW-21).
    pub fn offer(&self, parcels: Vec<Parcel<B>>) {
        let mut wakes = Vec::new();
        {
            let mut state = self.state.lock();
            let state = &mut *state;
            let mut count = parcels.len();
            for parcel in parcels {
                // The home offers the first parcels of a token.
                let is_part = state.open.contains_key(&parcel.token);
                if !(is_part && mutation::is_set(Mutation::PartIsUncounted)) {
                    *state.open.entry(parcel.token).or_default() += 1;
                }
                state.offered.push_back(parcel);
            }
            // If the home sleeps, a helper offers these parcels.
            if let Some(home) = state.home.take() {
                count -= 1;
                wakes.push(home);
            }
            let first = state.sleepers.len().saturating_sub(count);
            wakes.extend(state.sleepers.drain(first..));
            self.idle.fetch_sub(wakes.len() as u32, Ordering::Relaxed);
            self.offers.store(state.offered.len() as u32, Ordering::Relaxed);
        }
        wakes.into_iter().for_each(|wake| wake());
    }

    /// Offers what is left of a helper's parcel at the end of its turn, in ascending order of operators. The helper takes
    /// the last ones first: they have the least to follow, so less waits on the board.
    pub fn put_down(&self, parcels: Vec<Parcel<B>>) {
        let home = {
            let mut state = self.state.lock();
            let state = &mut *state;
            for parcel in parcels {
                *state.open.entry(parcel.token).or_default() += 1;
                state.offered.push_front(parcel);
            }
            self.offers.store(state.offered.len() as u32, Ordering::Relaxed);
            if state.offered.is_empty() { None } else { self.announce(state) }
        };
        wake_up(home);
    }

    /// Takes the first parcel, for a helper. With a token, takes it only if it belongs to that one.
    pub fn take(&self, token: Option<Token>) -> Option<Parcel<B>> {
        if token.is_some() && !self.has_offers() {
            return None;
        }
        let mut state = self.state.lock();
        if token.is_some_and(|token| state.offered.front().is_some_and(|first| first.token != token)) {
            return None;
        }
        let parcel = state.offered.pop_front()?;
        state.stats.parcels += 1;
        self.offers.store(state.offered.len() as u32, Ordering::Relaxed);
        Some(parcel)
    }

    /// Takes the last parcel, for the home. No other thread works it off then.
    pub fn take_back(&self) -> Option<Parcel<B>> {
        if !self.has_offers() {
            return None;
        }
        let mut state = self.state.lock();
        let parcel = state.offered.pop_back()?;
        self.offers.store(state.offered.len() as u32, Ordering::Relaxed);
        Some(parcel)
    }

    /// Sends messages home. Returns true if so many wait there that the helper should wait, too.
    pub fn send_home(&self, messages: &mut Vec<Box<Message<B>>>) -> bool {
        let (wake, is_full) = {
            let mut state = self.state.lock();
            state.homebound.extend(messages.drain(..).map(Homebound::Message));
            (self.announce(&mut state), state.homebound.len() > HOMEBOUND_MAX)
        };
        wake_up(wake);
        is_full
    }

    /// Says that this many parcels of a token are worked off. Everything that they send home was sent before (FLOW-21).
    pub fn worked_off(&self, token: Token, parcels: u32) {
        let wake = {
            let mut state = self.state.lock();
            let is_last = (0..parcels).fold(false, |is_last, _| state.work_off(token) || is_last);
            if is_last { self.announce(&mut state) } else { None }
        };
        wake_up(wake);
    }

    /// Returns a ticket for a read, and the round (FLOW-32). Without a ticket, the credit is used up.
    pub fn begin_read(&self, credit: ReadCredit) -> (Option<Ticket>, u64) {
        let late = &mut self.state.lock().late;
        (late.begin(credit), late.round())
    }

    /// The view has answered without a read.
    pub fn withdraw_read(&self, ticket: Ticket) {
        self.state.lock().late.withdraw(ticket);
    }

    /// Parks a message until its ticket is completed. If it is completed already, returns the message: it goes on.
    pub fn park(
        &self,
        ticket: Ticket,
        parked: Box<Parked<B>>,
        reads: u32,
        bytes: u64,
    ) -> Option<(Box<Parked<B>>, Result<Hold>)> {
        let mut state = self.state.lock();
        let token = parked.token;
        let early = state.late.park(ticket, parked, reads, bytes);
        if early.is_none() {
            state.count(token);
        }
        early
    }

    /// Keeps a message that asked in this round until the run may ask again. If it may already, returns the message.
    pub fn refuse(&self, parked: Box<Parked<B>>, round: u64) -> Option<Box<Parked<B>>> {
        let mut state = self.state.lock();
        let token = parked.token;
        let back = state.late.refuse(parked, round);
        if back.is_none() {
            state.count(token);
        }
        back
    }

    /// Forgets the parked messages for which `is_over` returns true. Their parcels are worked off.
    pub fn forget(&self, mut is_over: impl FnMut(&mut Message<B>) -> bool) -> Vec<(Ticket, Box<Parked<B>>)> {
        let mut state = self.state.lock();
        let forgotten = state.late.forget(|parked| is_over(&mut parked.message));
        if !forgotten.is_empty() {
            for (_, parked) in &forgotten {
                state.work_off(parked.token);
            }
            state.send_refused_home();
            // The caller is the home: it is awake.
            self.arrivals.store(state.homebound.len() as u32, Ordering::Relaxed);
        }
        forgotten
    }

    /// After [`Board::end`]: forgets all tickets and returns them. No completion has an effect then.
    pub fn forget_all(&self) -> Vec<Ticket> {
        let ((tickets, parked, outcomes), homebound) = {
            let mut state = self.state.lock();
            (state.late.clear(), std::mem::take(&mut state.homebound))
        };
        // The drop of a hold may take a lock of the view.
        drop((parked, outcomes, homebound));
        tickets
    }

    /// Says that a helper has failed, at this operator.
    pub fn failed(&self, error: Error, operator: Option<OpId>) {
        let wake = {
            let mut state = self.state.lock();
            state.homebound.push_back(Homebound::Failed(error, operator));
            self.announce(&mut state)
        };
        wake_up(wake);
    }

    /// Makes what waits for the home visible to it. Returns its wake if it sleeps, to be called without the lock.
    fn announce(&self, state: &mut BoardState<B>) -> Option<Wake> {
        self.arrivals.store(state.homebound.len() as u32, Ordering::Relaxed);
        let wake = state.home.take();
        if wake.is_some() {
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
        wake
    }

    /// As [`Board::announce`], for what a view has sent. A view may say something that changes nothing.
    fn announce_late(&self, state: &mut BoardState<B>) -> Option<Wake> {
        if state.homebound.is_empty() || mutation::is_set(Mutation::CompletionDoesNotWake) {
            return None;
        }
        self.announce(state)
    }

    /// Takes everything that has come home, and wakes the helpers that waited for that.
    pub fn receive(&self) -> VecDeque<Homebound<B>> {
        let (all, blocked) = {
            let mut state = self.state.lock();
            let mut all = std::mem::take(&mut state.homebound);
            // If the home has offered another parcel of the token meanwhile, that one will be announced, too.
            all.retain(|one| !matches!(one, Homebound::Done(token) if state.open.contains_key(token)));
            self.arrivals.store(0, Ordering::Relaxed);
            (all, std::mem::take(&mut state.blocked))
        };
        blocked.into_iter().for_each(|wake| wake());
        all
    }

    /// Registers a helper that has nothing to do (FLOW-23). Returns false if it must not sleep: a parcel is offered, or
    /// the run is over.
    pub fn sleep(&self, wake: Wake) -> bool {
        let mut state = self.state.lock();
        if !state.offered.is_empty() || self.is_over() {
            return false;
        }
        state.sleepers.push(wake);
        self.idle.fetch_add(1, Ordering::Relaxed);
        true
    }

    /// Registers a helper that waits until the home has received what waits for it (FLOW-23). Returns false if it need
    /// not wait.
    pub fn sleep_until_received(&self, wake: Wake) -> bool {
        let mut state = self.state.lock();
        if state.homebound.len() <= HOMEBOUND_MAX || self.is_over() {
            return false;
        }
        state.blocked.push(wake);
        true
    }

    /// Registers the home, which has nothing to do (FLOW-23). Returns false if it must not sleep.
    pub fn sleep_at_home(&self, wake: Wake) -> bool {
        let mut state = self.state.lock();
        let has_work = !state.homebound.is_empty() || !state.offered.is_empty();
        if has_work && !mutation::is_set(Mutation::HomeSleepsBesideWork) {
            return false;
        }
        if state.home.replace(wake).is_none() {
            self.idle.fetch_add(1, Ordering::Relaxed);
        }
        true
    }

    /// The home goes on, though no work has woken it.
    pub fn wake_at_home(&self) {
        if self.state.lock().home.take().is_some() {
            self.idle.fetch_sub(1, Ordering::Relaxed);
        }
    }

    /// Begins a turn of a helper. Returns false if the run is over.
    pub fn enter(&self) -> bool {
        let mut state = self.state.lock();
        if self.is_over() {
            return false;
        }
        state.inside += 1;
        true
    }

    /// Ends a turn of a helper. It has let go of the execution context.
    pub fn exit(&self) {
        let ending = {
            let mut state = self.state.lock();
            state.inside -= 1;
            if state.inside == 0 { state.ending.take() } else { None }
        };
        if let Some(thread) = ending {
            thread.unpark();
        }
    }

    /// Adds to the counts of the helpers.
    pub fn account(&self, nanos: u64, scopes: ScopeCounts, operators: &[OperatorStats]) {
        let mut state = self.state.lock();
        state.stats.nanos += nanos;
        state.stats.scopes.add(scopes);
        state.stats.operators.resize(operators.len(), OperatorStats::default());
        state.stats.operators.iter_mut().zip(operators).for_each(|(sum, stats)| sum.add(stats));
    }

    /// Returns the number of parcels that helpers have taken.
    pub fn parcels_taken(&self) -> u64 {
        self.state.lock().stats.parcels
    }

    /// Returns what the helpers did in scopes.
    pub fn scope_counts(&self) -> ScopeCounts {
        self.state.lock().stats.scopes
    }

    /// Returns the counts of the helpers.
    pub fn stats(&self) -> HelperStats {
        self.state.lock().stats.clone()
    }

    /// Ends the run for its helpers: waits until no helper is in the middle of a turn, and drops what is on the board.
    /// Helpers that sleep are woken, so that they can be dropped.
    pub fn end(&self) {
        self.is_over.store(true, Ordering::Release);
        let (wakes, offered, homebound) = loop {
            let mut state = self.state.lock();
            if state.inside == 0 {
                let mut wakes = std::mem::take(&mut state.sleepers);
                wakes.append(&mut state.blocked);
                break (wakes, std::mem::take(&mut state.offered), std::mem::take(&mut state.homebound));
            }
            state.ending = Some(current());
            drop(state);
            park();
        };
        wakes.into_iter().for_each(|wake| wake());
        drop((offered, homebound));
    }

    /// Returns the number of changes of the cancellations.
    pub fn version(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    /// Publishes what is cancelled for a group; an empty list for a group that is closed.
    pub fn publish(&self, groups: impl IntoIterator<Item = (GroupId, Vec<Cancellation>)>) {
        let mut published = self.cancellations.lock();
        for (group, cancellations) in groups {
            if cancellations.is_empty() {
                published.remove(&group);
            } else {
                published.insert(group, cancellations);
            }
        }
        self.version.fetch_add(1, Ordering::Release);
    }

    /// Returns what is cancelled for a group.
    pub fn cancellations(&self, group: GroupId) -> Option<Vec<Cancellation>> {
        self.cancellations.lock().get(&group).cloned()
    }
}

impl<B> BoardState<B> {
    /// Counts a parcel towards its token (FLOW-21).
    fn count(&mut self, token: Token) {
        if !mutation::is_set(Mutation::ParkedIsUncounted) {
            *self.open.entry(token).or_default() += 1;
        }
    }

    /// Notes that a parcel is worked off. If it is the last one of its token, puts that down for the home and returns
    /// true.
    fn work_off(&mut self, token: Token) -> bool {
        let is_last = self.open.get_mut(&token).is_some_and(|count| {
            *count -= 1;
            *count == 0
        });
        if is_last {
            self.open.remove(&token);
            self.homebound.push_back(Homebound::Done(token));
        }
        is_last
    }

    /// Sends a message home that has waited. What it was counted for comes after it (FLOW-21).
    fn send_back(&mut self, parked: Box<Parked<B>>, hold: Option<Hold>) {
        let token = parked.token;
        self.homebound.push_back(Homebound::Back(parked, hold));
        self.work_off(token);
    }

    /// The run may ask again (FLOW-32).
    fn send_refused_home(&mut self) {
        for parked in self.late.take_refused() {
            self.send_back(parked, None);
        }
    }
}

/// Views complete reads here, on any thread.
impl<B: Batch> Completions for Board<B> {
    fn complete(&self, ticket: Ticket, outcome: Result<Hold>) {
        let (wake, ignored) = {
            let mut state = self.state.lock();
            let state = &mut *state;
            let ignored = match state.late.complete(ticket, outcome) {
                Completed::Early => None,
                Completed::Ignored(outcome) => Some(outcome),
                Completed::Back(parked, Ok(hold)) => {
                    state.send_back(parked, Some(hold));
                    state.send_refused_home();
                    None
                }
                Completed::Back(parked, Err(error)) => {
                    state.homebound.push_back(Homebound::Failed(error, Some(parked.message.operator)));
                    None
                }
            };
            (self.announce_late(state), ignored)
        };
        wake_up(wake);
        // Its drop may take a lock of the view.
        drop(ignored);
    }

    fn has_room(&self) {
        let wake = {
            let mut state = self.state.lock();
            state.late.has_room();
            state.send_refused_home();
            self.announce_late(&mut state)
        };
        wake_up(wake);
    }
}

fn wake_up(wake: Option<Wake>) {
    if let Some(wake) = wake {
        wake();
    }
}
