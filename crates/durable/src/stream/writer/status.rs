//! The numbers of a writer, for metrics.

use super::Refusal;

/// What a writer has put since it began.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WriterCounts {
    /// Objects; each is one put, and some more if it does not succeed at once.
    pub objects: u64,
    /// Bytes of these objects.
    pub bytes: u64,
    /// Commits in these objects.
    pub commits: u64,
    /// Bytes of their records, before they were compressed.
    pub record_bytes: u64,
}

/// The numbers of a writer at some time.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WriterStatus {
    /// What it has put.
    pub counts: WriterCounts,
    /// Puts whose outcome is not known.
    pub in_flight: u64,
    /// Microseconds since the oldest of them was sent.
    pub oldest_unsettled_us: Option<u64>,
    /// Commits that are in no object.
    pub waiting_commits: u64,
    /// Bytes of records that are in no object.
    pub waiting_bytes: u64,
    /// The usual time of a put in microseconds, once one was settled.
    pub usual_put_us: Option<u64>,
    /// Commits up to this timestamp are acknowledged.
    pub acknowledged: u64,
    /// Why commits are refused, if they are.
    pub refusal: Option<Refusal>,
    /// Microseconds since the writer has stalled, if it has.
    pub stalled_us: Option<u64>,
}
