//! Making and dropping property indexes while other transactions read and write.
//!
//! An index is made in four steps:
//!
//! 1. *Register.* The index comes into the store's list. Writers that find it there add entries for the values that
//!    they write.
//! 2. *Scan.* The builder adds entries for all versions that its start snapshot or a later one may see. Writer and
//!    builder store, pass a fence, and then look, so a value is met by at least one of them.
//! 3. *Check.* The values of a unique index must be unique, or the index is dropped again. Values that running
//!    transactions have written count too, because a commit does not check them again.
//! 4. *Publish.* Snapshots from then on use the index.

use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use mangrove_graph::statistics::IndexStatistics;
use mangrove_graph::{
    ElementId, ElementKind, Error, ErrorKind, IndexId, IndexInfo, IndexRange, KeyId, LabelSetId, Result, UserId, Value,
    VertexId,
};
use mangrove_reclaim::epoch;

use crate::index::{ElementBits, INDEX_KEYS_MAX, IndexKey, IndexOptions, IndexReport, PropertyIndex};
use crate::page::{PAGE_SLOTS, PageCore, Tablet};
use crate::store::{Slot, Store};
use crate::version::{NEVER, Snapshot};
use crate::write::index_entries::{Versions, each_key};
use crate::write::unique::ValueClaim;

/// Two elements that hold the same values of an index.
pub(crate) struct Duplicate {
    pub(crate) elements: [ElementId; 2],
    pub(crate) values: IndexKey,
}

impl Store {
    /// Makes an index. Snapshots use it from the timestamp that `now()` gives when the index is complete. `now` gives a
    /// timestamp at or below which every transaction has finished. Other transactions go on meanwhile.
    ///
    /// Fails with `DuplicateId` if the same index exists, or if two elements have the same values of a unique index;
    /// with `Conflict` if they would have them after running transactions commit; with `InvalidArgument` if the keys
    /// are wrong. After an error there is no index.
    pub fn create_index(&self, options: &IndexOptions, now: impl Fn() -> u64) -> Result<IndexId> {
        self.check_options(options)?;
        let newest_snapshot = || {
            let ts = now();
            // The builder compares version words with the timestamp, so no large commit may still be finalizing.
            self.installing.wait();
            Snapshot::committed(ts)
        };
        // Taken first: every snapshot that will use the index is at least as new.
        let start = newest_snapshot();
        let index = self.register(options)?;
        // Store, then look. Pairs with the fence after a writer's store into a cell: either the writer sees the index
        // registered, or the scan sees the cell.
        fence(Ordering::SeqCst);
        self.tablets.iter().for_each(|tablet| self.index_tablet(&index, tablet, &start));
        if options.unique
            && let Err(error) = self.check_unique_from(&index, &newest_snapshot())
        {
            self.drop_index(index.info.id)?;
            return Err(error);
        }
        index.publish(now());
        Ok(index.info.id)
    }

    /// Makes an index of the process that this store follows, under its number. As [`Store::create_index`], without
    /// checks: the owner has made them. Does nothing if there is an index of that number.
    pub fn create_index_of_owner(&self, info: &IndexInfo, now: impl Fn() -> u64) {
        self.reserve_index_numbers(info.id.0 + 1);
        if self.has_index(info.id) {
            return;
        }
        let start = Snapshot::committed(now());
        self.installing.wait();
        let index = self.register_restored(info);
        // Store, then look, as in `create_index`.
        fence(Ordering::SeqCst);
        self.tablets.iter().for_each(|tablet| self.index_tablet(&index, tablet, &start));
        index.publish(now());
    }

    /// Fails if an index cannot be on these keys.
    fn check_options(&self, options: &IndexOptions) -> Result<()> {
        let keys = &options.keys;
        if keys.is_empty() || keys.len() > INDEX_KEYS_MAX {
            let message = format!("an index is on 1 to {INDEX_KEYS_MAX} property keys, not on {}", keys.len());
            return Err(Error::invalid(message));
        }
        match keys.iter().enumerate().find(|(at, key)| keys[..*at].contains(key)) {
            None => Ok(()),
            Some((_, &twice)) => {
                let name = self.catalog().key_name(twice);
                Err(Error::invalid(format!("an index has each of its keys once, and '{name}' is given twice")))
            }
        }
    }

    /// Drops an index. A query that was about to use it gets `NotFound` from the view, and scans instead.
    pub fn drop_index(&self, id: IndexId) -> Result<()> {
        self.drop_index_after(id, || Ok(()))
    }

