//! The transaction status table (TST): the running transactions, what each is doing, and since when it reads.
//!
//! A transaction claims a slot *before* it reads the watermark, with the watermark it saw earlier as a lower
//! bound, and puts its begin timestamp there afterwards. So [`StatusTable::oldest`], which reads the watermark first
//! and the slots second, is never above the begin of any transaction, running or about to: what no snapshot at or
//! above it sees may be collected.
//!
//! A transaction's number is its slot and how often the slot was used before, so a claim in a version word leads to the
//! status of its owner without a search. Numbers come back only after 2^35 uses of a slot.
//!
//! Looking up ([`StatusTable::status_of`]) reads the slot's number, the status, and the number again. A new owner
//! stores 0 as number, then the status, then its number; so a status between two equal numbers is that transaction's,
//! though it may have changed meanwhile. A slot keeps number and status of its last owner until the next one comes:
//! whoever reads a claim and is slow to look it up is still answered right. When the number is another one, the claim
//! was replaced long ago, and the reader reads the version word again.
//!
//! A transaction that is older than the limit *expires* (`age` says when): its slot goes from [`Tenure::Live`] to
//! [`Tenure::Expired`], from where on its calls are refused, and after a grace period, when the calls that had begun
//! before are over, to [`Tenure::Forgotten`]: it is left out of [`StatusTable::oldest`]. The slot stays its own until it
//! ends, for its claims stay too. Who commits is [`Tenure::Kept`]: it goes on to its end. All of these are exchanges of
//! one word that names the transaction, so the next owner of a slot never inherits anything.
//!
//! Slots are claimed by compare-and-swap, from a start that differs by thread, so that a slot mostly stays in one core's
//! cache; the table doubles when it is full. It never shrinks, because a claim may lead to a slot at any time. Instead each
//! level but the first counts its transactions, and one without any is not looked at: after a burst of transactions
//! [`StatusTable::oldest`] costs what it cost before.

use std::sync::OnceLock;

use crossbeam_utils::CachePadded;
use mangrove_store::ClaimStatus;

use crate::recent::RecentCommits;
use crate::sync::{AtomicU64, Mutex, Ordering, thread_number, yield_now};

/// Under a model checker one, so that a few transactions make levels.
const FIRST_SLOTS: usize = if cfg!(feature = "model") { 1 } else { 64 };
/// So many levels that slots are numbered with 16 bits.
const LEVELS: usize = 10;
const PROBES: usize = 8;
const SLOT_BITS: u32 = 16;
const SEQUENCE_MASK: u64 = (1 << 35) - 1;

/// What a transaction is doing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Status {
    /// Reads and writes.
    Running,
    /// Has finished writing and drawn this commit timestamp; it may still be aborted.
    Validating(u64),
    /// Will be, or is, installed at this timestamp.
    Committed(u64),
    /// Will leave, or has left, nothing.
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
        match word & 3 {
            0 => Status::Running,
            1 => Status::Validating(word >> 2),
            2 => Status::Committed(word >> 2),
            _ => Status::Aborted,
        }
    }
}

/// Whether a transaction may go on reading, and whether what it sees is kept for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Tenure {
    /// Reads; may expire.
    Live = 0,
    /// Reads no more, but for calls that had begun before.
    Expired = 1,
    /// Reads no more.
    Forgotten = 2,
    /// Reads, and does not expire.
    Kept = 3,
}

const TENURE_BITS: u32 = 2;
const TENURE_MASK: u64 = (1 << TENURE_BITS) - 1;

/// The word of a transaction in its slot.
fn tenant(ordinal: u64, tenure: Tenure) -> u64 {
    ordinal << TENURE_BITS | tenure as u64
}

fn is(tenant: u64, tenure: Tenure) -> bool {
    tenant & TENURE_MASK == tenure as u64
}

/// What a slot says of its transaction's begin: the timestamp, and whether the transaction will be validated, so that write
/// sets since its begin are kept for it. Never 0. Both in one word: a slot's next owner never has only one of them.
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

#[derive(Debug, Default)]
struct Slot {
    /// 0 when free, else a [`Begin`].
    begin: AtomicU64,
    /// The number of the last transaction to use it.
    number: AtomicU64,
    status: AtomicU64,
    /// Which transaction it is, counted from the first, and its [`Tenure`]; 0 when free, and for a moment at the
    /// beginning.
    tenant: AtomicU64,
    /// When it began, by the manager's clock. Written before `tenant`.
    born: AtomicU64,
}

