//! Registers: a read reveals the writer, and a transaction that reads and then writes reveals an order of versions.
//!
//! Version `v` comes before `w` if some transaction read (or wrote) `v` and then wrote `w`. The initial state, never
//! written, comes before all. A reader depends on the writer of its value (wr). The writers of later versions depend on
//! that writer (ww) and on the readers (rw). Blind writes are unordered, so with them the check finds fewer anomalies.

use std::collections::{HashMap, HashSet};

use crate::anomaly::Anomaly;
use crate::explain;
use crate::graph::{Edges, RW, WR, WW};
use crate::history::Operation;
use crate::index::{Index, Uses};

/// `None`: the initial state, never written.
type Version = Option<u64>;

#[derive(Default)]
struct Versions {
    /// The readers of each version, before they write the register themselves.
    readers: HashMap<Version, Vec<u32>>,
    /// The versions known to follow each version, with their writers.
    successors: HashMap<Version, Vec<u32>>,
    /// The versions that follow a version other than the initial state.
    placed: HashSet<u64>,
}

/// Adds the dependencies over the register at `object_index` of the index, and the anomalies that its reads show.
pub(crate) fn infer(index: &Index<'_>, object_index: u32, edges: &mut Edges, anomalies: &mut Vec<Anomaly>) {
    let uses = &index.objects[object_index as usize];
    let versions = versions(index, uses);
    for (version, readers) in &versions.readers {
        if let Some(value) = *version {
            for &reader in readers {
                anomalies.extend(index.bad_read(reader, uses.object, value, true));
                if let Some(writer) = index.committed_writer(uses.object, value) {
                    edges.add(writer, reader, WR, object_index);
                }
            }
        }
        for &next in versions.successors.get(version).into_iter().flatten() {
            readers.iter().for_each(|&reader| edges.add(reader, next, RW, object_index));
        }
    }
    for (version, next) in &versions.successors {
        if let Some(writer) = version.and_then(|value| index.committed_writer(uses.object, value)) {
            next.iter().for_each(|&next| edges.add(writer, next, WW, object_index));
        }
    }
    lost_updates(index, uses, &versions, anomalies);
}

fn versions(index: &Index<'_>, uses: &Uses) -> Versions {
    let mut versions = Versions::default();
    let mut written: Vec<(u32, u64)> = Vec::new();
    // The current transaction, the version that it is at, and true if it has written.
    let mut current: Option<(u32, Option<Version>, bool)> = None;
    for &(t, o) in uses.operations.iter().filter(|(t, _)| index.includes(*t)) {
        let (mut at, mut wrote) = match current {
            Some((transaction, at, wrote)) if transaction == t => (at, wrote),
            _ => (None, false),
        };
        match *index.operation((t, o)) {
            Operation::Read { value, .. } => {
                if !wrote {
                    versions.readers.entry(value).or_default().push(t);
                }
                at = Some(value);
            }
            Operation::Write { value, .. } => {
                // A version that the transaction itself wrote reveals nothing about others.
                if let Some(before) = at.filter(|_| !wrote) {
                    versions.successors.entry(before).or_default().push(t);
                    versions.placed.extend(before.map(|_| value));
                }
                written.push((t, value));
                (at, wrote) = (Some(Some(value)), true);
            }
            _ => {}
        }
        current = Some((t, at, wrote));
    }
    let unplaced = written.into_iter().filter(|(_, value)| !versions.placed.contains(value)).map(|(t, _)| t);
    let firsts = versions.successors.entry(None).or_default();
    firsts.extend(unplaced);
    firsts.sort_unstable();
    firsts.dedup();
    versions
}

/// Finds two transactions that read one version and then both wrote.
fn lost_updates(index: &Index<'_>, uses: &Uses, versions: &Versions, anomalies: &mut Vec<Anomaly>) {
    for (version, readers) in &versions.readers {
        let next = versions.successors.get(version).map_or(&[][..], Vec::as_slice);
        let mut updaters: Vec<u32> = readers.iter().copied().filter(|r| next.contains(r)).collect();
        updaters.sort_unstable();
        updaters.dedup();
        for pair in updaters.windows(2) {
            anomalies.push(explain::lost_update(index, uses.object, pair[0], pair[1]));
        }
    }
}
