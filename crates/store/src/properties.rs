//! Reading properties, a batch of elements at a time.

use std::sync::Arc;

use mangrove_graph::{ElementRef, KeyId, PropertyRow, Value, ValueRows};

use crate::cell::{Content, RawCell};
use crate::column::Column;
use crate::store::Slot;
use crate::view::{LOOK_AHEAD, StoreView};

impl<'a> StoreView<'a> {
    /// The place of an element the snapshot sees.
    fn seen(&self, element: ElementRef) -> Option<Slot<'a>> {
        self.store.slot(element).filter(|slot| slot.visible(&self.snapshot))
    }

    fn cell(&self, slot: &Slot<'_>, column: &Column) -> RawCell {
        column.read(slot.at, &self.snapshot, &slot.tablet.undo)
    }

    /// Starts loading what reading `key` of an element needs.
    fn prefetch_property(&self, element: ElementRef, key: KeyId) {
        if let Some(slot) = self.store.slot(element) {
            slot.core.prefetch_version(slot.at);
            if let Some(column) = slot.core.column(key) {
                column.prefetch(slot.at);
            }
        }
    }
}

/// How many elements ahead a record of the value region is loaded: by then its cell has arrived.
const RECORD_AHEAD: usize = LOOK_AHEAD / 2;

/// Loads the values of one key ahead of a loop over a batch: cells first, and the records that cells name (long
/// strings and the like) half as far ahead. Records are looked for only once there was one.
pub(crate) struct Ahead<'a, 'e, T> {
    view: &'a StoreView<'a>,
    elements: &'e [T],
    element: fn(T) -> ElementRef,
    key: KeyId,
    records: bool,
}

impl<'a, 'e, T: Copy> Ahead<'a, 'e, T> {
    /// Starts with the first elements. A batch of one has nothing to overlap with.
    pub(crate) fn start(view: &'a StoreView<'a>, elements: &'e [T], element: fn(T) -> ElementRef, key: KeyId) -> Self {
        let mut ahead = Ahead { view, elements, element, key, records: false };
        if elements.len() > 1 {
            (0..LOOK_AHEAD).for_each(|row| ahead.load_cell(row));
            ahead.load_record(0);
            if ahead.records {
                (1..RECORD_AHEAD).for_each(|row| ahead.load_record(row));
            }
        }
        ahead
    }

    /// Loads what the rows after this one will need.
    #[inline]
    pub(crate) fn step(&mut self, row: usize) {
        self.load_cell(row + LOOK_AHEAD);
        if self.records {
            self.load_record(row + RECORD_AHEAD);
        }
    }

    #[inline]
    fn load_cell(&self, row: usize) {
        if let Some(&id) = self.elements.get(row) {
            self.view.prefetch_property((self.element)(id), self.key);
        }
    }

    fn load_record(&mut self, row: usize) {
        let Some(&id) = self.elements.get(row) else { return };
        if let Some(slot) = self.view.store.slot((self.element)(id))
            && let Some(column) = slot.core.column(self.key)
        {
            self.records |= slot.tablet.values.prefetch(column.newest(slot.at));
        }
    }
}

/// The values of one key; see [`mangrove_graph::GraphView::vertex_values`].
pub(crate) fn values<T: Copy>(
    view: &StoreView<'_>,
    elements: &[T],
    element: fn(T) -> ElementRef,
    key: KeyId,
    out: &mut ValueRows,
) {
    let mut ahead = Ahead::start(view, elements, element, key);
    for (row, &id) in elements.iter().enumerate() {
        ahead.step(row);
        let Some(slot) = view.seen(element(id)) else { continue };
        let Some(column) = slot.core.column(key) else { continue };
        let cell = view.cell(&slot, column);
        ahead.records |= cell.is_record();
        match slot.tablet.values.decode(cell) {
            Content::Absent => {}
            Content::One(value) => {
                out.row.push(row as u32);
                out.value.push(value);
            }
            Content::Multi(multi) => {
                out.row.extend(multi.values.iter().map(|_| row as u32));
                out.value.extend(multi.values.iter().map(|v| v.value.clone()));
            }
        }
    }
}

/// Whether the vertex in a row is visible and has a value under the key that passes the test.
pub(crate) fn any_value(
    view: &StoreView<'_>,
    vertices: &[mangrove_graph::VertexId],
    row: usize,
    key: KeyId,
    test: impl Fn(&Value) -> bool,
) -> bool {
    if let Some(&ahead) = vertices.get(row + LOOK_AHEAD) {
        view.prefetch_property(ElementRef::Vertex(ahead), key);
    }
    let Some(slot) = view.seen(ElementRef::Vertex(vertices[row])) else { return false };
    let Some(column) = slot.core.column(key) else { return false };
    let mut found = false;
    slot.tablet.values.values(view.cell(&slot, column), |value| found |= test(value));
    found
}

/// Whole properties; see [`mangrove_graph::GraphView::vertex_properties`].
pub(crate) fn rows<T: Copy>(
    view: &StoreView<'_>,
    elements: &[T],
    element: fn(T) -> ElementRef,
    keys: Option<&[KeyId]>,
    out: &mut Vec<PropertyRow>,
) {
    let none = Arc::default();
    for (row, &id) in elements.iter().enumerate() {
        let Some(slot) = view.seen(element(id)) else { continue };
        let row = row as u32;
        match keys {
            Some(keys) => {
                for &key in keys {
                    if let Some(column) = slot.core.column(key) {
                        push_rows(view, &slot, row, key, column, &none, out);
                    }
                }
            }
            None => slot.core.columns().for_each(|(key, column)| push_rows(view, &slot, row, key, column, &none, out)),
        }
    }
}

fn push_rows(
    view: &StoreView<'_>,
    slot: &Slot<'_>,
    row: u32,
    key: KeyId,
    column: &Column,
    no_meta: &Arc<Vec<(KeyId, Value)>>,
    out: &mut Vec<PropertyRow>,
) {
    match slot.tablet.values.decode(view.cell(slot, column)) {
        Content::Absent => {}
        Content::One(value) => out.push(PropertyRow { row, key, ordinal: 0, value, meta: no_meta.clone() }),
        Content::Multi(multi) => out.extend(multi.values.iter().map(|v| PropertyRow {
            row,
            key,
            ordinal: v.ordinal,
            value: v.value.clone(),
            meta: v.meta.clone(),
        })),
    }
}
