//! Committing: validation, the decision, and what follows from it.
//!
//! ```text
//! enter ──▶ look at what is published ──▶ draw a timestamp, publish the write set (one ordered step)
//!                                                │
//! finish ──▶ look at the rest ──▶ await dependencies ──▶ committed: stamp the claims ──▶ finished ──▶ wait for the
//!                                                │                                                    watermark
//!                                                └─────▶ aborted: take the claims back ──▶ finished
//! ```
//!
//! [`Transaction::commit`] does both halves. They are apart so that tests can stop in between, where others meet a
//! validating transaction.

use std::sync::Arc;

use mangrove_graph::Result;
use mangrove_store::Write;

use crate::counters::AbortCause;
use crate::recent::Outcome;
use crate::status::Status;
use crate::transaction::{CommitInfo, Transaction};
use crate::validation::{Validation, abort_error};

/// A transaction that has entered validation: it writes no more, its commit timestamp is drawn, and those that read
/// after it may already rely on its commit. Dropping it aborts it.
#[derive(Debug)]
pub struct Validating {
    transaction: Transaction,
    log: Vec<Write>,
    /// The commit timestamp. For a transaction without writes, which draws none, the moment it reads at.
    timestamp: u64,
    /// Absent where nothing that was read can have changed.
    validation: Option<Validation>,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// No timestamp was drawn.
    Undrawn,
    Drawn,
    /// Committed, and perhaps not wholly installed.
    Decided,
    Finished,
}

impl Transaction {
    /// Commits. When this returns, whoever begins a transaction sees its writes.
    ///
    /// A serializable transaction fails with a conflict when what it read was changed by a transaction that commits
    /// before it. What it returned until then must be forgotten: reads are certain once the commit has succeeded.
    pub fn commit(self) -> Result<CommitInfo> {
        self.enter_validation()?.finish()
    }

    /// The first half of [`Transaction::commit`]; see [`Validating`].
    #[doc(hidden)]
    pub fn enter_validation(mut self) -> Result<Validating> {
        self.check_alive()?;
        // From here to the end it does not expire.
        if !self.keep() {
            return Err(self.end_expired());
        }
        let log = self.take_log();
        let reads = self.take_reads();
        let latest = reads.latest();
        // Without writes and pre-reads all reads are those of the begin: that is the place in the order.
        let is_needed = !reads.is_empty() && (!log.is_empty() || latest > 0);
        let validation = is_needed.then(|| {
            let is_optimistic = self.shared.settings.optimistic_validation.load(std::sync::atomic::Ordering::Relaxed);
            Validation::new(reads, self.begin_ts(), self.known_names(), is_optimistic)
        });
        let timestamp = latest.max(self.begin_ts());
        let mut validating = Validating { transaction: self, log, timestamp, validation, progress: Progress::Undrawn };
        if !validating.log.is_empty() {
            validating.draw()?;
        }
        Ok(validating)
    }
}

impl Validating {
    /// Checks what can be checked before, then draws the commit timestamp.
    fn draw(&mut self) -> Result<()> {
        let shared = &self.transaction.shared;
        let writes = Arc::new(shared.store.write_set(&self.log));
        let published = shared.recent.published();
        if let Err(cause) = self.check_to(published) {
            self.abort(cause);
            return Err(abort_error(cause));
        }
        let shared = &self.transaction.shared;
        let slot = self.transaction.slot();
        self.timestamp = shared.recent.enter(writes, |ts| shared.status.set(slot, Status::Validating(ts)));
        self.progress = Progress::Drawn;
        Ok(())
    }

    fn check_to(&mut self, ts: u64) -> std::result::Result<(), AbortCause> {
        match &mut self.validation {
            Some(validation) => validation.check_to(&self.transaction.shared.recent, ts),
            None => Ok(()),
        }
    }

    /// The commit timestamp, if it commits; for a transaction without writes the moment it reads at.
    pub fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// The second half of [`Transaction::commit`].
    pub fn finish(mut self) -> Result<CommitInfo> {
        // Up to its own writes; what a reader read at a moment must be so at that moment.
        let last = if self.log.is_empty() { self.timestamp } else { self.timestamp - 1 };
        let outcome = self.check_to(last).and_then(|()| match &self.validation {
            Some(validation) => {
                let shared = &self.transaction.shared;
                validation.await_dependencies(&shared.recent, &shared.counters)
            }
            None => Ok(()),
        });
        if let Err(cause) = outcome {
            self.abort(cause);
            return Err(abort_error(cause));
        }
        let read_count = self.validation.as_ref().map_or(0, |validation| validation.reads().len());
        let info = CommitInfo { timestamp: self.timestamp, write_count: self.log.len(), read_count };
        if self.log.is_empty() {
            self.progress = Progress::Finished;
            self.transaction.end();
            self.transaction.shared.counters.read_only.add();
            return Ok(info);
        }
        self.install();
        self.transaction.shared.counters.commits.add();
        Ok(info)
    }

    fn install(&mut self) {
        let shared = &self.transaction.shared;
        // The status before the outcome: who sees the outcome may look a claim up.
        shared.status.set(self.transaction.slot(), Status::Committed(self.timestamp));
        shared.recent.decide(self.timestamp, Outcome::Committed);
        self.progress = Progress::Decided;
        shared.store.install(&self.log, self.timestamp);
        shared.recent.finish(self.timestamp);
        self.progress = Progress::Finished;
        self.transaction.end();
        let shared = &self.transaction.shared;
        if shared.recent.is_trim_due(self.timestamp) {
            shared.recent.trim(shared.status.oldest(&shared.recent));
        }
        shared.recent.wait_for(self.timestamp);
        shared.hand_over(std::mem::take(&mut self.log), self.timestamp);
    }

    fn abort(&mut self, cause: AbortCause) {
        let shared = &self.transaction.shared;
        // The status before the claims are taken back: a reader that took one for committed looks again.
        shared.status.set(self.transaction.slot(), Status::Aborted);
        if self.progress == Progress::Drawn {
            shared.recent.decide(self.timestamp, Outcome::Aborted);
        }
        let log = std::mem::take(&mut self.log);
        shared.store.rollback(&log, self.transaction.number());
        shared.store.retire_aborted(log);
        if self.progress == Progress::Drawn {
            shared.recent.finish(self.timestamp);
        }
        shared.counters.count_abort(cause);
        self.progress = Progress::Finished;
        self.transaction.end();
    }
}

impl Drop for Validating {
    fn drop(&mut self) {
        match self.progress {
            Progress::Finished => {}
            // Only a panic while stamping leads here. The decision stands; the watermark must not stop.
            Progress::Decided => self.transaction.shared.recent.finish(self.timestamp),
            Progress::Undrawn | Progress::Drawn => self.abort(AbortCause::Rollback),
        }
    }
}
