//! The traits of a commit log, which makes commits durable, and the order in which a commit calls them.
//!
//! ```text
//! prepare ──▶ timestamp drawn ──▶ decided: hand_over ──▶ the watermark passes the timestamp ──▶ wait ──▶ acknowledged
//!    │                │
//!    └─ refused       └─ aborted: dropped
//! ```
//!
//! A commit becomes visible at its place in the order before it is durable, so that hot objects are not locked for the
//! length of a disk write. No client is told of it before it is durable:
//!
//! - A writer waits at the end of its commit.
//! - A transaction that may write reads at the watermark. Even if it wrote nothing, its commit waits until its reads
//!   are durable.
//! - A read-only transaction begins at `min(watermark, durable)`. It never waits, and never shows a commit that a crash
//!   could take back. Every commit acknowledged before it began is at or below both.
//!
//! If another process may take the graph over, what this process has is the newest state only while none has. So the log
//! admits each read-only transaction after it has drawn its begin ([`CommitLog::admit_read`]), and each commit without
//! writes. A commit with writes proves it by itself. Until then, what a transaction that may write has read is not
//! certain.
//!
//! Invariants:
//!
//! - **TXN-14.** A commit is handed over before the watermark can pass its timestamp. So when the watermark has passed
//!   `W`, the log has all commits up to `W`.
//! - **TXN-15.** `durable` only grows, never beyond the timestamp that the log reports, and before any waiting
//!   committer goes on.
//! - **TXN-16.** The oldest snapshot that versions are kept for is never above `durable`: a reader may begin there at
//!   any time.

use std::fmt::Debug;
use std::sync::Weak;

use mangrove_graph::{Error, ErrorKind, IndexId, IndexInfo, Result};
use mangrove_store::Write;
use mangrove_store::schema::RuleEntry;

use crate::recent::RecentCommits;

/// The watermarks of a graph, which a log reads and reports when it flushes.
pub trait Watermarks {
    /// Every commit up to here has been handed over (TXN-14).
    fn stable(&self) -> u64;

    /// Reports that every commit up to `ts` is durable. One thread at a time calls this, with numbers that do not fall
    /// (TXN-15).
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

/// A change to the set of indexes.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum IndexChange {
    /// The index exists and is complete.
    Created(IndexInfo),
    /// The index is to be dropped.
    Dropped(IndexId),
}

/// A log that makes commits durable. The module header has the order of the calls.
pub trait CommitLog: Send + Sync + Debug {
    /// Takes the watermarks of the graph, once and before the first commit. A log that learns on threads of its own
    /// that commits are durable reports it there; another one needs only those that its callers bring.
    fn attach(&self, _: Weak<dyn Watermarks + Send + Sync>) {}

    /// Encodes the after-images of a transaction's writes, and reserves space for them. Transaction `txn` has finished
    /// writing and holds its claims. If the log accepts no commits, this fails with an error of kind `ReadOnly` that
    /// tells the cause.
    fn prepare(&self, writes: &[Write], txn: u64) -> Result<Box<dyn PreparedCommit>>;

    /// Returns when every commit up to `ts` is durable and [`Watermarks::set_durable`] has been called. The watermark
    /// has passed `ts` before the call. Fails if it will never be known whether they are durable.
    fn wait(&self, ts: u64, watermarks: &dyn Watermarks) -> Result<()>;

    /// Returns when a reader may be served that has drawn its begin. If another process may take the graph over, this
    /// waits for a proof that none has. Fails with `Closed` if one has, and as the log's options say without a proof.
    fn admit_read(&self) -> Result<()> {
        Ok(())
    }

    /// Returns when a change of the indexes is durable. Fails as [`CommitLog::wait`] does.
    fn change_index(&self, change: &IndexChange, watermarks: &dyn Watermarks) -> Result<()>;

    /// Returns when it is durable that `rules` are the rules of the schema and `next` is the number of the next one.
    /// Fails as [`CommitLog::wait`] does.
    fn change_rules(&self, rules: &[RuleEntry], next: u32, watermarks: &dyn Watermarks) -> Result<()>;
}

/// A commit with reserved space in the log. Dropping it gives the space back.
pub trait PreparedCommit: Send + Sync + Debug {
    /// Hands the commit over: its transaction commits at `ts`. This cannot fail; everything that can fail was done by
    /// [`CommitLog::prepare`].
    fn hand_over(self: Box<Self>, ts: u64);
}

/// The error for a transaction with writes whose commit is not known to be durable.
pub(crate) fn unknown_outcome(cause: &Error) -> Error {
    let message = format!(
        "it is not known whether this transaction is committed: {cause}; after a restart look whether what it did is \
         there, before doing it again"
    );
    Error::new(ErrorKind::OutcomeUnknown, message)
}

/// The error for a transaction without writes whose reads are not known to be durable.
pub(crate) fn unsure_reads(cause: &Error) -> Error {
    let message =
        format!("what this transaction has read may not outlive a restart: {cause}; a read-only one reads what does");
    Error::new(ErrorKind::ReadOnly, message)
}
