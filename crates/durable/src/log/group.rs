//! Group commit: one committer flushes for all that wait.
//!
//! A thread that needs something durable comes with a goal. If no flush is under way, it *leads*: it flushes everything
//! that was handed over, its own commit included. If one is, it waits. When the flush is over, the leader wakes every
//! waiter whose goal is reached, and then one of the others to lead the next flush.
//!
//! ```text
//!  committer:  goal reached? ──yes──▶ return                       waiter:  WAITING ──▶ DONE
//!                  │ no                                                        └──────▶ LEADING ──▶ flush
//!                  ├── no flush under way ──▶ lead: flush, wake the done, hand on
//!                  └── a flush under way ──▶ wait in the list, parked
//! ```
//!
//! So there is one flush in flight, no thread is woken for nothing, a lone committer never waits, and no thread exists
//! only to write.
//!
//! The next leader is woken last. Committers that are done then commit again while the others are being woken, and join
//! the flush that begins. With 32 committers on two cores, 23 join instead of 16: a tenth more commits a second at a
//! lower latency, since there are fewer syncs and wake-ups a commit. A waiter parks at once and does not yield: a
//! yielding thread comes after every other runnable thread, which takes milliseconds while queries compute.
//!
//! - **LOG-8.** While `flushing` is set there is exactly one leader: it set the flag, or the flag was handed on to it.
//! - **LOG-9.** A waiter is in the list only while `flushing` is set. So the leader, which empties the list or hands
//!   on, misses no waiter.
//! - **LOG-10.** A waiter's goal was flushable when it came: everything it needs is handed over. So the flush that it
//!   leads reaches its goal, or fails for good.

use std::sync::Arc;

use mangrove_locks::rank;

use crate::sync::{AtomicU8, Mutex, Ordering, Thread, current, park};

/// The records that must be durable: all commits up to a timestamp, and all schema records up to a number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct FlushGoal {
    /// Commits up to this timestamp.
    pub(crate) ts: u64,
    /// Schema records up to this number.
    pub(crate) schema_record: u64,
}

impl FlushGoal {
    /// Returns true if everything up to `reached` includes the goal.
    pub(crate) fn is_within(self, reached: FlushGoal) -> bool {
        self.ts <= reached.ts && self.schema_record <= reached.schema_record
    }
}

/// How far flushes have come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum FlushProgress {
    /// This much is durable, and more may follow.
    Now(FlushGoal),
    /// Nothing more becomes durable.
    Failed,
}

impl FlushProgress {
    /// Returns true if a waiter with this goal need not wait any longer.
    fn satisfies(self, goal: FlushGoal) -> bool {
        match self {
            FlushProgress::Now(reached) => goal.is_within(reached),
            FlushProgress::Failed => true,
        }
    }
}

/// The log, as group commit sees it.
pub(crate) trait Flush {
    /// How far flushes have come.
    fn reached(&self) -> FlushProgress;
    /// Makes durable everything that was handed over. One thread at a time calls this (LOG-8).
    fn flush(&self);
}

// The states of a waiter. It leaves `WAITING` once.
const WAITING: u8 = 0;
const DONE: u8 = 1;
const LEADING: u8 = 2;

/// A committer that waits for the flush under way. The leader changes its state.
#[derive(Debug)]
struct Waiter {
    goal: FlushGoal,
    state: AtomicU8,
    thread: Thread,
}

impl Waiter {
    fn wake(&self, state: u8) {
        assert_ne!(state, WAITING, "a waiter is woken to return or to lead");
        let before = self.state.swap(state, Ordering::Release);
        assert_eq!(before, WAITING, "a waiter is woken once");
        self.thread.unpark();
    }

    /// Returns the state it was woken in.
    fn wait(&self) -> u8 {
        loop {
            // Acquire: this thread sees all that the leader did before it woke this thread.
            match self.state.load(Ordering::Acquire) {
                WAITING => park(),
                state => return state,
            }
        }
    }
}

/// The state of group commit: the flush under way, if any, and the threads that wait for it.
#[derive(Debug, Default)]
struct GroupState {
    flushing: bool,
    waiting: Vec<Arc<Waiter>>,
}

/// The committers of one log. The mutex is held for a few instructions, never during a flush.
#[derive(Debug, Default)]
pub(crate) struct GroupCommit {
    state: Mutex<GroupState, rank::GroupCommit>,
}

