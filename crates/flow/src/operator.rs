//! The interface of operators with state, and the interface through which every operator acts.
//!
//! The runtime calls an [`Operator`], or a [`Kernel`](crate::Kernel) if it has no state; the operator acts during the call through
//! [`Output`]. An operator belongs to one node of one instance of a plan. The runtime calls it with a batch or with the
//! end of a group. It uses only its own state and the execution context, which the runtime passes with every call.
//!
//! - **FLOW-2.** An operator is never called while a call of it is running, and no call blocks. A call does a bounded
//!   part of the work. The rest of a message waits with its cursor at the head of the operator's inbox.
//! - **FLOW-3.** The end of a group comes once to an operator and port, after every message that was sent to that port
//!   for the group is worked off.
//! - **FLOW-4.** An operator keeps nothing of a run after [`Operator::recycle`] returned true: no rows, states, charges
//!   or values of parameters.
//! - **FLOW-29.** After [`Operator::share`], any thread of the run changes the shared state, in any order. Only the
//!   home receives ends of groups, and batches at ports below [`Shared::from_port`]. The end of a group comes after
//!   every thread has worked off the group's rows (FLOW-21). So the state of the group is complete then, and no thread
//!   uses it after that, except for parts of the end that were handed out.
//! - **FLOW-49.** An end may hand out parts of its work ([`Output::hand_out`]). Any thread works off a part, each part
//!   once. The end goes on after every part that it has handed out is worked off, and everything that they sent home has
//!   been received. So no part runs beside a call with the end, and FLOW-3 holds for the rows that parts send.

use std::any::Any;
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, Weak};

use mangrove_graph::{Error, Need, Result};

use crate::batch::Batch;
use crate::cancel::Disposition;
use crate::control::QueryControl;
use crate::cursor::{Cursor, HeldDetail, Step};
use crate::group::{GroupId, NodeId, OuterTags, TagSet};
use crate::heavy::Apart;
use crate::policy::Policy;
use crate::router::Router;
use crate::topology::OpId;

/// The state of an operator that the threads of an open run change together (FLOW-29). Its locks are held for a part of
/// a call, and never while an operator sends.
pub type SharedState = Arc<dyn Any + Send + Sync>;

/// What an operator of the home shares with its replicas ([`Operator::share`]).
pub struct Shared {
    /// The state.
    pub state: SharedState,
    /// Batches at this port and at higher ones go to the replica of the helper. Those at lower ports go home.
    pub from_port: u8,
}

/// A reference to a shared state that its operator at the home holds.
pub(crate) type WeakState = Weak<dyn Any + Send + Sync>;

/// An operator with state, of one query on one node. It keeps its state by group and tag.
///
/// An operator may serve several runs of a query, one after the other ([`crate::NodeRuntime::recycle`]). Its structure
/// is fixed when the plan is built. It gets the values that belong to one run in [`Operator::begin`], and drops them in
/// [`Operator::recycle`].
pub trait Operator<B: Batch>: Send {
    /// Begins a run: looks up the values that depend on it, such as parameters. Called once a run, before any other
    /// method.
    fn begin(&mut self, context: &B::Context) -> Result<()> {
        let _ = context;
        Ok(())
    }

    /// Ends a run that is complete: every group has ended, and no message is left. Returns true if the operator is as
    /// it was before the run began (FLOW-4), so that it may serve another run. It checks that it holds no rows, states
    /// or charges. An operator that returns false, as this default does, is dropped with its instance.
    fn recycle(&mut self) -> bool {
        false
    }

