//! Queries on the database's executors.
//!
//! The query is a task; its results go through a small queue to the thread that asked, which hands them on
//! and, when it takes one from a full queue, wakes the task. So a slow reader holds back its query and
//! nothing else. A reader that leaves early waits until the task has ended: after that nothing of the query runs, writes, or
//! holds its transaction.

use std::collections::VecDeque;
use std::sync::Arc;

use mangrove_flow::executor::{Executors, Task, TaskStatus, Waker};
use mangrove_graph::{Error, Result, Value};
use parking_lot::{Condvar, Mutex};

use crate::execution::{Execution, Turn};
use crate::stream::Materialize;

type Batch = Vec<(Value, u64)>;

/// Batches that may wait for the reader.
const QUEUED_BATCHES_MAX: usize = 4;

#[derive(Default)]
struct Queue {
    batches: VecDeque<Batch>,
    /// How the query ended.
    end: Option<Result<()>>,
    /// The reader wants no more.
    closed: bool,
}

#[derive(Default)]
struct Channel {
    queue: Mutex<Queue>,
    news: Condvar,
}

impl Channel {
    fn end(&self, result: Result<()>) {
        self.queue.lock().end.get_or_insert(result);
        self.news.notify_one();
    }
}

struct QueryTask {
    execution: Option<Execution>,
    materialize: Materialize,
    channel: Arc<Channel>,
}

impl QueryTask {
    fn turn(&mut self, quota: usize) -> Result<TaskStatus> {
        let Some(execution) = &mut self.execution else { return Ok(TaskStatus::Done) };
        {
            let queue = self.channel.queue.lock();
            if queue.closed {
                return Ok(TaskStatus::Done);
            }
            if queue.batches.len() >= QUEUED_BATCHES_MAX {
                return Ok(TaskStatus::Waiting);
            }
        }
        Ok(match execution.turn(quota, self.materialize)? {
            Turn::Results(batch) => {
                self.channel.queue.lock().batches.push_back(batch);
                self.channel.news.notify_one();
                TaskStatus::Again
            }
            Turn::Yielded => TaskStatus::Again,
            Turn::Complete => TaskStatus::Done,
        })
    }
}

impl Task for QueryTask {
    fn run(&mut self, quota: usize) -> TaskStatus {
        let (status, result) = match self.turn(quota) {
            Ok(TaskStatus::Done) => (TaskStatus::Done, Ok(())),
            Ok(status) => return status,
            Err(error) => (TaskStatus::Done, Err(error)),
        };
        // The query lets go of its transaction before its reader learns of the end.
        self.execution = None;
        self.channel.end(result);
        status
    }
}

/// A task is dropped when it is done; if that comes without a word, it panicked or its executors were
/// stopped.
impl Drop for QueryTask {
    fn drop(&mut self) {
        self.execution = None;
        self.channel.end(Err(Error::bug("the query ended without a result; please report it with its text")));
    }
}

/// Closes the channel however the reader leaves, and waits for the end of the task.
struct Reader {
    channel: Arc<Channel>,
    waker: Waker,
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.channel.queue.lock().closed = true;
        self.waker.wake();
        let mut queue = self.channel.queue.lock();
        while queue.end.is_none() {
            self.channel.news.wait(&mut queue);
        }
    }
}

impl Reader {
    /// The next batch; `None` at the end.
    fn next(&self) -> Result<Option<Batch>> {
        let mut queue = self.channel.queue.lock();
        loop {
            if let Some(batch) = queue.batches.pop_front() {
                drop(queue);
                self.waker.wake();
                return Ok(Some(batch));
            }
            if let Some(end) = queue.end.take() {
                queue.end = Some(Ok(()));
                return end.map(|()| None);
            }
            self.channel.news.wait(&mut queue);
        }
    }
}

/// Runs a query on executors and hands its results to `accept`.
pub(crate) fn run(
    executors: &Executors,
    execution: Execution,
    materialize: Materialize,
    accept: &mut dyn FnMut(Batch) -> Result<()>,
) -> Result<()> {
    let channel = Arc::new(Channel::default());
    let mut reader = None;
    executors.spawn(|waker| {
        reader = Some(Reader { channel: channel.clone(), waker });
        Box::new(QueryTask { execution: Some(execution), materialize, channel: channel.clone() })
    });
    let reader = reader.ok_or_else(|| Error::bug("an executor makes its task before it returns"))?;
    while let Some(batch) = reader.next()? {
        accept(batch)?;
    }
    Ok(())
}
