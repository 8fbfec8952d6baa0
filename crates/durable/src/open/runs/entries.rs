//! The entries that the elements of a page have in a look-up index, as the image of the page has them.
//!
//! An element has an entry for its chosen id. In a property index it has one for each combination of its values under the keys,
//! as in the index in memory: if the index is ordered, also for the values under the first keys if the next key has none.

use std::cmp::Ordering;

use mangrove_graph::compare::{equal, order};
use mangrove_graph::{Catalog, EdgeId, ElementId, ElementKind, KeyId, PAGE_SLOTS, UserId, Value, VertexId};
use mangrove_store::Content;
use mangrove_store::image::{PageImage, PageName};

use super::{LookUpBy, LookUpIndex, hash_of_id, hash_of_values};
use crate::codec::{put_value, put_varint};

/// The key of an entry. A run has keys of one kind.
#[derive(Clone, Debug)]
pub(crate) enum RunKey {
    Hash(u64),
    Values(Box<[Value]>),
}

impl RunKey {
    /// Appends the values of a key, with their count. A hash has other bytes in a run.
    pub(super) fn put_values(values: &[Value], out: &mut Vec<u8>) {
        put_varint(values.len() as u64, out);
        values.iter().for_each(|value| put_value(value, out));
    }
}

/// Hashes by their size; values by `compare::order` of one after the other, and fewer before more.
impl Ord for RunKey {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (RunKey::Hash(mine), RunKey::Hash(theirs)) => mine.cmp(theirs),
            (RunKey::Values(mine), RunKey::Values(theirs)) => {
                let differ = mine.iter().zip(theirs.iter()).map(|(a, b)| order(a, b)).find(|order| order.is_ne());
                differ.unwrap_or_else(|| mine.len().cmp(&theirs.len()))
            }
            (RunKey::Hash(_), RunKey::Values(_)) => Ordering::Less,
            (RunKey::Values(_), RunKey::Hash(_)) => Ordering::Greater,
        }
    }
}

impl PartialOrd for RunKey {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunKey {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RunKey {}

/// An entry of a run.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) key: RunKey,
    /// The bits of the internal id of the element.
    pub(crate) element: u64,
}

impl Entry {
    /// The page of its element.
    pub(crate) fn page(&self, kind: ElementKind) -> PageName {
        let id = VertexId::from_bits(self.element);
        PageName { tablet: id.tablet(), kind, number: id.page() as u32 }
    }

    /// About how many bytes of memory it takes.
    pub(crate) fn memory(&self) -> usize {
        let heap = match &self.key {
            RunKey::Hash(_) => 0,
            RunKey::Values(values) => {
                // Encoded values take about as much as what they have on the heap.
                let mut bytes = Vec::new();
                values.iter().for_each(|value| put_value(value, &mut bytes));
                size_of_val(&**values) + bytes.len()
            }
        };
        size_of::<Entry>() + heap
    }

    /// The bytes of its values. They are different for different values that have one place in the order, like 1 and 1.0.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        if let RunKey::Values(values) = &self.key {
            RunKey::put_values(values, &mut bytes);
        }
        bytes
    }
}

/// By key, then by element, then by the bytes of the values.
impl Ord for Entry {
    fn cmp(&self, other: &Self) -> Ordering {
        let place = self.key.cmp(&other.key).then_with(|| self.element.cmp(&other.element));
        place.then_with(|| self.bytes().cmp(&other.bytes()))
    }
}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Entry {}

impl LookUpIndex {
    /// Returns true if elements with the label set of a page may have entries. Pages of the other kind have none.
    fn covers(&self, image: &PageImage, catalog: &Catalog) -> bool {
        let has_label = match self.by {
            LookUpBy::Values { label: Some(label), .. } => catalog.labels_of(image.labels).contains(&label),
            _ => true,
        };
        image.name.kind == self.element && has_label
    }

