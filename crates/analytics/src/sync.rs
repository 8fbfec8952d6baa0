//! The primitives of a gang. With the feature `model` they are those of the model checker `shuttle`, and every operation on
//! them is a point where it may switch threads.

#[cfg(not(feature = "model"))]
mod imp {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    pub(crate) use std::thread::yield_now;
}

#[cfg(feature = "model")]
mod imp {
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    // A thread that spins under the checker must give the others a turn.
    pub(crate) use shuttle::thread::{yield_now as spin_loop, yield_now};
}

pub(crate) use imp::*;
