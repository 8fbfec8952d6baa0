//! Threads that run queries in turns.
//!
//! A query is a [`Task`]. An executor runs it for one turn and puts it back at the end of the queue, so a short query
//! beside many heavy ones waits for one turn of each at most. A task that cannot go on, because the client reads its
//! results slowly, leaves the queue until it is woken. An executor without work sleeps; nothing spins.
//!
//! ```text
//!             pushed              popped            Done
//! (spawn) ─► QUEUED ────► queue ────────► RUNNING ───────► DONE
//!              ▲                           │  │  └─ Again ─► QUEUED
//!              │                wake: RUNNING_WOKEN, then QUEUED unless Done
//!              └──── wake ──── WAITING ◄───┘ Waiting
//! ```
//!
//! - **FLOW-16.** A task is in the queue at most once: only the thread that moves its state to `QUEUED` pushes it. No
//!   wake is lost: a wake during a turn leaves `RUNNING_WOKEN`, which the executor turns into another turn. For that,
//!   the reason for a wake (such as room in a queue) must change under a lock before [`Waker::wake`], and the task must
//!   look at it under the same lock.
//!
//! Freeing the memory of a query may take long; a thread of its own does it ([`Executors::discard`]). Only one executor
//! runs a query at a time: the messages of one query are not shared among executors.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// The task has more to do.
    Again,
    /// The task has nothing to do until [`Waker::wake`].
    Waiting,
    /// The task is finished and may be dropped.
    Done,
}

/// Work that is done in turns: a query.
pub trait Task: Send {
    /// Runs for one turn: about `quota` messages, or [`TURN_NANOS`] if that is shorter.
    fn run(&mut self, quota: usize) -> TaskStatus;
}

/// The messages that a task processes in one turn: 100 µs to 1 ms of work if messages are small.
pub const QUOTA_MESSAGES: usize = 32;

/// The length of a turn, in nanoseconds, if messages are large. A turn ends after the message in which this time
/// passes.
pub const TURN_NANOS: u64 = 1_000_000;

/// The states of a task, as the picture above shows them.
const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
/// Woken while it ran: the task goes back to the queue whatever the outcome of the turn (unless it is done).
const RUNNING_WOKEN: u8 = 2;
const WAITING: u8 = 3;
const DONE: u8 = 4;

/// A task and its state.
struct TaskCell {
    state: AtomicU8,
    /// `None` after the task is done. The lock is held during a turn.
    task: Mutex<Option<Box<dyn Task>>>,
}

/// The tasks that wait for a thread.
#[derive(Default)]
struct TaskQueue {
    cells: VecDeque<Arc<TaskCell>>,
    /// True after the executors were dropped: no task is added or taken.
    closed: bool,
}

/// The state that the threads and the wakers share.
#[derive(Default)]
struct Shared {
    queue: Mutex<TaskQueue>,
    /// Signaled when a task is added, and when the queue is closed.
    work: Condvar,
    /// Threads that run a task. For metrics only: no other memory is published with this counter.
    busy: AtomicU64,
    /// Turns begun. For metrics only, as `busy`.
    turns: AtomicU64,
}

/// How busy the executors are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutorLoad {
    /// Executor threads.
    pub threads: u64,
    /// Threads that are running a task.
    pub busy: u64,
    /// Tasks that wait for a thread.
    pub queued: u64,
    /// Turns begun since the start.
    pub turns: u64,
}

impl Shared {
    /// Adds a task to the end of the queue, unless the queue is closed.
    fn push(&self, cell: Arc<TaskCell>) {
        let mut queue = self.queue.lock();
        if !queue.closed {
            queue.cells.push_back(cell);
            self.work.notify_one();
        }
    }
}

/// A set of executor threads. Dropping it stops each thread after the turn that it is running. Tasks that are not done
/// then get no further turn.
pub struct Executors {
    shared: Arc<Shared>,
    /// The channel to the thread that frees; `None` tells that thread to end.
    discarded: Option<Sender<Discarded>>,
    threads: Vec<JoinHandle<()>>,
}

/// A value to be dropped.
type Discarded = Box<dyn Any + Send>;

/// Puts a waiting task back into the queue.
#[derive(Clone)]
pub struct Waker {
    cell: Arc<TaskCell>,
    shared: Arc<Shared>,
}

