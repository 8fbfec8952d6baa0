//! The transaction status table (TST): the running transactions, the state of each, and the timestamp each reads at.
//!
//! ```text
//!         ┌────────────── abort ──────────────┐
//!  Running ──draw ts──▶ Validating(ts) ──▶ Aborted          status of a transaction
//!                             └──────────▶ Committed(ts)
//!
//!  Live ──too old──▶ Expired ──grace period──▶ Forgotten     whether it may read on, and holds collection back
//!    └──protect──▶ Protected
//! ```
//!
//! - **TXN-1.** A claim's number leads to the status of its owner for as long as the claim stands, and after that until
//!   the entry is used again. A number is the entry and how often the entry was used before, so a look-up needs no
//!   search. Numbers repeat only after 2^35 uses of an entry.
//! - **TXN-2.** [`StatusTable::oldest`] is never above the read timestamp of a transaction that is running or about to
//!   begin. A transaction claims an entry *before* it reads the watermark, with the watermark it saw earlier as a lower
//!   bound, and stores its begin timestamp there afterwards. `oldest` reads the watermark first and the entries second.
//!   Versions that no snapshot at or above it sees may be collected.
//! - **TXN-3.** The next owner of an entry inherits nothing. Every change of a transaction's [`ExpiryState`] is a
//!   compare-and-swap of one word, the *incarnation*, which names the transaction.
//!
//! *Look-up.* [`StatusTable::status_of`] reads the entry's number, the status, and the number again. A new owner stores
//! 0 as number, then the status, then its number. So a status between two equal numbers belongs to that transaction,
//! though it may have changed since. An entry keeps number and status of its last owner until the next one comes: a
//! reader that is slow to look up a claim still gets the right answer. If the number is another one, the claim was
//! replaced long ago, and the reader reads the version word again.
//!
//! *Expiry.* The module `expiry` decides when a transaction is too old. From `Expired` on its calls are refused. From
//! `Forgotten` on it does not count in `oldest`. It keeps its entry until it ends, because its claims stand until then.
//! A committing transaction is `Protected` and goes on to its end.
//!
//! *Growth.* A transaction claims an entry by compare-and-swap, starting at a position that differs by thread, so that
//! an entry mostly stays in one core's cache. The table doubles when it is full and never shrinks, because a claim may
//! lead to an entry at any time. Each level but the first counts its transactions, and a level without any is skipped:
//! after a burst of transactions `oldest` costs as little as before it.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;
use mangrove_locks::rank;
use mangrove_store::ClaimStatus;

use crate::recent::RecentCommits;
use crate::sync::{AtomicU64, Mutex, Ordering, thread_number, yield_now};

/// Entries of the first level. One under a model checker, so that a few transactions make levels.
const FIRST_ENTRIES: usize = if cfg!(feature = "model") { 1 } else { 64 };
/// As many levels as entries can be numbered with 16 bits.
const LEVELS: usize = 10;
/// Entries that a transaction tries in a level that is not the last.
const PROBES: usize = 8;
const ENTRY_BITS: u32 = 16;
const SEQUENCE_MASK: u64 = (1 << 35) - 1;

/// The state of a transaction. The module header has the transitions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// It reads and writes.
    Running,
    /// It has finished writing and has drawn this commit timestamp. It may still abort.
    Validating(u64),
    /// It commits at this timestamp; its claims are being stamped, or have been.
    Committed(u64),
    /// It takes its claims back, or has.
    Aborted,
}

impl Status {
    fn to_word(self) -> u64 {
        match self {
            Status::Running => 0,
            Status::Validating(ts) => ts << 2 | 1,
            Status::Committed(ts) => ts << 2 | 2,
            Status::Aborted => 3,
        }
    }

    fn from_word(word: u64) -> Self {
        let has_timestamp = matches!(word & 3, 1 | 2);
        debug_assert!(has_timestamp || word <= 3, "{word:x} is no status: only two of them have a timestamp");
        match word & 3 {
            0 => Status::Running,
            1 => Status::Validating(word >> 2),
            2 => Status::Committed(word >> 2),
            _ => Status::Aborted,
        }
    }

