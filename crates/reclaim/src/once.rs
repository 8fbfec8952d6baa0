//! Arrays that are made once, while readers use their owner, and then stay. The owner has one thin pointer to each.
//!
//! [`OnceSlice`] holds one array, [`OnceCells`] two parallel ones in one allocation.
//!
//! An owner may have tens of thousands of these, most of which never get an array, so a missing array has to be small.
//! A reader asks first whether the array exists, so that has to be one load and one branch that is predicted well. A
//! `OnceLock<Box<[T]>>` would be three words and two loads.
//!
//! - **RECLAIM-4.** A pointer is null, or that of a complete array of `len` entries. It changes once, by
//!   compare-and-swap, and the array is freed with its owner.

#![expect(unsafe_code, reason = "thin pointers to arrays whose length is kept beside them")]

use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::ptr::{null_mut, slice_from_raw_parts_mut};
use std::slice::from_raw_parts;
use std::sync::atomic::Ordering;

use crate::sync::{AtomicPtr, AtomicU8, AtomicU64};

/// An array of a fixed length, or nothing yet. Invariant: RECLAIM-4.
pub struct OnceSlice<T> {
    first: AtomicPtr<T>,
    len: u32,
    owns: PhantomData<Box<[T]>>,
}

// SAFETY: shares `&T` among threads, and moves `T` to the one that drops it, as a `OnceLock<Box<[T]>>` does.
unsafe impl<T: Send + Sync> Send for OnceSlice<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for OnceSlice<T> {}

impl<T> OnceSlice<T> {
    /// No array yet. The one that is made will have `len` entries.
    pub fn empty(len: u32) -> Self {
        OnceSlice { first: AtomicPtr::new(null_mut()), len, owns: PhantomData }
    }

    /// How many entries the array has once it is made.
    #[expect(clippy::len_without_is_empty, reason = "an array of a fixed length that may be missing")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The array, if it is made.
    #[inline]
    pub fn get(&self) -> Option<&[T]> {
        // Acquire: its partner is the exchange in `get_or_init`.
        let first = self.first.load(Ordering::Acquire);
        // SAFETY: null, or the first entry of a boxed array of `len` entries, which lives as long as `self`.
        (!first.is_null()).then(|| unsafe { from_raw_parts(first, self.len as usize) })
    }

    /// The array, which `make` makes if there is none. The flag is true if this call made it. If two threads make one
    /// at the same time, the array of one of them is dropped.
    pub fn get_or_init(&self, make: impl FnOnce() -> Box<[T]>) -> (&[T], bool) {
        if let Some(array) = self.get() {
            return (array, false);
        }
        let made = make();
        assert_eq!(made.len(), self.len(), "the array has the length that was announced");
        let made = Box::into_raw(made).cast::<T>();
        // RECLAIM-4: the array is complete before it is published, and only one is.
        let publish = self.first.compare_exchange(null_mut(), made, Ordering::AcqRel, Ordering::Acquire);
        if publish.is_err() {
            // SAFETY: the box taken apart above, which no other thread has seen.
            drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(made, self.len())) });
        }
        (self.get().expect("the array has just been made"), publish.is_ok())
    }

    /// The size of the array in bytes, or 0.
    pub fn bytes(&self) -> usize {
        self.get().map_or(0, size_of_val)
    }
}

impl<T> Drop for OnceSlice<T> {
    fn drop(&mut self) {
        let first = self.first.load(Ordering::Relaxed);
        if !first.is_null() {
            // SAFETY: a boxed array of `len` entries, and `&mut self` says that it is not borrowed.
            drop(unsafe { Box::from_raw(slice_from_raw_parts_mut(first, self.len())) });
        }
    }
}

impl<T> std::fmt::Debug for OnceSlice<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnceSlice({} of {})", if self.get().is_some() { "there" } else { "none" }, self.len)
    }
}

/// Two parallel arrays in one allocation, words first and then tags; or nothing yet. Invariant: RECLAIM-4.
pub struct OnceCells {
    first: AtomicPtr<AtomicU64>,
    len: u32,
    owns: PhantomData<(AtomicU64, AtomicU8)>,
}

/// The two arrays of [`OnceCells`], of the same length.
#[derive(Clone, Copy)]
pub struct CellArrays<'a> {
    /// One word an entry.
    pub words: &'a [AtomicU64],
    /// One tag an entry.
    pub tags: &'a [AtomicU8],
}

/// The layout of both arrays, and where the tags begin.
#[inline]
fn layout(len: usize) -> (Layout, usize) {
    // `len` was a `u32`, so nothing here overflows.
    let words = Layout::array::<AtomicU64>(len).expect("2^32 words fit");
    let tags = Layout::array::<AtomicU8>(len).expect("2^32 bytes fit");
    words.extend(tags).expect("and so do both")
}

/// Makes references of the arrays.
///
/// # Safety
/// `first` must be a pointer that [`OnceCells::make`] returned for `len`, and its memory must live as long as `'a`.
#[inline]
unsafe fn arrays<'a>(first: *mut AtomicU64, len: usize) -> CellArrays<'a> {
    let tags_at = (len * size_of::<AtomicU64>()).next_multiple_of(align_of::<AtomicU8>());
    // SAFETY: one allocation of `layout(len)`, both of whose parts were written by `make`.
    unsafe {
        CellArrays { words: from_raw_parts(first, len), tags: from_raw_parts(first.byte_add(tags_at).cast(), len) }
    }
}

