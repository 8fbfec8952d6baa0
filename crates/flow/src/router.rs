//! The router of one node: it puts messages into inboxes and frames, chooses the next one, and counts what closes a
//! stream.
//!
//! ```text
//! emit ─┬─ one node, inbox of the receiver idle ─► direct message (one, not charged) ─┐
//!       ├─ this node ─► inbox of the receiver (charged while it waits) ───────────────┼─► begin_call
//!       └─ another node ─► outbox ─► frame ─► accept ─► its inbox                      ┘
//! ```
//!
//! On one node most messages do not wait: the message that an operator sends is the next one to be processed. Such a
//! *direct message* bypasses the queue and is not charged. There is at most one. It is used only if the inbox of its
//! receiver is idle, so it is older than any message that comes into that inbox after it, and it is delivered first.
//!
//! - **FLOW-11.** Between two operators of one node, messages of a group arrive in the order in which they were sent.
//! - **FLOW-12.** Between nodes, an end-of-stream carries the number of messages that it closes. A group is complete at
//!   a port when an end from every sender has arrived, and as many messages as the ends announced. So a frame may
//!   arrive before an earlier one: an end that comes too early waits for the messages that it counts.
//! - **FLOW-13.** A message is charged to the query while it waits in an inbox, and released with the same amount. Not
//!   charged are the message that an operator is working on, the direct message, and frames.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use mangrove_graph::{Error, FastMap, Result};

use crate::batch::Batch;
use crate::cancel::Groups;
use crate::control::QueryControl;
use crate::cursor::{Cursor, Detail, HeldDetail};
use crate::group::{GroupId, NodeId, OuterTags};
use crate::lane_order::LaneNumber;
use crate::lanes::{Lanes, Place};
use crate::local::Local;
use crate::message::{Body, Message};
use crate::queues::Queues;
use crate::topology::{Exchange, OpId, RowOrder, Topology};

/// The maximum number of boxes that a router keeps for later messages.
const SPARE_BOXES_MAX: usize = 8;

/// The counts of the messages of a group that have arrived at a port. Kept only if the query runs on several nodes.
#[derive(Default, Clone, Copy)]
struct Arrival {
    /// Ends received.
    ends: u16,
    /// Data messages that these ends announced.
    announced: u64,
    /// Data messages received.
    received: u64,
    /// Instances of the group, by the ends received (FLOW-5).
    instances: u32,
}

/// The messages, groups and results of one node of a running query.
pub(crate) struct Router<B: Batch> {
    pub node: NodeId,
    pub nodes: u16,
    pub topology: Arc<Topology>,
    /// The inboxes that groups share.
    pub queues: Queues<B>,
    /// Inboxes of groups whose scopes have a policy.
    lanes: Lanes<B>,
    /// A message to an operator whose inbox was idle when the message was sent.
    pub direct: Option<Box<Message<B>>>,
    /// On a helper: the messages that it works off itself. Others go home.
    pub local: Option<Local>,
    /// On a helper: messages for the home.
    pub homebound: Vec<Box<Message<B>>>,
    /// The parts that the call at hand has handed out, each with the group of its rows (FLOW-49).
    pub handed_out: Vec<(GroupId, Box<dyn HeldDetail>)>,
    /// Boxes of messages that are worked off.
    spare: Vec<Box<Message<B>>>,
    pub groups: Groups,
    /// Batches that wait for the client.
    pub results: VecDeque<B>,
    /// True after the query's last result was delivered.
    pub complete: bool,
    /// Frames for other nodes.
    pub outbox: Vec<(NodeId, Vec<u8>)>,
    /// For each operator: the rows that it has sent.
    pub rows_out: Vec<u64>,
    /// The number of single instances that were cancelled.
    pub tags_cancelled: u64,
    /// The number of heavy instances that have begun again in a group of their own.
    pub set_apart: u64,
    /// By operator, edge, group and receiving node: the data messages sent, for the end to announce (FLOW-12). Kept
    /// only if the query runs on several nodes.
    sent: FastMap<(OpId, usize, GroupId, NodeId), u64>,
    arrivals: FastMap<(OpId, u8, GroupId), Arrival>,
}

