//! A record of a pool: written once, read by any number of threads, and cleared for its next use.
//!
//! ```text
//! EMPTY ──set──▶ WRITING ──▶ FULL ──retire──▶ DYING ──(grace period)──clear──▶ WRITING ──▶ EMPTY
//! ```
//!
//! - **RECLAIM-6.** Readers get the content only while the state is FULL. It is cleared a grace period after that.
//!
//! So a reader may ask any record at any time, even by an old number whose record has a new content by then: it gets a
//! whole content or none.

#![expect(unsafe_code, reason = "content that is there in some states only: RECLAIM-6")]

use std::cell::UnsafeCell;
use std::mem::MaybeUninit;
use std::sync::atomic::Ordering;

use crate::epoch::Pin;
use crate::sync::AtomicU8;

const EMPTY: u8 = 0;
const WRITING: u8 = 1;
const FULL: u8 = 2;
const DYING: u8 = 3;

/// A record that holds a `T` or nothing. Invariant: RECLAIM-6.
pub struct RecordCell<T> {
    state: AtomicU8,
    content: UnsafeCell<MaybeUninit<T>>,
}

// SAFETY: shares `&T` and moves `T` between threads; the state says which thread may write.
unsafe impl<T: Send + Sync> Send for RecordCell<T> {}
// SAFETY: as above.
unsafe impl<T: Send + Sync> Sync for RecordCell<T> {}

impl<T> Default for RecordCell<T> {
    fn default() -> Self {
        RecordCell { state: AtomicU8::new(EMPTY), content: UnsafeCell::new(MaybeUninit::uninit()) }
    }
}

impl<T: Send + Sync> RecordCell<T> {
    /// The content, while the state is FULL.
    #[inline]
    pub fn get<'p>(&'p self, _pin: &'p Pin) -> Option<&'p T> {
        // RECLAIM-6: only while FULL.
        // SAFETY: FULL is stored (Release) after the content is written. `clear` waits until every pin is younger
        // than the change to DYING, so the content stays while this pin lives.
        (self.state.load(Ordering::Acquire) == FULL).then(|| unsafe { (*self.content.get()).assume_init_ref() })
    }

    /// Writes an empty record. Panics if it is not empty, because then its number was handed out twice.
    pub fn set(&self, content: T) {
        let claimed = self.state.compare_exchange(EMPTY, WRITING, Ordering::Acquire, Ordering::Relaxed);
        assert!(claimed.is_ok(), "a record that is handed out is empty");
        // SAFETY: one thread enters WRITING, and no thread looks at the content before FULL.
        unsafe { (*self.content.get()).write(content) };
        self.state.store(FULL, Ordering::Release);
    }

    /// Refuses the content to readers that come from here on. Returns false if the record is not full.
    pub fn retire(&self) -> bool {
        self.state.compare_exchange(FULL, DYING, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    }

    /// Takes the content out of a retired record, which is then empty. `None` if the record is not retired.
    ///
    /// # Safety
    /// Every pin in the process must have begun after [`RecordCell::retire`].
    pub unsafe fn clear(&self) -> Option<T> {
        let claimed = self.state.compare_exchange(DYING, WRITING, Ordering::Acquire, Ordering::Relaxed);
        claimed.ok()?;
        // SAFETY: DYING comes after FULL, so there is content; the change to WRITING is made by one thread; and the
        // caller vouches that no thread has a reference.
        let content = unsafe { (*self.content.get()).assume_init_read() };
        self.state.store(EMPTY, Ordering::Release);
        Some(content)
    }
}

impl<T> Drop for RecordCell<T> {
    fn drop(&mut self) {
        if matches!(self.state.load(Ordering::Relaxed), FULL | DYING) {
            // SAFETY: there is content in these states, and `&mut self` says that the record is not borrowed.
            unsafe { self.content.get_mut().assume_init_drop() };
        }
    }
}

impl<T> std::fmt::Debug for RecordCell<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RecordCell")
    }
}

#[cfg(all(test, not(any(feature = "model", feature = "loom"))))]
mod tests {
    use super::*;
    use crate::epoch::{pin, wait_for_readers};

    #[test]
    fn a_record_goes_round_its_states() {
        let cell = RecordCell::default();
        let first = pin();
        assert!(cell.get(&first).is_none() && !cell.retire());
        cell.set(String::from("content"));
        let seen = cell.get(&first).unwrap();
        assert!(cell.retire() && !cell.retire() && cell.get(&first).is_none());
        assert_eq!(seen, "content");
        drop(first);
        wait_for_readers();
        // SAFETY: every pin since has ended.
        assert_eq!(unsafe { cell.clear() }.as_deref(), Some("content"));
        cell.set(String::from("again"));
        assert_eq!(cell.get(&pin()).map(String::as_str), Some("again"));
    }
}
