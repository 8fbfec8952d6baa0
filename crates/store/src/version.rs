//! Which version a snapshot sees: the encoding of version words and the one visibility function.
//!
//! A version of a vertex, an edge or a property is live for a half-open range of commit timestamps `[begin, end)`. Each
//! bound is one *version word* of 64 bits:
//!
//! ```text
//! 0 | commit timestamp (63 bits)                          finalized
//! 1 | statement (12 bits) | transaction number (51 bits)  claim of a running transaction
//! ```
//!
//! The transaction number leads to the transaction's status in `txn`. In the store it is only a name.
//!
//! Two timestamps are special. [`BASE_TS`] is that of bulk-loaded elements, which every snapshot sees. [`NEVER`] is
//! later than every snapshot. As an end word it means that no transaction has ended the version. As a begin word it
//! means that the slot has no element: it was reserved and has not begun, or its transaction was rolled back.
//!
//! - **STORE-1.** A begin word goes NEVER → claim → timestamp (commit) or NEVER → claim → NEVER (rollback). A timestamp
//!   is final until the element is taken apart (STORE-35). An end word goes NEVER → claim → timestamp, or back to NEVER
//!   on rollback. A collector may also close a NEVER end word and open it again (STORE-21).
//! - **STORE-2.** A begin word is claimed by a plain store of the transaction that has reserved the slot: while it owns
//!   the slot, no other thread stores to that word. Several transactions may want to end one element, so an end word is
//!   claimed by compare-and-swap from NEVER. Only the transaction that a claim names replaces it.
//! - **STORE-3.** A commit timestamp replaces a claim only while the timestamp is greater than the begin timestamp of
//!   every running snapshot (`txn`'s stable watermark), or after the commit was announced (`installing`). The claim of
//!   an announced commit counts as its timestamp for every snapshot that is not older. So no answer changes when a
//!   claim becomes a timestamp: readers load each word once, at any time, without a lock.
//! - **STORE-19.** Statements count from 1. A transaction's read sees its own writes of finished statements only, so a
//!   step never meets its own writes. Statement 0 means "finished before every running statement".
//!
//! A *watched* read looks beyond its begin timestamp. It asks for the status of claims, and repeats if a claim was
//! replaced in the meantime ([`Watch`]).
//!
//! Not here: drawing timestamps (`txn`), and the effect of a conflict on a transaction.

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
/// The end word of a version array that is being taken away (`page::freeze`). It means "not ended", and no transaction
/// may claim it in that array (STORE-21).
pub(crate) const CLOSED: u64 = NEVER - 1;
/// The largest statement number a claim can carry.
pub const STATEMENT_MAX: u16 = (1 << 12) - 1;

/// Knows the outcome of the transactions that claims belong to.
pub trait ClaimStatus: Sync + std::fmt::Debug {
    /// Returns true if the transaction has entered validation at a timestamp up to `read_ts` and was not aborted.
    /// `None` if the transaction is over and its number names another one. Then the claim has been replaced, and the
    /// caller reads the word again.
    fn has_happened(&self, txn: u64, read_ts: u64) -> Option<bool>;
}

/// The newer versions that a read meets: versions that are newer than its begin timestamp.
///
/// Without a status, the reader only notices that such versions exist. With a status, it reads as of a later `read_ts`:
/// for this read, a transaction has happened if it committed, or entered validation, up to `read_ts`.
#[derive(Debug)]
pub struct Watch<'a> {
    read_ts: u64,
    status: Option<&'a dyn ClaimStatus>,
    met: AtomicBool,
    used: AtomicBool,
    torn: AtomicBool,
}

impl<'a> Watch<'a> {
    /// A watch for a read that notices newer versions and does not read them.
    pub fn noticing() -> Self {
        let flag = || AtomicBool::new(false);
        Watch { read_ts: 0, status: None, met: flag(), used: flag(), torn: flag() }
    }

    /// A watch for a read as of `read_ts`.
    pub fn reading_at(read_ts: u64, status: &'a dyn ClaimStatus) -> Self {
        Watch { read_ts, status: Some(status), ..Watch::noticing() }
    }

    /// Returns true if the read met a version that is newer than its begin timestamp, or a claim of another
    /// transaction.
    pub fn met_newer(&self) -> bool {
        self.met.load(Ordering::Relaxed)
    }

    /// Returns true if the read took a newer version, or a claim of another transaction, for one that has happened.
    pub fn used_newer(&self) -> bool {
        self.used.load(Ordering::Relaxed)
    }