impl<B: Batch> Router<B> {
    pub fn new(node: NodeId, nodes: u16, topology: Arc<Topology>) -> Self {
        let count = topology.len();
        Router {
            node,
            nodes,
            queues: Queues::new(0, count),
            lanes: Lanes::default(),
            direct: None,
            local: None,
            homebound: Vec::new(),
            handed_out: Vec::new(),
            spare: Vec::new(),
            groups: Groups::new(node),
            results: VecDeque::new(),
            complete: false,
            outbox: Vec::new(),
            rows_out: vec![0; count],
            tags_cancelled: 0,
            set_apart: 0,
            sent: FastMap::default(),
            arrivals: FastMap::default(),
            topology,
        }
    }

    /// Clears the state of a complete run. Returns false if anything of it is left, which another run must not meet.
    pub fn reset(&mut self) -> bool {
        let is_over = self.complete
            && self.results.is_empty()
            && self.direct.is_none()
            && self.outbox.is_empty()
            && self.sent.is_empty()
            && self.arrivals.is_empty()
            && self.queues.is_idle()
            && self.lanes.reset();
        self.complete = false;
        (self.tags_cancelled, self.set_apart) = (0, 0);
        self.rows_out.fill(0);
        self.groups.reset() && is_over
    }

    pub fn edge_count(&self, operator: OpId) -> usize {
        self.topology.outputs(operator).len()
    }

    /// Sends a batch along an edge, to the nodes that the edge's exchange chooses.
    pub fn emit(
        &mut self,
        from: OpId,
        edge: usize,
        group: GroupId,
        batch: B,
        control: &Arc<QueryControl>,
    ) -> Result<()> {
        batch.charge_shared(control)?;
        self.rows_out[from as usize] += batch.rows() as u64;
        let target = &self.topology.outputs(from)[edge];
        let (to, port, exchange) = (target.to, target.port, target.exchange);
        if self.nodes == 1 {
            let message = self.message(to, port, group, Body::data(batch));
            return self.send_here(message, control);
        }
        let parts = match exchange {
            Exchange::Local => vec![(self.node, batch)],
            Exchange::Home => vec![(group.home(), batch)],
            Exchange::Owner => batch.partition(self.nodes),
            Exchange::Broadcast => (0..self.nodes).map(|node| (node, batch.duplicate())).collect(),
        };
        for (node, part) in parts {
            *self.sent.entry((from, edge, group, node)).or_default() += 1;
            let message = self.message(to, port, group, Body::data(part));
            self.send(node, message, control)?;
        }
        Ok(())
    }

    /// Sends the end of a group along an edge, to every node that may have got a batch of it from this node.
    pub fn finish(
        &mut self,
        from: OpId,
        edge: usize,
        group: GroupId,
        instances: u32,
        control: &QueryControl,
    ) -> Result<()> {
        let target = &self.topology.outputs(from)[edge];
        let (to, port, exchange) = (target.to, target.port, target.exchange);
        if self.nodes == 1 {
            let message = self.message(to, port, group, Body::End { messages: 0, instances });
            return self.send_here(message, control);
        }
        let receivers = match exchange {
            Exchange::Local => self.node..self.node + 1,
            Exchange::Home => group.home()..group.home() + 1,
            Exchange::Owner | Exchange::Broadcast => 0..self.nodes,
        };
        for node in receivers {
            let messages = self.sent.remove(&(from, edge, group, node)).unwrap_or(0);
            let message = self.message(to, port, group, Body::End { messages, instances });
            self.send(node, message, control)?;
        }
        Ok(())
    }

    /// Starts the query: sends one batch and its end to operator 0, in the root group.
    pub fn start(&mut self, batch: B, control: &QueryControl) -> Result<()> {
        for body in [Body::data(batch), Body::End { messages: 1, instances: 1 }] {
            let message = self.message(0, 0, GroupId::ROOT, body);
            self.enqueue(message, control)?;
        }
        Ok(())
    }

    /// A message in a spare box, or else in a new one.
    pub fn message(&mut self, operator: OpId, port: u8, group: GroupId, body: Body<B>) -> Box<Message<B>> {
        message_in(&mut self.spare, operator, port, group, body)
    }

    /// Keeps the box of a message that is worked off.
    #[inline(always)]
    pub fn worked_off(&mut self, mut message: Box<Message<B>>) {
        if self.spare.len() < SPARE_BOXES_MAX {
            message.body = Body::End { messages: 0, instances: 0 };
            message.cursor = Cursor::default();
            self.spare.push(message);
        }
    }

