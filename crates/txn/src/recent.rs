//! The table of recent commits (RCT): the clock, the write sets and outcomes of validating transactions, and the stable
//! watermark.
//!
//! Commit timestamps are 1, 2, 3, … (0 is the bulk-loaded base). *Entering validation* is one ordered step under a
//! short lock: the timestamp is drawn, the transaction's status becomes validating, its write set goes into the ring
//! entry of the timestamp, and the clock moves on. So a thread that reads the clock can look up the write set and the
//! status of everything up to it.
//!
//! ```text
//!  entry of the ring:  drawn ──▶ decided: committed or aborted ──▶ finished: the store shows it ──▶ moved to the history
//!                        │                    │                          │
//!                      clock ≥ ts        outcome is final        the watermark may pass ts
//! ```
//!
//! The watermark is the largest timestamp at or below which all are finished. Every thread that finishes, or waits,
//! helps to advance it, so progress does not depend on one thread.
//!
//! - **TXN-4.** Status and write set of every timestamp up to the clock can be looked up, unless the look-up says that
//!   they are gone. The watermark is at or below the clock, and both only grow.
//! - **TXN-5.** Every timestamp drawn is decided and then finished, during a panic too. An unfinished timestamp would
//!   stop the watermark for good.
//! - **TXN-6.** The timestamp one round later takes a ring entry over only when the watermark has passed the entry's
//!   timestamp and the history has its content. A transaction that is a whole round ahead waits *before* it draws,
//!   without a lock; the transactions it waits for have timestamps already. Or it moves old entries into the history
//!   itself.
//!
//! *Memory.* The write sets of ring and history together stay below a limit. Write sets that no running serializable
//! transaction is old enough to need are dropped first. If that is not enough, the oldest are dropped, and a validator
//! that needs one of them aborts as too old. *Trimming* does both, and moves entries into the history long before their
//! places are needed. Every few hundred commits one committer trims, under a lock that other committers skip.
//!
//! An entry's words are read as with a sequence lock: timestamp, content, timestamp again. For most entries a validator
//! only compares signatures.

use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use mangrove_locks::rank;

use crate::access_set::{MergedWrites, NewestNames, Signature, WriteSet};
use crate::history::{History, HistoryBlock};
use crate::outcome::Outcome;
use crate::sync::{AtomicU64, Backoff, Mutex, Ordering, fence};

/// How recent commits are kept.
#[derive(Clone, Copy, Debug)]
pub struct RecentOptions {
    /// Commits that the ring holds one by one; at least 2.
    pub entries: usize,
    /// A commit's write set moves into the history when this many commits have followed it; less than `entries`.
    pub merge_after: usize,
}

impl Default for RecentOptions {
    fn default() -> Self {
        RecentOptions { entries: 1 << 16, merge_after: 1 << 15 }
    }
}

impl RecentOptions {
    /// A small ring, which a few commits fill, for tests.
    #[doc(hidden)]
    pub fn small(entries: usize) -> Self {
        RecentOptions { entries, merge_after: entries / 2 }
    }
}

/// Entries that are allocated together, so that a small graph does not pay for the whole ring.
const CHUNK: usize = 1 << 10;
/// Commits between two trims of the ring. A block of the history starts with this many.
const TRIM_EVERY: u64 = 256;

/// Set in an entry's word when the store shows the outcome.
const FINISHED: u64 = 4;
const TS_SHIFT: u32 = 3;

/// The result of a validator's look-up of a timestamp.
#[derive(Debug)]
pub(crate) enum RingLookup {
    /// No write set that could matter.
    Nothing,
    /// A write set to be compared, and its outcome so far.
    Writes(Arc<WriteSet>, Outcome),
    /// The entry has another timestamp. The write set is in the history, or forgotten.
    NotInRing,
}

/// The entry of one timestamp. Its word is written last and read first and last (sequence lock).
#[derive(Debug, Default)]
struct RingEntry {
    /// The timestamp, the flag [`FINISHED`] and the outcome; 0 while the entry is taken over.
    word: AtomicU64,
    /// The summary of the write set: its [`Signature`] and its [`NewestNames`].
    signature: [AtomicU64; 4],
    newest: [AtomicU64; 2],
    writes: Mutex<Option<Arc<WriteSet>>, rank::RingEntry>,
}

impl RingEntry {
    fn is_of(word: u64, ts: u64) -> bool {
        word >> TS_SHIFT == ts
    }

