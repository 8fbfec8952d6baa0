//! [`DelayHome`]: another home behind a slow network: each request is handed over after a delay that a seed draws.
//!
//! It makes a directory or memory as slow as an object store, for measurements. The delays have the form that object
//! stores show: half of them lie a little below the typical one, and few far above it.
//!
//! | share of the requests | delay, as a multiple of the typical one |
//! |---|---|
//! | 50 % | 0.8 to 1 |
//! | 40 % | 1 to 1.3 |
//! | 9 % | 1.3 to 3 |
//! | 1 % | 3 to 8 |

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::{Completion, Home, HomeError, HomeErrorKind, HomeResult, HomeTraits, Request, draw};

/// The shares of requests and the range of their delays, as in the header. The last share is what is left.
const DELAYS: [(f64, f64, f64); 4] = [(0.5, 0.8, 1.0), (0.4, 1.0, 1.3), (0.09, 1.3, 3.0), (1.0, 3.0, 8.0)];

/// Another home, with every request delayed.
#[derive(Debug)]
pub struct DelayHome {
    typical: Duration,
    queue: Arc<Queue>,
    /// Hands requests over when they are due. `None` without a delay.
    timer: Option<JoinHandle<()>>,
}

/// The requests that wait. The lock is held for a few instructions, and never while a request is handed over.
#[derive(Debug)]
struct Queue {
    home: Arc<dyn Home>,
    state: Mutex<QueueState>,
    changed: Condvar,
}

#[derive(Debug)]
struct QueueState {
    /// The state of the generator of delays.
    seed: u64,
    /// The number of the next request. Of requests that are due at the same time, the earlier one goes first.
    next: u64,
    waiting: BinaryHeap<Reverse<Waiting>>,
    is_closed: bool,
}

struct Waiting {
    due: Instant,
    number: u64,
    request: Request,
    done: Completion,
}

impl DelayHome {
    /// Delays the requests to a home by a typical time; 0: not at all. Equal seeds draw equal delays.
    pub fn new(home: Arc<dyn Home>, typical: Duration, seed: u64) -> HomeResult<Self> {
        let state = QueueState { seed, next: 0, waiting: BinaryHeap::new(), is_closed: false };
        let queue = Arc::new(Queue { home, state: Mutex::new(state), changed: Condvar::new() });
        let timer = match typical.is_zero() {
            true => None,
            false => {
                let queue = queue.clone();
                let timer = thread::Builder::new().name("mangrove-delay".to_owned()).spawn(move || queue.run());
                Some(timer.map_err(|error| {
                    let message =
                        format!("cannot start a thread that delays requests: {error}; raise the limit of threads");
                    HomeError::new(HomeErrorKind::Unavailable, message)
                })?)
            }
        };
        Ok(DelayHome { typical, queue, timer })
    }
}

impl Home for DelayHome {
    fn submit(&self, request: Request, done: Completion) {
        if self.timer.is_none() {
            return self.queue.home.submit(request, done);
        }
        let mut state = self.queue.state.lock();
        let due = now() + self.typical.mul_f64(factor(&mut state.seed));
        let number = state.next;
        state.next += 1;
        state.waiting.push(Reverse(Waiting { due, number, request, done }));
        drop(state);
        self.queue.changed.notify_one();
    }

    fn describe(&self, name: &str) -> String {
        self.queue.home.describe(name)
    }

    fn traits(&self) -> HomeTraits {
        self.queue.home.traits()
    }
}

impl Drop for DelayHome {
    /// Requests that wait are handed over at once, so that each is answered (HOME-4).
    fn drop(&mut self) {
        self.queue.state.lock().is_closed = true;
        self.queue.changed.notify_one();
        // A completion may drop the last handle, on the thread of the timer, which cannot wait for itself.
        if let Some(timer) = self.timer.take().filter(|timer| timer.thread().id() != thread::current().id()) {
            // A thread that panicked has said so.
            let _ = timer.join();
        }
    }
}

