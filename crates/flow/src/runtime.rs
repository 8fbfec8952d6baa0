//! One node's part of a running query: it calls operators until nothing is left to do.
//!
//! Which operator is next: the one nearest to the result that has something to do. So a stream is worked
//! off depth first, memory stays bounded by what barriers hold, and the first results come early. But what comes back
//! from a scope to the scope's own operator goes before everything: it may decide an instance, and all that its scope
//! still has to do for it is then cancelled instead of done.
//!
//! A runtime serves one run after the other: [`NodeRuntime::begin`] gives a run its surroundings, [`NodeRuntime::rest`]
//! takes leave of a complete one. What stays is what is costly to make: operators, queues, tables. A run that failed or
//! was left before its end leaves rows behind anywhere; its runtime is dropped, not cleaned.

use std::sync::Arc;

use mangrove_graph::compare::watch;
use mangrove_graph::{Error, ErrorKind, Result};

use crate::group::{Fate, GroupId, NodeId};
use crate::limits::QueryContext;
use crate::operator::{Batch, Operator, Output};
use crate::router::{Body, Message, Router};
use crate::topology::{OpId, Topology};

/// How far a call of [`NodeRuntime::run`] came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Results are waiting to be taken.
    Results,
    /// The quota is used up and there is more to do.
    Yielded,
    /// Nothing to do until another node sends something.
    Idle,
    /// The query is complete and all results are taken.
    Complete,
}

/// What an operator did, for `profile()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorStats {
    /// Messages taken.
    pub messages: u64,
    /// Rows taken.
    pub rows_in: u64,
    /// Rows sent.
    pub rows_out: u64,
    /// Nanoseconds inside the operator; 0 unless timing was asked for.
    pub nanos: u64,
}

scoped_tls::scoped_thread_local! {
    /// The query that this thread runs.
    static RUNNING: QueryContext
}

/// Whether the query of this thread has ended.
fn has_ended() -> bool {
    RUNNING.is_set() && RUNNING.with(|context| context.check().is_err())
}

/// One node's part of a running query.
pub struct NodeRuntime<B: Batch> {
    context: Arc<QueryContext>,
    work: Work<B>,
}

/// All of it but limits and clock, which its thread looks at while it changes the rest.
struct Work<B: Batch> {
    operators: Vec<Box<dyn Operator<B>>>,
    router: Router<B>,
    /// Of the run; absent between runs.
    surroundings: Option<B::Surroundings>,
    stats: Vec<OperatorStats>,
    timed: bool,
    groups_peak: usize,
    messages: u64,
    /// The operator whose error ended the run.
    failed: Option<OpId>,
}

impl<B: Batch> NodeRuntime<B> {
    /// A node's part: one operator for each of the topology's, in order.
    pub fn new(
        node: NodeId,
        nodes: u16,
        topology: Arc<Topology>,
        operators: Vec<Box<dyn Operator<B>>>,
        context: Arc<QueryContext>,
    ) -> Self {
        assert_eq!(operators.len(), topology.len(), "one operator for each of the topology's");
        assert!(node < nodes, "node {node} of {nodes}");
        let stats = vec![OperatorStats::default(); operators.len()];
        let work = Work {
            operators,
            router: Router::new(node, nodes, topology),
            surroundings: None,
            stats,
            timed: false,
            groups_peak: 0,
            messages: 0,
            failed: None,
        };
        NodeRuntime { context, work }
    }

    /// Begins a run: tells the operators. A runtime whose operators refuse is of no more use.
    pub fn begin(&mut self, surroundings: B::Surroundings) -> Result<()> {
        let surroundings = self.work.surroundings.insert(surroundings);
        self.work.operators.iter_mut().try_for_each(|operator| operator.begin(surroundings))
    }

    /// Ends a run that is complete: gives back its surroundings, and says whether the runtime may [`NodeRuntime::begin`]
    /// another one. It may not where the run has left anything behind.
    pub fn rest(&mut self) -> (Option<B::Surroundings>, bool) {
        let mut is_clean = self.work.router.reset();
        for operator in &mut self.work.operators {
            is_clean &= operator.rest();
        }
        self.work.stats.fill(OperatorStats::default());
        (self.work.groups_peak, self.work.messages, self.work.timed, self.work.failed) = (0, 0, false, None);
        (self.work.surroundings.take(), is_clean)
    }

    /// Limits and clock of the run.
    pub fn context(&self) -> &QueryContext {
        &self.context
    }

    /// Limits and clock of the run, shared with the thread that reads its results.
    pub fn context_shared(&self) -> Arc<QueryContext> {
        self.context.clone()
    }

    /// The same, to be renewed between runs.
    pub fn context_mut(&mut self) -> &mut Arc<QueryContext> {
        &mut self.context
    }

    /// What the run's operators may look at.
    pub fn surroundings(&self) -> Option<&B::Surroundings> {
        self.work.surroundings.as_ref()
    }

    /// Takes the surroundings of a run that goes no further: it lets go of all that is not its own.
    pub fn leave(&mut self) -> Option<B::Surroundings> {
        self.work.surroundings.take()
    }

    /// Measures the time inside each operator of this run from now on: two clock reads a message.
    pub fn measure_time(&mut self) {
        self.work.timed = true;
        self.context.count_time();
    }

    /// Starts the query: operator 0 gets one batch in the root group, and its end. Only on node 0.
    pub fn start(&mut self, batch: B) -> Result<()> {
        let message = |body| Message { operator: 0, port: 0, group: GroupId::ROOT, body };
        self.work.router.enqueue(message(Body::data(batch)), &self.context)?;
        self.work.router.enqueue(message(Body::End { messages: 1, instances: 1 }), &self.context)
    }