    /// Makes a message the direct message. If there is one already or the receiver has work, the message goes into its
    /// inbox.
    fn send_here(&mut self, message: Box<Message<B>>, control: &QueryControl) -> Result<()> {
        if !self.local.as_ref().is_none_or(|local| local.is_here(&message)) {
            self.homebound.push(message);
            return Ok(());
        }
        if self.direct.is_none() && self.queues.is_idle_at(message.operator) && self.lane_of(&message) == 0 {
            self.direct = Some(message);
            return Ok(());
        }
        self.enqueue(message, control)
    }

    /// On a helper: sends a batch to an operator at the home.
    pub fn send_home(&mut self, operator: OpId, group: GroupId, batch: B) {
        let message = self.message(operator, 0, group, Body::data(batch));
        self.homebound.push(message);
    }

    /// Puts a message into the inbox of its operator or, as a frame, into the outbox.
    fn send(&mut self, node: NodeId, message: Box<Message<B>>, control: &QueryControl) -> Result<()> {
        if node == self.node {
            return self.enqueue(message, control);
        }
        self.outbox.push((node, encode(&message)));
        Ok(())
    }

    /// Puts a message into its operator's inbox.
    pub fn enqueue(&mut self, mut message: Box<Message<B>>, control: &QueryControl) -> Result<()> {
        charge(&mut message, control)?;
        self.accept_shared(message);
        Ok(())
    }

    /// Puts a message that is charged already into its operator's inbox.
    pub fn accept_shared(&mut self, message: Box<Message<B>>) {
        let returns = self.returns(&message);
        match self.lane_of(&message) {
            0 => self.queues.push_back(message, returns),
            lane => self.lanes.push_back(lane, message, returns),
        }
    }

    /// Returns the lane that a message waits in (FLOW-42).
    #[inline]
    fn lane_of(&self, message: &Message<B>) -> LaneNumber {
        if self.lanes.is_empty() {
            return 0;
        }
        // The operator of a scope is outside its scope.
        let comes_back = message.port != 0 && self.topology.is_scope(message.operator);
        let outside = if comes_back { self.groups.parent(message.group) } else { None };
        self.lanes.of(outside.unwrap_or(message.group))
    }

    /// Opens a group of instances of a scope. Returns its id.
    pub fn open_group(&mut self, parent: GroupId, scope: OpId, outer: OuterTags, rank: Option<B::Rank>) -> GroupId {
        let group = self.groups.open(parent, scope, outer);
        let policy = self.topology.policy(scope);
        if policy.needs_lanes() || !self.lanes.is_empty() {
            self.lanes.open(group, parent, scope, self.topology.inside(scope), policy, rank);
        }
        group
    }

    /// Returns the number of lanes.
    pub fn lane_count(&self) -> u64 {
        self.lanes.len()
    }

    /// Closes a group that has ended.
    pub fn close_group(&mut self, group: GroupId) {
        self.groups.close(group);
        if !self.lanes.is_empty() {
            self.lanes.close(group);
        }
    }

    /// Returns true if a message waits here, beside `count` messages at an operator.
    pub fn has_work_beside(&self, operator: OpId, count: usize) -> bool {
        self.direct.is_some() || self.queues.has_work_beside(operator, count) || self.lanes.next(None).is_some()
    }

    /// On a helper: takes all messages, in ascending order of their operators.
    pub fn take_all(&mut self, control: &QueryControl) -> Result<Vec<Box<Message<B>>>> {
        if let Some(direct) = self.direct.take() {
            // FLOW-13: it was not charged, because it did not wait.
            self.enqueue(direct, control)?;
        }
        Ok(self.queues.take_all())
    }

    /// Drops the batches of a group that wait at some operators, and releases their charge (FLOW-41).
    pub fn drop_batches(&mut self, group: GroupId, operators: Range<OpId>, control: &QueryControl) {
        let nodes = self.nodes;
        let change = |message: &mut Message<B>| {
            let Message { group: of, body: Body::Data { batch, charged }, cursor, .. } = message else { return true };
            if *of == group && batch.take().is_some() {
                control.release(std::mem::take(charged) + cursor.bytes());
                *cursor = Cursor::default();
            }
            // FLOW-12: between nodes, each message counts when it is taken out.
            nodes > 1 || batch.is_some()
        };
        // Messages that come back to the scope's operator wait outside the scope.
        let outside = self.groups.parent(group).map_or(0, |parent| self.lanes.of(parent));
        let inside = self.lanes.of(group);
        for operator in operators.start..operators.end.min(self.topology.len() as OpId) {
            self.queues.retain(operator, change);
            for lane in [inside, outside] {
                if lane > 0 {
                    self.lanes.retain(lane, operator, change);
                }
            }
        }
    }

