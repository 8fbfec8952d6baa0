//! How a transaction is to run: its isolation, and whether it may write.

/// What a transaction is protected from.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub enum Isolation {
    /// As if transactions ran one after the other, in the order in which they commit.
    #[default]
    Serializable,
    /// Reads see one moment, and two transactions never update the same thing: no dirty reads or writes, no
    /// lost updates, no read skew. Write skew is possible.
    Snapshot,
}

/// How a transaction is to be.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct TransactionOptions {
    /// See [`Isolation`].
    pub isolation: Isolation,
    /// Refuses writes.
    pub read_only: bool,
}

impl TransactionOptions {
    /// Returns true if its reads are kept, and checked before it commits.
    pub(crate) fn is_validated(&self) -> bool {
        self.isolation == Isolation::Serializable && !self.read_only
    }
}
