//! What a serializable transaction has read: items at its begin, items at later moments, predicates.
//!
//! Most items are read at the begin timestamp (`base`). An item that was *pre-read* was read as of a later moment
//! `s`, with everything that had entered validation by then taken for committed; `later` knows `s` by item, `batches` of
//! items that were read for the first time together, and `writers` whom that relied on. An item read at two moments counts
//! as read at the earlier one, so a change between the two is seen by validation.
//!
//! Several threads may read in one transaction. A read is added after it was made, so two of them may read an item at two
//! moments, each without knowing of the other. A [`ReadMark`] taken before a read tells what another thread has added
//! since: that takes nothing away from the read, and the rule above holds.

use std::collections::BTreeMap;

use mangrove_graph::{ElementKind, LabelFilter, MemoryBudget, Result};
use mangrove_store::access_set::{
    Item, ItemSet, MergedWrites, NewestNames, Predicate, ReadTimestamps, Signature, WriteSet,
};

use crate::held::Held;

/// Fewer items that were read together at a later moment are kept one by one.
const BATCH_MIN: usize = 8;

/// When an item is to be read, so that it is read at one moment only.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Moment {
    /// At the begin, as before.
    Begin,
    /// At this later moment, as before.
    Later(u64),
    /// It has not been read yet.
    Any,
}

/// How many names there were when a transaction began.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct KnownNames {
    pub(crate) label_sets: u32,
    pub(crate) keys: u32,
}

/// What was in a read set when a read began.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReadMark {
    /// How often items of later moments had been added.
    additions: u64,
}

/// When an item was pre-read.
#[derive(Clone, Copy, Debug)]
struct Later {
    moment: u64,
    /// Which addition of items of later moments brought it, from 1.
    addition: u64,
}

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct ReadSet {
    base: ItemSet,
    later: BTreeMap<Item, Later>,
    /// Moments, and the items read then, frozen. An item is in two, or in `later` or `base` too, only where several
    /// threads read it at once.
    batches: Vec<(Later, ItemSet)>,
    /// How often items of later moments were added.
    additions: u64,
    predicates: Vec<Predicate>,
    /// Whether it names label sets of vertices: those that came later would have to be among them.
    names_vertex_labels: bool,
    /// The same of edges.
    names_edge_labels: bool,
    /// Whether it looked for a key that nobody had used.
    misses_keys: bool,
    writers: Vec<u64>,
    /// The latest moment something was read at; 0: all at the begin.
    latest: u64,
    signature: Signature,
    /// What `batches` take.
    batch_bytes: usize,
    held: Held,
}

/// What an item in `later` takes, with its share of a node of the tree that is two thirds full.
const LATER_BYTES: usize = (size_of::<Item>() + size_of::<Later>()) * 3 / 2;

impl ReadSet {
    /// Draws from the memory budget what the set takes. If the budget has no room, this fails, and the transaction must not
    /// read on.
    #[inline]
    pub(crate) fn draw(&mut self, budget: &MemoryBudget) -> Result<()> {
        if budget.is_unlimited() {
            return Ok(());
        }
        let bytes = self.base.bytes() + self.later.len() * LATER_BYTES + self.batch_bytes;
        self.held.cover(bytes, budget)
    }

    /// What is in the set, for a read that begins now.
    #[inline]
    pub(crate) fn mark(&self) -> ReadMark {
        ReadMark { additions: self.additions }
    }

    /// Adds an item read at the begin, where there was nothing newer, by a read that began at the mark.
    ///
    /// One that was pre-read before that stays so: that nothing newer is there now is then because the transaction has
    /// written it itself (or because the version was rolled back, and with it goes this transaction). One that another
    /// thread has pre-read since is of both moments.
    #[inline]
    pub(crate) fn add(&mut self, item: Item, begun: ReadMark) {
        if self.later_read(item).is_none_or(|later| later.addition > begun.additions) {
            self.base.add(item);
        }
    }

    /// Gets ready for so many more items.
    pub(crate) fn reserve(&mut self, items: usize) {
        self.base.reserve(items);
    }

    /// The later moment that an item was read at.
    #[inline]
    fn later_read(&self, item: Item) -> Option<Later> {
        if self.latest == 0 {
            return None;
        }
        let batch = || self.batches.iter().find(|(_, items)| items.contains(item)).map(|(later, _)| *later);
        self.later.get(&item).copied().or_else(batch)
    }

    /// Adds an item read at the begin, although there may be something newer: what is read there and nowhere else
    /// (scans, values), whatever else is known of it.
    pub(crate) fn add_in_spite(&mut self, item: Item) {
        self.base.add(item);
    }

    /// Adds a predicate read at the begin.
    pub(crate) fn add_predicate(&mut self, predicate: Predicate) {
        if !self.predicates.contains(&predicate) {
            self.predicates.push(predicate);
        }
    }

    /// Says that elements of a kind were chosen by label sets, if they were.
    pub(crate) fn name_labels(&mut self, kind: ElementKind, labels: &LabelFilter) {
        if matches!(labels, LabelFilter::Sets(_)) {
            match kind {
                ElementKind::Vertex => self.names_vertex_labels = true,
                ElementKind::Edge => self.names_edge_labels = true,
            }
        }
    }

