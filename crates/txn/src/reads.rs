//! The read set of a serializable transaction: items read at its begin, items read at later timestamps, and predicates.
//!
//! Most items are read at the begin timestamp (`base`). An item that was *pre-read* was read at a later timestamp `s`,
//! with every transaction that had entered validation by then taken for committed. `later` knows `s` by item, and
//! `batches` knows it for items that were first read together. `must_commit` lists the transactions that those reads
//! relied on.
//!
//! - **TXN-11.** An item that was read at two timestamps counts as read at the earlier one. So validation sees a change
//!   between the two.
//!
//! Several threads may read in one transaction. A read is added to the set after it was made, so two threads may read
//! one item at two timestamps, each without knowing of the other's read. A [`ReadMark`] taken before a read tells which
//! pre-reads were added after the read began: such a pre-read does not replace a read at the begin (TXN-11).

use std::collections::BTreeMap;

use mangrove_graph::{ElementKind, LabelFilter, MemoryBudget, Result};

use crate::access_set::{Item, ItemSet, MergedWrites, NewestNames, Predicate, ReadTimestamps, Signature, WriteSet};
use crate::memory::TransactionMemory;

/// Batches of at most this many items are kept item by item.
const BATCH_MIN: usize = 8;

/// The timestamp at which an item must be read, so that reads are repeatable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KnownReadTs {
    /// At the begin, where it was read before.
    Begin,
    /// At this later timestamp, where it was pre-read before.
    Later(u64),
    /// At any timestamp: it has not been read.
    Unread,
}

/// How many names the catalog had when a transaction began. A younger name cannot be among its items.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownNames {
    pub(crate) label_sets: u32,
    pub(crate) keys: u32,
}

/// The state of a read set when a read began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadMark {
    /// How many additions of pre-reads there had been.
    additions: u64,
}

/// The timestamp of a pre-read, and its place among the additions to the set.
#[derive(Clone, Copy, Debug)]
struct Later {
    read_ts: u64,
    /// The number of the addition that brought it, from 1.
    addition: u64,
}

/// The read set of one transaction. It grows until the transaction enters validation, and is then frozen.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    /// Items read at the begin.
    base: ItemSet,
    /// Items that were pre-read one by one.
    later: BTreeMap<Item, Later>,
    /// Items that were pre-read together, frozen. An item is in two batches, or in `later` or `base` too, only if
    /// several threads read it at once.
    batches: Vec<(Later, ItemSet)>,
    /// How many additions of pre-reads there have been.
    additions: u64,
    predicates: Vec<Predicate>,
    /// True if the set names label sets of vertices. A label set that is created later would have to be among them.
    names_vertex_labels: bool,
    /// The same for edges.
    names_edge_labels: bool,
    /// True if a read looked for a property key that did not exist.
    misses_keys: bool,
    /// Commit timestamps of the transactions that pre-reads took for committed.
    must_commit: Vec<u64>,
    /// The latest timestamp of a pre-read; 0 if all reads were at the begin.
    latest: u64,
    signature: Signature,
    /// Bytes of `batches`.
    batch_bytes: usize,
    memory: TransactionMemory,
}

/// Bytes of an item in `later`, with its share of a tree node that is two thirds full.
const LATER_BYTES: usize = (size_of::<Item>() + size_of::<Later>()) * 3 / 2;

impl ReadSet {
    /// Draws the memory of the set from the budget. If the budget has no room, this fails, and the transaction must not
    /// read on.
    #[inline]
    pub(crate) fn draw(&mut self, budget: &MemoryBudget) -> Result<()> {
        if budget.is_unlimited() {
            return Ok(());
        }
        let bytes = self.base.bytes() + self.later.len() * LATER_BYTES + self.batch_bytes;
        self.memory.cover(bytes, budget)
    }

    /// Returns the mark for a read that begins now.
    #[inline]
    pub(crate) fn mark(&self) -> ReadMark {
        ReadMark { additions: self.additions }
    }

    /// Adds an item that was read at the begin and had no newer version, by a read that began at the mark.
    ///
    /// An item that was pre-read before the mark stays a pre-read. That it has no newer version now means that the
    /// transaction has written it itself, or that the version was rolled back, which aborts this transaction too. An
    /// item that another thread has pre-read since the mark counts as read at both timestamps (TXN-11).
    #[inline]
    pub(crate) fn add(&mut self, item: Item, begun: ReadMark) {
        if self.later_read(item).is_none_or(|later| later.addition > begun.additions) {
            self.base.add(item);
        }
    }

    /// Reserves room for `items` more items read at the begin.
    pub(crate) fn reserve(&mut self, items: usize) {
        self.base.reserve(items);
    }

    /// Returns the pre-read of an item, if it was pre-read.
    #[inline]
    fn later_read(&self, item: Item) -> Option<Later> {
        if self.latest == 0 {
            return None;
        }
        let batch = || self.batches.iter().find(|(_, items)| items.contains(item)).map(|(later, _)| *later);
        self.later.get(&item).copied().or_else(batch)
    }

    /// Adds an item that was read at the begin although it may have a newer version: scans and values, which are never
    /// pre-read.
    pub(crate) fn add_at_begin(&mut self, item: Item) {
        self.base.add(item);
    }

    /// Adds a predicate read at the begin.
    pub(crate) fn add_predicate(&mut self, predicate: Predicate) {
        if !self.predicates.contains(&predicate) {
            self.predicates.push(predicate);
        }
    }

    /// Notes that elements of a kind were chosen by label set, if the filter does that.
    pub(crate) fn name_labels(&mut self, kind: ElementKind, labels: &LabelFilter) {
        if matches!(labels, LabelFilter::Sets(_)) {
            match kind {
                ElementKind::Vertex => self.names_vertex_labels = true,
                ElementKind::Edge => self.names_edge_labels = true,
            }
        }
    }

