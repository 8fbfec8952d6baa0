//! Merging of equal traversers by several threads, for the iterations of a loop.
//!
//! Each thread merges its own rows, as if it were alone. At the end the home merges what the threads have merged: a row
//! for each of their vertices, however many rows they met. Iterations of a run come one after the other, so each has
//! [`Parts`] of its own.

use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_flow::Output;
use mangrove_graph::Result;
use parking_lot::MutexGuard;

use crate::barrier::merge::Merger;
use crate::barrier::per_thread::{HOME, Parts};
use crate::rows::Rows;

/// The messages that one call of [`SharedMerger::combine`] merges.
const COMBINED_MESSAGES: usize = 32;

/// See the header of this file.
pub(crate) struct SharedMerger {
    mergers: Parts<Merger>,
    /// The number of mergers whose rows are in that of the home.
    combined: AtomicUsize,
}

impl Default for SharedMerger {
    fn default() -> Self {
        SharedMerger::new(Merger::new(true))
    }
}

impl SharedMerger {
    /// Rows that the home has merged, for several threads.
    pub fn new(merged: Merger) -> Self {
        SharedMerger { mergers: Parts::new(merged, || Merger::new(true)), combined: AtomicUsize::new(HOME + 1) }
    }

    /// Returns the rows of a thread.
    pub fn of(&self, thread: usize) -> MutexGuard<'_, Merger> {
        self.mergers.of(thread)
    }

    /// Merges rows of different threads, before the first batch is taken. Returns false if it must be called again. No
    /// thread may add rows from then on.
    pub fn combine(&self, out: &Output<'_, Rows>) -> Result<bool> {
        let mut left = COMBINED_MESSAGES;
        let mut all = self.mergers.of(HOME);
        while let Some(next) = self.mergers.all().get(self.combined.load(Ordering::Relaxed)) {
            let mut next = next.lock();
            if all.is_empty() {
                std::mem::swap(&mut *all, &mut *next);
            }
            while let Some(rows) = next.take_next(out)? {
                all.add(rows, out)?;
                left -= 1;
                if left == 0 {
                    return Ok(false);
                }
            }
            self.combined.fetch_add(1, Ordering::Relaxed);
        }
        Ok(true)
    }

    /// Takes the next rows, at most as many as a message holds. After the last ones, threads may add rows again. Fails
    /// if a bulk overflows.
    pub fn take_next(&self, out: &Output<'_, Rows>) -> Result<Option<Rows>> {
        let mut all = self.mergers.of(HOME);
        let rows = all.take_next(out)?;
        if all.is_empty() {
            self.combined.store(HOME + 1, Ordering::Relaxed);
        }
        Ok(rows)
    }

    /// Drops all rows.
    pub fn clear(&self, out: &Output<'_, Rows>) {
        self.mergers.all().iter().for_each(|merger| merger.lock().clear(out));
        self.combined.store(HOME + 1, Ordering::Relaxed);
    }

    /// Returns true if no row is left.
    pub fn is_empty(&self) -> bool {
        self.mergers.all().iter().all(|merger| merger.lock().is_empty())
    }
}
