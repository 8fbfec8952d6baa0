//! Several nodes in one process, with every message between them serialized.
//!
//! This is the seam for a cluster, kept honest from the first day: the same topology runs over one, two or
//! more nodes, rows go to the node that owns them, and nothing is shared but frames of bytes. Frames of
//! different senders may be delivered in any order; with a seed, those of one sender too, since
//! end-of-stream counts what it closes.

use std::collections::VecDeque;

use mangrove_graph::{Error, Result};

use crate::group::NodeId;
use crate::operator::Batch;
use crate::runtime::{NodeRuntime, Progress};

/// The nodes of one query, run in turn on the caller's thread.
pub struct Nodes<B: Batch> {
    nodes: Vec<NodeRuntime<B>>,
    in_flight: Vec<VecDeque<Vec<u8>>>,
    /// State of a small generator that picks which frame is delivered next; `None`: in order.
    shuffle: Option<u64>,
    frames: u64,
}

/// Messages a node works off before the next one's turn.
const TURN: usize = 16;

impl<B: Batch> Nodes<B> {
    /// Runs these nodes; with a seed, frames are delivered in an arbitrary order.
    pub fn new(nodes: Vec<NodeRuntime<B>>, seed: Option<u64>) -> Self {
        let in_flight = nodes.iter().map(|_| VecDeque::new()).collect();
        Nodes { nodes, in_flight, shuffle: seed.map(|s| s | 1), frames: 0 }
    }

    /// Runs to the end and returns all results.
    pub fn run(&mut self, start: B) -> Result<Vec<B>> {
        self.nodes[0].start(start)?;
        let mut results = Vec::new();
        loop {
            let mut busy = false;
            for at in 0..self.nodes.len() {
                self.deliver(at)?;
                loop {
                    match self.nodes[at].run(TURN)? {
                        Progress::Results => results.extend(self.nodes[at].take_results()),
                        Progress::Yielded => {
                            busy = true;
                            break;
                        }
                        Progress::Complete if at == 0 => return Ok(results),
                        Progress::Complete | Progress::Idle => break,
                    }
                }
                for (to, frame) in self.nodes[at].take_outbox() {
                    self.frames += 1;
                    self.in_flight[to as usize].push_back(frame);
                    busy = true;
                }
            }
            if !busy && self.in_flight.iter().all(VecDeque::is_empty) {
                return Err(Error::bug(
                    "the dataflow has stopped before its end: a message or an end-of-stream is missing",
                ));
            }
        }
    }

    fn deliver(&mut self, at: usize) -> Result<()> {
        while !self.in_flight[at].is_empty() {
            let pick = match &mut self.shuffle {
                None => 0,
                Some(state) => {
                    // xorshift64: enough to mix an order, and the same for the same seed.
                    *state ^= *state << 13;
                    *state ^= *state >> 7;
                    *state ^= *state << 17;
                    (*state % self.in_flight[at].len() as u64) as usize
                }
            };
            if let Some(frame) = self.in_flight[at].remove(pick) {
                self.nodes[at].accept(&frame)?;
            }
        }
        Ok(())
    }

    /// Frames sent between nodes so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// How many nodes.
    pub fn len(&self) -> NodeId {
        self.nodes.len() as NodeId
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}
