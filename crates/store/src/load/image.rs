//! Images of pages: what a page holds at a snapshot, apart from how it lies in memory.
//!
//! A checkpoint is the images of all pages; `restore` makes a store of them again. An image has of a page
//!
//! - its label set, its capacity, and how many of its slots were ever reserved;
//! - the generation of every such slot, of free ones too, so that no id comes back;
//! - which slots hold an element that the snapshot sees, and of these the ids their users chose, the ends of edges, and
//!   the properties, column by column, typed where all values of a column have one simple type.
//!
//! It has no adjacency: the lists are the edges once more, and packing them anew is faster than reading them. It has no
//! indexes either, and no versions: there is one snapshot.
//!
//! Invariants:
//!
//! 1. An image is taken while its snapshot is registered with the transactions of the store, so that nothing the
//!    snapshot sees is collected. Writers go on.
//! 2. The generation of a slot without an element is at least that of the last element that anybody saw there up to the
//!    snapshot: what came to be later was given the next one, and a later log may say which.
//! 3. Whatever changed a page up to a timestamp was noted on the page before that timestamp was finished
//!    ([`Store::pages_changed_since`] waits for commits that are seen already and not noted everywhere), so a page without a note since the last image needs no new one.
//!
//! Not here: bytes (`durable`), and the names of labels and keys, of which an image has the numbers.

use mangrove_graph::{ElementKind, KeyId, LabelSetId, TabletId, UserId, Value, VertexId};
use mangrove_reclaim::{Pin, epoch};
use smol_str::SmolStr;

use crate::cell::column::Column;
use crate::cell::{Content, ValueRegion};
use crate::page::{PageCore, Tablet};
pub use crate::page::{PageName, SlotSet};
use crate::store::Store;
use crate::version::Snapshot;

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub struct PageImage {
    /// Which page.
    pub name: PageName,
    /// The label set of its elements.
    pub labels: LabelSetId,
    /// How many slots it has.
    pub capacity: u32,
    /// How many of them, from the front, were ever reserved.
    pub used: u32,
    /// The generation of each of these; none where all are in their first.
    pub generations: Vec<u16>,
    /// The slots with an element.
    pub live: SlotSet,
    /// The ids that users chose, with their slots, ascending.
    pub ids: Vec<(u16, UserId)>,
    /// Source and target of the elements of a page of edges, one pair for each slot in `live`.
    pub ends: Vec<(VertexId, VertexId)>,
    /// The properties.
    pub columns: Vec<ColumnImage>,
}

/// The values under one key.
#[derive(Clone, PartialEq, Debug)]
pub struct ColumnImage {
    /// The key.
    pub key: KeyId,
    /// The slots that have a value.
    pub present: SlotSet,
    /// What is there, one for each slot in `present`.
    pub values: ColumnValues,
}

/// Values of one type, or of any.
#[derive(Clone, PartialEq, Debug)]
pub enum ColumnValues {
    /// Booleans.
    Bool(Vec<bool>),
    /// 32-bit integers.
    I32(Vec<i32>),
    /// 64-bit integers.
    I64(Vec<i64>),
    /// Doubles.
    F64(Vec<f64>),
    /// Strings.
    String(Vec<SmolStr>),
    /// Anything: never [`Content::Absent`].
    Any(Vec<Content>),
}

impl ColumnValues {
    /// An empty list for values like this one.
    fn like(content: &Content) -> Self {
        match content {
            Content::One(Value::Bool(_)) => ColumnValues::Bool(Vec::new()),
            Content::One(Value::I32(_)) => ColumnValues::I32(Vec::new()),
            Content::One(Value::I64(_)) => ColumnValues::I64(Vec::new()),
            Content::One(Value::F64(_)) => ColumnValues::F64(Vec::new()),
            Content::One(Value::String(_)) => ColumnValues::String(Vec::new()),
            _ => ColumnValues::Any(Vec::new()),
        }
    }

    fn push(&mut self, content: Content) {
        match (&mut *self, content) {
            (ColumnValues::Bool(v), Content::One(Value::Bool(value))) => v.push(value),
            (ColumnValues::I32(v), Content::One(Value::I32(value))) => v.push(value),
            (ColumnValues::I64(v), Content::One(Value::I64(value))) => v.push(value),
            (ColumnValues::F64(v), Content::One(Value::F64(value))) => v.push(value),
            (ColumnValues::String(v), Content::One(Value::String(value))) => v.push(value),
            (ColumnValues::Any(v), content) => v.push(content),
            (_, content) => {
                let mut all: Vec<Content> = (0..self.len()).map(|at| self.get(at)).collect();
                all.push(content);
                *self = ColumnValues::Any(all);
            }
        }
    }

    /// How many values there are.
    pub fn len(&self) -> usize {
        match self {
            ColumnValues::Bool(v) => v.len(),
            ColumnValues::I32(v) => v.len(),
            ColumnValues::I64(v) => v.len(),
            ColumnValues::F64(v) => v.len(),
            ColumnValues::String(v) => v.len(),
            ColumnValues::Any(v) => v.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A value, by its place in the list.
    pub fn get(&self, at: usize) -> Content {
        match self {
            ColumnValues::Bool(v) => Content::One(Value::Bool(v[at])),
            ColumnValues::I32(v) => Content::One(Value::I32(v[at])),
            ColumnValues::I64(v) => Content::One(Value::I64(v[at])),
            ColumnValues::F64(v) => Content::One(Value::F64(v[at])),
            ColumnValues::String(v) => Content::One(Value::String(v[at].clone())),
            ColumnValues::Any(v) => v[at].clone(),
        }
    }
}

impl Store {
    /// How many tablets the store has. They count from 1.
    pub fn tablet_count(&self) -> u16 {
        self.tablets.len() as u16
    }

    /// The pages of a tablet that a commit has changed after `since`, of those that hold anything of commits up to now;
    /// all pages where `since` is none. `since` must be a snapshot that all pages were looked at from before.
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

    /// The image of a page at a timestamp; `None` where there is no such page. The caller keeps a transaction that
    /// reads at the timestamp (invariant 1).
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

/// The image of what vertices and edges have in common.
fn image(name: PageName, tablet: &Tablet, core: &PageCore, snapshot: &Snapshot<'_>) -> PageImage {
    let pin = epoch::pin();
    let used = core.used();
    let live: SlotSet = (0..used).filter(|&at| core.visible_under(&pin, at, snapshot)).collect();
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

/// The id that the user chose for an element.
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
