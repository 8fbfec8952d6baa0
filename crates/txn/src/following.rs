//! Whether a graph follows another process, its *owner*, and refuses writes.
//!
//! - **TXN-24.** A graph that follows has one writer, the follower (`follower`). Every other write is refused with
//!   `ReadOnly`.
//! - **TXN-27.** A follower that lacks commits for good is *replaced*: the process loads the graph again, into another
//!   store. From then on no transaction of the old store reads or begins. Each fails with `Expired`, and succeeds on the
//!   new store.

use mangrove_graph::{Error, ErrorKind, Result};
use mangrove_locks::rank;

use crate::sync::{AtomicBool, Mutex, Ordering};

/// Whether a graph follows another process, and which.
#[derive(Debug, Default)]
pub(crate) struct Following {
    is_on: AtomicBool,
    /// What was put into `max_snapshot_age_ms` because the graph follows. Another value there was set by a client.
    pub(crate) snapshot_age_ms: std::sync::atomic::AtomicU64,
    /// True if the process has loaded the graph again, into another store (TXN-27).
    is_replaced: AtomicBool,
    /// The owner, as clients are told.
    owner: Mutex<String, rank::FollowedOwner>,
}

impl Following {
    /// The graph follows from now on. No transaction has begun.
    pub(crate) fn begin(&self) {
        self.is_on.store(true, Ordering::Release);
    }

    /// The graph takes writes from now on.
    pub(crate) fn end(&self) {
        // Release: its partner is the Acquire in `is_on`.
        self.is_on.store(false, Ordering::Release);
    }

    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        // Acquire: a writer that finds it off finds all commits of the last owner, and the log.
        self.is_on.load(Ordering::Acquire)
    }

    /// The process has loaded the graph again.
    pub(crate) fn replace(&self) {
        self.is_replaced.store(true, Ordering::SeqCst);
    }

    /// Returns true if the process has loaded the graph again. SeqCst: who begins a transaction looks after it has
    /// registered, and who replaces the graph looks for transactions after that.
    #[inline]
    pub(crate) fn is_replaced(&self) -> bool {
        self.is_replaced.load(Ordering::SeqCst)
    }

    pub(crate) fn set_owner(&self, owner: &str) {
        owner.clone_into(&mut self.owner.lock());
    }

    /// Fails with `ReadOnly` if the graph follows another process (TXN-24).
    #[inline]
    pub(crate) fn check_writable(&self) -> Result<()> {
        if self.is_on() { Err(self.refusal()) } else { Ok(()) }
    }

    #[cold]
    fn refusal(&self) -> Error {
        let owner = self.owner.lock();
        let to = if owner.is_empty() { "its owner" } else { owner.as_str() };
        Error::new(
            ErrorKind::ReadOnly,
            format!(
                "this server follows another one and only reads; send writes to {to}, or promote this server if that one is gone"
            ),
        )
    }
}
