//! Images of pages: the content of a page at a snapshot, without its layout in memory.
//!
//! A checkpoint is the images of all pages, and `restore` makes a store from them again. The image of a page has:
//!
//! - its label set, its capacity, and how many of its slots were ever reserved;
//! - the generation of every such slot, free slots included;
//! - the slots with an element that the snapshot sees, and for these elements the chosen ids, the ends of edges, and
//!   the properties, column by column. A column is typed if all its values have one simple type.
//!
//! An image has no adjacency, since making the lists from the edges is faster than reading them. It has no indexes, and
//! no versions, since there is one snapshot.
//!
//! - **STORE-33.** In an image, the generation of a slot without an element is at least that of the last element that
//!   was committed there up to the snapshot. A restored store gives the slot away under the next generation, so no id
//!   comes back.
//! - **STORE-34.** Pages keep their numbers, because ids contain them. A page that no commit has written to may be in
//!   no image, so page directories may have gaps.
//!
//! The caller keeps a transaction at the snapshot while it takes images, so that the collector takes nothing away that
//! the snapshot sees. Writers go on. A page that no commit has changed since its last image needs no new one
//! (STORE-26). Large commits note their changes after snapshots see them, so [`Store::pages_changed_since`] waits for
//! them.
//!
//! Not here: the encoding as bytes (`durable`), and the names of labels and keys. Images contain their numbers.

use mangrove_graph::{ElementKind, KeyId, LabelSetId, TabletId, UserId, Value, VertexId};
use mangrove_reclaim::{Pin, epoch};
use smol_str::SmolStr;
use uuid::Uuid;

use crate::cell::column::Column;
use crate::cell::{Content, ValueRegion};
use crate::page::{PageCore, Tablet};
pub use crate::page::{PageName, SlotSet};
use crate::store::Store;
use crate::version::Snapshot;

/// The content of a page at a snapshot. Invariants: STORE-33, STORE-34.
#[derive(Clone, PartialEq, Debug)]
pub struct PageImage {
    /// Tablet, kind and number of the page.
    pub name: PageName,
    /// The label set of its elements.
    pub labels: LabelSetId,
    /// The number of slots of the page.
    pub capacity: u32,
    /// The number of slots, from the front, that were ever reserved.
    pub used: u32,
    /// The generation of each of the `used` slots; empty if all are in their first generation.
    pub generations: Vec<u16>,
    /// The slots with an element.
    pub live: SlotSet,
    /// The ids that users chose, with their slots, in ascending order of slots.
    pub ids: Vec<(u16, UserId)>,
    /// Source and target of each edge of a page of edges: one pair for each slot in `live`.
    pub ends: Vec<(VertexId, VertexId)>,
    /// The properties, one column for each key with a value.
    pub columns: Vec<ColumnImage>,
}

/// The values of a page under one key.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnImage {
    /// The property key.
    pub key: KeyId,
    /// The slots that have a value.
    pub present: SlotSet,
    /// The values, one for each slot in `present`.
    pub values: ColumnValues,
}

/// The values of a column: of one simple type, or of any types.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnValues {
    /// Booleans.
    Bool(Vec<bool>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// 32-bit floating-point numbers.
    F32(Vec<f32>),
    /// Doubles.
    F64(Vec<f64>),
    /// UUIDs.
    Uuid(Vec<Uuid>),
    /// Strings.
    String(Vec<SmolStr>),
    /// Values of any types, but never [`Content::Absent`].
    Any(Vec<Content>),
}

impl ColumnValues {
    /// An empty list for values of the type of this one.
    fn like(content: &Content) -> Self {
        match content {
            Content::One(Value::Bool(_)) => ColumnValues::Bool(Vec::new()),
            Content::One(Value::I32(_)) => ColumnValues::I32(Vec::new()),
            Content::One(Value::I64(_)) => ColumnValues::I64(Vec::new()),
            Content::One(Value::F32(_)) => ColumnValues::F32(Vec::new()),
            Content::One(Value::F64(_)) => ColumnValues::F64(Vec::new()),
            Content::One(Value::Uuid(_)) => ColumnValues::Uuid(Vec::new()),
            Content::One(Value::String(_)) => ColumnValues::String(Vec::new()),
            _ => ColumnValues::Any(Vec::new()),
        }
    }

    /// Adds a value. If its type is not that of the list, the list becomes one of any types.
    fn push(&mut self, content: Content) {
        match (&mut *self, content) {
            (ColumnValues::Bool(v), Content::One(Value::Bool(value))) => v.push(value),
            (ColumnValues::I32(v), Content::One(Value::I32(value))) => v.push(value),
            (ColumnValues::I64(v), Content::One(Value::I64(value))) => v.push(value),
            (ColumnValues::F32(v), Content::One(Value::F32(value))) => v.push(value),
            (ColumnValues::F64(v), Content::One(Value::F64(value))) => v.push(value),
            (ColumnValues::Uuid(v), Content::One(Value::Uuid(value))) => v.push(value),
            (ColumnValues::String(v), Content::One(Value::String(value))) => v.push(value),
            (ColumnValues::Any(v), content) => v.push(content),
            (_, content) => {
                let mut all: Vec<Content> = (0..self.len()).map(|at| self.get(at)).collect();
                all.push(content);
                *self = ColumnValues::Any(all);
            }
        }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        match self {
            ColumnValues::Bool(v) => v.len(),
            ColumnValues::I32(v) => v.len(),
            ColumnValues::I64(v) => v.len(),
            ColumnValues::F32(v) => v.len(),
            ColumnValues::F64(v) => v.len(),
            ColumnValues::Uuid(v) => v.len(),
            ColumnValues::String(v) => v.len(),
            ColumnValues::Any(v) => v.len(),
        }
    }

