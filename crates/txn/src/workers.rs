//! The threads that collect garbage for one graph: when they start, wake, pause and stop.
//!
//! ```text
//!  none ──garbage worth a worker──▶ waiting ──woken, or a tick──▶ working rounds ──nothing left──▶ waiting
//!                                      └──────── the last handle of the graph is dropped ──▶ stopped
//! ```
//!
//! A worker starts when there is work for it, and stays. Committers wake it when they find work waiting, and it looks
//! around on its own at each tick. It works in short rounds and pauses after each for as long as the round took, so
//! that it uses at most half a core. It works without pauses only while commits outrun it. A graph that never had work
//! for a worker has no thread; the garbage of each thread's last few hundred writes then stays until that thread writes
//! more.
//!
//! The graph decides what a round does ([`Rounds`]). Workers hold the graph weakly, so they end with its last handle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mangrove_failpoint::{Point, check};
use mangrove_locks::{Guard, Mutex, RwLock, rank};
use parking_lot::{Condvar, RwLockReadGuard, RwLockWriteGuard};

/// How often a worker looks around without being woken. Each look that finds nothing doubles the time to the next one,
/// up to `TICK_MAX`: looking at a large idle graph is not free.
const TICK: Duration = Duration::from_millis(50);
const TICK_MAX: Duration = Duration::from_millis(3_200);
/// The largest number of workers of a graph. More would only wait for one another.
pub const GC_WORKERS_MAX: usize = 16;

/// A graph whose garbage workers collect, in rounds.
pub(crate) trait Rounds: Send + Sync + 'static {
    /// The workers of this graph.
    fn workers(&self) -> &Workers;

    /// The number of workers that the settings ask for.
    fn workers_wanted(&self) -> usize;

    /// Returns true if the settings allow collection.
    fn is_enabled(&self) -> bool;

    /// Returns true if commits outrun the workers, so that they do not pause between rounds.
    fn is_in_hurry(&self) -> bool;

    /// A number that grows with each commit.
    fn committed(&self) -> u64;

    /// Works one round. With `all`, the round also finishes work that is too little for a batch. Returns true if
    /// another round is worth it.
    fn work(&self, all: bool) -> bool;
}

/// The condition that workers wait on.
#[derive(Debug, Default)]
struct Signal {
    state: Mutex<WorkersState, rank::CollectorSignal>,
    changed: Condvar,
}

/// The state that [`Signal`] guards.
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
    workers: Mutex<Vec<JoinHandle<()>>, rank::CollectorThreads>,
    /// Read-locked by a worker during a round. Write-locked by a caller that collects everything, so that it works
    /// alone.
    rounds: RwLock<(), rank::CollectorRounds>,
    /// True if a worker was ever wanted. The first one also finds garbage that is too little to wake a worker for.
    started: AtomicBool,
}

impl Workers {
    /// Returns true if a worker was ever wanted.
    pub(crate) fn are_started(&self) -> bool {
        self.started.load(Ordering::Relaxed)
    }

    /// Locks for one round.
    pub(crate) fn round(&self) -> Guard<RwLockReadGuard<'_, ()>, rank::CollectorRounds> {
        self.rounds.read()
    }

    /// Waits for the rounds under way. None begins while the guard lives.
    pub(crate) fn pause_rounds(&self) -> Guard<RwLockWriteGuard<'_, ()>, rank::CollectorRounds> {
        self.rounds.write()
    }

    /// Starts the workers if there are none. Unlike `wake`, this never delays the look around that running workers take
    /// by themselves.
    pub(crate) fn start<G: Rounds>(&self, graph: &Arc<G>) {
        if !self.are_started() {
            self.wake(graph);
        }
    }

    /// Wakes the workers, and starts those that the settings ask for.
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
        // The thread that has the lock is starting them.
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
                // The machine has no more threads: the running workers, or the next wake-up, must do.
                Err(_) => {
                    if workers.is_empty() {
                        // No thread takes this wake-up, so the next one must try again.
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
            // A worker may hold the last handle of the graph itself, during a round.
            if worker.thread().id() != std::thread::current().id() {
                // The panic of a worker was reported already; the graph closes without it.
                let _ = worker.join();
            }
        }
    }
}

