//! Comparisons that end with the query they are made for.
//!
//! Collections share their members, so a few kilobytes may hold millions of values, and sets of sets may have to be
//! compared each with each. One comparison may take minutes. Hash tables and sorts cannot pass on an error of a
//! comparison. So:
//!
//! 1. The executor that runs a query tells its thread how to ask whether the query has ended ([`begin`]).
//! 2. Comparisons of collections ask, at most [`VALUES_AT_ONCE`] values apart.
//! 3. Once the query has ended, comparisons answer at once. Their answers mean nothing and contradict each other.
//! 4. The executor looks at [`is_interrupted`] after each call of an operator. If it is true, it discards the call's
//!    output.
//!
//! All state is in thread-local variables: a query on another thread is not affected.

use std::cell::Cell;

/// The values that are compared before the query is asked again whether it has ended: milliseconds at most.
pub const VALUES_AT_ONCE: usize = 1 << 16;

/// A text of this many bytes counts as one more value.
const BYTES_PER_VALUE: usize = 64;

/// The members of one collection that are compared before the thread counts them and may ask.
pub(super) const MEMBERS_AT_ONCE: usize = 1 << 12;

thread_local! {
    /// The values that may be compared before the query is asked; 0 after it has ended.
    static LEFT: Cell<usize> = const { Cell::new(VALUES_AT_ONCE) };
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    static HAS_ENDED: Cell<fn() -> bool> = const { Cell::new(never) };
}

/// A guard: as long as it lives, comparisons in [`watched`](super::watched) on this thread end with its query.
#[must_use]
pub struct Watch(());

fn never() -> bool {
    false
}

/// Begins to run a query on this thread. `has_ended` returns true if it was cancelled or its time is over.
pub fn begin(has_ended: fn() -> bool) -> Watch {
    INTERRUPTED.set(false);
    LEFT.set(VALUES_AT_ONCE);
    HAS_ENDED.set(has_ended);
    Watch(())
}

impl Drop for Watch {
    fn drop(&mut self) {
        HAS_ENDED.set(never);
        INTERRUPTED.set(false);
        LEFT.set(VALUES_AT_ONCE);
    }
}

/// Returns true if the query of this thread ended while values were compared for it.
pub fn is_interrupted() -> bool {
    INTERRUPTED.get()
}

/// Whether a comparison ends with the query of its thread: [`Watched`] or [`Unwatched`].
pub(super) trait Pace {
    /// Returns true if so many more values may be compared.
    fn has_time_for(values: usize) -> bool;

    /// Returns true if so many more bytes of one text or array may be compared. A short text is not counted here: it
    /// counts as one value when its collection counts its members.
    #[inline]
    fn has_time_for_bytes(bytes: usize) -> bool {
        bytes < 16 * BYTES_PER_VALUE || Self::has_time_for(bytes / BYTES_PER_VALUE)
    }
}

/// Comparisons that always come to an answer.
pub(super) struct Unwatched;

/// Comparisons that end with the query of their thread.
pub(super) struct Watched;

impl Pace for Unwatched {
    fn has_time_for(_values: usize) -> bool {
        true
    }
}

impl Pace for Watched {
    fn has_time_for(values: usize) -> bool {
        let left = LEFT.get();
        if values < left {
            LEFT.set(left - values);
            return true;
        }
        ask()
    }
}

#[cold]
fn ask() -> bool {
    if !INTERRUPTED.get() {
        let has_ended = HAS_ENDED.get()();
        INTERRUPTED.set(has_ended);
        LEFT.set(if has_ended { 0 } else { VALUES_AT_ONCE });
    }
    !INTERRUPTED.get()
}
