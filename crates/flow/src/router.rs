//! The router of one node: an inbox for each operator, frames for other nodes, and the counts that close a stream.
//!
//! ```text
//! emit ─┬─ one node, inbox of the receiver idle ─► direct message (one, not charged) ─┐
//!       ├─ this node ─► inbox of the receiver (charged while it waits) ───────────────┼─► next_message
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
use std::sync::Arc;

use mangrove_graph::{Error, FastMap, Result};

use crate::batch::Batch;
use crate::control::QueryControl;
use crate::cursor::Cursor;
use crate::group::{GroupId, Groups, NodeId};
use crate::topology::{Exchange, OpId, Topology};

/// A message on its way along an edge. Messages are boxed: they are large, and move several times.
pub(crate) struct Message<B> {
    /// The receiver.
    pub operator: OpId,
    /// The port of the receiver.
    pub port: u8,
    pub group: GroupId,
    pub body: Body<B>,
    /// How far the receiver has worked it off.
    pub cursor: Cursor,
}

impl<B> Message<B> {
    /// Returns true if it is a batch.
    pub fn is_data(&self) -> bool {
        matches!(self.body, Body::Data { .. })
    }
}

/// The content of a message.
pub(crate) enum Body<B> {
    /// A batch (`None` once it is worked off), and the bytes that the query is charged for it while it waits (FLOW-13);
    /// 0 before it has waited.
    Data { batch: Option<B>, charged: u64 },
    /// The end-of-stream of a sender for the group: how many messages it sent here (FLOW-12), and how many instances
    /// the group had (FLOW-5).
    End { messages: u64, instances: u32 },
    /// The end of a group of which the operator has worked off a part. It is never sent.
    Closing { instances: u32 },
}

impl<B> Body<B> {
    /// A batch that is not charged yet.
    pub fn data(batch: B) -> Self {
        Body::Data { batch: Some(batch), charged: 0 }
    }
}

/// The maximum number of boxes that a router keeps for later messages.
const SPARE_BOXES_MAX: usize = 8;

/// The messages that wait at an operator. A message that returns from a scope goes before a message that would enter
/// it.
pub(crate) struct Inbox<B> {
    /// The messages at port 0, where a stream enters.
    pub entering: VecDeque<Box<Message<B>>>,
    /// The messages at the other ports, to which the pipelines inside a scope send their results.
    pub returning: VecDeque<Box<Message<B>>>,
}

impl<B> Inbox<B> {
    fn new() -> Self {
        Inbox { entering: VecDeque::new(), returning: VecDeque::new() }
    }

    pub fn pop(&mut self) -> Option<Box<Message<B>>> {
        self.returning.pop_front().or_else(|| self.entering.pop_front())
    }

