//! The batches that wait in the operator of a scope until the groups inside have ended.
//!
//! - **STEPS-6.** Batches leave a scope in the order in which they entered. A group outside ends after its own end has
//!   arrived and none of its batches waits any more.
//!
//! One batch may leave with millions of rows, and many batches may wait for one before them. So batches are released in
//! steps ([`WaitQueue::release`]).

use std::collections::VecDeque;

use hashbrown::HashMap;
use mangrove_flow::{BATCH_ROWS, GroupId, Output, QueryControl, Step, TagSet};
use mangrove_graph::{FastMap, Result, pieces};

use crate::rows::Rows;

/// A batch that waits in a scope.
struct QueuedBatch<T> {
    number: u64,
    /// The group outside that the batch belongs to.
    group: GroupId,
    state: BatchState<T>,
    done: bool,
    /// The group inside that works for the batch.
    inside: Option<GroupId>,
    /// Bytes charged while it waits (FLOW-17).
    charged: u64,
}

/// The state of a batch in a scope.
enum BatchState<T> {
    /// It is inside, or waits for batches before it.
    Waiting(T),
    /// It leaves.
    Leaving(Box<LeavingRows>),
}

/// Rows that leave a scope, some at a time.
#[derive(Default)]
pub(crate) struct LeavingRows {
    rows: Rows,
    /// The rows in the order in which they leave; `None` if they leave as they are.
    order: Option<Vec<u32>>,
    /// The number of rows that have left.
    gone: usize,
}

impl LeavingRows {
    /// Rows that leave as they are: not more than a message holds.
    pub fn of_one_batch(rows: Rows) -> Self {
        LeavingRows { rows, order: None, gone: 0 }
    }

    /// Rows that leave in the order of their keys; rows with equal keys leave as they came.
    pub fn by_key(rows: Rows, key: impl Fn(u32) -> u32, control: &QueryControl) -> Result<Self> {
        let mut order: Vec<u32> = (0..rows.len() as u32).collect();
        pieces::sort(&mut order, pieces::WORDS, || control.check(), |a, b| key(*a).cmp(&key(*b)))?;
        Ok(LeavingRows { rows, order: Some(order), gone: 0 })
    }

    /// Returns the next rows; `None` after the last ones.
    fn next(&mut self) -> Option<Rows> {
        let Some(order) = &self.order else { return Some(std::mem::take(&mut self.rows)).filter(|r| !r.is_empty()) };
        let rest = order.get(self.gone..).filter(|rest| !rest.is_empty())?;
        let next = &rest[..rest.len().min(BATCH_ROWS)];
        self.gone += next.len();
        Some(self.rows.take(next))
    }

    /// Returns true if no row is left.
    fn is_empty(&self) -> bool {
        self.gone >= self.order.as_ref().map_or(self.rows.len(), Vec::len)
    }
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
    /// True if a step has left batches to be released by the next one.
    is_releasing: bool,
}

impl<T> Default for WaitQueue<T> {
    fn default() -> Self {
        WaitQueue {
            queue: VecDeque::new(),
            next: 0,
            open: FastMap::default(),
            ended: FastMap::default(),
            inside: HashMap::default(),
            is_releasing: false,
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
        let state = BatchState::Waiting(state);
        self.queue.push_back(QueuedBatch { number: self.next, group, state, done: false, inside: None, charged: 0 });
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

    /// Notes that a group inside works for a batch. One group at a time works for a batch.
    pub fn enter(&mut self, inside: GroupId, batch: u64) {
        self.inside.insert(inside, batch);
        if let Ok(at) = self.queue.binary_search_by_key(&batch, |w| w.number) {
            self.queue[at].inside = Some(inside);
        }
    }

    /// Notes that a group inside has ended. Returns the number of its batch. If the batch was cancelled, it is done.
    pub fn leave(&mut self, inside: GroupId) -> Option<u64> {
        let batch = self.inside.remove(&inside)?;
        if let Ok(at) = self.queue.binary_search_by_key(&batch, |w| w.number) {
            let waiting = &mut self.queue[at];
            waiting.inside = None;
            waiting.done |= matches!(waiting.state, BatchState::Leaving(_));
        }
        Some(batch)
    }

    /// Drops the batches of a group outside that is cancelled as a whole, and releases their charge (FLOW-41). A batch
    /// without rows stays in its place until the group inside that works for it has ended. A batch of which only some
    /// instances are cancelled is kept: its rows are found by their index.
    pub fn cancelled(&mut self, group: GroupId, tags: Option<&TagSet>, out: &Output<'_, Rows>) {
        if tags.is_some() {
            return;
        }
        for waiting in self.queue.iter_mut().filter(|waiting| waiting.group == group) {
            waiting.state = BatchState::Leaving(Box::default());
            waiting.done = waiting.inside.is_none();
            out.control().release(std::mem::take(&mut waiting.charged));
        }
    }

    /// Returns true if a group inside works for a batch.
    pub fn is_inside(&self, batch: u64) -> bool {
        self.queue.binary_search_by_key(&batch, |w| w.number).is_ok_and(|at| self.queue[at].inside.is_some())
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
        match &mut waiting.state {
            BatchState::Waiting(state) => Some((state, waiting.group)),
            BatchState::Leaving(_) => None,
        }
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

    /// Returns true if a step of the end of a group is going to release the batches that are done.
    pub fn is_releasing(&self) -> bool {
        self.is_releasing
    }

    /// Releases batches at the head that are done, up to about as many rows as a message holds. If no such batch is
    /// left, sends the end of each group outside that waits for no batch any more (STEPS-6). `leave` returns the rows
    /// of a batch that leave.
    pub fn release(
        &mut self,
        exit: usize,
        out: &mut Output<'_, Rows>,
        mut leave: impl FnMut(T, &QueryControl) -> Result<LeavingRows>,
    ) -> Result<Step> {
        let mut sent = 0;
        while self.queue.front().is_some_and(|batch| batch.done) {
            if sent >= BATCH_ROWS {
                self.is_releasing = true;
                return Ok(Step::More);
            }
            let Some(mut batch) = self.queue.pop_front() else { break };
            let mut leaving = match batch.state {
                BatchState::Waiting(state) => leave(state, out.control())?,
                BatchState::Leaving(leaving) => *leaving,
            };
            let rows = leaving.next().unwrap_or_default();
            sent += rows.len();
            if leaving.is_empty() {
                out.control().release(batch.charged);
                self.forget(batch.group);
                out.emit(exit, batch.group, rows)?;
            } else {
                out.emit(exit, batch.group, rows)?;
                batch.state = BatchState::Leaving(Box::new(leaving));
                self.queue.push_front(batch);
            }
        }
        self.is_releasing = false;
        let closed: Vec<GroupId> = self.ended.keys().filter(|g| !self.open.contains_key(*g)).copied().collect();
        for group in closed {
            if let Some(instances) = self.ended.remove(&group) {
                out.finish(exit, group, instances)?;
            }
        }
        Ok(Step::Done)
    }

    /// Notes that a batch of a group outside has left.
    fn forget(&mut self, group: GroupId) {
        if let Some(open) = self.open.get_mut(&group) {
            *open -= 1;
            if *open == 0 {
                self.open.remove(&group);
            }
        }
    }
}
