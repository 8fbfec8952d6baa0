//! Validation: whether what a transaction read is still so at its place in the order of commits.
//!
//! The validator looks at every timestamp between its begin and its own. A write set that changes what it read, at a
//! timestamp after the moment the item was read at, is a conflict: with a committed transaction it is final; with one
//! that is validating too, the validator goes on and depends on the other's abort (*optimistic validation*).
//! Dependencies point to lower timestamps only, so nobody waits in a circle, and they are at most as many as
//! validators at a time.
//!
//! It works in portions: what was published before the validator draws its own timestamp is looked at before, so that
//! the part in which others have to wait for it is short even for large read sets.

use mangrove_graph::Error;

use crate::counters::{AbortCause, Counters};
use crate::reads::{KnownNames, ReadSet};
use crate::recent::{Met, Outcome, RecentCommits};
use crate::sync::Ordering;

/// A validation on its way.
#[derive(Debug)]
pub(crate) struct Validation {
    reads: ReadSet,
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
        Validation { reads, known, is_optimistic, checked: begin_ts, rivals: Vec::new() }
    }

    /// What is validated.
    pub(crate) fn reads(&self) -> &ReadSet {
        &self.reads
    }

    /// Looks at the timestamps up to and including `ts`, which must have been published.
    pub(crate) fn check_to(&mut self, recent: &RecentCommits, ts: u64) -> Result<(), AbortCause> {
        while self.checked < ts {
            self.checked += 1;
            self.check(recent, self.checked)?;
        }
        Ok(())
    }

    fn check(&mut self, recent: &RecentCommits, ts: u64) -> Result<(), AbortCause> {
        let known = self.known;
        match recent.meet(ts, |signature, newest| self.reads.may_meet(signature, newest, known)) {
            Met::Nothing => Ok(()),
            Met::Gone => Err(AbortCause::TooOld),
            Met::Writes(writes, _) if !self.reads.meets(&writes, ts, known) => Ok(()),
            Met::Writes(_, Outcome::Validating) if self.is_optimistic => {
                // Relied on to commit, and to abort: that cannot be.
                if self.reads.writers().contains(&ts) {
                    return Err(AbortCause::ReadConflict);
                }
                self.rivals.push(ts);
                Ok(())
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
            "this transaction ran for longer than recent commits are remembered, so what it read cannot be checked any \
             more; run it again, in smaller parts if it is long, or as a read-only or snapshot transaction"
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
