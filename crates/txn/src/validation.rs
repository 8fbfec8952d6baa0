//! Validation: whether the reads of a transaction still hold at its place in the order of commits.
//!
//! The validator looks at every timestamp between its begin and its own. A write set that changes an item after the
//! timestamp the item was read at is a conflict:
//!
//! | the writer is | the validator |
//! |---|---|
//! | committed | aborts |
//! | validating, optimistic validation on | goes on, and may commit only if the writer aborts |
//! | validating, optimistic validation off | aborts |
//! | aborted | ignores it |
//!
//! - **TXN-10.** A dependency points to a lower timestamp. So waiting validators form no circle, and a transaction
//!   depends on at most as many others as validate at a time.
//!
//! Timestamps older than the ring of recent commits are looked up in the history, many at a time; all of them are
//! decided. Of each item, a block of the history knows only the last change. So a transaction without writes, whose
//! place is at its last pre-read, may abort because of a change after its place. A transaction with writes has its
//! place after all of the history.
//!
//! Validation works in portions. A validator checks the published timestamps before it draws its own, and only the rest
//! after the draw. So other transactions wait for it only for a short time, even if its read set is large.

use mangrove_graph::Error;

use crate::access_set::ReadTimestamps;
use crate::counters::{AbortCause, Counters};
use crate::outcome::Outcome;
use crate::reads::{KnownNames, ReadSet};
use crate::recent::{RecentCommits, RingLookup};
use crate::sync::Ordering;

/// A validation in progress.
#[derive(Debug)]
pub(crate) struct Validation {
    reads: ReadSet,
    /// The reads in the form in which the history is searched; made at the first search.
    read_timestamps: Option<ReadTimestamps>,
    begin_ts: u64,
    /// The names of the catalog when the transaction began.
    known: KnownNames,
    /// True if a conflict with another validator becomes a dependency.
    is_optimistic: bool,
    /// The reads were compared with the write sets of all timestamps up to here.
    checked: u64,
    /// Commit timestamps of the validators that must abort.
    must_abort: Vec<u64>,
}

impl Validation {
    /// Validates the reads of a transaction that began at `begin_ts`.
    pub(crate) fn new(mut reads: ReadSet, begin_ts: u64, known: KnownNames, is_optimistic: bool) -> Self {
        reads.freeze();
        Validation {
            reads,
            read_timestamps: None,
            begin_ts,
            known,
            is_optimistic,
            checked: begin_ts,
            must_abort: Vec::new(),
        }
    }

    /// The reads that are validated.
    pub(crate) fn reads(&self) -> &ReadSet {
        &self.reads
    }

    /// Compares the reads with the write sets up to and including `ts`, which must have been published.
    pub(crate) fn check_to(&mut self, recent: &RecentCommits, ts: u64) -> Result<(), AbortCause> {
        while self.checked < ts {
            if self.checked < recent.history().merged() {
                self.check_history(recent)?;
            } else if self.check(recent, self.checked + 1)? {
                self.checked += 1;
            }
        }
        Ok(())
    }

    /// Compares the reads with all of the history.
    fn check_history(&mut self, recent: &RecentCommits) -> Result<(), AbortCause> {
        let blocks = recent.history().since(self.checked).ok_or(AbortCause::TooOld)?;
        let read_timestamps = self.read_timestamps.get_or_insert_with(|| self.reads.read_timestamps(self.begin_ts));
        for block in &blocks {
            if self.reads.meets_merged(block.writes(), read_timestamps, self.begin_ts, self.known) {
                return Err(AbortCause::ReadConflict);
            }
            self.checked = block.last();
        }
        Ok(())
    }

    /// Compares the reads with one timestamp in the ring. Returns false if it has been moved into the history.
    fn check(&mut self, recent: &RecentCommits, ts: u64) -> Result<bool, AbortCause> {
        let known = self.known;
        match recent.look_up(ts, |signature, newest| self.reads.may_meet(signature, newest, known)) {
            RingLookup::Nothing => Ok(true),
            RingLookup::NotInRing if ts <= recent.history().merged() => Ok(false),
            RingLookup::NotInRing => Err(AbortCause::TooOld),
            RingLookup::Writes(writes, _) if !self.reads.meets(&writes, ts, known) => Ok(true),
            RingLookup::Writes(_, Outcome::Validating) if self.is_optimistic => {
                // One of the reads relied on its commit, another on its abort: this transaction cannot commit.
                if self.reads.must_commit().contains(&ts) {
                    return Err(AbortCause::ReadConflict);
                }
                self.must_abort.push(ts);
                Ok(true)
            }
            RingLookup::Writes(..) => Err(AbortCause::ReadConflict),
        }
    }

    /// Waits for the outcomes of the transactions that this one depends on. Fails if one ended the other way. The
    /// caller has compared the reads with every timestamp before this transaction's own.
    pub(crate) fn await_dependencies(&self, recent: &RecentCommits, counters: &Counters) -> Result<(), AbortCause> {
        // TXN-10.
        let is_before = |ts: &u64| *ts <= self.checked;
        assert!(self.reads.must_commit().iter().all(is_before), "a transaction waits for a later one to commit");
        assert!(self.must_abort.iter().all(is_before), "a transaction waits for a later one to abort");
        await_all(recent, counters, self.reads.must_commit(), Outcome::Committed)?;
        await_all(recent, counters, &self.must_abort, Outcome::Aborted)
    }
}

/// Waits until all these timestamps are decided. Fails at the first outcome that is not `wanted`.
fn await_all(recent: &RecentCommits, counters: &Counters, others: &[u64], wanted: Outcome) -> Result<(), AbortCause> {
    for &ts in others {
        if recent.outcome(ts) == Some(Outcome::Validating) {
            counters.dependency_waits.fetch_add(1, Ordering::Relaxed);
        }
        match recent.wait_for_outcome(ts) {
            Some(outcome) if outcome == wanted => {}
            Some(_) => return Err(AbortCause::Dependency),
            None => return Err(AbortCause::TooOld),
        }
    }
    Ok(())
}

/// The error that the client gets for a cause found by validation.
pub(crate) fn abort_error(cause: AbortCause) -> Error {
    let message = match cause {
        AbortCause::ReadConflict => {
            "another transaction changed what this one had read, and committed first; run this transaction again"
        }
        AbortCause::Dependency => {
            "this transaction depended on how another one would end, and that ended the other way; run it again"
        }
        AbortCause::TooOld => {
            "this transaction could not be checked any more: what others have committed since its begin takes more memory than \
             commit_history_bytes allows; run it again, in smaller parts if it is long, or as a read-only or snapshot \
             transaction, or raise commit_history_bytes, or memory_budget where that is used up"
        }
        AbortCause::WriteConflict
        | AbortCause::Rollback
        | AbortCause::Expired
        | AbortCause::Refused
        | AbortCause::Rule
        | AbortCause::Failed => "this transaction was rolled back; run it again",
    };
    Error::conflict(message).because(cause.name())
}
