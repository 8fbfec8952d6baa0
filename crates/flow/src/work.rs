//! The work of one thread on a run: it takes messages out of inboxes and gives them to operators.
//!
//! The home of a run has all operators and all state. A helper has replicas, and uses those without state
//! ([`crate::Helper`]). If the view of the run may be late, both ask it before each step (`late`).
//!
//! | module | holds |
//! |---|---|
//! | here | the loop, and the calls of operators |
//! | `parcels` | what a thread of an open run shares with the others |
//! | `parts` | parts of an end that any thread works off |
//! | `waits` | messages that wait for reads |
//!
//! - **FLOW-14.** The operator that runs next is the ready one with the highest number. But a message that returns from
//!   a scope to the scope's own operator goes before all others.
//!
//! The first rule makes processing depth first: barriers hold most of the memory, and the first results come early. By
//! the second rule, the operator of a scope sees the result that decides an instance at once, and the work that is left
//! for the instance is cancelled instead of done. (By number alone it would see the first result only after the
//! operators inside, whose numbers are higher, have made the last one.)

mod parcels;
mod parts;
mod waits;

use std::sync::Arc;

use mangrove_graph::compare::watch;
use mangrove_graph::{Error, ErrorKind, Result};

use crate::any_operator::AnyOperator;
use crate::asking::{Answer, Asking, Wait};
use crate::batch::Batch;
use crate::board::Token;
use crate::cancel::{Cancellation, Disposition};
use crate::control::QueryControl;
use crate::cursor::{Cursor, Step};
use crate::group::{GroupId, NodeId};
use crate::heavy::{Apart, HeavyInstance};
use crate::lanes::Place;
use crate::message::{Body, Message};
use crate::mutation::{self, Mutation};
use crate::operator::Output;
use crate::router::Router;
use crate::sharing::Sharing;
use crate::stats::OperatorStats;
use crate::topology::{OpId, Topology};

/// The outcome of a call of [`crate::NodeRuntime::run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Results wait to be taken.
    Results,
    /// The quota is used up and work is left.
    Yielded,
    /// No work is left until another node sends a message.
    Idle,
    /// No work is left until a helper sends a message or a read is completed ([`crate::NodeRuntime::wait`]).
    Waiting,
    /// The query is complete and all results are taken.
    Complete,
}

/// The rows of a message that count as a unit of work.
const UNIT_ROWS: u64 = 128;

scoped_tls::scoped_thread_local! {
    /// The query that this thread runs: comparisons of large values ask it whether to stop.
    pub(crate) static RUNNING: QueryControl
}

/// Returns true if the query of this thread has ended.
pub(crate) fn has_ended() -> bool {
    RUNNING.is_set() && RUNNING.with(|control| control.check().is_err())
}

/// The runtime without its control. The thread of the run reads the control while it changes this.
pub(crate) struct Work<B: Batch> {
    pub operators: Vec<AnyOperator<B>>,
    pub router: Router<B>,
    /// `None` between runs. Shared with the helpers of the run, which end before the run does.
    pub context: Arc<Option<B::Context>>,
    /// On the home of an open run: the work that is shared with helpers.
    pub sharing: Option<Box<Sharing<B>>>,
    /// In a run whose view may be late: how to ask it.
    pub asking: Option<Box<Asking<B>>>,
    pub stats: Vec<OperatorStats>,
    /// True if the time inside operators is measured.
    pub timed: bool,
    /// The most scope groups that were open at a time.
    pub groups_peak: usize,
    /// Messages processed in this run.
    pub messages: u64,
    /// Units of work done in this run: one for each message, and one for each [`UNIT_ROWS`] rows that it brings.
    pub units: u64,
    /// The operator whose error ended the run.
    pub failed: Option<OpId>,
}

impl<B: Batch> Work<B> {
    /// The work of a node, between runs.
    pub fn new(node: NodeId, nodes: u16, topology: Arc<Topology>, operators: Vec<AnyOperator<B>>) -> Self {
        let stats = vec![OperatorStats::default(); operators.len()];
        Work {
            operators,
            router: Router::new(node, nodes, topology),
            context: Arc::new(None),
            sharing: None,
            asking: None,
            stats,
            timed: false,
            groups_peak: 0,
            messages: 0,
            units: 0,
            failed: None,
        }
    }

    /// The counts of this thread.
    pub fn own_stats(&self) -> Vec<OperatorStats> {
        let rows_out = &self.router.rows_out;
        self.stats.iter().zip(rows_out).map(|(stats, rows)| OperatorStats { rows_out: *rows, ..*stats }).collect()
    }

    /// See [`crate::NodeRuntime::run`].
    pub fn run(&mut self, control: &Arc<QueryControl>, quota: usize) -> Result<Progress> {
        // One branch for all messages: a run without late reads pays nothing for them.
        if self.asking.is_some() { self.run_as::<true>(control, quota) } else { self.run_as::<false>(control, quota) }
    }

