//! The history of commits: what was written at timestamps that the ring of recent commits (`recent`) has no room for.
//!
//! It is kept for running serializable transactions only: it begins after the begin of the oldest one, so that mostly it is
//! empty, and costs nothing. It consists of *blocks*: merged write sets (`mangrove_store::access_set::MergedWrites`) of
//! adjacent spans of timestamps. New blocks are small, and are joined with those before them: there are a few dozen
//! blocks for a million commits.
//!
//! ```text
//!   forgotten      history (blocks)                   ring
//! ─────────────┼─────────┬─────────┬────┬──┼──────────────────────┼──▶ timestamps
//!            floor                         merged               clock
//! ```
//!
//! Invariants:
//!
//! 1. `floor ≤ merged ≤ stable watermark`, and none of them falls.
//! 2. Blocks are adjacent, oldest first. Together they span everything after `floor` up to `merged`, and perhaps some
//!    timestamps before it.
//! 3. The ring gives a timestamp up only after `merged` has passed it.
//! 4. Only the thread that holds the lock of `recent`'s trimming changes the history.

use std::sync::Arc;

use mangrove_store::access_set::{MERGED_SPAN_MAX, MergedWrites};

use crate::outcome::Outcome;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// So many blocks of one level are joined into one of the next.
const JOINED: usize = 16;

/// What happened at the timestamps after one, up to another.
#[derive(Debug)]
pub(crate) struct Block {
    after: u64,
    last: u64,
    writes: MergedWrites,
    /// Timestamps of validators that aborted, ascending.
    aborted: Box<[u64]>,
    /// How often its parts were joined.
    level: u8,
}

impl Block {
    pub(crate) fn new(after: u64, last: u64, writes: MergedWrites, aborted: Vec<u64>) -> Self {
        Block { after, last, writes, aborted: aborted.into(), level: 0 }
    }

    fn join(parts: &[Arc<Block>]) -> Self {
        let (first, last) = (parts.first().expect("there are parts"), parts.last().expect("there are parts"));
        Block {
            after: first.after,
            last: last.last,
            writes: MergedWrites::join(parts.iter().map(|part| &part.writes)),
            aborted: parts.iter().flat_map(|part| part.aborted.iter().copied()).collect(),
            level: last.level + 1,
        }
    }

    /// The last timestamp it is about.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn writes(&self) -> &MergedWrites {
        &self.writes
    }

    fn bytes(&self) -> u64 {
        (size_of::<Block>() + self.writes.bytes() + size_of_val(&*self.aborted)) as u64
    }

    fn outcome(&self, ts: u64) -> Outcome {
        match self.aborted.binary_search(&ts) {
            Ok(_) => Outcome::Aborted,
            Err(_) => Outcome::Committed,
        }
    }
}

/// What was written at timestamps before the ring, in blocks, for the serializable transactions that run.
#[derive(Debug)]
pub(crate) struct History {
    /// Everything up to here is here, or forgotten.
    merged: AtomicU64,
    bytes: AtomicU64,
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    /// Everything up to here is forgotten.
    floor: u64,
    blocks: Vec<Arc<Block>>,
}

impl History {
    /// Everything up to a timestamp is forgotten.
    pub(crate) fn after(last: u64) -> Self {
        History {
            merged: AtomicU64::new(last),
            bytes: AtomicU64::new(0),
            kept: Mutex::new(Kept { floor: last, blocks: Vec::new() }),
        }
    }

    /// The ring may have given up everything up to here.
    #[inline]
    pub(crate) fn merged(&self) -> u64 {
        // Acquire: its partner is the store in `set_merged`. The blocks are seen through their lock.
        self.merged.load(Ordering::Acquire)
    }

    /// The bytes the blocks take.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// The blocks of everything after a timestamp, up to [`History::merged`]; `None` when some of it is forgotten.
    pub(crate) fn since(&self, ts: u64) -> Option<Vec<Arc<Block>>> {
        let kept = self.kept.lock();
        let first = kept.blocks.partition_point(|block| block.last <= ts);
        (kept.floor <= ts).then(|| kept.blocks[first..].to_vec())
    }

    /// How the validator at a timestamp ended; `None` when that is forgotten, or not here yet.
    pub(crate) fn outcome(&self, ts: u64) -> Option<Outcome> {
        let kept = self.kept.lock();
        if ts <= kept.floor {
            return None;
        }
        let at = kept.blocks.partition_point(|block| block.last < ts);
        Some(kept.blocks.get(at)?.outcome(ts))
    }

