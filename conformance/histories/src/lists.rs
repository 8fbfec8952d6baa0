//! Lists: one read reveals the whole history of a list.
//!
//! The longest read gives the order of versions; every other read must be a prefix of it. Committed appends that no
//! read saw come after the longest read. Then each append depends on the one before (ww), a reader on the last append
//! that it saw (wr), and the next append on the reader (rw). All other dependencies follow along the chain.

use std::collections::{HashMap, HashSet};

use crate::anomaly::{Anomaly, Kind, Order};
use crate::explain;
use crate::graph::{Edges, RW, WR, WW};
use crate::history::Operation;
use crate::index::{Index, Uses};

/// One read by a transaction that counts.
struct Read<'h> {
    transaction: u32,
    values: &'h [u64],
    /// The number of values before the transaction's own appends.
    foreign: usize,
}

/// Adds the dependencies over the list at `object_index` of the index, and the anomalies that its reads show.
pub(crate) fn infer(index: &Index<'_>, object_index: u32, edges: &mut Edges, anomalies: &mut Vec<Anomaly>) {
    let uses = &index.objects[object_index as usize];
    let reads = reads(index, uses);
    let longest = reads.iter().max_by_key(|read| read.values.len());
    let order = longest.map_or(&[][..], |read| read.values);
    check_values(index, uses, longest, anomalies);

    let unread = unread_appends(index, uses, order);
    let writers: Vec<Option<u32>> = order.iter().map(|&value| index.committed_writer(uses.object, value)).collect();
    for pair in writers.windows(2) {
        if let [Some(before), Some(after)] = pair {
            edges.add(*before, *after, WW, object_index);
        }
    }
    if let Some(Some(last)) = writers.last() {
        unread.iter().for_each(|&after| edges.add(*last, after, WW, object_index));
    }
    for read in &reads {
        if !order.starts_with(read.values) {
            anomalies.push(incompatible(index, uses, read, longest));
            check_all(index, uses, read, anomalies);
            continue;
        }
        let seen = read.foreign;
        if let Some(Some(writer)) = seen.checked_sub(1).map(|last| writers[last]) {
            edges.add(writer, read.transaction, WR, object_index);
            anomalies.extend(index.bad_read(read.transaction, uses.object, order[seen - 1], true));
        }
        match writers.get(seen) {
            Some(Some(next)) => edges.add(read.transaction, *next, RW, object_index),
            Some(None) => {}
            None => unread.iter().for_each(|&next| edges.add(read.transaction, next, RW, object_index)),
        }
    }
    lost_updates(index, uses, &reads, anomalies);
}

/// The reads of a list by transactions that count.
fn reads<'h>(index: &Index<'h>, uses: &Uses) -> Vec<Read<'h>> {
    let own = |transaction, value| index.writer(uses.object, value).is_some_and(|w| w.transaction == transaction);
    uses.operations
        .iter()
        .filter(|&&(transaction, _)| index.includes(transaction))
        .filter_map(|&(transaction, operation)| match index.operation((transaction, operation)) {
            Operation::ReadList { values, .. } => {
                let foreign = values.iter().position(|&v| own(transaction, v)).unwrap_or(values.len());
                Some(Read { transaction, values, foreign })
            }
            _ => None,
        })
        .collect()
}

/// Committed appends that no read saw: they come after the longest read.
fn unread_appends(index: &Index<'_>, uses: &Uses, order: &[u64]) -> Vec<u32> {
    let read: HashSet<u64> = order.iter().copied().collect();
    let mut writers: Vec<u32> = uses
        .operations
        .iter()
        .filter(|&&(transaction, _)| index.includes(transaction))
        .filter(|&&at| matches!(index.operation(at), Operation::Append { value, .. } if !read.contains(value)))
        .map(|&(transaction, _)| transaction)
        .collect();
    writers.dedup();
    writers
}

/// The anomalies of the longest read's values: a value twice, or one that no read may return.
fn check_values(index: &Index<'_>, uses: &Uses, longest: Option<&Read<'_>>, anomalies: &mut Vec<Anomaly>) {
    let Some(read) = longest else { return };
    let mut positions = HashMap::new();
    for (i, value) in read.values.iter().enumerate() {
        if let Some(before) = positions.insert(value, i) {
            let name = index.history.show(uses.object);
            anomalies.push(Anomaly {
                kind: Kind::DuplicateValue,
                order: Order::Data,
                transactions: vec![read.transaction as usize],
                explanation: format!("T{} read {value} in {name} at {before} and at {i}", read.transaction),
            });
        }
    }
    check_all(index, uses, read, anomalies);
}

/// The values of a read that no read may return, as anomalies.
fn check_all(index: &Index<'_>, uses: &Uses, read: &Read<'_>, anomalies: &mut Vec<Anomaly>) {
    let bad = |&value: &u64| index.bad_read(read.transaction, uses.object, value, false);
    anomalies.extend(read.values.iter().filter_map(bad));
}

/// The anomaly of a read that is no prefix of the longest one.
fn incompatible(index: &Index<'_>, uses: &Uses, read: &Read<'_>, longest: Option<&Read<'_>>) -> Anomaly {
    let transactions: Vec<u32> = [Some(read), longest].into_iter().flatten().map(|r| r.transaction).collect();
    let name = index.history.show(uses.object);
    let shown = explain::transactions(index.history, &transactions, Some(uses.object));
    Anomaly {
        kind: Kind::IncompatibleOrder,
        order: Order::Data,
        transactions: transactions.into_iter().map(|t| t as usize).collect(),
        explanation: format!("of two reads of {name} neither is a beginning of the other\n{shown}"),
    }
}

/// Finds two transactions that read one version and then both appended.
fn lost_updates(index: &Index<'_>, uses: &Uses, reads: &[Read<'_>], anomalies: &mut Vec<Anomaly>) {
    let appended: HashSet<u32> = uses
        .operations
        .iter()
        .filter(|&&at| matches!(index.operation(at), Operation::Append { .. }))
        .map(|&(transaction, _)| transaction)
        .collect();
    let mut first: HashMap<usize, u32> = HashMap::new();
    for read in reads.iter().filter(|r| r.foreign == r.values.len() && appended.contains(&r.transaction)) {
        let winner = *first.entry(read.foreign).or_insert(read.transaction);
        if winner != read.transaction {
            anomalies.push(explain::lost_update(index, uses.object, winner, read.transaction));
        }
    }
}