    /// Returns true if the read must be repeated, because a claim was replaced during its look-up.
    pub fn must_repeat(&self) -> bool {
        self.torn.load(Ordering::Relaxed)
    }

    /// Returns true if a word that has not happened at the begin timestamp has happened as of `read_ts`.
    #[cold]
    fn has_happened(&self, word: u64) -> bool {
        if word & CLAIM == 0 && word > TIMESTAMP_MAX {
            return false;
        }
        // Relaxed: the flags are read by the reader's own thread, after the read.
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

/// The state of the graph that a reader sees.
///
/// A view or a writer of a store adds the store's announced commits (`installing`) to it. Without them, a snapshot does
/// not see a large commit that is still being finalized.
#[derive(Clone, Copy, Debug)]
pub struct Snapshot<'a> {
    /// The latest commit timestamp that is seen.
    pub begin_ts: u64,
    /// The number of the transaction whose own writes are seen; 0 for none.
    pub txn: u64,
    /// The last statement whose own writes are seen.
    pub statement: u16,
    watch: Option<&'a Watch<'a>>,
    installing: Option<&'a Installing>,
}

impl<'a> Snapshot<'a> {
    /// The snapshot at a timestamp, of a transaction that has finished its statements up to this one.
    pub fn new(begin_ts: u64, txn: u64, statement: u16) -> Self {
        Snapshot { begin_ts, txn, statement, watch: None, installing: None }
    }

    /// A snapshot of committed data only.
    pub fn committed(begin_ts: u64) -> Self {
        Snapshot::new(begin_ts, 0, 0)
    }

    /// The same snapshot, for a read that learns about newer versions.
    pub fn watched(self, watch: &'a Watch<'a>) -> Self {
        Snapshot { watch: Some(watch), ..self }
    }

    /// The same snapshot, for a store with these announced commits.
    pub(crate) fn amid(self, installing: &'a Installing) -> Self {
        Snapshot { installing: Some(installing), ..self }
    }

    /// Returns true if a claim of another transaction belongs to an announced commit that the snapshot sees.
    #[inline]
    fn sees_claim_of(&self, txn: u64) -> bool {
        self.installing.is_some_and(|installing| installing.has_committed(txn, self.begin_ts))
    }

    /// The same snapshot, with the own writes of all statements. Writers check for conflicts against it.
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

/// The number of the transaction that claims a word; `None` for a timestamp.
pub fn claimed_by(word: u64) -> Option<u64> {
    (word & CLAIM != 0).then_some(word & TXN_MASK)
}

/// Returns true if the begin or the end that the word stands for has happened for the snapshot.
#[inline]
pub fn happened(word: u64, snapshot: &Snapshot<'_>) -> bool {
    if word & CLAIM == 0 {
        word <= snapshot.begin_ts || snapshot.watch.is_some_and(|watch| watch.has_happened(word))
    } else if word & TXN_MASK == snapshot.txn {
        // STORE-19: own writes of finished statements.
        let statement = ((word >> STATEMENT_SHIFT) & u64::from(STATEMENT_MAX)) as u16;
        statement <= snapshot.statement
    } else {
        snapshot.sees_claim_of(word & TXN_MASK) || snapshot.watch.is_some_and(|watch| watch.has_happened(word))
    }
}

/// Returns true if `word` has still happened, for a read that took a value because of it. A watched read may take a
/// claim for one that has happened, and the claim may then be rolled back. In that case no transaction ever committed
/// the value.
#[inline]
pub(crate) fn still_happened(word: u64, snapshot: &Snapshot<'_>) -> bool {
    snapshot.watch.is_none() || happened(word, snapshot)
}

/// **The** visibility function. Returns true if the snapshot sees a version that lives from `begin` to `end`.
#[inline]
pub fn visible(begin: u64, end: u64, snapshot: &Snapshot<'_>) -> bool {
    happened(begin, snapshot) && !happened(end, snapshot)
}

/// Returns true if a writer with this snapshot must give way to the transaction that wrote the word. That is so for a
/// claim of another transaction, announced or not (`installing`), and for a commit after the snapshot. The first
/// updater wins.
#[inline]
pub fn contested(word: u64, snapshot: &Snapshot<'_>) -> bool {
    match claimed_by(word) {
        Some(txn) => txn != snapshot.txn,
        None => word > snapshot.begin_ts && word < CLOSED,
    }
}

/// Returns true if the begin or the end that the word stands for has happened for every snapshot from `oldest` on.
#[inline]
pub(crate) fn happened_for_all(word: u64, oldest: u64) -> bool {
    debug_assert!(oldest <= TIMESTAMP_MAX, "the oldest snapshot reads at a timestamp, not at {oldest:x}");
    // A claim and a mark are greater than every timestamp.
    word <= oldest
}

/// How the snapshots from the oldest one on see a version. Collectors decide by it alone which versions they take away.
///
/// A version goes from `Vacant` through `Changing` and `Young` to `Frozen`, then through `Changing` to `Over`. A
/// rollback takes it one step back. `Vacant`, `Frozen` and `Over` hold for every later snapshot, until a transaction
/// claims a word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Standing {
    /// There is no element, and none has ended: the slot is free, reserved, or its element was rolled back.
    Vacant,
    /// Its transaction has committed after the oldest snapshot, and no transaction is ending it.
    Young,
    /// All these snapshots see it, and no transaction is ending it.
    Frozen,
    /// A transaction claims one of its words, or it ended after the oldest snapshot.
    Changing,
    /// None of these snapshots sees it, and no later one will.
    Over,
}

impl Standing {
    /// The standing of the version with these words, a begin and an end. `oldest` is the timestamp of the oldest
    /// snapshot.
    #[inline]
    pub(crate) fn of((begin, end): (u64, u64), oldest: u64) -> Self {
        let is_ended = happened_for_all(end, oldest);
        let is_left_alone = end == NEVER || end == CLOSED;
        match begin {
            NEVER if end == NEVER => Standing::Vacant,
            // A collector has taken the element apart and not given back its slot yet.
            NEVER => Standing::Over,
            _ if is_ended => Standing::Over,
            _ if !is_left_alone => Standing::Changing,
            _ if happened_for_all(begin, oldest) => Standing::Frozen,
            _ if claimed_by(begin).is_some() => Standing::Changing,
            _ => Standing::Young,
        }
    }

