//! Committing: validation, the decision, and what follows from it.
//!
//! ```text
//! enter ──▶ look at what is published ──▶ draw a timestamp, publish the write set (one ordered step)
//!                                                │
//! finish ──▶ look at the rest ──▶ await dependencies ──▶ committed: stamp the claims ──▶ finished ──▶ wait for the
//!                                                │      (a large one is announced and                 watermark
//!                                                │       finished first, and stamped then)
//!                                                └─────▶ aborted: take the claims back ──▶ finished
//! ```
//!
//! [`Transaction::commit`] does both halves. They are apart so that tests can stop in between, where others meet a
//! validating transaction.

use std::sync::Arc;

use mangrove_graph::{Error, Result};
use mangrove_store::Write;
use mangrove_store::schema::RulesInForce;

use crate::counters::AbortCause;
use crate::log::{PreparedCommit, unknown_outcome, unsure_reads};
use crate::outcome::Outcome;
use crate::shared::Shared;
use crate::status::Status;
use crate::sync::between_steps;
use crate::transaction::{CommitInfo, Transaction};
use crate::validation::{Validation, abort_error};

/// Commits of so many writes do not hold the watermark while they are stamped: `store::installing`.
const LARGE_WRITES: usize = if cfg!(feature = "model") { 2 } else { 1 << 12 };
/// Stamped at a time.
const PORTION_WRITES: usize = if cfg!(feature = "model") { 1 } else { 1 << 12 };

