//! Large commits whose claims are being finalized while others already see them.
//!
//! Commits become visible in the order of their timestamps, so whoever commits after a transaction of a million writes
//! would wait until the last of them is finalized. Instead a large commit is *announced* here: number and timestamp of its
//! transaction. Then the watermark may pass it, and a snapshot from that timestamp on that meets one of its claims takes
//! it for the timestamp ([`crate::version::happened`]); the finalizations follow.
//!
//! ```text
//! decided ──▶ announced ──▶ watermark passes ──▶ claims finalized ──▶ left ──▶ a grace period ──▶ entry free again
//! ```
//!
//! Invariants:
//!
//! 1. An announcement is made before the watermark passes its timestamp: a snapshot that sees the commit finds it.
//! 2. It stays for a grace period after the last finalization: a reader that took a claim from a version word under its pin
//!    still finds the announcement when it looks the claim up.
//! 3. Until the last finalization its transaction counts as running: nothing it has written or replaced is collected, and its
//!    number is given to nobody else.
//! 4. A writer gives way to an announced claim as to any other ([`crate::version::contested`]), even if its snapshot sees
//!    the commit. So nothing is built on top of a claim, and a rollback never meets somebody else's.
//!
//! Whoever finds all entries taken finalizations first and is visible afterwards, as small commits are.

use std::sync::atomic::Ordering;

use mangrove_locks::rank;
use mangrove_reclaim::Grace;
use mangrove_reclaim::sync::{AtomicU64, Mutex, yield_now};

/// Large commits at a time.
const ENTRIES: usize = 4;

/// An announcement; number 0 where there is none.
#[derive(Debug, Default)]
struct Entry {
    number: AtomicU64,
    ts: AtomicU64,
}

#[derive(Debug, Default)]
enum Use {
    #[default]
    Free,
    Stamping,
    /// Everything is finalized; readers may still look.
    Left(Grace),
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Installing {
    /// Places that are not free: mostly none, and then nobody looks further.
    count: AtomicU64,
    entries: [Entry; ENTRIES],
    uses: Mutex<[Use; ENTRIES], rank::LargeCommits>,
}

impl Installing {
    /// Whether a transaction is announced with a timestamp up to `begin_ts`. The claim was met under a pin that the
    /// caller still has.
    #[cold]
    pub(crate) fn has_committed(&self, txn: u64, begin_ts: u64) -> bool {
        // Relaxed, and so for the timestamp: whoever began at a later timestamp has read a watermark that was moved
        // after the announcement; for others the answer is no, whatever they find.
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Acquire: the timestamp is this transaction's. The entry is not taken over while the pin lives.
        let of_txn = self.entries.iter().find(|entry| entry.number.load(Ordering::Acquire) == txn);
        of_txn.is_some_and(|entry| entry.ts.load(Ordering::Relaxed) <= begin_ts)
    }

    /// Announces a commit; `None` when there is no entry. The finalizations are done when the guard goes.
    pub(crate) fn announce(&self, txn: u64, ts: u64) -> Option<Announced<'_>> {
        let mut uses = self.uses.lock();
        self.sweep(&mut uses);
        let at = uses.iter().position(|one| matches!(one, Use::Free))?;
        self.entries[at].ts.store(ts, Ordering::Relaxed);
        self.entries[at].number.store(txn, Ordering::Release);
        self.count.fetch_add(1, Ordering::Relaxed);
        uses[at] = Use::Stamping;
        Some(Announced { installing: self, at })
    }

    /// Frees the entries that nobody looks at any more.
    fn sweep(&self, uses: &mut [Use; ENTRIES]) {
        for (one, entry) in uses.iter_mut().zip(&self.entries) {
            if matches!(one, Use::Left(grace) if grace.is_over()) {
                entry.number.store(0, Ordering::Release);
                // Release: who finds none left sees what was finalized (`is_idle`).
                self.count.fetch_sub(1, Ordering::Release);
                *one = Use::Free;
            }
        }
    }

    /// Whether every commit that a snapshot taken before this call sees is finalized. May be false for some time after it is so.
    pub(crate) fn is_idle(&self) -> bool {
        // Acquire: its partner is in `sweep`. A commit that the snapshot sees was announced before its begin was read.
        self.count.load(Ordering::Acquire) == 0
    }

    /// Frees what can be freed: for the collector, now and then.
    pub(crate) fn tidy(&self) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.sweep(&mut self.uses.lock());
        }
    }

    /// Waits until the commits announced up to now are finalized: for those who look at more than version words.
    pub(crate) fn wait(&self) {
        let finalizing = |at: usize| match self.uses.lock()[at] {
            Use::Stamping => self.entries[at].ts.load(Ordering::Relaxed),
            _ => 0,
        };
        for at in 0..ENTRIES {
            let ts = finalizing(at);
            while ts != 0 && finalizing(at) == ts {
                yield_now();
            }
        }
    }
}

/// A large commit that is being finalized.
#[derive(Debug)]
#[must_use = "the finalizations are said to be done when this is dropped"]
pub struct Announced<'a> {
    installing: &'a Installing,
    at: usize,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        self.installing.uses.lock()[self.at] = Use::Left(Grace::begin());
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;
    use mangrove_reclaim::epoch;

    #[test]
    fn an_announcement_is_found_until_a_grace_period_after_its_end() {
        let installing = Installing::default();
        assert!(!installing.has_committed(7, 100));
        let pin = epoch::pin();
        let announced = installing.announce(7, 10).unwrap();
        assert!(installing.has_committed(7, 10) && !installing.has_committed(7, 9) && !installing.has_committed(8, 10));
        drop(announced);
        installing.tidy();
        assert!(installing.has_committed(7, 10), "a claim may have been met under this pin");
        drop(pin);
        // Other tests of the process pin too, but not for long.
        while installing.has_committed(7, 10) {
            installing.tidy();
            yield_now();
        }
        assert_eq!(installing.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn entries_are_few_and_come_back() {
        let installing = Installing::default();
        let all: Vec<_> = (1..=ENTRIES as u64).map(|n| installing.announce(n, n).unwrap()).collect();
        assert!(installing.announce(9, 9).is_none());
        drop(all);
        installing.wait();
        while installing.announce(9, 9).is_none() {
            yield_now();
        }
    }
}
