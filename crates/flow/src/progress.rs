//! How far a query has come that works on one thing for long, as an algorithm or a batch of writes.
//!
//! Its threads count what they have done, and other threads look. It is for people: nothing is decided by it, so all accesses are
//! relaxed, and a look while a phase begins may find the counts of the phase before.

use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;

/// What a query works on, and how far it has come.
#[derive(Debug, Default)]
pub struct QueryProgress {
    /// `None` if the query does not work on such a thing.
    phase: Mutex<Option<(&'static str, &'static str)>>,
    done: AtomicU64,
    all: AtomicU64,
}

/// A [`QueryProgress`] at one moment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct QueryProgressFigures {
    /// What the query does.
    pub phase: &'static str,
    /// What is counted, such as `pages` or `rounds`.
    pub unit: &'static str,
    /// How many of them are done.
    pub done: u64,
    /// How many there are at most.
    pub all: u64,
}

impl QueryProgress {
    /// Begins a phase of at most so many units.
    pub fn begin(&self, phase: &'static str, unit: &'static str, all: u64) {
        self.restart(all);
        *self.phase.lock() = Some((phase, unit));
    }

    /// Begins to count the same units anew.
    pub fn restart(&self, all: u64) {
        self.done.store(0, Ordering::Relaxed);
        self.all.store(all, Ordering::Relaxed);
    }

    /// Counts units as done.
    pub fn add(&self, units: u64) {
        self.done.fetch_add(units, Ordering::Relaxed);
    }

    /// Nothing of the kind is under way any more.
    pub fn end(&self) {
        *self.phase.lock() = None;
    }

    /// The present state, if there is a phase.
    pub fn read(&self) -> Option<QueryProgressFigures> {
        let (phase, unit) = (*self.phase.lock())?;
        let all = self.all.load(Ordering::Relaxed);
        Some(QueryProgressFigures { phase, unit, done: self.done.load(Ordering::Relaxed).min(all), all })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_phase_counts_its_units_until_it_ends() {
        let progress = QueryProgress::default();
        assert_eq!(progress.read(), None);
        progress.begin("pagerank", "rounds", 20);
        progress.add(3);
        let figures = QueryProgressFigures { phase: "pagerank", unit: "rounds", done: 3, all: 20 };
        assert_eq!(progress.read(), Some(figures));
        progress.restart(2);
        progress.add(5);
        assert_eq!(progress.read(), Some(QueryProgressFigures { done: 2, all: 2, ..figures }), "never more than all");
        progress.end();
        assert_eq!(progress.read(), None);
    }
}
