//! The write set of a transaction: the changes in its log, as items and images.
//!
//! The store reads the log (`Store::visit_changes`), before the transaction commits and while it holds all its claims.
//! The values of a written property before and after the write are images. For a created or deleted element, the values
//! of all its properties are images.

use hashbrown::HashMap;
use mangrove_graph::compare::order;
use mangrove_graph::{Direction, ElementId, ElementKind, KeyId, LabelSetId, Value};
use mangrove_store::{ChangeVisitor, ChangedElement, ChangedProperty, Store, Write};
use smallvec::SmallVec;

use super::{Item, ItemSet, NewestNames, Predicate, Signature};

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
        Item::values(kind, key, labels, value).into_iter().for_each(|item| self.items.add(item));
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

impl WriteSet {
    /// Makes the write set of a transaction that has finished writing and still holds all its claims.
    pub fn of(store: &Store, log: &[Write]) -> Self {
        let set = WriteSet { items: ItemSet::for_bulk(log.len() * ITEMS_A_WRITE), ..WriteSet::default() };
        let mut filling = Filling { set, scanned: None, with_cells: None };
        store.visit_changes(log, &mut filling);
        let mut set = filling.set;
        if set.spans.is_some() {
            set.summarize();
        }
        set.items.freeze();
        set
    }
}

/// A write set that is being filled from a log.
struct Filling {
    set: WriteSet,
    /// Kind and label set of the last created or deleted element. The elements of a large log are mostly alike, so scan
    /// items are added once.
    scanned: Option<(ElementKind, LabelSetId)>,
    /// The last element whose item of all cells was added. Properties of one element mostly follow one another.
    with_cells: Option<ElementId>,
}

impl ChangeVisitor for Filling {
    fn element(&mut self, changed: &ChangedElement) {
        let ChangedElement { element, labels, ref user_id, ends } = *changed;
        let (kind, set) = (element.kind(), &mut self.set);
        set.add_label_set(kind, labels);
        set.items.add(Item::existence(element));
        if self.scanned.replace((kind, labels)) != Some((kind, labels)) {
            for labels in [Some(labels), None] {
                set.items.add(Item::scan(kind, labels));
            }
        }
        if let Some(id) = user_id {
            set.items.add(Item::chosen_id(kind, id));
        }
        if let Some((source, target)) = ends {
            for labels in [Some(labels), None] {
                set.items.add(Item::list(source, Direction::Out, labels));
                set.items.add(Item::list(target, Direction::In, labels));
            }
        }
    }

    fn property(&mut self, changed: ChangedProperty) {
        let ChangedProperty { element, labels, key } = changed;
        self.set.add_label_set(element.kind(), labels);
        self.set.items.add(Item::cell(element, key));
        if self.with_cells.replace(element) != Some(element) {
            self.set.items.add(Item::cells(element));
        }
    }

    fn value(&mut self, of: ChangedProperty, value: &Value) {
        self.set.add_image(of.element.kind(), of.key, of.labels, value);
    }
}