    /// As [`Store::drop_index`], after `first` has succeeded. [`Store::online_indexes`] waits until the index is gone
    /// or `first` has failed.
    pub fn drop_index_after(&self, id: IndexId, first: impl FnOnce() -> Result<()>) -> Result<()> {
        let dropped = {
            let _turn = self.index_changes.lock();
            let mut indexes = Vec::clone(&self.indexes.load());
            let Some(at) = indexes.iter().position(|index| index.info.id == id) else {
                return Err(Error::new(ErrorKind::NotFound, format!("there is no index {}", id.0)));
            };
            first()?;
            let dropped = indexes.remove(at);
            self.indexes.store(Arc::new(indexes));
            dropped
        };
        dropped.close(&self.memory);
        Ok(())
    }

    /// All indexes, including those that are being built.
    pub fn indexes(&self) -> Vec<IndexInfo> {
        self.indexes.load().iter().map(|index| index.info.clone()).collect()
    }

    /// Returns true if an index exists, complete or not.
    pub(crate) fn has_index(&self, id: IndexId) -> bool {
        self.indexes.load().iter().any(|index| index.info.id == id)
    }

    /// A report on each index.
    pub fn index_reports(&self) -> Vec<IndexReport> {
        self.indexes.load().iter().map(|index| index.report()).collect()
    }

    /// The size of each index.
    pub fn index_sizes(&self) -> Vec<IndexStatistics> {
        self.indexes.load().iter().map(|index| index.size()).collect()
    }

    /// About how many entries an index has for these values under its first keys and a range under the next key. They
    /// are candidates: some may be of older values. `None` if there is no such index, or if it does not answer that.
    /// Reads no values of elements; takes well below a microsecond for a range.
    pub fn expected_entries(&self, index: IndexId, prefix: &[Value], range: &IndexRange) -> Option<u64> {
        let indexes = self.indexes.load();
        indexes.iter().find(|known| known.info.id == index)?.candidate_count(prefix, range)
    }

    /// The position of a key among the keys of an index, if the index covers elements of this kind and label set.
    pub(crate) fn key_position(
        &self,
        index: &IndexInfo,
        (kind, labels): (ElementKind, LabelSetId),
        key: KeyId,
    ) -> Option<usize> {
        let position = index.keys.iter().position(|&k| k == key).filter(|_| index.element == kind)?;
        index.label.is_none_or(|label| self.catalog().labels_of(labels).contains(&label)).then_some(position)
    }

    /// Adds an empty index to the list, so that writers add entries to it.
    fn register(&self, options: &IndexOptions) -> Result<Arc<PropertyIndex>> {
        let mut changes = self.index_changes.lock();
        let mut indexes = Vec::clone(&self.indexes.load());
        let same = |index: &Arc<PropertyIndex>| {
            let info = &index.info;
            (info.element, info.label, &*info.keys, info.ordered, info.unique)
                == (options.element, options.label, &*options.keys, options.ordered, options.unique)
        };
        if let Some(twin) = indexes.iter().find(|index| same(index)) {
            let message = format!("the same index exists already, as number {}", twin.info.id.0);
            return Err(Error::new(ErrorKind::DuplicateId, message));
        }
        let index = Arc::new(PropertyIndex::new(IndexId(changes.next_id), options, &self.memory));
        changes.next_id += 1;
        indexes.push(index.clone());
        self.indexes.store(Arc::new(indexes));
        Ok(index)
    }

    /// Adds an index of a restored graph, or of the process that this store follows, to the list under its number. No
    /// other thread changes the list.
    pub(crate) fn register_restored(&self, info: &IndexInfo) -> Arc<PropertyIndex> {
        let _turn = self.index_changes.lock();
        let IndexInfo { id, element, label, ref keys, ordered, unique } = *info;
        let options = IndexOptions { element, label, keys: keys.to_vec(), ordered, unique };
        let index = Arc::new(PropertyIndex::new(id, &options, &self.memory));
        let mut indexes = Vec::clone(&self.indexes.load());
        indexes.push(index.clone());
        self.indexes.store(Arc::new(indexes));
        index
    }

    /// Ensures that the next index gets at least this number.
    pub(crate) fn reserve_index_numbers(&self, next: u32) {
        let mut changes = self.index_changes.lock();
        changes.next_id = next.max(changes.next_id);
    }

    /// The indexes that queries use, and the number of the next index: the part of the indexes that a checkpoint keeps.
    pub fn online_indexes(&self) -> (Vec<IndexInfo>, u32) {
        let changes = self.index_changes.lock();
        let online = self.indexes.load().iter().filter(|index| index.report().online).map(|i| i.info.clone()).collect();
        (online, changes.next_id)
    }

    /// Adds entries for all values in a tablet that this snapshot or a later one may see.
    pub(crate) fn index_tablet(&self, index: &PropertyIndex, tablet: &Tablet, from: &Snapshot<'_>) {
        tablet.cores(index.info.element).for_each(|(number, core)| self.index_page(index, tablet, number, core, from));
    }

