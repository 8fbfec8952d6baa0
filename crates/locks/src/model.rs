//! The mutex of the model checker `shuttle`, with the interface of [`crate::Mutex`]. Its rank is not checked.

use std::fmt;
use std::marker::PhantomData;

use crate::Guard;

/// A `shuttle::sync::Mutex` with a rank.
pub struct Mutex<T, R> {
    rank: PhantomData<R>,
    mutex: shuttle::sync::Mutex<T>,
}

/// A model that panicked while it held a lock has failed, and is over.
const NOT_POISONED: &str = "no model goes on after a panic under a lock";

impl<T, R> Mutex<T, R> {
    /// A mutex with a value.
    pub const fn new(value: T) -> Self {
        Mutex { rank: PhantomData, mutex: shuttle::sync::Mutex::new(value) }
    }

    /// The value, for an owner of the mutex.
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut().expect(NOT_POISONED)
    }

    /// Takes the value out.
    pub fn into_inner(self) -> T {
        self.mutex.into_inner().expect(NOT_POISONED)
    }
}

impl<T, R: crate::Rank> Mutex<T, R> {
    /// Locks, after waiting for the holder.
    pub fn lock(&self) -> Guard<shuttle::sync::MutexGuard<'_, T>, R> {
        Guard::new(self.mutex.lock().expect(NOT_POISONED))
    }

    /// Locks if no thread holds the lock.
    pub fn try_lock(&self) -> Option<Guard<shuttle::sync::MutexGuard<'_, T>, R>> {
        self.mutex.try_lock().ok().map(Guard::new)
    }
}

impl<T: Default, R> Default for Mutex<T, R> {
    fn default() -> Self {
        Mutex::new(T::default())
    }
}

impl<T: fmt::Debug, R> fmt::Debug for Mutex<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.mutex.fmt(f)
    }
}
