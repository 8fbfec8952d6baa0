//! Explains anomalies as text.

use std::fmt::Write as _;

use crate::anomaly::{Anomaly, Kind, Order};
use crate::graph::{Edge, PROCESS, RW, WR, WW};
use crate::history::{History, Object, Operation, Outcome};
use crate::index::Index;

/// The largest number of operations shown of one transaction.
const OPERATIONS_MAX: usize = 24;

/// One transaction a line. If an object is given, only operations on it are shown.
pub(crate) fn transactions(history: &History, shown: &[u32], only: Option<Object>) -> String {
    let mut text = String::new();
    for &t in shown {
        let transaction = &history.transactions()[t as usize];
        let operations: Vec<String> = transaction
            .operations
            .iter()
            .filter(|o| only.is_none_or(|object| o.object() == object))
            .map(|o| operation(history, o))
            .collect();
        let outcome = match transaction.outcome {
            Outcome::Committed => "committed",
            Outcome::Aborted => "aborted",
            Outcome::Unknown => "outcome unknown",
        };
        let cut = if operations.len() > OPERATIONS_MAX { ", …" } else { "" };
        let listed = operations[..operations.len().min(OPERATIONS_MAX)].join(", ");
        let (process, from, to) = (transaction.process, transaction.invoked, transaction.completed);
        let _ = writeln!(text, "  T{t} (process {process}, {from} to {to}, {outcome}): {listed}{cut}");
    }
    text
}

fn operation(history: &History, operation: &Operation) -> String {
    let name = history.show(operation.object());
    match operation {
        Operation::Append { value, .. } => format!("append {value} to {name}"),
        Operation::ReadList { values, .. } => format!("read {name} = {values:?}"),
        Operation::Write { value, .. } => format!("write {name} := {value}"),
        Operation::Read { value: Some(value), .. } => format!("read {name} = {value}"),
        Operation::Read { value: None, .. } => format!("read {name} = nothing"),
        Operation::Add { value, .. } => format!("add {value} to {name}"),
        Operation::Remove { value, .. } => format!("remove {value} from {name}"),
        Operation::ReadSet { values, .. } => {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            format!("read {name} = {sorted:?} in any order")
        }
    }
}

/// The transactions of a cycle, and the reason why each precedes the next.
pub(crate) fn cycle(index: &Index<'_>, cycle: &[Edge]) -> String {
    let members: Vec<u32> = cycle.iter().map(|e| e.from).collect();
    let mut text = format!("a cycle of {} transactions\n", cycle.len());
    text += &transactions(index.history, &members, None);
    for edge in cycle {
        let (from, to) = (edge.from, edge.to);
        let name = index.objects.get(edge.object as usize).map(|uses| index.history.show(uses.object));
        let name = name.unwrap_or_default();
        let reason = match edge.kind {
            WW => format!("T{to} wrote the version of {name} after T{from}'s"),
            WR => format!("T{to} saw in {name} what T{from} wrote"),
            RW => format!("T{from} read {name} without what T{to} changed"),
            PROCESS => "the same process ran them in this order".to_owned(),
            _ if name.is_empty() => format!("T{from} had ended when T{to} began"),
            _ => format!("T{to} began when a value of {name} was there, and found that T{from} had removed it"),
        };
        let _ = writeln!(text, "  T{from} came before T{to}: {reason}");
    }
    text
}

/// Two transactions that read one version and both replaced it.
pub(crate) fn lost_update(index: &Index<'_>, object: Object, one: u32, two: u32) -> Anomaly {
    let name = index.history.show(object);
    let shown = transactions(index.history, &[one, two], Some(object));
    Anomaly {
        kind: Kind::LostUpdate,
        order: Order::Data,
        transactions: vec![one as usize, two as usize],
        explanation: format!("T{one} and T{two} read the same version of {name}, and each wrote the next one\n{shown}"),
    }
}
