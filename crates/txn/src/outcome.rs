//! How a validating transaction ended.

/// The low bits of a ring entry's word that hold the outcome.
const OUTCOME_MASK: u64 = 3;

/// How a validator ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// Not yet.
    Validating,
    /// It commits.
    Committed,
    /// It leaves nothing.
    Aborted,
}

impl Outcome {
    pub(crate) fn of(word: u64) -> Self {
        match word & OUTCOME_MASK {
            0 => Outcome::Validating,
            1 => Outcome::Committed,
            _ => Outcome::Aborted,
        }
    }
}
