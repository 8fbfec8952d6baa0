//! The concurrency primitives of this crate and of those that stand on it, all from one place.
//!
//! Ordinarily they are those of std and `parking_lot`. With the feature `model` they are shuttle's, so that model tests
//! of the crates above try out interleavings of the code that runs otherwise. With the feature `loom` they are loom's:
//! the models of this crate (`tests/loom.rs`) try out what weak memory allows, too. State that only one thread uses at
//! a time, or that all threads agree on at first use (`OnceLock`), is not replaced.

#[cfg(all(feature = "model", feature = "loom"))]
compile_error!("the features `model` and `loom` both replace the concurrency primitives: choose one of them");

#[cfg(not(any(feature = "model", feature = "loom")))]
mod real {
    pub use parking_lot::Mutex;
    pub use std::hint::spin_loop;
    pub use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence};
    pub use std::thread::yield_now;
    pub use std::thread_local;
}

#[cfg(feature = "model")]
mod real {
    pub use shuttle::hint::spin_loop;
    pub use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub use shuttle::thread::yield_now;
    pub use shuttle::thread_local;

    /// Shuttle's mutex with the interface of `parking_lot`'s.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// A mutex with a value.
        pub const fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        /// Locks, waiting for the holder.
        pub fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a model that panicked is over")
        }

        /// Locks if no thread holds the lock.
        pub fn try_lock(&self) -> Option<shuttle::sync::MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        /// The value, for an owner of the mutex.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("a model that panicked is over")
        }
    }
}

#[cfg(feature = "loom")]
mod real {
    pub use loom::hint::spin_loop;
    pub use loom::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub use loom::thread::yield_now;
    pub use loom::thread_local;

    /// Loom's mutex with the interface of `parking_lot`'s.
    #[derive(Debug, Default)]
    pub struct Mutex<T>(loom::sync::Mutex<T>);

    impl<T> Mutex<T> {
        /// A mutex with a value.
        pub fn new(value: T) -> Self {
            Mutex(loom::sync::Mutex::new(value))
        }

        /// Locks, waiting for the holder.
        pub fn lock(&self) -> loom::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a model that panicked is over")
        }

        /// Locks if no thread holds the lock.
        pub fn try_lock(&self) -> Option<loom::sync::MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        /// The value, for an owner of the mutex.
        pub fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("a model that panicked is over")
        }
    }
}

pub use real::*;