    /// Takes the entry over for a timestamp. Returns the write set that was there.
    fn publish(&self, ts: u64, writes: Arc<WriteSet>) -> Option<Arc<WriteSet>> {
        let mut kept = self.writes.lock();
        // Release: a reader that finds the entry taken over looks into the history, which had the content before
        // `enter` came here.
        self.word.store(0, Ordering::Release);
        // A reader that sees any of the words below sees another timestamp when it reads `word` again (`look_up`).
        fence(Ordering::Release);
        let words = self.signature.iter().chain(&self.newest);
        for (word, bits) in words.zip(writes.signature().0.into_iter().chain(writes.newest().to_bits())) {
            word.store(bits, Ordering::Relaxed);
        }
        let before = kept.replace(writes);
        self.word.store(ts << TS_SHIFT, Ordering::Release);
        before
    }

    fn summary(&self) -> (Signature, NewestNames) {
        let signature = Signature(std::array::from_fn(|i| self.signature[i].load(Ordering::Relaxed)));
        (signature, NewestNames::from_bits([0, 1].map(|i| self.newest[i].load(Ordering::Relaxed))))
    }
}

/// The clock, the ring, the history and the watermarks of one graph.
#[derive(Debug)]
pub(crate) struct RecentCommits {
    /// The last timestamp drawn. Everything up to it is published.
    clock: CachePadded<AtomicU64>,
    /// The stable watermark.
    stable: CachePadded<AtomicU64>,
    /// Every commit up to here is durable. `u64::MAX` if there is no log, so that it holds no reader back.
    durable: CachePadded<AtomicU64>,
    /// Held during the ordered step.
    order: CachePadded<Mutex<(), rank::EnterValidation>>,
    ring: Box<[OnceLock<Box<[RingEntry]>>]>,
    options: RecentOptions,
    /// Bytes of the write sets in the ring.
    bytes: CachePadded<AtomicU64>,
    history: History,
    /// Locked while the ring is trimmed.
    trimmed: Mutex<Trimmed, rank::RingTrimming>,
}

/// How far the ring has been trimmed.
#[derive(Debug)]
struct Trimmed {
    /// Write sets up to this timestamp are not in the ring.
    last: u64,
}

impl RecentCommits {
    /// Recent commits after `last`: no timestamp after it is drawn, and every timestamp up to it is stable.
    pub(crate) fn resuming(options: RecentOptions, last: u64) -> Self {
        let entries = options.entries.max(2);
        let merge_after = options.merge_after.min(entries - 1);
        RecentCommits {
            clock: CachePadded::new(AtomicU64::new(last)),
            stable: CachePadded::new(AtomicU64::new(last)),
            durable: CachePadded::new(AtomicU64::new(u64::MAX)),
            order: CachePadded::new(Mutex::new(())),
            ring: (0..entries.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            options: RecentOptions { entries, merge_after },
            bytes: CachePadded::default(),
            history: History::after(last),
            trimmed: Mutex::new(Trimmed { last }),
        }
    }

    /// The stable watermark.
    #[inline]
    pub(crate) fn stable(&self) -> u64 {
        // SeqCst: a begin publishes its entry before it reads this (TXN-2). Acquire would do to see what the commits up
        // to here installed; its partner is the compare-and-swap in `advance`.
        self.stable.load(Ordering::SeqCst)
    }

    /// The timestamp that a read-only transaction reads at if it begins now: the watermark or, if there is a log and
    /// that is lower, the last durable timestamp.
    #[inline]
    pub(crate) fn readable(&self) -> u64 {
        // SeqCst, both, as in `stable`. Neither falls, so their minimum does not.
        self.durable.load(Ordering::SeqCst).min(self.stable())
    }

    /// Publishes that every commit up to `ts` is durable (TXN-15).
    pub(crate) fn set_durable(&self, ts: u64) {
        assert!(ts <= self.stable(), "commit {ts} cannot be durable before the watermark has passed it");
        let before = self.durable.swap(ts, Ordering::SeqCst);
        // TXN-15. (Before the log is known it is `u64::MAX`.)
        assert!(before == u64::MAX || before <= ts, "durable fell from {before} to {ts}");
    }

    /// The last timestamp drawn. Write set and status of everything up to it can be looked up (TXN-4).
    #[inline]
    pub(crate) fn published(&self) -> u64 {
        // Acquire: its partner is the store in `enter`.
        self.clock.load(Ordering::Acquire)
    }

    /// Bytes of all write sets that are kept, in the ring and in the history.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed) + self.history.bytes()
    }