/// So few timestamps may be left to look at when a timestamp is drawn.
const CHECKED_AFTER_DRAW: u64 = 64;
/// How often it looks for more of them before: others may be faster than it is.
const CHECKS_MAX: usize = 16;

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
    /// The rules it was found to keep to, before its timestamp was drawn; none were asked for where it wrote nothing.
    rules: Option<RulesInForce>,
    /// Its place in the log, until it is decided; absent where there is no log, or nothing to be logged.
    prepared: Option<Box<dyn PreparedCommit>>,
    progress: Progress,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Progress {
    /// No timestamp was drawn.
    Undrawn,
    Drawn,
    /// Committed, and perhaps not wholly installed.
    Decided,
    /// Committed, and seen by others though perhaps not wholly installed.
    Announced,
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
        let (prepared, progress) = (None, Progress::Undrawn);
        let mut validating =
            Validating { transaction: self, log, timestamp, validation, rules: None, prepared, progress };
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
        if let Err(cause) = self.check_published() {
            self.abort(cause);
            return Err(abort_error(cause));
        }
        self.check_rules(self.transaction.shared.store.rules())?;
        self.prepare()?;
        let shared = &self.transaction.shared;
        let slot = self.transaction.slot();
        let oldest = || shared.status.oldest_validated(&shared.recent);
        self.timestamp = shared.recent.enter(writes, oldest, |ts| shared.status.set(slot, Status::Validating(ts)));
        self.progress = Progress::Drawn;
        Ok(())
    }

    /// Looks at what is published. What comes while it looks is looked at in turn, until that is little: others wait for the
    /// rest, which is looked at after the timestamp was drawn.
    fn check_published(&mut self) -> std::result::Result<(), AbortCause> {
        let mut checked = 0;
        for _ in 0..CHECKS_MAX {
            let published = self.transaction.shared.recent.published();
            if published <= checked + CHECKED_AFTER_DRAW {
                break;
            }
            self.check_to(published)?;
            checked = published;
        }
        Ok(())
    }

    /// Takes its place in the log, where there is one: after this only a failing disk stands in its way.
    fn prepare(&mut self) -> Result<()> {
        let Some(log) = &self.transaction.shared.log else { return Ok(()) };
        match log.prepare(&self.log, self.transaction.number()) {
            Ok(prepared) => {
                self.prepared = Some(prepared);
                Ok(())
            }
            Err(error) => {
                self.abort(AbortCause::Refused);
                Err(error)
            }
        }
    }

    /// Whether what it leaves keeps to these rules.
    fn check_rules(&mut self, rules: RulesInForce) -> Result<()> {
        let transaction = &self.transaction;
        let checked = transaction.shared.store.check_commit(&rules, &self.log, transaction.number());
        self.rules = Some(rules);
        checked.inspect_err(|_| self.abort(AbortCause::Rule))
    }

    /// The same by the rules that hold after its timestamp was drawn, if they are others: see `schema`.
    fn check_rules_again(&mut self) -> Result<()> {
        let now = self.transaction.shared.rules_after_draw();
        if self.rules.as_ref().is_some_and(|before| before.are(&now)) {
            return Ok(());
        }
        self.check_rules(now)
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
        if !self.log.is_empty() {
            self.check_rules_again()?;
        }
        let read_count = self.validation.as_ref().map_or(0, |validation| validation.reads().len());
        let info = CommitInfo { timestamp: self.timestamp, write_count: self.log.len(), read_count };
        if self.log.is_empty() {
            self.progress = Progress::Finished;
            self.transaction.end();
            self.transaction.shared.counters.read_only.add();
            // What a read-only transaction reads is durable.
            if !self.transaction.is_read_only() {
                self.acknowledge(unsure_reads)?;
            }
            return Ok(info);
        }
        self.install();
        self.transaction.shared.counters.commits.add();
        self.acknowledge(unknown_outcome)?;
        Ok(info)
    }

    /// Waits, where there is a log, until what was read and written is durable. `unsure` is what is to be said if that
    /// will never be known.
    fn acknowledge(self, unsure: fn(&Error) -> Error) -> Result<()> {
        if self.transaction.shared.log.is_none() {
            return Ok(());
        }
        let (shared, ts) = (self.transaction.shared.clone(), self.timestamp);
        // Before the wait: it reads nothing more, and holds nothing back.
        drop(self);
        shared.wait_until_durable(ts).map_err(|cause| unsure(&cause))
    }

    fn install(&mut self) {
        let shared = &self.transaction.shared;
        // The status before the outcome: who sees the outcome may look a claim up.
        shared.status.set(self.transaction.slot(), Status::Committed(self.timestamp));
        // Before the watermark can pass: invariant 1 of `log`.
        self.prepared.take().into_iter().for_each(|prepared| prepared.hand_over(self.timestamp));
        shared.recent.decide(self.timestamp, Outcome::Committed);
        self.progress = Progress::Decided;
        let is_large = self.log.len() >= LARGE_WRITES;
        // The transaction keeps its slot until all is stamped.
        let announced = is_large.then(|| shared.store.announce(self.transaction.number(), self.timestamp)).flatten();
        if announced.is_some() {
            shared.recent.finish(self.timestamp);
            self.progress = Progress::Announced;
        }
        // In portions: nobody's grace period waits for a million stamps.
        for portion in self.log.chunks(PORTION_WRITES) {
            between_steps();
            shared.store.install(portion, self.timestamp);
        }
        if announced.is_none() {
            shared.recent.finish(self.timestamp);
        }
        drop(announced);
        self.progress = Progress::Finished;
        self.transaction.end();
        let shared = &self.transaction.shared;
        let bytes_max = shared.settings.commit_history_bytes.load(std::sync::atomic::Ordering::Relaxed);
        if shared.recent.is_trim_due(self.timestamp, bytes_max) {
            shared.trim_recent(bytes_max);
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

impl Shared {
    /// Drops what is kept of recent commits and no transaction can meet, and counts the rest in the memory budget. What the
    /// budget has no room for is dropped, too, from the oldest on: transactions that would need it cannot commit.
    fn trim_recent(&self, bytes_max: u64) {
        let oldest = self.status.oldest_validated(&self.recent);
        let Some(draw) = &self.history_draw else { return self.recent.trim(oldest, bytes_max) };
        // Who holds it trims.
        let Some(mut draw) = draw.try_lock() else { return };
        let room = draw.bytes().saturating_add(self.store.memory_budget().left_bytes());
        self.recent.trim(oldest, bytes_max.min(room));
        draw.count(self.recent.bytes());
    }

    /// Waits, where there is a log, until what was read or written up to a moment is durable.
    fn wait_until_durable(&self, ts: u64) -> Result<()> {
        let Some(log) = &self.log else { return Ok(()) };
        // What was read beyond the watermark is finished, but perhaps not what is before it.
        self.recent.wait_for(ts);
        log.wait(ts, &self.recent)
    }
}

impl Drop for Validating {
    fn drop(&mut self) {
        match self.progress {
            // Others were told of an announced one. It may have panicked while stamping, as below.
            Progress::Finished | Progress::Announced => {}
            // Only a panic while stamping leads here. The decision stands; the watermark must not stop.
            Progress::Decided => self.transaction.shared.recent.finish(self.timestamp),
            Progress::Undrawn | Progress::Drawn => self.abort(AbortCause::Rollback),
        }
    }
}