    /// As [`Work::run`]. `LATE` is true if the view may be late.
    fn run_as<const LATE: bool>(&mut self, control: &Arc<QueryControl>, quota: usize) -> Result<Progress> {
        let until = self.units.saturating_add(quota as u64);
        while self.units < until {
            if !self.router.results.is_empty() {
                return Ok(Progress::Results);
            }
            if self.sharing.is_some() {
                self.meet_helpers(control)?;
            }
            // FLOW-14: the router knows the order.
            let next = if LATE { self.next_callable() } else { self.router.next_ready() };
            let Some(place) = next else {
                if self.router.complete {
                    return Ok(Progress::Complete);
                }
                if self.sharing.as_ref().is_some_and(|sharing| sharing.is_away()) {
                    // A run that waits takes no message, before which it would look at its limits.
                    control.check()?;
                    return Ok(Progress::Waiting);
                }
                return Ok(Progress::Idle);
            };
            control.check_at(self.messages)?;
            self.messages += 1;
            self.units += 1;
            self.step::<LATE>(place, control)?;
            self.router.end_call(place, control);
        }
        Ok(if self.router.results.is_empty() { Progress::Yielded } else { Progress::Results })
    }

    /// Calls an operator once, with its next message.
    fn step<const LATE: bool>(&mut self, place: Place, control: &Arc<QueryControl>) -> Result<()> {
        let at = place.operator as usize;
        let started = if self.timed { control.clock().now_nanos() } else { 0 };
        if let Some(message) = self.router.begin_call(place, control) {
            self.take::<LATE>(place, message, control)?;
        }
        if self.timed {
            self.stats[at].nanos += control.clock().now_nanos().saturating_sub(started);
        }
        Ok(())
    }

