//! Stopping a query from outside: at its deadline, when its connection is lost, at shutdown, by an administrator.
//!
//! Three parties share a [`Cancellation`]. The task that watches over the query (`requests::worker`) fires it, the
//! engine polls its flag, and the sink, which may be blocked on a slow client, waits for it. The whole is in
//! `docs/design/cancellation.md`.
//!
//! - **SERVER-2.** The first reason to fire stays, and the client is told that one.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind};
use tokio::sync::watch;

use crate::status::Failure;

/// The reason for which a query was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CancelReason {
    /// The query ran longer than this limit.
    Timeout(Duration),
    /// The connection of the client was lost.
    Gone,
    /// The server shuts down, and the time for running requests is over.
    Stopped,
    /// The user who runs it, or an administrator of its graph, killed it.
    Killed,
}

impl CancelReason {
    /// The error that the client receives, if it is still there.
    pub fn error(self) -> Error {
        match self {
            CancelReason::Timeout(limit) => Error::time_limit(limit),
            CancelReason::Gone => Error::new(ErrorKind::Cancelled, "the query was cancelled: its connection ended"),
            CancelReason::Stopped => Error::new(ErrorKind::Cancelled, "the query was cancelled: the server shuts down"),
            CancelReason::Killed => Error::new(ErrorKind::Cancelled, "the query was killed (mangrove.kill)"),
        }
    }
}

/// Stops one query. Clones share their state, which changes once: from not fired to fired with a reason.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    flag: Arc<AtomicBool>,
    reason: watch::Sender<Option<CancelReason>>,
}

impl Cancellation {
    /// A cancellation that has not fired.
    pub fn new() -> Self {
        Cancellation::default()
    }

    /// The flag that the engine polls.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Fires, unless it has fired already.
    pub fn fire(&self, reason: CancelReason) {
        // SERVER-2: a later reason does not replace the first.
        self.reason.send_if_modified(|current| {
            let first = current.is_none();
            if first {
                *current = Some(reason);
            }
            first
        });
        // Relaxed: the flag publishes nothing but itself; the reason is read through the watch channel's lock.
        self.flag.store(true, Ordering::Relaxed);
    }

    /// The reason, if it has fired.
    pub fn reason(&self) -> Option<CancelReason> {
        *self.reason.borrow()
    }

    /// Waits until it fires.
    pub async fn fired(&self) -> CancelReason {
        let mut receiver = self.reason.subscribe();
        let fired = receiver.wait_for(Option::is_some).await.expect("self holds the sender");
        fired.expect("wait_for returns when the reason is there")
    }

    /// Replaces a failure that only says "cancelled" by the reason for the cancellation. Other failures, and one that
    /// begins with the reason already, stay as they are.
    pub fn explain(&self, failure: Failure) -> Failure {
        match (failure.error.kind(), self.reason().map(CancelReason::error)) {
            (ErrorKind::Cancelled, Some(error)) if !failure.error.message().starts_with(error.message()) => {
                error.into()
            }
            _ => failure,
        }
    }
}
