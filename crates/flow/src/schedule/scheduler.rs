//! The queue with its lock: what executors, spawners and wakers share.
//!
//! An executor takes the lock once a turn. In the same step it reports the turn that has ended and takes the next task.
//!
//! - **FLOW-27.** While an executor is parked, a task waits no longer than it takes to wake one. An executor parks only
//!   after it has seen an empty queue and has entered itself as parked, both under the lock. Each added task removes a
//!   parked executor from the list and wakes it, except for one task at a time that the spinning executor takes. The
//!   spinning executor looks into the queue again, under the lock, after it has ceased to spin.
//!
//! What tenants owe for runs on the threads of callers (FLOW-48) has a lock of its own, which is taken inside the lock
//! of the queue or alone. So such a thread never waits for the queue.

use std::sync::Arc;

use hashbrown::HashMap;

use super::fair_queue::{FairQueue, TaskClass, Ticket};
use super::idle::{self, IdleExecutors};
use super::task::{Task, TaskCell, Turn};
use super::tenant::{Tenant, TenantShare, Weight};
use super::thread::cpu_nanos;
use crate::clock::{Clock, MonotonicClock};
use crate::sync::{AtomicBool, AtomicUsize, Mutex, MutexGuard, Ordering, Thread, park};

/// The tenants whose debts may wait to be charged. An executor charges them at the end of each turn.
const OWING_TENANTS_MAX: usize = 1_024;

/// A task that an executor runs, with the ticket of its place in the queue.
struct RunningTask {
    cell: Arc<TaskCell>,
    ticket: Ticket,
}

#[derive(Default)]
struct State {
    queue: FairQueue<Arc<TaskCell>>,
    idle: IdleExecutors,
    /// Turns begun.
    turns: u64,
    /// True after the executors were dropped: no task is added or taken.
    closed: bool,
}

/// The queue of a set of executors.
pub(super) struct Scheduler {
    state: Mutex<State>,
    /// The number of tasks in the queue. It changes under the lock; the spinning executor reads it without.
    queued: AtomicUsize,
    /// Executors that are parked or look for work. No other memory is published with this counter.
    idle: AtomicUsize,
    /// Nanoseconds that tenants owe, and that the queue has not charged.
    owed: Mutex<HashMap<Tenant, u64>>,
    /// True if `owed` has an entry. It becomes true after the entry was made, and false before the entries are taken.
    is_owed: AtomicBool,
    /// True if an executor without work may spin.
    may_spin: bool,
    clock: MonotonicClock,
}

impl Scheduler {
    /// The scheduler of `count` executors.
    pub fn new(count: usize, may_spin: bool) -> Self {
        Scheduler {
            state: Mutex::default(),
            queued: AtomicUsize::new(0),
            idle: AtomicUsize::new(count),
            owed: Mutex::default(),
            is_owed: AtomicBool::new(false),
            may_spin,
            clock: MonotonicClock::default(),
        }
    }

    /// Puts a new task into the queue. `make` receives the waker of the task before the first turn.
    pub fn spawn(self: &Arc<Self>, tenant: &Tenant, class: TaskClass, make: impl FnOnce(Waker) -> Box<dyn Task>) {
        let cell = Arc::new(TaskCell::new());
        cell.fill(make(Waker { cell: cell.clone(), scheduler: self.clone() }));
        self.add_and_wake(|queue| queue.add(tenant, class, cell));
    }

    /// Adds a task to the queue, unless the queue is closed, and wakes an executor if one is needed.
    fn add_and_wake(&self, add: impl FnOnce(&mut FairQueue<Arc<TaskCell>>)) {
        let woken = {
            let mut state = self.state.lock();
            if state.closed {
                return;
            }
            self.charge_owed(&mut state);
            add(&mut state.queue);
            let queued = self.publish_length(&state);
            state.idle.wake_for(queued)
        };
        // FLOW-27: outside of the lock, for which the woken thread would wait.
        woken.as_ref().map(Thread::unpark);
    }

    /// Notes that queries of a tenant ran for this long on the threads of their callers (FLOW-48).
    pub fn owe(&self, tenant: &Tenant, nanos: u64) {
        {
            let mut owed = self.owed.lock();
            if owed.len() >= OWING_TENANTS_MAX && !owed.contains_key(tenant) {
                return;
            }
            let sum = owed.entry(tenant.clone()).or_default();
            *sum = sum.saturating_add(nanos);
        }
        // Relaxed: the lock publishes the entry. An executor that misses the flag sees it after its next turn.
        self.is_owed.store(true, Ordering::Relaxed);
    }

    /// Charges tenants for what they owe.
    fn charge_owed(&self, state: &mut State) {
        if self.is_owed.load(Ordering::Relaxed) {
            self.is_owed.store(false, Ordering::Relaxed);
            let owed = std::mem::take(&mut *self.owed.lock());
            state.queue.owe(owed);
        }
    }

