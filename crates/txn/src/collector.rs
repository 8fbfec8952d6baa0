//! Who collects garbage, and when.
//!
//! The store knows what is garbage and how it is reclaimed; this part lends it threads.
//!
//! - *Committers* clear up behind themselves: every few hundred writes a thread works off what its own commits have left
//!   meanwhile, some ten microseconds in one go. It pays for what it writes, nothing is passed between cores, and what a
//!   collector could fall behind with does not pile up.
//! - *Workers* do what needs longer: compaction, vertices to be taken apart, pages to be settled, and the leavings of
//!   huge transactions, of threads that rest, and of snapshots that were old. A worker is started when there is
//!   something for it, and stays: it is woken by committers that find tasks waiting, and looks around on its own now
//!   and then for what trickled in. It works in short rounds and rests after each for as long as the round took, so
//!   that it never has more than half a core; only when commits outrun it does it work without rest. An idle database
//!   in which nothing was ever worth a worker has no thread, and keeps what each thread's last few hundred writes have
//!   left until it writes more.
//!
//! How many workers there are is a setting (`gc_workers`), as is whether anybody collects at all: with
//! `garbage_collection` off the logs of commits stay in the queue, are counted against the memory limit, and are worked
//! off when it is switched on again. With no workers, only [`crate::TransactionManager::collect_garbage`] collects.
//! Workers hold the graph weakly: they end with its last handle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mangrove_failpoint::{Point, check, reach};
use mangrove_store::{Backlog, Effort, RunningTransactions, Write};
use parking_lot::{Condvar, Mutex, RwLock};

use crate::manager::Shared;

/// Writes in the queue from which on workers do not rest.
const HURRY_WRITES: usize = 1 << 16;
/// Writes that one round takes from the queue.
const ROUND_WRITES: usize = 1 << 10;
/// A round of a worker that was woken, and that found less than this to do, was its last.
const ROUND_WORTH: usize = 256;
/// How often a worker looks around without being woken: looking at a large graph that rests is not free, so each look
/// that finds nothing makes the next one come later.
const TICK: Duration = Duration::from_millis(50);
const TICK_MAX: Duration = Duration::from_millis(3_200);
/// A pass takes all there is, and what it takes apart is free a few passes later: more of them only chase after
/// transactions that go on meanwhile.
const PASSES_MAX: usize = 64;
/// How long [`Shared::collect_all`] waits for readers: so many times it yields, then sleeps.
const PATIENCE_YIELDS: usize = 64;
const PATIENCE_SLEEPS: usize = 1_000;
const PATIENCE_SLEEP: Duration = Duration::from_millis(1);
/// The largest number of workers that collect garbage; beyond it they would only wait for one another.
pub const GC_WORKERS_MAX: usize = 16;

/// What workers wait on.
#[derive(Debug, Default)]
struct Signal {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    stop: bool,
    /// Garbage was handed over since a worker last looked.
    woken: bool,
}

/// The workers of one graph.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    signal: Arc<Signal>,
    workers: Mutex<Vec<JoinHandle<()>>>,
    /// Shared by workers while they work a round, so that who collects everything has it all to itself.
    rounds: RwLock<()>,
    /// Whether a worker was ever wanted: the first finds what is too little for anybody to be woken.
    started: AtomicBool,
}

impl RunningTransactions for Shared {
    fn oldest_snapshot(&self) -> u64 {
        self.status.oldest(&self.recent)
    }

    fn oldest_transaction(&self) -> u64 {
        // The next number first: a transaction with a smaller one has claimed its slot before, and is found there.
        let next = self.next_transaction();
        self.status.oldest_ordinal(next)
    }

    fn next_transaction(&self) -> u64 {
        self.status.next_ordinal()
    }
}

impl Shared {
    /// Hands the log of an installed commit over to the collector.
    pub(crate) fn hand_over(self: &Arc<Self>, log: Vec<Write>, timestamp: u64) {
        let backlog = self.store.retire(log, timestamp);
        if backlog == Backlog::Small || !self.settings.garbage_collection.load(Ordering::Relaxed) {
            return;
        }
        // Nobody collects behind the back of who asked for no workers.
        if backlog == Backlog::Sweep && self.settings.gc_workers.load(Ordering::Relaxed) > 0 {
            self.store.sweep(self.oldest_snapshot());
        }
        if backlog == Backlog::Large
            || self.store.is_collector_wanted()
            || !self.collector.started.load(Ordering::Relaxed)
        {
            self.collector.wake(self);
        }
    }