    /// Adds entries for all values on a page that this snapshot or a later one may see. The page is one of the kind of
    /// elements that the index covers.
    pub(crate) fn index_page(
        &self,
        index: &PropertyIndex,
        tablet: &Tablet,
        number: usize,
        core: &PageCore,
        from: &Snapshot<'_>,
    ) {
        let (kind, first) = (index.info.element, index.info.keys[0]);
        if core.column(first).is_none() || self.key_position(&index.info, (kind, core.label), first).is_none() {
            return;
        }
        // One pin for each page, so that a long scan does not hold back the reuse of memory.
        let pin = epoch::pin();
        for at in 0..core.used() {
            if core.version(at).0 == NEVER {
                continue;
            }
            // The bits of an id do not depend on the kind of the element.
            let bits = VertexId::new(tablet.id, core.slot_number(number as u64 * PAGE_SLOTS, at)).to_bits();
            let (element, slot) = (ElementId::from_bits(kind, bits), Slot { tablet, core, at });
            each_key(index, &slot, None, Versions::From(from), &pin, |key| index.add(key, element, None, &self.memory));
        }
    }

    /// Fails if two elements have the same values of an index in a snapshot, or may get them by the commit of a
    /// transaction that the snapshot does not see.
    ///
    /// Such a transaction may have written its values before the index was registered, or before the scan had added the
    /// entry of the other element. Then it has met no rival, and it meets none at its commit.
    fn check_unique_from(&self, index: &PropertyIndex, snapshot: &Snapshot<'_>) -> Result<()> {
        let claimed = self.first_shared_as(index, snapshot, |claim| claim != ValueClaim::None);
        let Some(claimed) = claimed else { return Ok(()) };
        let (keys, kind) = (&index.info.keys, index.info.element.plural());
        if let Some(Duplicate { elements: [one, other], values }) = self.first_duplicate(index, snapshot) {
            let message = format!(
                "two {kind} have {}, so a unique index cannot be made of it; change one of them first. Their ids are {} \
                 and {}",
                self.shown(keys, &values),
                self.shown_id_of(one),
                self.shown_id_of(other)
            );
            return Err(Error::new(ErrorKind::DuplicateId, message));
        }
        Err(Error::conflict(format!(
            "two {kind} may have {} after a running transaction commits, so a unique index cannot be made of it yet; \
             create the index again after that transaction has ended",
            self.shown(keys, &claimed.values)
        )))
    }

    fn shown_id_of(&self, element: ElementId) -> String {
        let external = VertexId::from_bits(element.to_bits()).external();
        self.slot(element).map_or_else(|| external.to_string(), |slot| self.shown_id(&slot, external))
    }

    /// The id by which users know the element in a slot, for an error message.
    pub(crate) fn shown_id(&self, slot: &Slot<'_>, external: i64) -> String {
        UserId::from_value(&self.user_id(slot, external)).unwrap_or(UserId::int(external)).to_string()
    }

    /// Two elements that have the same values in the snapshot. `None` if all values are unique.
    pub(crate) fn first_duplicate(&self, index: &PropertyIndex, snapshot: &Snapshot<'_>) -> Option<Duplicate> {
        self.first_shared_as(index, snapshot, |claim| claim == ValueClaim::Visible)
    }

    /// Two elements that hold the same values. `counts` returns true if an element with this claim on the values holds
    /// them.
    fn first_shared_as(
        &self,
        index: &PropertyIndex,
        snapshot: &Snapshot<'_>,
        counts: impl Fn(ValueClaim) -> bool,
    ) -> Option<Duplicate> {
        let mut duplicate = None;
        let all = index.each_group(|elements| {
            for (i, &one) in elements.iter().enumerate() {
                duplicate = self.first_shared(index, one, &elements[i + 1..], snapshot, &counts);
                if duplicate.is_some() {
                    return Err(());
                }
            }
            Ok(())
        });
        debug_assert_eq!(all.is_err(), duplicate.is_some());
        duplicate
    }

    /// An element and the first of `others` that holds the same values.
    fn first_shared(
        &self,
        index: &PropertyIndex,
        one: ElementBits,
        others: &[ElementBits],
        snapshot: &Snapshot<'_>,
        counts: &impl Fn(ValueClaim) -> bool,
    ) -> Option<Duplicate> {
        if others.is_empty() {
            return None;
        }
        let pin = epoch::pin();
        let one = index.element(one);
        let slot = self.slot(one).filter(|slot| slot.core.version(slot.at).0 != NEVER)?;
        let mut mine = Vec::new();
        each_key(index, &slot, None, Versions::From(snapshot), &pin, |key| mine.push(key));
        let keys = &index.info.keys;
        mine.into_iter().filter(|key| key.values().len() == keys.len()).find_map(|values| {
            let holds = |&id: &ElementId| counts(self.claims_values(id, keys, values.values(), snapshot, &pin));
            let other = others.iter().map(|&other| index.element(other)).filter(|_| holds(&one)).find(holds)?;
            Some(Duplicate { elements: [one, other], values })
        })
    }
}
