//! Runs the nodes of a query on threads: each thread has some of the nodes, and may take turns for those of others.
//!
//! ```text
//! thread 0: [node 0] [node 1] [node 2]     thread 1: [node 3]
//!              ▲ a thread runs one node at a time; with stealing, thread 1 also runs a node of thread 0 that no
//!                thread runs and that has work
//! ```
//!
//! Frames of bytes are the only way from one node to another, as in [`crate::Nodes`], also between nodes of one thread.
//! So the cost of messages does not depend on the distribution of nodes over threads.
//!
//! A thread that finds no work sleeps until a frame is sent or a node is put down with work left. The *changes* are a
//! counter of such events. A thread reads it before it looks for work, and sleeps only if it has not moved since.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use mangrove_flow::{Batch, NodeRuntime, Progress};
use mangrove_graph::{Error, Result};
use parking_lot::{Condvar, Mutex};

/// The number of messages that a node handles before the next node's turn.
const TURN: usize = 16;

/// The results of a run on threads, and its turns.
pub struct ThreadsOutcome<B> {
    /// The results.
    pub results: Vec<B>,
    /// Turns in which a thread found work.
    pub turns: u64,
    /// Those of them in which a thread ran a node of another thread.
    pub stolen_turns: u64,
}

/// Runs a query that has begun to its end. Node 0 takes `start`. `owners` has the nodes of each thread; every node has
/// one thread. If `steals` is true, a thread without work runs nodes of the other threads.
///
/// # Errors
///
/// The error of a node, or a bug if every thread sleeps before the query has ended.
///
/// # Panics
///
/// If a thread panics.
pub fn run_on_threads<B: Batch>(
    mut nodes: Vec<NodeRuntime<B>>,
    owners: &[Vec<usize>],
    steals: bool,
    start: B,
) -> Result<ThreadsOutcome<B>> {
    nodes[0].start(start)?;
    let places = nodes.into_iter().map(|node| Place { node: Mutex::new(node), inbox: Mutex::default() }).collect();
    let shared = Shared {
        places,
        results: Mutex::default(),
        is_over: AtomicBool::new(false),
        error: Mutex::default(),
        sleep: Mutex::new(Sleep { changes: 0, sleeping: 0 }),
        wake: Condvar::new(),
        turns: AtomicU64::new(0),
        stolen_turns: AtomicU64::new(0),
        thread_count: owners.len(),
    };
    std::thread::scope(|scope| {
        for own in owners {
            scope.spawn(|| {
                if let Err(error) = shared.work(own, steals) {
                    shared.error.lock().get_or_insert(error);
                    shared.end();
                }
            });
        }
    });
    match shared.error.into_inner() {
        Some(error) => Err(error),
        None => Ok(ThreadsOutcome {
            results: shared.results.into_inner(),
            turns: shared.turns.into_inner(),
            stolen_turns: shared.stolen_turns.into_inner(),
        }),
    }
}

/// A node, and the frames that wait for it.
struct Place<B: Batch> {
    node: Mutex<NodeRuntime<B>>,
    inbox: Mutex<VecDeque<Vec<u8>>>,
}

struct Sleep {
    /// See the header of this file.
    changes: u64,
    /// Threads that sleep, and for which nothing has changed since.
    sleeping: usize,
}

/// What the threads share.
struct Shared<B: Batch> {
    places: Vec<Place<B>>,
    results: Mutex<Vec<B>>,
    is_over: AtomicBool,
    error: Mutex<Option<Error>>,
    sleep: Mutex<Sleep>,
    wake: Condvar,
    turns: AtomicU64,
    stolen_turns: AtomicU64,
    thread_count: usize,
}

impl<B: Batch> Shared<B> {
    /// Works until the query is over.
    fn work(&self, own: &[usize], steals: bool) -> Result<()> {
        while !self.is_over.load(Ordering::Acquire) {
            let seen = self.sleep.lock().changes;
            let mut found = false;
            for &at in own {
                found |= self.turn(at)?;
            }
            if !found && steals {
                let others = (0..self.places.len()).filter(|at| !own.contains(at));
                for at in others {
                    if self.turn(at)? {
                        self.stolen_turns.fetch_add(1, Ordering::Relaxed);
                        found = true;
                        break;
                    }
                }
            }
            if !found {
                self.sleep_since(seen)?;
            }
        }
        Ok(())
    }

    /// Runs a node for one turn. Returns false if another thread runs it, or if it has nothing to do.
    fn turn(&self, at: usize) -> Result<bool> {
        let place = &self.places[at];
        let Some(mut node) = place.node.try_lock() else { return Ok(false) };
        let frames = std::mem::take(&mut *place.inbox.lock());
        let mut found = !frames.is_empty();
        for frame in frames {
            node.accept(&frame)?;
        }
        let messages = node.messages();
        let progress = loop {
            match node.run(TURN)? {
                Progress::Results => {
                    let results = std::iter::from_fn(|| node.take_results());
                    self.results.lock().extend(results);
                }
                progress => break progress,
            }
        };
        found |= node.messages() != messages;
        let outbox = node.take_outbox();
        // Before other threads can see its frames: what this thread found in the node is worked off.
        drop(node);
        let changes = !outbox.is_empty() || matches!(progress, Progress::Yielded);
        for (to, frame) in outbox {
            self.places[usize::from(to)].inbox.lock().push_back(frame);
        }
        if found {
            self.turns.fetch_add(1, Ordering::Relaxed);
        }
        if matches!(progress, Progress::Complete) && at == 0 {
            self.end();
        } else if changes || found {
            // A thread that found the node taken may have slept meanwhile.
            let mut sleep = self.sleep.lock();
            sleep.changes += 1;
            // They are awake from now on, whenever the system runs them.
            sleep.sleeping = 0;
            self.wake.notify_all();
        }
        Ok(found)
    }

    /// Sleeps, if nothing has changed since.
    fn sleep_since(&self, seen: u64) -> Result<()> {
        let mut sleep = self.sleep.lock();
        if sleep.changes == seen {
            sleep.sleeping += 1;
        }
        while sleep.changes == seen && !self.is_over.load(Ordering::Acquire) {
            if sleep.sleeping == self.thread_count {
                return Err(Error::bug("every thread sleeps before the query is complete: a message is missing"));
            }
            self.wake.wait(&mut sleep);
        }
        Ok(())
    }

    fn end(&self) {
        let _sleep = self.sleep.lock();
        self.is_over.store(true, Ordering::Release);
        self.wake.notify_all();
    }
}
