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

/// The values of one key; see [`mangrove_graph::GraphView::vertex_values`].
pub(crate) fn values<T: Copy>(
    view: &StoreView<'_>,
    elements: &[T],
    element: fn(T) -> ElementRef,
    key: KeyId,
    out: &mut ValueRows,
) {
    for (row, &id) in elements.iter().enumerate() {
        if let Some(&ahead) = elements.get(row + LOOK_AHEAD) {
            view.prefetch_property(element(ahead), key);
        }
        let Some(slot) = view.seen(element(id)) else { continue };
        let Some(column) = slot.core.column(key) else { continue };
        match slot.tablet.values.decode(view.cell(&slot, column)) {
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