    /// Returns true if a transaction in this status may go on to the next one.
    fn may_become(self, next: Status) -> bool {
        match (self, next) {
            (Status::Running, Status::Validating(_) | Status::Aborted) => true,
            (Status::Validating(_), Status::Aborted) => true,
            (Status::Validating(drawn), Status::Committed(ts)) => drawn == ts,
            _ => false,
        }
    }
}

/// Says whether a transaction may go on reading, and whether its snapshot holds collection back.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ExpiryState {
    /// It reads, and may expire.
    Live = 0,
    /// New calls are refused. Calls that began before may still read.
    Expired = 1,
    /// No call reads. Its snapshot does not count.
    Forgotten = 2,
    /// It reads, and cannot expire.
    Protected = 3,
}

const EXPIRY_BITS: u32 = 2;
const EXPIRY_MASK: u64 = (1 << EXPIRY_BITS) - 1;

/// The word that names one use of an entry: the ordinal of the transaction, and its expiry state.
fn incarnation(ordinal: u64, state: ExpiryState) -> u64 {
    ordinal << EXPIRY_BITS | state as u64
}

fn is_in(incarnation: u64, state: ExpiryState) -> bool {
    incarnation & EXPIRY_MASK == state as u64
}

/// The begin of an entry's transaction: the read timestamp, and whether the transaction will be validated, so
/// that write sets since its begin are kept for it. Its word is never 0. Both are in one word, so that a reader never
/// combines the halves of two owners.
#[derive(Clone, Copy)]
struct Begin {
    ts: u64,
    is_validated: bool,
}

impl Begin {
    fn to_word(self) -> u64 {
        (self.ts + 1) << 1 | u64::from(self.is_validated)
    }

    fn from_word(word: u64) -> Option<Self> {
        Some(Begin { ts: (word >> 1).checked_sub(1)?, is_validated: word & 1 == 1 })
    }
}

/// One entry of the table. The owner changes it; every thread may read it.
#[derive(Debug, Default)]
struct StatusEntry {
    /// 0 if the entry is free, else the word of a [`Begin`].
    begin: AtomicU64,
    /// The number of the last transaction that used it.
    number: AtomicU64,
    status: AtomicU64,
    /// The ordinal and [`ExpiryState`] of its transaction. 0 if the entry is free, and briefly after it was claimed.
    incarnation: AtomicU64,
    /// When the transaction began, in milliseconds of the manager's clock. Stored before `incarnation`.
    began_ms: AtomicU64,
}

type StatusEntries = Box<[CachePadded<StatusEntry>]>;

/// The table of running transactions of one graph.
#[derive(Debug)]
pub(crate) struct StatusTable {
    /// Level `k` has `FIRST_ENTRIES << k` entries.
    levels: [OnceLock<StatusEntries>; LEVELS],
    level_count: AtomicU64,
    /// For each level but the first, how many transactions have an entry there or are looking for one.
    used: [AtomicU64; LEVELS],
    /// The ordinal of the next transaction. Transactions are counted from 1, in the order in which they come to the
    /// table.
    next_ordinal: CachePadded<AtomicU64>,
}

/// An entry of the table. Its transaction frees it with [`StatusTable::release`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryId {
    level: usize,
    at: usize,
}

impl EntryId {
    /// Numbers the entries of all levels, the first level first.
    fn number(self) -> u64 {
        (FIRST_ENTRIES * ((1 << self.level) - 1) + self.at) as u64
    }

    fn from_number(number: u64) -> Self {
        let position = number as usize + FIRST_ENTRIES;
        let level = (position / FIRST_ENTRIES).ilog2() as usize;
        EntryId { level, at: position - (FIRST_ENTRIES << level) }
    }
}

/// A registered transaction.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    pub(crate) entry: EntryId,
    /// The number that its claims carry; not 0.
    pub(crate) number: u64,
    pub(crate) begin_ts: u64,
    ordinal: u64,
}

