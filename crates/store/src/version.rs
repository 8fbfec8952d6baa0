//! Which version a snapshot sees: the encoding of version words and the one visibility function.
//!
//! A version of a vertex, an edge or a property is live for a half-open range of commit timestamps
//! `[begin, end)`. Each bound is one *version word* of 64 bits:
//!
//! ```text
//! 0 | commit timestamp (63 bits)                          installed
//! 1 | statement (12 bits) | transaction number (51 bits)  claim of a running transaction
//! ```
//!
//! The transaction number says where the transaction's status is kept (`txn` gives it out); here it only names.
//!
//! Timestamp [`BASE_TS`] is the bulk-loaded base, which every snapshot sees; [`NEVER`] is later than every
//! snapshot: the end of a version that nobody ended, the begin of a slot that was reserved and not begun,
//! or whose transaction was rolled back.
//!
//! Invariants:
//!
//! 1. A begin word goes NEVER → claim → timestamp (commit) or NEVER → claim → NEVER (rollback), and is
//!    final until the slot is used again. An end word goes NEVER → claim → timestamp, or back to NEVER on
//!    rollback.
//! 2. Only the transaction named in a claim replaces it. Claims are taken by compare-and-swap.
//! 3. A commit timestamp is stored only while it is greater than the begin timestamp of every running
//!    snapshot (see `txn::watermark`), or its commit is announced (`installing`) and its claims count as the timestamp
//!    for those snapshots that are not older. So a word that turns from claim to timestamp changes the answer
//!    for no snapshot: readers may read the word at any read_ts, once, and need no lock. (A *watched* read, which
//!    looks beyond its begin, asks for the status of claims instead, and repeats where it has changed: [`Watch`].)
//! 4. Statements count from 1. A transaction's reads see its own writes of finished statements only, so
//!    that a step never meets what it is itself writing. Statement 0 stands for "finished long ago".
//!
//! Not here: who draws timestamps (`txn`), and what a conflict means for a transaction.

pub(crate) mod installing;

use std::sync::atomic::{AtomicBool, Ordering};

use mangrove_reclaim::sync::AtomicU64;

use crate::version::installing::Installing;

const CLAIM: u64 = 1 << 63;
const STATEMENT_SHIFT: u32 = 51;
const TXN_MASK: u64 = (1 << STATEMENT_SHIFT) - 1;

/// The commit timestamp of bulk-loaded elements: every snapshot sees them.
pub const BASE_TS: u64 = 0;
/// Later than every snapshot: "not begun" as a begin word, "not ended" as an end word.
pub const NEVER: u64 = CLAIM - 1;
/// The largest commit timestamp. Larger words that are no claims are marks, of which [`NEVER`] is one.
pub const TIMESTAMP_MAX: u64 = (1 << 62) - 1;
/// The end word of a version array that is being taken away (`page::freeze`): "not ended", and nobody may claim it there.
pub(crate) const CLOSED: u64 = NEVER - 1;
/// The largest statement number a claim can carry.
pub const STATEMENT_MAX: u16 = (1 << 12) - 1;

/// Says what became of the transactions that claims belong to.
pub trait ClaimStatus: Sync + std::fmt::Debug {
    /// Whether the transaction had entered validation, at a timestamp up to `read_ts`, and has not been aborted.
    /// `None` when its number has been given to another one, so that the claim must be gone: read again.
    fn has_happened(&self, txn: u64, read_ts: u64) -> Option<bool>;
}

/// What a reader learns of versions newer than its begin, while it reads.
///
/// Without a status it only notices that there are such versions, and does not read them. With one it reads as
/// of a later `read_ts`: what committed, or entered validation, up to then has happened.
#[derive(Debug)]
pub struct Watch<'a> {
    read_ts: u64,
    status: Option<&'a dyn ClaimStatus>,
    met: AtomicBool,
    used: AtomicBool,
    torn: AtomicBool,
}

impl<'a> Watch<'a> {
    /// Notices newer versions, reads none.
    pub fn noticing() -> Self {
        let flag = || AtomicBool::new(false);
        Watch { read_ts: 0, status: None, met: flag(), used: flag(), torn: flag() }
    }

    /// Reads as of `read_ts`.
    pub fn reading_at(read_ts: u64, status: &'a dyn ClaimStatus) -> Self {
        Watch { read_ts, status: Some(status), ..Watch::noticing() }
    }

    /// Whether the read met a version, or a claim of another transaction, that is newer than its begin.
    pub fn met_newer(&self) -> bool {
        self.met.load(Ordering::Relaxed)
    }

