//! What makes commits durable, as transactions see it.
//!
//! ```text
//! prepare ──▶ timestamp drawn ──▶ decided: hand_over ──▶ the watermark passes the timestamp ──▶ wait ──▶ acknowledged
//!    │                │
//!    └─ refused       └─ aborted: dropped
//! ```
//!
//! A commit becomes visible at its place in the order before it is durable, so that hot objects are not held for the
//! length of a disk write; but nobody is told so before it is. For writers that is the wait at the end of the commit.
//! A transaction that may write reads at the watermark, and where it wrote nothing it waits all the same, for what it
//! has read. Read-only transactions begin at `min(watermark, durable)`, so they never wait, and never show what a crash
//! could take back; what was acknowledged before they began is below both.
//!
//! Invariants:
//!
//! 1. A commit is handed over before the watermark can pass its timestamp (`commit::Validating`). So when the watermark
//!    has passed W, the log has all commits up to W.
//! 2. `durable` grows only, never beyond what the log says, and before anybody who waited for it goes on.
//! 3. The oldest snapshot that anything is kept for is never above `durable`: a reader may begin there at any time
//!    (`status`).

use std::fmt::Debug;

use mangrove_graph::{Error, ErrorKind, IndexId, IndexInfo, Result};
use mangrove_store::Write;
use mangrove_store::schema::RuleEntry;

use crate::recent::RecentCommits;

/// How far a graph's commits are, for a log that is to flush them.
pub trait Watermarks {
    /// Every commit up to here has been handed over.
    fn stable(&self) -> u64;

    /// Says that every commit up to here is durable. Called by one thread at a time, with numbers that do not fall.
    fn set_durable(&self, ts: u64);
}

impl Watermarks for RecentCommits {
    fn stable(&self) -> u64 {
        RecentCommits::stable(self)
    }

    fn set_durable(&self, ts: u64) {
        RecentCommits::set_durable(self, ts);
    }
}

/// A change of the indexes there are.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IndexChange {
    /// It is there, and complete.
    Created(IndexInfo),
    /// It is to be dropped.
    Dropped(IndexId),
}

/// A log that transactions commit into. See the module for the order of the calls.
pub trait CommitLog: Send + Sync + Debug {
    /// Encodes what a transaction would leave, and takes space for it. The transaction, of this number, has finished
    /// writing and holds its claims. Fails where the log takes no commits, of which the error (of kind `ReadOnly`) says
    /// the cause.
    fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>>;

    /// Returns when every commit up to `ts` is durable and [`Watermarks::set_durable`] has been told so; the watermark
    /// has passed `ts` already. Fails when that will never be known.
    fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> Result<()>;

    /// Returns when a change of indexes is durable. Fails like the others.
    fn change_index(&self, change: &IndexChange, watermarks: &dyn Watermarks) -> Result<()>;

    /// Returns when it is durable that these are the rules of the schema, and the number of the next one. Fails like the
    /// others.
    fn change_rules(&self, rules: &[RuleEntry], next: u32, watermarks: &dyn Watermarks) -> Result<()>;
}

/// A commit that has space in the log. Dropping it gives the space back.
pub trait PreparedCommit: Send + Sync + Debug {
    /// The transaction commits at `ts`. It cannot fail: what can was done by [`CommitLog::prepare`].
    fn hand_over(self: Box<Self>, ts: u64);
}

/// What a transaction is told that has written, when its commit is not known to be durable.
pub(crate) fn unknown_outcome(cause: &Error) -> Error {
    let message = format!(
        "it is not known whether this transaction is committed: {cause}; after a restart look whether what it did is \
         there, before doing it again"
    );
    Error::new(ErrorKind::OutcomeUnknown, message)
}

/// What a transaction is told that has written nothing, when what it has read is not known to be durable.
pub(crate) fn unsure_reads(cause: &Error) -> Error {
    let message =
        format!("what this transaction has read may not outlive a restart: {cause}; a read-only one reads what does");
    Error::new(ErrorKind::ReadOnly, message)
}