/// Entries whose transactions expired, with their incarnations.
pub(crate) type ExpiredEntries = Vec<(EntryId, u64)>;

impl StatusTable {
    pub(crate) fn new() -> Self {
        StatusTable {
            levels: [const { OnceLock::new() }; LEVELS],
            level_count: AtomicU64::new(1),
            used: [const { AtomicU64::new(0) }; LEVELS],
            next_ordinal: CachePadded::new(AtomicU64::new(1)),
        }
    }

    fn level(&self, level: usize) -> &StatusEntries {
        self.levels[level].get_or_init(|| (0..FIRST_ENTRIES << level).map(|_| CachePadded::default()).collect())
    }

    fn entry(&self, id: EntryId) -> &StatusEntry {
        &self.level(id.level)[id.at]
    }

    /// Registers a transaction that begins at `began_ms` and reads at the watermark. If it will be validated, write
    /// sets are kept for it.
    pub(crate) fn register(&self, recent: &RecentCommits, began_ms: u64, is_validated: bool) -> Registration {
        self.register_at(|| recent.stable(), began_ms, is_validated)
    }

    /// Registers a read-only transaction. It reads at the watermark or, if that is lower, at the last durable
    /// timestamp.
    pub(crate) fn register_reader(&self, recent: &RecentCommits, began_ms: u64) -> Registration {
        self.register_at(|| recent.readable(), began_ms, false)
    }

    /// Registers a transaction that reads at the timestamp `begin` returns, which must never fall.
    fn register_at(&self, begin: impl Fn() -> u64, began_ms: u64, is_validated: bool) -> Registration {
        let word = |ts| Begin { ts, is_validated }.to_word();
        let lower_bound = begin();
        let id = self.claim(thread_number(), word(lower_bound));
        let entry = self.entry(id);
        // After the entry is claimed: a thread that reads a larger `next_ordinal` (Acquire) finds the entry in use.
        // Until the incarnation is stored, the entry counts as that of the oldest transaction of all.
        let ordinal = self.next_ordinal.fetch_add(1, Ordering::AcqRel);
        entry.began_ms.store(began_ms, Ordering::Relaxed);
        // TXN-3: `release` left this, before it let the entry be claimed.
        assert_eq!(entry.incarnation.load(Ordering::Relaxed), 0, "the last owner of an entry is still there");
        entry.incarnation.store(incarnation(ordinal, ExpiryState::Live), Ordering::Release);
        let last_number = entry.number.load(Ordering::Relaxed);
        let number = Self::next_number(last_number, id);
        // TXN-1.
        debug_assert_ne!(number, last_number, "two owners of an entry have one number");
        // TXN-1: `status_of` relies on this order.
        entry.number.store(0, Ordering::Relaxed);
        entry.status.store(Status::Running.to_word(), Ordering::Release);
        entry.number.store(number, Ordering::Release);
        // TXN-2: the entry was claimed with the lower bound before the watermark is read again.
        let begin_ts = begin();
        assert!(begin_ts >= lower_bound, "a watermark fell from {lower_bound} to {begin_ts}");
        if begin_ts != lower_bound {
            entry.begin.store(word(begin_ts), Ordering::SeqCst);
        }
        debug_assert_eq!(self.status_of(number), Some(Status::Running));
        Registration { entry: id, number, begin_ts, ordinal }
    }

    fn next_number(last: u64, id: EntryId) -> u64 {
        let sequence = ((last >> ENTRY_BITS) + 1) & SEQUENCE_MASK;
        sequence.max(1) << ENTRY_BITS | id.number()
    }

    fn claim(&self, start: usize, word: u64) -> EntryId {
        loop {
            let count = self.level_count.load(Ordering::Acquire) as usize;
            for level in 0..count {
                if let Some(at) = self.claim_in(level, level + 1 == count, start, word) {
                    return EntryId { level, at };
                }
            }
            if count < LEVELS {
                let (old, new) = (count as u64, count as u64 + 1);
                // Losing the race means that another thread added the level.
                let _ = self.level_count.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
            } else {
                yield_now();
            }
        }
    }

