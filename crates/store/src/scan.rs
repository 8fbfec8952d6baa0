//! Scans and counts, a page at a time.
//!
//! A page without version words is taken whole; another is filtered by them. Pages that appear while a scan
//! is on its way hold nothing the scan's snapshot sees, so it does not matter whether it meets them.

use std::collections::BTreeMap;

use mangrove_graph::{EdgeId, LabelFilter, LabelSetId, ScanCursor, Share, Statistics, TabletId, VertexId};

use crate::page::{PAGE_SLOTS, PageCore};
use crate::store::Store;
use crate::tablet::Tablet;
use crate::version::Snapshot;
use crate::view::StoreView;

/// See [`mangrove_graph::GraphView::scan_vertices`].
pub(crate) fn vertices(
    view: &StoreView<'_>,
    labels: &LabelFilter,
    share: Share,
    cursor: &mut ScanCursor,
    limit: usize,
    out: &mut Vec<VertexId>,
) -> bool {
    scan(view, share, cursor, limit, out, |tablet, number, walk| {
        if number >= tablet.vertices.count() {
            return false;
        }
        if let Some(page) = tablet.vertices.get(number).filter(|page| labels.takes(page.core.label)) {
            walk.page(&page.core, tablet.id, number, VertexId::new);
        }
        true
    })
}

/// See [`mangrove_graph::GraphView::scan_edges`].
pub(crate) fn edges(
    view: &StoreView<'_>,
    labels: &LabelFilter,
    share: Share,
    cursor: &mut ScanCursor,
    limit: usize,
    out: &mut Vec<EdgeId>,
) -> bool {
    scan(view, share, cursor, limit, out, |tablet, number, walk| {
        if number >= tablet.edges.count() {
            return false;
        }
        if let Some(page) = tablet.edges.get(number).filter(|page| labels.takes(page.core.label)) {
            walk.page(&page.core, tablet.id, number, EdgeId::new);
        }
        true
    })
}

/// A scan inside one page.
struct Walk<'a, T> {
    snapshot: &'a Snapshot<'a>,
    offset: usize,
    /// How many more are wanted.
    room: usize,
    out: &'a mut Vec<T>,
}

impl<T> Walk<'_, T> {
    /// Takes visible slots from `offset` on until there is no room or the page is done.
    fn page(&mut self, core: &PageCore, tablet: TabletId, number: usize, id: impl Fn(TabletId, u64) -> T) {
        let base = number as u64 * PAGE_SLOTS;
        let before = self.out.len();
        if let Some(clean) = core.clean_count() {
            let end = clean.min(self.offset.saturating_add(self.room));
            self.out.extend((self.offset..end).map(|at| id(tablet, base + at as u64)));
            self.offset = end.max(self.offset);
        } else {
            let used = core.used();
            while self.offset < used && self.out.len() - before < self.room {
                if core.visible(self.offset, self.snapshot) {
                    self.out.push(id(tablet, base + self.offset as u64));
                }
                self.offset += 1;
            }
        }
        self.room -= self.out.len() - before;
    }
}

/// Walks the pages of a share. `each` hands one page to the walk; false when the tablet has no more.
fn scan<T>(
    view: &StoreView<'_>,
    share: Share,
    cursor: &mut ScanCursor,
    limit: usize,
    out: &mut Vec<T>,
    each: impl Fn(&Tablet, usize, &mut Walk<'_, T>) -> bool,
) -> bool {
    let mut walk = Walk { snapshot: &view.snapshot, offset: cursor.offset as usize, room: limit, out };
    while let Some(tablet) = view.store.tablets.get(cursor.tablet as usize) {
        let more = share.takes(tablet.id) && {
            if walk.room == 0 {
                cursor.offset = walk.offset as u32;
                return false;
            }
            each(tablet, cursor.page as usize, &mut walk)
        };
        if more && walk.room == 0 {
            // The page may have more; the next call finds out.
            cursor.offset = walk.offset as u32;
            return false;
        }
        walk.offset = 0;
        (cursor.tablet, cursor.page) = if more { (cursor.tablet, cursor.page + 1) } else { (cursor.tablet + 1, 0) };
    }
    cursor.offset = 0;
    true
}

/// The number of visible elements on the pages of a share.
pub(crate) fn count<'a, I: Iterator<Item = &'a PageCore>>(
    view: &StoreView<'a>,
    labels: &LabelFilter,
    share: Share,
    pages: impl Fn(&'a Tablet) -> I,
) -> u64 {
    let tablets = view.store.tablets.iter().filter(|tablet| share.takes(tablet.id));
    tablets.flat_map(pages).filter(|core| labels.takes(core.label)).map(|core| count_page(core, &view.snapshot)).sum()
}

fn count_page(core: &PageCore, snapshot: &Snapshot<'_>) -> u64 {
    let count = core.clean_count().unwrap_or_else(|| (0..core.used()).filter(|&at| core.visible(at, snapshot)).count());
    count as u64
}

/// Numbers for the planner, from the pages' counters.
pub(crate) fn statistics(store: &Store) -> Statistics {
    fn by_label<'a>(pages: impl Iterator<Item = &'a PageCore>) -> Vec<(LabelSetId, u64)> {
        let mut counts = BTreeMap::new();
        pages.for_each(|core| *counts.entry(core.label).or_default() += core.live_count());
        counts.into_iter().collect()
    }
    Statistics {
        vertices: by_label(store.tablets.iter().flat_map(|tablet| tablet.vertices.iter().map(|page| &page.core))),
        edges: by_label(store.tablets.iter().flat_map(|tablet| tablet.edges.iter().map(|page| &page.core))),
    }
}
