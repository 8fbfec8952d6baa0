//! The concurrency primitives of the scheduler and of the board of an open run: atomics, mutex, thread parking.
//!
//! With the feature `model` they are those of the model checker `shuttle`, and every operation on them is a point where
//! it may switch threads. The queue, the states of tasks, the idle executors and the board use no other primitives.

#[cfg(not(feature = "model"))]
mod imp {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use std::thread::{Thread, current, park};

    pub(crate) use parking_lot::{Mutex, MutexGuard};
}

#[cfg(feature = "model")]
mod imp {
    pub(crate) use shuttle::sync::MutexGuard;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering};
    pub(crate) use shuttle::thread::{Thread, current, park};
    // A thread that spins under the checker must give the others a turn.
    pub(crate) use shuttle::thread::yield_now as spin_loop;

    /// The mutex of the checker, with the interface of `parking_lot`.
    #[derive(Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
            self.0.lock().expect("no model goes on after a panic under a lock")
        }
    }
}

pub(crate) use imp::*;