    /// Claims an entry of a level: any entry of the last level, one of a few of the other levels.
    fn claim_in(&self, level: usize, is_last: bool, start: usize, word: u64) -> Option<usize> {
        let entries = self.level(level);
        if level > 0 {
            // SeqCst, as the exchange below, and for the same reason: a thread that reads the watermark and then finds
            // no transaction in the level looked before this transaction reads its begin.
            self.used[level].fetch_add(1, Ordering::SeqCst);
        }
        let probes = if is_last { entries.len() } else { PROBES.min(entries.len()) };
        for at in (0..probes).map(|i| (start + i) % entries.len()) {
            // SeqCst: the entry is published before the watermark is read again (TXN-2). Its owner then acquires the
            // last owner's number.
            if entries[at].begin.load(Ordering::Relaxed) == 0
                && entries[at].begin.compare_exchange(0, word, Ordering::SeqCst, Ordering::Relaxed).is_ok()
            {
                return Some(at);
            }
        }
        self.leave(level);
        None
    }

    fn leave(&self, level: usize) {
        if level > 0 {
            self.used[level].fetch_sub(1, Ordering::SeqCst);
        }
    }

    /// Changes the status of the transaction that owns the entry. Only its owner calls this.
    pub(crate) fn set(&self, id: EntryId, status: Status) {
        let entry = self.entry(id);
        debug_assert_ne!(entry.begin.load(Ordering::Relaxed), 0, "a transaction that has ended changes its status");
        let word = &entry.status;
        // Only the owner stores here, so a relaxed load reads its own last store.
        let before = Status::from_word(word.load(Ordering::Relaxed));
        assert!(before.may_become(status), "a transaction went from {before:?} to {status:?}");
        // Release: a thread that sees the status sees all that the transaction wrote before.
        word.store(status.to_word(), Ordering::Release);
        debug_assert_eq!(Status::from_word(word.load(Ordering::Relaxed)), status);
    }

    /// Returns the status of the transaction with this number; `None` if its entry has another owner.
    pub(crate) fn status_of(&self, number: u64) -> Option<Status> {
        let id = EntryId::from_number(number & ((1 << ENTRY_BITS) - 1));
        let entry = self.levels.get(id.level)?.get()?.get(id.at)?;
        // TXN-1. Acquire, all three: they must not be reordered. Their partners are the stores in `register_at`.
        let before = entry.number.load(Ordering::Acquire);
        let word = entry.status.load(Ordering::Acquire);
        let after = entry.number.load(Ordering::Acquire);
        (before == number && after == number).then(|| Status::from_word(word))
    }

    /// Frees the entry of a transaction that has ended.
    pub(crate) fn release(&self, id: EntryId) {
        let entry = self.entry(id);
        assert_ne!(entry.begin.load(Ordering::Relaxed), 0, "a transaction ends once");
        assert_ne!(entry.incarnation.load(Ordering::Relaxed), 0, "a transaction ends after its begin");
        let status = Status::from_word(entry.status.load(Ordering::Relaxed));
        assert!(!matches!(status, Status::Validating(_)), "a transaction ends undecided, as {status:?}");
        // TXN-3: the incarnation first, so that the next owner is never mistaken for this one.
        entry.incarnation.store(0, Ordering::Release);
        entry.begin.store(0, Ordering::SeqCst);
        self.leave(id.level);
    }

    /// Returns the ordinal of the next transaction to begin.
    pub(crate) fn next_ordinal(&self) -> u64 {
        self.next_ordinal.load(Ordering::SeqCst)
    }

    /// Returns an ordinal below which no transaction is running or will begin. `next` is a result of
    /// [`StatusTable::next_ordinal`] from before. So it tells which transactions may still be running, whatever
    /// timestamp they read at.
    pub(crate) fn oldest_ordinal(&self, next: u64) -> u64 {
        self.reading().map(|(_, incarnation)| incarnation >> EXPIRY_BITS).fold(next, u64::min)
    }