    /// Returns what [`Operator::receive`] will read for a batch. Called only if the view may be late; the batch is
    /// received while all of this is at hand (FLOW-31). What an operator reads at the end of a group is not asked for, so
    /// the read blocks.
    fn needs<'a>(
        &'a mut self,
        port: u8,
        batch: &'a B,
        context: &'a B::Context,
        control: &Arc<QueryControl>,
    ) -> Result<Need<'a>> {
        let _ = (port, batch, context, control);
        Ok(Need::Nothing)
    }

    /// Receives a batch of a group at a port.
    fn receive(&mut self, port: u8, group: GroupId, batch: B, out: &mut Output<'_, B>) -> Result<()>;

    /// A helper calls this before it sends a batch home to this operator. Returns a batch that is shorter if possible.
    /// The operator at home must make the same result of either batch. For example, rows with equal objects may become
    /// one row with their number. The helper's replica has no state: it uses its structure, the context and the batch alone.
    /// This default returns the batch as it is.
    fn combine(&mut self, port: u8, batch: B, context: &B::Context, control: &Arc<QueryControl>) -> Result<B> {
        let _ = (port, context, control);
        Ok(batch)
    }

    /// Returns true if the operator holds no rows, or only for speed, so that it may send them at any time. A helper
    /// then calls its own replica instead of sending the rows home.
    fn is_passing(&self) -> bool {
        false
    }

    /// Returns true if the operator makes the results of a group of the rows of this group alone. It uses no state of
    /// other groups, no side effect and no chance. So a thread may work off a whole group with a replica (FLOW-50).
    fn is_by_group(&self) -> bool {
        false
    }

    /// For the operator of a scope: returns true if each batch that enters is worked off for itself, in groups of its
    /// own. So a thread may work off a batch with a replica (FLOW-50).
    fn is_by_batch(&self) -> bool {
        false
    }

    /// At the home, when the run is opened for helpers: an operator that any thread may call puts its state into a form
    /// that threads share, and returns it (FLOW-29). A helper then calls its own replica instead of sending the rows
    /// home. This default returns `None`: the state stays at the home.
    fn share(&mut self) -> Option<Shared> {
        None
    }

    /// On a helper, before any batch: receives what [`Operator::share`] of the home's operator has returned. A replica
    /// keeps a weak reference, so that the state ends with the run.
    fn join(&mut self, state: &SharedState) {
        let _ = state;
    }

    /// Sends what a passing operator holds. A helper calls this before it ends a parcel.
    fn flush(&mut self, out: &mut Output<'_, B>) -> Result<()> {
        let _ = out;
        Ok(())
    }

    /// Returns true if a passing operator holds rows that gain by waiting for more. A helper then keeps them until it
    /// finds no further parcel of the same token (FLOW-46).
    fn keeps_rows(&self) -> bool {
        false
    }

    /// Receives the end of a group at a port (FLOW-3). The group had the instances (tags) `0..instances`. This default
    /// passes the end on.
    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, B>) -> Result<()> {
        let _ = port;
        out.finish_all(group, instances)
    }

    /// As [`Operator::finish`], in steps: an operator that has much to send at the end of a group does a part of it,
    /// and keeps the position in `at`. This default does all in one step.
    fn finish_step(
        &mut self,
        port: u8,
        group: GroupId,
        instances: u32,
        at: &mut Cursor,
        out: &mut Output<'_, B>,
    ) -> Result<Step> {
        let _ = at;
        self.finish(port, group, instances, out)?;
        Ok(Step::Done)
    }

    /// Works on a part of an end that [`Operator::finish_step`] has handed out, from the cursor on, which holds the part
    /// (FLOW-49). On a helper, its replica is called. `group` is the group of the rows that the part sends. They may
    /// come in any order. A step does as much as one of [`Operator::finish_step`].
    fn work_part(&mut self, group: GroupId, at: &mut Cursor, out: &mut Output<'_, B>) -> Result<Step> {
        let _ = (group, at, out);
        Err(Error::bug("an operator that hands out parts of an end works them off"))
    }

    /// For the operator of a scope: an instance of a group inside is heavy (FLOW-44). If it may, the operator cancels it
    /// there and lets it begin again in a group of its own. This default lets it stay.
    fn set_apart(&mut self, inside: GroupId, tag: u32, out: &mut Output<'_, B>) -> Result<Apart> {
        let _ = (inside, tag, out);
        Ok(Apart::Stays)
    }

    /// For the operator of a scope, on a helper: another thread has nothing to do. The operator sends the rows of these
    /// instances, which lie in a group inside that the helper has opened, to its replica at the home, where threads share
    /// their work, and cancels them here (FLOW-50). It keeps those that may not begin again. Returns true if it has sent some;
    /// this default keeps all.
    fn send_instances_home(&mut self, inside: GroupId, tags: &[u32], out: &mut Output<'_, B>) -> Result<bool> {
        let _ = (inside, tags, out);
        Ok(false)
    }

    /// Instances of a group are cancelled here: those of `tags`, or all if there are none. The operator drops their
    /// state and releases its charge (FLOW-41). No row of them comes any more, but the end of their group does
    /// (FLOW-7). It is also called for groups of which the operator holds nothing. This default does nothing.
    fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, B>) {
        let _ = (group, tags, out);
    }
}

/// The actions of an operator during a call: sending messages, opening and closing groups, cancelling work.
pub struct Output<'a, B: Batch> {
    pub(crate) router: &'a mut Router<B>,
    pub(crate) control: &'a Arc<QueryControl>,
    pub(crate) context: &'a B::Context,
    pub(crate) operator: OpId,
}

