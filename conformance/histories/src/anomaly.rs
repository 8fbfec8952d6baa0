//! The anomalies by name, and the isolation levels that forbid them.

use std::collections::BTreeMap;
use std::fmt;

/// A kind of anomaly. The cycles are Adya's, with the refinements of Elle; `docs/isolation.md` explains them in words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A transaction read a value that contradicts its earlier reads or writes: a fuzzy read, a phantom, or a missing
    /// own write.
    Internal,
    /// A read returned a value that no transaction wrote.
    GarbageRead,
    /// A list contains a value twice.
    DuplicateValue,
    /// Of two reads of one list, neither is a prefix of the other.
    IncompatibleOrder,
    /// A read returned a write of an aborted transaction.
    G1a,
    /// A read returned a value that its writer replaced before it committed.
    G1b,
    /// Two transactions read the same version of an object, and both replaced it.
    LostUpdate,
    /// A cycle of write dependencies: dirty writes.
    G0,
    /// A cycle of write and read dependencies: circular information flow.
    G1c,
    /// A cycle with one anti-dependency: read skew.
    GSingle,
    /// Two readers saw two independent writes in opposite orders: a long fork.
    LongFork,
    /// A cycle with several anti-dependencies, no two of them adjacent.
    GNonadjacent,
    /// A cycle with two adjacent anti-dependencies, all over single objects: write skew.
    G2Item,
    /// The same with an anti-dependency over a predicate: a phantom between two transactions.
    G2,
}

impl Kind {
    /// The name in the literature, and in words.
    pub fn text(self) -> &'static str {
        match self {
            Kind::Internal => "internal inconsistency",
            Kind::GarbageRead => "garbage read",
            Kind::DuplicateValue => "duplicate value",
            Kind::IncompatibleOrder => "incompatible order",
            Kind::G1a => "G1a (aborted read)",
            Kind::G1b => "G1b (intermediate read)",
            Kind::LostUpdate => "lost update",
            Kind::G0 => "G0 (dirty write)",
            Kind::G1c => "G1c (circular information flow)",
            Kind::GSingle => "G-single (read skew)",
            Kind::LongFork => "long fork",
            Kind::GNonadjacent => "G-nonadjacent",
            Kind::G2Item => "G2-item (write skew)",
            Kind::G2 => "G2 (write skew over a predicate)",
        }
    }
}

/// The order of transactions that an anomaly contradicts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// The order of the data alone: no order of transactions explains the reads.
    Data,
    /// The order in which one process ran its transactions.
    Process,
    /// Real time: one transaction had ended before the other began.
    RealTime,
}

/// An isolation level.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Adya's PL-2: G0 and G1 are forbidden.
    ReadCommitted,
    /// Snapshot isolation from any past snapshot: only cycles with two adjacent anti-dependencies remain.
    Snapshot,
    /// Strong snapshot isolation: also, a snapshot contains every transaction acknowledged before the reader began.
    StrongSnapshot,
    /// Serializable: as if transactions ran one after the other, in any order, even against real time.
    Serializable,
    /// Strict serializable: as if each ran at one moment between its begin and its end.
    StrictSerializable,
}

impl Level {
    /// Returns true if this level must respect the order, beyond the data.
    fn respects(self, order: Order) -> bool {
        order == Order::Data || matches!(self, Level::StrongSnapshot | Level::StrictSerializable)
    }

    /// Returns true if this level forbids the anomaly.
    pub fn forbids(self, anomaly: &Anomaly) -> bool {
        if !self.respects(anomaly.order) {
            return false;
        }
        match self {
            Level::ReadCommitted => !matches!(
                anomaly.kind,
                Kind::Internal
                    | Kind::LostUpdate
                    | Kind::GSingle
                    | Kind::LongFork
                    | Kind::GNonadjacent
                    | Kind::G2Item
                    | Kind::G2
            ),
            Level::Snapshot | Level::StrongSnapshot => !matches!(anomaly.kind, Kind::G2Item | Kind::G2),
            Level::Serializable | Level::StrictSerializable => true,
        }
    }
}

/// One anomaly.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Anomaly {
    /// The kind of the anomaly.
    pub kind: Kind,
    /// The order that it contradicts.
    pub order: Order,
    /// The transactions that take part, as indexes into the history; those of a cycle in its order.
    pub transactions: Vec<usize>,
    /// The evidence, as text.
    pub explanation: String,
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let suffix = match self.order {
            Order::Data => "",
            Order::Process => ", in the order of a process",
            Order::RealTime => ", in real time",
        };
        write!(f, "{}{suffix}: {}", self.kind.text(), self.explanation)
    }
}

/// The anomalies of a history.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Examples of each kind, simplest first. Not all cycles are among them: one of each family of cycles in each
    /// strongly connected component (`cycles`).
    pub anomalies: Vec<Anomaly>,
    /// The number of transactions in the check: committed, or of unknown outcome and seen by others.
    pub transaction_count: usize,
    /// The number of dependencies.
    pub dependency_count: usize,
}

impl Report {
    /// The anomalies that this level forbids.
    pub fn violations(&self, level: Level) -> impl Iterator<Item = &Anomaly> {
        self.anomalies.iter().filter(move |anomaly| level.forbids(anomaly))
    }

    /// The number of anomalies of each kind.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for anomaly in &self.anomalies {
            *counts.entry(anomaly.kind).or_default() += 1;
        }
        counts
    }
}