    /// The entries of the levels that have a transaction.
    fn entries(&self) -> impl Iterator<Item = (EntryId, &StatusEntry)> {
        let levels = self.level_count.load(Ordering::SeqCst) as usize;
        let is_used = |level: &usize| *level == 0 || self.used[*level].load(Ordering::SeqCst) > 0;
        let there = (0..levels).filter(is_used).filter_map(|level| Some((level, self.levels[level].get()?)));
        there.flat_map(|(level, entries)| {
            entries.iter().enumerate().map(move |(at, entry)| (EntryId { level, at }, &**entry))
        })
    }

    /// The entries in use, with their begins.
    fn running(&self) -> impl Iterator<Item = (Begin, &StatusEntry)> {
        self.entries().filter_map(|(_, entry)| Some((Begin::from_word(entry.begin.load(Ordering::SeqCst))?, entry)))
    }

    /// Begin and incarnation of the transactions whose snapshots hold collection back.
    fn reading(&self) -> impl Iterator<Item = (Begin, u64)> {
        // Begin first, incarnation second, the reverse of `release`: a `Forgotten` incarnation never belongs to the
        // predecessor of the transaction whose begin was read.
        let running = self.running().map(|(begin, entry)| (begin, entry.incarnation.load(Ordering::Acquire)));
        running.filter(|&(_, incarnation)| !is_in(incarnation, ExpiryState::Forgotten))
    }

    /// Returns the number of running transactions.
    pub(crate) fn count(&self) -> usize {
        self.running().count()
    }

    /// Returns a timestamp below which no running or future transaction reads (TXN-2).
    pub(crate) fn oldest(&self, recent: &RecentCommits) -> u64 {
        // A read-only transaction may begin at the last durable timestamp, which may be below the watermark (TXN-16).
        let readable = recent.readable();
        self.reading().map(|(begin, _)| begin.ts).fold(readable, u64::min)
    }

    /// Returns a timestamp below which no running or future transaction that is validated reads.
    pub(crate) fn oldest_validated(&self, recent: &RecentCommits) -> u64 {
        // TXN-2: the watermark first, the entries second.
        let stable = recent.stable();
        self.reading().filter(|(begin, _)| begin.is_validated).map(|(begin, _)| begin.ts).fold(stable, u64::min)
    }

    /// Returns when the oldest transaction began whose snapshot holds collection back.
    pub(crate) fn oldest_began_ms(&self) -> Option<u64> {
        let reading = self.running().filter(|(_, entry)| {
            let incarnation = entry.incarnation.load(Ordering::Acquire);
            incarnation != 0 && !is_in(incarnation, ExpiryState::Forgotten)
        });
        reading.map(|(_, entry)| entry.began_ms.load(Ordering::Relaxed)).min()
    }

    // --- Expiry -------------------------------------------------------------------------------------

    /// Expires the transactions that began before a time. Calls that begin after this are refused. Calls that are under
    /// way are over after a grace period of the store's epochs.
    pub(crate) fn expire(&self, began_before_ms: u64) -> ExpiredEntries {
        let expired = self.entries().filter_map(|(id, entry)| {
            let live = entry.incarnation.load(Ordering::Acquire);
            // TXN-3: the time belongs to this incarnation or to a later one, for which the exchange fails.
            if live == 0 || !is_in(live, ExpiryState::Live) || entry.began_ms.load(Ordering::Relaxed) >= began_before_ms
            {
                return None;
            }
            let word = incarnation(live >> EXPIRY_BITS, ExpiryState::Expired);
            // SeqCst: before the grace period begins. Pairs with the fence of the pin under which `is_expired` looks.
            entry
                .incarnation
                .compare_exchange(live, word, Ordering::SeqCst, Ordering::Relaxed)
                .is_ok()
                .then_some((id, word))
        });
        expired.collect()
    }