impl Queue {
    /// Hands requests over, each when it is due, until the queue is closed and empty.
    fn run(&self) {
        let mut state = self.state.lock();
        loop {
            let wait = match state.waiting.peek() {
                None if state.is_closed => return,
                None => None,
                Some(_) if state.is_closed => Some(Duration::ZERO),
                Some(Reverse(first)) => Some(first.due.saturating_duration_since(now())),
            };
            match wait {
                None => self.changed.wait(&mut state),
                Some(Duration::ZERO) => {
                    if let Some(Reverse(due)) = state.waiting.pop() {
                        drop(state);
                        self.home.submit(due.request, due.done);
                        state = self.state.lock();
                    }
                }
                Some(wait) => drop(self.changed.wait_for(&mut state, wait)),
            }
        }
    }
}

/// A delay, as a multiple of the typical one.
fn factor(seed: &mut u64) -> f64 {
    let mut share = draw::fraction(seed);
    for (of_all, least, most) in DELAYS {
        if share < of_all {
            return least + (most - least) * (share / of_all);
        }
        share -= of_all;
    }
    1.0
}

#[expect(clippy::disallowed_methods, reason = "the delay is a real one; it decides when an answer comes and not which")]
fn now() -> Instant {
    Instant::now()
}

impl Waiting {
    fn order(&self) -> (Instant, u64) {
        (self.due, self.number)
    }
}

impl PartialEq for Waiting {
    fn eq(&self, other: &Self) -> bool {
        self.order() == other.order()
    }
}

impl Eq for Waiting {}

impl PartialOrd for Waiting {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Waiting {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.order().cmp(&other.order())
    }
}

impl std::fmt::Debug for Waiting {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Waiting").field("due", &self.due).field("request", &self.request).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use bytes::Bytes;

    use super::super::contract::{self, name};
    use super::super::{MemoryHome, WaitHome};
    use super::*;

    fn delayed(typical: Duration) -> Arc<dyn Home> {
        Arc::new(DelayHome::new(Arc::new(MemoryHome::new()), typical, 1).unwrap())
    }

    #[test]
    fn a_delayed_home_keeps_the_contract() {
        contract::check(&delayed(Duration::ZERO));
        contract::check(&delayed(Duration::from_micros(200)));
    }

    #[test]
    fn half_of_the_delays_are_below_the_typical_one_and_few_far_above() {
        let mut seed = 7;
        let mut factors: Vec<f64> = (0..100_000).map(|_| factor(&mut seed)).collect();
        factors.sort_by(f64::total_cmp);
        assert!(factors[0] >= 0.8 && factors[99_999] < 8.0);
        let near = |at: usize, expected: f64| (factors[at] - expected).abs() < 0.05 * expected;
        assert!(
            near(50_000, 1.0) && near(90_000, 1.3) && near(99_000, 3.0),
            "{:?}",
            (factors[50_000], factors[90_000])
        );
        let draws = |mut seed| (0..100).map(|_| factor(&mut seed)).collect::<Vec<_>>();
        assert_eq!(draws(1), draws(1));
        assert_ne!(draws(1), draws(2));
    }

    #[test]
    fn a_request_waits_and_is_handed_over_at_once_when_the_home_is_dropped() {
        // Long enough that no test sees its end.
        let memory = Arc::new(MemoryHome::new());
        let home = DelayHome::new(memory.clone(), Duration::from_secs(100_000), 1).unwrap();
        let (sender, answers) = channel();
        for n in 0..10 {
            let sender = sender.clone();
            let put = Request::PutNew { name: name(&format!("log/{n}")), bytes: Bytes::new() };
            home.submit(put, Box::new(move |answer| sender.send(answer).unwrap()));
        }
        assert!(memory.list(&name("log")).unwrap().is_empty() && answers.try_recv().is_err());
        drop((home, sender));
        assert_eq!(answers.iter().filter(Result::is_ok).count(), 10);
        assert_eq!(memory.list(&name("log")).unwrap().len(), 10);
    }
}
