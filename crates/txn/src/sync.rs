//! The concurrency primitives of this crate: atomics, mutex, fence, yield.
//!
//! With the feature `model` they are those of the model checker `shuttle`, and every operation on them is a point where
//! it may switch threads. The code that orders transactions (status, recent commits, validation) uses no other
//! primitives.

#[cfg(not(feature = "model"))]
mod imp {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering, fence};
    pub(crate) use std::thread::yield_now;

    pub(crate) use mangrove_locks::Mutex;
}

#[cfg(feature = "model")]
mod imp {
    pub(crate) use mangrove_locks::model::Mutex;
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering, fence};
    pub(crate) use shuttle::thread::yield_now;
}

pub(crate) use imp::*;

#[cfg(not(feature = "model"))]
std::thread_local! {
    static NUMBER: usize = {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// Returns a small number that stays the same for this thread. Callers use it to choose one of several equal shards:
/// threads that run at the same time mostly have different numbers.
#[inline]
pub(crate) fn thread_number() -> usize {
    // Thread-local storage is gone while a thread ends. Under a model checker all threads share one number, so that
    // they meet in every shard.
    #[cfg(not(feature = "model"))]
    return NUMBER.try_with(|number| *number).unwrap_or(0);
    #[cfg(feature = "model")]
    return 0;
}

/// A point where a model checker may switch threads. It stands between two steps on the store, whose primitives the
/// checker does not see.
#[inline]
pub(crate) fn between_steps() {
    #[cfg(feature = "model")]
    yield_now();
}

/// How many times a waiter spins before it yields. Longer spinning would keep the core from the thread that is waited
/// for.
const SPINS_BEFORE_YIELD: u32 = 64;

/// A waiting loop: it spins a little, then yields the core, because the thread that is waited for may have been
/// preempted.
#[derive(Default)]
pub(crate) struct Backoff {
    spins: u32,
}

impl Backoff {
    /// Spins once or yields once.
    pub(crate) fn pause(&mut self) {
        // Under a model checker threads take turns, and spinning gives no other thread a turn.
        if self.spins < SPINS_BEFORE_YIELD && !cfg!(feature = "model") {
            self.spins += 1;
            spin_loop();
        } else {
            yield_now();
        }
    }
}