    /// How many messages were worked off so far; going on with unfinished work counts as one.
    pub fn messages(&self) -> u64 {
        self.work.messages
    }

    /// Works until there are results, `quota` messages are worked off, or nothing is left to do.
    pub fn run(&mut self, quota: usize) -> Result<Progress> {
        let _watch = watch::begin(has_ended);
        let NodeRuntime { context, work } = self;
        RUNNING.set(context, || work.run(context, quota))
    }

    /// The next batch of results.
    pub fn take_results(&mut self) -> Option<B> {
        self.work.router.results.pop_front()
    }

    /// Frames for other nodes, each with its receiver.
    pub fn take_outbox(&mut self) -> Vec<(NodeId, Vec<u8>)> {
        std::mem::take(&mut self.work.router.outbox)
    }

    /// Takes in a frame from another node.
    pub fn accept(&mut self, frame: &[u8]) -> Result<()> {
        self.work.router.accept(frame, &self.context)
    }

    /// The operator whose error ended the run.
    pub fn failed_operator(&self) -> Option<OpId> {
        self.work.failed
    }

    /// What each operator did.
    pub fn stats(&self) -> Vec<OperatorStats> {
        let rows_out = &self.work.router.rows_out;
        self.work.stats.iter().zip(rows_out).map(|(stats, rows)| OperatorStats { rows_out: *rows, ..*stats }).collect()
    }

    /// Scope groups made so far, the most that lived at a time, and single instances cancelled early.
    pub fn scope_counts(&self) -> (u64, u64, u64) {
        (self.work.router.groups.made(), self.work.groups_peak as u64, self.work.router.tags_cancelled)
    }
}

impl<B: Batch> Work<B> {
    fn run(&mut self, context: &Arc<QueryContext>, quota: usize) -> Result<Progress> {
        for _ in 0..quota {
            if !self.router.results.is_empty() {
                return Ok(Progress::Results);
            }
            let Some(operator) = self.router.next_ready() else {
                return Ok(if self.router.complete { Progress::Complete } else { Progress::Idle });
            };
            context.check_at(self.messages)?;
            self.messages += 1;
            self.step(operator, context)?;
            self.router.settle(operator);
        }
        Ok(if self.router.results.is_empty() { Progress::Yielded } else { Progress::Results })
    }

    fn step(&mut self, id: OpId, context: &Arc<QueryContext>) -> Result<()> {
        let at = id as usize;
        let started = if self.timed { context.clock().now_nanos() } else { 0 };
        if self.router.inboxes[at].unfinished {
            self.call(id, context, |operator, out| operator.resume(out))?;
        } else if let Some(message) = self.router.next_message(id) {
            self.take(id, message, context)?;
        }
        if self.timed {
            self.stats[at].nanos += context.clock().now_nanos().saturating_sub(started);
        }
        Ok(())
    }

    fn take(&mut self, id: OpId, message: Message<B>, context: &Arc<QueryContext>) -> Result<()> {
        let Message { port, group, body, .. } = message;
        let closed = match body {
            Body::Data { batch, charged } => {
                context.release(charged);
                self.take_batch(id, port, group, batch, context)?;
                self.router.count_received(id, port, group)
            }
            Body::End { messages, instances } => self.router.count_end(id, port, group, messages, instances),
        };
        match closed {
            None => Ok(()),
            Some(instances) if self.router.inboxes[id as usize].unfinished => {
                // The last batch is not worked off yet: its end comes round again behind it.
                let body = Body::End { messages: 0, instances };
                let message = Message { operator: id, port, group, body };
                self.router.reopen(message)
            }
            Some(instances) => self.call(id, context, |operator, out| operator.finish(port, group, instances, out)),
        }
    }

    fn take_batch(
        &mut self,
        id: OpId,
        port: u8,
        group: GroupId,
        mut batch: B,
        context: &Arc<QueryContext>,
    ) -> Result<()> {
        match self.router.groups.fate(group, id) {
            Fate::Drop => return Ok(()),
            Fate::Thin(tags) => batch.discard(tags),
            Fate::Deliver => {}
        }
        let rows = batch.rows() as u64;
        if rows == 0 {
            return Ok(());
        }
        let stats = &mut self.stats[id as usize];
        stats.messages += 1;
        stats.rows_in += rows;
        self.call(id, context, |operator, out| operator.receive(port, group, batch, out))
    }

    fn call(
        &mut self,
        id: OpId,
        context: &Arc<QueryContext>,
        work: impl FnOnce(&mut dyn Operator<B>, &mut Output<'_, B>) -> Result<()>,
    ) -> Result<()> {
        let surroundings = self.surroundings.as_ref().ok_or_else(|| Error::bug("a run has begun before it runs"))?;
        let mut out = Output { router: &mut self.router, context, surroundings, operator: id, again: false };
        let outcome = work(&mut *self.operators[id as usize], &mut out);
        let again = out.again;
        let outcome = if watch::is_interrupted() { ended(context) } else { outcome };
        if outcome.is_err() {
            self.failed = Some(id);
            return outcome;
        }
        let inbox = &mut self.router.inboxes[id as usize];
        inbox.unfinished = again;
        self.groups_peak = self.groups_peak.max(self.router.groups.living());
        Ok(())
    }
}

/// What a run fails with whose comparisons were interrupted, however its operator ended.
#[cold]
fn ended(context: &QueryContext) -> Result<()> {
    context.check()?;
    Err(Error::new(ErrorKind::Cancelled, "the query was cancelled"))
}
