//! Committing: entry into validation, the decision, and installing or rolling back.
//!
//! ```text
//! enter ──▶ check what is published ──▶ draw a timestamp, publish the write set (one ordered step)
//!                                                │
//! finish ──▶ check the rest ──▶ await dependencies ──▶ committed: stamp the claims ──▶ finished ──▶ wait for the
//!                                                │      (a large one is announced and                 watermark
//!                                                │       finished first, and stamped then)
//!                                                └─────▶ aborted: take the claims back ──▶ finished
//!
//! CommitProgress:  Undrawn ──▶ Drawn ──▶ Decided ──▶ Announced ──▶ Finished
//!                     └─ abort ──┴─ abort ──┬──────────────────────────▲
//!                                           └── small commit ──────────┘
//! ```
//!
//! [`Transaction::commit`] runs both halves. They are apart so that tests can stop in between, where other transactions
//! meet a validating one.
//!
//! - **TXN-9.** A commit's status and outcome are *committed* before its first claim is stamped. It is *finished* after
//!   the last claim is stamped or, if it is large, after it is announced.
//! - **TXN-12.** An aborted transaction's status is *aborted* before its first claim is taken back. A reader that took
//!   a value because its writer was validating asks again after it has read the value.
//! - **TXN-13.** Every transaction that writes publishes its write set, snapshot transactions too.

use std::sync::Arc;

use mangrove_graph::{Error, Result};
use mangrove_store::Write;
use mangrove_store::schema::RulesInForce;

use crate::access_set::WriteSet;
use crate::counters::AbortCause;
use crate::log::{PreparedCommit, unknown_outcome, unsure_reads};
use crate::outcome::Outcome;
use crate::shared::Shared;
use crate::status::Status;
use crate::sync::between_steps;
use crate::transaction::{CommitInfo, Transaction};
use crate::validation::{Validation, abort_error};

/// Writes from which on a commit is large: it does not hold the watermark back while it is stamped
/// (`store::installing`).
const LARGE_WRITES: usize = if cfg!(feature = "model") { 2 } else { 1 << 12 };
/// Claims that are stamped in one go, under one pin.
const PORTION_WRITES: usize = if cfg!(feature = "model") { 1 } else { 1 << 12 };

/// A transaction draws its timestamp when at most this many published timestamps are left to check.
const CHECKED_AFTER_DRAW: u64 = 64;
/// How many times a transaction checks newly published timestamps before it draws. Without a limit it might never draw,
/// since others may publish faster than it checks.
const CHECKS_MAX: usize = 16;

/// A transaction that has entered validation. It writes no more, its commit timestamp is drawn, and readers may already
/// rely on its commit. Dropping it aborts it.
#[derive(Debug)]
pub struct Validating {
    transaction: Transaction,
    /// The transaction's own log of writes, in the order of the writes. (`Shared::log` is the log of commits.)
    log: Vec<Write>,
    /// The commit timestamp. A transaction without writes draws none; then it is the timestamp it reads at.
    timestamp: u64,
    /// Absent if the reads hold at the transaction's place in the order without a check.
    validation: Option<Validation>,
    /// The schema rules it was checked by before its timestamp was drawn; absent if it wrote nothing.
    rules: Option<RulesInForce>,
    /// Timestamps before its own that were drawn and are finished after it: those of commits that a follower has redone in
    /// this transaction (TXN-25). Empty for every other transaction.
    redone_before: std::ops::Range<u64>,
    /// Its reserved space in the log, until it is decided. Absent if there is no log, or nothing to log.
    prepared: Option<Box<dyn PreparedCommit>>,
    progress: CommitProgress,
}

/// How far a commit is. The module header draws the transitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum CommitProgress {
    /// No timestamp is drawn.
    Undrawn,
    /// The timestamp is drawn and the write set is published.
    Drawn,
    /// Committed; perhaps some claims are not stamped.
    Decided,
    /// Committed, and announced as a large commit; perhaps some claims are not stamped.
    Announced,
    /// Committed or aborted, and nothing is left to do.
    Finished,
}

