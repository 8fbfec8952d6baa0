//! The anomalies by name, and which level forbids which.

use std::collections::BTreeMap;
use std::fmt;

/// What went wrong. The cycles are Adya's, with the refinements of Elle; `docs/isolation.md` explains
/// them in words.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Kind {
    /// A transaction read something that contradicts what it read or wrote before: a fuzzy read, a phantom, an
    /// own write that is not seen.
    Internal,
    /// Somebody read a value that nobody wrote.
    GarbageRead,
    /// A value is twice in a list.
    DuplicateValue,
    /// Two reads of a list of which neither is a beginning of the other.
    IncompatibleOrder,
    /// An aborted transaction's write was read.
    G1a,
    /// A value was read that its writer replaced before it committed.
    G1b,
    /// Two transactions read the same version of an object and both replaced it.
    LostUpdate,
    /// A cycle of writes that follow one another: dirty writes.
    G0,
    /// A cycle of writes and reads: circular information flow.
    G1c,
    /// A cycle with one anti-dependency: read skew.
    GSingle,
    /// Two readers saw two independent writes in opposite orders.
    LongFork,
    /// A cycle with several anti-dependencies, no two of them in a row.
    GNonadjacent,
    /// A cycle with two anti-dependencies in a row, all over single objects: write skew.
    G2Item,
    /// The same with one over a predicate: a phantom between two transactions.
    G2,
}

impl Kind {
    /// The name used in the literature, and in words.
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

/// Which order of transactions an anomaly contradicts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Order {
    /// None but that of the data: no order at all explains what was read.
    Data,
    /// That in which one process ran its transactions.
    Process,
    /// That in which one transaction had ended before the other began.
    RealTime,
}

/// A level of isolation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Level {
    /// Adya's PL-2: G0 and G1 are forbidden.
    ReadCommitted,
    /// Snapshot isolation, from any snapshot of the past: only cycles with two anti-dependencies in a row are left.
    Snapshot,
    /// The same, and a snapshot contains everything that was acknowledged before its transaction began.
    StrongSnapshot,
    /// As if one after the other.
    Serializable,
    /// As if one after the other, each at some moment between its begin and its end.
    StrictSerializable,
}

impl Level {
    fn respects(self, order: Order) -> bool {
        order == Order::Data || matches!(self, Level::StrongSnapshot | Level::StrictSerializable)
    }

    /// Whether a history at this level has no such anomaly.
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
    /// What went wrong.
    pub kind: Kind,
    /// What it takes to see it.
    pub order: Order,
    /// The transactions that take part, by their place in the history; of a cycle, in its order.
    pub transactions: Vec<usize>,
    /// The evidence, for people.
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

/// What a history was found to contain.
#[derive(Clone, Default, Debug)]
pub struct Report {
    /// Each kind of anomaly with some examples, the simplest first. Of the strongly connected transactions of one
    /// kind, one cycle is reported.
    pub anomalies: Vec<Anomaly>,
    /// How many transactions took part in the check: committed, or seen to have committed.
    pub transaction_count: usize,
    /// How many dependencies were found.
    pub dependency_count: usize,
}

impl Report {
    /// What this level forbids.
    pub fn violations(&self, level: Level) -> impl Iterator<Item = &Anomaly> {
        self.anomalies.iter().filter(move |anomaly| level.forbids(anomaly))
    }

    /// How often each kind was found.
    pub fn counts(&self) -> BTreeMap<Kind, usize> {
        let mut counts = BTreeMap::new();
        for anomaly in &self.anomalies {
            *counts.entry(anomaly.kind).or_default() += 1;
        }
        counts
    }
}