impl<'a, B: Batch> Output<'a, B> {
    /// Returns the execution context of the run.
    pub fn context(&self) -> &'a B::Context {
        self.context
    }

    /// Sends a batch along one of the operator's edges. Empty batches are not sent.
    pub fn emit(&mut self, edge: usize, group: GroupId, batch: B) -> Result<()> {
        if batch.rows() == 0 {
            return Ok(());
        }
        self.router.emit(self.operator, edge, group, batch, self.control)
    }

    /// Sends the end of a group along an edge: no batch of the group follows.
    pub fn finish(&mut self, edge: usize, group: GroupId, instances: u32) -> Result<()> {
        self.router.finish(self.operator, edge, group, instances, self.control)
    }

    /// Sends the end of a group along every edge.
    pub fn finish_all(&mut self, group: GroupId, instances: u32) -> Result<()> {
        for edge in 0..self.router.edge_count(self.operator) {
            self.finish(edge, group, instances)?;
        }
        Ok(())
    }

    /// In [`Operator::finish_step`], if the operator's state is shared: hands out a part of the end, which any thread of
    /// the run may work off ([`Operator::work_part`]). It sends rows of `group`, and is dropped if that is cancelled here.
    /// It holds no charge of its own. The call returns [`Step::More`], and the end comes again after all of its parts
    /// (FLOW-49). The call may send rows, too: they are worked off meanwhile.
    pub fn hand_out(&mut self, group: GroupId, part: Box<dyn HeldDetail>) {
        self.router.handed_out.push((group, part));
    }

    /// Adds a batch to the results that the client reads.
    pub fn deliver(&mut self, batch: B) {
        self.router.results.push_back(batch);
    }

    /// Marks the query as complete: it has no more results.
    pub fn complete(&mut self) {
        self.router.complete = true;
    }

    /// Opens a group of scope instances inside `parent`. Its home is this node. `outer` says which instances of the
    /// parent its instances belong to: they are cancelled together (FLOW-40).
    pub fn open_group(&mut self, parent: GroupId, outer: OuterTags) -> GroupId {
        self.router.open_group(parent, self.operator, outer, None)
    }

    /// As [`Output::open_group`], with the rank by which [`crate::Between::Rank`] orders the group. Either all groups of
    /// a scope have one, or none.
    pub fn open_ranked(&mut self, parent: GroupId, outer: OuterTags, rank: B::Rank) -> GroupId {
        self.router.open_group(parent, self.operator, outer, Some(rank))
    }

    /// Returns true if the next step of a kernel that works for one instance of the group only, and does not finish it, makes
    /// the instance begin again (FLOW-44). Such a step should be short.
    pub fn looks_for_heavy(&self, group: GroupId) -> bool {
        self.router.groups.looks_for_heavy(group)
    }

    /// Returns true if this thread is a helper and the group is one of the home's. Then [`Output::send_home`] sends rows
    /// to the operator itself, at the home.
    pub fn has_other_home(&self, group: GroupId) -> bool {
        self.router.local.is_some() && !group.is_of_helper()
    }

    /// Sends rows that have arrived at port 0 of the operator to its replica at the home of their group
    /// ([`Output::has_other_home`]).
    pub fn send_home(&mut self, group: GroupId, batch: B) {
        self.router.send_home(self.operator, group, batch);
    }

    /// Returns the policy of the scope, for the operator of a scope.
    pub fn policy(&self) -> Policy {
        self.router.topology.policy(self.operator)
    }

    /// Adds instances to a group with [`OuterTags::Growing`]: for each one, the instance of the parent that it belongs
    /// to.
    pub fn add_instances(&mut self, group: GroupId, outer: impl IntoIterator<Item = u32>) {
        self.router.groups.add_instances(group, outer);
    }

    /// Closes a group that has ended at every operator of its scope.
    pub fn close_group(&mut self, group: GroupId) {
        self.router.close_group(group);
    }

    /// Cancels the work that the operators of a range still have to do for a group.
    pub fn cancel(&mut self, group: GroupId, operators: Range<OpId>) {
        self.router.groups.cancel(group, operators);
    }

    /// Cancels the work that the operators of a range still have to do for one instance of a group, and for all
    /// instances nested in it there (FLOW-40).
    pub fn cancel_tag(&mut self, group: GroupId, operators: Range<OpId>, tag: u32) {
        if self.router.groups.cancel_tag(group, operators, tag) {
            self.router.tags_cancelled += 1;
        }
    }

    /// Returns true if the operator's own work for a group is cancelled.
    pub fn is_cancelled(&self, group: GroupId) -> bool {
        matches!(self.router.groups.disposition(group, self.operator), Disposition::Drop)
    }

    /// Returns the cancelled instances of a group. The runtime drops their rows from batches that arrive. An operator
    /// that keeps rows asks here.
    pub fn cancelled_tags(&self, group: GroupId) -> Option<Cow<'_, TagSet>> {
        match self.router.groups.disposition(group, self.operator) {
            Disposition::DropTags(tags) => Some(tags),
            _ => None,
        }
    }

    /// Returns true if the view of the run may be late.
    pub fn reads_late(&self) -> bool {
        B::late(self.context).is_some()
    }

    /// Returns the operator's number in the topology.
    pub fn operator(&self) -> OpId {
        self.operator
    }

    /// Returns the node that runs this operator.
    pub fn node(&self) -> NodeId {
        self.router.node
    }

    /// Returns the number of nodes that the query runs on.
    pub fn nodes(&self) -> u16 {
        self.router.nodes
    }

    /// Returns the limits, memory account and clock of the query.
    pub fn control(&self) -> &QueryControl {
        self.control
    }

    /// Returns the same, for threads that work for the operator during the call.
    pub fn control_shared(&self) -> &Arc<QueryControl> {
        self.control
    }
}
