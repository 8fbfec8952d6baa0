//! The runtime of one node: it calls the operators of a query until no work is left. One thread at a time runs it, and
//! it does not block.
//!
//! A runtime serves one run after the other, because operators, queues and tables cost more to make than a light query
//! costs to run:
//!
//! ```text
//!            begin               start, run …             recycle: clean
//! (new) ─► idle ──► begun ──► running ──► complete ───────────────────────► idle
//!                     │          │            └─ recycle: something is left ─► dropped
//!                     └──────────┴── error, cancelled, or results not read ──► dropped
//! ```
//!
//! - **FLOW-15.** A runtime begins another run only after a complete run of which no message, group, row or charge is
//!   left. If a run failed, was cancelled, or its results were not read to the end, rows may be left anywhere: the
//!   runtime is dropped and never cleaned.

use std::sync::Arc;
use std::time::Duration;

use mangrove_graph::Result;
use mangrove_graph::compare::watch;

use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, Wake};
use crate::control::QueryControl;
use crate::group::NodeId;
use crate::helper::OpenRun;
use crate::late::ReadCredit;
use crate::local::Local;
use crate::mutation::{self, Mutation};
use crate::operator::Shared;
use crate::sharing::{Sharers, Sharing};
use crate::stats::{HelperStats, OperatorStats, ScopeCounts};
use crate::topology::{OpId, Topology};
use crate::work::{Progress, RUNNING, Work, has_ended};

/// The part of a query that runs on one node.
pub struct NodeRuntime<B: Batch> {
    control: Arc<QueryControl>,
    work: Work<B>,
}

impl<B: Batch> NodeRuntime<B> {
    /// A runtime with the operators of a topology, in the order of their numbers.
    pub fn new(
        node: NodeId,
        nodes: u16,
        topology: Arc<Topology>,
        operators: Vec<AnyOperator<B>>,
        control: Arc<QueryControl>,
    ) -> Self {
        assert_eq!(operators.len(), topology.len(), "operators, and operators of the topology");
        assert!(node < nodes, "node {node} of {nodes}");
        let work = Work::new(node, nodes, topology, operators);
        NodeRuntime { control, work }
    }

    /// Begins a run: calls [`crate::Operator::begin`] of every operator. After an error the runtime must be dropped.
    pub fn begin(&mut self, context: B::Context) -> Result<()> {
        match Arc::get_mut(&mut self.work.context) {
            Some(slot) => *slot = Some(context),
            None => self.work.context = Arc::new(Some(context)),
        }
        let Some(context) = &*self.work.context else { return Ok(()) };
        self.work.operators.iter_mut().try_for_each(|operator| operator.begin(context))?;
        if B::late(context).is_some() {
            self.read_late();
        }
        Ok(())
    }

    /// The view may be late: messages wait for reads on a board.
    #[cold]
    fn read_late(&mut self) {
        let board = Arc::new(Board::new());
        self.work.read_late(&board, ReadCredit::of(self.control.memory_limit()));
        let sharers = Sharers { stealable: vec![false; self.work.operators.len()].into(), shares_all: false };
        self.share_on(board, sharers);
    }

    fn share_on(&mut self, board: Arc<Board<B>>, sharers: Sharers) {
        self.work.router.groups.note_changes();
        self.work.sharing = Some(Box::new(Sharing::new(board, sharers)));
    }

    /// In a run with late reads: sets how many of them may be under way.
    pub fn limit_reads(&mut self, credit: ReadCredit) {
        if let Some(asking) = &mut self.work.asking {
            asking.credit = credit;
        }
    }

    /// Returns true if the run may read late.
    pub fn reads_late(&self) -> bool {
        self.work.asking.is_some()
    }

    /// In a run with late reads: at these operators, true for each, messages may be worked off in any order, so that
    /// later ones go on while one waits for a read. Without this call, only those that [`NodeRuntime::open`] shares may
    /// (FLOW-33).
    pub fn allow_any_order(&mut self, operators: Arc<[bool]>) {
        if let Some(sharing) = &mut self.work.sharing {
            sharing.allow_any_order(operators);
        }
    }

