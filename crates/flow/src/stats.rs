//! Counts of what operators and helpers did.

/// Counters of an operator, for `profile()`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperatorStats {
    /// Messages received.
    pub messages: u64,
    /// Rows received.
    pub rows_in: u64,
    /// Rows sent.
    pub rows_out: u64,
    /// Nanoseconds inside the operator; 0 unless [`crate::NodeRuntime::measure_time`] was called.
    pub nanos: u64,
}

impl OperatorStats {
    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: &OperatorStats) {
        self.messages += other.messages;
        self.rows_in += other.rows_in;
        self.rows_out += other.rows_out;
        self.nanos += other.nanos;
    }
}

/// Counts of scopes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScopeCounts {
    /// Groups opened.
    pub opened: u64,
    /// Single instances that were cancelled.
    pub tags_cancelled: u64,
    /// Heavy instances that have begun again in groups of their own (FLOW-44).
    pub set_apart: u64,
}

impl ScopeCounts {
    /// Adds the counts of another thread.
    pub(crate) fn add(&mut self, other: ScopeCounts) {
        self.opened += other.opened;
        self.tags_cancelled += other.tags_cancelled;
        self.set_apart += other.set_apart;
    }
}

/// What helpers did for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelperStats {
    /// Parcels that helpers took.
    pub parcels: u64,
    /// Nanoseconds that helpers worked.
    pub nanos: u64,
    /// What they did in scopes.
    pub(crate) scopes: ScopeCounts,
    /// By operator: the counts of the helpers.
    pub operators: Vec<OperatorStats>,
}