    /// Returns true if a message comes back to the operator of a scope from an operator inside, so that it goes before all
    /// others (FLOW-14). What passes a scope with nothing inside does not: a loop of it would never let others work.
    fn returns(&self, message: &Message<B>) -> bool {
        message.port != 0 && self.topology.has_inside(message.operator)
    }

    /// Puts a message that is worked off in part back to the front of its queue, in the lane that it was taken from
    /// (FLOW-2). It is older than any message there, so FLOW-11 holds.
    pub fn put_back(&mut self, lane: LaneNumber, mut message: Box<Message<B>>, control: &QueryControl) -> Result<()> {
        charge_rest(&mut message, control)?;
        self.bring_back(lane, message);
        Ok(())
    }

    /// As [`Router::put_back`], for a message that is charged already.
    fn bring_back(&mut self, lane: LaneNumber, message: Box<Message<B>>) {
        // The rest of an end of a scope decides no instance: it waits until what was sent is worked off, as if its
        // rows entered. Any other message that returns goes before all others again (FLOW-14).
        let comes_back = self.returns(&message);
        let returns = comes_back && !matches!(message.body, Body::Closing { .. } | Body::Part { .. });
        let enters = message.port == 0 || comes_back && !returns;
        match lane {
            0 => self.queues.push_front(message, returns, enters),
            lane => self.lanes.push_front(lane, message, returns, enters),
        }
    }

    /// Puts a message that has waited elsewhere, and is charged, back to the front of its queue. It goes before the
    /// direct message, which is newer (FLOW-11), and before all others in the lane of its group (FLOW-42).
    pub fn bring_before_all(&mut self, message: Box<Message<B>>, control: &QueryControl) -> Result<()> {
        let lane = match message.body {
            Body::Part { lane, .. } => lane,
            _ => self.lane_of(&message),
        };
        self.bring_before_all_of(lane, message, control)
    }

    /// As [`Router::bring_before_all`], for a message of this lane.
    pub fn bring_before_all_of(
        &mut self,
        lane: LaneNumber,
        message: Box<Message<B>>,
        control: &QueryControl,
    ) -> Result<()> {
        // The direct message has no lane.
        if let Some(direct) = self.direct.take_if(|direct| direct.operator == message.operator) {
            self.put_back(0, direct, control)?;
        }
        self.bring_back(lane, message);
        Ok(())
    }

    /// Returns true if a message that came back from the operator's scope waits at this place.
    pub fn has_returned(&self, place: Place) -> bool {
        if place.lane > 0 {
            return self.lanes.has_returned(place);
        }
        let is_direct = |direct: &Message<B>| direct.operator == place.operator && self.returns(direct);
        self.direct.as_ref().is_some_and(|direct| is_direct(direct)) || self.queues.has_returned(place.operator)
    }

    /// Makes a message with a hold the next one of its operator, and returns its place.
    pub fn bring_held_forward(&mut self) -> Option<Place> {
        // An operator with a direct message has no other.
        match self.queues.bring_held_forward() {
            Some(operator) => Some(Place { lane: 0, operator }),
            None => self.lanes.bring_held_forward(),
        }
    }

