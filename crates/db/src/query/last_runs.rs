//! What a plan learns from its last runs: whether the next one is expected to be heavy, and when helpers are of use to it.

use std::sync::atomic::{AtomicU8, Ordering};

/// A query is opened when it has run for so long after the first reading of the clock, in nanoseconds.
/// Opening costs it 15 to 80 µs, the most with a large set of a `dedup()`: about a tenth of that.
const OPEN_AFTER_NANOS: u64 = 700_000 * SLOWER;

/// If the last runs of its plan all took longer than this after the first reading, a query is opened at that reading.
const HEAVY_NANOS: u64 = 600_000 * SLOWER;

/// If the last runs of its plan all had enough results sooner than this after the first reading, while helpers worked on
/// what was then needed no more, a query is opened after this time. One thread works depth first, so a few results come
/// soon; a helper begins at the other end.
const CUT_NANOS: u64 = 2_000_000 * SLOWER;

/// About how many times slower a build with assertions is. With it, the same queries are opened as without.
const SLOWER: u64 = if cfg!(debug_assertions) { 5 } else { 1 };

/// The runs in a row that must be alike before a plan expects that of the next one. A plan with heavy runs and light ones
/// seldom has so many heavy ones, so its light runs stay on the threads of their callers.
const ALIKE_RUNS: u8 = 4;

/// Whether the last runs of a plan were all of some kind: their number in a row, up to [`ALIKE_RUNS`].
#[derive(Debug, Default)]
pub(crate) struct LastRuns(AtomicU8);

impl LastRuns {
    /// Returns true if the next run is expected to be of the kind.
    pub fn were_all(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= ALIKE_RUNS
    }

    /// Adds a run: true if it was of the kind. A count that another thread makes at the same time may be lost.
    pub fn add(&self, was: bool) {
        let so_far = self.0.load(Ordering::Relaxed);
        let runs = if was { (so_far + 1).min(ALIKE_RUNS) } else { 0 };
        // Threads that run light queries would take the cache line from each other if each stored into it.
        if runs != so_far {
            self.0.store(runs, Ordering::Relaxed);
        }
    }
}

/// When the last runs of a plan could use helpers.
#[derive(Debug, Default)]
pub(crate) struct HelpedRuns {
    /// Whether they were so long that it was worth being helped from the begin on.
    long: LastRuns,
    /// Whether each had enough results soon after it was opened, while helpers worked on what was then needed no more.
    cut: LastRuns,
}

impl HelpedRuns {
    /// Returns the nanoseconds after the first reading of the clock after which the next run is opened.
    pub fn open_after_nanos(&self) -> u64 {
        if self.cut.were_all() {
            CUT_NANOS
        } else if self.long.were_all() {
            0
        } else {
            OPEN_AFTER_NANOS
        }
    }

    /// Adds a complete run. `nanos` is its time after the first reading of the clock, or 0. `was_cut` is `None` for a run
    /// that was not opened: it says nothing of that.
    pub fn add(&self, nanos: u64, was_cut: Option<bool>) {
        self.long.add(nanos >= HEAVY_NANOS);
        if let Some(was_cut) = was_cut {
            self.cut.add(was_cut && nanos < CUT_NANOS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_light_run_makes_the_next_one_begin_here() {
        let runs = LastRuns::default();
        for _ in 0..ALIKE_RUNS {
            assert!(!runs.were_all());
            runs.add(true);
        }
        assert!(runs.were_all());
        runs.add(true);
        runs.add(false);
        assert!(!runs.were_all());
    }

    #[test]
    fn a_plan_learns_when_to_be_opened() {
        let runs = HelpedRuns::default();
        let expect = |after: u64| assert_eq!(runs.open_after_nanos(), after);
        let add = |nanos, was_cut| (0..ALIKE_RUNS).for_each(|_| runs.add(nanos, was_cut));
        expect(OPEN_AFTER_NANOS);
        add(HEAVY_NANOS, Some(false));
        expect(0);
        // Helpers work in vain.
        add(HEAVY_NANOS, Some(true));
        expect(CUT_NANOS);
        // Runs that are not opened any more do not show what helpers would do.
        add(HEAVY_NANOS, None);
        expect(CUT_NANOS);
        add(0, None);
        expect(CUT_NANOS);
        // Helpers have much to do until there are enough results.
        runs.add(CUT_NANOS, Some(true));
        expect(OPEN_AFTER_NANOS);
        add(CUT_NANOS, Some(true));
        expect(0);
    }
}
