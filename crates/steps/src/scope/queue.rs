//! The batches that wait in the operator of a scope until the groups inside have ended.
//!
//! - **STEPS-6.** Batches leave a scope in the order in which they entered. A group outside ends after its own end has
//!   arrived and none of its batches waits any more.

use std::collections::VecDeque;

use hashbrown::HashMap;
use mangrove_flow::{GroupId, Output};
use mangrove_graph::{FastMap, Result};

use crate::rows::Rows;

/// A batch that waits in a scope.
struct QueuedBatch<T> {
    number: u64,
    /// The group outside that the batch belongs to.
    group: GroupId,
    state: T,
    done: bool,
    /// Bytes charged while it waits (FLOW-17).
    charged: u64,
}

/// The waiting batches of one operator, in the order of their numbers, and the groups outside that wait for them.
pub(crate) struct WaitQueue<T> {
    queue: VecDeque<QueuedBatch<T>>,
    next: u64,
    /// The number of waiting batches of each group outside.
    open: FastMap<GroupId, u32>,
    /// The groups outside whose end has arrived, with their instances.
    ended: FastMap<GroupId, u32>,
    /// The number of the batch that each group inside works for.
    inside: FastMap<GroupId, u64>,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        WaitQueue {
            queue: VecDeque::new(),
            next: 0,
            open: FastMap::default(),
            ended: FastMap::default(),
            inside: HashMap::default(),
        }
    }
}

impl<T> WaitQueue<T> {
    /// Returns true if no batch and no group waits.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open.is_empty() && self.ended.is_empty() && self.inside.is_empty()
    }

    /// Adds a batch and returns its number.
    pub fn push(&mut self, group: GroupId, state: T) -> u64 {
        self.next += 1;
        *self.open.entry(group).or_default() += 1;
        self.queue.push_back(QueuedBatch { number: self.next, group, state, done: false, charged: 0 });
        self.next
    }

    /// Charges the query for bytes of a batch until the batch is released.
    pub fn charge(&mut self, batch: u64, bytes: u64, out: &Output<'_, Rows>) -> Result<()> {
        out.control().charge(bytes)?;
        if let Ok(at) = self.queue.binary_search_by_key(&batch, |w| w.number) {
            self.queue[at].charged += bytes;
        }
        Ok(())
    }

    /// Notes that a group inside works for a batch.
    pub fn enter(&mut self, inside: GroupId, batch: u64) {
        self.inside.insert(inside, batch);
    }

    /// Notes that a group inside has ended. Returns the number of its batch.
    pub fn leave(&mut self, inside: GroupId) -> Option<u64> {
        self.inside.remove(&inside)
    }

    /// Returns the number of the batch that a group inside works for.
    pub fn batch_of(&self, inside: GroupId) -> Option<u64> {
        self.inside.get(&inside).copied()
    }

    /// Returns the state of a batch, and the group outside that it belongs to.
    pub fn state(&mut self, batch: u64) -> Option<(&mut T, GroupId)> {
        // Numbers ascend along the queue.
        let at = self.queue.binary_search_by_key(&batch, |w| w.number).ok()?;
        let waiting = &mut self.queue[at];
        Some((&mut waiting.state, waiting.group))
    }

    /// Returns the number of the batch that is released next.
    pub fn head(&self) -> Option<u64> {
        self.queue.front().map(|w| w.number)
    }

    /// Notes that a batch is done: it leaves when all earlier ones have.
    pub fn done(&mut self, batch: u64) {
        if let Ok(at) = self.queue.binary_search_by_key(&batch, |w| w.number) {
            self.queue[at].done = true;
        }
    }

    /// Notes that the end of a group outside has arrived.
    pub fn end(&mut self, group: GroupId, instances: u32) {
        self.ended.insert(group, instances);
    }

    /// Releases the batches at the head that are done, and sends the end of each group outside that waits for no batch
    /// any more (STEPS-6).
    pub fn release(
        &mut self,
        exit: usize,
        out: &mut Output<'_, Rows>,
        mut emit: impl FnMut(T, GroupId, &mut Output<'_, Rows>) -> Result<()>,
    ) -> Result<()> {
        while self.queue.front().is_some_and(|w| w.done) {
            let Some(waiting) = self.queue.pop_front() else { break };
            out.control().release(waiting.charged);
            if let Some(open) = self.open.get_mut(&waiting.group) {
                *open -= 1;
                if *open == 0 {
                    self.open.remove(&waiting.group);
                }
            }
            emit(waiting.state, waiting.group, out)?;
        }
        let closed: Vec<GroupId> = self.ended.keys().filter(|g| !self.open.contains_key(*g)).copied().collect();
        for group in closed {
            if let Some(instances) = self.ended.remove(&group) {
                out.finish(exit, group, instances)?;
            }
        }
        Ok(())
    }
}
