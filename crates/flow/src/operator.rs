//! What an operator is, and what it may say while it is called.

use std::ops::Range;
use std::sync::Arc;

use mangrove_graph::Result;

use crate::group::{GroupId, NodeId, TagSet};
use crate::limits::QueryContext;
use crate::router::Router;
use crate::topology::OpId;

/// A columnar batch of rows, each with a tag (see the crate's documentation).
pub trait Batch: Sized + Send + 'static {
    /// What every operator of a running query may look at: the graph, parameters, and the like. It belongs to one run;
    /// operators outlive it.
    type Surroundings: Send;

    /// How many rows.
    fn rows(&self) -> usize;
    /// Roughly how many bytes it holds, without those that are charged by [`Batch::charge_shared`].
    fn bytes(&self) -> usize;
    /// Charges the query for what was made for this batch and will be held by others, too, until the last of them has gone
    /// ([`QueryContext::charge_while`]). Called whenever the batch is sent; what was charged before is not charged again.
    fn charge_shared(&self, context: &Arc<QueryContext>) -> Result<()> {
        let _ = context;
        Ok(())
    }
    /// A copy.
    fn duplicate(&self) -> Self;
    /// Takes the rows apart by the node that owns each row's object.
    fn partition(self, nodes: u16) -> Vec<(NodeId, Self)>;
    /// Drops the rows of these tags.
    fn discard(&mut self, tags: &TagSet);
    /// Appends the batch's bytes.
    fn encode(&self, out: &mut Vec<u8>);
    /// Reads what [`Batch::encode`] wrote.
    fn decode(bytes: &[u8]) -> Result<Self>;
}

/// One operator of a query on one node. It keeps its own state, by group where it is stateful.
///
/// An operator may serve several runs of a query, one after the other ([`crate::NodeRuntime::rest`]): what it is made
/// of is fixed, what a run brings along it is told when the run begins, and at its end it lets go of all that.
pub trait Operator<B: Batch>: Send {
    /// Learns that a run begins: looks up what depends on it, such as the values of parameters. Called once a run,
    /// before anything else.
    fn begin(&mut self, surroundings: &B::Surroundings) -> Result<()> {
        let _ = surroundings;
        Ok(())
    }

    /// Learns that the run is complete: every group has ended and nothing more comes. Returns whether the operator is
    /// as it was before the run began, so that it may serve another one; where in doubt it says no, as this default
    /// does, and is dropped. An operator that held rows, states or charges by group has none left now, and looks.
    fn rest(&mut self) -> bool {
        false
    }

    /// Takes a batch of a group that arrived at a port.
    fn receive(&mut self, port: u8, group: GroupId, batch: B, out: &mut Output<'_, B>) -> Result<()>;

    /// Learns that a group is complete at a port; it had the instances (tags) `0..instances`. An operator
    /// without state passes it on, as this default does.
    fn finish(&mut self, port: u8, group: GroupId, instances: u32, out: &mut Output<'_, B>) -> Result<()> {
        let _ = port;
        out.finish_all(group, instances)
    }

    /// Goes on with work for which it asked to be called [`Output::again`]. No new input comes before that
    /// work is done.
    fn resume(&mut self, out: &mut Output<'_, B>) -> Result<()> {
        let _ = out;
        Ok(())
    }
}

/// What an operator says while it is called.
pub struct Output<'a, B: Batch> {
    pub(crate) router: &'a mut Router<B>,
    pub(crate) context: &'a Arc<QueryContext>,
    pub(crate) surroundings: &'a B::Surroundings,
    pub(crate) operator: OpId,
    pub(crate) again: bool,
}

impl<'a, B: Batch> Output<'a, B> {
    /// What the query's operators may look at.
    pub fn surroundings(&self) -> &'a B::Surroundings {
        self.surroundings
    }

    /// Sends a batch along one of the operator's edges. Empty batches are not sent.
    pub fn emit(&mut self, edge: usize, group: GroupId, batch: B) -> Result<()> {
        if batch.rows() == 0 {
            return Ok(());
        }
        self.router.emit(self.operator, edge, group, batch, self.context)
    }

    /// Says that nothing more of a group comes along an edge.
    pub fn finish(&mut self, edge: usize, group: GroupId, instances: u32) -> Result<()> {
        self.router.finish(self.operator, edge, group, instances, self.context)
    }

    /// [`Output::finish`] along every edge.
    pub fn finish_all(&mut self, group: GroupId, instances: u32) -> Result<()> {
        for edge in 0..self.router.edge_count(self.operator) {
            self.finish(edge, group, instances)?;
        }
        Ok(())
    }

    /// Asks to be called again ([`Operator::resume`]) once what was sent downstream is worked off.
    pub fn again(&mut self) {
        self.again = true;
    }

    /// Hands a batch to whoever asked the query.
    pub fn deliver(&mut self, batch: B) {
        self.router.results.push_back(batch);
    }

    /// Says that the query has no more results.
    pub fn complete(&mut self) {
        self.router.complete = true;
    }

    /// Makes a group of scope instances, at home on this node, inside `parent`.
    pub fn open_group(&mut self, parent: GroupId) -> GroupId {
        self.router.groups.create(parent, self.operator)
    }

    /// Forgets a group that has finished everywhere.
    pub fn close_group(&mut self, group: GroupId) {
        self.router.groups.retire(group);
    }

    /// Says that nobody wants what operators of a range still do for a group.
    pub fn cancel(&mut self, group: GroupId, operators: Range<OpId>) {
        self.router.groups.cancel(group, operators);
    }

    /// Says that nobody wants what operators of a range still do for one instance of a group.
    pub fn cancel_tag(&mut self, group: GroupId, operators: Range<OpId>, tag: u32) {
        if self.router.groups.cancel_tag(group, operators, tag) {
            self.router.tags_cancelled += 1;
        }
    }

    /// Whether the operator's own work for a group is no longer wanted.
    pub fn is_cancelled(&self, group: GroupId) -> bool {
        matches!(self.router.groups.fate(group, self.operator), crate::group::Fate::Drop)
    }

    /// The instances of a group for which the operator's work is no longer wanted. Rows that arrive are without theirs; an
    /// operator that keeps rows, or whose instances inside are those of the group around it, may ask.
    pub fn cancelled_tags(&self, group: GroupId) -> Option<&TagSet> {
        match self.router.groups.fate(group, self.operator) {
            crate::group::Fate::Thin(tags) => Some(tags),
            _ => None,
        }
    }

    /// The operator's number.
    pub fn operator(&self) -> OpId {
        self.operator
    }

    /// This node.
    pub fn node(&self) -> NodeId {
        self.router.node
    }

    /// How many nodes the query runs on.
    pub fn nodes(&self) -> u16 {
        self.router.nodes
    }

    /// Limits and clock.
    pub fn context(&self) -> &QueryContext {
        self.context
    }
}