    /// Collects everything that can be collected now; with `compact`, packs what can be packed too.
    pub(crate) fn collect_all(&self, compact: bool) {
        let _alone = self.collector.rounds.write();
        let (mut passes, mut waits) = (PASSES_MAX, 0);
        while passes > 0 {
            let is_one_leaving = self.expire_old();
            let collected = self.store.collect(self, usize::MAX, true);
            reach(Point::Compaction);
            let compacted = if compact { self.store.compact(self, Effort::All) } else { 0 };
            if collected + compacted > 0 {
                passes -= 1;
                continue;
            }
            let is_nothing_held = self.store.garbage().in_limbo == 0 && !is_one_leaving;
            if is_nothing_held || waits == PATIENCE_YIELDS + PATIENCE_SLEEPS {
                return;
            }
            waits += 1;
            if waits <= PATIENCE_YIELDS {
                std::thread::yield_now();
            } else {
                std::thread::sleep(PATIENCE_SLEEP);
            }
        }
    }

    /// One round of a worker; whether another one is worth it.
    pub(crate) fn collect_some(&self, all: bool) -> bool {
        let _round = self.collector.rounds.read();
        self.expire_old();
        if all {
            let collected = self.store.collect(self, ROUND_WRITES, true);
            reach(Point::Compaction);
            return collected + self.store.compact(self, Effort::Worthwhile) > 0;
        }
        let collected = self.store.collect(self, ROUND_WRITES, false);
        reach(Point::Compaction);
        collected + self.store.compact(self, Effort::Due) >= ROUND_WORTH
    }
}

impl Collector {
    /// Starts the workers if there are none. Unlike a wake-up it never puts off the look around that they take by themselves.
    pub(crate) fn start(&self, shared: &Arc<Shared>) {
        if !self.started.load(Ordering::Relaxed) {
            self.wake(shared);
        }
    }

    /// Wakes the workers, and starts those that the settings ask for and that are not there yet.
    #[cold]
    pub(crate) fn wake(&self, shared: &Arc<Shared>) {
        let wanted = shared.settings.gc_workers.load(Ordering::Relaxed).min(GC_WORKERS_MAX);
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
            let (signal, graph) = (self.signal.clone(), Arc::downgrade(shared));
            let worker = check(Point::CollectorStart).and_then(|()| {
                let named = std::thread::Builder::new().name(format!("mangrove-gc-{index}"));
                named.spawn(move || work(index, &signal, &graph))
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

impl Drop for Collector {
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
fn work(index: usize, signal: &Signal, graph: &Weak<Shared>) {
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
        let Some(shared) = graph.upgrade() else { return };
        let settings = &shared.settings;
        let is_wanted = index < settings.gc_workers.load(Ordering::Relaxed);
        if !is_wanted || !settings.garbage_collection.load(Ordering::Relaxed) {
            drop(shared);
            rest(signal, TICK);
            continue;
        }
        tick = if woken { TICK } else { (tick * 2).min(TICK_MAX) };
        // A tick finishes what is too little for a batch.
        while is_left_some_unless_it_panics(&shared, !woken) && !signal.state.lock().stop {
            tick = TICK;
            if shared.store.garbage_waiting() >= HURRY_WRITES {
                std::thread::yield_now();
            }
        }
    }
}

/// Works a round. One that panics has said so, and is over; the worker tries again at its next tick, for without workers
/// garbage would pile up until the graph has no memory left.
fn is_left_some_unless_it_panics(shared: &Shared, all: bool) -> bool {
    catch_unwind(AssertUnwindSafe(|| is_left_some_after_a_round(shared, all))).unwrap_or(false)
}

/// Works a round and rests for as long.
fn is_left_some_after_a_round(shared: &Shared, all: bool) -> bool {
    #[allow(clippy::disallowed_methods, reason = "how long to rest decides nothing that can be observed in data")]
    let begun = Instant::now();
    let worked = shared.collect_some(all);
    if worked && shared.store.garbage_waiting() < HURRY_WRITES {
        rest(&shared.collector.signal, begun.elapsed());
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