    /// Says that a name was looked for among the keys, and is none.
    pub(crate) fn miss_key(&mut self) {
        self.misses_keys = true;
    }

    /// When these items are to be read.
    pub(crate) fn moment_of(&self, items: &[Item]) -> Moment {
        if items.iter().any(|item| self.base.contains(*item)) {
            return Moment::Begin;
        }
        let later = items.iter().filter_map(|item| self.later_read(*item));
        later.map(|later| later.moment).max().map_or(Moment::Any, Moment::Later)
    }

    /// Whether none of these items was read before.
    pub(crate) fn are_new(&self, items: &[Item]) -> bool {
        let has_read = !self.base.is_empty() || self.latest > 0;
        !has_read || items.iter().all(|item| !self.base.contains(*item) && self.later_read(*item).is_none())
    }

    /// Adds items that were read together at a later moment and not before; otherwise as [`ReadSet::add_later`].
    pub(crate) fn add_batch_later(&mut self, items: &[Item], moment: u64, writers: &[u64]) {
        if items.len() <= BATCH_MIN {
            return self.add_later(items, moment, writers);
        }
        let mut batch = ItemSet::default();
        batch.reserve(items.len());
        items.iter().for_each(|item| batch.add(*item));
        batch.freeze();
        self.batch_bytes += batch.bytes();
        self.add_later(&[], moment, writers);
        self.batches.push((Later { moment, addition: self.additions }, batch));
    }

    /// Adds items that were read at a later moment, relying on these writers to commit.
    pub(crate) fn add_later(&mut self, items: &[Item], moment: u64, writers: &[u64]) {
        self.additions += 1;
        let later = Later { moment, addition: self.additions };
        for item in items {
            self.later.entry(*item).and_modify(|known| known.moment = moment.min(known.moment)).or_insert(later);
        }
        self.latest = self.latest.max(moment);
        for ts in writers {
            if !self.writers.contains(ts) {
                self.writers.push(*ts);
            }
        }
    }

    /// The latest moment something was read at; 0: all at the begin.
    pub(crate) fn latest(&self) -> u64 {
        self.latest
    }

    /// The validators that were taken for committed.
    pub(crate) fn writers(&self) -> &[u64] {
        &self.writers
    }

    /// Gets ready to be compared with write sets.
    pub(crate) fn freeze(&mut self) {
        self.base.freeze();
        self.signature = *self.base.signature();
        let mut later = ItemSet::default();
        self.later.keys().for_each(|item| later.add(*item));
        self.signature.join(later.signature());
        self.batches.iter().for_each(|(_, items)| self.signature.join(items.signature()));
    }

    /// Whether nothing was read. Looking for a name that nobody has used yet is a read that names no item.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0 && !self.names_vertex_labels && !self.names_edge_labels && !self.misses_keys
    }

    /// How many items and predicates.
    pub(crate) fn len(&self) -> usize {
        let batches: usize = self.batches.iter().map(|(_, items)| items.len()).sum();
        self.base.len() + self.later.len() + batches + self.predicates.len()
    }

    /// Whether a write set with this summary could matter; `known` names there were at the begin.
    #[inline]
    pub(crate) fn may_meet(&self, signature: &Signature, newest: NewestNames, known: KnownNames) -> bool {
        self.signature.meets(signature) || !self.predicates.is_empty() || self.is_newer_name(newest, known)
    }

    fn is_newer_name(&self, newest: NewestNames, known: KnownNames) -> bool {
        (self.names_vertex_labels && newest.vertex >= known.label_sets)
            || (self.names_edge_labels && newest.edge >= known.label_sets)
            || (self.misses_keys && newest.key >= known.keys)
    }

    /// The items, each with the moment it was read at; frozen.
    pub(crate) fn moments(&self, begin_ts: u64) -> ReadTimestamps {
        let mut moments = ReadTimestamps::default();
        moments.add_all(&self.base, begin_ts);
        self.later.iter().for_each(|(item, later)| moments.add(*item, later.moment));
        self.batches.iter().for_each(|(later, items)| moments.add_all(items, later.moment));
        moments.freeze();
        moments
    }

    /// As [`ReadSet::meets`], of merged writes; `moments` are those of this set.
    pub(crate) fn meets_merged(
        &self,
        writes: &MergedWrites,
        moments: &ReadTimestamps,
        begin_ts: u64,
        known: KnownNames,
    ) -> bool {
        writes.change(moments)
            || self.predicates.iter().any(|predicate| writes.meet_after(begin_ts, predicate))
            || self.is_newer_name(writes.newest(), known)
            || writes.large().any(|(ts, writes)| ts > begin_ts && self.meets(writes, ts, known))
    }

    /// Whether what was written at `ts` changes what was read; frozen.
    pub(crate) fn meets(&self, writes: &WriteSet, ts: u64, known: KnownNames) -> bool {
        self.base.meets(writes.items())
            || self.later.iter().any(|(item, later)| ts > later.moment && writes.items().contains(*item))
            || self.batches.iter().any(|(later, items)| ts > later.moment && items.meets(writes.items()))
            || self.predicates.iter().any(|predicate| writes.meets(predicate))
            || self.is_newer_name(writes.newest(), known)
    }
}
