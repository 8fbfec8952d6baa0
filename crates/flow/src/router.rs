//! Where messages go: queues of one node, frames for the others, and the counts that close a stream.
//!
//! On one node most messages wait for nobody: what an operator sends is the next thing to be worked off. Such a message
//! goes **from hand to hand**. It is put into no queue and charged to nobody, as it does not wait. There is one hand, and
//! it is only used for an operator that has nothing else to do, so what is in it is older than what comes into that
//! operator's queue afterwards, and is delivered first: the order of messages is that of the queues.

use std::collections::VecDeque;
use std::sync::Arc;

use hashbrown::HashMap;
use mangrove_graph::{Error, Result};

use crate::group::{GroupId, Groups, NodeId};
use crate::limits::QueryContext;
use crate::operator::Batch;
use crate::topology::{Exchange, OpId, Topology};

/// What travels along an edge.
pub(crate) struct Message<B> {
    pub operator: OpId,
    pub port: u8,
    pub group: GroupId,
    pub body: Body<B>,
}

pub(crate) enum Body<B> {
    /// A batch, and what the query is charged for it while it waits.
    Data { batch: B, charged: u64 },
    /// The sender's last word for the group: how many messages it sent here, and how many instances the
    /// group had.
    End { messages: u64, instances: u32 },
}

impl<B> Body<B> {
    /// A batch that is not charged yet.
    pub fn data(batch: B) -> Self {
        Body::Data { batch, charged: 0 }
    }
}

/// What waits at an operator. What returns from a scope goes before what would enter it.
pub(crate) struct Inbox<B> {
    pub entering: VecDeque<Message<B>>,
    pub returning: VecDeque<Message<B>>,
    /// The operator has work left from an earlier call.
    pub unfinished: bool,
}

impl<B> Inbox<B> {
    fn new() -> Self {
        Inbox { entering: VecDeque::new(), returning: VecDeque::new(), unfinished: false }
    }

    pub fn pop(&mut self) -> Option<Message<B>> {
        self.returning.pop_front().or_else(|| self.entering.pop_front())
    }

    pub fn is_idle(&self) -> bool {
        !self.unfinished && self.entering.is_empty() && self.returning.is_empty()
    }
}

/// How much of a group has arrived at a port. Only kept where messages come from other nodes.
#[derive(Default, Clone, Copy)]
struct Arrival {
    ends: u16,
    announced: u64,
    received: u64,
    instances: u32,
}

type FastMap<K, V> = HashMap<K, V, foldhash::fast::RandomState>;

/// One node's side of a running query, apart from the operators themselves.
pub(crate) struct Router<B: Batch> {
    pub node: NodeId,
    pub nodes: u16,
    pub topology: Arc<Topology>,
    pub inboxes: Vec<Inbox<B>>,
    /// A message to an operator whose inbox was idle when it was sent.
    pub hand: Option<Message<B>>,
    /// Which operators have something to do: a bit each.
    pub ready: Vec<u64>,
    /// Which operators of scopes have something that came back from their scope: a bit each.
    returned: Vec<u64>,
    pub groups: Groups,
    pub results: VecDeque<B>,
    pub complete: bool,
    /// Frames for other nodes.
    pub outbox: Vec<(NodeId, Vec<u8>)>,
    pub rows_out: Vec<u64>,
    pub tags_cancelled: u64,
    sent: FastMap<(OpId, u8, GroupId, NodeId), u64>,
    arrivals: FastMap<(OpId, u8, GroupId), Arrival>,
}

