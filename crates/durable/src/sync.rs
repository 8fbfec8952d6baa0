//! The concurrency primitives of the log: atomics, mutex, thread parking.
//!
//! With the feature `model` they are those of the model checker `shuttle`, and every operation on them is a point where
//! it may switch threads. The group commit and the log's state use no other primitives.

#[cfg(not(feature = "model"))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
    pub(crate) use std::thread::{Thread, current, park};

    pub(crate) use parking_lot::Mutex;
}

#[cfg(feature = "model")]
mod imp {
    pub(crate) use shuttle::sync::atomic::{AtomicU8, AtomicU64, Ordering};
    pub(crate) use shuttle::thread::{Thread, current, park};

    /// A mutex with the interface of `parking_lot::Mutex`.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no model panics while it holds a lock")
        }
    }
}

pub(crate) use imp::*;