impl GroupCommit {
    /// Returns when the goal is durable, or never will be.
    pub(crate) fn wait(&self, goal: FlushGoal, flush: &dyn Flush) {
        while !flush.reached().satisfies(goal) {
            let waiter = {
                let mut state = self.state.lock();
                // Under the lock (LOG-9): a leader that has reached the goal and has been through the list is seen
                // here.
                if flush.reached().satisfies(goal) {
                    return;
                }
                if state.flushing {
                    let (state_of, thread) = (AtomicU8::new(WAITING), current());
                    let waiter = Arc::new(Waiter { goal, state: state_of, thread });
                    state.waiting.push(waiter.clone());
                    Some(waiter)
                } else {
                    // LOG-9.
                    assert!(state.waiting.is_empty(), "a thread waits while no flush is under way");
                    state.flushing = true;
                    None
                }
            };
            if waiter.is_some_and(|waiter| waiter.wait() == DONE) {
                return;
            }
            self.lead(flush);
        }
    }

    /// Flushes as the leader, and hands on.
    fn lead(&self, flush: &dyn Flush) {
        /// Hands on when the flush is over, even if it panics.
        struct HandOn<'a>(&'a GroupCommit, &'a dyn Flush);
        impl Drop for HandOn<'_> {
            fn drop(&mut self) {
                self.0.hand_on(self.1.reached());
            }
        }
        let _over = HandOn(self, flush);
        flush.flush();
    }

    /// Wakes the waiters that are done, and the next leader.
    fn hand_on(&self, reached: FlushProgress) {
        let (done, next) = {
            let mut state = self.state.lock();
            // LOG-8.
            assert!(state.flushing, "a thread that does not lead hands on");
            let waiting = std::mem::take(&mut state.waiting);
            let (done, mut left): (Vec<_>, Vec<_>) =
                waiting.into_iter().partition(|waiter| reached.satisfies(waiter.goal));
            let next = (!left.is_empty()).then(|| left.remove(0));
            state.waiting = left;
            state.flushing = next.is_some();
            (done, next)
        };
        // The next leader last: the module header says why.
        done.iter().for_each(|waiter| waiter.wake(DONE));
        next.iter().for_each(|waiter| waiter.wake(LEADING));
    }
}

/// The model of group commit, which the model checker runs (`super::model`).
#[cfg(feature = "model")]
pub(super) mod model {
    use std::sync::Arc;

    use shuttle::sync::atomic::AtomicBool;
    use shuttle::thread;

    use super::{Flush, FlushGoal, FlushProgress, GroupCommit};
    use crate::sync::{AtomicU64, Ordering};

    /// Numbers are handed over; a flush takes all that are there.
    #[derive(Default)]
    struct Numbers {
        handed_over: AtomicU64,
        durable: AtomicU64,
        flushes: AtomicU64,
        is_flushing: AtomicBool,
        has_failed: AtomicBool,
        /// The flush that fails; 0 for none.
        failing: u64,
    }

    impl Flush for Numbers {
        fn reached(&self) -> FlushProgress {
            match self.has_failed.load(Ordering::SeqCst) {
                true => FlushProgress::Failed,
                false => FlushProgress::Now(FlushGoal { ts: self.durable.load(Ordering::SeqCst), schema_record: 0 }),
            }
        }

        fn flush(&self) {
            assert!(!self.is_flushing.swap(true, Ordering::SeqCst), "two flushes are in flight");
            let there = self.handed_over.load(Ordering::SeqCst);
            if self.has_failed.load(Ordering::SeqCst) {
                // A waiter was made the leader before it learned of the failure.
            } else if self.flushes.fetch_add(1, Ordering::SeqCst) + 1 == self.failing {
                self.has_failed.store(true, Ordering::SeqCst);
            } else {
                self.durable.store(there, Ordering::SeqCst);
            }
            self.is_flushing.store(false, Ordering::SeqCst);
        }
    }

    /// Threads that each wait for some numbers, one after the other. Each goes on when its number is durable, or the
    /// log has failed. (If a thread waited for ever, the checker would report it.)
    pub fn committers_go_on_once_durable(threads: usize, rounds: usize, failing: u64) {
        let shared = Arc::new((GroupCommit::default(), Numbers { failing, ..Numbers::default() }));
        let committers: Vec<_> = (0..threads)
            .map(|_| {
                let shared = shared.clone();
                thread::spawn(move || {
                    let (group, numbers) = &*shared;
                    for _ in 0..rounds {
                        let ts = numbers.handed_over.fetch_add(1, Ordering::SeqCst) + 1;
                        group.wait(FlushGoal { ts, schema_record: 0 }, numbers);
                        let is_durable = numbers.durable.load(Ordering::SeqCst) >= ts;
                        assert!(is_durable || numbers.has_failed.load(Ordering::SeqCst), "{ts} was acknowledged");
                    }
                })
            })
            .collect();
        committers.into_iter().for_each(|thread| thread.join().expect("no committer panics"));
        let (group, numbers) = &*shared;
        let state = group.state.lock();
        assert!(!state.flushing && state.waiting.is_empty(), "nobody is left to lead, and nobody waits");
        assert!(numbers.flushes.load(Ordering::SeqCst) <= (threads * rounds) as u64, "a flush for nothing");
    }
}
