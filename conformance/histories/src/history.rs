//! What clients saw.

use std::collections::HashMap;
use std::fmt;

/// What operations work on. The number is the workload's choice; [`History::name`] may give it a name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Object(pub u64);

impl fmt::Display for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "x{}", self.0)
    }
}

/// One operation and, of a read, its result. An object is a list, a register or a set, by how it is used.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Puts a value at the end of a list.
    Append {
        /// The list.
        object: Object,
        /// Appended once in a history.
        value: u64,
    },
    /// Reads a list.
    ReadList {
        /// The list.
        object: Object,
        /// All of it, in order.
        values: Vec<u64>,
    },
    /// Replaces the value of a register.
    Write {
        /// The register.
        object: Object,
        /// Written once in a history.
        value: u64,
    },
    /// Reads a register.
    Read {
        /// The register.
        object: Object,
        /// `None`: it was never written.
        value: Option<u64>,
    },
    /// Adds to a set.
    Add {
        /// The set.
        object: Object,
        /// Added once in a history.
        value: u64,
    },
    /// Removes from a set what its transaction has seen in it.
    Remove {
        /// The set.
        object: Object,
        /// Never added again.
        value: u64,
    },
    /// Reads a set.
    ReadSet {
        /// The set.
        object: Object,
        /// All of it, in any order.
        values: Vec<u64>,
    },
}

/// How an object is used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Type {
    List,
    Register,
    Set,
}

impl Operation {
    /// What it works on.
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

    /// The value it brings into being: of an append, a write, an addition.
    pub(crate) fn written(&self) -> Option<u64> {
        match self {
            Operation::Append { value, .. } | Operation::Write { value, .. } | Operation::Add { value, .. } => {
                Some(*value)
            }
            _ => None,
        }
    }

    /// The values a read met; nothing for writes.
    pub(crate) fn met(&self) -> &[u64] {
        match self {
            Operation::ReadList { values, .. } | Operation::ReadSet { values, .. } => values,
            Operation::Read { value, .. } => value.as_slice(),
            _ => &[],
        }
    }
}

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Outcome {
    /// It did.
    Committed,
    /// It did not: nothing of it may be seen.
    Aborted,
    /// Nobody told the client: it counts as committed if somebody saw its writes.
    Unknown,
}

/// One transaction as its client saw it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Transaction {
    /// Who ran it. A process runs one transaction after the other.
    pub process: u32,
    /// When it was begun, on a clock all processes share; only the order matters.
    pub invoked: u64,
    /// When its end was known.
    pub completed: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// In the order it did them. Reads that failed are left out; writes that failed belong to aborted
    /// transactions and are kept.
    pub operations: Vec<Operation>,
}

impl Transaction {
    /// A transaction without operations.
    pub fn new(process: u32, invoked: u64, completed: u64, outcome: Outcome) -> Self {
        Transaction { process, invoked, completed, outcome, operations: Vec::new() }
    }

    /// One that committed.
    pub fn committed(process: u32, invoked: u64, completed: u64) -> Self {
        Self::new(process, invoked, completed, Outcome::Committed)
    }

    /// One that did not.
    pub fn aborted(process: u32, invoked: u64, completed: u64) -> Self {
        Self::new(process, invoked, completed, Outcome::Aborted)
    }

    fn with(mut self, operation: Operation) -> Self {
        self.operations.push(operation);
        self
    }

    /// Then it appends.
    #[must_use]
    pub fn append(self, object: Object, value: u64) -> Self {
        self.with(Operation::Append { object, value })
    }

    /// Then it reads a list.
    #[must_use]
    pub fn read_list(self, object: Object, values: &[u64]) -> Self {
        self.with(Operation::ReadList { object, values: values.to_vec() })
    }

    /// Then it writes a register.
    #[must_use]
    pub fn write(self, object: Object, value: u64) -> Self {
        self.with(Operation::Write { object, value })
    }

    /// Then it reads a register.
    #[must_use]
    pub fn read(self, object: Object, value: Option<u64>) -> Self {
        self.with(Operation::Read { object, value })
    }

    /// Then it adds to a set.
    #[must_use]
    pub fn add(self, object: Object, value: u64) -> Self {
        self.with(Operation::Add { object, value })
    }

    /// Then it removes from a set.
    #[must_use]
    pub fn remove(self, object: Object, value: u64) -> Self {
        self.with(Operation::Remove { object, value })
    }

    /// Then it reads a set.
    #[must_use]
    pub fn read_set(self, object: Object, values: &[u64]) -> Self {
        self.with(Operation::ReadSet { object, values: values.to_vec() })
    }
}

/// A history that tells nothing, because a rule of the workload was broken: not the database's fault.
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
    /// Adds a transaction; it is known as `T` and its place from now on.
    pub fn push(&mut self, transaction: Transaction) {
        self.transactions.push(transaction);
    }

    /// Gives an object a name for explanations.
    pub fn name(&mut self, object: Object, name: impl Into<String>) {
        self.names.insert(object, name.into());
    }

    /// The transactions.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// For tests of a checker: the transactions, to be falsified.
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
