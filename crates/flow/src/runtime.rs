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
use mangrove_graph::{Error, ErrorKind, FastMap, FastSet, Result};

use crate::any_operator::AnyOperator;
use crate::batch::Batch;
use crate::board::{Board, Homebound, Parcel, Token};
use crate::control::QueryControl;
use crate::cursor::{Cursor, Step};
use crate::group::{Disposition, GroupId, NodeId};
use crate::helper::OpenRun;
use crate::operator::Output;
use crate::router::{Body, Message, Router};
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
    operators: Vec<AnyOperator<B>>,
    pub router: Router<B>,
    /// `None` between runs. Shared with the helpers of the run, which end before the run does.
    context: Arc<Option<B::Context>>,
    /// The work that is shared with helpers, if the run is open.
    sharing: Option<Box<Sharing<B>>>,
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

/// What an open run knows of the work that it has shared.
struct Sharing<B: Batch> {
    /// `None` on a helper.
    board: Option<Arc<Board<B>>>,
    /// For each operator, true if messages at it may be shared.
    stealable: Arc<[bool]>,
    /// The tokens with parcels that are not worked off.
    away: FastSet<Token>,
    /// The ends that wait for them (FLOW-21).
    parked: FastMap<Token, Box<Message<B>>>,
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

    /// Opens the run for helpers. `stealable`: for each operator, true if it is a kernel whose messages may be worked
    /// off in any order. For a run on one node only.
    pub fn open(&mut self, stealable: Arc<[bool]>) -> OpenRun<B> {
        let kernels: Arc<[bool]> = self.work.operators.iter().map(AnyOperator::is_kernel).collect();
        let board = Arc::new(Board::new());
        self.work.sharing = Some(Box::new(Sharing {
            board: Some(board.clone()),
            stealable,
            away: FastSet::default(),
            parked: FastMap::default(),
        }));
        OpenRun {
            board,
            context: Arc::downgrade(&self.work.context),
            control: self.control.clone(),
            topology: self.work.router.topology.clone(),
            kernels,
        }
    }

    /// Waits for a moment until a helper sends a message.
    pub fn wait(&self) {
        if let Some(board) = self.work.sharing.as_ref().and_then(|sharing| sharing.board.as_ref()) {
            board.wait_at_home(Duration::from_millis(1));
        }
    }

    /// Closes an open run: waits until its helpers have left.
    pub fn close(&mut self) {
        self.work.sharing = None;
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
        Arc::get_mut(&mut self.work.context).and_then(Option::take)
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
        let rows_out = &self.work.router.rows_out;
        self.work.stats.iter().zip(rows_out).map(|(stats, rows)| OperatorStats { rows_out: *rows, ..*stats }).collect()
    }

    /// Returns the number of scope groups opened so far, the most that were open at a time, and the number of single
    /// instances that were cancelled.
    pub fn scope_counts(&self) -> (u64, u64, u64) {
        (self.work.router.groups.opened(), self.work.groups_peak as u64, self.work.router.tags_cancelled)
    }
}

/// Helpers leave before the run ends, whatever its outcome.
impl<B: Batch> Drop for Sharing<B> {
    fn drop(&mut self) {
        if let Some(board) = &self.board {
            board.end();
        }
    }
}

impl<B: Batch> Work<B> {
    /// The work of a helper.
    pub fn helping(
        topology: Arc<Topology>,
        operators: Vec<AnyOperator<B>>,
        context: Arc<Option<B::Context>>,
        kernels: Arc<[bool]>,
    ) -> Self {
        let stats = vec![OperatorStats::default(); operators.len()];
        let mut router = Router::new(0, 1, topology);
        router.kernels = Some(kernels);
        Work {
            operators,
            router,
            context,
            sharing: None,
            stats,
            timed: false,
            groups_peak: 0,
            messages: 0,
            failed: None,
        }
    }

    /// Begins a run on a helper.
    pub fn begin_kernels(&mut self) -> Result<()> {
        let Some(context) = &*self.context else { return Err(Error::bug("a run has begun before it is open")) };
        let kernels = self.operators.iter_mut().filter(|operator| operator.is_kernel());
        kernels.into_iter().try_for_each(|kernel| kernel.begin(context))
    }

    /// Returns true if parcels are not worked off.
    fn is_away(&self) -> bool {
        self.sharing.as_ref().is_some_and(|sharing| !sharing.away.is_empty())
    }

    /// Receives what helpers have sent, and shares work if somebody is hungry.
    fn meet_helpers(&mut self) -> Result<()> {
        let Some(sharing) = &mut self.sharing else { return Ok(()) };
        let Some(board) = sharing.board.clone() else { return Ok(()) };
        if board.has_arrivals() {
            for arrival in board.receive() {
                match arrival {
                    Homebound::Message(message) => self.router.accept_shared(message),
                    Homebound::Failed(error) => return Err(error),
                    Homebound::Done(token) => {
                        sharing.away.remove(&token);
                        if let Some(end) = sharing.parked.remove(&token) {
                            self.router.accept_shared(end);
                        }
                    }
                }
            }
        }
        if self.router.next_ready().is_none() && self.is_away() {
            // The home works off itself what nobody has taken.
            if let Some(Parcel { token, message }) = board.take_back() {
                self.router.accept_shared(message);
                board.worked_off(token);
            }
        } else if board.is_somebody_hungry() {
            self.share(&board, None);
        }
        Ok(())
    }

    /// Offers a part of the messages that wait at kernels. On a helper, they belong to the token of its parcel.
    pub fn share(&mut self, board: &Board<B>, token: Option<Token>) {
        let kernels = self.router.kernels.clone();
        let stealable = kernels.or_else(|| self.sharing.as_ref().map(|sharing| sharing.stealable.clone()));
        let Some(stealable) = stealable else { return };
        let messages = self.router.take_half(&stealable);
        let parcels: Vec<Parcel<B>> = messages
            .into_iter()
            .map(|message| {
                let own = Token { operator: message.operator, group: message.group };
                Parcel { token: token.unwrap_or(own), message }
            })
            .collect();
        if let Some(sharing) = &mut self.sharing {
            sharing.away.extend(parcels.iter().map(|parcel| parcel.token));
        }
        if !parcels.is_empty() {
            board.offer(parcels);
        }
    }

    pub fn run(&mut self, control: &Arc<QueryControl>, quota: usize) -> Result<Progress> {
        for _ in 0..quota {
            if !self.router.results.is_empty() {
                return Ok(Progress::Results);
            }
            if self.sharing.is_some() {
                self.meet_helpers()?;
            }
            // FLOW-14: the router knows the order.
            let Some(operator) = self.router.next_ready() else {
                return Ok(match self.router.complete {
                    true => Progress::Complete,
                    false if self.is_away() => Progress::Waiting,
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
                    && sharing.away.contains(&Token { operator: id, group })
                {
                    // FLOW-21: the end waits until the parcels are worked off.
                    sharing.parked.insert(Token { operator: id, group }, message);
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