    /// Lets the rows that follow a heavy row in its message go first, if the order at their operator allows that
    /// (FLOW-45).
    pub fn step_aside(&mut self, place: Place, control: &QueryControl) -> Result<()> {
        let order = self.topology.row_order(place.operator);
        // FLOW-12: between nodes, each message counts.
        if self.nodes > 1 || place.lane > 0 || order == RowOrder::Kept {
            return Ok(());
        }
        let by_instance = order == RowOrder::KeptByInstance;
        let spare = &mut self.spare;
        let cut = |heavy: &mut Message<B>| {
            let Body::Data { batch: Some(batch), charged } = &mut heavy.body else { return Ok(None) };
            let (at, rows) = (heavy.cursor.row as usize, batch.rows());
            if at + 1 >= rows || matches!(heavy.cursor.detail, Detail::Held(_)) {
                return Ok(None);
            }
            let mut next = at + 1;
            if by_instance {
                let is_heavy = |row: &usize| batch.tag(*row) == batch.tag(at);
                next += (next..rows).take_while(is_heavy).count();
                if next == rows || (next..rows).any(|row| is_heavy(&row)) {
                    return Ok(None);
                }
            }
            let rest = batch.split_off(next);
            // FLOW-13: each part is charged for itself.
            control.release(*charged);
            *charged = batch.bytes() as u64;
            control.charge(*charged)?;
            let mut others = message_in(spare, heavy.operator, heavy.port, heavy.group, Body::data(rest));
            charge(&mut others, control)?;
            Ok(Some(others))
        };
        let comes_after = |heavy: &Message<B>, message: &Message<B>| {
            let row = heavy.cursor.row as usize;
            match (&heavy.body, &message.body) {
                (Body::Data { batch: Some(heavy), .. }, Body::Data { batch: Some(batch), .. }) if by_instance => {
                    (0..batch.rows()).any(|at| batch.tag(at) == heavy.tag(row))
                }
                _ => false,
            }
        };
        self.queues.step_aside(place.operator, cut, comes_after)
    }

    /// Receives a frame from another node.
    pub fn accept(&mut self, frame: &[u8], control: &QueryControl) -> Result<()> {
        let message: Message<B> = decode(frame)?;
        if message.operator as usize >= self.topology.len() {
            return Err(Error::bug(format!("a frame names operator {}, which this plan lacks", message.operator)));
        }
        self.enqueue(Box::new(message), control)
    }

    /// Returns the operator of a scope to which a message has come back; otherwise the ready operator with the highest
    /// number (FLOW-14), or what a policy puts before it (FLOW-43).
    #[inline(always)]
    pub fn next_ready(&self) -> Option<Place> {
        let shared = |operator| Place { lane: 0, operator };
        if let Some(message) = self.direct.as_ref().filter(|message| self.returns(message)) {
            return Some(shared(message.operator));
        }
        if let Some(operator) = self.queues.returned() {
            return Some(shared(operator));
        }
        let direct = self.direct.as_ref().map(|message| message.operator);
        let operator = direct.max(self.queues.highest_ready());
        if !self.lanes.is_empty()
            && let Some(place) = self.lanes.next(operator)
        {
            return Some(place);
        }
        operator.map(shared)
    }

    /// Takes the next message at a place, for a call of its operator. [`Router::end_call`] follows.
    #[inline(always)]
    pub fn begin_call(&mut self, place: Place, control: &QueryControl) -> Option<Box<Message<B>>> {
        if place.lane > 0 {
            return self.lanes.begin_call(place, control.clock());
        }
        // FLOW-11: the direct message is older than any in the inbox.
        if self.direct.as_ref().is_some_and(|message| message.operator == place.operator) {
            return self.direct.take();
        }
        self.queues.pop(place.operator)
    }

    /// Updates what is known of a place after a call of its operator.
    #[inline(always)]
    pub fn end_call(&mut self, place: Place, control: &QueryControl) {
        match place.lane {
            0 => self.queues.update(place.operator),
            lane => self.lanes.end_call(lane, control.clock()),
        }
    }

    /// Counts a data message that was taken out of an inbox. Returns the number of instances of its group if the group
    /// is thereby complete at the port (FLOW-12).
    #[inline(always)]
    pub fn count_received(&mut self, operator: OpId, port: u8, group: GroupId) -> Option<u32> {
        if self.nodes == 1 {
            return None;
        }
        self.arrivals.entry((operator, port, group)).or_default().received += 1;
        self.completed(operator, port, group)
    }

    /// Counts an end-of-stream that was taken out of an inbox. Returns the number of instances of its group if the
    /// group is thereby complete at the port (FLOW-12).
    #[inline(always)]
    pub fn count_end(
        &mut self,
        operator: OpId,
        port: u8,
        group: GroupId,
        messages: u64,
        instances: u32,
    ) -> Option<u32> {
        if self.nodes == 1 {
            return Some(instances);
        }
        let arrival = self.arrivals.entry((operator, port, group)).or_default();
        arrival.ends += 1;
        arrival.announced += messages;
        arrival.instances = arrival.instances.max(instances);
        self.completed(operator, port, group)
    }

