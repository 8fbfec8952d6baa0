//! The concurrency primitives of this crate and of those that stand on it, all from one place.
//!
//! Ordinarily they are those of std, and mutexes with a rank (`mangrove_locks`). With the feature `model` they are
//! shuttle's, so that model tests of the crates above try out interleavings of the code that runs otherwise. With the
//! feature `loom` they are loom's: the models of this crate (`tests/loom.rs`) try out what weak memory allows, too.
//! State that only one thread uses at a time, or that all threads agree on at first use (`OnceLock`), is not replaced.

#[cfg(all(feature = "model", feature = "loom"))]
compile_error!("the features `model` and `loom` both replace the concurrency primitives: choose one of them");

#[cfg(not(any(feature = "model", feature = "loom")))]
mod real {
    pub use mangrove_locks::Mutex;
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence};
    pub use std::thread::yield_now;
    pub use std::thread_local;
}

#[cfg(feature = "model")]
mod real {
    pub use mangrove_locks::model::Mutex;
    pub use shuttle::hint::spin_loop;
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub use shuttle::thread::yield_now;
    pub use shuttle::thread_local;
}

#[cfg(feature = "loom")]
mod real {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub use loom::thread::yield_now;
    pub use loom::thread_local;

    /// Loom's mutex with the interface of `mangrove_locks::Mutex`. Its rank is not checked.
    pub struct Mutex<T, R> {
        rank: std::marker::PhantomData<R>,
        mutex: loom::sync::Mutex<T>,
    }

    /// A model that panicked while it held a lock has failed, and is over.
    const NOT_POISONED: &str = "a model that panicked is over";

    impl<T, R> Mutex<T, R> {
        /// A mutex with a value.
        pub fn new(value: T) -> Self {
            Mutex { rank: std::marker::PhantomData, mutex: loom::sync::Mutex::new(value) }
        }

        /// Locks, waiting for the holder.
        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.mutex.lock().expect(NOT_POISONED)
        }

        /// Locks if no thread holds the lock.
        pub fn try_lock(&self) -> Option<loom::sync::MutexGuard<'_, T>> {
            self.mutex.try_lock().ok()
        }

        /// The value, for an owner of the mutex.
        pub fn get_mut(&mut self) -> &mut T {
            self.mutex.get_mut().expect(NOT_POISONED)
        }
    }

    impl<T: Default, R> Default for Mutex<T, R> {
        fn default() -> Self {
            Mutex::new(T::default())
        }
    }

    impl<T: std::fmt::Debug, R> std::fmt::Debug for Mutex<T, R> {
        fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            self.mutex.fmt(f)
        }
    }
}

pub use real::*;
