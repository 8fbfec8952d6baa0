//! The refresh of the graph's statistics, in the background or on request.
//!
//! ```text
//! none ──first request──▶ pass ──▶ statistics ──the graph changes by much──▶ pass ──▶ newer statistics
//!                         └── a worker does a step of it in each of its rounds
//! ```
//!
//! The store makes statistics in a pass over one snapshot (`mangrove_store::StatisticsPass`). It makes none until a
//! caller requests them. Then a worker of the collector does a step of a millisecond in each of its rounds. When the pass is over,
//! the worker compares the counters of live elements with the statistics about once a second, and begins the next pass
//! when they are *stale*: when the vertices or the edges are more or fewer by over 10 % and by over 1,000. A pass that
//! took a time is followed by a rest of a hundred times that time, so that all passes take about 1 % of a core.
//!
//! Planners ask for the values of keys ([`Shared::ask_values`]). If the newest statistics lack some of these, a pass
//! begins, too. Values that were counted once are counted again in each pass, until others are asked for more recently.
//!
//! A pass holds an entry of the status table, as a read-only transaction does: its snapshot stays until it ends. It has
//! no read set. So no commit waits for it or fails because of it, but versions that it may see are not collected. A bulk
//! load and a collection on request do not wait for it: they give it up, and it begins anew later.
//!
//! With no workers, or while they are told not to collect, only [`crate::TransactionManager::measure_statistics`] makes
//! statistics, on the thread of its caller.

use std::sync::Arc;
use std::time::{Duration, Instant};

use mangrove_graph::statistics::Statistics;
use mangrove_graph::{KeyId, LabelSetId, Result};
use mangrove_store::{Snapshot, StatisticsPass};

use crate::shared::Shared;
use crate::statistics::{DatedStatistics, Measured, RunningPass, Turn};
use crate::sync::Ordering;

/// How many descriptors and edges a step looks at: the work of about a millisecond.
const STEP: usize = 1 << 17;
/// The least time between two looks at the counters.
const LOOK: Duration = Duration::from_secs(1);
/// A pass, or a look, is followed by a rest of so many times its own time.
const REST: u32 = 100;
/// A pass that failed is repeated after this time.
const AFTER_FAILURE: Duration = Duration::from_secs(60);
/// Statistics are stale if a count differs by more than this, and by more than a part of itself.
const STALE_MIN: u64 = 1_000;
const STALE_PART: u64 = 10;

/// A pass, while a worker does a step of it. Dropping this releases the pass's entry in the status table, even if the
/// step panics.
struct Step<'a> {
    shared: &'a Shared,
    pass: Option<RunningPass>,
}

impl Drop for Step<'_> {
    fn drop(&mut self) {
        if let Some(pass) = self.pass.take() {
            self.shared.statistics.is_running.store(false, Ordering::Relaxed);
            self.shared.status.release(pass.registration.entry);
        }
    }
}

impl Shared {
    /// The newest statistics. The first call has workers make some, and later ones keep them fresh.
    pub(crate) fn newest_statistics(self: &Arc<Self>) -> Option<Arc<Statistics>> {
        self.want_statistics();
        self.statistics.newest.load().as_ref().map(|measured| measured.statistics.clone())
    }

    /// The newest statistics and their age. Looks at the counters of all pages.
    pub(crate) fn dated_statistics(self: &Arc<Self>) -> Option<DatedStatistics> {
        self.want_statistics();
        let measured = self.statistics.newest.load_full()?;
        let Measured { statistics, began_ms, worked } = &*measured;
        Some(DatedStatistics {
            statistics: statistics.clone(),
            commits_since: self.recent.stable().saturating_sub(statistics.as_of),
            age_ms: self.clock.now().saturating_sub(*began_ms),
            pass_micros: u64::try_from(worked.as_micros()).unwrap_or(u64::MAX),
            is_stale: self.are_stale(statistics),
        })
    }

    fn want_statistics(self: &Arc<Self>) {
        if !self.statistics.is_wanted.load(Ordering::Relaxed)
            && !self.statistics.is_wanted.swap(true, Ordering::Relaxed)
        {
            self.workers.wake(self);
        }
    }

    /// Notes that plans need statistics of the values of these label sets and keys.
    pub(crate) fn ask_values(&self, pairs: &[(LabelSetId, KeyId)]) {
        self.statistics.ask(pairs);
    }

    /// Returns true if the graph has more or fewer elements by much than the statistics say.
    fn are_stale(&self, statistics: &Statistics) -> bool {
        let is_far = |now: u64, then: u64| now.abs_diff(then) > STALE_MIN.max(then / STALE_PART);
        let (vertices, edges) = self.store.live_counts();
        is_far(vertices, statistics.vertices()) || is_far(edges, statistics.edges())
    }

