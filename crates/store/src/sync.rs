//! The concurrency primitives of this crate, all from one place.
//!
//! Ordinarily they are those of std and `parking_lot`. With the feature `model` they are shuttle's, so that the
//! model tests (`tests/model.rs`) can try out interleavings of the very code that runs otherwise. What only one
//! thread ever runs at a time, or what every thread agrees on at first use (`OnceLock`), stays as it is.

#[cfg(not(feature = "model"))]
mod real {
    pub(crate) use parking_lot::Mutex;
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub(crate) use std::thread::yield_now;
    pub(crate) use std::thread_local;
}

#[cfg(feature = "model")]
mod real {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{
        AtomicBool, AtomicPtr, AtomicU8, AtomicU16, AtomicU32, AtomicU64, AtomicUsize, fence,
    };
    pub(crate) use shuttle::thread::yield_now;
    pub(crate) use shuttle::thread_local;

    /// Shuttle's mutex with the interface of `parking_lot`'s.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) const fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("a model that panicked is over")
        }

        pub(crate) fn try_lock(&self) -> Option<shuttle::sync::MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("a model that panicked is over")
        }
    }
}

pub(crate) use real::*;
