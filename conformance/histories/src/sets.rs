//! Sets: each value is added once and removed at most once, so its life has three parts.
//!
//! A reader that met the value comes after the addition (wr) and before the removal (rw). A reader that did not meet it
//! comes before the addition (rw) if the value was never removed. If it was removed, the reader may have come before
//! both or after both. These two cases are distinguished only if the reader began after the addition had ended: then it
//! came after the removal. An addition of unknown outcome may have ended at any later time, so it distinguishes
//! nothing. Additions of different values commute: they are unordered, like the edges of one vertex.

use std::collections::HashSet;

use crate::anomaly::Anomaly;
use crate::graph::{Edges, REAL_TIME, RW, WR};
use crate::history::{Operation, Outcome};
use crate::index::{Index, Uses};

/// The life of one value.
struct Life {
    value: u64,
    adder: u32,
    /// The transaction that removed it, committed or of unknown outcome.
    remover: Option<u32>,
}

/// Adds the dependencies over the set at `object_index` of the index, and the anomalies that its reads show.
pub(crate) fn infer(index: &Index<'_>, object_index: u32, edges: &mut Edges, anomalies: &mut Vec<Anomaly>) {
    let uses = &index.objects[object_index as usize];
    let lives = lives(index, uses);
    for life in &lives {
        if let Some(remover) = life.remover.filter(|&r| index.includes(r)) {
            // A transaction can remove only a value that it has seen.
            edges.add(life.adder, remover, WR, object_index);
        }
    }
    for &(reader, o) in uses.operations.iter().filter(|(t, _)| index.includes(*t)) {
        let Operation::ReadSet { values, .. } = index.operation((reader, o)) else { continue };
        anomalies.extend(values.iter().filter_map(|&value| index.bad_read(reader, uses.object, value, false)));
        let met: HashSet<u64> = values.iter().copied().collect();
        for life in &lives {
            if met.contains(&life.value) {
                edges.add(life.adder, reader, WR, object_index);
                if let Some(remover) = life.remover.filter(|&r| index.includes(r)) {
                    edges.add(reader, remover, RW, object_index);
                }
            } else {
                not_met(index, object_index, life, reader, edges);
            }
        }
    }
}

/// Adds the dependencies of a reader that did not meet the value.
fn not_met(index: &Index<'_>, object_index: u32, life: &Life, reader: u32, edges: &mut Edges) {
    match life.remover {
        // The reader removed the value itself; the removal already orders it after the addition.
        Some(remover) if remover == reader => {}
        Some(remover) => {
            let adder = index.transaction(life.adder);
            // A transaction of unknown outcome may have ended at any later time.
            let has_ended = adder.outcome == Outcome::Committed;
            let is_after_addition = has_ended && adder.completed < index.transaction(reader).invoked;
            if is_after_addition && index.includes(remover) {
                edges.add(remover, reader, REAL_TIME, object_index);
            }
        }
        None => edges.add(reader, life.adder, RW, object_index),
    }
}

/// The life of each value that a transaction that counts has added.
fn lives(index: &Index<'_>, uses: &Uses) -> Vec<Life> {
    let added = uses.operations.iter().filter(|(t, _)| index.includes(*t));
    added
        .filter_map(|&(adder, o)| match *index.operation((adder, o)) {
            Operation::Add { value, .. } => Some(Life { value, adder, remover: index.remover(uses.object, value) }),
            _ => None,
        })
        .collect()
}