impl CommitProgress {
    fn go_to(&mut self, next: CommitProgress) {
        assert!(self.may_become(next), "a commit went from {self:?} to {next:?}");
        *self = next;
    }

    fn may_become(self, next: CommitProgress) -> bool {
        use CommitProgress::{Announced, Decided, Drawn, Finished, Undrawn};
        matches!(
            (self, next),
            (Undrawn, Drawn | Finished)
                | (Drawn, Decided | Finished)
                | (Decided, Announced | Finished)
                | (Announced, Finished)
        )
    }
}

impl Transaction {
    /// Commits. When this returns, every transaction that begins sees the writes.
    ///
    /// If a transaction that commits before this one changed its reads, a serializable transaction fails with a
    /// conflict. The client must then discard what it has read: reads are certain only once the commit has succeeded.
    pub fn commit(self) -> Result<CommitInfo> {
        self.enter_validation()?.finish()
    }

    /// The first half of [`Transaction::commit`].
    #[doc(hidden)]
    pub fn enter_validation(mut self) -> Result<Validating> {
        self.check_alive()?;
        // From here to its end the transaction does not expire.
        if !self.protect() {
            return Err(self.abort_expired());
        }
        let log = self.take_log();
        let reads = self.take_reads();
        let latest = reads.latest();
        // Without writes and pre-reads, the begin is the transaction's place in the order, and all reads hold there.
        let is_needed = !reads.is_empty() && (!log.is_empty() || latest > 0);
        let validation = is_needed.then(|| {
            let is_optimistic = self.shared.settings.optimistic_validation.load(std::sync::atomic::Ordering::Relaxed);
            Validation::new(reads, self.begin_ts(), self.known_names(), is_optimistic)
        });
        let timestamp = latest.max(self.begin_ts());
        let (prepared, progress) = (None, CommitProgress::Undrawn);
        let (rules, redone_before) = (None, 0..0);
        let mut validating =
            Validating { transaction: self, log, timestamp, validation, rules, redone_before, prepared, progress };
        if !validating.log.is_empty() {
            validating.draw()?;
        }
        Ok(validating)
    }
}

impl Validating {
    /// Draws the commit timestamp. Before that, checks the reads against published write sets, checks the schema rules,
    /// and reserves space in the log.
    fn draw(&mut self) -> Result<()> {
        let shared = &self.transaction.shared;
        let writes = Arc::new(WriteSet::of(&shared.store, &self.log));
        if let Err(cause) = self.check_published() {
            self.abort(cause);
            return Err(abort_error(cause));
        }
        if self.transaction.redone_at().is_none() {
            self.check_rules(self.transaction.shared.store.rules())?;
        }
        self.prepare()?;
        let shared = &self.transaction.shared;
        let entry = self.transaction.entry();
        let oldest = || shared.status.oldest_validated(&shared.recent);
        if let Some(ts) = self.transaction.redone_at() {
            self.redone_before = shared.recent.draw_aborted(ts - 1, oldest)..ts;
        }
        // TXN-13.
        self.timestamp = shared.recent.enter(writes, oldest, |ts| shared.status.set(entry, Status::Validating(ts)));
        assert!(self.timestamp > self.transaction.begin_ts(), "a commit comes after everything that it could read");
        self.progress.go_to(CommitProgress::Drawn);
        Ok(())
    }

    /// Checks the published timestamps, and those that are published meanwhile, until few are left. These are checked
    /// after the timestamp was drawn, while other transactions wait for the outcome.
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