    /// Opens the run for helpers. For a run on one node, at most once.
    pub fn open(&mut self, sharers: Sharers) -> OpenRun<B> {
        let board = match &mut self.work.sharing {
            Some(sharing) => {
                sharing.set_sharers(sharers.clone());
                sharing.board().clone()
            }
            None => {
                let board = Arc::new(Board::new());
                self.share_on(board.clone(), sharers.clone());
                board
            }
        };
        let shares_all = sharers.shares_all;
        let states: Vec<Option<Shared>> = self.work.operators.iter_mut().map(AnyOperator::share).collect();
        let local_port = |(one, shared): (&AnyOperator<B>, &Option<Shared>)| {
            let every_port = one.is_local() || shared.is_some() && mutation::is_set(Mutation::EveryPortIsShared);
            if every_port { Some(0) } else { shared.as_ref().map(|shared| shared.from_port) }
        };
        let ports = self.work.operators.iter().zip(&states).map(local_port).collect();
        let topology = &self.work.router.topology;
        // A message that waits for a read comes back to the home, which knows no group of a helper.
        let enters = self.work.asking.is_none();
        let operators = &self.work.operators;
        let by_batch = |operator: usize| enters && operators[operator].is_by_batch();
        let local = Local::new(ports, topology, by_batch, |operator| operators[operator].is_by_group(), shares_all);
        OpenRun {
            board,
            context: Arc::downgrade(&self.work.context),
            control: self.control.clone(),
            topology: topology.clone(),
            local,
            states: states.iter().map(|state| state.as_ref().map(|shared| Arc::downgrade(&shared.state))).collect(),
            sharers,
            credit: self.work.asking.as_ref().map_or(ReadCredit::of(0), |asking| asking.credit),
            timed: self.work.timed,
        }
    }

    /// Registers how to wake the home after [`Progress::Waiting`]. Returns false if there is something to do: the home
    /// must run again.
    pub fn sleep(&self, wake: Wake) -> bool {
        self.work.sharing.as_ref().is_some_and(|sharing| sharing.board().sleep_at_home(wake))
    }

    /// Blocks this thread after [`Progress::Waiting`] until there is something to do, but not for longer than this.
    pub fn wait(&self, at_most: Duration) {
        if let Some(sharing) = &self.work.sharing {
            sharing.wait(at_most, self.control.clock());
        }
    }

    /// Closes an open run: waits until no helper is in the middle of a turn, and forgets late reads. Returns what the
    /// helpers did.
    pub fn close(&mut self) -> HelperStats {
        match self.work.sharing.take() {
            Some(sharing) => {
                let board = sharing.board().clone();
                drop(sharing);
                // No helper asks any more.
                self.work.forget_reads();
                board.stats()
            }
            None => HelperStats::default(),
        }
    }

    /// Ends a complete run. Returns its context, and true if the runtime may begin another run: no message, group, row
    /// or charge of this one is left (FLOW-15).
    pub fn recycle(&mut self) -> (Option<B::Context>, bool) {
        self.close();
        let mut is_clean = self.work.router.reset();
        for operator in &mut self.work.operators {
            is_clean &= operator.recycle();
        }
        self.work.stats.fill(OperatorStats::default());
        (self.work.groups_peak, self.work.messages, self.work.units) = (0, 0, 0);
        (self.work.timed, self.work.failed) = (false, None);
        (self.take_context(), is_clean)
    }

    /// Returns the limits, memory account and clock of the run.
    pub fn control(&self) -> &QueryControl {
        &self.control
    }

    /// Returns the control of the run, for the thread that reads its results.
    pub fn control_shared(&self) -> Arc<QueryControl> {
        self.control.clone()
    }

    /// Returns the control, for [`QueryControl::renew`] between runs.
    pub fn control_mut(&mut self) -> &mut Arc<QueryControl> {
        &mut self.control
    }

    /// Returns the execution context of the run.
    pub fn context(&self) -> Option<&B::Context> {
        self.work.context.as_ref().as_ref()
    }

    /// Takes the execution context out of a run that is not continued.
    pub fn take_context(&mut self) -> Option<B::Context> {
        self.close();
        if let Some(context) = Arc::get_mut(&mut self.work.context) {
            return context.take();
        }
        // A helper that is not in a turn has a weak reference.
        Arc::into_inner(std::mem::replace(&mut self.work.context, Arc::new(None))).flatten()
    }

