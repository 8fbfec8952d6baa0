//! Reading properties, a batch of elements at a time.

use std::sync::Arc;

use mangrove_graph::{ElementId, KeyId, PropertyRow, Value, ValueRows};
use mangrove_reclaim::Pin;
use smallvec::SmallVec;

use crate::cell::column::Column;
use crate::cell::{Content, RawCell, ValueRegion};
use crate::read::view::{LOOK_AHEAD, StoreView};
use crate::store::{Element, Slot};

impl<'a> StoreView<'a> {
    /// The slot of an element, if the snapshot sees the element.
    fn seen(&self, pin: &Pin, element: ElementId) -> Option<Slot<'a>> {
        self.store.slot(element).filter(|slot| slot.core.visible_under(pin, slot.at, &self.snapshot))
    }

    #[inline]
    fn cell(&self, pin: &Pin, slot: &Slot<'_>, column: &Column) -> RawCell {
        column.read(slot.at, &self.snapshot, slot.tablet.undo_under(pin))
    }
}

/// The slot and the column of an element's cell. The element need not be visible.
#[derive(Clone, Copy)]
pub(crate) struct ColumnCell<'a> {
    slot: Slot<'a>,
    column: &'a Column,
}

impl<'a> ColumnCell<'a> {
    /// The cell as the snapshot sees it; absent if the snapshot does not see the element.
    #[inline]
    pub(crate) fn read(&self, view: &StoreView<'_>, pin: &Pin) -> RawCell {
        match self.slot.core.visible_under(pin, self.slot.at, &view.snapshot) {
            true => view.cell(pin, &self.slot, self.column),
            false => RawCell::ABSENT,
        }
    }

    /// The region that records of the cell lie in.
    #[inline]
    pub(crate) fn region(&self) -> &'a ValueRegion {
        &self.slot.tablet.values
    }

    #[inline]
    fn prefetch(&self, pin: &Pin) {
        self.slot.core.prefetch_version(pin, self.slot.at);
        self.column.prefetch(self.slot.at);
    }
}

/// Finds the cells of one key. Page and column are looked up again only if the page changes.
struct CellFinder<'a> {
    view: &'a StoreView<'a>,
    key: KeyId,
    /// The page that `found` is on.
    page: Option<u64>,
    found: Option<ColumnCell<'a>>,
}

impl<'a> CellFinder<'a> {
    fn new(view: &'a StoreView<'a>, key: KeyId) -> Self {
        CellFinder { view, key, page: None, found: None }
    }

    /// The cell of an element; `None` if there is no such element or its page has no column for the key.
    #[inline]
    fn find<T: Element>(&mut self, element: T) -> Option<ColumnCell<'a>> {
        if self.page == Some(element.page()) {
            let mut found = self.found?;
            found.slot.at = element.at();
            let core = found.slot.core;
            let is_there = found.slot.at < core.capacity() && core.generation(found.slot.at) == element.generation();
            return is_there.then_some(found);
        }
        let slot = self.view.store.slot(element.reference())?;
        let column = slot.core.column(self.key);
        self.page = Some(element.page());
        self.found = column.map(|column| ColumnCell { slot, column });
        self.found
    }
}

/// How many elements ahead a record of the value region is loaded: by then its cell has arrived.
const RECORD_AHEAD: usize = LOOK_AHEAD / 2;

/// A walk over the cells of a batch. Each cell is loaded [`LOOK_AHEAD`] elements ahead, and the records that cells name
/// (long strings and the like) half as far ahead. Records are loaded ahead only after the walk has met one.
pub(crate) struct Cells<'a, 'e, T> {
    pin: &'a Pin,
    finder: CellFinder<'a>,
    elements: &'e [T],
    /// The cells found ahead, by row modulo the size.
    ahead: [Option<ColumnCell<'a>>; LOOK_AHEAD],
    /// True if records are loaded ahead.
    records: bool,
}

impl<'a, 'e, T: Element> Cells<'a, 'e, T> {
    pub(crate) fn new(view: &'a StoreView<'a>, pin: &'a Pin, elements: &'e [T], key: KeyId) -> Self {
        let finder = CellFinder::new(view, key);
        let mut cells = Cells { pin, finder, elements, ahead: [None; LOOK_AHEAD], records: false };
        for row in 0..LOOK_AHEAD.min(elements.len()) {
            cells.look_ahead(row);
        }
        cells.load_record(0);
        if cells.records {
            (1..RECORD_AHEAD).for_each(|row| cells.load_record(row));
        }
        cells
    }

    /// The cell of a row. The caller asks for rows in ascending order, without a gap.
    #[inline]
    pub(crate) fn next(&mut self, row: usize) -> Option<ColumnCell<'a>> {
        let found = self.ahead[row % LOOK_AHEAD];
        self.look_ahead(row + LOOK_AHEAD);
        if self.records {
            self.load_record(row + RECORD_AHEAD);
        }
        found
    }

    /// Notes that a record was met, so that later ones are loaded ahead.
    #[inline]
    pub(crate) fn expect_records(&mut self) {
        self.records = true;
    }

    #[inline]
    fn look_ahead(&mut self, row: usize) {
        if let Some(&element) = self.elements.get(row) {
            let found = self.finder.find(element);
            if let Some(found) = &found {
                found.prefetch(self.pin);
            }
            self.ahead[row % LOOK_AHEAD] = found;
        }
    }

    fn load_record(&mut self, row: usize) {
        if row < self.elements.len()
            && let Some(found) = &self.ahead[row % LOOK_AHEAD]
        {
            self.records |= found.region().prefetch(found.column.newest(found.slot.at));
        }
    }
}

