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
//! 2. An entry is taken over by the timestamp one round later only when the watermark has passed it, and the history
//!    (`history`) has what it says. A transaction that is that far ahead waits *before* it draws, holding no lock; those it
//!    waits for have timestamps already. Or it moves old entries into the history itself.
//! 3. Every timestamp drawn is decided and finished, during a panic too (`commit::Validating`). A timestamp that stayed
//!    unfinished would stop the watermark for good.
//! 4. The write sets of the ring and of the history together keep to their share of memory. Write sets that no running
//!    serializable transaction is old enough to need are dropped first. When that is not enough, the oldest ones are: a
//!    validator that needs one of them aborts as too old.
//!
//! *Trimming* does both, and moves entries into the history long before their places are needed: every few hundred commits
//! one of the committers does it, under a lock that others do not wait for.
//!
//! An entry's words are read as with a sequence lock: number, content, number again. Most validators are through with
//! most entries when they have compared signatures.

use std::sync::{Arc, OnceLock};

use crossbeam_utils::CachePadded;
use mangrove_store::access_set::{MergedWrites, NewestNames, Signature, WriteSet};

use crate::history::{Block, History};
use crate::outcome::Outcome;
use crate::sync::{AtomicU64, Backoff, Mutex, Ordering, fence};

/// How recent commits are kept.
#[derive(Clone, Copy, Debug)]
pub struct RecentOptions {
    /// How many commits the ring holds one by one; at least 2.
    pub entries: usize,
    /// A commit's write set is merged with others once so many commits came after it; less than `entries`.
    pub merge_after: usize,
}

impl Default for RecentOptions {
    fn default() -> Self {
        RecentOptions { entries: 1 << 16, merge_after: 1 << 15 }
    }
}

impl RecentOptions {
    /// A small ring, which a few commits fill: for tests.
    #[doc(hidden)]
    pub fn small(entries: usize) -> Self {
        RecentOptions { entries, merge_after: entries / 2 }
    }
}

/// Entries are made this many at a time, so that a small graph does not pay for the whole ring.
const CHUNK: usize = 1 << 10;
/// How often the ring is trimmed, in commits. So many commits are a block of the history.
const TRIM_EVERY: u64 = 256;

const FINISHED: u64 = 4;
const TS_SHIFT: u32 = 3;

/// What a validator meets at a timestamp.
#[derive(Debug)]
pub(crate) enum Met {
    /// Nothing that could matter.
    Nothing,
    /// Writes to be looked at.
    Writes(Arc<WriteSet>, Outcome),
    /// What was there is not in the ring: it is in the history, or forgotten.
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
        // Release: a reader that finds the entry gone looks into the history, which had it before `enter` came here.
        self.word.store(0, Ordering::Release);
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
    history: History,
    /// Write sets up to this timestamp are not in the ring. Held while the ring is trimmed.
    trimmed: Mutex<u64>,
}

