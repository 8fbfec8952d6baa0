//! Properties that are numbers of one type, read as plain arrays.
//!
//! A batch is cut into *stretches*: successive rows whose elements lie on one page. Page and column are looked up once
//! for each stretch. If the elements have successive slots of a page without version words, as a scan finds them, tags
//! and words are copied without a look at anything else.
//!
//! One pass without a branch finds out whether all elements of a batch have successive ids. If they have, the ends of
//! the stretches follow from their positions.

use std::sync::atomic::Ordering;

use mangrove_graph::{KeyId, Numbers, PAGE_SLOTS};
use mangrove_reclaim::Pin;

use crate::cell::column::{Column, Plain};
use crate::cell::{CellKind, RawCell, ValueRegion, number_type};
use crate::read::properties::Cells;
use crate::read::view::StoreView;
use crate::store::{Element, Slot};

/// How many elements, from the first on, lie on the page of the first. `is_run` is true if all ids are successive.
fn stretch<T: Element>(elements: &[T], is_run: bool) -> usize {
    let Some(first) = elements.first() else { return 0 };
    if is_run {
        return elements.len().min(PAGE_SLOTS as usize - first.at());
    }
    elements.iter().position(|element| element.page() != first.page()).unwrap_or(elements.len())
}

/// A batch is read by stretches if these have at least this many rows on average, and cell by cell otherwise.
const LONG_STRETCH: usize = 16;

/// Reads the numbers under a key, for [`mangrove_graph::GraphView::vertex_numbers`]. Returns false, and appends
/// nothing, if a value is no number or has another type than the others.
pub(crate) fn numbers<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    elements: &[T],
    key: KeyId,
    out: &mut Numbers,
) -> bool {
    let before = out.len();
    let is_run = follow_one_another(elements);
    let has_long_stretches = || {
        let changes = elements.windows(2).filter(|pair| pair[0].page() != pair[1].page()).count();
        elements.len() >= LONG_STRETCH * (changes + 1)
    };
    let read = match is_run || has_long_stretches() {
        true => by_stretches(view, pin, elements, is_run, key, out),
        false => by_cells(view, pin, elements, key, out),
    };
    if !read {
        out.truncate(before);
    }
    read
}

fn by_stretches<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    elements: &[T],
    is_run: bool,
    key: KeyId,
    out: &mut Numbers,
) -> bool {
    let mut row = 0;
    while row < elements.len() {
        let stretch = &elements[row..row + stretch(&elements[row..], is_run)];
        if !read_stretch(view, pin, stretch, row as u32, key, out) {
            return false;
        }
        row += stretch.len();
    }
    true
}

fn by_cells<T: Element>(view: &StoreView<'_>, pin: &Pin, elements: &[T], key: KeyId, out: &mut Numbers) -> bool {
    let mut cells = Cells::new(view, pin, elements, key);
    (0..elements.len()).all(|row| match cells.next(row) {
        Some(found) => push(found.read(view, pin), (found.region(), pin), row as u32, out),
        None => true,
    })
}

/// Appends the numbers of a cell. Returns false if it holds anything else.
#[inline]
fn push(cell: RawCell, (region, pin): (&ValueRegion, &Pin), row: u32, out: &mut Numbers) -> bool {
    match (cell.kind(), number_type(cell.tag)) {
        (CellKind::Absent, _) => true,
        (CellKind::Integer(n), Some(kind)) if out.kind.is_none_or(|k| k == kind) => {
            out.integers.push(n);
            out.row.push(row);
            out.kind = Some(kind);
            true
        }
        (CellKind::Float(n), Some(kind)) if out.kind.is_none_or(|k| k == kind) => {
            out.floats.push(n);
            out.row.push(row);
            out.kind = Some(kind);
            true
        }
        (CellKind::Record, _) => {
            let mut all = true;
            region.values_under(pin, cell, |value| all = all && out.push(row, value));
            all
        }
        _ => false,
    }
}

/// Reads the elements of one page, the first of which is in row `row`.
fn read_stretch<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    elements: &[T],
    row: u32,
    key: KeyId,
    out: &mut Numbers,
) -> bool {
    // The first ids may name no elements.
    let mut slots = elements.iter().enumerate();
    let first = slots.find_map(|(at, element)| Some((at, view.store.slot(element.reference())?)));
    let Some((skipped, first)) = first else { return true };
    let (elements, row) = (&elements[skipped..], row + skipped as u32);
    let Some(column) = first.core.column(key) else { return true };
    if let Some(plain) = column.plain() {
        let before = out.len();
        let read = copy_run(&first, plain, elements, row, out)
            || read_each(view, pin, &first, elements, row, out, |at| plain.get(at));
        if plain.held() {
            return read;
        }
        out.truncate(before);
    }
    read_each(view, pin, &first, elements, row, out, |at| read(view, pin, &first, column, at))
}

fn read(view: &StoreView<'_>, pin: &Pin, slot: &Slot<'_>, column: &Column, at: usize) -> RawCell {
    column.read(at, &view.snapshot, slot.tablet.undo_under(pin))
}

/// Reads a stretch cell by cell.
fn read_each<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    page: &Slot<'_>,
    elements: &[T],
    row: u32,
    out: &mut Numbers,
    cell: impl Fn(usize) -> RawCell,
) -> bool {
    // All ids of a stretch have the same generation.
    let generation = elements.first().map_or(0, |element| element.generation());
    (row..).zip(elements).all(|(row, element)| {
        let at = element.at();
        let seen = at < page.core.capacity()
            && page.core.generation(at) == generation
            && page.core.visible_under(pin, at, &view.snapshot);
        !seen || push(cell(at), (&page.tablet.values, pin), row, out)
    })
}

/// Copies a stretch of elements in successive slots of a page without version words, all with numbers of one type.
/// Returns false, and copies nothing, if the stretch is not of that kind.
fn copy_run<T: Element>(page: &Slot<'_>, plain: Plain<'_>, elements: &[T], row: u32, out: &mut Numbers) -> bool {
    let end = page.at + elements.len();
    let is_plain = page.core.is_first_generation() && page.core.clean_count().is_some_and(|clean| end <= clean);
    if !is_plain || !follow_one_another(elements) {
        return false;
    }
    let (tags, words) = plain.arrays(page.at..end);
    let tag = tags[0].load(Ordering::Acquire);
    let Some(kind) = number_type(tag).filter(|kind| out.kind.is_none_or(|k| k == *kind)) else { return false };
    // The loop has no early exit, which would be a branch for each tag. Mostly all tags are equal.
    if tags.iter().fold(0, |other, t| other | (t.load(Ordering::Acquire) ^ tag)) != 0 {
        return false;
    }
    let cells = words.iter().map(|word| RawCell { tag, word: word.load(Ordering::Acquire) });
    if kind.is_float() {
        out.floats.extend(cells.map(|cell| match cell.kind() {
            CellKind::Float(n) => n,
            _ => 0.0,
        }));
    } else {
        out.integers.extend(cells.map(|cell| cell.word as i64));
    }
    out.row.extend(row..row + elements.len() as u32);
    out.kind = Some(kind);
    true
}

/// Returns true if the ids are successive. The loop has no branch, so the compiler vectorizes it.
fn follow_one_another<T: Element>(elements: &[T]) -> bool {
    let first = elements.first().map_or(0, |element| element.bits());
    let ids = (0..).map(|n| first.wrapping_add(n));
    elements.iter().zip(ids).fold(0, |other, (element, id)| other | (element.bits() ^ id)) == 0
}
