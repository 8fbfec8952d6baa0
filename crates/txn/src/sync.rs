//! The primitives of this crate's concurrent core, so that a test can put a model checker's in their place: with the
//! feature `model` every operation on them is a point where `shuttle` may switch threads.

#[cfg(not(feature = "model"))]
mod imp {
    pub(crate) use std::hint::spin_loop;
    pub(crate) use std::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering, fence};
    pub(crate) use std::thread::yield_now;

    pub(crate) use parking_lot::Mutex;
}

#[cfg(feature = "model")]
mod imp {
    pub(crate) use shuttle::hint::spin_loop;
    pub(crate) use shuttle::sync::atomic::{AtomicBool, AtomicU16, AtomicU64, Ordering, fence};
    pub(crate) use shuttle::thread::yield_now;

    /// With the interface of `parking_lot`'s.
    #[derive(Debug, Default)]
    pub(crate) struct Mutex<T>(shuttle::sync::Mutex<T>);

    impl<T> Mutex<T> {
        pub(crate) fn new(value: T) -> Self {
            Mutex(shuttle::sync::Mutex::new(value))
        }

        pub(crate) fn lock(&self) -> shuttle::sync::MutexGuard<'_, T> {
            self.0.lock().expect("no model panics while it holds a lock")
        }

        pub(crate) fn try_lock(&self) -> Option<shuttle::sync::MutexGuard<'_, T>> {
            self.0.try_lock().ok()
        }

        pub(crate) fn get_mut(&mut self) -> &mut T {
            self.0.get_mut().expect("no model panics while it holds a lock")
        }

        pub(crate) fn into_inner(self) -> T {
            self.0.into_inner().expect("no model panics while it holds a lock")
        }
    }
}

pub(crate) use imp::*;

#[cfg(not(feature = "model"))]
std::thread_local! {
    static NUMBER: usize = {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        NEXT.fetch_add(1, Ordering::Relaxed)
    };
}

/// A small number that this thread keeps to, for choosing among places that are all alike: threads that run at the same
/// time mostly have different ones.
#[inline]
pub(crate) fn thread_number() -> usize {
    // A thread that is about to end has no number any more. A model checker's threads are told apart by nothing: so
    // they meet everywhere.
    #[cfg(not(feature = "model"))]
    return NUMBER.try_with(|number| *number).unwrap_or(0);
    #[cfg(feature = "model")]
    return 0;
}

/// A point where others may get a turn under a model checker: between steps on the store, which it knows nothing of.
#[inline]
pub(crate) fn between_steps() {
    #[cfg(feature = "model")]
    yield_now();
}

/// Beyond this, spinning keeps the core from those we wait for.
const SPINS_BEFORE_YIELD: u32 = 64;

/// Waits by spinning a little, then yielding the core: whoever is waited for may have been preempted and need it.
#[derive(Default)]
pub(crate) struct Backoff {
    spins: u32,
}

impl Backoff {
    /// Waits a moment.
    pub(crate) fn pause(&mut self) {
        // A model checker's threads take turns, and spinning gives nobody a turn.
        if self.spins < SPINS_BEFORE_YIELD && !cfg!(feature = "model") {
            self.spins += 1;
            spin_loop();
        } else {
            yield_now();
        }
    }
}
