//! Which version a snapshot sees: the encoding of version words and the one visibility function.
//!
//! A version of a vertex, an edge or a property is live for a half-open range of commit timestamps
//! `[begin, end)`. Each bound is one *version word* of 64 bits:
//!
//! ```text
//! 0 | commit timestamp (63 bits)                          installed
//! 1 | statement (15 bits) | transaction number (48 bits)  claim of a running transaction
//! ```
//!
//! Timestamp [`BASE_TS`] is the bulk-loaded base, which every snapshot sees; [`NEVER`] is later than every
//! snapshot: the end of a version that nobody ended, the begin of a slot that was reserved and not begun,
//! or whose transaction was rolled back.
//!
//! Invariants:
//!
//! 1. A begin word goes NEVER → claim → timestamp (commit) or NEVER → claim → NEVER (rollback), and is
//!    final after that. An end word goes NEVER → claim → timestamp, or back to NEVER on rollback.
//! 2. Only the transaction named in a claim replaces it. Claims are taken by compare-and-swap.
//! 3. A commit timestamp is stored only while it is greater than the begin timestamp of every running
//!    snapshot (see `txn::watermark`), so a word that turns from claim to timestamp changes the answer
//!    for no snapshot: readers may read the word at any moment, once, and need no lock.
//! 4. Statements count from 1. A transaction's reads see its own writes of finished statements only, so
//!    that a step never meets what it is itself writing. Statement 0 stands for "finished long ago".
//!
//! Not here: who draws timestamps (`txn`), and what a conflict means for a transaction.

use std::sync::atomic::{AtomicU64, Ordering};

const CLAIM: u64 = 1 << 63;
const STATEMENT_SHIFT: u32 = 48;
const TXN_MASK: u64 = (1 << STATEMENT_SHIFT) - 1;

/// The commit timestamp of bulk-loaded elements: every snapshot sees them.
pub const BASE_TS: u64 = 0;
/// Later than every snapshot: "not begun" as a begin word, "not ended" as an end word.
pub const NEVER: u64 = CLAIM - 1;
/// The largest statement number a claim can carry.
pub const STATEMENT_MAX: u16 = (1 << 15) - 1;

/// The moment a reader looks at the graph from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Snapshot {
    /// Commits up to and including this timestamp are seen.
    pub begin_ts: u64,
    /// The transaction whose own writes are seen; 0 for none.
    pub txn: u64,
    /// Own writes up to and including this statement are seen.
    pub statement: u16,
}

impl Snapshot {
    /// A snapshot of committed data only.
    pub fn committed(begin_ts: u64) -> Self {
        Snapshot { begin_ts, txn: 0, statement: 0 }
    }

    /// The same moment, with all own writes whatever their statement: what a writer checks against.
    pub fn with_all_own_writes(self) -> Self {
        Snapshot { statement: STATEMENT_MAX, ..self }
    }
}

/// The version word of a claim. `txn` has at most 48 bits and is not 0, `statement` at most 15 bits.
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
pub fn happened(word: u64, snapshot: &Snapshot) -> bool {
    if word & CLAIM == 0 {
        word <= snapshot.begin_ts
    } else {
        let statement = ((word >> STATEMENT_SHIFT) & u64::from(STATEMENT_MAX)) as u16;
        word & TXN_MASK == snapshot.txn && statement <= snapshot.statement
    }
}

/// **The** visibility function: whether the snapshot sees a version that lives from `begin` to `end`.
#[inline]
pub fn visible(begin: u64, end: u64, snapshot: &Snapshot) -> bool {
    happened(begin, snapshot) && !happened(end, snapshot)
}

/// Whether the word is the work of somebody a writer with this snapshot must give way to: a claim of
/// another transaction, or a commit after the snapshot. First updater wins.
#[inline]
pub fn contested(word: u64, snapshot: &Snapshot) -> bool {
    match claimed_by(word) {
        Some(txn) => txn != snapshot.txn,
        None => word > snapshot.begin_ts && word != NEVER,
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visibility_over_all_combinations() {
        let me = Snapshot { begin_ts: 10, txn: 7, statement: 3 };
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
        assert!(!happened(NEVER, &Snapshot::committed(NEVER - 1)));
    }

    #[test]
    fn contested_words_are_others_claims_and_later_commits() {
        let me = Snapshot { begin_ts: 10, txn: 7, statement: 0 };
        assert!(!contested(10, &me) && contested(11, &me) && !contested(NEVER, &me));
        assert!(!contested(claim(7, 9), &me) && contested(claim(8, 0), &me));
    }

    #[test]
    fn a_claim_keeps_its_parts() {
        let word = claim(TXN_MASK, STATEMENT_MAX);
        assert_eq!(claimed_by(word), Some(TXN_MASK));
        assert_eq!(claimed_by(NEVER), None);
        assert!(happened(word, &Snapshot { begin_ts: 0, txn: TXN_MASK, statement: STATEMENT_MAX }));
    }
}
