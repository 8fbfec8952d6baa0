//! Boxes and arrays that are replaced as a whole while readers use them.
//!
//! [`EpochCell`] holds a box or nothing; [`EpochSlice`] an array of a fixed length or nothing. A reader borrows the
//! content under a [`Pin`], and the reference lives no longer than the pin. A writer that replaces the content gets the
//! old one as [`Retired`] memory, and hands it to a [`crate::Limbo`], which keeps RECLAIM-3. So both types are safe to
//! use.

#![expect(unsafe_code, reason = "memory that is freed while readers come and go: RECLAIM-1 to RECLAIM-3")]

use std::marker::PhantomData;
use std::ops::Deref;
use std::sync::atomic::Ordering;

use crate::epoch::{Pin, pin};
use crate::retired::Retired;
use crate::sync::AtomicPtr;

/// A reference together with the pin that protects it.
pub struct Guarded<'a, T: ?Sized> {
    target: &'a T,
    _pin: Pin,
}

impl<T: ?Sized> Deref for Guarded<'_, T> {
    type Target = T;
    #[inline]
    fn deref(&self) -> &T {
        self.target
    }
}

/// A box that is replaced as a whole while readers use it, or nothing.
///
/// Invariant: the pointer is null or comes from a `Box<T>` that this cell owns.
pub struct EpochCell<T> {
    target: AtomicPtr<T>,
    owns: PhantomData<Box<T>>,
}

// SAFETY: shares `&T` among threads and moves boxes of `T` between them, as a `RwLock<Box<T>>` does.
unsafe impl<T: Send + Sync> Send for EpochCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for EpochCell<T> {}

impl<T> Default for EpochCell<T> {
    fn default() -> Self {
        EpochCell { target: AtomicPtr::new(std::ptr::null_mut()), owns: PhantomData }
    }
}

/// `'static`: replaced content may be dropped long after the cell.
impl<T: Send + Sync + 'static> EpochCell<T> {
    /// A cell with a content.
    pub fn new(content: T) -> Self {
        EpochCell { target: AtomicPtr::new(Box::into_raw(Box::new(content))), owns: PhantomData }
    }

    /// The content at the time of the call.
    #[inline]
    pub fn get<'p>(&'p self, _pin: &'p Pin) -> Option<&'p T> {
        // SAFETY: null, or a box that `new` or `swap` put here. `Retired::free` frees it only once every pin is younger
        // than its unlinking (RECLAIM-3), so not while this pin lives; `drop` frees it only while the cell is not
        // borrowed. Acquire: its partner is the Release in `swap`.
        unsafe { self.target.load(Ordering::Acquire).as_ref() }
    }

    /// Returns true if the cell has a content. A caller that finds none also finds everything that was published before
    /// the content went.
    pub fn is_some(&self) -> bool {
        // Acquire: its partner is the Release in `swap`. A writer publishes the next form of its data elsewhere, and
        // then takes this one away. A reader that finds this one gone looks for the next one.
        !self.target.load(Ordering::Acquire).is_null()
    }

    /// The content at the time of the call, with a pin of its own.
    #[inline]
    pub fn load(&self) -> Option<Guarded<'_, T>> {
        let pin = pin();
        // SAFETY: as in `get`; the guard keeps the pin as long as the reference.
        let target = unsafe { self.target.load(Ordering::Acquire).as_ref() }?;
        Some(Guarded { target, _pin: pin })
    }

    /// Replaces the content. The caller hands the old one to a `Limbo`.
    pub fn swap(&self, content: Option<T>) -> Option<Retired> {
        unsafe fn free<T>(target: *mut (), _: usize) {
            // SAFETY: `swap` made the pointer of a `Box<T>` and gave it up; see `Retired::free`.
            drop(unsafe { Box::from_raw(target.cast::<T>()) });
        }
        let new = content.map_or(std::ptr::null_mut(), |content| Box::into_raw(Box::new(content)));
        let old = self.target.swap(new, Ordering::AcqRel);
        (!old.is_null()).then(|| Retired::new(old.cast(), 1, free::<T>))
    }
}

impl<T> Drop for EpochCell<T> {
    fn drop(&mut self) {
        let target = self.target.load(Ordering::Relaxed);
        if !target.is_null() {
            // SAFETY: a box of this cell, and `&mut self` says that the cell is not borrowed.
            drop(unsafe { Box::from_raw(target) });
        }
    }
}

impl<T: Send + Sync + std::fmt::Debug + 'static> std::fmt::Debug for EpochCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EpochCell").field(&self.load().as_deref()).finish()
    }
}

/// An array of a fixed length, one pointer away, or nothing.
///
/// Invariant: the pointer is null or that of a boxed array of `len` entries that this cell owns.
pub struct EpochSlice<T> {
    first: AtomicPtr<T>,
    len: usize,
    owns: PhantomData<Box<[T]>>,
}

// SAFETY: as for `EpochCell`.
unsafe impl<T: Send + Sync> Send for EpochSlice<T> {}
// SAFETY: as for `EpochCell`.
unsafe impl<T: Send + Sync> Sync for EpochSlice<T> {}

