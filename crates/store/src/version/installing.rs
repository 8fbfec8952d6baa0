//! Announced commits: large commits whose claims are being finalized while snapshots already see them.
//!
//! Commits become visible in the order of their timestamps. So every commit after a transaction of a million writes
//! would wait until the last of these writes is finalized. Instead, a large commit is *announced* here, with the number
//! and the timestamp of its transaction. Then the watermark may pass it, and its claims are finalized afterwards. A
//! snapshot from its timestamp on that meets one of its claims takes the claim for the timestamp
//! ([`crate::version::happened`]).
//!
//! ```text
//! decided ──▶ announced ──▶ watermark passes ──▶ claims finalized ──▶ left ──▶ a grace period ──▶ entry free again
//! ```
//!
//! - **STORE-27.** A commit is announced before the watermark passes its timestamp. So a snapshot that sees the commit
//!   finds the announcement.
//! - **STORE-28.** An announcement stays for a grace period after the last finalization. So a reader that loaded a
//!   claim under its pin finds the announcement when it looks the claim up.
//! - **STORE-29.** Until the last finalization, the transaction counts as running. So nothing that it has written or
//!   replaced is collected, and no other transaction gets its number.
//! - **STORE-30.** A writer gives way to an announced claim as to any other claim ([`crate::version::contested`]), even
//!   if its snapshot sees the commit. So no version is built on a claim, and a rollback never meets another
//!   transaction's.
//!
//! If all entries are taken, a large commit finalizes its claims first and becomes visible afterwards, as a small one
//! does.

use std::sync::atomic::Ordering;

use mangrove_locks::rank;
use mangrove_reclaim::Grace;
use mangrove_reclaim::sync::{AtomicU64, Mutex, yield_now};

/// How many commits can be announced at a time.
const ENTRIES: usize = 4;

/// An announcement: number and timestamp of a transaction. The number is 0 if there is none.
#[derive(Debug, Default)]
struct Entry {
    number: AtomicU64,
    ts: AtomicU64,
}

#[derive(Debug, Default)]
enum Use {
    #[default]
    Free,
    /// Claims of the commit are being finalized.
    Finalizing,
    /// All claims are finalized. Readers from before that may still look up one of them.
    Left(Grace),
}

/// The announced commits of a store. Invariants: STORE-27 to STORE-30.
#[derive(Debug, Default)]
pub(crate) struct Installing {
    /// How many entries are not free. Mostly 0, and then no reader looks at the entries.
    count: AtomicU64,
    entries: [Entry; ENTRIES],
    uses: Mutex<[Use; ENTRIES], rank::LargeCommits>,
}

impl Installing {
    /// Returns true if a transaction is announced with a timestamp up to `begin_ts`. The caller has loaded a claim of
    /// the transaction under a pin that it still holds.
    #[cold]
    pub(crate) fn has_committed(&self, txn: u64, begin_ts: u64) -> bool {
        // Relaxed, here and for the timestamp. A snapshot from the timestamp on has read a watermark that was moved
        // after the announcement (STORE-27). For an older snapshot the answer is no, whatever it finds.
        if self.count.load(Ordering::Relaxed) == 0 {
            return false;
        }
        // Acquire: the timestamp is this transaction's. STORE-28: no other commit gets the entry while the pin lives.
        let of_txn = self.entries.iter().find(|entry| entry.number.load(Ordering::Acquire) == txn);
        of_txn.is_some_and(|entry| entry.ts.load(Ordering::Relaxed) <= begin_ts)
    }

    /// Announces a commit. `None` if no entry is free. The caller drops the guard after the last finalization.
    pub(crate) fn announce(&self, txn: u64, ts: u64) -> Option<Announced<'_>> {
        let mut uses = self.uses.lock();
        self.free_entries(&mut uses);
        let at = uses.iter().position(|one| matches!(one, Use::Free))?;
        self.entries[at].ts.store(ts, Ordering::Relaxed);
        self.entries[at].number.store(txn, Ordering::Release);
        self.count.fetch_add(1, Ordering::Relaxed);
        uses[at] = Use::Finalizing;
        Some(Announced { installing: self, at })
    }

    /// Frees the entries whose grace period is over.
    fn free_entries(&self, uses: &mut [Use; ENTRIES]) {
        for (one, entry) in uses.iter_mut().zip(&self.entries) {
            if matches!(one, Use::Left(grace) if grace.is_over()) {
                entry.number.store(0, Ordering::Release);
                // Release: a thread that reads 0 sees the finalized words (`is_idle`).
                self.count.fetch_sub(1, Ordering::Release);
                *one = Use::Free;
            }
        }
    }

    /// Returns true if every commit that a snapshot taken before this call sees is finalized. For some time after that,
    /// it may return false.
    pub(crate) fn is_idle(&self) -> bool {
        // Acquire: its partner is in `free_entries`. A commit that the snapshot sees was announced before the snapshot
        // was taken (STORE-27).
        self.count.load(Ordering::Acquire) == 0
    }

    /// Frees the entries whose grace period is over. A collector calls it now and then.
    pub(crate) fn tidy(&self) {
        if self.count.load(Ordering::Relaxed) > 0 {
            self.free_entries(&mut self.uses.lock());
        }
    }

    /// Waits until the commits announced so far are finalized. For readers that look at more than version words.
    pub(crate) fn wait(&self) {
        let finalizing = |at: usize| match self.uses.lock()[at] {
            Use::Finalizing => self.entries[at].ts.load(Ordering::Relaxed),
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

/// An announced commit whose claims are being finalized. Dropping it says that all of them are. Until then the commit's
/// transaction counts as running (STORE-29).
#[derive(Debug)]
#[must_use = "dropping it says that all claims are finalized"]
pub struct Announced<'a> {
    installing: &'a Installing,
    at: usize,
}

impl Drop for Announced<'_> {
    fn drop(&mut self) {
        // STORE-28: the entry is freed a grace period after this.
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
