//! Orders that do not depend on the data: that of a process, and real time.

use std::collections::HashMap;

use crate::graph::{Edges, PROCESS, REAL_TIME};
use crate::history::Outcome;
use crate::index::Index;

/// Orders each transaction of a process after the one before.
pub(crate) fn processes(index: &Index<'_>, edges: &mut Edges) {
    let mut by_process: Vec<(u32, u64, u32)> =
        included(index).map(|t| (index.transaction(t).process, index.transaction(t).invoked, t)).collect();
    by_process.sort_unstable();
    for pair in by_process.windows(2) {
        if pair[0].0 == pair[1].0 {
            edges.add(pair[0].2, pair[1].2, PROCESS, u32::MAX);
        }
    }
}

/// Orders each transaction after those that had ended when it began, with few dependencies: the others follow from
/// them.
///
/// The *frontier* holds the transactions that ended last. A transaction that begins depends on all of them. When it
/// ends, it replaces them in the frontier. So a transaction gets at most one dependency for each process.
pub(crate) fn real_time(index: &Index<'_>, edges: &mut Edges) {
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    for t in included(index) {
        let transaction = index.transaction(t);
        events.push((transaction.invoked, false, t));
        // A transaction of unknown outcome may have ended at any later time.
        if transaction.outcome == Outcome::Committed {
            events.push((transaction.completed, true, t));
        }
    }
    // If times are equal, begins come before ends, so the transactions count as concurrent.
    events.sort_unstable();
    let mut frontier: Vec<u32> = Vec::new();
    let mut before: HashMap<u32, Vec<u32>> = HashMap::new();
    for (_, ended, t) in events {
        if ended {
            let implied = before.remove(&t).unwrap_or_default();
            frontier.retain(|f| !implied.contains(f));
            frontier.push(t);
        } else {
            frontier.iter().for_each(|&earlier| edges.add(earlier, t, REAL_TIME, u32::MAX));
            before.insert(t, frontier.clone());
        }
    }
}

/// The transactions that count.
fn included<'i>(index: &'i Index<'_>) -> impl Iterator<Item = u32> + 'i {
    (0..index.included.len() as u32).filter(|&t| index.includes(t))
}