    fn publish_length(&self, state: &State) -> usize {
        let queued = state.queue.len();
        self.queued.store(queued, Ordering::Relaxed);
        queued
    }

    pub fn set_weight(&self, tenant: &Tenant, weight: Weight) {
        self.state.lock().queue.set_weight(tenant, weight);
    }

    /// Returns a tenant's part of the executors at the moment.
    pub fn share(&self, tenant: &Tenant) -> TenantShare {
        self.state.lock().queue.share(tenant)
    }

    /// The executors that are parked or look for work.
    pub fn idle(&self) -> usize {
        self.idle.load(Ordering::Relaxed)
    }

    /// The number of tasks in the queue, and of turns begun.
    pub fn queued_and_turns(&self) -> (u64, u64) {
        let state = self.state.lock();
        (state.queue.len() as u64, state.turns)
    }

    /// Removes all tasks and ends the threads in [`Scheduler::run_tasks`].
    pub fn close(&self) {
        let (tasks, woken) = {
            let mut state = self.state.lock();
            state.closed = true;
            self.queued.store(0, Ordering::Relaxed);
            (state.queue.take_all(), state.idle.wake_all())
        };
        woken.iter().for_each(Thread::unpark);
        // Outside of the lock: the drop of a task may take other locks.
        tasks.iter().for_each(|(_, task)| task.discard());
    }

    /// Runs tasks until the queue is closed: the work of an executor's thread.
    pub fn run_tasks(&self) {
        let Some(mut running) = self.first_task() else { return };
        let mut begin = cpu_nanos();
        loop {
            let turn = running.cell.run_turn();
            let end = cpu_nanos();
            let nanos = end.saturating_sub(begin);
            begin = end;
            match self.next_task(running, turn, nanos) {
                Some(next) => running = next,
                None => {
                    self.idle.fetch_add(1, Ordering::Relaxed);
                    let Some(first) = self.first_task() else { return };
                    running = first;
                    // The search is not charged to the task.
                    begin = cpu_nanos();
                }
            }
        }
    }

    /// Reports a turn that has ended. Returns the task that is next, if one is queued.
    fn next_task(&self, running: RunningTask, turn: Turn, nanos: u64) -> Option<RunningTask> {
        let RunningTask { cell, mut ticket } = running;
        cell.add_cpu_nanos(nanos);
        let mut state = self.state.lock();
        self.charge_owed(&mut state);
        state.queue.charge(&mut ticket, nanos);
        ticket.set_needed(turn.is_needed);
        let Some(ticket) = cell.end_turn(turn.status, ticket) else {
            let next = self.take(&mut state);
            drop(state);
            // The last handle of a task may be dropped here, outside of the lock.
            drop(cell);
            return next;
        };
        if state.closed {
            drop(state);
            cell.discard();
            return None;
        }
        if state.queue.goes_on(&ticket) {
            state.turns += 1;
            return Some(RunningTask { cell, ticket });
        }
        state.queue.put_back(ticket, cell);
        self.take(&mut state)
    }

    /// Takes the next task out of the queue.
    fn take(&self, state: &mut MutexGuard<'_, State>) -> Option<RunningTask> {
        if state.closed {
            return None;
        }
        let (ticket, cell) = state.queue.take()?;
        state.turns += 1;
        self.publish_length(state);
        Some(RunningTask { cell, ticket })
    }

    /// Waits for a task, at first spinning. Returns `None` if the queue is closed.
    fn first_task(&self) -> Option<RunningTask> {
        let mut may_spin = self.may_spin;
        let mut state = self.state.lock();
        loop {
            if state.closed {
                return None;
            }
            if let Some(next) = self.take(&mut state) {
                state.idle.end_parking();
                self.idle.fetch_sub(1, Ordering::Relaxed);
                return Some(next);
            }
            if std::mem::take(&mut may_spin) && state.idle.begin_to_spin() {
                drop(state);
                idle::spin(&self.queued, &self.clock as &dyn Clock);
                state = self.state.lock();
                state.idle.end_spinning();
                continue;
            }
            // FLOW-27: entered as parked under the lock under which the queue was seen empty.
            state.idle.begin_to_park();
            drop(state);
            park();
            state = self.state.lock();
        }
    }
}

/// Puts a waiting task back into the queue.
#[derive(Clone)]
pub struct Waker {
    cell: Arc<TaskCell>,
    scheduler: Arc<Scheduler>,
}

impl Waker {
    /// Wakes the task. If it is queued or done, nothing happens.
    pub fn wake(&self) {
        if let Some(ticket) = self.cell.wake() {
            let cell = self.cell.clone();
            self.scheduler.add_and_wake(|queue| queue.put_back(ticket, cell));
        }
    }

    /// The CPU time of the task's turns that have ended, in nanoseconds.
    pub fn cpu_nanos(&self) -> u64 {
        self.cell.cpu_nanos()
    }
}
