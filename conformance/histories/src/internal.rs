//! Checks each transaction against itself: repeated reads must agree, with its own writes in them. At most one anomaly
//! is reported for a transaction.

use std::collections::{HashMap, HashSet};

use crate::anomaly::{Anomaly, Kind, Order};
use crate::explain;
use crate::history::{Object, Operation};
use crate::index::Index;

/// The content of an object, as far as a transaction knows it.
enum Known<'h> {
    /// The whole list.
    List(Vec<u64>),
    /// The end of a list that the transaction has not read: its own appends.
    ListEnd(Vec<u64>),
    Register(Option<u64>),
    Set(SetKnown<'h>),
}

#[derive(Default)]
struct SetKnown<'h> {
    read: Option<&'h [u64]>,
    /// The transaction's own additions and removals.
    added: HashSet<u64>,
    removed: HashSet<u64>,
}

pub(crate) fn check(index: &Index<'_>, anomalies: &mut Vec<Anomaly>) {
    for (t, transaction) in index.history.transactions().iter().enumerate() {
        if !index.included[t] {
            continue;
        }
        let mut known: HashMap<Object, Known<'_>> = HashMap::new();
        for operation in &transaction.operations {
            let object = operation.object();
            let agrees = match known.get_mut(&object) {
                Some(before) => before.meet(operation),
                None => {
                    known.insert(object, Known::first(operation));
                    true
                }
            };
            if !agrees {
                let shown = explain::transactions(index.history, &[t as u32], Some(object));
                let name = index.history.show(object);
                anomalies.push(Anomaly {
                    kind: Kind::Internal,
                    order: Order::Data,
                    transactions: vec![t],
                    explanation: format!("T{t} contradicts itself on {name}\n{shown}"),
                });
                break;
            }
        }
    }
}

impl<'h> Known<'h> {
    /// The content as the first operation on the object shows it.
    fn first(operation: &'h Operation) -> Self {
        match operation {
            Operation::Append { value, .. } => Known::ListEnd(vec![*value]),
            Operation::ReadList { values, .. } => Known::List(values.clone()),
            Operation::Write { value, .. } => Known::Register(Some(*value)),
            Operation::Read { value, .. } => Known::Register(*value),
            Operation::Add { .. } | Operation::Remove { .. } | Operation::ReadSet { .. } => {
                let mut set = SetKnown::default();
                set.meet(operation);
                Known::Set(set)
            }
        }
    }

    /// Applies one more operation. Returns false if it contradicts the known content.
    fn meet(&mut self, operation: &'h Operation) -> bool {
        match (self, operation) {
            (Known::List(list) | Known::ListEnd(list), Operation::Append { value, .. }) => {
                list.push(*value);
                true
            }
            (Known::List(list), Operation::ReadList { values, .. }) => list == values,
            (this @ Known::ListEnd(_), Operation::ReadList { values, .. }) => {
                let Known::ListEnd(end) = &*this else { unreachable!("the pattern says so") };
                let agrees = values.ends_with(end);
                *this = Known::List(values.clone());
                agrees
            }
            (Known::Register(known), Operation::Write { value, .. }) => {
                *known = Some(*value);
                true
            }
            (Known::Register(known), Operation::Read { value, .. }) => known == value,
            (Known::Set(set), operation) => set.meet(operation),
            // The index guarantees that all operations on an object are of one type.
            _ => true,
        }
    }
}

impl<'h> SetKnown<'h> {
    fn meet(&mut self, operation: &'h Operation) -> bool {
        match operation {
            Operation::Add { value, .. } => {
                self.added.insert(*value);
                true
            }
            Operation::Remove { value, .. } => {
                self.added.remove(value);
                self.removed.insert(*value);
                true
            }
            Operation::ReadSet { values, .. } => {
                let agrees = self.agrees(values);
                self.read = Some(values);
                self.added.clear();
                // Removals stay: a value that was removed is never added again.
                agrees
            }
            _ => true,
        }
    }

    /// Returns true if a read of these values agrees with the earlier read and the transaction's own changes.
    fn agrees(&self, values: &[u64]) -> bool {
        let met: HashSet<u64> = values.iter().copied().collect();
        if met.len() != values.len() || !self.added.iter().all(|v| met.contains(v)) {
            return false;
        }
        if self.removed.iter().any(|v| met.contains(v)) {
            return false;
        }
        let Some(read) = self.read else { return true };
        let kept = read.iter().filter(|v| !self.removed.contains(v)).count();
        met.len() == kept + self.added.len() && read.iter().all(|v| self.removed.contains(v) || met.contains(v))
    }
}