type Slots = Box<[CachePadded<Slot>]>;

/// See the module.
#[derive(Debug)]
pub(crate) struct StatusTable {
    /// Level `k` has `FIRST_SLOTS << k` slots.
    levels: [OnceLock<Slots>; LEVELS],
    level_count: AtomicU64,
    /// By level, how many transactions have a slot there, or look for one; not of the first level.
    used: [AtomicU64; LEVELS],
    /// Transactions are counted in the order in which they come to the table; from 1.
    next_ordinal: CachePadded<AtomicU64>,
}

/// A slot of the table; freed with [`StatusTable::release`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotId {
    level: usize,
    at: usize,
}

impl SlotId {
    /// The slots of the levels before come first.
    fn number(self) -> u64 {
        (FIRST_SLOTS * ((1 << self.level) - 1) + self.at) as u64
    }

    fn from_number(number: u64) -> Self {
        let position = number as usize + FIRST_SLOTS;
        let level = (position / FIRST_SLOTS).ilog2() as usize;
        SlotId { level, at: position - (FIRST_SLOTS << level) }
    }
}

/// A transaction as the table knows it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registration {
    pub(crate) slot: SlotId,
    /// What the transaction's claims carry; not 0.
    pub(crate) number: u64,
    pub(crate) begin_ts: u64,
    ordinal: u64,
}

/// Transactions that were found too old, with their slots' words.
pub(crate) type Expired = Vec<(SlotId, u64)>;

impl StatusTable {
    pub(crate) fn new() -> Self {
        StatusTable {
            levels: [const { OnceLock::new() }; LEVELS],
            level_count: AtomicU64::new(1),
            used: [const { AtomicU64::new(0) }; LEVELS],
            next_ordinal: CachePadded::new(AtomicU64::new(1)),
        }
    }

    fn level(&self, level: usize) -> &Slots {
        self.levels[level].get_or_init(|| (0..FIRST_SLOTS << level).map(|_| CachePadded::default()).collect())
    }

    fn slot(&self, id: SlotId) -> &Slot {
        &self.level(id.level)[id.at]
    }

    /// Registers a transaction that begins now, which is `born` by the clock, and reads at the watermark. Write sets are kept
    /// for one that will be validated.
    pub(crate) fn register(&self, recent: &RecentCommits, born: u64, is_validated: bool) -> Registration {
        self.register_at(|| recent.stable(), born, is_validated)
    }

    /// As [`StatusTable::register`], for one that only reads.
    pub(crate) fn register_reader(&self, recent: &RecentCommits, born: u64) -> Registration {
        self.register_at(|| recent.readable(), born, false)
    }

    /// Registers a transaction that reads at what `begin` says: a number that never falls.
    fn register_at(&self, begin: impl Fn() -> u64, born: u64, is_validated: bool) -> Registration {
        let word = |ts| Begin { ts, is_validated }.to_word();
        let lower_bound = begin();
        let id = self.claim(thread_number(), word(lower_bound));
        let slot = self.slot(id);
        // After the slot is claimed: whoever reads a larger `next_ordinal` (Acquire) finds the slot in use. Until its tenant
        // is there the slot counts as that of the oldest transaction of all.
        let ordinal = self.next_ordinal.fetch_add(1, Ordering::AcqRel);
        slot.born.store(born, Ordering::Relaxed);
        slot.tenant.store(tenant(ordinal, Tenure::Live), Ordering::Release);
        let number = Self::next_number(slot.number.load(Ordering::Relaxed), id);
        // The order that `status_of` counts on.
        slot.number.store(0, Ordering::Relaxed);
        slot.status.store(Status::Running.to_word(), Ordering::Release);
        slot.number.store(number, Ordering::Release);
        let begin_ts = begin();
        if begin_ts != lower_bound {
            slot.begin.store(word(begin_ts), Ordering::SeqCst);
        }
        Registration { slot: id, number, begin_ts, ordinal }
    }

    fn next_number(last: u64, id: SlotId) -> u64 {
        let sequence = ((last >> SLOT_BITS) + 1) & SEQUENCE_MASK;
        sequence.max(1) << SLOT_BITS | id.number()
    }

