//! Where a checkpoint and the log meet.
//!
//! A checkpoint makes a part of the log superfluous. It notes the first segment that is still needed, and how far the log
//! went when that was decided, so that recovery can tell that no commit is missing between the two:
//!
//! 1. the checkpoint has every commit of the batches before [`LogBefore::next_batch`]: `last_ts` is at or below its
//!    timestamp;
//! 2. the first batch in the needed segments has at most the number `next_batch`, and batches are numbered without a gap.

use serde::{Deserialize, Serialize};

/// From where on a checkpoint needs the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogFloor {
    /// The first segment that is needed.
    pub segment: u64,
    /// What is known to be before the needed part; `None` in manifests that do not say so.
    pub before: Option<LogBefore>,
}

/// How far a log went at a moment. All of it was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogBefore {
    /// The number of the next batch.
    pub next_batch: u64,
    /// The batches before that one have no commit after this timestamp.
    pub last_ts: u64,
}

impl LogFloor {
    /// The floor that is all of a log from this segment on, of which nothing more is known.
    pub fn of_segment(segment: u64) -> Self {
        LogFloor { segment, before: None }
    }

    /// Returns true if a checkpoint at this timestamp has every commit before the floor.
    pub fn is_covered_by(&self, checkpoint_ts: u64) -> bool {
        self.before.is_none_or(|before| before.last_ts <= checkpoint_ts)
    }
}
