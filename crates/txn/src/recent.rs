//! The table of recent commits (RCT): the clock, what validators wrote and how they ended, and the stable watermark.
//!
//! Commit timestamps are 1, 2, 3, … (0 is the bulk-loaded base). *Entering validation* is one ordered step under a
//! short lock: the timestamp is drawn, the transaction's status becomes validating, its write set goes into the ring
//! entry of the timestamp, and the clock moves on. So whoever reads the clock can look at the write set and the status
//! of everything up to it: nobody slips between. (A log on disk will take its records in the same place and order.)
//!
//! An entry then is *decided* (committed or aborted), and *finished* when the store shows it. The watermark is the
//! largest timestamp at or below which all are finished; whoever finishes, or waits, helps to advance it. Nobody is in
//! charge, so nobody can be missed.
//!
//! Invariants:
//!
//! 1. `watermark ≤ clock`, and both only grow.
//! 2. An entry is taken over by the timestamp one round later only when the watermark has passed it. A transaction that
//!    is that far ahead waits *before* it draws, holding no lock; those it waits for have timestamps already.
//! 3. Every timestamp drawn is decided and finished, during a panic too (`commit::Validating`). A timestamp that stayed
//!    unfinished would stop the watermark for good.
//! 4. A validator that needs an entry, or a write set, that is gone aborts as too old. Gone are entries a whole ring
//!    behind; write sets that no running transaction is old enough to need; and, when all together take more than their
//!    share of memory, the oldest ones.
//!
//! An entry's words are read as with a sequence lock: number, content, number again. Most validators are through with
//! most entries when they have compared signatures.

use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use mangrove_store::footprint::{NewestNames, Signature, WriteSet};

use crate::sync::{AtomicU64, Backoff, Mutex, Ordering, fence};

/// How much of the past validators can look at.
#[derive(Clone, Copy, Debug)]
pub struct RecentOptions {
    /// How many commits are remembered; at least 2.
    pub entries: usize,
    /// How many bytes their write sets may take together.
    pub bytes_max: u64,
}

impl Default for RecentOptions {
    fn default() -> Self {
        RecentOptions { entries: 1 << 16, bytes_max: 256 << 20 }
    }
}

/// Entries are made this many at a time, so that a small graph does not pay for the whole ring.
const CHUNK: usize = 1 << 10;
/// How often write sets that nobody needs are looked for, in commits.
const TRIM_EVERY: u64 = 256;

const FINISHED: u64 = 4;
const OUTCOME_MASK: u64 = 3;
const TS_SHIFT: u32 = 3;

/// How a validator ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum Outcome {
    /// Not yet.
    Validating,
    /// It commits.
    Committed,
    /// It leaves nothing.
    Aborted,
}

impl Outcome {
    fn of(word: u64) -> Self {
        match word & OUTCOME_MASK {
            0 => Outcome::Validating,
            1 => Outcome::Committed,
            _ => Outcome::Aborted,
        }
    }
}

/// What a validator meets at a timestamp.
#[derive(Debug)]
pub(crate) enum Met {
    /// Nothing that could matter.
    Nothing,
    /// Writes to be looked at.
    Writes(Arc<WriteSet>, Outcome),
    /// What was there is forgotten.
    Gone,
}

#[derive(Debug, Default)]
struct Entry {
    /// Timestamp, whether finished, outcome; 0 while the entry changes hands.
    word: AtomicU64,
    signature: [AtomicU64; 4],
    newest: [AtomicU64; 2],
    writes: Mutex<Option<Arc<WriteSet>>>,
}

impl Entry {
    fn is_of(word: u64, ts: u64) -> bool {
        word >> TS_SHIFT == ts
    }

    /// Takes the entry over; the write set that was there.
    fn publish(&self, ts: u64, writes: Arc<WriteSet>) -> Option<Arc<WriteSet>> {
        let mut place = self.writes.lock();
        self.word.store(0, Ordering::Relaxed);
        // Whoever reads any of what follows reads another word afterwards (see `meet`).
        fence(Ordering::Release);
        let words = self.signature.iter().chain(&self.newest);
        for (word, bits) in words.zip(writes.signature().0.into_iter().chain(writes.newest().to_bits())) {
            word.store(bits, Ordering::Relaxed);
        }
        let before = place.replace(writes);
        self.word.store(ts << TS_SHIFT, Ordering::Release);
        before
    }

