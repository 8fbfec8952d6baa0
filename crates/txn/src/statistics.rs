//! The newest statistics of the graph, and the state of the pass that makes the next ones.
//!
//! `refresh` says when a pass begins, and does its steps.

use std::sync::Arc;
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use mangrove_graph::statistics::Statistics;
use mangrove_graph::{KeyId, LabelSetId};
use mangrove_locks::rank;
use mangrove_store::StatisticsPass;

use crate::status::Registration;
use crate::sync::{AtomicBool, Mutex, Ordering};

/// The values of at most so many pairs of a label set and a key are counted. With 32 frequent values, 65 bounds and at
/// most 64 bytes of each text, that is at most 1 MB, and in a pass at most 30 MB.
pub const COUNTED_VALUES_MAX: usize = 64;

/// Statistics of a graph, and how old they are.
#[derive(Clone, Debug)]
pub struct DatedStatistics {
    /// The statistics.
    pub statistics: Arc<Statistics>,
    /// How many commits there were since their snapshot.
    pub commits_since: u64,
    /// How many milliseconds ago their snapshot was taken.
    pub age_ms: u64,
    /// How long the pass worked, in microseconds.
    pub pass_micros: u64,
    /// True if the graph has more or fewer vertices or edges by over 10 % and by over 1,000.
    pub is_stale: bool,
}

/// Statistics with the figures of the pass that made them.
#[derive(Debug)]
pub(crate) struct Measured {
    pub(crate) statistics: Arc<Statistics>,
    pub(crate) began_ms: u64,
    pub(crate) worked: Duration,
}

/// The statistics of one graph.
#[derive(Debug, Default)]
pub(crate) struct StatisticsKeeper {
    pub(crate) newest: ArcSwapOption<Measured>,
    /// True after the first caller has requested statistics.
    pub(crate) is_wanted: AtomicBool,
    /// True while a pass of the workers is under way.
    pub(crate) is_running: AtomicBool,
    pub(crate) turn: Mutex<Turn, rank::StatisticsPass>,
    /// The pairs of label set and key whose values were asked for, the last one first.
    asked: ArcSwap<Vec<(LabelSetId, KeyId)>>,
}

/// State of the worker that does the next step.
#[derive(Debug, Default)]
pub(crate) struct Turn {
    pub(crate) pass: Option<RunningPass>,
    /// No pass begins, and no look is taken, before this time of the graph's clock.
    pub(crate) not_before_ms: u64,
}

/// A pass of the workers, between two steps. The code that drops it must release its entry in the status table.
#[derive(Debug)]
pub(crate) struct RunningPass {
    pub(crate) pass: StatisticsPass,
    pub(crate) registration: Registration,
    pub(crate) began_ms: u64,
    pub(crate) worked: Duration,
}

impl StatisticsKeeper {
    /// Returns true while a pass of the workers is under way.
    pub(crate) fn is_running(&self) -> bool {
        self.is_running.load(Ordering::Relaxed)
    }

    /// Notes that the values of these pairs are asked for. If there are too many, those that were asked for least
    /// recently are forgotten.
    pub(crate) fn ask(&self, pairs: &[(LabelSetId, KeyId)]) {
        if self.asked.load().starts_with(pairs) {
            return;
        }
        self.asked.rcu(|asked| {
            let mut next: Vec<(LabelSetId, KeyId)> = pairs.to_vec();
            next.extend(asked.iter().filter(|pair| !pairs.contains(pair)));
            next.truncate(COUNTED_VALUES_MAX);
            next
        });
    }

    /// The pairs whose values the next pass counts.
    pub(crate) fn asked(&self) -> Arc<Vec<(LabelSetId, KeyId)>> {
        self.asked.load_full()
    }

    /// Returns true if statistics lack values that were asked for.
    pub(crate) fn lack_values(&self, statistics: &Statistics) -> bool {
        self.asked.load().iter().any(|(label, key)| statistics.values_of(*label, *key).is_none())
    }

    /// Replaces older statistics.
    pub(crate) fn publish(&self, statistics: Statistics, began_ms: u64, worked: Duration) -> Arc<Statistics> {
        let statistics = Arc::new(statistics);
        let new = Arc::new(Measured { statistics: statistics.clone(), began_ms, worked });
        // Two passes may end at once.
        self.newest.rcu(|old| match old {
            Some(old) if old.statistics.as_of > statistics.as_of => Some(old.clone()),
            _ => Some(new.clone()),
        });
        statistics
    }
}
