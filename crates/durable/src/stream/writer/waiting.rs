//! What was handed over to a writer and is in no object: commits, and records that belong to no commit.

use std::collections::{BTreeMap, BTreeSet};

use mangrove_graph::TabletId;

use super::super::format::Batch;

/// Bytes of records above which no further commit is added to an object.
const OBJECT_BYTES_MAX: u64 = 64 << 20;

/// A commit that is handed over.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HandedOver {
    /// The commit timestamp.
    pub ts: u64,
    /// The tablets that the commit changes.
    pub tablets: Vec<TabletId>,
    /// Its framed records.
    pub records: Vec<u8>,
}

#[derive(Debug)]
struct WaitingCommit {
    commit: HandedOver,
    since_us: u64,
}

/// Commits and records that are in no object.
#[derive(Debug, Default)]
pub(super) struct Waiting {
    /// By timestamp.
    commits: BTreeMap<u64, WaitingCommit>,
    /// Framed records that belong to no commit. They begin the next object.
    leading: Vec<u8>,
    /// How many times such records were taken.
    leading_count: u64,
    /// Since when a caller has waited for one of them; `None` if no caller waits.
    awaited_since_us: Option<u64>,
    /// Bytes of all records.
    bytes: u64,
}

/// What goes into one object.
#[derive(Debug)]
pub(super) struct Portion {
    /// Its commits, without a *through*.
    pub(super) batch: Batch,
    pub(super) records: Vec<u8>,
    /// All leading records up to this number are in the object, or in those before it.
    pub(super) leading_count: u64,
}

impl Waiting {
    pub(super) fn add(&mut self, commit: HandedOver, now_us: u64) {
        self.bytes += commit.records.len() as u64;
        self.commits.insert(commit.ts, WaitingCommit { commit, since_us: now_us });
    }

    /// Takes records that belong to no commit. Returns their number, from 1.
    pub(super) fn lead(&mut self, records: &[u8], is_awaited: bool, now_us: u64) -> u64 {
        self.bytes += records.len() as u64;
        self.leading.extend_from_slice(records);
        self.leading_count += 1;
        if is_awaited {
            self.awaited_since_us.get_or_insert(now_us);
        }
        self.leading_count
    }

    /// Bytes of all records.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The number of commits.
    pub(super) fn commits(&self) -> usize {
        self.commits.len()
    }

    /// Returns true if no caller waits for a commit or a record.
    pub(super) fn is_empty(&self) -> bool {
        self.commits.is_empty() && self.awaited_since_us.is_none()
    }

    /// Returns true if a commit waits that the watermark has passed.
    pub(super) fn has_commit(&self, watermark: u64) -> bool {
        self.commits.first_key_value().is_some_and(|(ts, _)| *ts <= watermark)
    }

    /// Since when a caller has waited for a commit or a record that may go into an object; `None` if no caller does.
    pub(super) fn ready_since_us(&self, watermark: u64) -> Option<u64> {
        let first = self.commits.first_key_value().filter(|(ts, _)| **ts <= watermark);
        first.map(|(_, waiting)| waiting.since_us).into_iter().chain(self.awaited_since_us).min()
    }

    /// Takes what goes into the next object: the leading records, then commits up to the watermark in order.
    pub(super) fn take(&mut self, watermark: u64) -> Portion {
        let mut batch = Batch::default();
        let mut tablets = BTreeSet::new();
        let mut records = std::mem::take(&mut self.leading);
        self.awaited_since_us = None;
        while let Some(entry) = self.commits.first_entry().filter(|entry| *entry.key() <= watermark) {
            let bytes = (records.len() + entry.get().commit.records.len()) as u64;
            if batch.commits > 0 && bytes > OBJECT_BYTES_MAX {
                break;
            }
            let commit = entry.remove().commit;
            batch.first_ts = if batch.commits == 0 { commit.ts } else { batch.first_ts };
            batch.last_ts = commit.ts;
            batch.commits += 1;
            tablets.extend(commit.tablets);
            records.extend_from_slice(&commit.records);
        }
        batch.tablets = tablets;
        self.bytes -= records.len() as u64;
        Portion { batch, records, leading_count: self.leading_count }
    }
}
