//! The floor of the log: where a checkpoint and the log meet.
//!
//! A checkpoint makes a part of the log superfluous. The manifest notes the first segment that is still needed, and how
//! far the log went when that was decided, so that recovery can check that no commit is missing between checkpoint and
//! log.
//!
//! ```text
//!  commits    …──────────────────────┤ last_ts        checkpoint_ts
//!  log        …── covered segments ──┤ next_batch ──▶ … needed segments …
//!  checkpoint …──────────────────────────────────────┤
//! ```
//!
//! - **LOG-7.** A checkpoint and the log that it needs meet without a gap. The checkpoint has every commit of the
//!   batches before [`LogBefore::next_batch`]: `last_ts` is at or below its timestamp. The first batch in the needed
//!   segments has at most the number `next_batch`.

use serde::{Deserialize, Serialize};

/// The position from which a checkpoint needs the log.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LogFloor {
    /// The first segment that is needed.
    pub segment: u64,
    /// The end of the part before it; `None` in manifests of versions that did not note it.
    pub before: Option<LogBefore>,
}

/// The end of a log at some time. All of the log before that end was durable.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct LogBefore {
    /// The number of the next batch.
    pub next_batch: u64,
    /// The batches before that one have no commit after this timestamp.
    pub last_ts: u64,
}

impl LogFloor {
    /// The floor that needs all of a log from this segment on.
    pub fn of_segment(segment: u64) -> Self {
        LogFloor { segment, before: None }
    }

    /// Returns true if a checkpoint at this timestamp has every commit before the floor (LOG-7).
    pub fn is_covered_by(&self, checkpoint_ts: u64) -> bool {
        self.before.is_none_or(|before| before.last_ts <= checkpoint_ts)
    }
}
