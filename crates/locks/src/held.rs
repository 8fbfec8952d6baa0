//! The ranks of the locks that a thread holds, and the check of a lock that it is going to take.
//!
//! A thread's account has one bit per rank. It needs no destructor, so locks may be taken while a thread ends.
//!
//! The account never reports a lock that is not held. It may miss one: if a thread holds two locks of one rank (the
//! second by `try_lock`) and drops the first one first, the rank leaves the account while the second lock is still
//! held.

use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

#[cfg(all(debug_assertions, not(feature = "model")))]
mod account {
    use std::cell::Cell;

    use crate::rank::{NAMES, Rank};

    thread_local! {
        /// Bit `n`: a lock of the rank at position `n` is held.
        static HELD: Cell<u64> = const { Cell::new(0) };
    }

    const _: () = assert!(NAMES.len() <= u64::BITS as usize, "an account has one bit a rank");

    /// Panics if this thread holds a lock of rank `R` or of a higher one.
    #[track_caller]
    pub(crate) fn check<R: Rank>() {
        let not_lower = HELD.get() >> R::POSITION;
        // A thread that panics takes locks to clean up. Its first panic is the one to report.
        if not_lower != 0 && !std::thread::panicking() {
            let highest = NAMES[(63 - HELD.get().leading_zeros()) as usize];
            panic!(
                "a lock of rank {} is taken while one of rank {highest} is held; `locks::rank` has the order",
                R::NAME
            );
        }
    }

    /// A rank on its thread's account. Dropping it takes the rank off.
    pub(crate) struct Held {
        position: u32,
        /// False if a lock of this rank was held already.
        is_first: bool,
    }

    impl Held {
        pub(crate) fn of<R: Rank>() -> Self {
            let (held, bit) = (HELD.get(), 1 << R::POSITION);
            HELD.set(held | bit);
            Held { position: R::POSITION, is_first: held & bit == 0 }
        }
    }

    impl Drop for Held {
        fn drop(&mut self) {
            if self.is_first {
                HELD.set(HELD.get() & !(1 << self.position));
            }
        }
    }
}

#[cfg(not(all(debug_assertions, not(feature = "model"))))]
mod account {
    use crate::rank::Rank;

    #[inline]
    pub(crate) fn check<R: Rank>() {}

    /// Nothing: there is no account.
    pub(crate) struct Held;

    impl Held {
        #[inline]
        pub(crate) fn of<R: Rank>() -> Self {
            Held
        }
    }
}

pub(crate) use account::check;

/// A lock that is held: the guard `G` of a mutex or of a `RwLock`, with its rank on the thread's account.
///
/// It stays on its thread, as the guards inside do.
#[must_use = "the lock is free again when its guard is dropped"]
pub struct Guard<G, R> {
    guard: G,
    _held: account::Held,
    rank: PhantomData<R>,
}

impl<G, R: crate::Rank> Guard<G, R> {
    #[inline]
    pub(crate) fn new(guard: G) -> Self {
        Guard { guard, _held: account::Held::of::<R>(), rank: PhantomData }
    }

    /// The guard of the lock itself, to wait on a condition variable with it. The rank stays on the account: a thread
    /// that waits takes no lock.
    #[inline]
    pub fn inner(&mut self) -> &mut G {
        &mut self.guard
    }
}

impl<G: Deref, R> Deref for Guard<G, R> {
    type Target = G::Target;
    #[inline]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut, R> DerefMut for Guard<G, R> {
    #[inline]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<G: fmt::Debug, R> fmt::Debug for Guard<G, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