    /// Gives a message to its operator. If it completes its group at the port, the end follows (FLOW-3). If work is
    /// left, the message waits with its cursor (FLOW-2).
    fn take<const LATE: bool>(
        &mut self,
        place: Place,
        mut message: Box<Message<B>>,
        control: &Arc<QueryControl>,
    ) -> Result<()> {
        let id = place.operator;
        if message.is_data() {
            let before = unfinished_row(&message);
            let taken = self.take_batch::<LATE>(id, &mut message, control)?;
            if LATE {
                // FLOW-31: a hold serves one step.
                message.hold = None;
            }
            match taken {
                Taken::Done => {
                    if self.router.topology.sets_all_apart()
                        && let Some(heavy) = before.and_then(|(group, tag)| self.router.groups.as_heavy(group, tag))
                    {
                        // The message is worked off, so none steps aside.
                        self.begin_again(heavy, control)?;
                    }
                    message.cursor = Cursor::default();
                }
                Taken::More => {
                    let heavy = self.heavy_instances(before, &message);
                    self.router.put_back(place.lane, message, control)?;
                    return self.set_apart(heavy, place, control);
                }
                Taken::Waits(wait) => return self.wait(message, wait, control),
            }
        }
        let Message { port, group, body, cursor, .. } = &mut *message;
        let (port, group) = (*port, *group);
        let closed = match body {
            Body::Data { .. } => self.router.count_received(id, port, group),
            Body::End { messages, instances } => {
                let (messages, instances) = (*messages, *instances);
                if let Some(sharing) = &mut self.sharing
                    && sharing.is_token_away(Token { operator: id, group })
                    && !mutation::is_set(Mutation::EndOvertakesParcels)
                {
                    sharing.park(place.lane, message);
                    return Ok(());
                }
                self.router.count_end(id, port, group, messages, instances)
            }
            Body::Closing { instances } => Some(*instances),
            Body::Part { .. } => return self.take_part(place, message, control),
        };
        if let Some(instances) = closed {
            let end = |operator: &mut AnyOperator<B>, out: &mut Output<'_, B>| {
                operator.finish(port, group, instances, cursor, out)
            };
            let step = self.call(id, control, end)?;
            if !self.router.handed_out.is_empty() {
                return self.wait_for_parts(place, message, instances, step, control);
            }
            if step == Step::More {
                *body = Body::Closing { instances };
                return self.router.put_back(place.lane, message, control);
            }
        }
        self.router.worked_off(message);
        Ok(())
    }

    /// Returns a heavy instance that a step has not finished a message of, and the heavy ones that it is nested in.
    /// `before` is the instance that the step began with.
    fn heavy_instances(&mut self, before: Option<(GroupId, u32)>, message: &Message<B>) -> Vec<HeavyInstance> {
        let after = unfinished_row(message);
        if self.router.topology.sets_all_apart() {
            let heavy = after.and_then(|(group, tag)| self.router.groups.as_heavy(group, tag));
            return heavy.into_iter().collect();
        }
        match after {
            // The rows of an instance are neighbors in a message, so the step has worked for this one only.
            Some((group, tag)) if before == after => self.router.groups.count_step(group, tag),
            _ => Vec::new(),
        }
    }

    /// Sets the outermost of the heavy instances apart from the others of its group whose scope allows that (FLOW-44).
    /// `place` is that of its message.
    fn set_apart(&mut self, heavy: Vec<HeavyInstance>, place: Place, control: &Arc<QueryControl>) -> Result<()> {
        for heavy in heavy.into_iter().rev() {
            self.router.groups.found_heavy(heavy);
            match self.begin_again(heavy, control)? {
                Apart::BeginsAgain => return Ok(()),
                Apart::HasResults => return self.router.step_aside(place, control),
                Apart::Stays => {}
            }
        }
        Ok(())
    }

    /// Lets a heavy instance begin again in a group of its own, if its scope allows that.
    fn begin_again(&mut self, heavy: HeavyInstance, control: &Arc<QueryControl>) -> Result<Apart> {
        let HeavyInstance { group, tag, scope } = heavy;
        let mut apart = Apart::Stays;
        let _done = self.call(scope, control, |operator, out| {
            if let AnyOperator::Stateful(operator) = operator {
                apart = operator.set_apart(group, tag, out)?;
            }
            Ok(Step::Done)
        })?;
        self.router.set_apart += u64::from(apart == Apart::BeginsAgain);
        Ok(apart)
    }

    /// Gives a batch to its operator, without the rows whose work is cancelled.
    fn take_batch<const LATE: bool>(
        &mut self,
        id: OpId,
        message: &mut Message<B>,
        control: &Arc<QueryControl>,
    ) -> Result<Taken> {
        let Message { port, group, body, cursor, hold, .. } = message;
        let (port, group) = (*port, *group);
        let Body::Data { batch, charged } = body else { return Ok(Taken::Done) };
        control.release(*charged + cursor.bytes());
        let Some(input) = batch else { return Ok(Taken::Done) };
        // FLOW-7: only rows are dropped here; ends do not come here.
        match self.router.groups.disposition(group, id) {
            Disposition::Drop => return Ok(Taken::Done),
            Disposition::DropTags(tags) => input.discard(&tags, cursor),
            Disposition::Deliver => {}
        }
        let rows = input.rows() as u64;
        if rows == 0 {
            return Ok(Taken::Done);
        }
        if LATE && hold.is_none() {
            match self.ask(id, port, input, cursor, control)? {
                Answer::Go(ready) => *hold = ready,
                Answer::Wait(wait) => return Ok(Taken::Waits(wait)),
            }
        }
        if LATE && mutation::is_set(Mutation::HoldIsDroppedEarly) {
            *hold = None;
        }
        if cursor.is_start() {
            let stats = &mut self.stats[id as usize];
            stats.messages += 1;
            stats.rows_in += rows;
            self.units += rows / UNIT_ROWS;
        }
        let step = self.call(id, control, |operator, out| operator.step(port, group, batch, cursor, out))?;
        Ok(if step == Step::More { Taken::More } else { Taken::Done })
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
        if self.router.groups.has_fresh() {
            self.carry_out_cancellations(control);
        }
        if let Some(sharing) = &mut self.sharing {
            let changed = sharing.publish(&mut self.router.groups);
            if !changed.is_empty() && self.asking.is_some() {
                self.forget_cancelled(&changed, control);
            }
        }
        outcome
    }

    /// Carries out what a call has cancelled: in nested groups (FLOW-40), in the state of operators, and in inboxes
    /// (FLOW-41).
    pub(crate) fn carry_out_cancellations(&mut self, control: &Arc<QueryControl>) {
        let Some(context) = &*self.context else { return };
        let reached = self.router.groups.descend();
        for (group, Cancellation { operators, tags }) in &reached {
            for id in operators.start..operators.end.min(self.operators.len() as OpId) {
                let AnyOperator::Stateful(operator) = &mut self.operators[id as usize] else { continue };
                if self.router.groups.may_be_at(*group, self.router.topology.scope_around(id))
                    && !mutation::is_set(Mutation::StateOutlivesCancellation)
                {
                    let out = Output { router: &mut self.router, control, context, operator: id };
                    operator.cancelled(*group, tags.as_ref(), &out);
                }
            }
            if tags.is_none() && !mutation::is_set(Mutation::MessagesOutliveCancellation) {
                self.router.drop_batches(*group, operators.clone(), control);
            }
        }
        self.router.groups.give_back(reached);
    }
}

/// Returns the scope group and the tag of the row at hand of a batch, if there is one and it is in a scope.
fn unfinished_row<B: Batch>(message: &Message<B>) -> Option<(GroupId, u32)> {
    let Message { group, body: Body::Data { batch: Some(batch), .. }, cursor, .. } = message else { return None };
    let at = cursor.row as usize;
    (*group != GroupId::ROOT && at < batch.rows()).then(|| (*group, batch.tag(at)))
}

/// The outcome of giving a message to its operator.
enum Taken {
    /// It is worked off.
    Done,
    /// Work is left.
    More,
    /// What its next step reads is not at hand.
    Waits(Wait),
}

/// Returns the error of a run whose comparisons were interrupted. Their results mean nothing, so the outcome of the
/// call is discarded, too.
#[cold]
fn ended(control: &QueryControl) -> Result<Step> {
    control.check()?;
    Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"))
}