    fn summary(&self) -> (Signature, NewestNames) {
        let signature = Signature(std::array::from_fn(|i| self.signature[i].load(Ordering::Relaxed)));
        (signature, NewestNames::from_bits([0, 1].map(|i| self.newest[i].load(Ordering::Relaxed))))
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct RecentCommits {
    /// The last timestamp drawn: everything up to it is in the ring.
    clock: CachePadded<AtomicU64>,
    stable: CachePadded<AtomicU64>,
    /// Every commit up to here is durable; without a log all that is said of it is that it holds nobody back.
    durable: CachePadded<AtomicU64>,
    /// Held during the ordered step.
    order: CachePadded<Mutex<()>>,
    ring: Box<[OnceLock<Box<[Entry]>>]>,
    options: RecentOptions,
    /// The bytes of the write sets in the ring.
    bytes: CachePadded<AtomicU64>,
    /// Write sets up to this timestamp were dropped.
    trimmed: Mutex<u64>,
}

impl RecentCommits {
    /// A clock at `last`: nothing drawn after it, everything up to it stable.
    pub(crate) fn resuming(options: RecentOptions, last: u64) -> Self {
        let entries = options.entries.max(2);
        RecentCommits {
            clock: CachePadded::new(AtomicU64::new(last)),
            stable: CachePadded::new(AtomicU64::new(last)),
            durable: CachePadded::new(AtomicU64::new(u64::MAX)),
            order: CachePadded::new(Mutex::new(())),
            ring: (0..entries.div_ceil(CHUNK)).map(|_| OnceLock::new()).collect(),
            options: RecentOptions { entries, ..options },
            bytes: CachePadded::default(),
            trimmed: Mutex::new(last),
        }
    }

    /// The stable watermark.
    #[inline]
    pub(crate) fn stable(&self) -> u64 {
        // SeqCst: a begin publishes its slot before it reads this (`status`). Acquire would do for seeing
        // what the commits up to here installed: its partner is the compare-and-swap in `advance`.
        self.stable.load(Ordering::SeqCst)
    }

    /// What a read-only transaction sees that begins now: what is stable, and durable where there is a log.
    #[inline]
    pub(crate) fn readable(&self) -> u64 {
        // SeqCst, both, as in `stable`. Neither falls, so the smaller one does not.
        self.durable.load(Ordering::SeqCst).min(self.stable())
    }

    /// Says what is durable; see `log`.
    pub(crate) fn set_durable(&self, ts: u64) {
        self.durable.store(ts, Ordering::SeqCst);
    }

    /// The last timestamp drawn: write set and status of everything up to it can be looked at.
    #[inline]
    pub(crate) fn published(&self) -> u64 {
        // Acquire: its partner is the store in `enter`.
        self.clock.load(Ordering::Acquire)
    }

    /// The bytes of the write sets that are remembered.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    fn entry(&self, ts: u64) -> &Entry {
        let at = ts as usize % self.options.entries;
        let chunk = self.ring[at / CHUNK].get_or_init(|| {
            let len = CHUNK.min(self.options.entries - at / CHUNK * CHUNK);
            (0..len).map(|_| Entry::default()).collect()
        });
        &chunk[at % CHUNK]
    }

    /// Draws a timestamp for a transaction that has finished writing. `drawn` is told it inside the ordered step.
    ///
    /// The caller owes [`RecentCommits::decide`] and [`RecentCommits::finish`].
    pub(crate) fn enter(&self, writes: Arc<WriteSet>, drawn: impl FnOnce(u64)) -> u64 {
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
            drawn(ts);
            let before = self.entry(ts).publish(ts, writes);
            // Release: whoever sees the clock here sees the entry, the status, and all claims of the transaction.
            self.clock.store(ts, Ordering::Release);
            break (ts, before);
        };
        // What was there is freed after the lock.
        self.account(bytes, before);
        ts
    }

