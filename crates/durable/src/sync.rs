//! The concurrency primitives of the log: atomics, mutex, thread parking.
//!
//! With the feature `model` they are those of the model checker `shuttle`, and every operation on them is a point where
//! it may switch threads. The group commit and the log's state use no other primitives.

#[cfg(not(feature = "model"))]
mod imp {
    pub(crate) use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
    pub(crate) use std::thread::{Thread, current, park};

    pub(crate) use mangrove_locks::Mutex;
}

#[cfg(feature = "model")]
mod imp {
    pub(crate) use mangrove_locks::model::Mutex;
    pub(crate) use shuttle::sync::atomic::{AtomicU8, AtomicU64, Ordering};
    pub(crate) use shuttle::thread::{Thread, current, park};
}

pub(crate) use imp::*;
