//! The models of the scheduler, which the model checker runs (`tests/model_check.rs`).

use std::sync::Arc;

use shuttle::sync::atomic::{AtomicBool, Ordering};
use shuttle::sync::{Condvar, Mutex};
use shuttle::thread;

use super::fair_queue::TaskClass;
use super::scheduler::{Scheduler, Waker};
use super::task::{Task, TaskStatus};
use super::tenant::Tenant;

/// What a task and its wakers share.
#[derive(Default)]
struct Inbox {
    items: Mutex<u32>,
    is_running: AtomicBool,
}

/// The tasks that are not done.
#[derive(Default)]
struct Left {
    count: Mutex<usize>,
    changed: Condvar,
}

/// A task that takes items out of its inbox, and is done when it has had all of them.
struct Taker {
    inbox: Arc<Inbox>,
    missing: u32,
    left: Arc<Left>,
    /// True if it asks for another turn after each item, too.
    is_busy: bool,
}

impl Task for Taker {
    fn run(&mut self, _: usize) -> TaskStatus {
        let was_running = self.inbox.is_running.swap(true, Ordering::SeqCst);
        assert!(!was_running, "one executor at a time runs a task");
        let taken = std::mem::take(&mut *self.inbox.items.lock().unwrap());
        self.missing = self.missing.checked_sub(taken).expect("no item is taken twice");
        self.inbox.is_running.store(false, Ordering::SeqCst);
        match self.missing {
            0 => TaskStatus::Done,
            _ if self.is_busy && taken > 0 => TaskStatus::Again,
            _ => TaskStatus::Waiting,
        }
    }
}

impl Drop for Taker {
    fn drop(&mut self) {
        assert_eq!(self.missing, 0, "a task is dropped when it is done");
        *self.left.count.lock().unwrap() -= 1;
        self.left.changed.notify_one();
    }
}

/// Tasks of two tenants, each with wakers that put items into its inbox. Every task is done in the end: no task and no
/// wake is lost (FLOW-16), and no executor stays parked while a task waits (FLOW-27). The checker reports a deadlock
/// otherwise.
pub fn every_task_gets_its_items(executors: usize, tasks: usize, wakers: usize, items: u32, may_spin: bool) {
    let scheduler = Arc::new(Scheduler::new(executors, may_spin));
    let left = Arc::new(Left { count: Mutex::new(tasks), changed: Condvar::new() });
    let run = |scheduler: Arc<Scheduler>| thread::spawn(move || scheduler.run_tasks());
    let threads: Vec<_> = (0..executors).map(|_| run(scheduler.clone())).collect();
    let mut senders = Vec::new();
    for n in 0..tasks {
        let inbox = Arc::new(Inbox::default());
        let task = Taker { inbox: inbox.clone(), missing: wakers as u32 * items, left: left.clone(), is_busy: n == 0 };
        let class = if n == 1 { TaskClass::Helper } else { TaskClass::Query };
        let mut waker = None;
        scheduler.spawn(&Tenant::new(format!("{}", n % 2)), class, |own| {
            waker = Some(own);
            Box::new(task)
        });
        let waker = waker.expect("the task was made");
        senders.extend((0..wakers).map(|_| send(inbox.clone(), waker.clone(), items)));
    }
    let mut count = left.count.lock().unwrap();
    while *count > 0 {
        count = left.changed.wait(count).unwrap();
    }
    drop(count);
    senders.into_iter().for_each(|sender| sender.join().unwrap());
    scheduler.close();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(scheduler.queued_and_turns().0, 0);
}

/// Puts items into an inbox from a thread of its own, and wakes the task after each.
fn send(inbox: Arc<Inbox>, waker: Waker, items: u32) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for _ in 0..items {
            // FLOW-16: the reason for the wake changes under the lock under which the task looks at it.
            *inbox.items.lock().unwrap() += 1;
            waker.wake();
        }
    })
}

/// Executors are stopped while tasks wait, run and are spawned: all threads end, and every task is dropped.
pub fn closing_ends_every_thread(executors: usize) {
    struct Endless(Arc<Left>);

    impl Task for Endless {
        fn run(&mut self, _: usize) -> TaskStatus {
            // The schedules with few preemptions would run it forever.
            thread::yield_now();
            TaskStatus::Again
        }
    }

    impl Drop for Endless {
        fn drop(&mut self) {
            *self.0.count.lock().unwrap() -= 1;
        }
    }

    let scheduler = Arc::new(Scheduler::new(executors, true));
    let left = Arc::new(Left { count: Mutex::new(2), changed: Condvar::new() });
    let run = |scheduler: Arc<Scheduler>| thread::spawn(move || scheduler.run_tasks());
    let threads: Vec<_> = (0..executors).map(|_| run(scheduler.clone())).collect();
    let spawn = |scheduler: Arc<Scheduler>| {
        let left = left.clone();
        move || scheduler.spawn(&Tenant::default(), TaskClass::Query, |_| Box::new(Endless(left)))
    };
    let spawner = thread::spawn(spawn(scheduler.clone()));
    spawn(scheduler.clone())();
    scheduler.close();
    spawner.join().unwrap();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*left.count.lock().unwrap(), 0, "no task is left");
}
