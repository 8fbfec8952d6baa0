//! The entries that an element has in a property index: combinations of the values of the index's keys.
//!
//! In an index on one key, an element has an entry for each value of each version. In an index on several keys, a
//! snapshot sees one combination of versions, and there is an entry for every combination that some snapshot may see.
//! So a writer of one key combines the new value with every version of the other keys that may be visible beside it.
//! These are the version that the writer sees, and versions that other transactions have claimed or committed since.
//!
//! If two transactions write two keys of one element at the same time, each stores first and reads second (the SeqCst
//! fence of `write_cell`). So at least one of them meets the value of the other.
//!
//! A hash index has entries for complete combinations only. An ordered index has, for an element that lacks a key,
//! an entry for the keys before that one. It serves equality on the first keys and a range on the next.

use std::sync::atomic::Ordering;

use mangrove_graph::{ElementId, KeyId, Value};
use mangrove_reclaim::{Pin, epoch};

use crate::index::{IndexKey, PropertyIndex};
use crate::store::{Slot, Store};
use crate::version::{Snapshot, contested};

/// The values that an element may have under one key. `None` in the list means that it may lack the key.
type Choices = Vec<Option<Value>>;

/// The versions of a property that entries are made for.
#[derive(Clone, Copy)]
pub(crate) enum Versions<'a> {
    /// All versions.
    All,
    /// The versions that this snapshot or a later one may see. A transaction with the snapshot combines the value that
    /// it writes with these, and an index that no older snapshot uses needs no others.
    From(&'a Snapshot<'a>),
}

/// Calls `each` with the combinations that an element has entries for. `fixed` is the position of a key in the index and
/// the only choice for this key.
pub(crate) fn each_key(
    index: &PropertyIndex,
    slot: &Slot<'_>,
    fixed: Option<(usize, Option<&Value>)>,
    versions: Versions<'_>,
    pin: &Pin,
    mut each: impl FnMut(IndexKey),
) {
    let keys = &index.info.keys;
    if let ([_], Some((_, value))) = (&keys[..], fixed) {
        value.into_iter().for_each(|value| each(IndexKey::One(value.clone())));
        return;
    }
    let choices: Vec<Choices> = keys
        .iter()
        .enumerate()
        .map(|(at, &key)| match fixed {
            Some((position, value)) if position == at => vec![value.cloned()],
            _ => choices(slot, key, versions, pin),
        })
        .collect();
    combine(&choices, index.info.ordered, &mut Vec::new(), &mut each);
}

/// Calls `each` with every combination of choices that begins with the values `so_far`. If `partial`, a missing value
/// ends a combination early.
fn combine(choices: &[Choices], partial: bool, so_far: &mut Vec<Value>, each: &mut impl FnMut(IndexKey)) {
    let Some((first, rest)) = choices.split_first() else { return each(IndexKey::new(so_far.clone())) };
    for choice in first {
        match choice {
            Some(value) => {
                so_far.push(value.clone());
                combine(rest, partial, so_far, each);
                so_far.pop();
            }
            None if partial && !so_far.is_empty() => each(IndexKey::new(so_far.clone())),
            None => {}
        }
    }
}

/// The values of the versions of a key.
fn choices(slot: &Slot<'_>, key: KeyId, versions: Versions<'_>, pin: &Pin) -> Choices {
    let Some(column) = slot.core.column(key) else { return vec![None] };
    let (mut choices, mut is_seen) = (Choices::new(), false);
    column.each_version(slot.at, slot.tablet.undo_under(pin), |version, cell| {
        if is_seen {
            return;
        }
        // Newest first: neither the snapshot nor a later one sees a version that is older than the one it sees.
        is_seen = matches!(versions, Versions::From(snapshot) if !contested(version, snapshot));
        let before = choices.len();
        slot.tablet.values.values(cell, |value| choices.push(Some(value.clone())));
        if choices.len() == before {
            choices.push(None);
        }
    });
    // Most elements have one choice, few have more. Equal choices that are not adjacent cost a second look at an entry.
    choices.dedup();
    choices
}

impl Store {
    /// Returns true if some version of an element still needs its entry under a key. Looks after a SeqCst fence, which
    /// the removal of an entry needs (`index::property_index`).
    fn needs_entry(&self, index: &PropertyIndex, element: ElementId, wanted: &IndexKey) -> bool {
        std::sync::atomic::fence(Ordering::SeqCst);
        let Some(slot) = self.slot(element) else { return false };
        let pin = epoch::pin();
        let choices = |key: &KeyId| choices(&slot, *key, Versions::All, &pin);
        let values = wanted.values();
        let has_all = index
            .info
            .keys
            .iter()
            .zip(values)
            .all(|(key, value)| choices(key).iter().flatten().any(|choice| index.keys_are_equal(choice, value)));
        // A shorter entry is for an element that lacks the next key.
        has_all && index.info.keys.get(values.len()).is_none_or(|key| choices(key).contains(&None))
    }

    /// Removes the entries of a value that no version of the element has. The collector calls it *after* it has unlinked
    /// the version with the value.
    ///
    /// If two threads unlink versions of two keys of one element at the same time, an entry of a composite index may be
    /// left over. It takes memory and is harmless, since readers check candidates.
    pub fn unindex_value(&self, element: ElementId, key: KeyId, value: &Value) {
        let pin = epoch::pin();
        let Some(slot) = self.slot(element) else { return };
        for index in self.indexes.load().iter() {
            let Some(position) = self.key_position(&index.info, (element.kind(), slot.core.label), key) else {
                continue;
            };
            each_key(index, &slot, Some((position, Some(value))), Versions::All, &pin, |key| {
                index.remove_if(&key, element, || self.needs_entry(index, element, &key), &self.memory);
            });
        }
    }

    /// Removes all entries of an element. The collector calls it before it clears the columns of an element that no
    /// snapshot sees.
    pub fn unindex_element(&self, element: ElementId) {
        let pin = epoch::pin();
        let Some(slot) = self.slot(element) else { return };
        for index in self.indexes.load().iter() {
            let of = (element.kind(), slot.core.label);
            if self.key_position(&index.info, of, index.info.keys[0]).is_some() {
                each_key(index, &slot, None, Versions::All, &pin, |key| {
                    index.remove_if(&key, element, || false, &self.memory);
                });
            }
        }
    }
}