    /// Reserves its space in the log, if there is one. After this only a failing disk can prevent the commit from
    /// becoming durable.
    fn prepare(&mut self) -> Result<()> {
        let Some(log) = self.transaction.shared.log.get() else { return Ok(()) };
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

    /// Checks the writes against these rules, and aborts if they break one.
    fn check_rules(&mut self, rules: RulesInForce) -> Result<()> {
        let transaction = &self.transaction;
        let checked = transaction.shared.store.check_commit(&rules, &self.log, transaction.number());
        self.rules = Some(rules);
        checked.inspect_err(|_| self.abort(AbortCause::Rule))
    }

    /// If the rules have changed since, checks the writes against the rules in force after the draw (TXN-18).
    fn check_rules_again(&mut self) -> Result<()> {
        let now = self.transaction.shared.rules_after_draw();
        if self.rules.as_ref().is_some_and(|before| before.are(&now)) {
            return Ok(());
        }
        self.check_rules(now)
    }

    /// Compares the reads, if they are validated, with all write sets up to `ts`.
    fn check_to(&mut self, ts: u64) -> std::result::Result<(), AbortCause> {
        match &mut self.validation {
            Some(validation) => validation.check_to(&self.transaction.shared.recent, ts),
            None => Ok(()),
        }
    }

    /// The commit timestamp, if it commits; for a transaction without writes the timestamp it reads at.
    pub fn timestamp(&self) -> u64 {
        self.timestamp
    }

    /// The second half of [`Transaction::commit`].
    pub fn finish(mut self) -> Result<CommitInfo> {
        // Up to its own timestamp. The reads of a transaction without writes must hold at its read timestamp.
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
        if !self.log.is_empty() && self.transaction.redone_at().is_none() {
            self.check_rules_again()?;
        }
        let read_count = self.validation.as_ref().map_or(0, |validation| validation.reads().len());
        let info = CommitInfo { timestamp: self.timestamp, write_count: self.log.len(), read_count };
        if self.log.is_empty() {
            self.progress.go_to(CommitProgress::Finished);
            self.transaction.end();
            self.transaction.shared.counters.read_only.add();
            // The reads of a read-only transaction are durable already.
            if !self.transaction.is_read_only() {
                // All its reads are over, so a proof from here on is one for each of them.
                self.transaction.shared.log.get().map_or(Ok(()), |log| log.admit_read())?;
                self.acknowledge(unsure_reads)?;
            }
            return Ok(info);
        }
        self.install();
        self.transaction.shared.counters.commits.add();
        self.acknowledge(unknown_outcome)?;
        Ok(info)
    }

    /// If there is a log, waits until all reads and writes are durable. `unsure` makes the error for a log that fails
    /// first: whether they are durable is then unknown.
    fn acknowledge(self, unsure: fn(&Error) -> Error) -> Result<()> {
        if self.transaction.shared.log.get().is_none() {
            return Ok(());
        }
        let (shared, ts) = (self.transaction.shared.clone(), self.timestamp);
        // Dropped before the wait: the transaction reads nothing more, and its snapshot need not be kept.
        drop(self);
        shared.wait_until_durable(ts).map_err(|cause| unsure(&cause))
    }

    /// Decides for the commit, stamps the claims, and waits until the watermark has passed the commit.
    fn install(&mut self) {
        assert_eq!(self.progress, CommitProgress::Drawn, "a commit is decided after its timestamp is drawn");
        let shared = &self.transaction.shared;
        // TXN-9: the status before the outcome. A thread that sees the outcome may look a claim up.
        shared.status.set(self.transaction.entry(), Status::Committed(self.timestamp));
        // TXN-14: before the watermark can pass the timestamp.
        self.prepared.take().into_iter().for_each(|prepared| prepared.hand_over(self.timestamp));
        shared.recent.decide(self.timestamp, Outcome::Committed);
        self.progress.go_to(CommitProgress::Decided);
        let is_large = self.log.len() >= LARGE_WRITES;
        // The transaction keeps its entry until every claim is stamped.
        let announced = is_large.then(|| shared.store.announce(self.transaction.number(), self.timestamp)).flatten();
        if announced.is_some() {
            self.finish_timestamps();
            self.progress.go_to(CommitProgress::Announced);
        }
        // In portions, so that no grace period waits for a million stamps.
        for portion in self.log.chunks(PORTION_WRITES) {
            between_steps();
            shared.store.install(portion, self.timestamp);
        }
        if announced.is_none() {
            // TXN-9: every claim is stamped.
            self.finish_timestamps();
        }
        drop(announced);
        self.progress.go_to(CommitProgress::Finished);
        self.transaction.end();
        let shared = &self.transaction.shared;
        let bytes_max = shared.settings.commit_history_bytes.load(std::sync::atomic::Ordering::Relaxed);
        if shared.recent.is_trim_due(self.timestamp, bytes_max) {
            shared.trim_recent(bytes_max);
        }
        shared.recent.wait_for(self.timestamp);
        shared.hand_over(std::mem::take(&mut self.log), self.timestamp);
    }

    /// Lets the watermark pass the transaction.
    fn finish_timestamps(&self) {
        let recent = &self.transaction.shared.recent;
        recent.finish(self.timestamp);
        recent.finish_from_last(self.redone_before.clone());
    }

    /// Decides against the commit and takes the claims back.
    fn abort(&mut self, cause: AbortCause) {
        assert!(
            matches!(self.progress, CommitProgress::Undrawn | CommitProgress::Drawn),
            "a commit that is {:?} aborts",
            self.progress
        );
        let shared = &self.transaction.shared;
        // TXN-12: the status before the claims are taken back.
        shared.status.set(self.transaction.entry(), Status::Aborted);
        if self.progress == CommitProgress::Drawn {
            shared.recent.decide(self.timestamp, Outcome::Aborted);
        }
        let log = std::mem::take(&mut self.log);
        shared.store.rollback(&log, self.transaction.number());
        shared.store.retire_aborted(log);
        if self.progress == CommitProgress::Drawn {
            self.finish_timestamps();
        }
        shared.counters.count_abort(cause);
        self.progress.go_to(CommitProgress::Finished);
        self.transaction.end();
    }
}

impl Shared {
    /// Drops write sets of recent commits that no transaction can meet, and counts the rest in the memory budget. If
    /// the budget has no room for them, the oldest are dropped too: transactions that need one of them cannot commit.
    fn trim_recent(&self, bytes_max: u64) {
        let oldest = self.status.oldest_validated(&self.recent);
        let Some(draw) = &self.history_draw else { return self.recent.trim(oldest, bytes_max) };
        // The thread that has the lock is trimming.
        let Some(mut draw) = draw.try_lock() else { return };
        let budget = self.store.memory_budget();
        budget.has_room(self.recent.bytes().min(bytes_max).saturating_sub(draw.bytes()));
        let room = draw.bytes().saturating_add(budget.left_bytes());
        self.recent.trim(oldest, bytes_max.min(room));
        draw.count(self.recent.bytes());
    }

    /// If there is a log, waits until everything up to `ts` is durable.
    fn wait_until_durable(&self, ts: u64) -> Result<()> {
        let Some(log) = self.log.get() else { return Ok(()) };
        // A pre-read beyond the watermark has finished, but perhaps not every commit before it.
        self.recent.wait_for(ts);
        log.wait(ts, &self.recent)
    }
}

impl Drop for Validating {
    fn drop(&mut self) {
        match self.progress {
            // TXN-5: the timestamp is finished already. A panic while stamping may lead here, as below.
            CommitProgress::Finished | CommitProgress::Announced => {}
            // TXN-5: only a panic while stamping leads here. The decision stands, and the watermark must not stop.
            CommitProgress::Decided => self.finish_timestamps(),
            CommitProgress::Undrawn | CommitProgress::Drawn => self.abort(AbortCause::Rollback),
        }
    }
}
