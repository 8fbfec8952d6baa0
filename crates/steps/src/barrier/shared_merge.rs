//! Merging of equal traversers by several threads.
//!
//! Each thread merges its own rows, as if it were alone. At the end the home merges what the threads have merged: a row
//! for each of their vertices, however many rows they met. A lock for each thread is nearly always free.

use std::sync::atomic::{AtomicUsize, Ordering};

use mangrove_flow::Output;
use mangrove_graph::Result;
use parking_lot::{Mutex, MutexGuard};

use crate::barrier::merge::Merger;
use crate::rows::Rows;

/// The mergers of a set of rows. More threads than that share them.
const MERGERS: usize = 16;

/// The messages that one call of [`SharedMerger::combine`] merges.
const COMBINED_MESSAGES: usize = 32;

/// See the header of this file.
pub(crate) struct SharedMerger {
    /// The first one is that of the home.
    mergers: Box<[Mutex<Merger>]>,
    /// The number of mergers whose rows are in the first one.
    combined: AtomicUsize,
}

impl Default for SharedMerger {
    fn default() -> Self {
        SharedMerger::new(Merger::new(true))
    }
}

/// The number of the home among the threads that merge.
pub(crate) const HOME: usize = 0;

/// Numbers the helpers that merge.
#[derive(Debug)]
pub(crate) struct Threads(AtomicUsize);

impl Default for Threads {
    fn default() -> Self {
        Threads(AtomicUsize::new(1))
    }
}

impl Threads {
    /// Returns the number of a helper that joins.
    pub fn join(&self) -> usize {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

impl SharedMerger {
    /// Rows that the home has merged, for several threads.
    pub fn new(merged: Merger) -> Self {
        let others = (1..MERGERS).map(|_| Mutex::new(Merger::new(true)));
        let mergers = std::iter::once(Mutex::new(merged)).chain(others).collect();
        SharedMerger { mergers, combined: AtomicUsize::new(1) }
    }

    /// Returns the rows of a thread ([`Threads`]).
    pub fn of(&self, thread: usize) -> MutexGuard<'_, Merger> {
        self.mergers[thread % MERGERS].lock()
    }

    /// Merges rows of different threads, before the first batch is taken. Returns false if it must be called again. No
    /// thread may add rows from then on.
    pub fn combine(&self, out: &Output<'_, Rows>) -> Result<bool> {
        let mut left = COMBINED_MESSAGES;
        let mut all = self.mergers[0].lock();
        while let Some(next) = self.mergers.get(self.combined.load(Ordering::Relaxed)) {
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
        let mut all = self.mergers[0].lock();
        let rows = all.take_next(out)?;
        if all.is_empty() {
            self.combined.store(1, Ordering::Relaxed);
        }
        Ok(rows)
    }

    /// Drops all rows.
    pub fn clear(&self, out: &Output<'_, Rows>) {
        self.mergers.iter().for_each(|merger| merger.lock().clear(out));
        self.combined.store(1, Ordering::Relaxed);
    }

    /// Returns true if no row is left.
    pub fn is_empty(&self) -> bool {
        self.mergers.iter().all(|merger| merger.lock().is_empty())
    }
}
