//! A task and its states.
//!
//! ```text
//!             put back             taken                Done
//! (spawn) ─► QUEUED ────► queue ────────► RUNNING ───────► DONE
//!              ▲                           │  │  └─ Again ─► QUEUED
//!              │                wake: RUNNING_WOKEN, then QUEUED unless Done
//!              └──── wake ──── WAITING ◄───┘ Waiting
//! ```
//!
//! - **FLOW-16.** A task is in the queue at most once: only the thread that moves its state to `QUEUED` puts it there.
//!   No wake is lost: a wake during a turn leaves `RUNNING_WOKEN`, which the executor turns into another turn. For
//!   that, the reason for a wake (such as room in a queue) must change under a lock before `Waker::wake`, and the task
//!   must look at it under the same lock.

use super::fair_queue::Ticket;
use crate::sync::{AtomicU8, AtomicU64, Mutex, Ordering};

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// The task has more to do.
    Again,
    /// The task has nothing to do until [`Waker::wake`](super::Waker::wake).
    Waiting,
    /// The task is finished and may be dropped.
    Done,
}

/// Work that is done in turns: a query, or a part of one.
pub trait Task: Send {
    /// Runs for one turn: about `quota` messages, or [`TURN_NANOS`] if that is shorter.
    fn run(&mut self, quota: usize) -> TaskStatus;

    /// For a task that helps a query, after a turn: returns true if the query may have to wait for the next turn. The
    /// task then counts as a query until its next turn has ended (FLOW-26).
    fn is_needed(&self) -> bool {
        false
    }
}

/// The outcome of a turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Turn {
    pub status: TaskStatus,
    /// See [`Task::is_needed`].
    pub is_needed: bool,
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
pub(super) struct TaskCell {
    state: AtomicU8,
    /// `None` after the task is done. The lock is held during a turn.
    task: Mutex<Option<Box<dyn Task>>>,
    /// The ticket of a task that waits to be woken. The executor stores it before the state becomes `WAITING`, and the
    /// thread that ends that state takes it.
    ticket: Mutex<Option<Ticket>>,
    /// CPU time of the turns that have ended.
    cpu_nanos: AtomicU64,
}

impl TaskCell {
    /// A cell without a task, in the state `QUEUED`.
    pub fn new() -> Self {
        TaskCell {
            state: AtomicU8::new(QUEUED),
            task: Mutex::new(None),
            ticket: Mutex::new(None),
            cpu_nanos: AtomicU64::new(0),
        }
    }

    pub fn fill(&self, task: Box<dyn Task>) {
        *self.task.lock() = Some(task);
    }

    /// The CPU time of the turns that have ended, in nanoseconds.
    pub fn cpu_nanos(&self) -> u64 {
        // A figure to show: no other memory is published with it.
        self.cpu_nanos.load(Ordering::Relaxed)
    }

    pub fn add_cpu_nanos(&self, nanos: u64) {
        self.cpu_nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    /// Wakes the task. If it waits, its state is `QUEUED` afterwards, and the caller must put it into the queue with
    /// the ticket that is returned.
    pub fn wake(&self) -> Option<Ticket> {
        // Acquire and release pair with the executor's changes of the state.
        let mut state = self.state.load(Ordering::Acquire);
        loop {
            let next = match state {
                WAITING => QUEUED,
                RUNNING => RUNNING_WOKEN,
                // The task has a turn after this, or is done.
                _ => return None,
            };
            match self.state.compare_exchange(state, next, Ordering::AcqRel, Ordering::Acquire) {
                // FLOW-16: the thread that moves the state to QUEUED puts the task into the queue.
                Ok(WAITING) => return self.ticket.lock().take(),
                Ok(_) => return None,
                // The executor has changed the state meanwhile, perhaps from RUNNING to WAITING.
                Err(now) => state = now,
            }
        }
    }

    /// Runs one turn of a task that was taken out of the queue.
    pub fn run_turn(&self) -> Turn {
        let before = self.state.swap(RUNNING, Ordering::AcqRel);
        debug_assert_eq!(before, QUEUED, "a task that is taken out of the queue is in the state QUEUED");
        let mut current = self.task.lock();
        let done = Turn { status: TaskStatus::Done, is_needed: false };
        let Some(task) = current.as_mut() else { return done };
        // A task that panics counts as done. Its drop wakes the thread that waits for it, and the executor goes on.
        let turn = std::panic::AssertUnwindSafe(|| {
            let status = task.run(QUOTA_MESSAGES);
            Turn { status, is_needed: task.is_needed() }
        });
        let turn = std::panic::catch_unwind(turn).unwrap_or(done);
        drop(current);
        if turn.status == TaskStatus::Done {
            self.discard();
        }
        turn
    }

    /// Drops the task, which gets no further turn. The caller is the only one that may run it. (A task may hold its own
    /// cell by a waker. So to drop the cell is not enough.)
    pub fn discard(&self) {
        let task = self.task.lock().take();
        self.state.store(DONE, Ordering::Release);
        // A panic in the drop of a task must not end the thread.
        let _ = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| drop(task)));
    }

    /// Moves a task whose turn has ended to the state in which it waits for the next one. Returns the ticket if the
    /// task goes back to the queue.
    pub fn end_turn(&self, status: TaskStatus, ticket: Ticket) -> Option<Ticket> {
        match status {
            TaskStatus::Done => return None,
            TaskStatus::Again => {}
            TaskStatus::Waiting => {
                *self.ticket.lock() = Some(ticket);
                // FLOW-16: this fails if the task was woken during its turn.
                if self.state.compare_exchange(RUNNING, WAITING, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                    return None;
                }
                let ticket = self.ticket.lock().take();
                self.state.store(QUEUED, Ordering::Release);
                return ticket;
            }
        }
        self.state.store(QUEUED, Ordering::Release);
        Some(ticket)
    }
}