impl OnceCells {
    /// No arrays yet. [`OnceCells::init`] makes them with `len` entries each, at least one.
    pub fn empty(len: u32) -> Self {
        OnceCells { first: AtomicPtr::new(null_mut()), len, owns: PhantomData }
    }

    /// How many entries each array has once they are made.
    #[expect(clippy::len_without_is_empty, reason = "arrays of a fixed length that may be missing")]
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// The arrays, if they are made.
    #[inline]
    pub fn get(&self) -> Option<CellArrays<'_>> {
        // Acquire: its partner is the exchange in `init`.
        let first = self.first.load(Ordering::Acquire);
        // SAFETY: null, or made by `make`, and freed with `self`.
        (!first.is_null()).then(|| unsafe { arrays(first, self.len()) })
    }

    /// Makes the arrays, lets `fill` write to them, and publishes them. Returns false if there were arrays already.
    pub fn init(&self, fill: impl FnOnce(CellArrays<'_>)) -> bool {
        let made = OnceCells { first: AtomicPtr::new(Self::make(self.len())), ..OnceCells::empty(self.len) };
        fill(made.get().expect("they were just made"));
        let first = made.first.load(Ordering::Relaxed);
        let publish = self.first.compare_exchange(null_mut(), first, Ordering::AcqRel, Ordering::Acquire);
        if publish.is_ok() {
            // `self` owns them from here on; otherwise `made` frees them.
            made.first.store(null_mut(), Ordering::Relaxed);
        }
        publish.is_ok()
    }

    /// Allocates both arrays, with all entries zero.
    fn make(len: usize) -> *mut AtomicU64 {
        assert!(len > 0, "arrays have at least one entry");
        let (layout, tags_at) = layout(len);
        // SAFETY: the layout is not empty. Every entry of both arrays is written, in bounds and
        // aligned as `layout` says.
        unsafe {
            let first = alloc(layout).cast::<AtomicU64>();
            if first.is_null() {
                handle_alloc_error(layout);
            }
            let tags = first.byte_add(tags_at).cast::<AtomicU8>();
            (0..len).for_each(|at| first.add(at).write(AtomicU64::new(0)));
            (0..len).for_each(|at| tags.add(at).write(AtomicU8::new(0)));
            first
        }
    }

    /// The size of both arrays in bytes, or 0.
    pub fn bytes(&self) -> usize {
        self.get().map_or(0, |cells| size_of_val(cells.words) + size_of_val(cells.tags))
    }
}

impl Drop for OnceCells {
    fn drop(&mut self) {
        let first = self.first.load(Ordering::Relaxed);
        if first.is_null() {
            return;
        }
        let (layout, tags_at) = layout(self.len());
        // SAFETY: made by `make` for this length; `&mut self` says that they are not borrowed.
        unsafe {
            slice_from_raw_parts_mut(first, self.len()).drop_in_place();
            slice_from_raw_parts_mut(first.byte_add(tags_at).cast::<AtomicU8>(), self.len()).drop_in_place();
            dealloc(first.cast(), layout);
        }
    }
}

impl std::fmt::Debug for OnceCells {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "OnceCells({} of {})", if self.get().is_some() { "there" } else { "none" }, self.len)
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use super::*;

    #[test]
    fn the_first_array_stays() {
        let slice = OnceSlice::<u64>::empty(3);
        assert!(slice.get().is_none() && slice.bytes() == 0);
        assert_eq!(slice.get_or_init(|| Box::new([1, 2, 3])), (&[1, 2, 3][..], true));
        assert_eq!(slice.get_or_init(|| Box::new([4, 5, 6])), (&[1, 2, 3][..], false));
        assert_eq!(slice.bytes(), 24);
    }

    #[test]
    fn cells_are_filled_before_they_are_there() {
        let cells = OnceCells::empty(5);
        assert!(cells.get().is_none());
        let fill = |value: u8| {
            move |cells: CellArrays<'_>| {
                cells.words.iter().for_each(|word| word.store(u64::from(value) << 40, Ordering::Relaxed));
                cells.tags.iter().for_each(|tag| tag.store(value, Ordering::Relaxed));
            }
        };
        assert!(cells.init(fill(7)) && !cells.init(fill(9)));
        let there = cells.get().expect("just made");
        assert!(there.words.iter().all(|word| word.load(Ordering::Relaxed) == 7 << 40));
        assert!(there.tags.iter().all(|tag| tag.load(Ordering::Relaxed) == 7));
        assert_eq!((there.tags.len(), cells.bytes()), (5, 45));
    }

    #[test]
    fn threads_agree_on_one_array() {
        let slice = OnceSlice::<u64>::empty(100);
        let made: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4_u64)
                .map(|n| {
                    scope.spawn({
                        let slice = &slice;
                        move || usize::from(slice.get_or_init(|| vec![n; 100].into()).1)
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().expect("it does not panic")).sum()
        });
        assert_eq!(made, 1);
    }
}