    /// The write sets of the timestamps before the ring.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    fn entry(&self, ts: u64) -> &RingEntry {
        let at = ts as usize % self.options.entries;
        let chunk = self.ring[at / CHUNK].get_or_init(|| {
            let len = CHUNK.min(self.options.entries - at / CHUNK * CHUNK);
            (0..len).map(|_| RingEntry::default()).collect()
        });
        &chunk[at % CHUNK]
    }

    /// Draws a timestamp for a transaction that has finished writing. `drawn` is called with it inside the ordered
    /// step. `oldest` is called when the ring is full. It returns the begin of the oldest serializable transaction: no
    /// validator needs the write sets up to then.
    ///
    /// The caller must call [`RecentCommits::decide`] and then [`RecentCommits::finish`] (TXN-5).
    pub(crate) fn enter(&self, writes: Arc<WriteSet>, oldest: impl Fn() -> u64, drawn: impl FnOnce(u64)) -> u64 {
        let bytes = writes.bytes() as u64;
        let (ts, before) = loop {
            let turn = self.order.lock();
            let ts = self.clock.load(Ordering::Relaxed) + 1;
            let round = self.options.entries as u64;
            if self.stable() + round < ts {
                drop(turn);
                self.wait_for(ts - round);
                continue;
            }
            if self.history.merged() + round < ts {
                drop(turn);
                let oldest = oldest();
                self.move_to_history(&mut self.trimmed.lock(), ts - round, oldest);
                continue;
            }
            // TXN-6: the entry's last timestamp is one round back, finished, and in the history.
            debug_assert!(self.is_free_for(ts), "the entry of {ts} is in use");
            drawn(ts);
            let before = self.entry(ts).publish(ts, writes);
            // TXN-4. Release: a thread that sees the clock here sees the entry, the status, and all claims of the
            // transaction.
            self.clock.store(ts, Ordering::Release);
            debug_assert!(RingEntry::is_of(self.entry(ts).word.load(Ordering::Relaxed), ts));
            break (ts, before);
        };
        // The write set that was there is freed outside the lock.
        self.account(bytes, before);
        ts
    }

    /// Draws the timestamps up to `to` that were not drawn, as those of transactions that have aborted. `oldest` as for
    /// [`RecentCommits::enter`]. Only a follower, which alone draws timestamps, calls this.
    pub(crate) fn skip_to(&self, to: u64, oldest: impl Fn() -> u64) {
        let nothing = Arc::<WriteSet>::default();
        while self.published() < to {
            let ts = self.enter(nothing.clone(), &oldest, |_| ());
            self.decide(ts, Outcome::Aborted);
            self.finish(ts);
        }
    }

    /// Timestamps that a follower draws at most before it finishes one.
    pub(crate) fn span_max(&self) -> u64 {
        (self.options.entries as u64 / 2).max(1)
    }

    /// Draws the timestamps up to `to` that were not drawn, as those of transactions that have aborted, for a follower that
    /// finishes them after a later one ([`RecentCommits::finish_from_last`]). Returns the first.
    pub(crate) fn draw_aborted(&self, to: u64, oldest: impl Fn() -> u64) -> u64 {
        let (nothing, first) = (Arc::<WriteSet>::default(), self.published() + 1);
        for _ in first..=to {
            let ts = self.enter(nothing.clone(), &oldest, |_| ());
            self.decide(ts, Outcome::Aborted);
        }
        first
    }

    /// Finishes timestamps that follow the watermark, the first one last. So if the one after them is finished, the
    /// watermark passes all of them in one step (TXN-25).
    pub(crate) fn finish_from_last(&self, timestamps: std::ops::Range<u64>) {
        timestamps.rev().for_each(|ts| self.finish(ts));
    }

    /// Returns true if a timestamp may take its ring entry over (TXN-6).
    fn is_free_for(&self, ts: u64) -> bool {
        let word = self.entry(ts).word.load(Ordering::Acquire);
        let last = ts.saturating_sub(self.options.entries as u64);
        word == 0 || (RingEntry::is_of(word, last) && word & FINISHED != 0 && last <= self.history.merged())
    }

    fn account(&self, added: u64, removed: Option<Arc<WriteSet>>) {
        self.bytes.fetch_add(added, Ordering::Relaxed);
        if let Some(writes) = removed {
            self.bytes.fetch_sub(writes.bytes() as u64, Ordering::Relaxed);
        }
    }

    /// Publishes the outcome of a validating transaction. Its owner calls this once.
    pub(crate) fn decide(&self, ts: u64, outcome: Outcome) {
        assert_ne!(outcome, Outcome::Validating, "timestamp {ts} is decided one way or the other");
        let entry = self.entry(ts);
        // Only the owner changes the word between its publication and here.
        let before = entry.word.load(Ordering::Relaxed);
        assert_eq!(before, ts << TS_SHIFT | Outcome::Validating as u64, "timestamp {ts} is decided once");
        // Release: a thread that waits for the outcome sees all that the transaction did before.
        entry.word.store(ts << TS_SHIFT | outcome as u64, Ordering::Release);
        if outcome == Outcome::Aborted {
            let writes = entry.writes.lock().take();
            self.account(0, writes);
        }
        debug_assert_eq!(self.outcome(ts), Some(outcome));
    }

    /// Publishes that the store shows the outcome, and advances the watermark. Its owner calls this once, after
    /// `decide`.
    pub(crate) fn finish(&self, ts: u64) {
        // Release: its partner is the Acquire in `advance`.
        let before = self.entry(ts).word.fetch_or(FINISHED, Ordering::Release);
        assert!(RingEntry::is_of(before, ts) && before & FINISHED == 0, "timestamp {ts} is finished once");
        // TXN-5.
        assert_ne!(Outcome::of(before), Outcome::Validating, "timestamp {ts} is finished before it is decided");
        self.advance();
    }

    /// Returns the outcome of a timestamp; `None` if it is forgotten.
    pub(crate) fn outcome(&self, ts: u64) -> Option<Outcome> {
        let word = self.entry(ts).word.load(Ordering::Acquire);
        if RingEntry::is_of(word, ts) { Some(Outcome::of(word)) } else { self.history.outcome(ts) }
    }

    /// Waits until a timestamp is decided. It is lower than the caller's own timestamp, so waits form no circle
    /// (TXN-10).
    pub(crate) fn wait_for_outcome(&self, ts: u64) -> Option<Outcome> {
        let mut backoff = Backoff::default();
        loop {
            match self.outcome(ts) {
                Some(Outcome::Validating) => backoff.pause(),
                decided => return decided,
            }
        }
    }

    /// Waits until the store shows the outcome of a timestamp, and returns it; `None` if it is forgotten.
    pub(crate) fn wait_until_finished(&self, ts: u64) -> Option<Outcome> {
        let mut backoff = Backoff::default();
        loop {
            let word = self.entry(ts).word.load(Ordering::Acquire);
            if !RingEntry::is_of(word, ts) {
                // TXN-6: finished, or the entry would not have been taken over.
                return self.history.outcome(ts);
            }
            if word & FINISHED != 0 {
                return Some(Outcome::of(word));
            }
            backoff.pause();
        }
    }

    /// Waits until the watermark has reached `ts`, which must have been drawn.
    pub(crate) fn wait_for(&self, ts: u64) {
        let mut backoff = Backoff::default();
        while self.stable() < ts {
            self.advance();
            if self.stable() < ts {
                backoff.pause();
            }
        }
    }

    /// Moves the watermark over the finished timestamps that follow it, in one step.
    fn advance(&self) {
        let mut stable = self.stable.load(Ordering::Acquire);
        loop {
            let mut last = stable;
            // Acquire: it carries the installed writes on to every thread that reads the watermark.
            while let word = self.entry(last + 1).word.load(Ordering::Acquire)
                && RingEntry::is_of(word, last + 1)
                && word & FINISHED != 0
            {
                debug_assert_ne!(Outcome::of(word), Outcome::Validating, "the watermark passed an undecided commit");
                last += 1;
            }
            if last == stable {
                return;
            }
            match self.stable.compare_exchange(stable, last, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => {
                    debug_assert!(last <= self.published(), "the watermark passed the clock");
                    stable = last;
                }
                Err(current) => stable = current,
            }
        }
    }

    /// Looks a timestamp up to [`RecentCommits::published`] up for a validator. `may_matter` gets the summary of the
    /// write set, and returns true if the whole of it must be compared.
    pub(crate) fn look_up(&self, ts: u64, may_matter: impl FnOnce(&Signature, NewestNames) -> bool) -> RingLookup {
        let entry = self.entry(ts);
        let word = entry.word.load(Ordering::Acquire);
        if !RingEntry::is_of(word, ts) {
            return RingLookup::NotInRing;
        }
        if Outcome::of(word) == Outcome::Aborted {
            return RingLookup::Nothing;
        }
        let (signature, newest) = entry.summary();
        // Its partner is the fence in `publish`: if the summary was of a later timestamp, the word below is, too.
        fence(Ordering::Acquire);
        if !RingEntry::is_of(entry.word.load(Ordering::Acquire), ts) {
            return RingLookup::NotInRing;
        }
        if !may_matter(&signature, newest) {
            return RingLookup::Nothing;
        }
        let writes = entry.writes.lock().clone();
        // The outcome after the write set: `decide` takes out the write set of an aborted transaction.
        let word = entry.word.load(Ordering::Acquire);
        match (RingEntry::is_of(word, ts), Outcome::of(word), writes) {
            (false, ..) => RingLookup::NotInRing,
            (true, Outcome::Aborted, _) => RingLookup::Nothing,
            (true, outcome, Some(writes)) => RingLookup::Writes(writes, outcome),
            (true, _, None) => RingLookup::NotInRing,
        }
    }

    /// Returns true if the transaction that committed at `ts` should call [`RecentCommits::trim`].
    pub(crate) fn is_trim_due(&self, ts: u64, bytes_max: u64) -> bool {
        let every = TRIM_EVERY.min(self.options.merge_after as u64).max(1);
        ts.is_multiple_of(every) || self.bytes() > bytes_max
    }

    /// Drops the write sets that no serializable transaction with a begin of at least `oldest` can meet. Moves the
    /// entries that many commits have followed into the history. While all write sets together take more than
    /// `bytes_max`, drops the oldest. Does nothing if another thread is trimming.
    pub(crate) fn trim(&self, oldest: u64, bytes_max: u64) {
        let Some(mut trimmed) = self.trimmed.try_lock() else { return };
        let stable = self.stable();
        self.move_to_history(&mut trimmed, stable.saturating_sub(self.options.merge_after as u64), oldest);
        if self.bytes() > bytes_max {
            // Merged write sets take less memory.
            self.move_to_history(&mut trimmed, stable, oldest);
        }
        while self.bytes() > bytes_max && self.history.forget_oldest().is_some() {}
    }

    /// Moves the entries up to `to`, which is stable, from the ring into the history. Drops the entries up to `oldest`,
    /// which no validator needs.
    fn move_to_history(&self, trimmed: &mut Trimmed, to: u64, oldest: u64) {
        // The caller read `oldest` at a watermark that may since have grown, never fallen.
        self.history.forget(oldest.min(self.stable()));
        while self.history.merged() < to {
            let after = self.history.merged();
            self.history.push(self.block(after, to.min(after + TRIM_EVERY)));
        }
        // Timestamps before the ring have no entry any more.
        let merged = self.history.merged();
        trimmed.last = trimmed.last.max(merged.saturating_sub(self.options.entries as u64));
        while trimmed.last < merged {
            trimmed.last += 1;
            self.account(0, self.take_writes(trimmed.last));
        }
    }

    /// Merges the write sets of the timestamps after `after` up to `last`, which are stable.
    fn block(&self, after: u64, last: u64) -> HistoryBlock {
        let (mut sets, mut aborted) = (Vec::new(), Vec::new());
        for ts in after + 1..=last {
            let entry = self.entry(ts);
            // TXN-6: the entry is not taken over before the history has it.
            let word = entry.word.load(Ordering::Acquire);
            assert!(RingEntry::is_of(word, ts), "the entry of {ts} was taken over");
            assert_ne!(word & FINISHED, 0, "timestamp {ts} is moved before it is finished");
            match Outcome::of(word) {
                Outcome::Aborted => aborted.push(ts),
                _ => sets.extend(entry.writes.lock().clone().map(|writes| (ts, writes))),
            }
        }
        HistoryBlock::new(after, last, MergedWrites::of(after, &sets), aborted)
    }

    fn take_writes(&self, ts: u64) -> Option<Arc<WriteSet>> {
        let entry = self.entry(ts);
        let mut kept = entry.writes.lock();
        // While the lock of its write set is held, the entry is not taken over.
        if RingEntry::is_of(entry.word.load(Ordering::Relaxed), ts) { kept.take() } else { None }
    }

    /// Draws a timestamp for an empty write set, and finishes it.
    #[cfg(all(test, not(feature = "model")))]
    pub(crate) fn draw_empty(&self) -> u64 {
        let ts = self.enter(Arc::default(), || 0, |_| ());
        self.decide(ts, Outcome::Committed);
        self.finish(ts);
        ts
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    fn recent(entries: usize) -> RecentCommits {
        RecentCommits::resuming(RecentOptions::small(entries), 0)
    }

    fn draw(recent: &RecentCommits) -> u64 {
        recent.enter(Arc::default(), || 0, |_| ())
    }

    #[test]
    fn the_watermark_stops_at_the_first_unfinished_timestamp() {
        let recent = recent(8);
        let drawn = [draw(&recent), draw(&recent), draw(&recent)];
        assert_eq!((drawn, recent.stable()), ([1, 2, 3], 0));
        let finish = |ts| {
            recent.decide(ts, Outcome::Committed);
            recent.finish(ts);
        };
        finish(2);
        assert_eq!(recent.stable(), 0);
        finish(1);
        assert_eq!(recent.stable(), 2);
        finish(3);
        assert_eq!((recent.stable(), recent.published()), (3, 3));
    }

    #[test]
    fn outcomes_are_remembered_beyond_the_ring() {
        let recent = recent(4);
        let one = draw(&recent);
        assert_eq!(recent.outcome(one), Some(Outcome::Validating));
        recent.decide(one, Outcome::Aborted);
        recent.finish(one);
        assert_eq!(recent.wait_until_finished(one), Some(Outcome::Aborted));
        for _ in 0..3 {
            recent.draw_empty();
        }
        assert!(matches!(recent.look_up(one, |_, _| true), RingLookup::Nothing));
        for _ in 0..1_000 {
            recent.draw_empty();
        }
        assert!(matches!(recent.look_up(one, |_, _| true), RingLookup::NotInRing));
        assert_eq!((recent.outcome(one), recent.outcome(one + 1)), (Some(Outcome::Aborted), Some(Outcome::Committed)));
        assert_eq!(recent.wait_until_finished(one), Some(Outcome::Aborted));
        recent.trim(one, u64::MAX);
        assert_eq!((recent.outcome(one), recent.outcome(one + 1)), (None, Some(Outcome::Committed)));
    }

    #[test]
    fn write_sets_that_no_transaction_needs_are_dropped() {
        let recent = recent(64);
        assert_eq!((0..10).map(|_| recent.draw_empty()).last(), Some(10));
        let each = recent.bytes() / 10;
        recent.trim(6, u64::MAX);
        assert_eq!((recent.bytes(), recent.history().merged()), (4 * each, 6));
        assert!(matches!(recent.look_up(6, |_, _| true), RingLookup::NotInRing));
        assert!(recent.history().since(5).is_none());
        assert!(matches!(recent.look_up(7, |_, _| true), RingLookup::Writes(_, Outcome::Committed)));
        assert!(matches!(recent.look_up(7, |_, _| false), RingLookup::Nothing));
    }

    #[test]
    fn write_sets_move_into_the_history_when_many_came_after_them() {
        let recent = recent(64);
        assert_eq!((0..50).map(|_| recent.draw_empty()).last(), Some(50));
        recent.trim(3, u64::MAX);
        assert_eq!(recent.history().merged(), 50 - 32);
        assert!(matches!(recent.look_up(18, |_, _| true), RingLookup::NotInRing));
        assert_eq!(recent.history().since(3).unwrap().last().unwrap().last(), 18);
        assert!(matches!(recent.look_up(19, |_, _| true), RingLookup::Writes(_, Outcome::Committed)));
    }

    #[test]
    fn write_sets_keep_to_their_share_of_memory() {
        let size = WriteSet::default().bytes() as u64;
        let recent = recent(64);
        for _ in 0..500 {
            let ts = recent.draw_empty();
            if recent.is_trim_due(ts, 3 * size) {
                recent.trim(0, 3 * size);
            }
            assert!(recent.bytes() <= 3 * size);
        }
        assert!(recent.history().since(0).is_none());
    }

    #[test]
    fn many_threads_go_round_the_ring_many_times() {
        let recent = recent(32);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..4_000 {
                        let ts = draw(&recent);
                        assert!(recent.stable() < ts);
                        recent.decide(ts, Outcome::Committed);
                        recent.finish(ts);
                        recent.wait_for(ts);
                    }
                });
            }
        });
        assert_eq!((recent.stable(), recent.published()), (16_000, 16_000));
    }
}
