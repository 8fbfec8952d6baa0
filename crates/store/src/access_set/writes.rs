//! The write set of a transaction: the changes in its log, as items and images.
//!
//! A log entry names the version that was claimed. For a property, the undo record has the value before the write and
//! the column has the value after it; both are images. For a created or deleted element, the values of all its columns
//! are images.
//!
//! The set is made before the transaction commits, while it holds all its claims. So no other transaction can change
//! the values meanwhile.

use hashbrown::HashMap;
use mangrove_graph::compare::order;
use mangrove_graph::{Direction, ElementId, ElementKind, KeyId, LabelSetId, UserId, Value};
use mangrove_reclaim::epoch;
use smallvec::SmallVec;

use super::{Item, ItemSet, NewestNames, Predicate, Signature};
use crate::cell::{Content, RawCell, undo};
use crate::memory::Write;
use crate::store::{Slot, Store};

/// The most images that are kept one by one. Of more, only the smallest and the largest of each key and label set are
/// kept.
const IMAGES_MAX: usize = 1_024;

/// The approximate number of items for each write of a large log. An edge has five.
const ITEMS_A_WRITE: usize = 5;
/// Images that need no allocation. An update has two.
const INLINE_IMAGES: usize = 2;

/// A value that an element had before a write or has after it.
#[derive(Debug)]
pub(super) struct ValueImage {
    pub(super) kind: ElementKind,
    pub(super) key: KeyId,
    pub(super) labels: LabelSetId,
    pub(super) value: Value,
}

/// The smallest and the largest image of each kind of element (true: vertex), key and label set.
type ImageSpans = HashMap<(bool, KeyId, LabelSetId), (Value, Value), foldhash::fast::FixedState>;

/// The write set of a transaction.
#[derive(Debug, Default)]
pub struct WriteSet {
    items: ItemSet,
    images: SmallVec<[ValueImage; INLINE_IMAGES]>,
    spans: Option<Box<ImageSpans>>,
    newest: NewestNames,
}

impl WriteSet {
    /// The items that the transaction changes, frozen.
    pub fn items(&self) -> &ItemSet {
        &self.items
    }

    /// The Bloom filter of the items.
    pub fn signature(&self) -> &Signature {
        self.items.signature()
    }

    /// The largest numbers of label sets and keys among the writes.
    pub fn newest(&self) -> NewestNames {
        self.newest
    }

    /// Returns true if the set is compressed: its items into bitmaps, or its images into spans.
    pub(super) fn is_large(&self) -> bool {
        self.items.is_compressed() || self.spans.is_some()
    }

    /// The images that are kept one by one. Empty if they are summarized as spans.
    pub(super) fn images(&self) -> &[ValueImage] {
        &self.images
    }

    #[cfg(test)]
    pub(super) fn of_items(items: impl IntoIterator<Item = Item>) -> Self {
        let mut set = WriteSet::default();
        items.into_iter().for_each(|item| set.items.add(item));
        set
    }

    fn add_label_set(&mut self, kind: ElementKind, labels: LabelSetId) {
        let newest = self.newest.of(kind);
        *newest = labels.0.max(*newest);
    }

    /// Returns true if a predicate may have another answer because of these writes.
    pub fn meets(&self, predicate: &Predicate) -> bool {
        let hit =
            |image: &ValueImage| predicate.takes(image.kind, image.key, image.labels) && predicate.holds(&image.value);
        let spanned = |spans: &ImageSpans| {
            spans.iter().any(|((is_vertex, key, labels), (smallest, largest))| {
                let kind = if *is_vertex { ElementKind::Vertex } else { ElementKind::Edge };
                predicate.takes(kind, *key, *labels) && predicate.may_hold_between(smallest, largest)
            })
        };
        self.images.iter().any(hit) || self.spans.as_deref().is_some_and(spanned)
    }

    /// The approximate size of the set in bytes.
    pub fn bytes(&self) -> usize {
        let spans = self.spans.as_ref().map_or(0, |spans| spans.allocation_size());
        let images = if self.images.spilled() { self.images.capacity() * size_of::<ValueImage>() } else { 0 };
        size_of::<WriteSet>() + self.items.bytes() + images + spans
    }

