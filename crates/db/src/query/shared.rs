//! Queries on executors.
//!
//! ```text
//! executor: QueryTask ──batches──▶ queue (bounded) ──▶ reader: the thread that called `run`
//!               ▲                                          │
//!               └──────────── wakes the task ◀─────────────┘
//! ```
//!
//! The reader passes the batches on. After it has taken a batch, it wakes the task, which waits while the queue is
//! full. So a slow reader holds back its own query only.
//!
//! - **DB-6.** When `run` returns, nothing of the query runs, writes, or holds its transaction. A reader that leaves
//!   early waits for the end of the query, and wakes its task, which nothing else would wake if the queue was full.
//!
//! A query ends soon after its time limit has passed, however many queries there are. During a turn the executor checks
//! the limits; between turns the reader checks them every [`LOOK_INTERVAL`]. When the reader has learned of the end, an
//! executor thread frees the memory of the query.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use mangrove_flow::QueryControl;
use mangrove_flow::schedule::{Executors, TURN_NANOS, Task, TaskStatus, Tenant, Waker};
use mangrove_graph::{Draw, Error, ErrorKind, MemoryBudget, Purpose, Result, Value};
use parking_lot::{Condvar, Mutex, MutexGuard};

use super::execution::{Execution, QueryRemains, TurnOutcome, bytes};
use crate::gauges::TaskGauges;
use crate::options::{Materialize, QueryOptions};

type ResultBatch = Vec<(Value, u64)>;

/// Batches that may wait for the reader.
const QUEUED_BATCHES_MAX: usize = 4;

/// The query also waits while the queued batches take this many bytes.
const QUEUED_BYTES_MAX: u64 = 4 << 20;

/// Units of work between two checks of the length of a turn. Most take tens of microseconds.
const LOOK_UNITS: usize = 4;

/// The interval at which a waiting reader checks the limits of its query.
const LOOK_INTERVAL: Duration = Duration::from_millis(10);

struct ResultQueue {
    /// Each batch with its size in bytes.
    batches: VecDeque<(ResultBatch, u64)>,
    /// The draw of these batches, and of the one that the reader has, on the memory budget. They do not count towards
    /// the query's own limit: most of their memory is texts of properties, which the graph holds anyway.
    draw: Draw,
    /// The outcome of the query; `None` while it runs.
    end: Option<Result<()>>,
    /// The memory to be freed after the end.
    remains: Option<QueryRemains>,
    /// True if the reader has left.
    closed: bool,
}

impl ResultQueue {
    fn new(budget: &MemoryBudget) -> Self {
        let draw = budget.account(Purpose::Queries);
        ResultQueue { batches: VecDeque::new(), draw, end: None, remains: None, closed: false }
    }

    /// Adds a batch with its size in bytes.
    fn push(&mut self, batch: ResultBatch, bytes: u64) -> Result<()> {
        self.draw.grow(bytes)?;
        self.batches.push_back((batch, bytes));
        Ok(())
    }

    /// Returns true if the query must wait until the reader has taken a batch.
    fn is_full(&self) -> bool {
        let bytes: u64 = self.batches.iter().map(|(_, bytes)| bytes).sum();
        self.batches.len() >= QUEUED_BATCHES_MAX || bytes >= QUEUED_BYTES_MAX
    }
}

/// A query that a task and its reader share.
struct SharedQuery {
    /// The query; `None` after its end. The thread that runs or ends it holds the lock.
    execution: Mutex<Option<Execution>>,
    control: Arc<QueryControl>,
    materialize: Materialize,
    queue: Mutex<ResultQueue>,
    news: Condvar,
}

impl SharedQuery {
    fn turn(&self, execution: &mut Execution, quota: usize, waker: &Waker) -> Result<TaskStatus> {
        {
            let queue = self.queue.lock();
            if queue.closed {
                return Ok(TaskStatus::Done);
            }
            if queue.is_full() {
                return Ok(TaskStatus::Waiting);
            }
        }
        self.control.check()?;
        let clock = self.control.clock();
        let end = clock.now_nanos().saturating_add(TURN_NANOS);
        for _ in 0..quota.div_ceil(LOOK_UNITS) {
            match execution.turn(LOOK_UNITS, self.materialize)? {
                TurnOutcome::Results(batch) => {
                    let bytes = bytes(&batch);
                    self.queue.lock().push(batch, bytes)?;
                    self.news.notify_one();
                    break;
                }
                #[cfg(feature = "arrow")]
                TurnOutcome::Columns(_) => return Err(super::execution::no_columns()),
                TurnOutcome::Complete => return Ok(TaskStatus::Done),
                TurnOutcome::Waiting => {
                    let waker = waker.clone();
                    if execution.sleep(Box::new(move || waker.wake())) {
                        return Ok(TaskStatus::Waiting);
                    }
                }
                TurnOutcome::Yielded if clock.now_nanos() >= end => break,
                TurnOutcome::Yielded => {}
            }
        }
        Ok(TaskStatus::Again)
    }

