//! The batches that wait in the operator of a scope until the groups inside have ended.
//!
//! - **STEPS-6.** Batches leave a scope in the order in which they entered, but for those that are *apart*: these leave
//!   as soon as they are done. A group outside ends after its own end has arrived and none of its batches waits any
//!   more.
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

impl<T> QueuedBatch<T> {
    /// Drops what it holds, and releases its charge.
    fn drop_rows(&mut self, out: &Output<'_, Rows>) {
        self.state = BatchState::Leaving(Box::default());
        out.control().release(std::mem::take(&mut self.charged));
    }
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
    /// The batches that are apart, by their numbers.
    apart: FastMap<u64, QueuedBatch<T>>,
    /// The batches among them that are done.
    apart_done: VecDeque<u64>,
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
            apart: FastMap::default(),
            apart_done: VecDeque::new(),
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
        self.queue.is_empty()
            && self.apart.is_empty()
            && self.apart_done.is_empty()
            && self.open.is_empty()
            && self.ended.is_empty()
            && self.inside.is_empty()
    }

    /// Adds a batch and returns its number.
    pub fn push(&mut self, group: GroupId, state: T) -> u64 {
        let batch = self.numbered(group, state);
        self.queue.push_back(batch);
        self.next
    }

    /// As [`WaitQueue::push`], for a batch that leaves as soon as it is done.
    pub fn push_apart(&mut self, group: GroupId, state: T) -> u64 {
        let batch = self.numbered(group, state);
        self.apart.insert(self.next, batch);
        self.next
    }

    fn numbered(&mut self, group: GroupId, state: T) -> QueuedBatch<T> {
        self.next += 1;
        *self.open.entry(group).or_default() += 1;
        let state = BatchState::Waiting(state);
        QueuedBatch { number: self.next, group, state, done: false, inside: None, charged: 0 }
    }

    /// The batch of a number.
    fn get(&mut self, batch: u64) -> Option<&mut QueuedBatch<T>> {
        // Numbers ascend along the queue.
        match self.queue.binary_search_by_key(&batch, |w| w.number) {
            Ok(at) => self.queue.get_mut(at),
            Err(_) => self.apart.get_mut(&batch),
        }
    }

    /// Returns the number of groups that are inside.
    pub fn inside_count(&self) -> usize {
        self.inside.len()
    }

    /// Charges the query for bytes of a batch until the batch is released.
    pub fn charge(&mut self, batch: u64, bytes: u64, out: &Output<'_, Rows>) -> Result<()> {
        out.control().charge(bytes)?;
        if let Some(waiting) = self.get(batch) {
            waiting.charged += bytes;
        }
        Ok(())
    }

    /// Notes that a group inside works for a batch. One group at a time works for a batch.
    pub fn enter(&mut self, inside: GroupId, batch: u64) {
        self.inside.insert(inside, batch);
        if let Some(waiting) = self.get(batch) {
            waiting.inside = Some(inside);
        }
    }

    /// Notes that a group inside has ended. Returns the number of its batch. If the batch was cancelled, it is done.
    pub fn leave(&mut self, inside: GroupId) -> Option<u64> {
        let batch = self.inside.remove(&inside)?;
        if let Some(waiting) = self.get(batch) {
            waiting.inside = None;
            if matches!(waiting.state, BatchState::Leaving(_)) {
                self.done(batch);
            }
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
        let (apart, apart_done) = (&mut self.apart, &mut self.apart_done);
        for waiting in self.queue.iter_mut().filter(|waiting| waiting.group == group) {
            waiting.drop_rows(out);
            waiting.done = waiting.inside.is_none();
        }
        for waiting in apart.values_mut().filter(|waiting| waiting.group == group) {
            waiting.drop_rows(out);
            if waiting.inside.is_none() && !std::mem::replace(&mut waiting.done, true) {
                apart_done.push_back(waiting.number);
            }
        }
    }

    /// Returns true if a group inside works for a batch.
    pub fn is_inside(&mut self, batch: u64) -> bool {
        self.get(batch).is_some_and(|waiting| waiting.inside.is_some())
    }

    /// Returns the number of the batch that a group inside works for.
    pub fn batch_of(&self, inside: GroupId) -> Option<u64> {
        self.inside.get(&inside).copied()
    }

    /// Returns the state of a batch, and the group outside that it belongs to.
    pub fn state(&mut self, batch: u64) -> Option<(&mut T, GroupId)> {
        let waiting = self.get(batch)?;
        match &mut waiting.state {
            BatchState::Waiting(state) => Some((state, waiting.group)),
            BatchState::Leaving(_) => None,
        }
    }

    /// Returns the number of the batch that is released next.
    pub fn head(&self) -> Option<u64> {
        self.queue.front().map(|w| w.number)
    }

    /// Notes that a batch is done: it leaves when all earlier ones have, or at once if it is apart.
    pub fn done(&mut self, batch: u64) {
        let is_new = self.get(batch).is_some_and(|waiting| !std::mem::replace(&mut waiting.done, true));
        if is_new && self.apart.contains_key(&batch) {
            self.apart_done.push_back(batch);
        }
    }

    /// Takes a batch out that leaves next.
    fn take_done(&mut self) -> Option<QueuedBatch<T>> {
        if self.queue.front().is_some_and(|batch| batch.done) {
            return self.queue.pop_front();
        }
        while let Some(number) = self.apart_done.pop_front() {
            if let Some(batch) = self.apart.remove(&number) {
                return Some(batch);
            }
        }
        None
    }

    /// Puts a batch back of which rows are left.
    fn put_back(&mut self, batch: QueuedBatch<T>, is_apart: bool) {
        if is_apart {
            self.apart_done.push_front(batch.number);
            self.apart.insert(batch.number, batch);
        } else {
            self.queue.push_front(batch);
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

    /// Releases batches that are done and may leave, up to about as many rows as a message holds. If no such batch is
    /// left, sends the end of each group outside that waits for no batch any more (STEPS-6). `leave` returns the rows
    /// of a batch that leave.
    pub fn release(
        &mut self,
        exit: usize,
        out: &mut Output<'_, Rows>,
        mut leave: impl FnMut(T, &QueryControl) -> Result<LeavingRows>,
    ) -> Result<Step> {
        let mut sent = 0;
        while self.queue.front().is_some_and(|batch| batch.done) || !self.apart_done.is_empty() {
            if sent >= BATCH_ROWS {
                self.is_releasing = true;
                return Ok(Step::More);
            }
            let is_apart = !self.queue.front().is_some_and(|batch| batch.done);
            let Some(mut batch) = self.take_done() else { break };
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
                self.put_back(batch, is_apart);
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
