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

/// What helpers did for a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HelperStats {
    /// Parcels that helpers took.
    pub parcels: u64,
    /// Nanoseconds that helpers worked.
    pub nanos: u64,
    /// By operator: the counts of the helpers.
    pub(crate) operators: Vec<OperatorStats>,
}
