//! Histories: transactions as clients saw them.
//!
//! Rules of a history, which the index checks: a history writes a value at most once to an object, all operations on an
//! object are of one type, and no transaction ends before it begins.

use std::collections::HashMap;
use std::fmt;

/// An object of operations. The workload chooses the number; [`History::name`] may name it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Object(pub u64);

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// One operation, with its result if it is a read. An object is a list, a register or a set, by the operations on it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Appends a value to a list.
    Append {
        /// The list.
        object: Object,
        /// The value; a history appends it once.
        value: u64,
    },
    /// Reads a list.
    ReadList {
        /// The list.
        object: Object,
        /// All values, in order.
        values: Vec<u64>,
    },
    /// Replaces the value of a register.
    Write {
        /// The register.
        object: Object,
        /// The value; a history writes it once.
        value: u64,
    },
    /// Reads a register.
    Read {
        /// The register.
        object: Object,
        /// The value; `None` if the register was never written.
        value: Option<u64>,
    },
    /// Adds a value to a set.
    Add {
        /// The set.
        object: Object,
        /// The value; a history adds it once.
        value: u64,
    },
    /// Removes a value from a set. The transaction has read it in the set.
    Remove {
        /// The set.
        object: Object,
        /// The value; it is never added again.
        value: u64,
    },
    /// Reads a set.
    ReadSet {
        /// The set.
        object: Object,
        /// All values, in any order.
        values: Vec<u64>,
    },
}

/// The type of an object, as the operations on it determine it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    List,
    Register,
    Set,
}

impl Operation {
    /// The object of the operation.
    pub fn object(&self) -> Object {
        match self {
            Operation::Append { object, .. }
            | Operation::ReadList { object, .. }
            | Operation::Write { object, .. }
            | Operation::Read { object, .. }
            | Operation::Add { object, .. }
            | Operation::Remove { object, .. }
            | Operation::ReadSet { object, .. } => *object,
        }
    }

    pub(crate) fn kind(&self) -> Type {
        match self {
            Operation::Append { .. } | Operation::ReadList { .. } => Type::List,
            Operation::Write { .. } | Operation::Read { .. } => Type::Register,
            Operation::Add { .. } | Operation::Remove { .. } | Operation::ReadSet { .. } => Type::Set,
        }
    }

    /// The value that an append, a write or an addition creates.
    pub(crate) fn written(&self) -> Option<u64> {
        match self {
            Operation::Append { value, .. } | Operation::Write { value, .. } | Operation::Add { value, .. } => {
                Some(*value)
            }
            _ => None,
        }
    }

    /// The values that a read returned; none for writes.
    pub(crate) fn met(&self) -> &[u64] {
        match self {
            Operation::ReadList { values, .. } | Operation::ReadSet { values, .. } => values,
            Operation::Read { value, .. } => value.as_slice(),
            _ => &[],
        }
    }
}

/// The outcome of a transaction, as far as its client knows it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// The transaction committed.
    Committed,
    /// The transaction aborted: no other transaction may see its writes.
    Aborted,
    /// The client did not learn the outcome. The transaction counts as committed if others saw its writes.
    Unknown,
}

/// One transaction as its client saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// The process that ran it. A process runs one transaction after the other.
    pub process: u32,
    /// The time of its begin, on a clock that all processes share. Only the order of times matters.
    pub invoked: u64,
    /// The time when its client learned of the end.
    pub completed: u64,
    /// The outcome.
    pub outcome: Outcome,
    /// The operations in order. Failed reads are left out. Failed writes are kept; their transactions are aborted.
    pub operations: Vec<Operation>,
}

impl Transaction {
    /// A transaction without operations.
    pub fn new(process: u32, invoked: u64, completed: u64, outcome: Outcome) -> Self {
        Transaction { process, invoked, completed, outcome, operations: Vec::new() }
    }

    /// A committed transaction.
    pub fn committed(process: u32, invoked: u64, completed: u64) -> Self {
        Self::new(process, invoked, completed, Outcome::Committed)
    }

    /// An aborted transaction.
    pub fn aborted(process: u32, invoked: u64, completed: u64) -> Self {
        Self::new(process, invoked, completed, Outcome::Aborted)
    }

    fn with(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }

    /// Adds an append to a list.
    #[must_use]
    pub fn append(self, object: Object, value: u64) -> Self {
        self.with(Operation::Append { object, value })
    }

    /// Adds a read of a list.
    #[must_use]
    pub fn read_list(self, object: Object, values: &[u64]) -> Self {
        self.with(Operation::ReadList { object, values: values.to_vec() })
    }

    /// Adds a write of a register.
    #[must_use]
    pub fn write(self, object: Object, value: u64) -> Self {
        self.with(Operation::Write { object, value })
    }

    /// Adds a read of a register.
    #[must_use]
    pub fn read(self, object: Object, value: Option<u64>) -> Self {
        self.with(Operation::Read { object, value })
    }

    /// Adds an addition to a set.
    #[must_use]
    pub fn add(self, object: Object, value: u64) -> Self {
        self.with(Operation::Add { object, value })
    }

    /// Adds a removal from a set.
    #[must_use]
    pub fn remove(self, object: Object, value: u64) -> Self {
        self.with(Operation::Remove { object, value })
    }

    /// Adds a read of a set.
    #[must_use]
    pub fn read_set(self, object: Object, values: &[u64]) -> Self {
        self.with(Operation::ReadSet { object, values: values.to_vec() })
    }
}

/// The error for a history that breaks a rule of the workload. It says nothing about the database.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidHistory(pub(crate) String);

impl fmt::Display for InvalidHistory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for InvalidHistory {}

/// Transactions, in any order.
#[derive(Clone, Default, Debug)]
pub struct History {
    pub(crate) transactions: Vec<Transaction>,
    names: HashMap<Object, String>,
}

impl History {
    /// Adds a transaction. Its name in explanations is `T` and its index.
    pub fn push(&mut self, transaction: Transaction) {
        self.transactions.push(transaction);
    }

    /// Gives an object a name in explanations.
    pub fn name(&mut self, object: Object, name: impl Into<String>) {
        self.names.insert(object, name.into());
    }

    /// The transactions.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// The transactions, to be falsified in tests of a checker.
    pub fn transactions_mut(&mut self) -> &mut Vec<Transaction> {
        &mut self.transactions
    }

    pub(crate) fn show(&self, object: Object) -> String {
        self.names.get(&object).cloned().unwrap_or_else(|| object.to_string())
    }
}

impl Extend<Transaction> for History {
    fn extend<I: IntoIterator<Item = Transaction>>(&mut self, transactions: I) {
        self.transactions.extend(transactions);
    }
}