impl RecentCommits {
    /// A clock at `last`: nothing drawn after it, everything up to it stable.
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
        self.bytes.load(Ordering::Relaxed) + self.history.bytes()
    }

    /// What was written before the ring.
    pub(crate) fn history(&self) -> &History {
        &self.history
    }

    fn entry(&self, ts: u64) -> &Entry {
        let at = ts as usize % self.options.entries;
        let chunk = self.ring[at / CHUNK].get_or_init(|| {
            let len = CHUNK.min(self.options.entries - at / CHUNK * CHUNK);
            (0..len).map(|_| Entry::default()).collect()
        });
        &chunk[at % CHUNK]
    }

    /// Draws a timestamp for a transaction that has finished writing. `drawn` is told it inside the ordered step. `oldest`
    /// is called when the ring is full. It gives the begin of the oldest serializable transaction: no validator needs what was
    /// written up to then.
    ///
    /// The caller owes [`RecentCommits::decide`] and [`RecentCommits::finish`].
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
        if Entry::is_of(word, ts) { Some(Outcome::of(word)) } else { self.history.outcome(ts) }
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
                // Finished, or it would not have lost its entry.
                return self.history.outcome(ts);
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
        if !Entry::is_of(entry.word.load(Ordering::Acquire), ts) {
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

    /// Returns true if it is time for [`RecentCommits::trim`], for the transaction that committed at `ts`.
    pub(crate) fn is_trim_due(&self, ts: u64, bytes_max: u64) -> bool {
        let every = TRIM_EVERY.min(self.options.merge_after as u64).max(1);
        ts.is_multiple_of(every) || self.bytes() > bytes_max
    }

    /// Drops the write sets that no serializable transaction with a begin of at least `oldest` can meet, moves those from
    /// the ring into the history that many commits came after, and drops more of the oldest ones while all together
    /// take too much memory.
    pub(crate) fn trim(&self, oldest: u64, bytes_max: u64) {
        let Some(mut trimmed) = self.trimmed.try_lock() else { return };
        let stable = self.stable();
        self.move_to_history(&mut trimmed, stable.saturating_sub(self.options.merge_after as u64), oldest);
        if self.bytes() > bytes_max {
            // Merged they take less.
            self.move_to_history(&mut trimmed, stable, oldest);
        }
        while self.bytes() > bytes_max && self.history.forget_oldest().is_some() {}
    }

    /// Moves the entries up to `to`, which is stable, from the ring into the history. Entries up to `oldest` are dropped: no
    /// validator needs them.
    fn move_to_history(&self, trimmed: &mut u64, to: u64, oldest: u64) {
        // The watermark of a caller may be older than the bound.
        self.history.forget(oldest.min(self.stable()));
        while self.history.merged() < to {
            let after = self.history.merged();
            self.history.push(self.block(after, to.min(after + TRIM_EVERY)));
        }
        // Those before the ring are gone anyway.
        let merged = self.history.merged();
        *trimmed = (*trimmed).max(merged.saturating_sub(self.options.entries as u64));
        while *trimmed < merged {
            *trimmed += 1;
            self.account(0, self.take_writes(*trimmed));
        }
    }

    /// What the ring says of the stable timestamps after one, up to another.
    fn block(&self, after: u64, last: u64) -> Block {
        let (mut sets, mut aborted) = (Vec::new(), Vec::new());
        for ts in after + 1..=last {
            let entry = self.entry(ts);
            // The entry is not taken over before the history has it: invariant 2.
            match Outcome::of(entry.word.load(Ordering::Acquire)) {
                Outcome::Aborted => aborted.push(ts),
                _ => sets.extend(entry.writes.lock().clone().map(|writes| (ts, writes))),
            }
        }
        Block::new(after, last, MergedWrites::of(after, &sets), aborted)
    }

    fn take_writes(&self, ts: u64) -> Option<Arc<WriteSet>> {
        let entry = self.entry(ts);
        let mut place = entry.writes.lock();
        // Under the place's lock the entry does not change hands.
        if Entry::is_of(entry.word.load(Ordering::Relaxed), ts) { place.take() } else { None }
    }

    /// Draws a timestamp for nothing, and finishes it.
    #[cfg(test)]
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
        recent.finish(2);
        assert_eq!(recent.stable(), 0);
        recent.finish(1);
        assert_eq!(recent.stable(), 2);
        recent.finish(3);
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
        assert!(matches!(recent.meet(one, |_, _| true), Met::Nothing));
        for _ in 0..1_000 {
            recent.draw_empty();
        }
        assert!(matches!(recent.meet(one, |_, _| true), Met::Gone));
        assert_eq!((recent.outcome(one), recent.outcome(one + 1)), (Some(Outcome::Aborted), Some(Outcome::Committed)));
        assert_eq!(recent.wait_until_finished(one), Some(Outcome::Aborted));
        recent.trim(one, u64::MAX);
        assert_eq!((recent.outcome(one), recent.outcome(one + 1)), (None, Some(Outcome::Committed)));
    }

    #[test]
    fn write_sets_are_dropped_when_nobody_needs_them() {
        let recent = recent(64);
        assert_eq!((0..10).map(|_| recent.draw_empty()).last(), Some(10));
        let each = recent.bytes() / 10;
        recent.trim(6, u64::MAX);
        assert_eq!((recent.bytes(), recent.history().merged()), (4 * each, 6));
        assert!(matches!(recent.meet(6, |_, _| true), Met::Gone));
        assert!(recent.history().since(5).is_none());
        assert!(matches!(recent.meet(7, |_, _| true), Met::Writes(_, Outcome::Committed)));
        assert!(matches!(recent.meet(7, |_, _| false), Met::Nothing));
    }

    #[test]
    fn write_sets_move_into_the_history_when_many_came_after_them() {
        let recent = recent(64);
        assert_eq!((0..50).map(|_| recent.draw_empty()).last(), Some(50));
        recent.trim(3, u64::MAX);
        assert_eq!(recent.history().merged(), 50 - 32);
        assert!(matches!(recent.meet(18, |_, _| true), Met::Gone));
        assert_eq!(recent.history().since(3).unwrap().last().unwrap().last(), 18);
        assert!(matches!(recent.meet(19, |_, _| true), Met::Writes(_, Outcome::Committed)));
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