    /// Returns true if no snapshot from the oldest one on sees the version.
    #[inline]
    pub(crate) fn is_unseen(self) -> bool {
        matches!(self, Standing::Vacant | Standing::Over)
    }
}

/// The begin and end word of an element. Invariants: STORE-1, STORE-2, STORE-3.
#[derive(Debug)]
pub struct VersionPair {
    /// The begin word: since when the element exists.
    pub begin: AtomicU64,
    /// The end word: since when it is deleted.
    pub end: AtomicU64,
}

impl VersionPair {
    /// A pair that begins at `begin` and has no end.
    pub fn begun(begin: u64) -> Self {
        VersionPair { begin: AtomicU64::new(begin), end: AtomicU64::new(NEVER) }
    }

    /// Both words, loaded one after the other. STORE-3 makes the pair consistent for a snapshot.
    #[inline]
    pub fn load(&self) -> (u64, u64) {
        // Acquire: a reader that sees a begin word sees the content of the element, which was written before it.
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
    fn what_a_version_is_to_all_snapshots_from_the_oldest_on() {
        use Standing::{Changing, Frozen, Over, Vacant, Young};
        let claimed = claim(7, 3);
        // By end word: NEVER and CLOSED, a commit up to the oldest snapshot, a commit after it, a claim.
        let expected = [
            (BASE_TS, [Frozen, Over, Changing, Changing]),
            (10, [Frozen, Over, Changing, Changing]),
            (11, [Young, Over, Changing, Changing]),
            (claimed, [Changing, Over, Changing, Changing]),
        ];
        for (begin, [left_alone, over, ended, ending]) in expected {
            let of = |end| Standing::of((begin, end), 10);
            assert_eq!([of(NEVER), of(CLOSED), of(10), of(BASE_TS)], [left_alone, left_alone, over, over], "{begin:x}");
            assert_eq!([of(11), of(TIMESTAMP_MAX), of(claimed)], [ended, ended, ending], "{begin:x}");
        }
        let without_element = [NEVER, 10, 11, claimed].map(|end| Standing::of((NEVER, end), 10));
        assert_eq!(without_element, [Vacant, Over, Over, Over]);
        assert!(without_element.iter().all(|standing| standing.is_unseen()));
    }

    #[test]
    fn a_standing_says_what_snapshots_see() {
        let words = [BASE_TS, 9, 10, 11, 12, NEVER];
        for (begin, end) in words.iter().flat_map(|&begin| words.map(|end| (begin, end))) {
            let seen = |ts| visible(begin, end, &Snapshot::committed(ts));
            match Standing::of((begin, end), 10) {
                Standing::Frozen => assert!((10..20).all(seen), "{begin:x} {end:x}"),
                standing if standing.is_unseen() => assert!(!(10..20).any(seen), "{begin:x} {end:x}"),
                _ => {}
            }
        }
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