    /// Measures the time inside each operator of this run from now on, at the cost of two clock reads a message.
    pub fn measure_time(&mut self) {
        self.work.timed = true;
        self.control.count_time();
    }

    /// Starts the query: sends one batch and its end to operator 0, in the root group. Called on node 0 only.
    pub fn start(&mut self, batch: B) -> Result<()> {
        self.work.router.start(batch, &self.control)
    }

    /// Returns the number of messages processed so far. A call to go on with unfinished work counts as one.
    pub fn messages(&self) -> u64 {
        self.work.messages
    }

    /// Returns the units of work done so far: one for each message, and one for each 128 rows that it brings. They grow
    /// with the time that the run takes, which the number of messages does not.
    pub fn units(&self) -> u64 {
        self.work.units
    }

    /// Processes messages until there are results, `quota` units of work are done ([`NodeRuntime::units`]), or no work is
    /// left. After an error the runtime must be dropped (FLOW-15).
    pub fn run(&mut self, quota: usize) -> Result<Progress> {
        let _watch = watch::begin(has_ended);
        let NodeRuntime { control, work } = self;
        RUNNING.set(control, || work.run(control, quota))
    }

    /// Takes the next batch of results.
    pub fn take_results(&mut self) -> Option<B> {
        self.work.router.results.pop_front()
    }

    /// Takes the frames for other nodes, each with its receiver.
    pub fn take_outbox(&mut self) -> Vec<(NodeId, Vec<u8>)> {
        std::mem::take(&mut self.work.router.outbox)
    }

    /// Receives a frame from another node.
    pub fn accept(&mut self, frame: &[u8]) -> Result<()> {
        self.work.router.accept(frame, &self.control)
    }

    /// Returns the operator whose error ended the run.
    pub fn failed_operator(&self) -> Option<OpId> {
        self.work.failed
    }

    /// Returns the counts of each operator, in the order of their numbers.
    pub fn stats(&self) -> Vec<OperatorStats> {
        let mut stats = self.work.own_stats();
        if let Some(sharing) = &self.work.sharing {
            let helpers = sharing.board().stats();
            stats.iter_mut().zip(&helpers.operators).for_each(|(sum, stats)| sum.add(stats));
        }
        stats
    }

    /// Returns what helpers have done so far.
    pub fn helper_stats(&self) -> HelperStats {
        self.work.sharing.as_ref().map(|sharing| sharing.board().stats()).unwrap_or_default()
    }

    /// Returns the number of parcels that helpers have taken over so far.
    pub fn parcels_taken(&self) -> u64 {
        self.work.sharing.as_ref().map_or(0, |sharing| sharing.board().parcels_taken())
    }

    /// For an open run: returns true if the query had enough results while parcels were not worked off.
    pub fn was_cut(&self) -> Option<bool> {
        self.work.sharing.as_ref().map(|sharing| sharing.was_cut())
    }

    /// Returns the number of heavy instances that have begun again in groups of their own so far (FLOW-44).
    pub fn set_apart_count(&self) -> u64 {
        self.work.router.set_apart + self.helper_scopes().set_apart
    }

    /// Returns what helpers did in scopes of their own (FLOW-50).
    fn helper_scopes(&self) -> ScopeCounts {
        self.work.sharing.as_ref().map(|sharing| sharing.board().scope_counts()).unwrap_or_default()
    }

    /// Returns the number of scope groups opened so far, the most that were open at a time, and the number of single
    /// instances that were cancelled.
    pub fn scope_counts(&self) -> (u64, u64, u64) {
        let helpers = self.helper_scopes();
        let opened = self.work.router.groups.opened() + helpers.opened;
        (opened, self.work.groups_peak as u64, self.work.router.tags_cancelled + helpers.tags_cancelled)
    }

    /// Returns the number of open scope groups that have inboxes of their own, because a policy orders them.
    pub fn lane_count(&self) -> u64 {
        self.work.router.lane_count()
    }
}

/// A run that is left in its middle tells its view that nothing waits for its reads.
impl<B: Batch> Drop for NodeRuntime<B> {
    fn drop(&mut self) {
        self.close();
    }
}
