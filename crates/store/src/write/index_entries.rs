//! Which entries a vertex has: the combinations of the values of an index's keys.
//!
//! With one key these are the values of the key's versions. With several, a snapshot sees one combination of
//! versions, and every combination some snapshot may see has an entry. Whoever writes one key therefore
//! combines the new value with every version of the others that may live beside it: what a writer sees itself,
//! and what others have claimed or committed since. Two who write two keys of one vertex at the same time each
//! store first and read second (the SeqCst fence of `write_cell`), so one of them meets the other's value.
//!
//! A hash index has entries for complete combinations only. An ordered one keeps what stands before the first
//! key a vertex lacks, for equality on a prefix of the keys and a range on the next.

use std::sync::atomic::Ordering;

use mangrove_graph::{ElementId, KeyId, Value, VertexId};
use mangrove_reclaim::{Pin, epoch};

use crate::index::{IndexKey, PropertyIndex};
use crate::store::{Slot, Store};
use crate::version::{Snapshot, contested};

/// The values a vertex may have under one key; `None`: it may lack the key.
type Choices = Vec<Option<Value>>;

/// Which versions of a property count.
#[derive(Clone, Copy)]
pub(crate) enum Versions<'a> {
    /// All there are.
    All,
    /// Those that this snapshot or a later one may see: what lives beside what a transaction writes that has the
    /// snapshot, and what an index needs that is offered to nobody before it.
    From(&'a Snapshot<'a>),
}

/// Calls `each` with the combinations that an index files a vertex under. `fixed` is the place of a key among
/// the index's and the only choice there.
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

fn choices(slot: &Slot<'_>, key: KeyId, versions: Versions<'_>, pin: &Pin) -> Choices {
    let Some(column) = slot.core.column(key) else { return vec![None] };
    let (mut choices, mut seen_by_us) = (Choices::new(), false);
    column.each_version(slot.at, slot.tablet.undo_under(pin), |version, cell| {
        if seen_by_us {
            return;
        }
        // Newest first: below the version that the snapshot sees is nothing that it or a later one may see.
        seen_by_us = matches!(versions, Versions::From(snapshot) if !contested(version, snapshot));
        let before = choices.len();
        slot.tablet.values.values(cell, |value| choices.push(Some(value.clone())));
        if choices.len() == before {
            choices.push(None);
        }
    });
    // Mostly one, and seldom more than a few; a twin among many costs a second look at its entry.
    choices.dedup();
    choices
}

impl Store {
    /// Whether some version of a vertex is still filed under a key of an index. Looks after a SeqCst fence, as
    /// everybody does who takes an entry out: see `property_index`.
    fn is_filed(&self, index: &PropertyIndex, id: VertexId, wanted: &IndexKey) -> bool {
        std::sync::atomic::fence(Ordering::SeqCst);
        let Some(slot) = self.slot(ElementId::Vertex(id)) else { return false };
        let pin = epoch::pin();
        let choices = |key: &KeyId| choices(&slot, *key, Versions::All, &pin);
        let values = wanted.values();
        let has_all = index
            .info
            .keys
            .iter()
            .zip(values)
            .all(|(key, value)| choices(key).iter().flatten().any(|choice| index.files_alike(choice, value)));
        // A shorter entry is for a vertex that lacks the next key.
        has_all && index.info.keys.get(values.len()).is_none_or(|key| choices(key).contains(&None))
    }

    /// Takes entries out of the indexes that a value no longer has a version for. Garbage collection calls it
    /// *after* it has unlinked the version with the value. Of several keys of one vertex whose versions are
    /// unlinked at the same time by two threads, an entry of a composite index may stay behind; it costs its
    /// memory and nothing else, since candidates are re-checked.
    pub fn unindex_value(&self, id: VertexId, key: KeyId, value: &Value) {
        let pin = epoch::pin();
        let Some(slot) = self.slot(ElementId::Vertex(id)) else { return };
        for index in self.indexes.load().iter() {
            let Some(position) = self.key_position(&index.info, slot.core.label, key) else { continue };
            each_key(index, &slot, Some((position, Some(value))), Versions::All, &pin, |key| {
                index.remove_if(&key, id, || self.is_filed(index, id, &key), &self.memory);
            });
        }
    }

    /// Takes a vertex out of all indexes. Garbage collection calls it before it frees the slot of a vertex
    /// that no snapshot sees, while its properties are still there.
    pub fn unindex_vertex(&self, id: VertexId) {
        let pin = epoch::pin();
        let Some(slot) = self.slot(ElementId::Vertex(id)) else { return };
        for index in self.indexes.load().iter() {
            if self.key_position(&index.info, slot.core.label, index.info.keys[0]).is_some() {
                each_key(index, &slot, None, Versions::All, &pin, |key| {
                    index.remove_if(&key, id, || false, &self.memory);
                });
            }
        }
    }
}