    fn claim(&self, start: usize, word: u64) -> SlotId {
        loop {
            let count = self.level_count.load(Ordering::Acquire) as usize;
            for level in 0..count {
                if let Some(at) = self.claim_in(level, level + 1 == count, start, word) {
                    return SlotId { level, at };
                }
            }
            if count < LEVELS {
                let (old, new) = (count as u64, count as u64 + 1);
                // Losing the race means that another thread added a level.
                let _ = self.level_count.compare_exchange(old, new, Ordering::AcqRel, Ordering::Acquire);
            } else {
                yield_now();
            }
        }
    }

    /// Claims a slot of a level: any of the last level, one of a few of the others.
    fn claim_in(&self, level: usize, is_last: bool, start: usize, word: u64) -> Option<usize> {
        let slots = self.level(level);
        if level > 0 {
            // SeqCst, as the exchange below, and for the same reason: who looks at the watermark, and then finds no
            // transaction in the level, looked before the begin is read.
            self.used[level].fetch_add(1, Ordering::SeqCst);
        }
        let probes = if is_last { slots.len() } else { PROBES.min(slots.len()) };
        for at in (0..probes).map(|i| (start + i) % slots.len()) {
            // SeqCst: published before the watermark is read again. Acquire: the last owner's number.
            if slots[at].begin.load(Ordering::Relaxed) == 0
                && slots[at].begin.compare_exchange(0, word, Ordering::SeqCst, Ordering::Relaxed).is_ok()
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

    /// Says what the transaction in a slot is doing now.
    pub(crate) fn set(&self, id: SlotId, status: Status) {
        // Release: whoever sees the status sees what the transaction wrote before.
        self.slot(id).status.store(status.to_word(), Ordering::Release);
    }

    /// What the transaction of a claim is doing; `None` when its slot has another owner by now.
    pub(crate) fn status_of(&self, number: u64) -> Option<Status> {
        let id = SlotId::from_number(number & ((1 << SLOT_BITS) - 1));
        let slot = self.levels.get(id.level)?.get()?.get(id.at)?;
        // Acquire, all three: they must not pass one another; their partners are the stores in `register`.
        let before = slot.number.load(Ordering::Acquire);
        let word = slot.status.load(Ordering::Acquire);
        let after = slot.number.load(Ordering::Acquire);
        (before == number && after == number).then(|| Status::from_word(word))
    }

    /// Says that the transaction in the slot is over.
    pub(crate) fn release(&self, id: SlotId) {
        let slot = self.slot(id);
        // The tenant first: the slot's next owner is never mistaken for this one.
        slot.tenant.store(0, Ordering::Release);
        slot.begin.store(0, Ordering::SeqCst);
        self.leave(id.level);
    }

    /// The ordinal of the next transaction to begin.
    pub(crate) fn next_ordinal(&self) -> u64 {
        self.next_ordinal.load(Ordering::SeqCst)
    }

    /// No transaction that runs, or begins later, has an ordinal below this; `next` is what
    /// [`StatusTable::next_ordinal`] said before. So it says which transactions may still be running, whatever they
    /// read at.
    pub(crate) fn oldest_ordinal(&self, next: u64) -> u64 {
        self.reading().map(|(_, tenant)| tenant >> TENURE_BITS).fold(next, u64::min)
    }

    /// The slots of the levels that have a transaction.
    fn slots(&self) -> impl Iterator<Item = (SlotId, &Slot)> {
        let levels = self.level_count.load(Ordering::SeqCst) as usize;
        let is_used = |level: &usize| *level == 0 || self.used[*level].load(Ordering::SeqCst) > 0;
        let there = (0..levels).filter(is_used).filter_map(|level| Some((level, self.levels[level].get()?)));
        there.flat_map(|(level, slots)| slots.iter().enumerate().map(move |(at, slot)| (SlotId { level, at }, &**slot)))
    }

    /// The slots in use, with their begins.
    fn running(&self) -> impl Iterator<Item = (Begin, &Slot)> {
        self.slots().filter_map(|(_, slot)| Some((Begin::from_word(slot.begin.load(Ordering::SeqCst))?, slot)))
    }

    /// Begin and tenant of those for whom something is kept.
    fn reading(&self) -> impl Iterator<Item = (Begin, u64)> {
        // Begin first, tenant second, the reverse of `release`: a forgotten tenant is never the predecessor of the one
        // whose begin was read.
        let running = self.running().map(|(begin, slot)| (begin, slot.tenant.load(Ordering::Acquire)));
        running.filter(|&(_, tenant)| !is(tenant, Tenure::Forgotten))
    }

    /// How many transactions are running.
    pub(crate) fn count(&self) -> usize {
        self.running().count()
    }

    /// No running or future transaction has a begin timestamp below this.
    pub(crate) fn oldest(&self, recent: &RecentCommits) -> u64 {
        // A reader may begin at what is durable, which is behind.
        let readable = recent.readable();
        self.reading().map(|(begin, _)| begin.ts).fold(readable, u64::min)
    }

    /// No running or future transaction that is validated has a begin timestamp below this.
    pub(crate) fn oldest_validated(&self, recent: &RecentCommits) -> u64 {
        // The watermark first, the slots second, as in `oldest`.
        let stable = recent.stable();
        self.reading().filter(|(begin, _)| begin.is_validated).map(|(begin, _)| begin.ts).fold(stable, u64::min)
    }

    /// When the oldest transaction began for which something is kept.
    pub(crate) fn oldest_born(&self) -> Option<u64> {
        let reading = self.running().filter(|(_, slot)| {
            let tenant = slot.tenant.load(Ordering::Acquire);
            tenant != 0 && !is(tenant, Tenure::Forgotten)
        });
        reading.map(|(_, slot)| slot.born.load(Ordering::Relaxed)).min()
    }

    // --- Expiry -------------------------------------------------------------------------------------

    /// Expires the transactions that began before a time. Calls that begin from now on are refused; those that are
    /// under way are over after a grace period (of the store's `epoch`).
    pub(crate) fn expire(&self, born_before: u64) -> Expired {
        let expired = self.slots().filter_map(|(id, slot)| {
            let live = slot.tenant.load(Ordering::Acquire);
            // The time belongs to this tenant or to a later one, for whom the exchange fails.
            if live == 0 || !is(live, Tenure::Live) || slot.born.load(Ordering::Relaxed) >= born_before {
                return None;
            }
            let word = tenant(live >> TENURE_BITS, Tenure::Expired);
            // SeqCst: before the grace period begins. Pairs with the fence of the pin under which `is_expired` asks.
            slot.tenant.compare_exchange(live, word, Ordering::SeqCst, Ordering::Relaxed).is_ok().then_some((id, word))
        });
        expired.collect()
    }

    /// Leaves expired transactions out of account. A grace period must have passed since [`StatusTable::expire`].
    pub(crate) fn forget(&self, expired: &Expired) {
        for &(id, word) in expired {
            let forgotten = tenant(word >> TENURE_BITS, Tenure::Forgotten);
            // Fails for one that has ended meanwhile.
            let _ = self.slot(id).tenant.compare_exchange(word, forgotten, Ordering::SeqCst, Ordering::Relaxed);
        }
    }

    /// Whether a transaction may read no more. To be asked under the pin that the read will be under.
    pub(crate) fn is_expired(&self, of: &Registration) -> bool {
        let tenant = self.slot(of.slot).tenant.load(Ordering::Acquire);
        is(tenant, Tenure::Expired) || is(tenant, Tenure::Forgotten)
    }

    /// Keeps a transaction from expiring; false if it has expired.
    pub(crate) fn keep(&self, of: &Registration) -> bool {
        let (live, kept) = (tenant(of.ordinal, Tenure::Live), tenant(of.ordinal, Tenure::Kept));
        match self.slot(of.slot).tenant.compare_exchange(live, kept, Ordering::SeqCst, Ordering::Acquire) {
            Ok(_) => true,
            Err(found) => found == kept,
        }
    }
}

/// The status of claims for one read as of a later moment; keeps which validators the read has relied on.
#[derive(Debug)]
pub(crate) struct StatusAt<'a> {
    table: &'a StatusTable,
    relied_on: Mutex<Vec<u64>>,
}

impl<'a> StatusAt<'a> {
    pub(crate) fn new(table: &'a StatusTable) -> Self {
        StatusAt { table, relied_on: Mutex::new(Vec::new()) }
    }

