//! Validation: whether what a transaction read is still so at its place in the order of commits.
//!
//! The validator looks at every timestamp between its begin and its own. A write set that changes what it read, at a
//! timestamp after the moment the item was read at, is a conflict: with a committed transaction it is final; with one
//! that is validating too, the validator goes on and depends on the other's abort (*optimistic validation*).
//! Dependencies point to lower timestamps only, so nobody waits in a circle, and they are at most as many as
//! validators at a time.
//!
//! What is older than the ring of recent commits is looked at in the history (`history`), many timestamps at a time. There
//! everything is decided. It knows of an item when it was changed last, so a transaction without writes, whose place is
//! at its last pre-read, may conflict with a change that came after that. A transaction with writes has a place after all
//! of the history.
//!
//! It works in portions: what was published before the validator draws its own timestamp is looked at before, so that
//! the part in which others have to wait for it is short even for large read sets.

use mangrove_graph::Error;
use mangrove_store::access_set::ReadTimestamps;

use crate::counters::{AbortCause, Counters};
use crate::outcome::Outcome;
use crate::reads::{KnownNames, ReadSet};
use crate::recent::{Met, RecentCommits};
use crate::sync::Ordering;

/// A validation on its way.
#[derive(Debug)]
pub(crate) struct Validation {
    reads: ReadSet,
    /// The reads as the history is asked for them; made when it is.
    moments: Option<ReadTimestamps>,
    begin_ts: u64,
    /// How many names there were when the transaction began.
    known: KnownNames,
    /// Whether a conflict with another validator becomes a dependency.
    is_optimistic: bool,
    /// Everything up to here was looked at.
    checked: u64,
    /// The validators that must abort.
    rivals: Vec<u64>,
}

impl Validation {
    /// Validates reads of a transaction that began at `begin_ts`.
    pub(crate) fn new(mut reads: ReadSet, begin_ts: u64, known: KnownNames, is_optimistic: bool) -> Self {
        reads.freeze();
        Validation { reads, moments: None, begin_ts, known, is_optimistic, checked: begin_ts, rivals: Vec::new() }
    }

    /// What is validated.
    pub(crate) fn reads(&self) -> &ReadSet {
        &self.reads
    }

    /// Looks at the timestamps up to and including `ts`, which must have been published.
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

    /// Looks at the history, all of it.
    fn check_history(&mut self, recent: &RecentCommits) -> Result<(), AbortCause> {
        let blocks = recent.history().since(self.checked).ok_or(AbortCause::TooOld)?;
        let moments = self.moments.get_or_insert_with(|| self.reads.moments(self.begin_ts));
        for block in &blocks {
            if self.reads.meets_merged(block.writes(), moments, self.begin_ts, self.known) {
                return Err(AbortCause::ReadConflict);
            }
            self.checked = block.last();
        }
        Ok(())
    }

    /// Looks at a timestamp in the ring. False if it was moved into the history meanwhile.
    fn check(&mut self, recent: &RecentCommits, ts: u64) -> Result<bool, AbortCause> {
        let known = self.known;
        match recent.meet(ts, |signature, newest| self.reads.may_meet(signature, newest, known)) {
            Met::Nothing => Ok(true),
            Met::Gone if ts <= recent.history().merged() => Ok(false),
            Met::Gone => Err(AbortCause::TooOld),
            Met::Writes(writes, _) if !self.reads.meets(&writes, ts, known) => Ok(true),
            Met::Writes(_, Outcome::Validating) if self.is_optimistic => {
                // Relied on to commit, and to abort: that cannot be.
                if self.reads.writers().contains(&ts) {
                    return Err(AbortCause::ReadConflict);
                }
                self.rivals.push(ts);
                Ok(true)
            }
            Met::Writes(..) => Err(AbortCause::ReadConflict),
        }
    }

    /// Waits for those this transaction hangs on.
    pub(crate) fn await_dependencies(&self, recent: &RecentCommits, counters: &Counters) -> Result<(), AbortCause> {
        await_all(recent, counters, self.reads.writers(), Outcome::Committed)?;
        await_all(recent, counters, &self.rivals, Outcome::Aborted)
    }
}

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

/// The error for a cause that validation found.
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
