//! Executors without work: one of them looks for work for a moment, the others are parked.

use crate::clock::Clock;
use crate::sync::{AtomicUsize, Ordering, Thread, current, spin_loop};

/// How long an executor without work looks for some before it is parked, in nanoseconds. Waking a parked thread takes
/// 16 to 80 µs, so a longer search costs more than the wake-up that it saves.
const SPIN_NANOS: u64 = 50_000;

/// Looks between two readings of the clock. They take about a microsecond.
const LOOKS_PER_READING: u32 = 32;

/// The executors that wait for work. The lock of the queue protects them.
#[derive(Default)]
pub(super) struct IdleExecutors {
    /// The parked ones. The last is woken first, because its caches are the warmest.
    parked: Vec<Thread>,
    /// True if an executor spins. One is enough: more would take the cores from the threads that make work.
    has_spinner: bool,
}

impl IdleExecutors {
    /// Returns true if this thread becomes the one that spins.
    pub fn begin_to_spin(&mut self) -> bool {
        !std::mem::replace(&mut self.has_spinner, true)
    }

    pub fn end_spinning(&mut self) {
        self.has_spinner = false;
    }

    /// Adds this thread to the parked ones. It parks after it has released the lock of the queue.
    pub fn begin_to_park(&mut self) {
        let thread = current();
        if self.parked.iter().all(|parked| parked.id() != thread.id()) {
            self.parked.push(thread);
        }
    }

    /// Removes this thread from the parked ones. It may be there after it was woken by chance.
    pub fn end_parking(&mut self) {
        let id = current().id();
        self.parked.retain(|parked| parked.id() != id);
    }

    /// Returns the executor to wake after a task was added, if one is needed. The caller wakes it after it has released
    /// the lock of the queue.
    ///
    /// FLOW-27: the one that spins takes one of the `queued` tasks, so it saves the wake-up for that one only.
    pub fn wake_for(&mut self, queued: usize) -> Option<Thread> {
        if queued > usize::from(self.has_spinner) { self.parked.pop() } else { None }
    }

    /// Returns all parked executors, to wake them.
    pub fn wake_all(&mut self) -> Vec<Thread> {
        std::mem::take(&mut self.parked)
    }
}

/// Returns as soon as a task is queued, or after [`SPIN_NANOS`].
pub(super) fn spin(queued: &AtomicUsize, clock: &dyn Clock) {
    let end = clock.now_nanos().saturating_add(SPIN_NANOS);
    loop {
        for _ in 0..LOOKS_PER_READING {
            // A hint: the thread looks into the queue under its lock.
            if queued.load(Ordering::Relaxed) > 0 {
                return;
            }
            spin_loop();
            // Under the checker the clock stands still.
            if cfg!(feature = "model") {
                return;
            }
        }
        if clock.now_nanos() >= end {
            return;
        }
    }
}
