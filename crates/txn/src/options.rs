//! How a transaction is to run: its isolation, and whether it may write.

/// The isolation level of a transaction.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// The outcome is as if transactions ran one after the other, in the order of their commit timestamps.
    #[default]
    Serializable,
    /// All reads see the database as of the begin, and two transactions never update the same version: no dirty reads
    /// or writes, no lost updates, no read skew. Write skew is possible.
    Snapshot,
}

/// How a transaction is to run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    /// The isolation level.
    pub isolation: Isolation,
    /// Refuses writes.
    pub read_only: bool,
}

impl TransactionOptions {
    /// Returns true if the transaction keeps a read set and validates it before it commits.
    pub(crate) fn is_validated(&self) -> bool {
        self.isolation == Isolation::Serializable && !self.read_only
    }
}