impl Waker {
    /// Wakes the task. If it is queued or done, nothing happens.
    pub fn wake(&self) {
        let state = &self.cell.state;
        // FLOW-16: the thread that moves the state to QUEUED pushes. Acquire and release pair with the executor's
        // changes of the state.
        if state.compare_exchange(WAITING, QUEUED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.shared.push(self.cell.clone());
        } else {
            let _ = state.compare_exchange(RUNNING, RUNNING_WOKEN, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

impl Executors {
    /// Starts `count` executor threads, at least one, and the thread that frees.
    pub fn start(count: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (discarded, garbage) = channel();
        let mut executors = Executors { shared, discarded: Some(discarded), threads: Vec::new() };
        for n in 0..count.max(1) {
            let shared = executors.shared.clone();
            executors.start_thread(format!("mangrove-executor-{n}"), move || run_executor(&shared))?;
        }
        executors.start_thread("mangrove-freeing".to_owned(), move || free_discarded(&garbage))?;
        Ok(executors)
    }

    fn start_thread(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.threads.push(std::thread::Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    /// Puts a task into the queue. `make` receives the waker of the task before the first turn.
    pub fn spawn(&self, make: impl FnOnce(Waker) -> Box<dyn Task>) {
        let cell = Arc::new(TaskCell { state: AtomicU8::new(QUEUED), task: Mutex::new(None) });
        let waker = Waker { cell: cell.clone(), shared: self.shared.clone() };
        *cell.task.lock() = Some(make(waker));
        self.shared.push(cell);
    }

    /// Drops a value on the thread that frees. Freeing a gigabyte of values takes tenths of a second.
    pub fn discard(&self, garbage: impl Any + Send) {
        if let Some(discarded) = &self.discarded {
            // The thread ends only with these executors. A value that it cannot take is dropped here.
            let _ = discarded.send(Box::new(garbage));
        }
    }

    /// Returns how busy the executors are.
    pub fn load(&self) -> ExecutorLoad {
        ExecutorLoad {
            threads: self.count() as u64,
            busy: self.shared.busy.load(Ordering::Relaxed),
            queued: self.shared.queue.lock().cells.len() as u64,
            turns: self.shared.turns.load(Ordering::Relaxed),
        }
    }

    /// Returns the number of executor threads.
    pub fn count(&self) -> usize {
        // The last thread is the one that frees.
        self.threads.len().saturating_sub(1)
    }
}

impl Drop for Executors {
    fn drop(&mut self) {
        {
            let mut queue = self.shared.queue.lock();
            queue.closed = true;
            queue.cells.clear();
        }
        self.shared.work.notify_all();
        self.discarded = None;
        for thread in self.threads.drain(..) {
            // A task may own the last handle of its executors. Its thread then ends by itself, after the task is
            // dropped.
            if thread.thread().id() == std::thread::current().id() {
                continue;
            }
            // An executor catches the panics of its tasks, so its thread ends without one.
            let _ = thread.join();
        }
    }
}

/// Drops values until the channel is closed and empty.
fn free_discarded(garbage: &Receiver<Discarded>) {
    for discarded in garbage {
        // A panic in one drop must not end the thread.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(discarded)));
    }
}

/// Runs tasks until the queue is closed.
fn run_executor(shared: &Shared) {
    loop {
        let cell = {
            let mut queue = shared.queue.lock();
            loop {
                if queue.closed {
                    return;
                }
                match queue.cells.pop_front() {
                    Some(cell) => break cell,
                    None => shared.work.wait(&mut queue),
                }
            }
        };
        shared.turns.fetch_add(1, Ordering::Relaxed);
        shared.busy.fetch_add(1, Ordering::Relaxed);
        run_once(shared, cell);
        shared.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Runs one turn of a task that was taken out of the queue.
fn run_once(shared: &Shared, cell: Arc<TaskCell>) {
    cell.state.store(RUNNING, Ordering::Release);
    let mut current = cell.task.lock();
    let Some(task) = current.as_mut() else { return };
    // A task that panics counts as done. Its drop wakes the thread that waits for it, and the executor goes on.
    let status =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.run(QUOTA_MESSAGES))).unwrap_or(TaskStatus::Done);
    let again = match status {
        TaskStatus::Done => {
            *current = None;
            cell.state.store(DONE, Ordering::Release);
            false
        }
        TaskStatus::Again => true,
        TaskStatus::Waiting => {
            // FLOW-16: this fails if the task was woken during its turn.
            cell.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire).is_err()
        }
    };
    drop(current);
    if again {
        cell.state.store(QUEUED, Ordering::Release);
        shared.push(cell);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;

    struct Countdown {
        left: u32,
        say: mpsc::Sender<u32>,
        name: u32,
    }

    impl Task for Countdown {
        fn run(&mut self, _quota: usize) -> TaskStatus {
            if self.left == 0 {
                let _ = self.say.send(self.name);
                return TaskStatus::Done;
            }
            self.left -= 1;
            TaskStatus::Again
        }
    }

    /// Keeps its executor busy until the test opens the gate.
    struct Gate(mpsc::Receiver<()>);

    impl Task for Gate {
        fn run(&mut self, _quota: usize) -> TaskStatus {
            let _ = self.0.recv();
            TaskStatus::Done
        }
    }

    #[test]
    fn a_short_task_overtakes_long_ones() {
        let executors = Executors::start(1).unwrap();
        let (say, heard) = mpsc::channel();
        // All three tasks exist before the first of them runs, however slow this thread is.
        let (open, gate) = mpsc::channel();
        executors.spawn(|_| Box::new(Gate(gate)));
        for (name, left) in [(1, 100_000), (2, 100_000), (3, 1)] {
            let say = say.clone();
            executors.spawn(|_| Box::new(Countdown { left, say, name }));
        }
        open.send(()).unwrap();
        assert_eq!(heard.recv().unwrap(), 3);
        let mut rest = vec![heard.recv().unwrap(), heard.recv().unwrap()];
        rest.sort_unstable();
        assert_eq!(rest, vec![1, 2]);
    }

    /// Keeps its executors alive.
    struct Owner {
        executors: Option<Arc<Executors>>,
        say: mpsc::Sender<bool>,
    }

    impl Task for Owner {
        fn run(&mut self, _quota: usize) -> TaskStatus {
            let executors = self.executors.take().expect("it is run until it has dropped them");
            match Arc::into_inner(executors) {
                Some(last) => {
                    drop(last);
                    let _ = self.say.send(true);
                }
                None => {
                    let _ = self.say.send(false);
                }
            }
            TaskStatus::Done
        }
    }

    #[test]
    fn executors_may_be_dropped_by_a_task_of_theirs() {
        let executors = Arc::new(Executors::start(2).unwrap());
        let (say, heard) = mpsc::channel();
        let (go, wait) = mpsc::channel();
        let mine = executors.clone();
        executors.spawn(move |_| {
            // The task runs when this handle is the last one.
            Box::new(Later { wait, then: Owner { executors: Some(mine), say } })
        });
        drop(executors);
        go.send(()).unwrap();
        let limit = std::time::Duration::from_secs(20);
        assert!(heard.recv_timeout(limit).expect("no thread waits for itself"), "the task had the last handle");
    }

    /// Runs another task after the test sends.
    struct Later {
        wait: mpsc::Receiver<()>,
        then: Owner,
    }

    impl Task for Later {
        fn run(&mut self, quota: usize) -> TaskStatus {
            match self.wait.try_recv() {
                Ok(()) => self.then.run(quota),
                Err(_) => TaskStatus::Again,
            }
        }
    }

    struct Sleeper {
        rounds: u32,
        say: mpsc::Sender<u32>,
    }

    impl Task for Sleeper {
        fn run(&mut self, _quota: usize) -> TaskStatus {
            self.rounds += 1;
            let _ = self.say.send(self.rounds);
            if self.rounds == 3 { TaskStatus::Done } else { TaskStatus::Waiting }
        }
    }

    #[test]
    fn a_waiting_task_runs_once_for_each_wake_and_no_wake_is_lost() {
        let executors = Executors::start(2).unwrap();
        let (say, heard) = mpsc::channel();
        let mut waker = None;
        executors.spawn(|w| {
            waker = Some(w);
            Box::new(Sleeper { rounds: 0, say })
        });
        for round in 1..=3 {
            assert_eq!(heard.recv().unwrap(), round);
            waker.as_ref().unwrap().wake();
        }
        assert!(heard.recv().is_err(), "the task was dropped when it was done");
    }

    /// Reports the thread on which it is dropped.
    struct Garbage(mpsc::Sender<Option<String>>);

    impl Drop for Garbage {
        fn drop(&mut self) {
            let _ = self.0.send(std::thread::current().name().map(str::to_owned));
        }
    }

    #[test]
    fn what_is_discarded_is_dropped_by_a_thread_of_its_own() {
        let executors = Executors::start(1).unwrap();
        let (say, heard) = mpsc::channel();
        for _ in 0..3 {
            executors.discard(Garbage(say.clone()));
        }
        drop((executors, say));
        assert_eq!(heard.iter().collect::<Vec<_>>(), vec![Some("mangrove-freeing".to_owned()); 3]);
    }

    struct Bad;

    impl Task for Bad {
        fn run(&mut self, _quota: usize) -> TaskStatus {
            panic!("a task may fail");
        }
    }

    #[test]
    fn a_panic_ends_its_task_and_not_the_executor() {
        let executors = Executors::start(1).unwrap();
        executors.spawn(|_| Box::new(Bad));
        let (say, heard) = mpsc::channel();
        executors.spawn(|_| Box::new(Countdown { left: 1, say, name: 9 }));
        assert_eq!(heard.recv().unwrap(), 9);
    }

    #[test]
    fn the_load_counts_threads_turns_and_what_waits() {
        let executors = Executors::start(2).unwrap();
        assert_eq!(executors.load(), ExecutorLoad { threads: 2, ..ExecutorLoad::default() });
        let (say, heard) = mpsc::channel();
        executors.spawn(|_| Box::new(Countdown { left: 3, say, name: 1 }));
        heard.recv().unwrap();
        let load = executors.load();
        assert_eq!((load.turns, load.queued), (4, 0));
    }
}