    /// The chosen id of the element of an entry, if the index is of ids.
    pub(crate) fn id_of<'i>(&self, image: &'i PageImage, entry: &Entry) -> Option<&'i UserId> {
        let at = slot_of(image, entry)?;
        let id = image.ids.iter().find(|(slot, _)| usize::from(*slot) == at).map(|(_, id)| id);
        id.filter(|_| self.by == LookUpBy::Id)
    }

    /// The values that an entry of an index of values has the hash of.
    pub(crate) fn values_of(&self, image: &PageImage, entry: &Entry) -> Vec<Value> {
        let mut found = Vec::new();
        let at = slot_of(image, entry);
        self.each_combination(image, &mut |slot, values| {
            if Some(slot) == at && self.key(values) == entry.key {
                found = values.to_vec();
            }
        });
        found
    }

    /// Returns true if the element of an entry has what a look-up searches for.
    pub(crate) fn has(&self, image: &PageImage, entry: &Entry, key: LookUpKey<'_>) -> bool {
        match key {
            LookUpKey::Id(id) => self.id_of(image, entry) == Some(id),
            LookUpKey::Values(wanted) => {
                let (mut found, at) = (false, slot_of(image, entry));
                self.each_combination(image, &mut |slot, values| {
                    let is_equal = || values.iter().zip(wanted).all(|(value, wanted)| equal(value, wanted));
                    found |= Some(slot) == at && values.len() == wanted.len() && is_equal();
                });
                found
            }
        }
    }

    /// The key of an entry for these values.
    fn key(&self, values: &[Value]) -> RunKey {
        match self.by {
            LookUpBy::Values { ordered: true, .. } => RunKey::Values(values.into()),
            _ => RunKey::Hash(hash_of_values(values)),
        }
    }

    /// Calls `each` with the slots of a page and the combinations of values that their elements have entries for, if the index is
    /// one of values.
    fn each_combination(&self, image: &PageImage, each: &mut dyn FnMut(usize, &[Value])) {
        let LookUpBy::Values { keys, ordered, .. } = &self.by else { return };
        let columns: Vec<_> = keys.iter().map(|key| values_by_slot(image, *key)).collect();
        for at in image.live.iter() {
            let choices: Vec<&[Value]> = columns.iter().map(|column| column[at].as_slice()).collect();
            combine(&choices, *ordered, &mut Vec::new(), &mut |values| each(at, values));
        }
    }

    /// Calls `each` with the entries of the elements of a page.
    pub(crate) fn each_entry(&self, image: &PageImage, catalog: &Catalog, mut each: impl FnMut(Entry)) {
        if !self.covers(image, catalog) {
            return;
        }
        if self.by == LookUpBy::Id {
            for (at, id) in &image.ids {
                let element = element_at(image, usize::from(*at)).to_bits();
                each(Entry { key: RunKey::Hash(hash_of_id(id)), element });
            }
        }
        self.each_combination(image, &mut |at, values| {
            each(Entry { key: self.key(values), element: element_at(image, at).to_bits() });
        });
    }
}

/// What a look-up searches for.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LookUpKey<'k> {
    /// An id that a user chose.
    Id(&'k UserId),
    /// Values under the keys of an index.
    Values(&'k [Value]),
}

impl LookUpKey<'_> {
    /// The hash under which an index has it; `None` if the index has values, or has no such keys.
    pub(crate) fn hash(self, index: &LookUpIndex) -> Option<u64> {
        match (self, &index.by) {
            (LookUpKey::Id(id), LookUpBy::Id) => Some(hash_of_id(id)),
            (LookUpKey::Values(values), LookUpBy::Values { ordered: false, .. }) => Some(hash_of_values(values)),
            _ => None,
        }
    }
}

/// The slot of the element of an entry, if the page has this element.
fn slot_of(image: &PageImage, entry: &Entry) -> Option<usize> {
    let at = VertexId::from_bits(entry.element).offset();
    let is_there = image.live.contains(at) && element_at(image, at).to_bits() == entry.element;
    is_there.then_some(at)
}

/// The element in a slot of a page that has one.
fn element_at(image: &PageImage, at: usize) -> ElementId {
    let slot = u64::from(image.name.number) * PAGE_SLOTS + at as u64;
    let generation = image.generations.get(at).copied().unwrap_or(0);
    match image.name.kind {
        ElementKind::Vertex => ElementId::Vertex(VertexId::new(image.name.tablet, slot).with_generation(generation)),
        ElementKind::Edge => ElementId::Edge(EdgeId::new(image.name.tablet, slot).with_generation(generation)),
    }
}

/// The values of each slot of a page under a key.
fn values_by_slot(image: &PageImage, key: KeyId) -> Vec<Vec<Value>> {
    let mut by_slot = vec![Vec::new(); PAGE_SLOTS as usize];
    let Some(column) = image.columns.iter().find(|column| column.key == key) else { return by_slot };
    for (rank, at) in column.present.iter().enumerate() {
        by_slot[at] = match column.values.get(rank) {
            Content::Absent => Vec::new(),
            Content::One(value) => vec![value],
            Content::Multi(multi) => multi.values.iter().map(|one| one.value.clone()).collect(),
        };
    }
    by_slot
}

/// Calls `each` with every combination of values that begins with those `so_far`. If `partial`, a key without a value ends a
/// combination early.
fn combine(choices: &[&[Value]], partial: bool, so_far: &mut Vec<Value>, each: &mut impl FnMut(&[Value])) {
    let Some((first, rest)) = choices.split_first() else { return each(so_far) };
    if first.is_empty() && partial && !so_far.is_empty() {
        return each(so_far);
    }
    for value in *first {
        so_far.push(value.clone());
        combine(rest, partial, so_far, each);
        so_far.pop();
    }
}