    fn account(&self, added: u64, removed: Option<Arc<WriteSet>>) {
        self.bytes.fetch_add(added, Ordering::Relaxed);
        if let Some(writes) = removed {
            self.bytes.fetch_sub(writes.bytes() as u64, Ordering::Relaxed);
        }
    }

    /// Says how a validator ended; once, by its owner.
    pub(crate) fn decide(&self, ts: u64, outcome: Outcome) {
        let entry = self.entry(ts);
        // Release: whoever waits for a commit goes on from what it has done.
        entry.word.store(ts << TS_SHIFT | outcome as u64, Ordering::Release);
        if outcome == Outcome::Aborted {
            let writes = entry.writes.lock().take();
            self.account(0, writes);
        }
    }

    /// Says that the store shows what was decided.
    pub(crate) fn finish(&self, ts: u64) {
        // Release: its partner is the Acquire in `advance`.
        self.entry(ts).word.fetch_or(FINISHED, Ordering::Release);
        self.advance();
    }

    /// How the validator at a timestamp ended; `None` when that is forgotten.
    pub(crate) fn outcome(&self, ts: u64) -> Option<Outcome> {
        let word = self.entry(ts).word.load(Ordering::Acquire);
        Entry::is_of(word, ts).then(|| Outcome::of(word))
    }

    /// Waits until a validator is decided. Its timestamp is lower than the caller's, if that has one: so nobody waits
    /// in a circle.
    pub(crate) fn wait_for_outcome(&self, ts: u64) -> Option<Outcome> {
        let mut backoff = Backoff::default();
        loop {
            match self.outcome(ts) {
                Some(Outcome::Validating) => backoff.pause(),
                decided => return decided,
            }
        }
    }

    /// Waits until the store shows how a validator ended.
    pub(crate) fn wait_until_finished(&self, ts: u64) -> Option<Outcome> {
        let mut backoff = Backoff::default();
        loop {
            let word = self.entry(ts).word.load(Ordering::Acquire);
            if !Entry::is_of(word, ts) {
                return None;
            }
            if word & FINISHED != 0 {
                return Some(Outcome::of(word));
            }
            backoff.pause();
        }
    }

    /// Returns once the watermark has reached `ts`, which must have been drawn.
    pub(crate) fn wait_for(&self, ts: u64) {
        let mut backoff = Backoff::default();
        while self.stable() < ts {
            self.advance();
            if self.stable() < ts {
                backoff.pause();
            }
        }
    }

    /// Moves the watermark over what is finished.
    fn advance(&self) {
        let mut stable = self.stable.load(Ordering::Acquire);
        loop {
            // Acquire: it carries the installed writes on to whoever reads the watermark.
            let word = self.entry(stable + 1).word.load(Ordering::Acquire);
            if !Entry::is_of(word, stable + 1) || word & FINISHED == 0 {
                return;
            }
            match self.stable.compare_exchange(stable, stable + 1, Ordering::SeqCst, Ordering::Acquire) {
                Ok(_) => stable += 1,
                Err(current) => stable = current,
            }
        }
    }

    /// What a validator meets at a timestamp up to [`RecentCommits::published`]. `may_matter` looks at the summary of
    /// the write set, and says whether the whole of it is needed.
    pub(crate) fn meet(&self, ts: u64, may_matter: impl FnOnce(&Signature, NewestNames) -> bool) -> Met {
        let entry = self.entry(ts);
        let word = entry.word.load(Ordering::Acquire);
        if !Entry::is_of(word, ts) {
            return Met::Gone;
        }
        if Outcome::of(word) == Outcome::Aborted {
            return Met::Nothing;
        }
        let (signature, newest) = entry.summary();
        // Its partner is the fence in `publish`: of a summary that changed, the number changed before.
        fence(Ordering::Acquire);
        if !Entry::is_of(entry.word.load(Ordering::Relaxed), ts) {
            return Met::Gone;
        }
        if !may_matter(&signature, newest) {
            return Met::Nothing;
        }
        let writes = entry.writes.lock().clone();
        // The outcome after the writes: those of an aborted one are taken out when it is decided.
        let word = entry.word.load(Ordering::Acquire);
        match (Entry::is_of(word, ts), Outcome::of(word), writes) {
            (false, ..) => Met::Gone,
            (true, Outcome::Aborted, _) => Met::Nothing,
            (true, outcome, Some(writes)) => Met::Writes(writes, outcome),
            (true, _, None) => Met::Gone,
        }
    }

