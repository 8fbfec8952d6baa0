//! A helper: it works off messages of a run on another thread, with replicas of the run's kernels.
//!
//! ```text
//!                     turn: a parcel, or part of one
//!            ┌──────────────────────────────────────────────┐
//!            ▼                                              │
//!  joined ─► Busy ── nothing offered ─► Idle ── sleep, wake ┤
//!            │ └──── home is slow ────► Full ── sleep, wake ┘
//!            └─────── run ended ──────► Over
//! ```
//!
//! Between two turns a helper mostly holds nothing of the run but its replicas: what is left of a parcel at the end of a
//! turn goes back to the board. So a run does not wait for a helper that has no thread at the moment: the home works off
//! what waits on the board, and the run ends without the helper. If groups that the helper has opened have not ended, it
//! keeps the parcel (FLOW-50), and its next turn comes as soon as that of a query.
//!
//! - **FLOW-46.** A helper may keep rows of a parcel to merge them with rows of further parcels of the same token
//!   ([`crate::Operator::keeps_rows`]). It says that these parcels are worked off when it has sent everything home that
//!   follows from the rows. It lets go of them at the end of its turn, or if the next parcel on the board is not one of
//!   the token.

use std::sync::{Arc, Weak};

use mangrove_graph::compare::watch;
use mangrove_graph::{Error, Result};

use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, Parcel, Token, Wake};
use crate::control::QueryControl;
use crate::group::GroupId;
use crate::late::ReadCredit;
use crate::local::Local;
use crate::mutation::{self, Mutation};
use crate::operator::WeakState;
use crate::schedule::TURN_NANOS;
use crate::sharing::Sharers;
use crate::topology::Topology;
use crate::work::{Progress, RUNNING, Work, has_ended};

/// What a run shares with its helpers ([`crate::NodeRuntime::open`]).
pub struct OpenRun<B: Batch> {
    pub(crate) board: Arc<Board<B>>,
    /// Weak: a helper holds the context during its turns only.
    pub(crate) context: Weak<Option<B::Context>>,
    pub(crate) control: Arc<QueryControl>,
    pub(crate) topology: Arc<Topology>,
    /// The messages that a helper works off itself.
    pub(crate) local: Local,
    /// For each operator, the state that threads share (FLOW-29). The home holds it.
    pub(crate) states: Arc<[Option<WeakState>]>,
    pub(crate) sharers: Sharers,
    /// The late reads that the run may have under way.
    pub(crate) credit: ReadCredit,
    /// True if the time inside operators is measured.
    pub(crate) timed: bool,
}

impl<B: Batch> OpenRun<B> {
    /// Says that so many helpers will join soon. The home offers work before they ask for it (FLOW-20).
    pub fn expect(&self, helpers: u32) {
        self.board.expect(helpers);
    }
}

impl<B: Batch> Clone for OpenRun<B> {
    fn clone(&self) -> Self {
        OpenRun {
            board: self.board.clone(),
            context: self.context.clone(),
            control: self.control.clone(),
            topology: self.topology.clone(),
            local: self.local.clone(),
            states: self.states.clone(),
            sharers: self.sharers.clone(),
            credit: self.credit,
            timed: self.timed,
        }
    }
}

/// The outcome of a helper's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperStatus {
    /// Work is left.
    Busy,
    /// There is nothing to do until [`Helper::sleep`] wakes the helper.
    Idle,
    /// So much waits for the home that the helper waits, too ([`Helper::sleep`]).
    Full,
    /// The run is over.
    Over,
}

/// A helper of one run.
pub struct Helper<B: Batch> {
    run: OpenRun<B>,
    work: Work<B>,
    /// The context of a helper between its turns: none.
    no_context: Arc<Option<B::Context>>,
    /// True after the kernels have begun the run.
    has_begun: bool,
    /// The token of the parcel at hand, during a turn.
    token: Option<Token>,
    /// The group of its rows: that of the token, or the one that a part of an end sends rows of (FLOW-49).
    group: GroupId,
    /// The parcels of the token that the helper has not said to be worked off: the one at hand, and those of which it
    /// keeps rows (FLOW-46).
    parcels: u32,
    /// The version of the cancellations that the helper has seen.
    version: u64,
    status: HelperStatus,
}