impl<B: Batch> Router<B> {
    pub fn new(node: NodeId, nodes: u16, topology: Arc<Topology>) -> Self {
        let count = topology.len();
        Router {
            node,
            nodes,
            inboxes: (0..count).map(|_| Inbox::new()).collect(),
            hand: None,
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

    /// Forgets a run that is complete; false where something of it is left, which then is not to be met by another.
    pub fn reset(&mut self) -> bool {
        let is_over = self.complete
            && self.results.is_empty()
            && self.hand.is_none()
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

    pub fn emit(
        &mut self,
        from: OpId,
        edge: usize,
        group: GroupId,
        batch: B,
        context: &Arc<QueryContext>,
    ) -> Result<()> {
        batch.charge_shared(context)?;
        self.rows_out[from as usize] += batch.rows() as u64;
        let target = &self.topology.outputs(from)[edge];
        let (to, port, exchange) = (target.to, target.port, target.exchange);
        if self.nodes == 1 {
            return self.hand_over(Message { operator: to, port, group, body: Body::data(batch) }, context);
        }
        let parts = match exchange {
            Exchange::Local => vec![(self.node, batch)],
            Exchange::Home => vec![(group.home(), batch)],
            Exchange::Owner => batch.partition(self.nodes),
            Exchange::Broadcast => (0..self.nodes).map(|node| (node, batch.duplicate())).collect(),
        };
        for (node, part) in parts {
            *self.sent.entry((from, edge as u8, group, node)).or_default() += 1;
            self.send(node, Message { operator: to, port, group, body: Body::data(part) }, context)?;
        }
        Ok(())
    }

    pub fn finish(
        &mut self,
        from: OpId,
        edge: usize,
        group: GroupId,
        instances: u32,
        context: &QueryContext,
    ) -> Result<()> {
        let target = &self.topology.outputs(from)[edge];
        let (to, port, exchange) = (target.to, target.port, target.exchange);
        let end = |messages| Message { operator: to, port, group, body: Body::End { messages, instances } };
        if self.nodes == 1 {
            return self.hand_over(end(0), context);
        }
        let receivers = match exchange {
            Exchange::Local => self.node..self.node + 1,
            Exchange::Home => group.home()..group.home() + 1,
            Exchange::Owner | Exchange::Broadcast => 0..self.nodes,
        };
        for node in receivers {
            let messages = self.sent.remove(&(from, edge as u8, group, node)).unwrap_or(0);
            self.send(node, end(messages), context)?;
        }
        Ok(())
    }

    /// Puts a message into the hand, or where that is not free or the operator has work, into its inbox.
    fn hand_over(&mut self, message: Message<B>, context: &QueryContext) -> Result<()> {
        if self.hand.is_none() && self.inboxes[message.operator as usize].is_idle() {
            self.hand = Some(message);
            return Ok(());
        }
        self.enqueue(message, context)
    }

    fn send(&mut self, node: NodeId, message: Message<B>, context: &QueryContext) -> Result<()> {
        if node == self.node {
            return self.enqueue(message, context);
        }
        self.outbox.push((node, encode(&message)));
        Ok(())
    }

    /// Puts a message into its operator's inbox.
    pub fn enqueue(&mut self, mut message: Message<B>, context: &QueryContext) -> Result<()> {
        if let Body::Data { batch, charged } = &mut message.body {
            *charged = batch.bytes() as u64;
            context.charge(*charged)?;
        }
        let operator = message.operator as usize;
        let (word, bit) = (operator / 64, 1 << (operator % 64));
        if self.returns(&message) {
            self.returned[word] |= bit;
        }
        let inbox = &mut self.inboxes[operator];
        // Port 0 is where a stream enters an operator; what a scope sends back arrives at the others.
        if message.port == 0 {
            inbox.entering.push_back(message);
        } else {
            inbox.returning.push_back(message);
        }
        self.ready[word] |= bit;
        Ok(())
    }

    /// Whether a message comes back to the operator of a scope from what runs inside.
    fn returns(&self, message: &Message<B>) -> bool {
        message.port != 0 && self.topology.is_scope(message.operator)
    }

    /// Puts an end-of-stream, already counted, back to the front of its queue until the operator has worked
    /// off the batch before it.
    pub fn reopen(&mut self, message: Message<B>) -> Result<()> {
        if self.nodes > 1 {
            let key = (message.operator, message.port, message.group);
            let Body::End { instances, .. } = message.body else {
                return Err(Error::bug("only an end-of-stream is put back"));
            };
            // All ends but one stay counted; the one put back completes them again.
            let senders = if self.all_send(message.operator, message.port) { self.nodes } else { 1 };
            self.arrivals.insert(key, Arrival { ends: senders - 1, announced: 0, received: 0, instances });
        }
        let inbox = &mut self.inboxes[message.operator as usize];
        if message.port == 0 {
            inbox.entering.push_front(message);
        } else {
            inbox.returning.push_front(message);
        }
        Ok(())
    }

    /// Takes in a frame from another node.
    pub fn accept(&mut self, frame: &[u8], context: &QueryContext) -> Result<()> {
        let message = decode(frame)?;
        if message.operator as usize >= self.inboxes.len() {
            return Err(Error::bug(format!("a frame names operator {}, which this plan lacks", message.operator)));
        }
        self.enqueue(message, context)
    }

    /// The operator of a scope to which something has come back, or else the ready operator nearest to the result.
    pub fn next_ready(&self) -> Option<OpId> {
        if let Some(message) = self.hand.as_ref().filter(|message| self.returns(message)) {
            return Some(message.operator);
        }
        let in_hand = self.hand.as_ref().map(|message| message.operator);
        highest(&self.returned).or_else(|| in_hand.max(highest(&self.ready)))
    }

    /// The next message of an operator that has no unfinished work: what is in the hand is the oldest.
    pub fn next_message(&mut self, operator: OpId) -> Option<Message<B>> {
        if self.hand.as_ref().is_some_and(|message| message.operator == operator) {
            return self.hand.take();
        }
        self.inboxes[operator as usize].pop()
    }

    /// Notes whether an operator has something to do in its inbox, or from its last call.
    pub fn settle(&mut self, operator: OpId) {
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

    /// Counts a data message that was taken out of an inbox; the instances of its group, if that was the
    /// last thing missing.
    pub fn count_received(&mut self, operator: OpId, port: u8, group: GroupId) -> Option<u32> {
        if self.nodes == 1 {
            return None;
        }
        self.arrivals.entry((operator, port, group)).or_default().received += 1;
        self.completed(operator, port, group)
    }

    /// Counts an end-of-stream that was taken out of an inbox; the instances of its group, if that was the
    /// last thing missing.
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

    fn all_send(&self, operator: OpId, port: u8) -> bool {
        let into = |edge: &&crate::topology::Edge| edge.to == operator && edge.port == port;
        self.topology.outputs.iter().flatten().find(into).is_some_and(|edge| edge.all_send)
    }
}

/// The highest number in a set of bits.
fn highest(bits: &[u64]) -> Option<OpId> {
    let word = bits.iter().rposition(|word| *word != 0)?;
    let bit = 63 - bits[word].leading_zeros() as usize;
    Some((word * 64 + bit) as OpId)
}

const FRAME_HEADER_BYTES: usize = 12;

fn encode<B: Batch>(message: &Message<B>) -> Vec<u8> {
    let mut frame = Vec::with_capacity(64);
    frame.extend_from_slice(&message.operator.to_le_bytes());
    frame.push(message.port);
    frame.push(matches!(message.body, Body::End { .. }).into());
    frame.extend_from_slice(&message.group.to_bits().to_le_bytes());
    match &message.body {
        Body::Data { batch, .. } => batch.encode(&mut frame),
        Body::End { messages, instances } => {
            frame.extend_from_slice(&messages.to_le_bytes());
            frame.extend_from_slice(&instances.to_le_bytes());
        }
    }
    frame
}

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
    })
}