    fn set_merged(&self, ts: u64) {
        // Release: what `recent` takes out of the ring afterwards is found here before it is missed there.
        self.merged.store(ts, Ordering::Release);
    }

    /// Adds the next block.
    pub(crate) fn push(&self, block: Block) {
        let last = block.last;
        self.change(|blocks| blocks.push(Arc::new(block)));
        self.set_merged(last);
        while self.join_last() {}
    }

    fn change(&self, change: impl FnOnce(&mut Vec<Arc<Block>>)) {
        let mut kept = self.kept.lock();
        change(&mut kept.blocks);
        self.bytes.store(kept.blocks.iter().map(|block| block.bytes()).sum(), Ordering::Relaxed);
    }

    /// Joins the last blocks, if there are enough of one level; outside of the lock.
    fn join_last(&self) -> bool {
        let parts: Vec<Arc<Block>> = {
            let kept = self.kept.lock();
            let Some(first) = kept.blocks.len().checked_sub(JOINED) else { return false };
            kept.blocks[first..].to_vec()
        };
        let (first, last) = (&parts[0], &parts[JOINED - 1]);
        if first.level != last.level || last.last - first.after > MERGED_SPAN_MAX {
            return false;
        }
        let joined = Arc::new(Block::join(&parts));
        self.change(|blocks| {
            blocks.truncate(blocks.len() - JOINED);
            blocks.push(joined);
        });
        true
    }

    /// Forgets everything up to a timestamp.
    pub(crate) fn forget(&self, ts: u64) {
        let mut forgotten = Vec::new();
        {
            let mut kept = self.kept.lock();
            if ts <= kept.floor {
                return;
            }
            kept.floor = ts;
            let gone = kept.blocks.partition_point(|block| block.last <= ts);
            forgotten.extend(kept.blocks.drain(..gone));
        }
        let freed: u64 = forgotten.iter().map(|block| block.bytes()).sum();
        self.bytes.fetch_sub(freed, Ordering::Relaxed);
        self.set_merged(ts.max(self.merged()));
    }

    /// Forgets the oldest block; the last timestamp of it.
    pub(crate) fn forget_oldest(&self) -> Option<u64> {
        let last = self.kept.lock().blocks.first()?.last;
        self.forget(last);
        Some(last)
    }
}

#[cfg(test)]
#[cfg(not(feature = "model"))]
mod tests {
    use super::*;

    fn block(after: u64, last: u64, aborted: &[u64]) -> Block {
        Block::new(after, last, MergedWrites::of(after, &[]), aborted.to_vec())
    }

    #[test]
    fn blocks_are_joined_and_forgotten() {
        let history = History::after(5);
        assert_eq!((history.merged(), history.since(5).unwrap().len()), (5, 0));
        for n in 0..1_000 {
            history.push(block(5 + 2 * n, 7 + 2 * n, &[6 + 2 * n]));
        }
        assert_eq!(history.merged(), 2_005);
        let blocks = history.since(5).unwrap();
        assert_eq!(blocks.len(), 1_000 / 256 + 1_000 % 256 / 16 + 1_000 % 16);
        assert!(blocks.windows(2).all(|pair| pair[0].last == pair[1].after));
        assert_eq!((history.outcome(6), history.outcome(7)), (Some(Outcome::Aborted), Some(Outcome::Committed)));
        assert_eq!((history.outcome(5), history.outcome(2_006)), (None, None));
        history.forget(600);
        assert!(history.since(599).is_none());
        assert_eq!(history.since(600).unwrap()[0].after, 517);
        assert_eq!((history.outcome(600), history.outcome(602)), (None, Some(Outcome::Aborted)));
        let bytes = history.bytes();
        assert_eq!(history.forget_oldest(), Some(1_029));
        assert!(history.bytes() < bytes);
        history.forget(3_000);
        assert_eq!((history.merged(), history.bytes(), history.forget_oldest()), (3_000, 0, None));
    }

    #[test]
    fn joined_blocks_do_not_span_more_than_changes_can_be_dated_in() {
        let history = History::after(0);
        for n in 0..64 {
            history.push(block(n * 10_000, (n + 1) * 10_000, &[]));
        }
        let spans: Vec<u64> = history.since(0).unwrap().iter().map(|block| block.last - block.after).collect();
        assert!(spans.iter().all(|span| *span <= MERGED_SPAN_MAX), "{spans:?}");
        assert_eq!(spans.iter().sum::<u64>(), 640_000);
    }
}
