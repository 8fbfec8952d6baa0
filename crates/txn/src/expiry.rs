//! Expiry: how old a snapshot may become.
//!
//! A transaction keeps every version that it can see from being collected. With the setting `max_snapshot_age_ms`, a
//! transaction that is older than the limit *expires*. Its next call fails and rolls it back, and its snapshot no
//! longer holds collection back.
//!
//! ```text
//! collector: find the old entry ──▶ expire it ──▶ grace period ──▶ leave it out of the oldest snapshot ──▶ collect
//! a call:    pin ──▶ expired? refuse : read ──▶ unpin
//! ```
//!
//! - **TXN-17.** An expired transaction is left out of the oldest snapshot only after a grace period that began after
//!   it expired. A call that found its entry live had pinned before, so the grace period waits for it: everything that
//!   the call could see was there while it read. No call waits for anything.
//!
//! Consequences:
//!
//! - The collector looks for old transactions. A transaction therefore expires some time after it has passed the limit,
//!   and not at all while no collector works: then nothing needs the versions that it keeps.
//! - The claims of an expired transaction stand until its owner calls or drops it: taking back needs the log of writes,
//!   which the owner has. Another transaction that meets such a claim conflicts with it, as with any other.
//! - A transaction that has entered validation does not expire: it is about to end.

#[cfg(not(feature = "model"))]
use std::time::Instant;

use mangrove_locks::rank;
use mangrove_reclaim::epoch::Grace;

use crate::status::{ExpiredEntries, StatusTable};
use crate::sync::Mutex;

/// Milliseconds since the graph was opened.
#[cfg(not(feature = "model"))]
#[derive(Debug)]
pub(crate) struct Clock {
    opened: Instant,
}

#[cfg(not(feature = "model"))]
impl Clock {
    #[allow(clippy::disallowed_methods, reason = "ages decide who is refused and nothing that is read or written")]
    pub(crate) fn start() -> Self {
        Clock { opened: Instant::now() }
    }

    pub(crate) fn now(&self) -> u64 {
        let elapsed = self.opened.elapsed();
        elapsed.as_secs().saturating_mul(1_000).saturating_add(u64::from(elapsed.subsec_millis()))
    }
}

/// The clock of a model: its time advances by one at each look.
#[cfg(feature = "model")]
#[derive(Debug)]
pub(crate) struct Clock {
    looks: crate::sync::AtomicU64,
}

#[cfg(feature = "model")]
impl Clock {
    pub(crate) fn start() -> Self {
        Clock { looks: crate::sync::AtomicU64::new(0) }
    }

    pub(crate) fn now(&self) -> u64 {
        self.looks.fetch_add(1, crate::sync::Ordering::Relaxed)
    }
}

/// The transactions that expired last, while some of their calls may be under way.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    expiring: Mutex<Option<Expiring>, rank::ExpiringTransactions>,
}

/// Expired transactions, and the grace period after which their snapshots stop counting (TXN-17).
#[derive(Debug)]
struct Expiring {
    grace: Grace,
    entries: ExpiredEntries,
}

impl Expiry {
    /// Expires transactions older than `limit` milliseconds (0: none), and leaves those that expired earlier out of the
    /// oldest snapshot. Returns true if some expired transactions still count.
    pub(crate) fn expire_old(&self, status: &StatusTable, clock: &Clock, limit: u64) -> bool {
        // Another worker has the turn.
        let Some(mut expiring) = self.expiring.try_lock() else { return true };
        if let Some(last) = expiring.take() {
            if !last.grace.is_over() {
                *expiring = Some(last);
                return true;
            }
            // TXN-17: the grace period is over.
            status.forget(&last.entries);
        }
        let Some(began_before_ms) = clock.now().checked_sub(limit).filter(|_| limit > 0) else { return false };
        let entries = status.expire(began_before_ms);
        if entries.is_empty() {
            return false;
        }
        // TXN-17: the grace period begins after the entries have expired.
        *expiring = Some(Expiring { grace: Grace::begin(), entries });
        true
    }
}