    fn add_image(&mut self, kind: ElementKind, key: KeyId, labels: LabelSetId, value: &Value) {
        self.newest.key = key.0.max(self.newest.key);
        for labels in [Some(labels), None] {
            self.items.add(Item::value(kind, key, labels, value));
        }
        self.images.push(ValueImage { kind, key, labels, value: value.clone() });
        if self.images.len() > IMAGES_MAX {
            self.summarize();
        }
    }

    /// Replaces the images by the smallest and the largest of each key and label set.
    fn summarize(&mut self) {
        let spans = self.spans.get_or_insert_default();
        for image in self.images.drain(..) {
            let ValueImage { kind, key, labels, value } = image;
            match spans.entry((kind == ElementKind::Vertex, key, labels)) {
                hashbrown::hash_map::Entry::Vacant(entry) => {
                    entry.insert((value.clone(), value));
                }
                hashbrown::hash_map::Entry::Occupied(mut entry) => {
                    let (smallest, largest) = entry.get_mut();
                    if order(&value, smallest).is_lt() {
                        *smallest = value;
                    } else if order(&value, largest).is_gt() {
                        *largest = value;
                    }
                }
            }
        }
    }
}

impl Store {
    /// Makes the write set of a transaction that has finished writing and still holds all its claims.
    pub fn write_set(&self, log: &[Write]) -> WriteSet {
        let _pin = mangrove_reclaim::epoch::pin();
        let mut set = WriteSet { items: ItemSet::for_bulk(log.len() * ITEMS_A_WRITE), ..WriteSet::default() };
        let mut scanned = None;
        for write in log {
            match *write {
                Write::Begin(element) | Write::End(element) => self.name_element(element, &mut scanned, &mut set),
                Write::Property { element, key, undo } => {
                    let slot = self.slot(element).expect("a log names only elements that exist");
                    let column = slot.core.column(key).expect("a written property has a column");
                    set.items.add(Item::cell(element, key));
                    set.items.add(Item::cells(element));
                    add_cell(&slot, element, key, undo::record(&slot.tablet.undo, undo).old(), &mut set);
                    add_cell(&slot, element, key, column.newest(slot.at), &mut set);
                }
            }
        }
        if set.spans.is_some() {
            set.summarize();
        }
        set.items.freeze();
        set
    }

    /// Adds the items of an element that is created or deleted, with its properties. `scanned` is the kind and label
    /// set of the last such element. The elements of a large log are mostly alike, so scan items are added once.
    fn name_element(&self, element: ElementId, scanned: &mut Option<(ElementKind, LabelSetId)>, set: &mut WriteSet) {
        let slot = self.slot(element).expect("a log names only elements that exist");
        let (kind, labels) = (element.kind(), slot.core.label);
        set.add_label_set(kind, labels);
        set.items.add(Item::existence(element));
        if scanned.replace((kind, labels)) != Some((kind, labels)) {
            for labels in [Some(labels), None] {
                set.items.add(Item::scan(kind, labels));
            }
        }
        if let Content::One(value) = slot.tablet.values.decode(slot.core.user_id(slot.at))
            && let Some(id) = UserId::from_value(&value)
        {
            set.items.add(Item::chosen_id(kind, &id));
        }
        if let ElementId::Edge(id) = element {
            let (_, page) = self.edge_page(id).expect("the edge's slot was found");
            let (source, target) = page.ends(id.offset(), &epoch::pin());
            for labels in [Some(labels), None] {
                set.items.add(Item::list(source, Direction::Out, labels));
                set.items.add(Item::list(target, Direction::In, labels));
            }
        }
        let mut has_values = false;
        for (key, column) in slot.core.columns() {
            let cell = column.newest(slot.at);
            if !cell.is_absent() {
                has_values = true;
                set.items.add(Item::cell(element, key));
                add_cell(&slot, element, key, cell, set);
            }
        }
        if has_values {
            set.items.add(Item::cells(element));
        }
    }
}

/// Adds the values of a cell as images.
fn add_cell(slot: &Slot<'_>, element: ElementId, key: KeyId, cell: RawCell, set: &mut WriteSet) {
    set.add_label_set(element.kind(), slot.core.label);
    slot.tablet.values.values(cell, |value| set.add_image(element.kind(), key, slot.core.label, value));
}