    /// Makes statistics of the snapshot of a running transaction on this thread, and publishes them. `check` is called every
    /// millisecond or so, and its error ends the pass.
    pub(crate) fn measure_statistics(
        self: &Arc<Self>,
        begin_ts: u64,
        check: &mut dyn FnMut() -> Result<()>,
    ) -> Result<Arc<Statistics>> {
        let (began_ms, begun) = (self.clock.now(), now());
        let snapshot = Snapshot::committed(begin_ts);
        let mut pass = StatisticsPass::with_values(&self.statistics.asked());
        while !pass.step(&self.store.view(snapshot), STEP) {
            check()?;
        }
        let statistics = pass.finish(&self.store, begin_ts);
        let published = self.statistics.publish(statistics, began_ms, begun.elapsed());
        // From now on they are kept fresh.
        self.want_statistics();
        Ok(published)
    }

    /// Does a step of the pass, or begins one if it is time. Returns true if a pass is under way.
    pub(crate) fn work_on_statistics(&self) -> bool {
        let keeper = &self.statistics;
        if !keeper.is_wanted.load(Ordering::Relaxed) {
            return false;
        }
        // Another worker has the turn.
        let Some(mut turn) = keeper.turn.try_lock() else { return false };
        let pass = turn.pass.take().or_else(|| self.begin_pass(&mut turn));
        let mut step = Step { shared: self, pass };
        let Some(pass) = &mut step.pass else { return false };
        let begun = now();
        let is_done = pass.pass.step(&self.store.view(Snapshot::committed(pass.registration.begin_ts)), STEP);
        pass.worked += begun.elapsed();
        if !is_done {
            turn.pass = step.pass.take();
            return true;
        }
        let RunningPass { registration, began_ms, worked, .. } = *pass;
        let statistics = std::mem::take(&mut pass.pass).finish(&self.store, registration.begin_ts);
        keeper.publish(statistics, began_ms, worked);
        turn.not_before_ms = self.after(worked * REST);
        false
    }

    /// Begins a pass, if it is time and there are no statistics or stale ones.
    fn begin_pass(&self, turn: &mut Turn) -> Option<RunningPass> {
        let now_ms = self.clock.now();
        // A bulk load sets the flag, and then waits for the turn (`give_up_statistics`). So if the flag is off, no load
        // looks at the status table before this returns.
        if now_ms < turn.not_before_ms || self.loading.load(Ordering::SeqCst) {
            return None;
        }
        if let Some(newest) = &*self.statistics.newest.load() {
            let begun = now();
            let lacks_values = self.statistics.lack_values(&newest.statistics);
            if !lacks_values && !self.are_stale(&newest.statistics) {
                turn.not_before_ms = self.after(begun.elapsed() * REST);
                return None;
            }
        }
        // A pass that panics is not repeated at once.
        turn.not_before_ms = self.after(AFTER_FAILURE);
        let registration = self.status.register_reader(&self.recent, now_ms);
        let pass = StatisticsPass::with_values(&self.statistics.asked());
        let pass = RunningPass { pass, registration, began_ms: now_ms, worked: Duration::ZERO };
        self.statistics.is_running.store(true, Ordering::Relaxed);
        let mut step = Step { shared: self, pass: Some(pass) };
        // The limit on ages may be shorter than the time this thread was not running.
        if self.status.protect(&registration) { step.pass.take() } else { None }
    }

    /// Ends the pass of the workers, if one is under way, so that its snapshot holds nothing. It begins anew later.
    pub(crate) fn give_up_statistics(&self) {
        let mut turn = self.statistics.turn.lock();
        if let Some(pass) = turn.pass.take() {
            drop(Step { shared: self, pass: Some(pass) });
            turn.not_before_ms = self.after(LOOK);
        }
    }

    /// The time of the graph's clock after a rest, which is not shorter than that between two looks.
    fn after(&self, rest: Duration) -> u64 {
        let ms = u64::try_from(rest.max(LOOK).as_millis()).unwrap_or(u64::MAX);
        self.clock.now().saturating_add(ms)
    }
}

#[allow(clippy::disallowed_methods, reason = "how long to rest decides nothing that can be observed in data")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_store::{Store, StoreOptions};

    use super::*;
    use crate::TransactionManager;

    #[test]
    fn a_bulk_load_gives_a_pass_up_and_does_not_meet_its_snapshot() {
        let manager = TransactionManager::new(Arc::new(Store::new(&StoreOptions::default())));
        manager.settings().gc_workers.store(0, std::sync::atomic::Ordering::Relaxed);
        let shared = manager.shared();
        let begin = || {
            let mut turn = shared.statistics.turn.lock();
            turn.not_before_ms = 0;
            turn.pass = shared.begin_pass(&mut turn);
            turn.pass.is_some()
        };
        assert!(begin() && shared.statistics.is_running());
        assert_eq!(manager.counters().active, 1);
        let load = manager.bulk_load().expect("only a pass was under way");
        assert!(!shared.statistics.is_running());
        assert!(!begin(), "no pass begins beside a load");
        drop(load);
        assert!(begin());
        shared.give_up_statistics();
        assert_eq!(manager.counters().active, 0);
    }
}
