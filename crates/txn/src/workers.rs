//! The threads that collect garbage for one graph: when they start, wake, rest and stop.
//!
//! What a round does is the graph's ([`Rounds`]). Workers hold the graph weakly: they end with its last handle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mangrove_failpoint::{Point, check};
use parking_lot::{Condvar, Mutex, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// How often a worker looks around without being woken: looking at a large graph that rests is not free, so each look
/// that finds nothing makes the next one come later.
const TICK: Duration = Duration::from_millis(50);
const TICK_MAX: Duration = Duration::from_millis(3_200);
/// The largest number of workers that collect garbage; beyond it they would only wait for one another.
pub const GC_WORKERS_MAX: usize = 16;

/// A graph whose garbage workers collect, in rounds.
pub(crate) trait Rounds: Send + Sync + 'static {
    /// The workers of this graph.
    fn workers(&self) -> &Workers;

    /// How many workers the settings ask for.
    fn workers_wanted(&self) -> usize;

    /// Returns true if the settings allow collection.
    fn is_enabled(&self) -> bool;

    /// Returns true if commits outrun the workers, so that they do not rest between rounds.
    fn is_in_hurry(&self) -> bool;

    /// Works one round, with `all` also what is too little for a batch. Returns true if another round is worth it.
    fn work(&self, all: bool) -> bool;
}

/// What workers wait on.
#[derive(Debug, Default)]
struct Signal {
    state: Mutex<WorkersState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct WorkersState {
    stop: bool,
    /// Garbage was handed over since a worker last looked.
    woken: bool,
}

/// The workers of one graph.
#[derive(Debug, Default)]
pub(crate) struct Workers {
    signal: Arc<Signal>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Shared by workers while they work a round, so that who collects everything has it all to itself.
    rounds: RwLock<()>,
    /// Whether a worker was ever wanted: the first finds what is too little for anybody to be woken.
    started: AtomicBool,
}

impl Workers {
    /// Returns true if a worker was ever wanted.
    pub(crate) fn are_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Held during a round.
    pub(crate) fn round(&self) -> RwLockReadGuard<'_, ()> {
        self.rounds.read()
    }

    /// Waits for the rounds under way; none begins while the guard lives.
    pub(crate) fn pause_rounds(&self) -> RwLockWriteGuard<'_, ()> {
        self.rounds.write()
    }

    /// Starts the workers if there are none. Unlike a wake-up it never puts off the look around that they take by themselves.
    pub(crate) fn start<G: Rounds>(&self, graph: &Arc<G>) {
        if !self.are_started() {
            self.wake(graph);
        }
    }

    /// Wakes the workers, and starts those that the settings ask for and that are not there yet.
    #[cold]
    pub(crate) fn wake<G: Rounds>(&self, graph: &Arc<G>) {
        let wanted = graph.workers_wanted().min(GC_WORKERS_MAX);
        if wanted == 0 {
            return;
        }
        self.started.store(true, Ordering::Relaxed);
        {
            let mut state = self.signal.state.lock();
            if state.woken || state.stop {
                return;
            }
            state.woken = true;
        }
        self.signal.changed.notify_all();
        // Whoever has the lock is starting them.
        let Some(mut workers) = self.workers.try_lock() else { return };
        while workers.len() < wanted {
            let index = workers.len();
            let (signal, graph) = (self.signal.clone(), Arc::downgrade(graph));
            let worker = check(Point::CollectorStart).and_then(|()| {
                let named = std::thread::Builder::new().name(format!("mangrove-gc-{index}"));
                named.spawn(move || live(index, &signal, &graph))
            });
            match worker {
                Ok(worker) => workers.push(worker),
                // The machine has no more threads: those there are, or the next wake-up, will do.
                Err(_) => {
                    if workers.is_empty() {
                        // No thread will take the wake-up: the next one must try again.
                        self.signal.state.lock().woken = false;
                        self.started.store(false, Ordering::Relaxed);
                    }
                    return;
                }
            }
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.signal.state.lock().stop = true;
        self.signal.changed.notify_all();
        for worker in self.workers.get_mut().drain(..) {
            // The last handle of the graph may have been a worker's own, for the time of a round.
            if worker.thread().id() != std::thread::current().id() {
                // A worker that panicked has said so itself; the graph goes down without it.
                let _ = worker.join();
            }
        }
    }
}

/// A worker's life.
fn live<G: Rounds>(index: usize, signal: &Signal, graph: &Weak<G>) {
    let mut tick = TICK;
    loop {
        let woken = {
            let mut state = signal.state.lock();
            if !state.stop && !state.woken {
                signal.changed.wait_for(&mut state, tick);
            }
            if state.stop {
                return;
            }
            std::mem::take(&mut state.woken)
        };
        let Some(graph) = graph.upgrade() else { return };
        let is_wanted = index < graph.workers_wanted();
        if !is_wanted || !graph.is_enabled() {
            drop(graph);
            rest(signal, TICK);
            continue;
        }
        tick = if woken { TICK } else { (tick * 2).min(TICK_MAX) };
        // A tick finishes what is too little for a batch.
        while is_left_some_unless_it_panics(&*graph, !woken) && !signal.state.lock().stop {
            tick = TICK;
            if graph.is_in_hurry() {
                std::thread::yield_now();
            }
        }
    }
}

/// Works a round. One that panics has said so, and is over; the worker tries again at its next tick, for without workers
/// garbage would pile up until the graph has no memory left.
fn is_left_some_unless_it_panics(graph: &impl Rounds, all: bool) -> bool {
    catch_unwind(AssertUnwindSafe(|| is_left_some_after_a_round(graph, all))).unwrap_or(false)
}

/// Works a round and rests for as long.
fn is_left_some_after_a_round(graph: &impl Rounds, all: bool) -> bool {
    #[allow(clippy::disallowed_methods, reason = "how long to rest decides nothing that can be observed in data")]
    let begun = Instant::now();
    let worked = graph.work(all);
    if worked && !graph.is_in_hurry() {
        rest(&graph.workers().signal, begun.elapsed());
    }
    worked
}

/// Waits, unless it is time to stop.
fn rest(signal: &Signal, time: Duration) {
    let mut state = signal.state.lock();
    if !state.stop {
        // A wake-up that comes now is not lost: it is a flag.
        signal.changed.wait_for(&mut state, time);
    }
}
