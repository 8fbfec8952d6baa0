//! The values of several keys by column, for a batch whose elements lie anywhere.
//!
//! What must be known of an element for each of its values (its page, and whether the snapshot sees it) is found once
//! for all keys: every row is given the number of its page among the pages of the batch, which are far fewer than its
//! rows. A key is then looked up once a page, and its values are one walk over the rows: cells first, loaded ahead,
//! then the records that cells name, all of them under way before the first is read.
//!
//! Cells of columns without undo chains are taken as they are, and all of a key are read again, version by version,
//! if an update has come between (see the protocol in `column`).

use hashbrown::HashMap;
use hashbrown::hash_map::Entry;
use mangrove_graph::{KeyId, ValueColumns, ValueRows};
use mangrove_reclaim::Pin;

use crate::cell::RawCell;
use crate::cell::column::{Column, Plain};
use crate::page::{PageCore, Tablet};
use crate::read::properties::push_values;
use crate::read::view::{LOOK_AHEAD, StoreView};
use crate::store::Element;

/// The row has no visible element.
const NOWHERE: u32 = u32::MAX;

/// The elements of a batch by their pages.
struct Layout<'a> {
    pages: Vec<(&'a Tablet, &'a PageCore)>,
    /// The number of each row's page, or [`NOWHERE`].
    page_of: Vec<u32>,
}

impl<'a> Layout<'a> {
    fn of<T: Element>(view: &StoreView<'a>, pin: &Pin, elements: &[T]) -> Self {
        let mut layout = Layout { pages: Vec::new(), page_of: Vec::with_capacity(elements.len()) };
        layout.find_pages(view, pin, elements);
        layout.hide_unseen(view, pin, elements);
        layout
    }

    /// Numbers the pages; whether their elements are seen is not asked yet, only loaded.
    fn find_pages<T: Element>(&mut self, view: &StoreView<'a>, pin: &Pin, elements: &[T]) {
        let mut numbers: HashMap<u64, u32, foldhash::fast::RandomState> = HashMap::default();
        let mut last = (u64::MAX, NOWHERE);
        for &element in elements {
            // Ids of one page and one generation have this in common; several generations of a page are several here.
            let page = element.page();
            if last.0 != page {
                let number = match numbers.entry(page) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => *new.insert(match element.page_of(view.store) {
                        Some(found) => {
                            self.pages.push(found);
                            self.pages.len() as u32 - 1
                        }
                        None => NOWHERE,
                    }),
                };
                last = (page, number);
            }
            if let Some((_, core)) = self.pages.get(last.1 as usize) {
                core.prefetch_version(pin, element.at());
            }
            self.page_of.push(last.1);
        }
    }

    fn hide_unseen<T: Element>(&mut self, view: &StoreView<'_>, pin: &Pin, elements: &[T]) {
        for (number, element) in self.page_of.iter_mut().zip(elements) {
            let Some((_, core)) = self.pages.get(*number as usize) else { continue };
            let at = element.at();
            let is_seen = at < core.capacity()
                && core.generation(at) == element.generation()
                && core.visible_under(pin, at, &view.snapshot);
            if !is_seen {
                *number = NOWHERE;
            }
        }
    }

    /// The keys that elements on these pages may have values under, as the pages have them.
    fn keys(&self) -> Vec<KeyId> {
        let mut keys = Vec::new();
        for (_, core) in &self.pages {
            for (key, _) in core.columns() {
                if !keys.contains(&key) {
                    keys.push(key);
                }
            }
        }
        keys
    }
}

/// A key's column on one page.
#[derive(Clone, Copy)]
struct Source<'a> {
    column: &'a Column,
    /// Its cells, as long as nobody has updated any.
    plain: Option<Plain<'a>>,
}

/// See [`mangrove_graph::GraphView::vertex_columns`].
pub(crate) fn columns<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    elements: &[T],
    keys: Option<&[KeyId]>,
    out: &mut ValueColumns,
) {
    let layout = Layout::of(view, pin, elements);
    let all;
    let keys = match keys {
        Some(keys) => keys,
        None => {
            all = layout.keys();
            &all[..]
        }
    };
    let (mut sources, mut cells) = (Vec::with_capacity(layout.pages.len()), Vec::with_capacity(elements.len()));
    for key in keys {
        sources.clear();
        sources.extend(layout.pages.iter().map(|(_, core)| {
            let column = core.column(*key)?;
            Some(Source { column, plain: column.plain() })
        }));
        read_cells(view, pin, &layout, &mut sources, elements, &mut cells);
        push(&layout, pin, &cells, out.column(*key));
    }
}

/// The column that a row's cell is in.
#[inline]
fn source_of<'a>(layout: &Layout<'_>, sources: &[Option<Source<'a>>], row: usize) -> Option<Source<'a>> {
    *sources.get(*layout.page_of.get(row)? as usize)?
}

/// Reads the cells of one key: a row each.
fn read_cells<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    layout: &Layout<'_>,
    sources: &mut [Option<Source<'_>>],
    elements: &[T],
    cells: &mut Vec<RawCell>,
) {
    loop {
        cells.clear();
        for (row, element) in elements.iter().enumerate().take(LOOK_AHEAD) {
            source_of(layout, sources, row).into_iter().for_each(|ahead| ahead.column.prefetch(element.at()));
        }
        for (row, element) in elements.iter().enumerate() {
            if let Some(ahead) = elements.get(row + LOOK_AHEAD)
                && let Some(source) = source_of(layout, sources, row + LOOK_AHEAD)
            {
                source.column.prefetch(ahead.at());
            }
            let page = layout.page_of[row] as usize;
            cells.push(match source_of(layout, sources, row) {
                None => RawCell::ABSENT,
                Some(Source { plain: Some(plain), .. }) => plain.get(element.at()),
                Some(Source { column, .. }) => {
                    column.read(element.at(), &view.snapshot, layout.pages[page].0.undo_under(pin))
                }
            });
        }
        // What was taken as it is must not have been updated meanwhile. Columns that were become none of those, so
        // this comes to an end.
        let mut held = true;
        for source in sources.iter_mut().flatten() {
            if source.plain.is_some_and(|plain| !plain.held()) {
                (source.plain, held) = (None, false);
            }
        }
        if held {
            return;
        }
    }
}

/// Appends the values of the cells.
fn push(layout: &Layout<'_>, pin: &Pin, cells: &[RawCell], out: &mut ValueRows) {
    let region = |row: usize| layout.pages.get(layout.page_of[row] as usize).map(|(tablet, _)| &tablet.values);
    for (row, cell) in cells.iter().enumerate().filter(|(_, cell)| cell.is_record()) {
        region(row).into_iter().for_each(|region| {
            region.prefetch(*cell);
        });
    }
    out.row.reserve(cells.len());
    out.value.reserve(cells.len());
    for (row, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_absent()) {
        if let Some(region) = region(row) {
            push_values(region, pin, *cell, row as u32, out);
        }
    }
}