/// Messages for the home that a helper gathers before it sends them.
const GATHERED_MESSAGES: usize = 8;

/// Messages between two checks of the length of a turn.
const LOOK_MESSAGES: usize = 4;

/// A turn of a helper. Its end lets go of the context first.
struct Turn<'a, B: Batch> {
    board: &'a Board<B>,
    work: &'a mut Work<B>,
    no_context: &'a Arc<Option<B::Context>>,
}

impl<B: Batch> Drop for Turn<'_, B> {
    fn drop(&mut self) {
        self.work.context = self.no_context.clone();
        self.board.exit();
    }
}

impl<B: Batch> Helper<B> {
    /// A helper with operators built like those of the run. It uses the kernels among them, the passing ones, those that
    /// share their state (FLOW-29) and those of scopes that it enters (FLOW-50); of the others,
    /// [`crate::Operator::combine`].
    pub fn new(run: &OpenRun<B>, operators: Vec<AnyOperator<B>>) -> Self {
        let no_context = Arc::new(None);
        let work = Work::helping(run.topology.clone(), operators, no_context.clone(), run.local.clone(), run.timed);
        Helper {
            run: run.clone(),
            work,
            no_context,
            has_begun: false,
            token: None,
            group: GroupId::ROOT,
            parcels: 0,
            version: 0,
            status: HelperStatus::Busy,
        }
    }

    /// Works for about `quota` messages, or [`TURN_NANOS`] if that is shorter.
    pub fn turn(&mut self, quota: usize) -> HelperStatus {
        self.part_of_turn(quota, true)
    }

    /// For a simulation on one thread: a turn of a helper, which may stop in the middle, with the parcel in its hands.
    #[doc(hidden)]
    pub fn part_of_turn(&mut self, quota: usize, is_last: bool) -> HelperStatus {
        if self.status == HelperStatus::Over {
            return HelperStatus::Over;
        }
        let board = self.run.board.clone();
        self.status = match self.try_turn(quota, is_last, &board) {
            Ok(status) => status,
            Err(error) => {
                self.token = None;
                board.failed(error, self.work.failed());
                HelperStatus::Over
            }
        };
        self.status
    }

    /// Returns true if the run may have to wait for the helper's next turn, because it holds a parcel (FLOW-50).
    pub fn is_needed(&self) -> bool {
        self.token.is_some() && self.status != HelperStatus::Over
    }

    /// Registers how to wake the helper after a turn that was [`HelperStatus::Idle`] or [`HelperStatus::Full`]. Returns
    /// false if there is something to do: the helper must have another turn.
    pub fn sleep(&self, wake: Wake) -> bool {
        match self.status {
            HelperStatus::Idle => self.run.board.sleep(wake),
            HelperStatus::Full => self.run.board.sleep_until_received(wake),
            HelperStatus::Busy | HelperStatus::Over => false,
        }
    }

    /// Looks for work on this thread for a moment, after a turn that was [`HelperStatus::Idle`]. Returns true if there is
    /// some.
    pub fn look(&self) -> bool {
        let board = &self.run.board;
        board.look(self.run.control.clock(), || board.has_offers() || board.is_over())
    }