    /// Whether something newer than the begin had happened for the read.
    pub fn used_newer(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Whether the read must be repeated, because a claim was replaced while it was looked up.
    pub fn must_repeat(&self) -> bool {
        self.torn.load(Ordering::Relaxed)
    }

    /// Whether a word that has not happened at the begin has happened at the moment.
    #[cold]
    fn has_happened(&self, word: u64) -> bool {
        if word & CLAIM == 0 && word > TIMESTAMP_MAX {
            return false;
        }
        // Relaxed: the reader itself looks at the flags, after its read.
        self.met.store(true, Ordering::Relaxed);
        let Some(status) = self.status else { return false };
        let happened = match claimed_by(word) {
            None => word <= self.read_ts,
            Some(txn) => status.has_happened(txn, self.read_ts).unwrap_or_else(|| {
                self.torn.store(true, Ordering::Relaxed);
                false
            }),
        };
        if happened {
            self.used.store(true, Ordering::Relaxed);
        }
        happened
    }
}

/// The moment a reader looks at the graph from.
///
/// Until it is handed to a view or a writer of a store, it does not see large commits that are just being finalized.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// Commits up to and including this timestamp are seen.
    pub begin_ts: u64,
    /// The transaction whose own writes are seen; 0 for none.
    pub txn: u64,
    /// Own writes up to and including this statement are seen.
    pub statement: u16,
    watch: Option<&'a Watch<'a>>,
    installing: Option<&'a Installing>,
}

impl<'a> Snapshot<'a> {
    /// The snapshot at a timestamp, of a transaction whose statements up to this one are finished.
    pub fn new(begin_ts: u64, txn: u64, statement: u16) -> Self {
        Snapshot { begin_ts, txn, statement, watch: None, installing: None }
    }

    /// A snapshot of committed data only.
    pub fn committed(begin_ts: u64) -> Self {
        Snapshot::new(begin_ts, 0, 0)
    }

    /// The same read_ts, for a read that learns of newer versions.
    pub fn watched(self, watch: &'a Watch<'a>) -> Self {
        Snapshot { watch: Some(watch), ..self }
    }

    /// The same read_ts, for a store with these commits under way.
    pub(crate) fn amid(self, installing: &'a Installing) -> Self {
        Snapshot { installing: Some(installing), ..self }
    }

    /// Whether a claim of another transaction is that of a commit which the snapshot sees.
    #[inline]
    fn sees_claim_of(&self, txn: u64) -> bool {
        self.installing.is_some_and(|installing| installing.has_committed(txn, self.begin_ts))
    }

    /// The same read_ts, with all own writes whatever their statement: what a writer checks against.
    pub fn with_all_own_writes(self) -> Self {
        Snapshot { statement: STATEMENT_MAX, ..self }
    }
}

/// The version word of a claim. `txn` has at most 51 bits and is not 0, `statement` at most 12 bits.
pub fn claim(txn: u64, statement: u16) -> u64 {
    debug_assert!(txn != 0 && txn <= TXN_MASK, "transaction number {txn} does not fit");
    debug_assert!(statement <= STATEMENT_MAX, "statement {statement} does not fit");
    CLAIM | (u64::from(statement) << STATEMENT_SHIFT) | txn
}

/// The transaction a word is claimed by; `None` for a timestamp.
pub fn claimed_by(word: u64) -> Option<u64> {
    (word & CLAIM != 0).then_some(word & TXN_MASK)
}

/// Whether what the word stands for (a begin or an end) has happened, as the snapshot sees it.
#[inline]
pub fn happened(word: u64, snapshot: &Snapshot<'_>) -> bool {
    if word & CLAIM == 0 {
        word <= snapshot.begin_ts || snapshot.watch.is_some_and(|watch| watch.has_happened(word))
    } else if word & TXN_MASK == snapshot.txn {
        let statement = ((word >> STATEMENT_SHIFT) & u64::from(STATEMENT_MAX)) as u16;
        statement <= snapshot.statement
    } else {
        snapshot.sees_claim_of(word & TXN_MASK) || snapshot.watch.is_some_and(|watch| watch.has_happened(word))
    }
}

/// For a read that took a value because `word` has happened: whether it still has. A claim that a watched read
/// took for happened may be rolled back meanwhile, and then the value was one that nobody ever committed.
#[inline]
pub(crate) fn still_happened(word: u64, snapshot: &Snapshot<'_>) -> bool {
    snapshot.watch.is_none() || happened(word, snapshot)
}

/// **The** visibility function: whether the snapshot sees a version that lives from `begin` to `end`.
#[inline]
pub fn visible(begin: u64, end: u64, snapshot: &Snapshot<'_>) -> bool {
    happened(begin, snapshot) && !happened(end, snapshot)
}

