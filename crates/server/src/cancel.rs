//! Stopping a query from outside: at its deadline, when its connection is lost, at shutdown.
//!
//! A [`Cancellation`] is shared by three parties: the task that watches over the query
//! ([`crate::worker`]) fires it, the engine polls its flag, and the sink, which may be blocked on a slow
//! client, waits for it. The first reason to fire stays.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind};
use tokio::sync::watch;

use crate::status::Failure;

/// Why a query was stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It ran longer than this.
    Timeout(Duration),
    /// Its connection is gone.
    Gone,
    /// The server ends, and has waited for the query as long as it may.
    Stopped,
    /// Somebody who may stopped it.
    Killed,
}

impl Reason {
    /// What the client, if there still is one, is told.
    pub fn error(self) -> Error {
        match self {
            Reason::Timeout(limit) => Error::time_limit(limit),
            Reason::Gone => Error::new(ErrorKind::Cancelled, "the query was cancelled: its connection ended"),
            Reason::Stopped => Error::new(ErrorKind::Cancelled, "the query was cancelled: the server shuts down"),
            Reason::Killed => Error::new(ErrorKind::Cancelled, "the query was killed (mangrove.kill)"),
        }
    }
}

/// The means to stop one query.
#[derive(Clone, Debug, Default)]
pub struct Cancellation {
    flag: Arc<AtomicBool>,
    reason: watch::Sender<Option<Reason>>,
}

impl Cancellation {
    /// One that has not fired.
    pub fn new() -> Self {
        Cancellation::default()
    }

    /// The flag the engine polls.
    pub fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Fires, unless it has fired before.
    pub fn fire(&self, reason: Reason) {
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

    /// Why it fired, if it has.
    pub fn reason(&self) -> Option<Reason> {
        *self.reason.borrow()
    }

    /// Waits until it fires.
    pub async fn fired(&self) -> Reason {
        let mut receiver = self.reason.subscribe();
        let fired = receiver.wait_for(Option::is_some).await.expect("self holds the sender");
        fired.expect("wait_for returns when the reason is there")
    }

    /// A failure of the engine, or, where the engine only says that it was cancelled, the reason for it. A failure that has
    /// the reason already keeps what else it says.
    pub fn explain(&self, failure: Failure) -> Failure {
        match (failure.error.kind(), self.reason().map(Reason::error)) {
            (ErrorKind::Cancelled, Some(error)) if !failure.error.message().starts_with(error.message()) => {
                error.into()
            }
            _ => failure,
        }
    }
}