    /// Leaves expired transactions out of the oldest snapshot. The caller has waited for a grace period since
    /// [`StatusTable::expire`] (TXN-17).
    pub(crate) fn forget(&self, expired: &ExpiredEntries) {
        for &(id, word) in expired {
            assert!(is_in(word, ExpiryState::Expired));
            let forgotten = incarnation(word >> EXPIRY_BITS, ExpiryState::Forgotten);
            let exchanged =
                self.entry(id).incarnation.compare_exchange(word, forgotten, Ordering::SeqCst, Ordering::Relaxed);
            // TXN-3: fails for a transaction that has ended since.
            if let Err(found) = exchanged {
                let is_same = found >> EXPIRY_BITS == word >> EXPIRY_BITS;
                assert!(!is_same || is_in(found, ExpiryState::Forgotten), "an expired transaction was protected");
            }
        }
    }

    /// Returns true if a transaction may read no more. The caller holds the pin of the read.
    pub(crate) fn is_expired(&self, of: &Registration) -> bool {
        let incarnation = self.entry(of.entry).incarnation.load(Ordering::Acquire);
        // TXN-3: it owns the entry until it ends.
        debug_assert_eq!(incarnation >> EXPIRY_BITS, of.ordinal, "the entry has another owner");
        is_in(incarnation, ExpiryState::Expired) || is_in(incarnation, ExpiryState::Forgotten)
    }

    /// Protects a transaction from expiry. Returns false if it has expired.
    pub(crate) fn protect(&self, of: &Registration) -> bool {
        let (live, kept) =
            (incarnation(of.ordinal, ExpiryState::Live), incarnation(of.ordinal, ExpiryState::Protected));
        match self.entry(of.entry).incarnation.compare_exchange(live, kept, Ordering::SeqCst, Ordering::Acquire) {
            Ok(_) => true,
            Err(found) => {
                assert_eq!(found >> EXPIRY_BITS, of.ordinal, "the entry has another owner");
                found == kept
            }
        }
    }
}

/// Decides about claims for one read at a later timestamp, and collects the validating transactions that the read
/// relied on.
#[derive(Debug)]
pub(crate) struct ClaimStatusAt<'a> {
    table: &'a StatusTable,
    relied_on: Mutex<Vec<u64>, rank::PreReadReliance>,
}

impl<'a> ClaimStatusAt<'a> {
    pub(crate) fn new(table: &'a StatusTable) -> Self {
        ClaimStatusAt { table, relied_on: Mutex::new(Vec::new()) }
    }

    /// Returns the commit timestamps of the validating transactions that the read took for committed.
    pub(crate) fn relied_on(self) -> Vec<u64> {
        self.relied_on.into_inner()
    }
}

