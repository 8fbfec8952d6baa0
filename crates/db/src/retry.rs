//! Runs a transaction again after a conflict.
//!
//! A transaction is retried only if the whole of it is known and its client has seen none of its results (DB-3 for
//! scripts). The number of retries is bounded. Before each retry the thread waits for a random time that grows, so that
//! two transactions that met once do not meet again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::options::QueryOptions;
use crate::state::Database;

impl Database {
    /// The number of retries after conflicts, by this database or by a server for it.
    pub fn retry_count(&self) -> u64 {
        self.inner.retries.load(Ordering::Relaxed)
    }

    /// Counts a retry. A server calls this for each retry that it makes itself.
    pub fn note_retry(&self) {
        self.inner.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a transaction, and runs it again as long as it fails with a conflict. Gives up if its retries are used up
    /// or the client has cancelled it.
    pub(crate) fn retrying<T>(&self, options: &QueryOptions, mut attempt: impl FnMut() -> Result<T>) -> Result<T> {
        let mut retries = Retries::up_to(options.retries);
        loop {
            match attempt() {
                Err(error) if error.kind() == ErrorKind::Conflict && !options.cancel.load(Ordering::Relaxed) => {
                    retries.wait(error)?;
                    self.note_retry();
                }
                outcome => return outcome,
            }
        }
    }
}

/// The retries of one transaction: those made, and their maximum.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    count: u32,
    count_max: u32,
}

impl Retries {
    /// No retry so far, and at most this many.
    pub fn up_to(count_max: u32) -> Self {
        Retries { count: 0, count_max }
    }

    /// Waits before the transaction that met this conflict is run again. Fails with the conflict if its retries are
    /// used up.
    pub fn wait(&mut self, conflict: Error) -> Result<()> {
        if self.count == self.count_max {
            return Err(match self.count {
                0 => conflict,
                n => conflict.context(format_args!("gave up after {n} retries")),
            });
        }
        self.count += 1;
        std::thread::sleep(backoff(self.count));
        Ok(())
    }
}

/// A random part of a time that doubles with each retry, from 1 to 64 milliseconds.
fn backoff(retry: u32) -> Duration {
    let ceiling = 1_000_u64 << retry.saturating_sub(1).min(6);
    Duration::from_micros(RandomState::new().hash_one(retry) % ceiling)
}