    fn try_turn(&mut self, quota: usize, is_last: bool, board: &Board<B>) -> Result<HelperStatus> {
        if !board.enter() {
            return Ok(HelperStatus::Over);
        }
        let turn = Turn { board, work: &mut self.work, no_context: &self.no_context };
        let Some(context) = self.run.context.upgrade() else { return Ok(HelperStatus::Over) };
        turn.work.context = context;
        if !std::mem::replace(&mut self.has_begun, true) {
            turn.work.begin_local(&self.run.states)?;
            turn.work.read_late(&self.run.board, self.run.credit);
            board.has_joined();
        }
        let control = &self.run.control;
        let started = control.clock().now_nanos();
        let _watch = watch::begin(has_ended);
        let mut status = HelperStatus::Busy;
        for number in 1..=quota {
            if board.is_over() {
                status = HelperStatus::Over;
                break;
            }
            let token = match self.token {
                Some(token) => token,
                None => {
                    let Some(Parcel { token, message }) = board.take(None) else {
                        status = HelperStatus::Idle;
                        break;
                    };
                    self.version = u64::MAX;
                    self.parcels = 1;
                    self.group = message.group;
                    turn.work.router.accept_shared(message);
                    if let Some(asking) = &mut turn.work.asking {
                        asking.token = Some(token);
                    }
                    *self.token.insert(token)
                }
            };
            let version = board.version();
            if std::mem::replace(&mut self.version, version) != version {
                // All that follows from a parcel is of its group, or of groups nested in it.
                turn.work.adopt(board, self.group, control);
            }
            let is_done = match RUNNING.set(control, || turn.work.run(control, 1))? {
                Progress::Yielded => false,
                Progress::Idle if turn.work.router.groups.open_count() > 0 => {
                    return Err(Error::bug("a group of a helper has not ended, and no message of it is left"));
                }
                Progress::Idle => {
                    let mut waits = turn.work.flush(false, control)?;
                    if !waits && turn.work.keeps_rows() {
                        if mutation::is_set(Mutation::KeptParcelIsDone) {
                            board.worked_off(token, std::mem::take(&mut self.parcels));
                        }
                        waits = match board.take(Some(token)) {
                            Some(Parcel { message, .. }) => {
                                self.parcels += 1;
                                turn.work.router.accept_shared(message);
                                true
                            }
                            None => turn.work.flush(true, control)?,
                        };
                    }
                    !waits
                }
                Progress::Results | Progress::Waiting | Progress::Complete => {
                    return Err(Error::bug("a helper has no results of its own"));
                }
            };
            if is_done && mutation::is_set(Mutation::DoneBeforeSent) {
                self.token = None;
                board.worked_off(token, self.parcels);
                status = HelperStatus::Full;
                break;
            }
            if is_done || turn.work.router.homebound.len() >= GATHERED_MESSAGES {
                turn.work.combine_homebound(control)?;
                let homebound = &mut turn.work.router.homebound;
                if !homebound.is_empty() && board.send_home(homebound) {
                    status = HelperStatus::Full;
                }
            }
            if is_done {
                self.token = None;
                board.worked_off(token, self.parcels);
            }
            if status == HelperStatus::Full {
                break;
            }
            if !is_done && board.has_idle_thread() {
                turn.work.share(board, &self.run.sharers, Some(token), control)?;
                if board.lacks_work() && turn.work.send_instances_home(&self.run.sharers, control)? {
                    turn.work.combine_homebound(control)?;
                    if board.send_home(&mut turn.work.router.homebound) {
                        status = HelperStatus::Full;
                        break;
                    }
                }
            }
            // Queries that wait for a thread go before helpers (FLOW-26).
            if number % LOOK_MESSAGES == 0 && control.clock().now_nanos().saturating_sub(started) >= TURN_NANOS {
                break;
            }
        }
        if let Some(token) = self.token.filter(|_| is_last || status == HelperStatus::Full)
            && status != HelperStatus::Over
        {
            let keeps =
                turn.work.router.groups.open_count() > 0 && !mutation::is_set(Mutation::GroupsOfHelpersArePutDown);
            if !keeps {
                turn.work.flush(true, control)?;
            }
            turn.work.combine_homebound(control)?;
            if !turn.work.router.homebound.is_empty() && board.send_home(&mut turn.work.router.homebound) {
                status = HelperStatus::Full;
            }
            if !keeps {
                let rest = turn.work.parcels_of_all(token, control)?;
                self.token = None;
                board.put_down(rest);
                board.worked_off(token, self.parcels);
            }
        }
        let nanos = control.clock().now_nanos().saturating_sub(started);
        turn.work.account(board, nanos);
        Ok(status)
    }
}

impl<B: Batch> Drop for Helper<B> {
    fn drop(&mut self) {
        if self.token.is_some() && !self.run.board.is_over() {
            let error = Error::bug("a thread that helped a query has ended; please report it with the query");
            self.run.board.failed(error, None);
        }
    }
}