impl ClaimStatus for ClaimStatusAt<'_> {
    // A running transaction will draw a timestamp later than every `read_ts` that existed before it was looked up. A
    // transaction with a timestamp up to `read_ts` has written everything it will write, because `read_ts` is a
    // timestamp that had been published.
    fn has_happened(&self, txn: u64, read_ts: u64) -> Option<bool> {
        Some(match self.table.status_of(txn)? {
            Status::Running | Status::Aborted => false,
            Status::Committed(ts) => ts <= read_ts,
            Status::Validating(ts) => {
                if ts <= read_ts {
                    self.relied_on.lock().push(ts);
                }
                ts <= read_ts
            }
        })
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;
    use crate::recent::RecentOptions;

    fn parts() -> (StatusTable, RecentCommits) {
        (StatusTable::new(), RecentCommits::resuming(RecentOptions::default(), 0))
    }

    #[test]
    fn the_table_grows_and_slots_come_back() {
        let (table, recent) = parts();
        let all: Vec<Registration> = (0..1_000).map(|_| table.register(&recent, 0, true)).collect();
        assert_eq!(table.count(), 1_000);
        for one in &all {
            let id = EntryId::from_number(one.entry.number());
            assert_eq!((id.level, id.at), (one.entry.level, one.entry.at));
            assert_eq!(table.status_of(one.number), Some(Status::Running));
        }
        assert!(table.entries().count() >= 1_000);
        all.iter().for_each(|one| table.release(one.entry));
        assert_eq!(table.count(), 0);
    }

    #[test]
    fn a_burst_of_transactions_leaves_few_slots_to_look_at() {
        let (table, recent) = parts();
        let all: Vec<Registration> = (0..20_000).map(|_| table.register(&recent, 0, true)).collect();
        let last = all.last().unwrap().entry;
        all[..19_999].iter().for_each(|one| table.release(one.entry));
        assert!(last.level > 5, "{last:?}");
        let looked_at = FIRST_ENTRIES + table.level(last.level).len();
        assert_eq!((table.entries().count(), table.count()), (looked_at, 1));
        table.release(last);
        assert_eq!((table.entries().count(), table.count()), (FIRST_ENTRIES, 0));
    }

    #[test]
    fn the_oldest_snapshot_holds_the_bound() {
        let (table, recent) = parts();
        recent.draw_empty();
        let old = table.register(&recent, 0, true);
        recent.draw_empty();
        let new = table.register(&recent, 0, true);
        assert_eq!((old.begin_ts, new.begin_ts, table.oldest(&recent)), (1, 2, 1));
        table.release(old.entry);
        assert_eq!(table.oldest(&recent), 2);
        table.release(new.entry);
    }

    #[test]
    fn only_those_that_are_validated_hold_the_bound_of_write_sets() {
        let (table, recent) = parts();
        let reader = table.register_reader(&recent, 0);
        let snapshot = table.register(&recent, 0, false);
        recent.draw_empty();
        let serializable = table.register(&recent, 0, true);
        recent.draw_empty();
        assert_eq!((table.oldest(&recent), table.oldest_validated(&recent)), (0, 1));
        [reader, snapshot, serializable].iter().for_each(|one| table.release(one.entry));
        assert_eq!((table.oldest(&recent), table.oldest_validated(&recent)), (2, 2));
    }

    #[test]
    fn an_expired_transaction_holds_nothing_back_once_it_is_forgotten() {
        let (table, recent) = parts();
        let old = table.register(&recent, 10, true);
        let kept = table.register(&recent, 10, true);
        assert!(table.protect(&kept) && table.protect(&kept));
        recent.draw_empty();
        let young = table.register(&recent, 20, true);
        let expired = table.expire(20);
        assert_eq!((expired.len(), table.expire(20).len()), (1, 0), "once, and neither the young nor the kept one");
        assert!(table.is_expired(&old) && !table.is_expired(&kept) && !table.is_expired(&young));
        assert!(!table.protect(&old));
        table.release(kept.entry);
        assert_eq!((table.oldest(&recent), table.oldest_began_ms()), (0, Some(10)), "calls may be under way");
        table.forget(&expired);
        assert_eq!((table.oldest(&recent), table.oldest_began_ms(), table.count()), (1, Some(20), 2));
        assert_eq!(table.oldest_ordinal(table.next_ordinal()), young.ordinal);
        // The next owner of the entry inherits nothing.
        table.release(old.entry);
        let others: Vec<Registration> = (0..FIRST_ENTRIES).map(|_| table.register(&recent, 20, true)).collect();
        table.forget(&expired);
        assert!(others.iter().all(|other| !table.is_expired(other)));
    }

    #[test]
    fn a_claim_leads_to_its_owner_until_the_slot_is_used_again() {
        let (table, recent) = parts();
        let one = table.register(&recent, 0, true);
        table.set(one.entry, Status::Validating(7));
        assert_eq!(table.status_of(one.number), Some(Status::Validating(7)));
        table.set(one.entry, Status::Committed(7));
        table.release(one.entry);
        assert_eq!(table.status_of(one.number), Some(Status::Committed(7)), "late look-ups are answered");
        let others: Vec<Registration> = (0..FIRST_ENTRIES).map(|_| table.register(&recent, 0, true)).collect();
        assert_eq!(table.status_of(one.number), None);
        assert!(others.iter().all(|other| other.number != one.number && other.number != 0));
    }
}