    /// Whether it is time for [`RecentCommits::trim`], for the transaction that committed at `ts`.
    pub(crate) fn is_trim_due(&self, ts: u64) -> bool {
        ts.is_multiple_of(TRIM_EVERY) || self.bytes() > self.options.bytes_max
    }

    /// Drops the write sets that no transaction with a begin of at least `oldest` can meet, and more of the oldest
    /// ones while all together take too much memory.
    pub(crate) fn trim(&self, oldest: u64) {
        let Some(mut trimmed) = self.trimmed.try_lock() else { return };
        // Those before the ring are gone anyway.
        let stable = self.stable();
        *trimmed = (*trimmed).max(stable.saturating_sub(self.options.entries as u64));
        while *trimmed < stable && (*trimmed < oldest || self.bytes() > self.options.bytes_max) {
            *trimmed += 1;
            let entry = self.entry(*trimmed);
            let mut place = entry.writes.lock();
            // Under the place's lock the entry does not change hands.
            let writes = match Entry::is_of(entry.word.load(Ordering::Relaxed), *trimmed) {
                true => place.take(),
                false => None,
            };
            drop(place);
            self.account(0, writes);
        }
    }

    /// Draws a timestamp for nothing, and finishes it.
    #[cfg(test)]
    pub(crate) fn draw_empty(&self) -> u64 {
        let ts = self.enter(Arc::default(), |_| ());
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
        RecentCommits::resuming(RecentOptions { entries, ..RecentOptions::default() }, 0)
    }

    fn draw(recent: &RecentCommits) -> u64 {
        recent.enter(Arc::default(), |_| ())
    }

    #[test]
    fn the_watermark_stops_at_the_first_unfinished_timestamp() {
        let recent = recent(8);
        let drawn = [draw(&recent), draw(&recent), draw(&recent)];
        assert_eq!((drawn, recent.stable()), ([1, 2, 3], 0));
        recent.finish(2);
        assert_eq!(recent.stable(), 0);
        recent.finish(1);
        assert_eq!(recent.stable(), 2);
        recent.finish(3);
        assert_eq!((recent.stable(), recent.published()), (3, 3));
    }

    #[test]
    fn outcomes_are_remembered_for_a_round() {
        let recent = recent(4);
        let one = draw(&recent);
        assert_eq!(recent.outcome(one), Some(Outcome::Validating));
        recent.decide(one, Outcome::Aborted);
        recent.finish(one);
        assert_eq!(recent.wait_until_finished(one), Some(Outcome::Aborted));
        assert_eq!((0..3).map(|_| recent.draw_empty()).last(), Some(4));
        assert_eq!(recent.outcome(one), Some(Outcome::Aborted));
        recent.draw_empty();
        assert_eq!(recent.outcome(one), None);
        assert!(matches!(recent.meet(one, |_, _| true), Met::Gone));
    }

    #[test]
    fn write_sets_are_dropped_when_nobody_needs_them() {
        let recent = recent(64);
        assert_eq!((0..10).map(|_| recent.draw_empty()).last(), Some(10));
        let each = recent.bytes() / 10;
        recent.trim(6);
        assert_eq!(recent.bytes(), 4 * each);
        assert!(matches!(recent.meet(6, |_, _| true), Met::Gone));
        assert!(matches!(recent.meet(7, |_, _| true), Met::Writes(_, Outcome::Committed)));
        assert!(matches!(recent.meet(7, |_, _| false), Met::Nothing));
    }

    #[test]
    fn write_sets_keep_to_their_share_of_memory() {
        let size = WriteSet::default().bytes() as u64;
        let recent = RecentCommits::resuming(RecentOptions { entries: 64, bytes_max: 3 * size }, 0);
        for _ in 0..10 {
            let ts = recent.draw_empty();
            if recent.is_trim_due(ts) {
                recent.trim(0);
            }
        }
        assert_eq!(recent.bytes(), 3 * size);
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