/// Reads the values of one key, for [`mangrove_graph::GraphView::vertex_values`].
pub(crate) fn values<T: Element>(view: &StoreView<'_>, pin: &Pin, elements: &[T], key: KeyId, out: &mut ValueRows) {
    if let [only] = elements {
        // One element has nothing to overlap with.
        if let Some(found) = CellFinder::new(view, key).find(*only) {
            push_values(found.region(), pin, found.read(view, pin), 0, out);
        }
        return;
    }
    let mut cells = Cells::new(view, pin, elements, key);
    for row in 0..elements.len() {
        let Some(found) = cells.next(row) else { continue };
        let cell = found.read(view, pin);
        if cell.is_record() {
            cells.expect_records();
        }
        push_values(found.region(), pin, cell, row as u32, out);
    }
}

/// Appends the values of a cell to a row.
#[inline]
pub(crate) fn push_values(region: &ValueRegion, pin: &Pin, cell: RawCell, row: u32, out: &mut ValueRows) {
    let mut one = |value| {
        out.row.push(row);
        out.value.push(value);
    };
    if !cell.is_record() {
        // Most cells hold their value inline, and need no `Content`.
        return cell.inline_value().into_iter().for_each(one);
    }
    match region.decode_under(pin, cell) {
        Content::Absent => {}
        Content::One(value) => one(value),
        Content::Multi(multi) => {
            out.row.extend(multi.values.iter().map(|_| row));
            out.value.extend(multi.values.iter().map(|v| v.value.clone()));
        }
    }
}

/// Appends the visible elements that have a value under the key that passes the test.
pub(crate) fn with_value<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    elements: &[T],
    key: KeyId,
    test: impl Fn(&Value) -> bool,
    out: &mut Vec<T>,
) {
    let mut cells = Cells::new(view, pin, elements, key);
    for (row, &element) in elements.iter().enumerate() {
        let Some(cell) = cells.next(row) else { continue };
        let mut found = false;
        cell.region().values_under(pin, cell.read(view, pin), |value| found = found || test(value));
        if found {
            out.push(element);
        }
    }
}

/// How many rows ahead cells are loaded.
const ROWS_AHEAD: usize = 4;
/// Properties of an element that need no allocation.
const INLINE_CELLS: usize = 16;

type Meta = Arc<Vec<(KeyId, Value)>>;

std::thread_local! {
    /// The empty meta-properties of most values: one allocation for each thread in place of one for each call.
    static NO_META: Meta = Meta::default();
}

/// Reads whole properties, for [`mangrove_graph::GraphView::vertex_properties`].
///
/// Each cell of an element lies in another column, and their records lie anywhere. So all cells of an element are
/// loaded ahead before the first is read, and all its records before the first is decoded.
pub(crate) fn rows<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    elements: &[T],
    keys: Option<&[KeyId]>,
    out: &mut Vec<PropertyRow>,
) {
    let none = NO_META.try_with(Arc::clone).unwrap_or_default();
    let mut cells: SmallVec<[(KeyId, RawCell); INLINE_CELLS]> = SmallVec::new();
    elements.iter().take(ROWS_AHEAD).for_each(|ahead| prefetch_cells(view, pin, *ahead, keys));
    for (row, &id) in elements.iter().enumerate() {
        if let Some(&ahead) = elements.get(row + ROWS_AHEAD) {
            prefetch_cells(view, pin, ahead, keys);
        }
        let Some(slot) = view.seen(pin, id.reference()) else { continue };
        each_column(&slot, keys, |key, column| {
            let cell = view.cell(pin, &slot, column);
            slot.tablet.values.prefetch(cell);
            cells.push((key, cell));
        });
        for (key, cell) in cells.drain(..) {
            push_rows(&slot.tablet.values, pin, cell, (row as u32, key), &none, out);
        }
    }
}

/// Calls `each` with the columns of these keys, or of all, on the page of an element.
fn each_column<'a>(slot: &Slot<'a>, keys: Option<&[KeyId]>, mut each: impl FnMut(KeyId, &'a Column)) {
    match keys {
        Some(keys) => {
            keys.iter().for_each(|&key| slot.core.column(key).into_iter().for_each(|column| each(key, column)))
        }
        None => slot.core.columns().for_each(|(key, column)| each(key, column)),
    }
}

/// Starts loading the version words and the cells of an element.
fn prefetch_cells<T: Element>(view: &StoreView<'_>, pin: &Pin, element: T, keys: Option<&[KeyId]>) {
    if let Some(slot) = view.store.slot(element.reference()) {
        slot.core.prefetch_version(pin, slot.at);
        each_column(&slot, keys, |_, column| column.prefetch(slot.at));
    }
}

/// Appends the values of a cell under a key, with their ordinals and meta-properties.
fn push_rows(
    region: &ValueRegion,
    pin: &Pin,
    cell: RawCell,
    (row, key): (u32, KeyId),
    no_meta: &Meta,
    out: &mut Vec<PropertyRow>,
) {
    let mut one = |value| out.push(PropertyRow { row, key, ordinal: 0, value, meta: no_meta.clone() });
    if !cell.is_record() {
        return cell.inline_value().into_iter().for_each(one);
    }
    match region.decode_under(pin, cell) {
        Content::Absent => {}
        Content::One(value) => one(value),
        Content::Multi(multi) => out.extend(multi.values.iter().map(|v| PropertyRow {
            row,
            key,
            ordinal: v.ordinal,
            value: v.value.clone(),
            meta: v.meta.clone(),
        })),
    }
}
