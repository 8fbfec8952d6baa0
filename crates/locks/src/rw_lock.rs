//! A lock for one writer or many readers, with a rank.

use std::fmt;
use std::marker::PhantomData;

use crate::held::check;
use crate::{Guard, Rank};

/// A `parking_lot::RwLock` with a rank.
pub struct RwLock<T, R> {
    rank: PhantomData<R>,
    lock: parking_lot::RwLock<T>,
}

impl<T, R> RwLock<T, R> {
    /// A lock with a value.
    #[inline]
    pub const fn new(value: T) -> Self {
        RwLock { rank: PhantomData, lock: parking_lot::RwLock::new(value) }
    }
}

impl<T, R: Rank> RwLock<T, R> {
    /// Locks for reading, after waiting for a writer. In debug builds this panics as [`crate::Mutex::lock`] does.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> Guard<parking_lot::RwLockReadGuard<'_, T>, R> {
        check::<R>();
        Guard::new(self.lock.read())
    }

    /// Locks for writing, after waiting for readers and writers. In debug builds this panics as [`crate::Mutex::lock`]
    /// does.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> Guard<parking_lot::RwLockWriteGuard<'_, T>, R> {
        check::<R>();
        Guard::new(self.lock.write())
    }
}

impl<T: Default, R> Default for RwLock<T, R> {
    fn default() -> Self {
        RwLock::new(T::default())
    }
}

impl<T: fmt::Debug, R> fmt::Debug for RwLock<T, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lock.fmt(f)
    }
}
