//! Batches that wait for their scope groups, released in the order in which they came.

use std::collections::VecDeque;

use hashbrown::HashMap;
use mangrove_flow::{GroupId, Output};
use mangrove_graph::Result;

use crate::barrier::held::FastMap;
use crate::rows::Rows;

/// A batch that entered a scope and waits there.
struct Waiting<T> {
    number: u64,
    /// The group the batch belongs to, outside the scope.
    group: GroupId,
    state: T,
    done: bool,
    /// What the query is charged for while it waits.
    charged: u64,
}

/// The batches that wait in one scope operator, and the groups outside that wait for them.
pub struct WaitQueue<T> {
    queue: VecDeque<Waiting<T>>,
    next: u64,
    /// Batches waiting, by the group outside.
    open: FastMap<GroupId, u32>,
    /// Groups outside that have ended but for what waits here.
    ended: FastMap<GroupId, u32>,
    /// Which batch a group inside belongs to.
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
    /// Whether nothing waits, inside or outside.
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.open.is_empty() && self.ended.is_empty() && self.inside.is_empty()
    }

    /// Adds a batch's state; its number is returned.
    pub fn push(&mut self, group: GroupId, state: T) -> u64 {
        self.next += 1;
        *self.open.entry(group).or_default() += 1;
        self.queue.push_back(Waiting { number: self.next, group, state, done: false, charged: 0 });
        self.next
    }

    /// Charges the query for bytes that wait with a batch, until it is released.
    pub fn charge(&mut self, batch: u64, bytes: u64, out: &Output<'_, Rows>) -> Result<()> {
        out.context().charge(bytes)?;
        if let Ok(at) = self.queue.binary_search_by_key(&batch, |w| w.number) {
            self.queue[at].charged += bytes;
        }
        Ok(())
    }

    /// Says that a group inside the scope works for a batch.
    pub fn enter(&mut self, inside: GroupId, batch: u64) {
        self.inside.insert(inside, batch);
    }

    /// Says that a group inside has ended; the number of its batch.
    pub fn leave(&mut self, inside: GroupId) -> Option<u64> {
        self.inside.remove(&inside)
    }

    /// The number of the batch that a group inside works for.
    pub fn batch_of(&self, inside: GroupId) -> Option<u64> {
        self.inside.get(&inside).copied()
    }

    /// The state of a batch, and the group outside it belongs to.
    pub fn state(&mut self, batch: u64) -> Option<(&mut T, GroupId)> {
        // Numbers ascend along the queue.
        let at = self.queue.binary_search_by_key(&batch, |w| w.number).ok()?;
        let waiting = &mut self.queue[at];
        Some((&mut waiting.state, waiting.group))
    }

    /// The number of the batch at the head.
    pub fn head(&self) -> Option<u64> {
        self.queue.front().map(|w| w.number)
    }

    /// Says that a batch is done.
    pub fn done(&mut self, batch: u64) {
        if let Ok(at) = self.queue.binary_search_by_key(&batch, |w| w.number) {
            self.queue[at].done = true;
        }
    }

    /// Says that a group outside has ended.
    pub fn end(&mut self, group: GroupId, instances: u32) {
        self.ended.insert(group, instances);
    }

    /// Releases the batches at the head that are done, and finishes the groups outside that waited only for
    /// them.
    pub fn release(
        &mut self,
        exit: usize,
        out: &mut Output<'_, Rows>,
        mut emit: impl FnMut(T, GroupId, &mut Output<'_, Rows>) -> Result<()>,
    ) -> Result<()> {
        while self.queue.front().is_some_and(|w| w.done) {
            let Some(waiting) = self.queue.pop_front() else { break };
            out.context().release(waiting.charged);
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
