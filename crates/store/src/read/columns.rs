//! The values of several keys by column, for a batch whose elements lie anywhere.
//!
//! The page of an element and its visibility are found once for all keys. Every row gets the number of its page among
//! the pages of the batch, which are far fewer than the rows. Then a key is looked up once for each page, and its
//! values are read in one walk over the rows. Cells come first, and are loaded ahead. The records that cells name come
//! second, and all of them are loaded ahead before the first is read.
//!
//! Cells of columns without undo chains are read without a look at versions. If an update comes in between, all cells
//! of the key are read again, version by version (see the protocol in `cell::column`).

use hashbrown::HashMap;
use mangrove_graph::{KeyId, ValueColumns, ValueRows};
use mangrove_reclaim::Pin;

use crate::cell::RawCell;
use crate::cell::column::{Column, Plain};
use crate::page::{PageCore, Tablet};
use crate::read::properties::push_values;
use crate::read::view::{LOOK_AHEAD, StoreView};
use crate::store::Element;

/// Stands for the page of a row without a visible element.
const NOWHERE: u32 = u32::MAX;

/// The elements of a batch by their pages.
struct BatchPages<'a> {
    pages: Vec<(&'a Tablet, &'a PageCore)>,
    /// The number of each row's page, or [`NOWHERE`].
    page_of: Vec<u32>,
}

impl<'a> BatchPages<'a> {
    fn of<T: Element>(view: &StoreView<'a>, pin: &Pin, elements: &[T]) -> Self {
        let mut batch = BatchPages { pages: Vec::new(), page_of: Vec::with_capacity(elements.len()) };
        batch.find_pages(view, pin, elements);
        batch.hide_unseen(view, pin, elements);
        batch
    }

    /// Numbers the pages of the elements, and starts loading their version words.
    fn find_pages<T: Element>(&mut self, view: &StoreView<'a>, pin: &Pin, elements: &[T]) {
        let Some(&first) = elements.first() else { return };
        // The number is that of a page and a generation, so a page with several generations counts several times.
        let first = (first.page(), self.add_page(view, first));
        // The pages but the first: a batch of one page makes no map.
        let mut others: HashMap<u64, u32, foldhash::fast::RandomState> = HashMap::default();
        let mut last = first;
        for &element in elements {
            let page = element.page();
            if last.0 != page {
                let number = match page == first.0 {
                    true => first.1,
                    false => *others.entry(page).or_insert_with(|| self.add_page(view, element)),
                };
                last = (page, number);
            }
            if let Some((_, core)) = self.pages.get(last.1 as usize) {
                core.prefetch_version(pin, element.at());
            }
            self.page_of.push(last.1);
        }
    }

    /// Adds the page of an element, and returns its number.
    fn add_page<T: Element>(&mut self, view: &StoreView<'a>, element: T) -> u32 {
        let Some(page) = element.page_of(view.store) else { return NOWHERE };
        self.pages.push(page);
        self.pages.len() as u32 - 1
    }

    /// Removes the page of every row whose element the snapshot does not see.
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

    /// The keys for which any of the pages has a column, each once.
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
struct ColumnSource<'a> {
    column: &'a Column,
    /// The cells, if no undo chain hangs from any of them.
    plain: Option<Plain<'a>>,
}

/// Reads the values of several keys, for [`mangrove_graph::GraphView::vertex_columns`].
pub(crate) fn columns<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    elements: &[T],
    keys: Option<&[KeyId]>,
    out: &mut ValueColumns,
) {
    let batch = BatchPages::of(view, pin, elements);
    let all;
    let keys = match keys {
        Some(keys) => keys,
        None => {
            all = batch.keys();
            &all[..]
        }
    };
    let (mut sources, mut cells) = (Vec::with_capacity(batch.pages.len()), Vec::with_capacity(elements.len()));
    for key in keys {
        sources.clear();
        sources.extend(batch.pages.iter().map(|(_, core)| {
            let column = core.column(*key)?;
            Some(ColumnSource { column, plain: column.plain() })
        }));
        read_cells(view, pin, &batch, &mut sources, elements, &mut cells);
        push(&batch, pin, &cells, out.column(*key));
    }
}

/// The column that a row's cell is in.
#[inline]
fn source_of<'a>(batch: &BatchPages<'_>, sources: &[Option<ColumnSource<'a>>], row: usize) -> Option<ColumnSource<'a>> {
    *sources.get(*batch.page_of.get(row)? as usize)?
}

/// Reads the cells of one key, one for each row.
fn read_cells<T: Element>(
    view: &StoreView<'_>,
    pin: &Pin,
    batch: &BatchPages<'_>,
    sources: &mut [Option<ColumnSource<'_>>],
    elements: &[T],
    cells: &mut Vec<RawCell>,
) {
    loop {
        cells.clear();
        for (row, element) in elements.iter().enumerate().take(LOOK_AHEAD) {
            source_of(batch, sources, row).into_iter().for_each(|ahead| ahead.column.prefetch(element.at()));
        }
        for (row, element) in elements.iter().enumerate() {
            if let Some(ahead) = elements.get(row + LOOK_AHEAD)
                && let Some(source) = source_of(batch, sources, row + LOOK_AHEAD)
            {
                source.column.prefetch(ahead.at());
            }
            let page = batch.page_of[row] as usize;
            cells.push(match source_of(batch, sources, row) {
                None => RawCell::ABSENT,
                Some(ColumnSource { plain: Some(plain), .. }) => plain.get(element.at()),
                Some(ColumnSource { column, .. }) => {
                    column.read(element.at(), &view.snapshot, batch.pages[page].0.undo_under(pin))
                }
            });
        }
        // A column that was read without versions must not have been updated meanwhile. One that was is read with
        // versions in the next round, so there is a last round.
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
fn push(batch: &BatchPages<'_>, pin: &Pin, cells: &[RawCell], out: &mut ValueRows) {
    let region = |row: usize| batch.pages.get(batch.page_of[row] as usize).map(|(tablet, _)| &tablet.values);
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
