//! Running a transaction again after a conflict.
//!
//! Only where the whole transaction is known and nobody has seen anything of it: a request of its own whose
//! results are held back until the commit. Bounded, and after a wait of random length that grows, so that those who
//! met once do not meet again.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::Ordering;
use std::time::Duration;

use mangrove_graph::{Error, ErrorKind, Result};

use crate::options::QueryOptions;
use crate::state::Database;

impl Database {
    /// How many times a transaction was run again after a conflict, by this database or by a server for it.
    pub fn retry_count(&self) -> u64 {
        self.inner.retries.load(Ordering::Relaxed)
    }

    /// Counts a retry that somebody else makes, as a server does.
    pub fn note_retry(&self) {
        self.inner.retries.fetch_add(1, Ordering::Relaxed);
    }

    /// Runs a transaction until it ends otherwise than by a conflict, or has been run again as often as it may.
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

/// How often a transaction was run again, and how often it may be.
#[derive(Clone, Copy, Debug)]
pub struct Retries {
    count: u32,
    count_max: u32,
}

impl Retries {
    /// None so far, and at most this many.
    pub fn up_to(count_max: u32) -> Self {
        Retries { count: 0, count_max }
    }

    /// Waits before the transaction that met this conflict is run again; the error when it was run often enough.
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

/// A random share of a time that doubles from one millisecond to 64.
fn backoff(retry: u32) -> Duration {
    let ceiling = 1_000_u64 << retry.saturating_sub(1).min(6);
    Duration::from_micros(RandomState::new().hash_one(retry) % ceiling)
}