    /// The commit timestamps of transactions that were validating when they were taken for committed.
    pub(crate) fn relied_on(self) -> Vec<u64> {
        self.relied_on.into_inner()
    }
}

impl ClaimStatus for StatusAt<'_> {
    // A transaction that runs will draw a timestamp later than any moment there was before it was looked up. One
    // with a timestamp up to the moment has written all it will ever write, for the moment is a timestamp that had been
    // published before.
    fn has_happened(&self, txn: u64, moment: u64) -> Option<bool> {
        Some(match self.table.status_of(txn)? {
            Status::Running | Status::Aborted => false,
            Status::Committed(ts) => ts <= moment,
            Status::Validating(ts) => {
                if ts <= moment {
                    self.relied_on.lock().push(ts);
                }
                ts <= moment
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
            let id = SlotId::from_number(one.slot.number());
            assert_eq!((id.level, id.at), (one.slot.level, one.slot.at));
            assert_eq!(table.status_of(one.number), Some(Status::Running));
        }
        assert!(table.slots().count() >= 1_000);
        all.iter().for_each(|one| table.release(one.slot));
        assert_eq!(table.count(), 0);
    }

    #[test]
    fn a_burst_of_transactions_leaves_few_slots_to_look_at() {
        let (table, recent) = parts();
        let all: Vec<Registration> = (0..20_000).map(|_| table.register(&recent, 0, true)).collect();
        let last = all.last().unwrap().slot;
        all[..19_999].iter().for_each(|one| table.release(one.slot));
        assert!(last.level > 5, "{last:?}");
        let looked_at = FIRST_SLOTS + table.level(last.level).len();
        assert_eq!((table.slots().count(), table.count()), (looked_at, 1));
        table.release(last);
        assert_eq!((table.slots().count(), table.count()), (FIRST_SLOTS, 0));
    }

    #[test]
    fn the_oldest_snapshot_holds_the_bound() {
        let (table, recent) = parts();
        recent.draw_empty();
        let old = table.register(&recent, 0, true);
        recent.draw_empty();
        let new = table.register(&recent, 0, true);
        assert_eq!((old.begin_ts, new.begin_ts, table.oldest(&recent)), (1, 2, 1));
        table.release(old.slot);
        assert_eq!(table.oldest(&recent), 2);
        table.release(new.slot);
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
        [reader, snapshot, serializable].iter().for_each(|one| table.release(one.slot));
        assert_eq!((table.oldest(&recent), table.oldest_validated(&recent)), (2, 2));
    }

    #[test]
    fn an_expired_transaction_holds_nothing_back_once_it_is_forgotten() {
        let (table, recent) = parts();
        let old = table.register(&recent, 10, true);
        let kept = table.register(&recent, 10, true);
        assert!(table.keep(&kept) && table.keep(&kept));
        recent.draw_empty();
        let young = table.register(&recent, 20, true);
        let expired = table.expire(20);
        assert_eq!((expired.len(), table.expire(20).len()), (1, 0), "once, and neither the young nor the kept one");
        assert!(table.is_expired(&old) && !table.is_expired(&kept) && !table.is_expired(&young));
        assert!(!table.keep(&old));
        table.release(kept.slot);
        assert_eq!((table.oldest(&recent), table.oldest_born()), (0, Some(10)), "calls may be under way");
        table.forget(&expired);
        assert_eq!((table.oldest(&recent), table.oldest_born(), table.count()), (1, Some(20), 2));
        assert_eq!(table.oldest_ordinal(table.next_ordinal()), young.ordinal);
        // The slot's next owner has a life of its own.
        table.release(old.slot);
        let others: Vec<Registration> = (0..FIRST_SLOTS).map(|_| table.register(&recent, 20, true)).collect();
        table.forget(&expired);
        assert!(others.iter().all(|other| !table.is_expired(other)));
    }

    #[test]
    fn a_claim_leads_to_its_owner_until_the_slot_is_used_again() {
        let (table, recent) = parts();
        let one = table.register(&recent, 0, true);
        table.set(one.slot, Status::Validating(7));
        assert_eq!(table.status_of(one.number), Some(Status::Validating(7)));
        table.set(one.slot, Status::Committed(7));
        table.release(one.slot);
        assert_eq!(table.status_of(one.number), Some(Status::Committed(7)), "late look-ups are answered");
        let others: Vec<Registration> = (0..FIRST_SLOTS).map(|_| table.register(&recent, 0, true)).collect();
        assert_eq!(table.status_of(one.number), None);
        assert!(others.iter().all(|other| other.number != one.number && other.number != 0));
    }
}
