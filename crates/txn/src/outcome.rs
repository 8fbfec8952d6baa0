//! The outcome of a transaction that has drawn a commit timestamp.
//!
//! The ring of recent commits stores it in the low bits of an entry's word (`recent`); the history keeps it for older
//! timestamps.

/// The low bits of a ring entry's word that hold the outcome.
const OUTCOME_MASK: u64 = 3;

/// The outcome of a validating transaction. It changes once, from `Validating` to one of the others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// Not decided.
    Validating,
    /// It commits, or has committed.
    Committed,
    /// It takes its claims back and leaves nothing.
    Aborted,
}

impl Outcome {
    /// The outcome in the word of a ring entry.
    pub(crate) fn of(word: u64) -> Self {
        match word & OUTCOME_MASK {
            0 => Outcome::Validating,
            1 => Outcome::Committed,
            2 => Outcome::Aborted,
            other => unreachable!("no outcome has the number {other}"),
        }
    }
}
