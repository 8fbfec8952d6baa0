//! Properties that are numbers of one type, read as plain arrays.
//!
//! A batch is cut into *stretches*: rows whose elements lie on one page. Page and column are looked up once a
//! stretch; and where the elements follow one another on a page that carries no versions, as a scan finds them, tags
//! and words are copied without a look at anything else.

use std::sync::atomic::Ordering;

use mangrove_graph::ids::PAGE_SLOTS;
use mangrove_graph::{EdgeId, ElementRef, KeyId, Numbers, VertexId};

use crate::cell::{CellKind, RawCell, number_type};
use crate::column::{Column, Plain};
use crate::properties::Ahead;
use crate::store::Slot;
use crate::view::StoreView;

/// An element's id: the bits that name its page, and its place there.
pub(crate) trait Element: Copy {
    fn bits(self) -> u64;
    fn reference(self) -> ElementRef;
}

impl Element for VertexId {
    #[inline]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn reference(self) -> ElementRef {
        ElementRef::Vertex(self)
    }
}

impl Element for EdgeId {
    #[inline]
    fn bits(self) -> u64 {
        self.to_bits()
    }
    fn reference(self) -> ElementRef {
        ElementRef::Edge(self)
    }
}

/// How many elements from the first on lie on its page.
#[inline]
pub(crate) fn stretch<T: Element>(elements: &[T]) -> usize {
    let page = |element: &T| element.bits() / PAGE_SLOTS;
    let Some(first) = elements.first().map(page) else { return 0 };
    elements.iter().position(|element| page(element) != first).unwrap_or(elements.len())
}

/// Stretches from here on need no prefetching: the processor sees where they go.
const LONG_STRETCH: usize = 16;

/// See [`mangrove_graph::GraphView::vertex_numbers`].
pub(crate) fn numbers<T: Element>(view: &StoreView<'_>, elements: &[T], key: KeyId, out: &mut Numbers) -> bool {
    let before = out.len();
    let mut ahead = None;
    let mut row = 0;
    while row < elements.len() {
        let stretch = &elements[row..row + stretch(&elements[row..])];
        if stretch.len() < LONG_STRETCH {
            let ahead = ahead.get_or_insert_with(|| Ahead::start(view, elements, T::reference, key));
            (row..row + stretch.len()).for_each(|row| ahead.step(row));
        }
        if !read_stretch(view, stretch, row as u32, key, out) {
            out.truncate(before);
            return false;
        }
        row += stretch.len();
    }
    true
}

/// Reads elements of one page; `row` is the first one's.
fn read_stretch<T: Element>(view: &StoreView<'_>, elements: &[T], row: u32, key: KeyId, out: &mut Numbers) -> bool {
    let Some(first) = view.store.slot(elements[0].reference()) else {
        // The first is no element of the page; others may be.
        return elements.len() == 1 || read_stretch(view, &elements[1..], row + 1, key, out);
    };
    let Some(column) = first.core.column(key) else { return true };
    if let Some(plain) = column.plain() {
        let before = out.len();
        let read = copy_run(&first, plain, elements, row, out)
            || read_each(view, &first, elements, row, out, |at| plain.get(at));
        if plain.held() {
            return read;
        }
        out.truncate(before);
    }
    read_each(view, &first, elements, row, out, |at| read(view, &first, column, at))
}

fn read(view: &StoreView<'_>, slot: &Slot<'_>, column: &Column, at: usize) -> RawCell {
    column.read(at, &view.snapshot, &slot.tablet.undo)
}

/// Reads a stretch a cell at a time.
fn read_each<T: Element>(
    view: &StoreView<'_>,
    page: &Slot<'_>,
    elements: &[T],
    row: u32,
    out: &mut Numbers,
    cell: impl Fn(usize) -> RawCell,
) -> bool {
    for (row, element) in (row..).zip(elements) {
        let at = (element.bits() % PAGE_SLOTS) as usize;
        if at >= page.core.capacity() || !page.core.visible(at, &view.snapshot) {
            continue;
        }
        let cell = cell(at);
        let taken = match (cell.kind(), number_type(cell.tag)) {
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
                page.tablet.values.values(cell, |value| all = all && out.push(row, value));
                all
            }
            _ => false,
        };
        if !taken {
            return false;
        }
    }
    true
}

/// Copies a stretch of elements that follow one another on a page without versions and hold numbers of one type;
/// false, and nothing copied, where it is not such a one.
fn copy_run<T: Element>(page: &Slot<'_>, plain: Plain<'_>, elements: &[T], row: u32, out: &mut Numbers) -> bool {
    let end = page.at + elements.len();
    if page.core.clean_count().is_none_or(|clean| end > clean) || !follow_one_another(elements) {
        return false;
    }
    let (tags, words) = plain.arrays(page.at..end);
    let tag = tags[0].load(Ordering::Acquire);
    let Some(kind) = number_type(tag).filter(|kind| out.kind.is_none_or(|k| k == *kind)) else { return false };
    if !tags.iter().all(|t| t.load(Ordering::Acquire) == tag) {
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

fn follow_one_another<T: Element>(elements: &[T]) -> bool {
    elements.windows(2).all(|pair| pair[1].bits() == pair[0].bits() + 1)
}
