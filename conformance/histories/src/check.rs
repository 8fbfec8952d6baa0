//! Runs all parts of the check in turn.
//!
//! The index comes first. Then each part adds anomalies that it sees at once, or dependencies; the cycles of all
//! dependencies together are the remaining anomalies.

use crate::anomaly::Report;
use crate::explain::lost_update;
use crate::graph::{Edges, Graph};
use crate::history::{History, InvalidHistory, Type};
use crate::index::Index;
use crate::{cycles, internal, lists, order, registers, sets};

/// Finds the anomalies of a history. Returns an error if the history breaks a rule of the workload, such as a value
/// that is written twice: then it says nothing about the database.
pub fn check(history: &History) -> Result<Report, InvalidHistory> {
    let index = Index::new(history)?;
    let (mut edges, mut anomalies) = (Edges::default(), Vec::new());
    internal::check(&index, &mut anomalies);
    for (object_index, uses) in index.objects.iter().enumerate() {
        let infer = match uses.kind {
            Type::List => lists::infer,
            Type::Register => registers::infer,
            Type::Set => sets::infer,
        };
        infer(&index, object_index as u32, &mut edges, &mut anomalies);
    }
    anomalies.extend(index.removed_twice.iter().map(|&(object, one, two)| lost_update(&index, object, one, two)));
    order::processes(&index, &mut edges);
    order::real_time(&index, &mut edges);
    let graph = Graph::new(history.transactions().len(), edges);
    anomalies.extend(cycles::find(&index, &graph));
    anomalies.sort_by_key(|a| (a.order, a.kind, a.transactions.len()));
    anomalies.dedup_by(|a, b| a.kind == b.kind && a.transactions == b.transactions && a.order == b.order);
    let transaction_count = index.included.iter().filter(|i| **i).count();
    Ok(Report { anomalies, transaction_count, dependency_count: graph.edge_count() })
}