/// Whether the word is the work of somebody a writer with this snapshot must give way to: a claim of
/// another transaction (of an announced one too: `installing`), or a commit after the snapshot. First updater wins.
#[inline]
pub fn contested(word: u64, snapshot: &Snapshot<'_>) -> bool {
    match claimed_by(word) {
        Some(txn) => txn != snapshot.txn,
        None => word > snapshot.begin_ts && word < CLOSED,
    }
}

/// The begin and end word of an element.
#[derive(Debug)]
pub struct VersionPair {
    /// When the element came to be.
    pub begin: AtomicU64,
    /// When it was deleted.
    pub end: AtomicU64,
}

impl VersionPair {
    /// A pair that begins at `begin` and has no end.
    pub fn begun(begin: u64) -> Self {
        VersionPair { begin: AtomicU64::new(begin), end: AtomicU64::new(NEVER) }
    }

    /// Both words, each as it was at some moment; invariant 3 makes the pair consistent for a snapshot.
    #[inline]
    pub fn load(&self) -> (u64, u64) {
        // Acquire: whoever sees a begin word sees the content of the element written before it.
        (self.begin.load(Ordering::Acquire), self.end.load(Ordering::Acquire))
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn visibility_over_all_combinations() {
        let me = Snapshot::new(10, 7, 3);
        // (word, happened for me)
        let words = [
            (BASE_TS, true),
            (10, true),
            (11, false),
            (NEVER, false),
            (claim(7, 0), true),
            (claim(7, 3), true),
            (claim(7, 4), false),
            (claim(8, 0), false),
            (claim(TXN_MASK, STATEMENT_MAX), false),
        ];
        for (begin, begun) in words {
            assert_eq!(happened(begin, &me), begun, "{begin:x}");
            for (end, ended) in words {
                assert_eq!(visible(begin, end, &me), begun && !ended, "{begin:x} {end:x}");
            }
        }
    }

    #[test]
    fn a_snapshot_without_transaction_sees_no_claim() {
        let nobody = Snapshot::committed(10).with_all_own_writes();
        assert!(!happened(claim(1, 0), &nobody));
        assert!(!happened(NEVER, &Snapshot::committed(CLOSED - 1)));
    }

    #[test]
    fn contested_words_are_others_claims_and_later_commits() {
        let me = Snapshot::new(10, 7, 0);
        assert!(!contested(10, &me) && contested(11, &me) && !contested(NEVER, &me) && !contested(CLOSED, &me));
        assert!(!contested(claim(7, 9), &me) && contested(claim(8, 0), &me));
    }

    /// Transaction 8 is validating at 12, 9 is running, and the number of 10 has been given away.
    #[derive(Debug)]
    struct Fixed;

    impl ClaimStatus for Fixed {
        fn has_happened(&self, txn: u64, read_ts: u64) -> Option<bool> {
            match txn {
                8 => Some(12 <= read_ts),
                9 => Some(false),
                _ => None,
            }
        }
    }

    #[test]
    fn a_watched_read_notices_what_is_newer() {
        let newer = |word| {
            let watch = Watch::noticing();
            assert!(!happened(word, &Snapshot::new(10, 7, 3).watched(&watch)) || word == BASE_TS);
            watch.met_newer()
        };
        assert!(newer(11) && newer(claim(8, 1)));
        assert!(!newer(BASE_TS) && !newer(NEVER) && !newer(claim(7, 4)));
    }

    #[test]
    fn a_read_at_a_later_moment_asks_for_the_status_of_claims() {
        let read = |word, read_ts| {
            let watch = Watch::reading_at(read_ts, &Fixed);
            let seen = happened(word, &Snapshot::new(10, 7, 3).watched(&watch));
            assert_eq!(watch.used_newer(), seen);
            (seen, watch.must_repeat())
        };
        assert_eq!((read(11, 11), read(12, 11), read(NEVER, 11)), ((true, false), (false, false), (false, false)));
        assert_eq!((read(claim(8, 1), 12), read(claim(8, 1), 11)), ((true, false), (false, false)));
        assert_eq!((read(claim(9, 1), 20), read(claim(10, 1), 20)), ((false, false), (false, true)));
    }

    #[test]
    fn a_claim_keeps_its_parts() {
        let word = claim(TXN_MASK, STATEMENT_MAX);
        assert_eq!(claimed_by(word), Some(TXN_MASK));
        assert_eq!(claimed_by(NEVER), None);
        assert!(happened(word, &Snapshot::new(0, TXN_MASK, STATEMENT_MAX)));
    }
}
