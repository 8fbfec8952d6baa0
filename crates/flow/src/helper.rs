//! A helper: it works off messages of a run on another thread, with replicas of the run's kernels.

use std::sync::{Arc, Weak};
use std::time::Duration;

use mangrove_graph::compare::watch;
use mangrove_graph::{Error, Result};

use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, Parcel, Token};
use crate::control::QueryControl;
use crate::runtime::{Progress, RUNNING, Work, has_ended};
use crate::topology::Topology;

/// What a run shares with its helpers ([`crate::NodeRuntime::open`]).
pub struct OpenRun<B: Batch> {
    pub(crate) board: Arc<Board<B>>,
    /// Weak: a thread that has not joined keeps nothing of the run.
    pub(crate) context: Weak<Option<B::Context>>,
    pub(crate) control: Arc<QueryControl>,
    pub(crate) topology: Arc<Topology>,
    /// For each operator, true if it is a kernel.
    pub(crate) kernels: Arc<[bool]>,
}

impl<B: Batch> Clone for OpenRun<B> {
    fn clone(&self) -> Self {
        OpenRun {
            board: self.board.clone(),
            context: self.context.clone(),
            control: self.control.clone(),
            topology: self.topology.clone(),
            kernels: self.kernels.clone(),
        }
    }
}

/// The outcome of a helper's turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HelperStatus {
    /// Work is left.
    Busy,
    /// There is nothing to do.
    Idle,
    /// The run is over.
    Over,
}

/// A helper of one run. Dropping it leaves the run.
pub struct Helper<B: Batch> {
    /// `None` after the helper has left.
    work: Option<Work<B>>,
    control: Arc<QueryControl>,
    board: Arc<Board<B>>,
    /// The token of the parcel at hand.
    token: Option<Token>,
}

/// Messages for the home that a helper gathers before it sends them.
const GATHERED_MESSAGES: usize = 8;

/// The longest time that a helper sleeps before it looks around.
const SLEEP: Duration = Duration::from_millis(1);

impl<B: Batch> Helper<B> {
    /// Joins a run, with operators built like those of the run; only their kernels are used. Returns `None` if the run
    /// is over.
    pub fn join(run: &OpenRun<B>, operators: Vec<AnyOperator<B>>) -> Result<Option<Self>> {
        let OpenRun { board, context, control, topology, kernels } = run;
        if !board.join() {
            return Ok(None);
        }
        let mut helper = Helper { work: None, control: control.clone(), board: board.clone(), token: None };
        let Some(context) = context.upgrade() else {
            board.leave();
            return Ok(None);
        };
        let work = helper.work.insert(Work::helping(topology.clone(), operators, context, kernels.clone()));
        work.begin_kernels()?;
        Ok(Some(helper))
    }

    /// Works for about `quota` messages. Waits for a moment if there is nothing to do.
    pub fn turn(&mut self, quota: usize) -> HelperStatus {
        match self.try_turn(quota) {
            Ok(status) => status,
            Err(error) => {
                self.board.failed(error);
                self.leave();
                HelperStatus::Over
            }
        }
    }

    fn try_turn(&mut self, quota: usize) -> Result<HelperStatus> {
        let Some(work) = &mut self.work else { return Ok(HelperStatus::Over) };
        if self.board.is_over() {
            self.leave();
            return Ok(HelperStatus::Over);
        }
        if self.token.is_none() {
            let Some(Parcel { token, message }) = self.board.wait_for_parcel(SLEEP) else {
                return Ok(HelperStatus::Idle);
            };
            work.router.accept_shared(message);
            self.token = Some(token);
        }
        let _watch = watch::begin(has_ended);
        let (control, board) = (&self.control, &self.board);
        for _ in 0..quota {
            let progress = RUNNING.set(control, || work.run(control, 1))?;
            let is_done = match progress {
                Progress::Yielded => false,
                Progress::Idle => true,
                Progress::Results | Progress::Waiting | Progress::Complete => {
                    return Err(Error::bug("a helper has no results of its own"));
                }
            };
            if is_done || work.router.homebound.len() >= GATHERED_MESSAGES {
                let is_full = !work.router.homebound.is_empty() && board.send_home(&mut work.router.homebound);
                if is_full {
                    board.wait_for_home(SLEEP);
                }
            }
            if is_done {
                if let Some(token) = self.token.take() {
                    board.worked_off(token);
                }
                break;
            }
            if board.is_over() {
                break;
            }
            if let Some(token) = self.token
                && board.is_somebody_hungry()
            {
                work.share(board, Some(token));
            }
        }
        Ok(HelperStatus::Busy)
    }

    /// Leaves the run: lets go of everything that belongs to it.
    fn leave(&mut self) {
        if let Some(work) = self.work.take() {
            drop(work);
            self.board.leave();
        }
    }
}

impl<B: Batch> Drop for Helper<B> {
    fn drop(&mut self) {
        if self.token.is_some() && !self.board.is_over() {
            self.board.failed(Error::bug("a thread that helped a query has ended; please report it with the query"));
        }
        self.leave();
    }
}
