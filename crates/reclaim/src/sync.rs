//! The concurrency primitives of this crate and of those that stand on it, all from one place.
//!
//! Ordinarily they are those of std, and mutexes with a rank (`mangrove_locks`). With the feature `model` they are shuttle's, so that model tests try
//! out interleavings of the code that runs otherwise. State that only one thread uses at a time, or that all threads agree
//! on at first use (`OnceLock`), is not replaced.

#[cfg(not(feature = "model"))]
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

pub use real::*;