    /// If a group is complete at a port, forgets its counts and returns the number of its instances (FLOW-12).
    fn completed(&mut self, operator: OpId, port: u8, group: GroupId) -> Option<u32> {
        let senders = if self.all_send(operator, port) { self.nodes } else { 1 };
        let arrival = self.arrivals.get(&(operator, port, group))?;
        if arrival.ends < senders || arrival.received < arrival.announced {
            return None;
        }
        let instances = arrival.instances;
        self.arrivals.remove(&(operator, port, group));
        Some(instances)
    }

    /// Returns true if every node sends an end to this port; false if one node does (FLOW-10).
    fn all_send(&self, operator: OpId, port: u8) -> bool {
        let into = |edge: &&crate::topology::Edge| edge.to == operator && edge.port == port;
        self.topology.outputs.iter().flatten().find(into).is_some_and(|edge| edge.all_send)
    }
}

/// A message in a spare box, or else in a new one.
fn message_in<B>(
    spare: &mut Vec<Box<Message<B>>>,
    operator: OpId,
    port: u8,
    group: GroupId,
    body: Body<B>,
) -> Box<Message<B>> {
    match spare.pop() {
        Some(mut message) => {
            (message.operator, message.port, message.group) = (operator, port, group);
            message.body = body;
            message
        }
        None => Box::new(Message::new(operator, port, group, body)),
    }
}

/// Charges a message for the time that it waits. The runtime releases the same amount when it takes the message out
/// (FLOW-13).
pub(crate) fn charge<B: Batch>(message: &mut Message<B>, control: &QueryControl) -> Result<()> {
    if let Body::Data { batch: Some(batch), charged } = &mut message.body {
        *charged = batch.bytes() as u64;
        control.charge(*charged)?;
    }
    Ok(())
}

/// As [`charge`], for a message that is worked off in part. A batch is measured only once: measuring may cost more than
/// a step.
pub(crate) fn charge_rest<B: Batch>(message: &mut Message<B>, control: &QueryControl) -> Result<()> {
    let Message { body, cursor, .. } = message;
    if let Body::Data { batch: Some(batch), charged } = body {
        if *charged == 0 {
            *charged = batch.bytes() as u64;
        }
        control.charge(*charged + cursor.bytes())?;
    }
    Ok(())
}

/// The bytes of a frame before its body: operator (2), port (1), whether the message is an end (1), group (8). Integers
/// are little-endian.
const FRAME_HEADER_BYTES: usize = 12;

/// A message as the frame that another node decodes.
fn encode<B: Batch>(message: &Message<B>) -> Vec<u8> {
    let mut frame = Vec::with_capacity(64);
    frame.extend_from_slice(&message.operator.to_le_bytes());
    frame.push(message.port);
    frame.push(matches!(message.body, Body::End { .. }).into());
    frame.extend_from_slice(&message.group.to_bits().to_le_bytes());
    match &message.body {
        Body::Data { batch, .. } => batch.iter().for_each(|batch| batch.encode(&mut frame)),
        // A group that is closing stays where it is, and so do parts of its end.
        Body::Closing { .. } | Body::Part { .. } => {}
        Body::End { messages, instances } => {
            frame.extend_from_slice(&messages.to_le_bytes());
            frame.extend_from_slice(&instances.to_le_bytes());
        }
    }
    frame
}

/// The message in a frame. Nodes trust one another, so a frame that cannot be read is a bug.
fn decode<B: Batch>(frame: &[u8]) -> Result<Message<B>> {
    let short = || Error::bug("a frame between nodes is cut short");
    let (header, rest) = frame.split_first_chunk::<FRAME_HEADER_BYTES>().ok_or_else(short)?;
    let [o0, o1, port, is_end, group @ ..] = *header;
    let body = if is_end == 1 {
        let (messages, rest) = rest.split_first_chunk::<8>().ok_or_else(short)?;
        let (instances, _) = rest.split_first_chunk::<4>().ok_or_else(short)?;
        Body::End { messages: u64::from_le_bytes(*messages), instances: u32::from_le_bytes(*instances) }
    } else {
        Body::data(B::decode(rest)?)
    };
    let group = GroupId::from_bits(u64::from_le_bytes(group));
    Ok(Message::new(OpId::from_le_bytes([o0, o1]), port, group, body))
}
