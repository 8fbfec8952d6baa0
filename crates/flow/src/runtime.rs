//! The runtime of one node: it calls the operators of a query until no work is left. One thread at a time runs it, and
//! it does not block.
//!
//! - **FLOW-14.** The operator that runs next is the ready one with the highest number. But a message that returns from
//!   a scope to the scope's own operator goes before all others.
//!
//! The first rule makes processing depth first: barriers hold most of the memory, and the first results come early. By
//! the second rule, the operator of a scope sees the result that decides an instance at once, and the work that is left
//! for the instance is cancelled instead of done. (By number alone it would see the first result only after the
//! operators inside, whose numbers are higher, have made the last one.)
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

use mangrove_graph::compare::watch;
use mangrove_graph::{Error, ErrorKind, Result};

use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, HelperStats, Token, Wake};
use crate::control::QueryControl;
use crate::cursor::{Cursor, Step};
use crate::group::{Disposition, GroupId, NodeId};
use crate::helper::OpenRun;
use crate::mutation::{self, Mutation};
use crate::operator::Output;
use crate::router::{Body, Message, Router};
use crate::sharing::{Sharers, Sharing};
use crate::topology::{OpId, Topology};

/// The outcome of a call of [`NodeRuntime::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Results wait to be taken.
    Results,
    /// The quota is used up and work is left.
    Yielded,
    /// No work is left until another node sends a message.
    Idle,
    /// No work is left until a helper sends a message ([`NodeRuntime::wait`]).
    Waiting,
    /// The query is complete and all results are taken.
    Complete,
}

/// Counters of an operator, for `profile()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorStats {
    /// Messages received.
    pub messages: u64,
    /// Rows received.
    pub rows_in: u64,
    /// Rows sent.
    pub rows_out: u64,
    /// Nanoseconds inside the operator; 0 unless [`NodeRuntime::measure_time`] was called.
    pub nanos: u64,
}

scoped_tls::scoped_thread_local! {
    /// The query that this thread runs: comparisons of large values ask it whether to stop.
    pub(crate) static RUNNING: QueryControl
}

/// Returns true if the query of this thread has ended.
pub(crate) fn has_ended() -> bool {
    RUNNING.is_set() && RUNNING.with(|control| control.check().is_err())
}

/// The part of a query that runs on one node.
pub struct NodeRuntime<B: Batch> {
    control: Arc<QueryControl>,
    work: Work<B>,
}

/// The runtime without its control. The thread of the run reads the control while it changes this.
pub(crate) struct Work<B: Batch> {
    pub operators: Vec<AnyOperator<B>>,
    pub router: Router<B>,
    /// `None` between runs. Shared with the helpers of the run, which end before the run does.
    pub context: Arc<Option<B::Context>>,
    /// On the home of an open run: the work that is shared with helpers.
    pub sharing: Option<Box<Sharing<B>>>,
    stats: Vec<OperatorStats>,
    /// True if the time inside operators is measured.
    timed: bool,
    /// The most scope groups that were open at a time.
    groups_peak: usize,
    /// Messages processed in this run.
    messages: u64,
    /// The operator whose error ended the run.
    failed: Option<OpId>,
}

