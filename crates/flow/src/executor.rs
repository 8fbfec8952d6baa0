//! Threads that run queries in turn.
//!
//! A query is a [`Task`]: it is run for a turn, goes back to the end of the queue, and so a
//! short query beside many heavy ones waits for one turn of each at most, not for their end. A task that
//! cannot go on (its reader is slow) says so and is out of the queue until it is woken. Nothing here
//! spins: an executor without work sleeps.
//!
//! What a query leaves when it ends may take long to free; a thread of its own does that ([`Executors::discard`]).
//!
//! Not here: sharing the messages of one query among executors. A query stays on the executor that runs
//! its quota; queries are what executors have in common.

use std::any::Any;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex};

/// What a task says at the end of its quota.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// There is more to do.
    Again,
    /// Nothing to do until [`Waker::wake`].
    Waiting,
    /// It is finished and may be dropped.
    Done,
}

/// Something that is run in turns.
pub trait Task: Send {
    /// Runs for a turn: about `quota` messages, or [`TURN_NANOS`] if that is less.
    fn run(&mut self, quota: usize) -> TaskStatus;
}

/// Messages a task works off in one turn: about 100 µs to 1 ms of work, where messages are small.
pub const QUOTA_MESSAGES: usize = 32;

/// How long a turn lasts, in nanoseconds, where messages are large; one message more is on its way by then.
pub const TURN_NANOS: u64 = 1_000_000;

const QUEUED: u8 = 0;
const RUNNING: u8 = 1;
/// Woken while running: it goes back to the queue whatever it says.
const RUNNING_WOKEN: u8 = 2;
const WAITING: u8 = 3;
const DONE: u8 = 4;

struct Cell {
    state: AtomicU8,
    task: Mutex<Option<Box<dyn Task>>>,
}

#[derive(Default)]
struct Queue {
    cells: VecDeque<Arc<Cell>>,
    closed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    /// Threads that run a task, and turns begun: for whoever watches, so nothing is published with them.
    busy: AtomicU64,
    turns: AtomicU64,
}

/// What executors are doing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExecutorLoad {
    /// Threads.
    pub threads: u64,
    /// Threads that run a task now.
    pub busy: u64,
    /// Tasks that wait for a thread.
    pub queued: u64,
    /// Turns of tasks so far.
    pub turns: u64,
}

impl Shared {
    fn push(&self, cell: Arc<Cell>) {
        let mut queue = self.queue.lock();
        if !queue.closed {
            queue.cells.push_back(cell);
            self.work.notify_one();
        }
    }
}

/// A set of executor threads. Dropping it stops them after the turn each is running.
pub struct Executors {
    shared: Arc<Shared>,
    /// The way to the thread that frees; absent once that thread is to end.
    discarded: Option<Sender<Discarded>>,
    threads: Vec<JoinHandle<()>>,
}

/// Something to be dropped.
type Discarded = Box<dyn Any + Send>;

/// Puts a waiting task back into the queue.
#[derive(Clone)]
pub struct Waker {
    cell: Arc<Cell>,
    shared: Arc<Shared>,
}

impl Waker {
    /// Wakes the task; nothing happens if it is queued or done.
    pub fn wake(&self) {
        let state = &self.cell.state;
        // Acquire and release pair with the executor's own changes: who moves the state to QUEUED pushes.
        if state.compare_exchange(WAITING, QUEUED, Ordering::AcqRel, Ordering::Acquire).is_ok() {
            self.shared.push(self.cell.clone());
        } else {
            let _ = state.compare_exchange(RUNNING, RUNNING_WOKEN, Ordering::AcqRel, Ordering::Acquire);
        }
    }
}

impl Executors {
    /// Starts `count` threads.
    pub fn start(count: usize) -> std::io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let (discarded, garbage) = channel();
        let mut executors = Executors { shared, discarded: Some(discarded), threads: Vec::new() };
        for n in 0..count.max(1) {
            let shared = executors.shared.clone();
            executors.start_thread(format!("mangrove-executor-{n}"), move || work(&shared))?;
        }
        executors.start_thread("mangrove-freeing".to_owned(), move || free(&garbage))?;
        Ok(executors)
    }

    fn start_thread(&mut self, name: String, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        self.threads.push(std::thread::Builder::new().name(name).spawn(work)?);
        Ok(())
    }

    /// Puts a task into the queue. `make` gets the task's waker before the task first runs.
    pub fn spawn(&self, make: impl FnOnce(Waker) -> Box<dyn Task>) {
        let cell = Arc::new(Cell { state: AtomicU8::new(QUEUED), task: Mutex::new(None) });
        let waker = Waker { cell: cell.clone(), shared: self.shared.clone() };
        *cell.task.lock() = Some(make(waker));
        self.shared.push(cell);
    }

    /// Drops something on a thread that does nothing else: to free a gigabyte of values takes tenths of a second.
    pub fn discard(&self, garbage: impl Any + Send) {
        if let Some(discarded) = &self.discarded {
            // The thread ends only with these executors; what it cannot take is dropped here.
            let _ = discarded.send(Box::new(garbage));
        }
    }

    /// What they are doing.
    pub fn load(&self) -> ExecutorLoad {
        ExecutorLoad {
            threads: self.count() as u64,
            busy: self.shared.busy.load(Ordering::Relaxed),
            queued: self.shared.queue.lock().cells.len() as u64,
            turns: self.shared.turns.load(Ordering::Relaxed),
        }
    }

    /// How many threads run tasks.
    pub fn count(&self) -> usize {
        // One thread frees.
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
            // The last handle may have been a task's own: its thread ends by itself, when the task is dropped.
            if thread.thread().id() == std::thread::current().id() {
                continue;
            }
            // An executor thread catches what its tasks throw, so it ends by itself.
            let _ = thread.join();
        }
    }
}

fn free(garbage: &Receiver<Discarded>) {
    for discarded in garbage {
        // What panics while it is dropped is lost, and what comes after it is not.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(discarded)));
    }
}

fn work(shared: &Shared) {
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

fn run_once(shared: &Shared, cell: Arc<Cell>) {
    cell.state.store(RUNNING, Ordering::Release);
    let mut slot = cell.task.lock();
    let Some(task) = slot.as_mut() else { return };
    // A task that panics is finished; its drop tells whoever waits for it. The executor goes on.
    let status =
        std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| task.run(QUOTA_MESSAGES))).unwrap_or(TaskStatus::Done);
    let again = match status {
        TaskStatus::Done => {
            *slot = None;
            cell.state.store(DONE, Ordering::Release);
            false
        }
        TaskStatus::Again => true,
        TaskStatus::Waiting => {
            cell.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire).is_err()
        }
    };
    drop(slot);
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

    /// Keeps its executor from other tasks until it is told.
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
        // All three are there before the first of them runs, however slow this thread is.
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

    /// Runs another task when it is told to.
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

    /// Says on which thread it is dropped.
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
