//! Comparisons that end with the query they are made for.
//!
//! A few kilobytes may hold millions of values, because collections share their members; sets of sets may have to be
//! compared each with each. So one call may take minutes. Hash tables and sorting take no error from what they call.
//! Therefore whoever runs a query tells its thread how to ask whether it has ended ([`begin`]), and what compares collections asks now and
//! then. From then on comparisons answer at once, whatever the values are. Such an answer means
//! nothing: whoever runs the query looks at [`is_interrupted`] after each call, and throws away what the call made.

use std::cell::Cell;

/// How many values are compared between two questions whether the query has ended: milliseconds at most.
pub const VALUES_AT_ONCE: usize = 1 << 16;

/// How many members of one collection are compared at once.
pub(super) const MEMBERS_AT_ONCE: usize = 1 << 12;

thread_local! {
    /// How many values may be compared before the query is asked; 0 from when it has ended.
    static LEFT: Cell<usize> = const { Cell::new(VALUES_AT_ONCE) };
    static INTERRUPTED: Cell<bool> = const { Cell::new(false) };
    static HAS_ENDED: Cell<fn() -> bool> = const { Cell::new(never) };
}

/// While it is here, this thread runs a query.
#[must_use]
pub struct Watch(());

fn never() -> bool {
    false
}

/// Begins to run a query on this thread; the function says whether it was cancelled, or its time is over.
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

/// Whether the query of this thread ended while values were compared for it.
pub fn is_interrupted() -> bool {
    INTERRUPTED.get()
}

/// Whether comparisons look at the query of their thread.
pub(super) trait Pace {
    /// Whether there is time to look at so many more values.
    fn has_time_for(values: usize) -> bool;
}

/// Comparisons that come to their end.
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