impl OperatorStats {
    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: &OperatorStats) {
        self.messages += other.messages;
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        self.nanos += other.nanos;
    }
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
        let stats = vec![OperatorStats::default(); operators.len()];
        let work = Work {
            operators,
            router: Router::new(node, nodes, topology),
            context: Arc::new(None),
            sharing: None,
            stats,
            timed: false,
            groups_peak: 0,
            messages: 0,
            failed: None,
        };
        NodeRuntime { control, work }
    }

    /// Begins a run: calls [`crate::Operator::begin`] of every operator. After an error the runtime must be dropped.
    pub fn begin(&mut self, context: B::Context) -> Result<()> {
        match Arc::get_mut(&mut self.work.context) {
            Some(slot) => *slot = Some(context),
            None => self.work.context = Arc::new(Some(context)),
        }
        let Some(context) = &*self.work.context else { return Ok(()) };
        self.work.operators.iter_mut().try_for_each(|operator| operator.begin(context))
    }

    /// Opens the run for helpers. For a run on one node, at most once.
    pub fn open(&mut self, sharers: Sharers) -> OpenRun<B> {
        let board = Arc::new(Board::new());
        self.work.router.groups.note_changes();
        self.work.sharing = Some(Box::new(Sharing::new(board.clone(), sharers.clone())));
        OpenRun {
            board,
            context: Arc::downgrade(&self.work.context),
            control: self.control.clone(),
            topology: self.work.router.topology.clone(),
            local: self.work.operators.iter().map(AnyOperator::is_local).collect(),
            sharers,
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
            sharing.wait(at_most);
        }
    }

    /// Closes an open run: waits until no helper is in the middle of a turn. Returns what the helpers did.
    pub fn close(&mut self) -> HelperStats {
        match self.work.sharing.take() {
            Some(sharing) => {
                let board = sharing.board().clone();
                drop(sharing);
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
        (self.work.groups_peak, self.work.messages, self.work.timed, self.work.failed) = (0, 0, false, None);
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

    /// Processes messages until there are results, `quota` messages are processed, or no work is left. After an error
    /// the runtime must be dropped (FLOW-15).
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

    /// Returns the number of scope groups opened so far, the most that were open at a time, and the number of single
    /// instances that were cancelled.
    pub fn scope_counts(&self) -> (u64, u64, u64) {
        (self.work.router.groups.opened(), self.work.groups_peak as u64, self.work.router.tags_cancelled)
    }
}

impl<B: Batch> Work<B> {
    /// The work of a helper.
    pub fn helping(
        topology: Arc<Topology>,
        operators: Vec<AnyOperator<B>>,
        context: Arc<Option<B::Context>>,
        local: Arc<[bool]>,
        timed: bool,
    ) -> Self {
        let stats = vec![OperatorStats::default(); operators.len()];
        let mut router = Router::new(0, 1, topology);
        router.local = Some(local);
        Work { operators, router, context, sharing: None, stats, timed, groups_peak: 0, messages: 0, failed: None }
    }

    /// On a helper: begins the run at the operators that it uses.
    pub fn begin_local(&mut self) -> Result<()> {
        let Some(context) = &*self.context else { return Err(Error::bug("a run has begun before it is open")) };
        let mut local = self.operators.iter_mut().filter(|operator| operator.is_local());
        local.try_for_each(|operator| operator.begin(context))
    }

    /// On a helper: lets its passing operators send what they hold. Returns true if messages wait then.
    pub fn flush(&mut self, control: &Arc<QueryControl>) -> Result<bool> {
        if mutation::is_set(Mutation::PassingOperatorKeepsRows) {
            return Ok(false);
        }
        for id in 0..self.operators.len() as OpId {
            if let AnyOperator::Stateful(operator) = &self.operators[id as usize]
                && operator.is_passing()
            {
                let flush = |operator: &mut AnyOperator<B>, out: &mut Output<'_, B>| {
                    operator.flush(out)?;
                    Ok(Step::Done)
                };
                let _done = self.call(id, control, flush)?;
            }
        }
        Ok(self.router.next_ready().is_some())
    }

    /// The counts of this thread.
    fn own_stats(&self) -> Vec<OperatorStats> {
        let rows_out = &self.router.rows_out;
        self.stats.iter().zip(rows_out).map(|(stats, rows)| OperatorStats { rows_out: *rows, ..*stats }).collect()
    }

    /// On a helper: hands its counts over to the board.
    pub fn account(&mut self, board: &Board<B>, nanos: u64) {
        board.account(nanos, &self.own_stats());
        self.stats.fill(OperatorStats::default());
        self.router.rows_out.fill(0);
    }

    /// On a helper: the operator whose error ended its work.
    pub fn failed(&self) -> Option<OpId> {
        self.failed
    }

    /// On the home: a helper has failed at this operator.
    pub fn fail_at(&mut self, operator: Option<OpId>) {
        self.failed = operator;
    }

    /// See [`NodeRuntime::run`].
    pub fn run(&mut self, control: &Arc<QueryControl>, quota: usize) -> Result<Progress> {
        for _ in 0..quota {
            if !self.router.results.is_empty() {
                return Ok(Progress::Results);
            }
            if self.sharing.is_some() {
                self.meet_helpers(control)?;
            }
            // FLOW-14: the router knows the order.
            let Some(operator) = self.router.next_ready() else {
                return Ok(match self.router.complete {
                    true => Progress::Complete,
                    false if self.sharing.as_ref().is_some_and(|sharing| sharing.is_away()) => Progress::Waiting,
                    false => Progress::Idle,
                });
            };
            control.check_at(self.messages)?;
            self.messages += 1;
            self.step(operator, control)?;
            self.router.update_ready(operator);
        }
        Ok(if self.router.results.is_empty() { Progress::Yielded } else { Progress::Results })
    }

    /// Calls an operator once, with its next message.
    fn step(&mut self, id: OpId, control: &Arc<QueryControl>) -> Result<()> {
        let at = id as usize;
        let started = if self.timed { control.clock().now_nanos() } else { 0 };
        if let Some(message) = self.router.next_message(id) {
            self.take(id, message, control)?;
        }
        if self.timed {
            self.stats[at].nanos += control.clock().now_nanos().saturating_sub(started);
        }
        Ok(())
    }

    /// Gives a message to its operator. If it completes its group at the port, the end follows (FLOW-3). If work is
    /// left, the message waits with its cursor (FLOW-2).
    fn take(&mut self, id: OpId, mut message: Box<Message<B>>, control: &Arc<QueryControl>) -> Result<()> {
        let Message { port, group, body, cursor, .. } = &mut *message;
        let (port, group) = (*port, *group);
        let closed = match body {
            Body::Data { batch, charged } => {
                control.release(*charged + cursor.bytes());
                if self.take_batch(id, port, group, batch, cursor, control)? == Step::More {
                    return self.router.put_back(message, control);
                }
                *cursor = Cursor::default();
                self.router.count_received(id, port, group)
            }
            Body::End { messages, instances } => {
                let (messages, instances) = (*messages, *instances);
                if let Some(sharing) = &mut self.sharing
                    && sharing.is_token_away(Token { operator: id, group })
                    && !mutation::is_set(Mutation::EndOvertakesParcels)
                {
                    sharing.park(message);
                    return Ok(());
                }
                self.router.count_end(id, port, group, messages, instances)
            }
            Body::Closing { instances } => Some(*instances),
        };
        if let Some(instances) = closed {
            let end = |operator: &mut AnyOperator<B>, out: &mut Output<'_, B>| {
                operator.finish(port, group, instances, cursor, out)
            };
            if self.call(id, control, end)? == Step::More {
                *body = Body::Closing { instances };
                return self.router.put_back(message, control);
            }
        }
        self.router.worked_off(message);
        Ok(())
    }

    /// Gives a batch to its operator, without the rows whose work is cancelled.
    fn take_batch(
        &mut self,
        id: OpId,
        port: u8,
        group: GroupId,
        batch: &mut Option<B>,
        cursor: &mut Cursor,
        control: &Arc<QueryControl>,
    ) -> Result<Step> {
        let Some(input) = batch else { return Ok(Step::Done) };
        // FLOW-7: only rows are dropped here; ends do not come here.
        match self.router.groups.disposition(group, id) {
            Disposition::Drop => return Ok(Step::Done),
            Disposition::DropTags(tags) => input.discard(tags, cursor),
            Disposition::Deliver => {}
        }
        let rows = input.rows() as u64;
        if rows == 0 {
            return Ok(Step::Done);
        }
        if cursor.is_start() {
            let stats = &mut self.stats[id as usize];
            stats.messages += 1;
            stats.rows_in += rows;
        }
        self.call(id, control, |operator, out| operator.step(port, group, batch, cursor, out))
    }

    /// Calls an operator, and notes whether it has failed.
    fn call(
        &mut self,
        id: OpId,
        control: &Arc<QueryControl>,
        work: impl FnOnce(&mut AnyOperator<B>, &mut Output<'_, B>) -> Result<Step>,
    ) -> Result<Step> {
        let context = self.context.as_ref().as_ref().ok_or_else(|| Error::bug("a run has begun before it runs"))?;
        let mut out = Output { router: &mut self.router, control, context, operator: id };
        let outcome = work(&mut self.operators[id as usize], &mut out);
        let outcome = if watch::is_interrupted() { ended(control) } else { outcome };
        if outcome.is_err() {
            self.failed = Some(id);
            return outcome;
        }
        self.groups_peak = self.groups_peak.max(self.router.groups.open_count());
        if let Some(sharing) = &self.sharing {
            sharing.publish(&mut self.router.groups);
        }
        outcome
    }
}

/// Returns the error of a run whose comparisons were interrupted. Their results mean nothing, so the outcome of the
/// call is discarded, too.
#[cold]
fn ended(control: &QueryControl) -> Result<Step> {
    control.check()?;
    Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"))
}