/// `'static`: as for [`EpochCell`].
impl<T: Send + Sync + 'static> EpochSlice<T> {
    /// No array yet. Each that is made will have `len` entries.
    pub fn empty(len: usize) -> Self {
        EpochSlice { first: AtomicPtr::new(std::ptr::null_mut()), len, owns: PhantomData }
    }

    /// How many entries the array has once it is made.
    #[expect(clippy::len_without_is_empty, reason = "an array of a fixed length that may be missing")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// The array at the time of the call.
    #[inline]
    pub fn get<'p>(&'p self, _pin: &'p Pin) -> Option<&'p [T]> {
        // Acquire: its partner is the exchange in `get_or_init`.
        let first = self.first.load(Ordering::Acquire);
        // SAFETY: null, or the first entry of a boxed array of `len` entries (only `get_or_init`
        // stores one). Freed as in `EpochCell::get`.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts(first, self.len) })
    }

    /// The array, for a caller that owns the cell.
    pub fn get_mut(&mut self) -> Option<&mut [T]> {
        // Relaxed: `&mut self` says that no other thread uses the cell.
        let first = self.first.load(Ordering::Relaxed);
        // SAFETY: null, or the first entry of a boxed array of `len` entries of this cell; `&mut self` says that no
        // other borrow exists.
        (!first.is_null()).then(|| unsafe { std::slice::from_raw_parts_mut(first, self.len) })
    }

    /// Returns true if there is an array. A caller that finds none also finds everything that was published before the
    /// array went.
    #[inline]
    pub fn is_some(&self) -> bool {
        // Acquire: its partner is the exchange in `take`, for the same reason as in `EpochCell::is_some`.
        !self.first.load(Ordering::Acquire).is_null()
    }

    /// The array, which `make` makes if there is none. The flag is true if this call made it. If two threads make one
    /// at the same time, the array of one of them is dropped.
    pub fn get_or_init<'p>(&'p self, pin: &'p Pin, make: impl FnOnce() -> Box<[T]>) -> (&'p [T], bool) {
        if let Some(array) = self.get(pin) {
            return (array, false);
        }
        let made = make();
        assert_eq!(made.len(), self.len, "all arrays of a cell are of one length");
        let made = Box::into_raw(made);
        let publish =
            self.first.compare_exchange(std::ptr::null_mut(), made.cast::<T>(), Ordering::AcqRel, Ordering::Acquire);
        match publish {
            // SAFETY: as in `get`.
            Ok(_) => (unsafe { &*made }, true),
            Err(first) => {
                // SAFETY: the box made above, which no other thread has seen.
                drop(unsafe { Box::from_raw(made) });
                // SAFETY: as in `get`; not null, or the exchange had succeeded.
                (unsafe { std::slice::from_raw_parts(first, self.len) }, false)
            }
        }
    }

    /// Takes the array away. The caller hands it to a `Limbo`.
    pub fn take(&self) -> Option<Retired> {
        unsafe fn free<T>(target: *mut (), len: usize) {
            // SAFETY: `get_or_init` made the pointer of a boxed array of `len` entries; see `Retired::free`.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(target.cast::<T>(), len)) });
        }
        let old = self.first.swap(std::ptr::null_mut(), Ordering::AcqRel);
        (!old.is_null()).then(|| Retired::new(old.cast(), self.len, free::<T>))
    }

    /// The size of the array in bytes, or 0.
    pub fn bytes(&self) -> usize {
        if self.is_some() { self.len * size_of::<T>() } else { 0 }
    }
}

impl<T> Drop for EpochSlice<T> {
    fn drop(&mut self) {
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() {
            // SAFETY: a boxed array of `len` entries of this cell, and `&mut self` says that it is not borrowed.
            drop(unsafe { Box::from_raw(std::ptr::slice_from_raw_parts_mut(first, self.len)) });
        }
    }
}

impl<T> std::fmt::Debug for EpochSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "EpochSlice(of {})", self.len)
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use super::*;
    use crate::limbo::Limbo;

    #[test]
    fn a_replaced_box_is_readable_until_the_pin_ends() {
        let (cell, limbo) = (EpochCell::new(vec![1, 2, 3]), Limbo::<Retired>::default());
        let pin = pin();
        let before = cell.get(&pin).unwrap();
        limbo.retire(cell.swap(Some(vec![4])));
        limbo.release_boxes();
        assert_eq!((before.as_slice(), cell.load().unwrap().as_slice()), (&[1, 2, 3][..], &[4][..]));
        drop(pin);
        limbo.retire(cell.swap(None));
        assert!(cell.load().is_none());
    }

    #[test]
    fn an_array_is_made_once_and_taken_away() {
        let (slice, limbo) = (EpochSlice::<u64>::empty(3), Limbo::<Retired>::default());
        let pin = pin();
        assert!(slice.get(&pin).is_none());
        assert_eq!(slice.get_or_init(&pin, || vec![1, 2, 3].into()), (&[1, 2, 3][..], true));
        assert_eq!(slice.get_or_init(&pin, || unreachable!("there is one")), (&[1, 2, 3][..], false));
        assert_eq!(slice.bytes(), 24);
        limbo.retire(slice.take());
        assert!(slice.get(&pin).is_none() && slice.take().is_none());
    }

    #[test]
    fn readers_race_with_a_replacer() {
        let (cell, limbo) = (EpochCell::new((0_u64, 0_u64)), Limbo::<Retired>::default());
        let rounds = if cfg!(miri) { 20 } else { 5_000 };
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    for _ in 0..rounds {
                        let seen = cell.load().unwrap();
                        assert_eq!(seen.1, 2 * seen.0);
                    }
                });
            }
            scope.spawn(|| {
                for n in 1..=rounds {
                    limbo.retire(cell.swap(Some((n, 2 * n))));
                    limbo.release_boxes();
                }
            });
        });
    }
}