    /// Returns true if there is no value.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at an index of the list.
    pub fn get(&self, at: usize) -> Content {
        match self {
            ColumnValues::Bool(v) => Content::One(Value::Bool(v[at])),
            ColumnValues::I32(v) => Content::One(Value::I32(v[at])),
            ColumnValues::I64(v) => Content::One(Value::I64(v[at])),
            ColumnValues::F32(v) => Content::One(Value::F32(v[at])),
            ColumnValues::F64(v) => Content::One(Value::F64(v[at])),
            ColumnValues::Uuid(v) => Content::One(Value::Uuid(v[at])),
            ColumnValues::String(v) => Content::One(Value::String(v[at].clone())),
            ColumnValues::Any(v) => v[at].clone(),
        }
    }
}

impl Store {
    /// The number of tablets of the store. Tablet ids count from 1.
    pub fn tablet_count(&self) -> u16 {
        self.tablets.len() as u16
    }

    /// The pages of a tablet that a commit has changed after the timestamp `since`, or all pages if `since` is `None`.
    /// Waits for large commits that snapshots see already and that have not noted their changes everywhere (STORE-26).
    ///
    /// `since` must be the snapshot of earlier images of all pages.
    pub fn pages_changed_since(&self, tablet: TabletId, since: Option<u64>) -> Vec<PageName> {
        let Some(found) = self.tablet(tablet) else { return Vec::new() };
        self.installing.wait();
        let is_due = |core: &PageCore| since.is_none_or(|since| core.changed() > since);
        let names =
            |kind, due: Vec<usize>| due.into_iter().map(move |number| PageName { tablet, kind, number: number as u32 });
        let vertices = found.vertices.numbered().filter(|(_, page)| is_due(&page.core)).map(|(n, _)| n).collect();
        let edges = found.edges.numbered().filter(|(_, page)| is_due(&page.core)).map(|(n, _)| n).collect();
        names(ElementKind::Vertex, vertices).chain(names(ElementKind::Edge, edges)).collect()
    }

    /// The image of a page at a timestamp; `None` if there is no such page. The caller keeps a transaction that reads
    /// at the timestamp.
    pub fn page_image(&self, name: PageName, at_ts: u64) -> Option<PageImage> {
        let tablet = self.tablet(name.tablet)?;
        let snapshot = Snapshot::committed(at_ts).amid(&self.installing);
        let number = name.number as usize;
        match name.kind {
            ElementKind::Vertex => Some(image(name, tablet, &tablet.vertices.get(number)?.core, &snapshot)),
            ElementKind::Edge => {
                let page = tablet.edges.get(number)?;
                let mut image = image(name, tablet, &page.core, &snapshot);
                let pin = epoch::pin();
                image.ends = image.live.iter().map(|at| page.ends(at, &pin)).collect();
                Some(image)
            }
        }
    }
}

/// The image of a page, without the ends of edges.
fn image(name: PageName, tablet: &Tablet, core: &PageCore, snapshot: &Snapshot<'_>) -> PageImage {
    let pin = epoch::pin();
    let used = core.used();
    let live: SlotSet = (0..used).filter(|&at| core.visible_under(&pin, at, snapshot)).collect();
    // STORE-33: one that is read now is not below that of the last element committed up to the snapshot. A generation grows
    // but in a follower, where it may fall to that of a committed element, which is above those of all before it.
    let generations = match core.is_first_generation() {
        true => Vec::new(),
        false => (0..used).map(|at| core.generation(at)).collect(),
    };
    let columns = core.columns().filter_map(|(key, column)| column_image(key, column, &live, tablet, snapshot, &pin));
    PageImage {
        name,
        labels: core.label,
        capacity: core.capacity() as u32,
        used: used as u32,
        generations,
        ids: live.iter().filter_map(|at| Some((at as u16, chosen_id(core, at, &tablet.values)?))).collect(),
        columns: columns.collect(),
        live,
        ends: Vec::new(),
    }
}

/// The id that the user chose for an element, if one was chosen.
pub(crate) fn chosen_id(core: &PageCore, at: usize, values: &ValueRegion) -> Option<UserId> {
    match values.decode(core.user_id(at)) {
        Content::One(value) => UserId::from_value(&value),
        _ => None,
    }
}

fn column_image(
    key: KeyId,
    column: &Column,
    live: &SlotSet,
    tablet: &Tablet,
    snapshot: &Snapshot<'_>,
    pin: &Pin,
) -> Option<ColumnImage> {
    let mut present = SlotSet::default();
    let mut values: Option<ColumnValues> = None;
    for at in live.iter() {
        let content = tablet.values.decode(column.read(at, snapshot, tablet.undo_under(pin)));
        if content != Content::Absent {
            present.insert(at);
            values.get_or_insert_with(|| ColumnValues::like(&content)).push(content);
        }
    }
    Some(ColumnImage { key, present, values: values? })
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use super::*;

    #[test]
    fn a_column_is_typed_until_another_type_comes() {
        let mut values = ColumnValues::like(&Content::One(Value::I64(1)));
        values.push(Content::One(Value::I64(1)));
        assert_eq!(values, ColumnValues::I64(vec![1]));
        values.push(Content::One(Value::from("a")));
        assert_eq!(values, ColumnValues::Any(vec![Content::One(Value::I64(1)), Content::One(Value::from("a"))]));
    }
}
