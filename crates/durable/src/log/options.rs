//! The options of a log: sizes and number of segments, what they have for the change feed, how long they are kept.

use super::commit::FeedContent;

/// How a log makes its segments.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// Bytes of the first segment that an opened log makes. Each later one is twice as large as the one before.
    pub segment_bytes_min: u64,
    /// The largest size of a segment in bytes. Less than 16 KiB counts as 16 KiB, more than 1 GiB as 1 GiB.
    pub segment_bytes_max: u64,
    /// How many files of retired segments are kept for reuse.
    pub spare_segments: usize,
    /// A thread makes segments ahead of need. Without it, a commit that needs a new one makes it.
    pub prepare_ahead: bool,
    /// What the log has for readers of the change feed.
    pub feed: FeedContent,
    /// Bytes of segments that are kept for readers of the change feed, although a checkpoint covers them.
    pub keep_bytes: u64,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions {
            segment_bytes_min: 1 << 20,
            segment_bytes_max: 64 << 20,
            spare_segments: 1,
            prepare_ahead: true,
            feed: FeedContent::Off,
            keep_bytes: 0,
        }
    }
}
