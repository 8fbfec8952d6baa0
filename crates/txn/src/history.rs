//! The history of commits: the merged write sets of timestamps that have left the ring of recent commits (`recent`).
//!
//! It serves the validation of running serializable transactions. It begins after the begin of the oldest of them, so
//! that it is mostly empty and costs nothing. It consists of *blocks*: merged write sets of adjacent spans of
//! timestamps. New blocks are small, and are joined with the blocks before them: a million commits take a few dozen
//! blocks.
//!
//! ```text
//!   forgotten      history (blocks)                   ring
//! ─────────────┼─────────┬─────────┬────┬──┼──────────────────────┼──▶ timestamps
//!            floor                         merged               clock
//! ```
//!
//! - **TXN-7.** `floor ≤ merged ≤ stable watermark`, and none of them falls.
//! - **TXN-8.** Blocks are adjacent, oldest first. Together they span everything after `floor` up to `merged`, and
//!   perhaps some timestamps before it.
//!
//! The ring gives a timestamp up only after `merged` has passed it (TXN-6). Only the thread that holds the lock of the
//! ring's trimming changes the history; every thread may read it.

use std::sync::Arc;

use mangrove_locks::rank;

use crate::access_set::{MERGED_SPAN_MAX, MergedWrites};
use crate::outcome::Outcome;
use crate::sync::{AtomicU64, Mutex, Ordering};

/// Blocks of one level that are joined into one of the next.
const JOINED: usize = 16;

/// The merged write sets of a span of timestamps: those after `after`, up to and including `last`. All are decided.
#[derive(Debug)]
pub(crate) struct HistoryBlock {
    after: u64,
    last: u64,
    writes: MergedWrites,
    /// Timestamps of transactions that aborted, ascending.
    aborted: Box<[u64]>,
    /// How often its parts have been joined.
    level: u8,
}

impl HistoryBlock {
    pub(crate) fn new(after: u64, last: u64, writes: MergedWrites, aborted: Vec<u64>) -> Self {
        debug_assert!(aborted.is_sorted(), "timestamps of a block ascend");
        debug_assert!(aborted.iter().all(|ts| (after + 1..=last).contains(ts)), "a block has timestamps of its span");
        HistoryBlock { after, last, writes, aborted: aborted.into(), level: 0 }
    }

    fn join(parts: &[Arc<HistoryBlock>]) -> Self {
        let (first, last) = (parts.first().expect("there are parts"), parts.last().expect("there are parts"));
        // TXN-8.
        debug_assert!(
            parts.windows(2).all(|pair| pair[0].last == pair[1].after),
            "blocks that are joined are adjacent"
        );
        HistoryBlock {
            after: first.after,
            last: last.last,
            writes: MergedWrites::join(parts.iter().map(|part| &part.writes)),
            aborted: parts.iter().flat_map(|part| part.aborted.iter().copied()).collect(),
            level: last.level + 1,
        }
    }

    /// The last timestamp of the span.
    pub(crate) fn last(&self) -> u64 {
        self.last
    }

    pub(crate) fn writes(&self) -> &MergedWrites {
        &self.writes
    }

    fn bytes(&self) -> u64 {
        (size_of::<HistoryBlock>() + self.writes.bytes() + size_of_val(&*self.aborted)) as u64
    }

    fn outcome(&self, ts: u64) -> Outcome {
        debug_assert!(self.after < ts && ts <= self.last, "timestamp {ts} is looked up in the wrong block");
        match self.aborted.binary_search(&ts) {
            Ok(_) => Outcome::Aborted,
            Err(_) => Outcome::Committed,
        }
    }
}

/// The write sets of timestamps before the ring, in blocks, for the serializable transactions that run.
#[derive(Debug)]
pub(crate) struct History {
    /// Everything up to here is in a block, or forgotten.
    merged: AtomicU64,
    /// Bytes of all blocks.
    bytes: AtomicU64,
    kept: Mutex<HistoryBlocks, rank::HistoryBlocks>,
}

/// The blocks, and where they begin.
#[derive(Debug)]
struct HistoryBlocks {
    /// Everything up to here is forgotten.
    floor: u64,
    blocks: Vec<Arc<HistoryBlock>>,
}

impl History {
    /// An empty history, in which everything up to `last` is forgotten.
    pub(crate) fn after(last: u64) -> Self {
        History {
            merged: AtomicU64::new(last),
            bytes: AtomicU64::new(0),
            kept: Mutex::new(HistoryBlocks { floor: last, blocks: Vec::new() }),
        }
    }

    /// The ring may have given up everything up to here.
    #[inline]
    pub(crate) fn merged(&self) -> u64 {
        // Acquire: its partner is the store in `set_merged`. The blocks themselves are read under their lock.
        self.merged.load(Ordering::Acquire)
    }

    /// Bytes of the blocks.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns the blocks of everything after `ts` up to [`History::merged`]; `None` if some of it is forgotten.
    pub(crate) fn since(&self, ts: u64) -> Option<Vec<Arc<HistoryBlock>>> {
        let kept = self.kept.lock();
        let first = kept.blocks.partition_point(|block| block.last <= ts);
        (kept.floor <= ts).then(|| kept.blocks[first..].to_vec())
    }

    /// Returns the outcome of a timestamp; `None` if it is forgotten, or not in the history yet.
    pub(crate) fn outcome(&self, ts: u64) -> Option<Outcome> {
        let kept = self.kept.lock();
        if ts <= kept.floor {
            return None;
        }
        let at = kept.blocks.partition_point(|block| block.last < ts);
        Some(kept.blocks.get(at)?.outcome(ts))
    }

    fn set_merged(&self, ts: u64) {
        // Release: `recent` takes a write set out of the ring after this, so a reader that misses it there finds it
        // here (TXN-6).
        let before = self.merged.swap(ts, Ordering::Release);
        // TXN-7.
        assert!(before <= ts, "merged fell from {before} to {ts}");
    }

    /// Adds the next block.
    pub(crate) fn push(&self, block: HistoryBlock) {
        let last = block.last;
        // TXN-8.
        assert_eq!(block.after, self.merged(), "the next block begins where the history ends");
        assert!(block.after < last);
        self.change(|blocks| blocks.push(Arc::new(block)));
        self.set_merged(last);
        while self.join_last() {}
    }

    /// Changes the list of blocks, and counts their bytes again.
    fn change(&self, change: impl FnOnce(&mut Vec<Arc<HistoryBlock>>)) {
        let mut kept = self.kept.lock();
        change(&mut kept.blocks);
        self.bytes.store(kept.blocks.iter().map(|block| block.bytes()).sum(), Ordering::Relaxed);
    }

    /// Joins the last blocks if there are enough of one level. The lock is not held while they are merged.
    fn join_last(&self) -> bool {
        let parts: Vec<Arc<HistoryBlock>> = {
            let kept = self.kept.lock();
            let Some(first) = kept.blocks.len().checked_sub(JOINED) else { return false };
            kept.blocks[first..].to_vec()
        };
        let (first, last) = (&parts[0], &parts[JOINED - 1]);
        if first.level != last.level || last.last - first.after > MERGED_SPAN_MAX {
            return false;
        }
        let joined = Arc::new(HistoryBlock::join(&parts));
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

    /// Forgets the oldest block. Returns its last timestamp.
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

    fn block(after: u64, last: u64, aborted: &[u64]) -> HistoryBlock {
        HistoryBlock::new(after, last, MergedWrites::of(after, &[]), aborted.to_vec())
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