    /// Notes that a read looked for a property key that does not exist.
    pub(crate) fn miss_key(&mut self) {
        self.misses_keys = true;
    }

    /// Returns the timestamp at which these items must be read.
    pub(crate) fn read_ts_of(&self, items: &[Item]) -> KnownReadTs {
        if items.iter().any(|item| self.base.contains(*item)) {
            return KnownReadTs::Begin;
        }
        let later = items.iter().filter_map(|item| self.later_read(*item));
        later.map(|later| later.read_ts).max().map_or(KnownReadTs::Unread, KnownReadTs::Later)
    }

    /// Returns true if none of these items was read before.
    pub(crate) fn are_new(&self, items: &[Item]) -> bool {
        let has_read = !self.base.is_empty() || self.latest > 0;
        !has_read || items.iter().all(|item| !self.base.contains(*item) && self.later_read(*item).is_none())
    }

    /// Adds items that were pre-read together and not read before.
    pub(crate) fn add_batch_later(&mut self, items: &[Item], read_ts: u64, must_commit: &[u64]) {
        if items.len() <= BATCH_MIN {
            return self.add_later(items, read_ts, must_commit);
        }
        let mut batch = ItemSet::default();
        batch.reserve(items.len());
        items.iter().for_each(|item| batch.add(*item));
        batch.freeze();
        self.batch_bytes += batch.bytes();
        self.add_later(&[], read_ts, must_commit);
        self.batches.push((Later { read_ts, addition: self.additions }, batch));
    }

    /// Adds items that were pre-read at `read_ts`. The read relied on the commit of `must_commit`.
    pub(crate) fn add_later(&mut self, items: &[Item], read_ts: u64, must_commit: &[u64]) {
        debug_assert!(read_ts > 0);
        self.additions += 1;
        let later = Later { read_ts, addition: self.additions };
        for item in items {
            // TXN-11: the earlier timestamp stays.
            self.later.entry(*item).and_modify(|known| known.read_ts = read_ts.min(known.read_ts)).or_insert(later);
        }
        self.latest = self.latest.max(read_ts);
        for ts in must_commit {
            if !self.must_commit.contains(ts) {
                self.must_commit.push(*ts);
            }
        }
    }

    /// The latest timestamp of a pre-read; 0 if all reads were at the begin.
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    /// Commit timestamps of the transactions that must commit for these reads to be right.
    pub(crate) fn must_commit(&self) -> &[u64] {
        &self.must_commit
    }

    /// Prepares the set to be compared with write sets.
    pub(crate) fn freeze(&mut self) {
        self.base.freeze();
        self.signature = *self.base.signature();
        let mut later = ItemSet::default();
        self.later.keys().for_each(|item| later.add(*item));
        self.signature.join(later.signature());
        self.batches.iter().for_each(|(_, items)| self.signature.join(items.signature()));
    }

    /// Returns true if nothing was read. A look for a name that does not exist is a read that names no item.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && !self.names_vertex_labels && !self.names_edge_labels && !self.misses_keys
    }

    /// The number of items and predicates.
    pub(crate) fn len(&self) -> usize {
        let batches: usize = self.batches.iter().map(|(_, items)| items.len()).sum();
        self.base.len() + self.later.len() + batches + self.predicates.len()
    }

    /// Returns true if a write set with this summary may conflict. `known` are the names at the begin.
    #[inline]
    pub(crate) fn may_meet(&self, signature: &Signature, newest: NewestNames, known: KnownNames) -> bool {
        self.signature.meets(signature) || !self.predicates.is_empty() || self.is_newer_name(newest, known)
    }

    fn is_newer_name(&self, newest: NewestNames, known: KnownNames) -> bool {
        (self.names_vertex_labels && newest.vertex >= known.label_sets)
            || (self.names_edge_labels && newest.edge >= known.label_sets)
            || (self.misses_keys && newest.key >= known.keys)
    }

    /// The items with the timestamp each was read at, frozen.
    pub(crate) fn read_timestamps(&self, begin_ts: u64) -> ReadTimestamps {
        let mut read_timestamps = ReadTimestamps::default();
        read_timestamps.add_all(&self.base, begin_ts);
        self.later.iter().for_each(|(item, later)| read_timestamps.add(*item, later.read_ts));
        self.batches.iter().for_each(|(later, items)| read_timestamps.add_all(items, later.read_ts));
        read_timestamps.freeze();
        read_timestamps
    }

    /// As [`ReadSet::meets`], for merged write sets. `read_timestamps` are those of this set.
    pub(crate) fn meets_merged(
        &self,
        writes: &MergedWrites,
        read_timestamps: &ReadTimestamps,
        begin_ts: u64,
        known: KnownNames,
    ) -> bool {
        writes.change(read_timestamps)
            || self.predicates.iter().any(|predicate| writes.meet_after(begin_ts, predicate))
            || self.is_newer_name(writes.newest(), known)
            || writes.large().any(|(ts, writes)| ts > begin_ts && self.meets(writes, ts, known))
    }

    /// Returns true if the write set of `ts` changes something that was read before `ts`. The set is frozen.
    pub(crate) fn meets(&self, writes: &WriteSet, ts: u64, known: KnownNames) -> bool {
        self.base.meets(writes.items())
            || self.later.iter().any(|(item, later)| ts > later.read_ts && writes.items().contains(*item))
            || self.batches.iter().any(|(later, items)| ts > later.read_ts && items.meets(writes.items()))
            || self.predicates.iter().any(|predicate| writes.meets(predicate))
            || self.is_newer_name(writes.newest(), known)
    }
}
