//! Threads that carry out the requests of a home one after the other, so that submitting one never waits.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};

use parking_lot::Mutex;

use super::{HomeError, HomeErrorKind, HomeResult};

type Task = Box<dyn FnOnce() + Send>;

/// Threads with one queue of tasks. The queue has no limit of its own: callers bound their requests under way. When
/// this is dropped, the queued tasks are carried out, and the threads end.
#[derive(Debug)]
pub(super) struct Workers {
    /// `None` without threads: then each task runs at once.
    tasks: Option<Sender<Task>>,
    threads: Vec<JoinHandle<()>>,
}

impl Workers {
    /// Starts threads with this name.
    pub fn start(name: &str, threads: usize) -> HomeResult<Self> {
        if threads == 0 {
            return Ok(Workers { tasks: None, threads: Vec::new() });
        }
        let (tasks, queue) = channel::<Task>();
        let queue = Arc::new(Mutex::new(queue));
        let start = |_| {
            let queue = queue.clone();
            thread::Builder::new().name(name.to_owned()).spawn(move || work(&queue)).map_err(|error| {
                let message =
                    format!("cannot start a thread for requests to storage: {error}; raise the limit of threads");
                HomeError::new(HomeErrorKind::Unavailable, message)
            })
        };
        let threads = (0..threads).map(start).collect::<HomeResult<_>>()?;
        Ok(Workers { tasks: Some(tasks), threads })
    }

    /// Queues a task.
    pub fn run(&self, task: Task) {
        match &self.tasks {
            Some(tasks) => {
                // The threads end only if a task panics in each of them. Then the task runs here.
                if let Err(unsent) = tasks.send(task) {
                    (unsent.0)();
                }
            }
            None => task(),
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        // Without a sender, the threads end after the last task.
        self.tasks = None;
        for worker in self.threads.drain(..) {
            // The last handle may be dropped by a completion, on one of these threads.
            if worker.thread().id() != thread::current().id() {
                // A thread that panicked has said so.
                let _ = worker.join();
            }
        }
    }
}

fn work(queue: &Mutex<Receiver<Task>>) {
    loop {
        // One thread waits in the queue, and the others for the lock. It is released before the task runs.
        let task = queue.lock().recv();
        match task {
            Ok(task) => task(),
            Err(_) => return,
        }
    }
}
