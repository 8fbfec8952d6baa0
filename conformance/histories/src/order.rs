//! Orders that need no data: of a process, and of real time.

use std::collections::HashMap;

use crate::graph::{Edges, PROCESS, REAL_TIME};
use crate::history::Outcome;
use crate::index::Index;

/// Each transaction of a process after the one before.
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

/// Each transaction after those that had ended when it began: enough dependencies that the others follow.
///
/// The *frontier* holds the transactions that ended last: a transaction that begins depends on each; when it ends, it
/// takes the place of those. So there are at most as many dependencies a transaction as there are processes.
pub(crate) fn real_time(index: &Index<'_>, edges: &mut Edges) {
    let mut events: Vec<(u64, bool, u32)> = Vec::new();
    for t in included(index) {
        let transaction = index.transaction(t);
        events.push((transaction.invoked, false, t));
        // One whose end nobody saw may have ended at any time later.
        if transaction.outcome == Outcome::Committed {
            events.push((transaction.completed, true, t));
        }
    }
    // Where numbers are equal, begins come first: they are taken as concurrent.
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

fn included<'i>(index: &'i Index<'_>) -> impl Iterator<Item = u32> + 'i {
    (0..index.included.len() as u32).filter(|&t| index.includes(t))
}
