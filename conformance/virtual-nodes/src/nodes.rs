//! Runs the nodes of a query in turn, on the thread of the caller.
//!
//! Frames of bytes are the only way from one node to another. With the same seed, a run delivers frames in the same
//! order.

use std::collections::VecDeque;

use mangrove_flow::{Batch, NodeRuntime, Progress};
use mangrove_graph::{Error, Result};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

/// The nodes of one query, and the frames on their way between them.
///
/// Without a seed, a node receives frames in the order in which they were sent. With a seed, it receives the frames
/// that wait for it in random order, also those of one sender. That is allowed: an end-of-stream carries the number of
/// messages that it closes (FLOW-12), so it takes effect only after them.
pub struct Nodes<B: Batch> {
    nodes: Vec<NodeRuntime<B>>,
    /// The frames that were sent and not yet delivered, by receiver.
    in_flight: Vec<VecDeque<Vec<u8>>>,
    /// Chooses the next frame; without it, frames arrive in the order in which they were sent.
    shuffle: Option<SmallRng>,
    frames: u64,
}

/// The number of messages that a node handles before the next node's turn.
const TURN: usize = 16;

impl<B: Batch> Nodes<B> {
    /// Nodes of a run that is about to begin. With a seed, the seed decides the order of frames.
    pub fn new(nodes: Vec<NodeRuntime<B>>, seed: Option<u64>) -> Self {
        let in_flight = nodes.iter().map(|_| VecDeque::new()).collect();
        Nodes { nodes, in_flight, shuffle: seed.map(SmallRng::seed_from_u64), frames: 0 }
    }

    /// Runs the query to its end and returns all results. Node 0 takes `start`. The query ends when node 0 is complete.
    ///
    /// # Errors
    ///
    /// The error of a node, or a bug if no node can continue before the query ended.
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
                        Progress::Complete | Progress::Idle | Progress::Waiting => break,
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

    /// Passes all waiting frames to a node.
    fn deliver(&mut self, at: usize) -> Result<()> {
        while !self.in_flight[at].is_empty() {
            let waiting = self.in_flight[at].len();
            let pick = self.shuffle.as_mut().map_or(0, |random| random.random_range(0..waiting));
            if let Some(frame) = self.in_flight[at].remove(pick) {
                self.nodes[at].accept(&frame)?;
            }
        }
        Ok(())
    }

    /// The number of frames that the nodes have sent.
    pub fn frames(&self) -> u64 {
        self.frames
    }
}
