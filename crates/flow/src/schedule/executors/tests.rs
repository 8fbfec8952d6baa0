//! The threads: turns, wakes, panics, and the end of a set.

use std::sync::mpsc;

use super::super::task::TaskStatus;
use super::*;

fn start(count: usize) -> Executors {
    Executors::start(ExecutorOptions { count, ..ExecutorOptions::default() }).unwrap()
}

fn tenant() -> Tenant {
    Tenant::default()
}

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
    let executors = start(1);
    let (say, heard) = mpsc::channel();
    // All three tasks exist before the first of them runs, however slow this thread is.
    let (open, gate) = mpsc::channel();
    executors.spawn(&tenant(), |_| Box::new(Gate(gate)));
    for (name, left) in [(1, 100_000), (2, 100_000), (3, 1)] {
        let say = say.clone();
        executors.spawn(&tenant(), |_| Box::new(Countdown { left, say, name }));
    }
    open.send(()).unwrap();
    assert_eq!(heard.recv().unwrap(), 3);
    let mut rest = vec![heard.recv().unwrap(), heard.recv().unwrap()];
    rest.sort_unstable();
    assert_eq!(rest, vec![1, 2]);
}

/// A tenant whose queries ran on the threads of their callers waits for those that waited meanwhile (FLOW-48).
#[test]
fn runs_on_callers_threads_are_paid_for() {
    for (owed_nanos, expected) in [(0, [1, 2]), (50_000_000, [2, 1])] {
        let executors = start(1);
        let (say, heard) = mpsc::channel();
        let (open, gate) = mpsc::channel();
        executors.spawn(&tenant(), |_| Box::new(Gate(gate)));
        let [inline, other] = ["inline", "other"].map(Tenant::new);
        executors.owe(&inline, owed_nanos / 2);
        executors.owe(&inline, owed_nanos / 2);
        for (tenant, name) in [(inline, 1), (other, 2)] {
            let say = say.clone();
            executors.spawn(&tenant, |_| Box::new(Countdown { left: 0, say, name }));
        }
        open.send(()).unwrap();
        assert_eq!([heard.recv().unwrap(), heard.recv().unwrap()], expected, "{owed_nanos} ns owed");
    }
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
    let executors = Arc::new(start(2));
    let (say, heard) = mpsc::channel();
    let (go, wait) = mpsc::channel();
    let mine = executors.clone();
    executors.spawn(&tenant(), move |_| {
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
    let executors = start(2);
    let (say, heard) = mpsc::channel();
    let mut waker = None;
    executors.spawn(&tenant(), |w| {
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
    let executors = start(1);
    let (say, heard) = mpsc::channel();
    for _ in 0..3 {
        executors.discard(Garbage(say.clone()));
    }
    drop((executors, say));
    assert_eq!(heard.iter().collect::<Vec<_>>(), vec![Some("mangrove-freeing".to_owned()); 3]);
}

/// Goes on for ever, holds its own cell by a waker, and says when it is dropped.
struct Endless {
    _waker: Waker,
    _say: Garbage,
}

impl Task for Endless {
    fn run(&mut self, _quota: usize) -> TaskStatus {
        TaskStatus::Again
    }
}

#[test]
fn tasks_that_have_not_ended_are_dropped_with_their_executors() {
    let (say, heard) = mpsc::channel();
    for count in [1, 3] {
        let executors = start(1);
        for _ in 0..count {
            executors.spawn(&tenant(), |waker| Box::new(Endless { _waker: waker, _say: Garbage(say.clone()) }));
        }
        drop(executors);
        assert_eq!(heard.try_iter().count(), count, "each is dropped, whether it ran or was queued");
    }
}

struct Bad;

impl Task for Bad {
    fn run(&mut self, _quota: usize) -> TaskStatus {
        panic!("a task may fail");
    }
}

#[test]
fn a_panic_ends_its_task_and_not_the_executor() {
    let executors = start(1);
    executors.spawn(&tenant(), |_| Box::new(Bad));
    let (say, heard) = mpsc::channel();
    executors.spawn(&tenant(), |_| Box::new(Countdown { left: 1, say, name: 9 }));
    assert_eq!(heard.recv().unwrap(), 9);
}

#[test]
fn the_load_counts_threads_turns_and_what_waits() {
    let executors = start(2);
    assert_eq!(executors.load(), ExecutorLoad { threads: 2, ..ExecutorLoad::default() });
    let (say, heard) = mpsc::channel();
    executors.spawn(&tenant(), |_| Box::new(Countdown { left: 3, say, name: 1 }));
    heard.recv().unwrap();
    let load = executors.load();
    assert_eq!((load.turns, load.queued), (4, 0));
}
