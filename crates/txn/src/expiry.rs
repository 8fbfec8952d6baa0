//! How old a snapshot may become.
//!
//! A transaction keeps everything it can see from being collected. With the setting `max_snapshot_age_ms` one that is
//! older than this *expires*: it is told so at its next call, is rolled back by it, and holds back nothing any more.
//!
//! ```text
//! collector: find it too old ──▶ expire its slot ──▶ grace period ──▶ leave it out of the oldest snapshot ──▶ collect
//! its call:  pin ──▶ expired? refuse : read ──▶ end of the pin
//! ```
//!
//! A call that found its slot live had pinned before the slot expired, so the grace period waits for it: whatever it
//! returns was read while everything it could see was there. No call waits for anything.
//!
//! - The collector looks, so a transaction expires some time after it has passed the limit, and not at all while
//!   there is no collector at work: nobody needs what it keeps.
//! - What an expired transaction has written stays claimed until its owner notices or drops it: taking back is the
//!   owner's work, whose log it is. Others that meet such a claim conflict with it, as with any other.
//! - Who has entered validation does not expire: it is about to end.

#[cfg(not(feature = "model"))]
use std::time::Instant;

use mangrove_store::epoch::Grace;

use crate::status::{Expired, StatusTable};
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

/// A model's time passes when somebody looks.
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

/// Those that expired last, while calls of theirs may be under way.
#[derive(Debug, Default)]
pub(crate) struct Expiry {
    leaving: Mutex<Option<(Grace, Expired)>>,
}

impl Expiry {
    /// Expires who is older than the limit (0: none), and leaves out of account who expired earlier. Whether some wait to be
    /// left out.
    pub(crate) fn expire_old(&self, status: &StatusTable, clock: &Clock, limit: u64) -> bool {
        // Another worker is at it.
        let Some(mut leaving) = self.leaving.try_lock() else { return true };
        if let Some((grace, expired)) = leaving.take() {
            if !grace.is_over() {
                *leaving = Some((grace, expired));
                return true;
            }
            status.forget(&expired);
        }
        let Some(born_before) = clock.now().checked_sub(limit).filter(|_| limit > 0) else { return false };
        let expired = status.expire(born_before);
        if expired.is_empty() {
            return false;
        }
        *leaving = Some((Grace::begin(), expired));
        true
    }
}