/// The life of a worker: wait, work rounds, until told to stop.
fn live<G: Rounds>(index: usize, signal: &Signal, graph: &Weak<G>) {
    let mut tick = TICK;
    loop {
        let woken = {
            let mut state = signal.state.lock();
            if !state.stop && !state.woken {
                signal.changed.wait_for(state.inner(), tick);
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
            pause(signal, TICK);
            continue;
        }
        tick = if woken { TICK } else { (tick * 2).min(TICK_MAX) };
        // A tick also finishes work that is too little for a batch, and what writers have left alone since the last tick. Between two
        // rounds of one tick there is no time to tell what writers leave alone. So after a commit, this work waits for the next tick.
        let (mut all, committed) = (!woken, graph.committed());
        while is_left_some_unless_it_panics(&*graph, all) && !signal.state.lock().stop {
            tick = TICK;
            all &= graph.committed() == committed;
            if graph.is_in_hurry() {
                std::thread::yield_now();
            }
        }
    }
}

/// Works a round. If it panics, the panic is reported and the round is over; the worker tries again at its next tick.
/// Without workers garbage would grow until the graph has no memory left.
fn is_left_some_unless_it_panics(graph: &impl Rounds, all: bool) -> bool {
    catch_unwind(AssertUnwindSafe(|| is_left_some_after_a_round(graph, all))).unwrap_or(false)
}

/// Works a round and pauses for as long as it took.
fn is_left_some_after_a_round(graph: &impl Rounds, all: bool) -> bool {
    #[allow(clippy::disallowed_methods, reason = "how long to rest decides nothing that can be observed in data")]
    let begun = Instant::now();
    let worked = graph.work(all);
    if worked && !graph.is_in_hurry() {
        pause(&graph.workers().signal, begun.elapsed());
    }
    worked
}

/// Waits for a time, or until it is time to stop.
fn pause(signal: &Signal, time: Duration) {
    let mut state = signal.state.lock();
    if !state.stop {
        // A wake-up that comes now is not lost: it is a flag.
        signal.changed.wait_for(state.inner(), time);
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use std::sync::atomic::AtomicU64;

    use super::*;

    /// A graph that always has work. If it is `busy`, a transaction commits during each round.
    #[derive(Default)]
    struct Graph {
        busy: bool,
        workers: Workers,
        committed: AtomicU64,
        /// Of each round, whether it finished work that is too little for a batch.
        rounds: parking_lot::Mutex<Vec<bool>>,
    }

    impl Rounds for Graph {
        fn workers(&self) -> &Workers {
            &self.workers
        }

        fn workers_wanted(&self) -> usize {
            1
        }

        fn is_enabled(&self) -> bool {
            true
        }

        fn is_in_hurry(&self) -> bool {
            false
        }

        fn committed(&self) -> u64 {
            self.committed.load(Ordering::SeqCst)
        }

        fn work(&self, all: bool) -> bool {
            let mut rounds = self.rounds.lock();
            rounds.push(all);
            self.committed.fetch_add(self.busy.into(), Ordering::SeqCst);
            // The first round follows the wake-up, and the worker waits for a tick after it.
            rounds.len() > 1
        }
    }

    /// The first rounds of a worker.
    fn rounds(busy: bool) -> Vec<bool> {
        let graph = Arc::new(Graph { busy, ..Graph::default() });
        graph.workers.wake(&graph);
        while graph.rounds.lock().len() < 6 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let rounds = graph.rounds.lock()[..6].to_vec();
        drop(graph);
        rounds
    }

    #[test]
    fn small_work_is_finished_at_once_unless_writers_commit() {
        assert_eq!(rounds(false), [false, true, true, true, true, true]);
        assert_eq!(rounds(true), [false, true, false, false, false, false]);
    }
}