    /// Returns true if the operator has nothing to do.
    pub fn is_idle(&self) -> bool {
        self.entering.is_empty() && self.returning.is_empty()
    }
}

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
    pub inboxes: Vec<Inbox<B>>,
    /// A message to an operator whose inbox was idle when the message was sent.
    pub direct: Option<Box<Message<B>>>,
    /// On a helper: for each operator, the lowest port at which the helper uses its replica. Other messages go home.
    pub local: Option<Arc<[Option<u8>]>>,
    /// On a helper: messages for the home.
    pub homebound: Vec<Box<Message<B>>>,
    /// Boxes of messages that are worked off.
    spare: Vec<Box<Message<B>>>,
    /// A bit for each operator: set if its inbox is not idle.
    pub ready: Vec<u64>,
    /// A bit for each operator of a scope: set if a message that came back from its scope waits.
    returned: Vec<u64>,
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
            inboxes: (0..count).map(|_| Inbox::new()).collect(),
            direct: None,
            local: None,
            homebound: Vec::new(),
            spare: Vec::new(),
            ready: vec![0; count.div_ceil(64)],
            returned: vec![0; count.div_ceil(64)],
            groups: Groups::new(node),
            results: VecDeque::new(),
            complete: false,
            outbox: Vec::new(),
            rows_out: vec![0; count],
            tags_cancelled: 0,
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
            && self.inboxes.iter().all(Inbox::is_idle);
        self.complete = false;
        self.tags_cancelled = 0;
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
        match self.spare.pop() {
            Some(mut message) => {
                (message.operator, message.port, message.group) = (operator, port, group);
                message.body = body;
                message
            }
            None => Box::new(Message { operator, port, group, body, cursor: Cursor::default() }),
        }
    }

    /// Keeps the box of a message that is worked off.
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
        let is_here =
            |local: &Arc<[Option<u8>]>| local[message.operator as usize].is_some_and(|port| port <= message.port);
        if !self.local.as_ref().is_none_or(is_here) {
            self.homebound.push(message);
            return Ok(());
        }
        if self.direct.is_none() && self.inboxes[message.operator as usize].is_idle() {
            self.direct = Some(message);
            return Ok(());
        }
        self.enqueue(message, control)
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
        let operator = message.operator as usize;
        let (word, bit) = (operator / 64, 1 << (operator % 64));
        if self.returns(&message) {
            self.returned[word] |= bit;
        }
        let inbox = &mut self.inboxes[operator];
        // A stream enters an operator at port 0; the messages that a scope sends back arrive at the others.
        if message.port == 0 {
            inbox.entering.push_back(message);
        } else {
            inbox.returning.push_back(message);
        }
        self.ready[word] |= bit;
    }

    /// Returns the lowest of these operators at which batches wait, and how many.
    pub fn lowest_waiting(&self, operators: &[bool]) -> Option<(OpId, usize)> {
        let waiting = |inbox: &Inbox<B>| inbox.entering.iter().filter(|message| message.is_data()).count();
        let mut all = operators.iter().zip(&self.inboxes).enumerate().filter(|(_, (is_one, _))| **is_one);
        all.find_map(|(at, (_, inbox))| match waiting(inbox) {
            0 => None,
            count => Some((at as OpId, count)),
        })
    }

    /// Returns true if a message waits here, beside `count` messages at an operator.
    pub fn has_work_beside(&self, operator: OpId, count: usize) -> bool {
        self.direct.is_some()
            || self.ready.iter().map(|word| word.count_ones()).sum::<u32>() > 1
            || self.inboxes[operator as usize].entering.len() > count
            || !self.inboxes[operator as usize].returning.is_empty()
    }

    /// Takes the oldest batches out of an operator's inbox, `count` of them.
    pub fn take_oldest(&mut self, operator: OpId, count: usize) -> Vec<Box<Message<B>>> {
        let mut taken = Vec::with_capacity(count);
        let queue = std::mem::take(&mut self.inboxes[operator as usize].entering);
        for message in queue {
            if taken.len() < count && message.is_data() {
                taken.push(message);
            } else {
                self.inboxes[operator as usize].entering.push_back(message);
            }
        }
        self.update_ready(operator);
        taken
    }

    /// On a helper: takes all messages, in ascending order of their operators.
    pub fn take_all(&mut self, control: &QueryControl) -> Result<Vec<Box<Message<B>>>> {
        if let Some(direct) = self.direct.take() {
            // FLOW-13: it was not charged, because it did not wait.
            self.enqueue(direct, control)?;
        }
        let mut all = Vec::new();
        for inbox in &mut self.inboxes {
            all.extend(inbox.entering.drain(..).chain(inbox.returning.drain(..)));
        }
        self.ready.fill(0);
        self.returned.fill(0);
        Ok(all)
    }

    /// Returns true if a message comes back to the operator of a scope from inside the scope.
    fn returns(&self, message: &Message<B>) -> bool {
        message.port != 0 && self.topology.is_scope(message.operator)
    }

    /// Puts a message that is worked off in part back to the front of its queue (FLOW-2). It is older than any message
    /// there, so FLOW-11 holds.
    pub fn put_back(&mut self, mut message: Box<Message<B>>, control: &QueryControl) -> Result<()> {
        let Message { body, cursor, .. } = &mut *message;
        if let Body::Data { batch: Some(batch), charged } = body {
            // A batch is measured only once: measuring may cost more than a step.
            if *charged == 0 {
                *charged = batch.bytes() as u64;
            }
            control.charge(*charged + cursor.bytes())?;
        }
        // The rest of an end of a scope decides no instance: it waits until what was sent is worked off, as if its
        // rows entered.
        let returns = self.returns(&message) && !matches!(message.body, Body::Closing { .. });
        if returns {
            // It goes before all others again (FLOW-14).
            self.returned[message.operator as usize / 64] |= 1 << (message.operator % 64);
        }
        let waits = self.returns(&message) && !returns;
        let inbox = &mut self.inboxes[message.operator as usize];
        if message.port == 0 || waits {
            inbox.entering.push_front(message);
        } else {
            inbox.returning.push_front(message);
        }
        Ok(())
    }

    /// Receives a frame from another node.
    pub fn accept(&mut self, frame: &[u8], control: &QueryControl) -> Result<()> {
        let message: Message<B> = decode(frame)?;
        if message.operator as usize >= self.inboxes.len() {
            return Err(Error::bug(format!("a frame names operator {}, which this plan lacks", message.operator)));
        }
        self.enqueue(Box::new(message), control)
    }

    /// Returns the operator of a scope to which a message has come back; otherwise the ready operator with the highest
    /// number (FLOW-14).
    pub fn next_ready(&self) -> Option<OpId> {
        if let Some(message) = self.direct.as_ref().filter(|message| self.returns(message)) {
            return Some(message.operator);
        }
        let direct = self.direct.as_ref().map(|message| message.operator);
        highest(&self.returned).or_else(|| direct.max(highest(&self.ready)))
    }

    /// Returns the next message of an operator.
    pub fn next_message(&mut self, operator: OpId) -> Option<Box<Message<B>>> {
        // FLOW-11: the direct message is older than any in the inbox.
        if self.direct.as_ref().is_some_and(|message| message.operator == operator) {
            return self.direct.take();
        }
        self.inboxes[operator as usize].pop()
    }

    /// Updates the bits of an operator after a call of it.
    pub fn update_ready(&mut self, operator: OpId) {
        let (word, bit) = (operator as usize / 64, 1 << (operator % 64));
        let inbox = &self.inboxes[operator as usize];
        if inbox.is_idle() {
            self.ready[word] &= !bit;
        } else {
            self.ready[word] |= bit;
        }
        if inbox.returning.is_empty() {
            self.returned[word] &= !bit;
        }
    }

    /// Counts a data message that was taken out of an inbox. Returns the number of instances of its group if the group
    /// is thereby complete at the port (FLOW-12).
    pub fn count_received(&mut self, operator: OpId, port: u8, group: GroupId) -> Option<u32> {
        if self.nodes == 1 {
            return None;
        }
        self.arrivals.entry((operator, port, group)).or_default().received += 1;
        self.completed(operator, port, group)
    }

    /// Counts an end-of-stream that was taken out of an inbox. Returns the number of instances of its group if the
    /// group is thereby complete at the port (FLOW-12).
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

/// Charges a message for the time that it waits. The runtime releases the same amount when it takes the message out
/// (FLOW-13).
pub(crate) fn charge<B: Batch>(message: &mut Message<B>, control: &QueryControl) -> Result<()> {
    if let Body::Data { batch: Some(batch), charged } = &mut message.body {
        *charged = batch.bytes() as u64;
        control.charge(*charged)?;
    }
    Ok(())
}

/// Returns the highest number in a set of bits.
fn highest(bits: &[u64]) -> Option<OpId> {
    let word = bits.iter().rposition(|word| *word != 0)?;
    let bit = 63 - bits[word].leading_zeros() as usize;
    Some((word * 64 + bit) as OpId)
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
        // A group that is closing stays where it is.
        Body::Closing { .. } => {}
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
    Ok(Message {
        operator: OpId::from_le_bytes([o0, o1]),
        port,
        group: GroupId::from_bits(u64::from_le_bytes(group)),
        body,
        cursor: Cursor::default(),
    })
}