    /// Ends the query. It releases its transaction before its reader learns of the end.
    fn end(&self, mut execution: MutexGuard<'_, Option<Execution>>, result: Result<()>) {
        let remains = execution.take().map(Execution::end);
        let mut queue = self.queue.lock();
        if queue.end.is_none() {
            (queue.end, queue.remains) = (Some(result), remains);
        }
        self.news.notify_one();
    }

    /// Ends the query unless an executor is running it.
    fn end_between_turns(&self, error: Error) {
        if let Some(execution) = self.execution.try_lock()
            && execution.is_some()
        {
            self.end(execution, Err(error));
        }
    }
}

struct QueryTask {
    query: Arc<SharedQuery>,
    waker: Waker,
    gauges: Option<TaskGauges>,
}

impl Task for QueryTask {
    fn run(&mut self, quota: usize) -> TaskStatus {
        if let Some(gauges) = &mut self.gauges {
            gauges.add_cpu_nanos(self.waker.cpu_nanos());
        }
        let _turn = self.gauges.as_ref().map(TaskGauges::turn);
        let mut slot = self.query.execution.lock();
        let Some(execution) = slot.as_mut() else { return TaskStatus::Done };
        let result = match self.query.turn(execution, quota, &self.waker) {
            Ok(TaskStatus::Done) => {
                execution.ended_after(self.waker.cpu_nanos());
                Ok(())
            }
            Ok(status) => return status,
            Err(error) => Err(error),
        };
        self.query.end(slot, result);
        TaskStatus::Done
    }
}

/// A task is dropped when it is done. If the query has not ended then, it has panicked or its executors were stopped.
impl Drop for QueryTask {
    fn drop(&mut self) {
        let error = Error::bug("the query ended without a result; please report it with its text");
        self.query.end(self.query.execution.lock(), Err(error));
    }
}

/// The reader's end of the queue. Dropping it closes the queue and waits for the end of the query (DB-6).
struct QueueReader {
    query: Arc<SharedQuery>,
    waker: Waker,
}

impl Drop for QueueReader {
    fn drop(&mut self) {
        self.query.queue.lock().closed = true;
        loop {
            let mut queue = self.query.queue.lock();
            if queue.end.is_some() {
                break;
            }
            // A turn that has begun ends at its next message.
            self.query.control.abandon();
            MutexGuard::unlocked(&mut queue, || {
                self.query.end_between_turns(Error::new(ErrorKind::Cancelled, "the reader of the results has left"));
            });
            if queue.end.is_none() {
                self.query.news.wait_for(&mut queue, LOOK_INTERVAL);
            }
        }
        // A task that waits holds itself by its waker. Without another turn, it would never be dropped, and with it the
        // memory that the query has drawn.
        self.waker.wake();
    }
}

impl QueueReader {
    /// The next batch, with the number of bytes that it draws on the memory budget; `None` at the end.
    fn next(&self) -> Result<Option<(ResultBatch, u64)>> {
        let query = &*self.query;
        let mut queue = query.queue.lock();
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
            if query.news.wait_for(&mut queue, LOOK_INTERVAL).timed_out()
                && let Err(error) = query.control.check()
            {
                MutexGuard::unlocked(&mut queue, || query.end_between_turns(error));
            }
        }
    }
}

/// Runs a query of a tenant on executors, and hands its results to `accept`.
pub(crate) fn run(
    executors: &Executors,
    tenant: &Tenant,
    options: &QueryOptions,
    execution: Execution,
    budget: &MemoryBudget,
    accept: &mut dyn FnMut(ResultBatch) -> Result<()>,
) -> Result<()> {
    let Some(control) = execution.control() else { return Ok(()) };
    let query = Arc::new(SharedQuery {
        execution: Mutex::new(Some(execution)),
        control,
        materialize: options.materialize,
        queue: Mutex::new(ResultQueue::new(budget)),
        news: Condvar::new(),
    });
    let mut reader = None;
    executors.spawn(tenant, |waker| {
        reader = Some(QueueReader { query: query.clone(), waker: waker.clone() });
        let gauges = options.gauges.clone().map(TaskGauges::of_home);
        Box::new(QueryTask { query: query.clone(), waker, gauges })
    });
    let reader = reader.ok_or_else(|| Error::bug("an executor makes its task before it returns"))?;
    let outcome = read(&reader, accept);
    // DB-6: waits until the query has ended.
    drop(reader);
    let remains = {
        let mut queue = query.queue.lock();
        queue.batches.clear();
        let drawn = queue.draw.bytes();
        queue.draw.shrink(drawn);
        queue.remains.take()
    };
    if let Some(remains) = remains.filter(QueryRemains::are_large) {
        executors.discard(remains);
    }
    outcome
}

fn read(reader: &QueueReader, accept: &mut dyn FnMut(ResultBatch) -> Result<()>) -> Result<()> {
    while let Some((batch, drawn)) = reader.next()? {
        accept(batch)?;
        reader.query.queue.lock().draw.shrink(drawn);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
