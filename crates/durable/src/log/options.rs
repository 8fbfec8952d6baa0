//! How a log is to be.

/// See the fields.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogOptions {
    /// The size of the first segment that an opened log makes; each after it is twice as large as the one before.
    pub segment_bytes_min: u64,
    /// The largest size of a segment; 16 KiB at least, and 1 GiB at most, are what is made of less or more.
    pub segment_bytes_max: u64,
    /// How many files of old segments are kept to be used again.
    pub spare_segments: usize,
    /// Whether a thread makes segments ahead of need. Without, a commit that needs a new one makes it.
    pub prepare_ahead: bool,
}

impl Default for LogOptions {
    fn default() -> Self {
        LogOptions { segment_bytes_min: 1 << 20, segment_bytes_max: 64 << 20, spare_segments: 1, prepare_ahead: true }
    }
}
