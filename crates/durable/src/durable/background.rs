//! When checkpoints are taken, and how the last one went: what graphs in directories and in homes have in common.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_locks::{Mutex, rank};
use mangrove_txn::TransactionManager;
use parking_lot::Condvar;

use crate::checkpoint::CheckpointReport;
use crate::damage::panic_text;

/// The interval at which the background thread checks the length of the log.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The least bytes of log for which a checkpoint is taken, if the options do not say how many.
const LOG_BYTES_MIN: u64 = 64 << 20;
/// The number of checks between a failed checkpoint and the next attempt.
const LOOKS_AFTER_FAILURE: u32 = 20;

/// The status of checkpoints.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct CheckpointStatus {
    /// Checkpoints taken since the graph was opened.
    pub taken: u64,
    /// The last one.
    pub last: Option<CheckpointReport>,
    /// Bytes of log written since.
    pub log_bytes: u64,
    /// The error of the last attempt, if it failed. There will be another attempt.
    pub trouble: Option<Error>,
}

/// A graph whose checkpoints are taken in the background.
pub(crate) trait Checkpointed: Send + Sync + 'static {
    fn progress(&self) -> &CheckpointProgress;

    /// Bytes of log that the graph had when it was opened and that were written since.
    fn log_bytes(&self) -> u64;

    /// Takes a checkpoint, and notes how it went.
    fn try_checkpoint(&self, manager: &TransactionManager) -> Result<Option<CheckpointReport>>;
}

/// Takes a checkpoint. A panic ends it as an error does: the last checkpoint counts, and there will be another attempt.
pub(crate) fn checkpoint(graph: &dyn Checkpointed, manager: &TransactionManager) -> Result<Option<CheckpointReport>> {
    catch_unwind(AssertUnwindSafe(|| graph.try_checkpoint(manager))).unwrap_or_else(|panic| {
        let error = Error::bug(format!("a checkpoint: {}", panic_text(&*panic)));
        graph.progress().state.lock().trouble = Some(error.clone());
        Err(error)
    })
}

/// The progress of checkpoints, for the background thread and for status reports.
#[derive(Debug)]
pub(crate) struct CheckpointProgress {
    state: Mutex<ProgressState, rank::CheckpointProgress>,
    /// Wakes the background thread.
    changed: Condvar,
}

#[derive(Debug, Default)]
struct ProgressState {
    is_closing: bool,
    /// The log's bytes at the last checkpoint.
    log_bytes: u64,
    /// The bytes of all blocks of packs that count.
    live_bytes: u64,
    last: Option<CheckpointReport>,
    taken: u64,
    trouble: Option<Error>,
}

impl CheckpointProgress {
    /// The progress when a graph was opened whose packs have so many bytes that count.
    pub(crate) fn new(live_bytes: u64) -> Self {
        let state = ProgressState { live_bytes, ..ProgressState::default() };
        CheckpointProgress { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Lets other threads run between two pages of a checkpoint. Fails if the graph is closing.
    pub(crate) fn pause(&self) -> Result<()> {
        if self.state.lock().is_closing {
            return Err(Error::new(ErrorKind::Closed, "the database is closing; acknowledged commits are in the log"));
        }
        // Other threads first: a checkpoint is in no hurry.
        std::thread::yield_now();
        Ok(())
    }

    /// Notes how a checkpoint went that was begun when the log had so many bytes.
    pub(crate) fn note(&self, taken: &Result<Option<CheckpointReport>>, log_bytes: u64) {
        let mut state = self.state.lock();
        match taken {
            Ok(report) => {
                state.log_bytes = log_bytes;
                state.taken += u64::from(report.is_some());
                state.last = report.or(state.last);
                state.live_bytes = report.map_or(state.live_bytes, |report| report.live_bytes);
                state.trouble = None;
            }
            Err(error) => state.trouble = Some(error.clone()),
        }
    }

    /// The status, when the log has so many bytes. It does not wait for a checkpoint that is being taken.
    pub(crate) fn status(&self, log_bytes: u64) -> CheckpointStatus {
        let state = self.state.lock();
        CheckpointStatus {
            taken: state.taken,
            last: state.last,
            log_bytes: log_bytes.saturating_sub(state.log_bytes),
            trouble: state.trouble.clone(),
        }
    }
}

/// When the background thread takes a checkpoint.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CheckpointPolicy {
    /// Bytes of log since the last one; 0: any number; `None`: by the size of the graph.
    pub(crate) log_bytes: Option<u64>,
    pub(crate) after: Option<Duration>,
}

impl CheckpointPolicy {
    pub(crate) fn is_ever(self) -> bool {
        self.log_bytes != Some(0) || self.after.is_some()
    }

    /// Returns true if one is due, with so many bytes of log since the last one, and so many live bytes of packs.
    pub(super) fn is_now(self, log_bytes: u64, live_bytes: u64, passed: Duration) -> bool {
        // If all pages change all the time, each checkpoint writes the whole graph: four times what the log has.
        let limit = self.log_bytes.unwrap_or_else(|| (live_bytes / 4).max(LOG_BYTES_MIN));
        let is_long = limit > 0 && log_bytes >= limit;
        is_long || (log_bytes > 0 && self.after.is_some_and(|after| passed >= after))
    }
}

/// The thread that takes checkpoints, if there is one.
#[derive(Debug)]
pub(crate) struct Background(Option<JoinHandle<()>>);

impl Background {
    /// Ends the thread, and a checkpoint that is being taken.
    pub(crate) fn end(&mut self, progress: &CheckpointProgress) {
        progress.state.lock().is_closing = true;
        progress.changed.notify_all();
        if let Some(thread) = self.0.take() {
            // A panic was reported already.
            let _ = thread.join();
        }
    }
}

/// Starts the thread that takes checkpoints, if there shall be any.
pub(crate) fn start<G: Checkpointed>(
    graph: Arc<G>,
    manager: TransactionManager,
    policy: CheckpointPolicy,
) -> Result<Background> {
    if !policy.is_ever() {
        return Ok(Background(None));
    }
    let run = move || {
        let progress = graph.progress();
        // Time is counted in checks, so a checkpoint may be late by one interval.
        let (mut looks_to_skip, mut looks, mut taken) = (0, 0_u32, 0);
        loop {
            let is_due = {
                let mut state = progress.state.lock();
                if !state.is_closing {
                    progress.changed.wait_for(state.inner(), LOOK_EVERY);
                }
                if state.is_closing {
                    return;
                }
                // A client may have asked for one.
                looks = if state.taken == taken { looks.saturating_add(1) } else { 0 };
                taken = state.taken;
                let log_bytes = graph.log_bytes().saturating_sub(state.log_bytes);
                policy.is_now(log_bytes, state.live_bytes, LOOK_EVERY * looks)
            };
            if looks_to_skip > 0 {
                looks_to_skip -= 1;
            } else if is_due && checkpoint(&*graph, &manager).is_err() {
                // The status has the error.
                looks_to_skip = LOOKS_AFTER_FAILURE;
            }
        }
    };
    let thread = std::thread::Builder::new().name("mangrove-checkpoint".into()).spawn(run);
    thread
        .map(|thread| Background(Some(thread)))
        .map_err(|error| Error::new(ErrorKind::Io, format!("the thread for checkpoints could not be started: {error}")))
}
