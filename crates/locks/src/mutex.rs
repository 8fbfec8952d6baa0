//! A mutex with a rank.

use std::fmt;
use std::marker::PhantomData;

use crate::held::check;
use crate::{Guard, Rank};

/// A `parking_lot::Mutex` with a rank.
pub struct Mutex<T, R> {
    rank: PhantomData<R>,
    mutex: parking_lot::Mutex<T>,
}

impl<T, R> Mutex<T, R> {
    /// A mutex with a value.
    #[inline]
    pub const fn new(value: T) -> Self {
        Mutex { rank: PhantomData, mutex: parking_lot::Mutex::new(value) }
    }

    /// The value, for an owner of the mutex.
    #[inline]
    pub fn get_mut(&mut self) -> &mut T {
        self.mutex.get_mut()
    }

    /// Takes the value out.
    #[inline]
    pub fn into_inner(self) -> T {
        self.mutex.into_inner()
    }
}

impl<T, R: Rank> Mutex<T, R> {
    /// Locks, after waiting for the holder. In debug builds this panics if the thread holds a lock of this rank or of a
    /// higher one.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> Guard<parking_lot::MutexGuard<'_, T>, R> {
        check::<R>();
        Guard::new(self.mutex.lock())
    }

    /// Locks if no thread holds the lock. The rank is not checked, since the thread does not wait.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<parking_lot::MutexGuard<'_, T>, R>> {
        self.mutex.try_lock().map(Guard::new)
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

#[cfg(all(test, debug_assertions, not(feature = "model")))]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::{RwLock, rank};

    type Outer<T> = Mutex<T, rank::CheckpointState>;
    type Inner<T> = Mutex<T, rank::LogQueue>;

    fn panics(run: impl FnOnce()) -> bool {
        catch_unwind(AssertUnwindSafe(run)).is_err()
    }

    #[test]
    fn locks_are_taken_in_the_order_of_the_table() {
        let (outer, inner) = (Outer::new(1), Inner::new(2));
        let one = outer.lock();
        let two = inner.lock();
        assert_eq!((*one, *two), (1, 2));
        // They may be released in any order.
        drop(one);
        assert!(panics(|| drop(outer.lock())), "the inner lock is still held");
        drop(two);
        drop(outer.lock());
    }

    #[test]
    #[should_panic(expected = "a lock of rank CheckpointState is taken while one of rank LogQueue is held")]
    fn a_lock_against_the_order_panics() {
        let (outer, inner) = (Outer::new(()), Inner::new(()));
        let _inner = inner.lock();
        let _outer = outer.lock();
    }

    #[test]
    fn two_locks_of_one_rank_are_not_held_together() {
        let (one, two) = (Inner::new(()), Inner::new(()));
        let held = one.lock();
        assert!(panics(|| drop(two.lock())));
        drop(held);
        drop(two.lock());
    }

    #[test]
    fn a_lock_that_is_tried_may_have_any_rank_and_counts() {
        let (outer, inner, other) = (Outer::new(()), Inner::new(()), Inner::new(()));
        let held = inner.lock();
        let tried = outer.try_lock().expect("no thread holds it");
        let twin = other.try_lock().expect("no thread holds it");
        drop(twin);
        assert!(panics(|| drop(other.lock())), "the first lock of the rank is still held");
        drop(held);
        assert!(panics(|| drop(outer.lock())), "the lock that was tried is held");
        drop(other.lock());
        drop(tried);
    }

    #[test]
    fn readers_count_as_writers_do() {
        let (outer, inner) = (Outer::new(()), RwLock::<(), rank::HashIndexShard>::new(()));
        let reading = inner.read();
        assert!(panics(|| drop(outer.lock())));
        drop(reading);
        let _outer = outer.lock();
        drop(inner.write());
    }

    #[test]
    fn the_account_is_that_of_one_thread() {
        let (outer, inner) = (Outer::new(()), Inner::new(()));
        let _inner = inner.lock();
        std::thread::scope(|scope| {
            scope.spawn(|| drop(outer.lock()));
        });
    }
}
