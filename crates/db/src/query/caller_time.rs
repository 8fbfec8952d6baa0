//! How long a query runs on the thread of its caller.
//!
//! A query of `Database::run_shared` begins on the thread of its caller, and moves to an executor if it is not over
//! soon. The threads of callers have a higher priority than executors, so a light query does not wait for heavy ones.
//! But if many heavy queries begin at the same time, each on its caller's thread, they keep the cores from light ones
//! until the last has moved.
//!
//! A thread reads the clock only after some messages, and a message of a heavy query may take a millisecond. So a plan
//! whose last runs all moved begins on an executor ([`LastRuns`]).
//!
//! - **DB-8.** The callers' threads together work for about [`CALLERS_NANOS`] for each core on queries that have begun
//!   together, however many they are. So the more threads there are, the sooner does each query move.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};

/// The messages that a query processes before its thread reads the clock. Most light queries are over then.
pub(crate) const FIRST_MESSAGES: u64 = 8;

/// The messages between two readings of the clock after that.
pub(crate) const MESSAGES_PER_READING: u64 = 4;

/// The time of the callers' threads, for each core.
const CALLERS_NANOS: u64 = 1_000_000;

/// The threads of callers that run a query, which has had its first messages.
static CALLERS: AtomicU64 = AtomicU64::new(0);

static CORES: LazyLock<u64> =
    LazyLock::new(|| std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64));

/// The time of one query on the thread of its caller. It stands still while the caller takes results.
#[derive(Default)]
pub(crate) struct CallerTime {
    spent_nanos: u64,
    /// When it began to run; `None` while it stands still.
    since_nanos: Option<u64>,
}

impl CallerTime {
    /// Lets the time run, if it stands still. Returns true if the query must move to an executor.
    pub fn is_over(&mut self, now_nanos: u64) -> bool {
        let since = *self.since_nanos.get_or_insert_with(|| {
            // Relaxed: no other memory is published with the counter.
            CALLERS.fetch_add(1, Ordering::Relaxed);
            now_nanos
        });
        let spent = self.spent_nanos + now_nanos.saturating_sub(since);
        is_over(spent, CALLERS.load(Ordering::Relaxed), *CORES)
    }

    /// Lets the time stand still, if it runs.
    pub fn stop(&mut self, now_nanos: impl FnOnce() -> u64) {
        if let Some(since) = self.since_nanos.take() {
            CALLERS.fetch_sub(1, Ordering::Relaxed);
            self.spent_nanos += now_nanos().saturating_sub(since);
        }
    }
}

impl Drop for CallerTime {
    fn drop(&mut self) {
        self.stop(|| 0);
    }
}

/// The heavy runs in a row after which the next run of a plan is expected to be heavy. A plan with heavy runs and light
/// ones seldom has so many, so its light runs stay on the threads of their callers.
const HEAVY_RUNS: u8 = 4;

/// Whether the last runs of a plan were heavy: their number in a row, up to [`HEAVY_RUNS`].
#[derive(Debug, Default)]
pub(crate) struct LastRuns(AtomicU8);

impl LastRuns {
    /// Returns true if the next run is expected to be heavy.
    pub fn were_heavy(&self) -> bool {
        self.0.load(Ordering::Relaxed) >= HEAVY_RUNS
    }

    /// A run was over soon.
    pub fn add_light(&self) {
        // Threads that run light queries would take the cache line from each other if each stored into it.
        if self.0.load(Ordering::Relaxed) > 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// A run was not over soon. A count that another thread makes at the same time may be lost.
    pub fn add_heavy(&self) {
        let heavy = self.0.load(Ordering::Relaxed);
        if heavy < HEAVY_RUNS {
            self.0.store(heavy + 1, Ordering::Relaxed);
        }
    }
}

/// DB-8: a thread has the time of a core, or its part of the time of all cores.
fn is_over(nanos: u64, callers: u64, cores: u64) -> bool {
    nanos.saturating_mul(callers.max(cores)) >= CALLERS_NANOS.saturating_mul(cores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_callers_share_the_time_of_the_cores() {
        let time = |callers| (0..).step_by(1_000).find(|nanos| is_over(*nanos, callers, 4)).unwrap();
        assert_eq!([1, 4, 8, 400].map(time), [1_000_000, 1_000_000, 500_000, 10_000]);
    }

    #[test]
    fn one_light_run_makes_the_next_one_begin_here() {
        let runs = LastRuns::default();
        for _ in 0..HEAVY_RUNS {
            assert!(!runs.were_heavy());
            runs.add_heavy();
        }
        assert!(runs.were_heavy());
        runs.add_heavy();
        runs.add_light();
        assert!(!runs.were_heavy());
    }

    #[test]
    fn only_running_times_count() {
        // Other tests run queries at the same time, so the counter itself is not compared.
        let mut others: Vec<_> = (0..1_000).map(|_| CallerTime::default()).collect();
        let mut time = CallerTime::default();
        assert!(!time.is_over(0));
        assert!(!time.is_over(CALLERS_NANOS / 500));
        assert!(others.iter_mut().all(|other| !other.is_over(0)));
        assert!(time.is_over(CALLERS_NANOS / 500 * *CORES));
        others.iter_mut().for_each(|other| other.stop(|| 0));
        assert!(!time.is_over(CALLERS_NANOS / 500));
        time.stop(|| CALLERS_NANOS / 2);
        assert!(!time.is_over(CALLERS_NANOS * 9));
        assert!(time.is_over(CALLERS_NANOS * 9 + CALLERS_NANOS / 2));
    }
}
