//! Scans and counts, a page at a time.
//!
//! A frozen page without free slots is taken as a whole; other pages are filtered by visibility. A page that is added
//! while a scan runs has no element that the scan's snapshot sees, so it does not matter whether the scan meets it.

use std::collections::BTreeMap;

use mangrove_graph::{
    EdgeId, ElementKind, GraphChanges, IndexRange, KeyId, LabelFilter, LabelSetId, LiveCounts, ScanCursor, Share,
    TabletId, VertexId, VertexPage,
};
use mangrove_reclaim::epoch;

use crate::cell::column::Plain;
use crate::cell::predicate::Predicate;
use crate::page::{PAGE_SLOTS, PageCore, Tablet};
use crate::read::view::StoreView;
use crate::store::Store;
use crate::version::Snapshot;

/// How many slots one call of a predicate scan tests at most, plus one page: the work of some ten microseconds.
const TESTED_SLOTS_MAX: usize = 16 * PAGE_SLOTS as usize;

/// A predicate selects among this many slots or more at once. Fewer are tested one by one.
const SELECTED_MIN: usize = 16;

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
            walk.page(&page.core, VertexId::new(tablet.id, number as u64 * PAGE_SLOTS).to_bits(), VertexId::from_bits);
        }
        true
    })
}

/// See [`mangrove_graph::GraphView::vertex_pages`].
pub(crate) fn vertex_pages(view: &StoreView<'_>, labels: &LabelFilter, out: &mut Vec<VertexPage>) {
    let store = view.store;
    // The snapshot may see a large commit that has not noted its changes yet.
    store.installing.wait();
    let noted = store.edge_writes.noted_since();
    for (at, tablet) in store.tablets.iter().enumerate() {
        let taken = tablet.vertices.numbered().filter(|(_, page)| labels.takes(page.core.label));
        out.extend(taken.map(|(number, page)| VertexPage {
            first: VertexId::new(tablet.id, number as u64 * PAGE_SLOTS),
            pages: ScanCursor {
                tablet: at as u32,
                page: number as u32,
                offset: 0,
                until: (at as u32, number as u32 + 1),
            },
            changed: Some(page.lists_changed()),
            edges_written: noted.map(|since| page.edges_written().max(since)),
        }));
    }
}

/// See [`mangrove_graph::GraphView::changes_since`]. The view is of a transaction that does not write: its own changes would be in no log.
pub(crate) fn changes_since(
    view: &StoreView<'_>,
    since: u64,
    with_properties: bool,
    most: usize,
    out: &mut GraphChanges,
) -> bool {
    let (store, until) = (view.store, view.snapshot.begin_ts);
    // As for `vertex_pages`.
    store.installing.wait();
    let are_noted = !with_properties || store.edge_writes.begin(|| edges_changed(store)) <= since;
    let noted = || {
        let pages = store.tablets.iter().flat_map(|tablet| tablet.vertices.iter());
        pages.map(|page| page.noted()).max().unwrap_or_default()
    };
    // The log is asked in any case, so that it begins.
    let is_known = store.change_log.changes_between((since, until), most, noted, &store.memory, out);
    since <= until && are_noted && is_known
}

/// See [`mangrove_graph::GraphView::edges_changed`].
pub(crate) fn edges_changed(store: &Store) -> u64 {
    store.installing.wait();
    let pages = store.tablets.iter().flat_map(|tablet| tablet.edges.iter());
    pages.map(|page| page.core.changed()).max().unwrap_or_default()
}

/// The elements that a predicate scan takes: those of these label sets with a value in the range under the key.
#[derive(Clone, Copy)]
pub(crate) struct ValueFilter<'a> {
    pub(crate) labels: &'a LabelFilter,
    pub(crate) key: KeyId,
    pub(crate) range: &'a IndexRange,
}

/// See [`mangrove_graph::GraphView::scan_vertices_where`].
pub(crate) fn vertices_where(
    view: &StoreView<'_>,
    wanted: ValueFilter<'_>,
    share: Share,
    cursor: &mut ScanCursor,
    limit: usize,
    out: &mut Vec<VertexId>,
) -> bool {
    let predicate = Predicate::new(wanted.range);
    scan(view, share, cursor, limit, out, |tablet, number, walk| {
        if number >= tablet.vertices.count() {
            return false;
        }
        if let Some(page) = tablet.vertices.get(number).filter(|page| wanted.labels.takes(page.core.label)) {
            walk.page_where(&page.core, tablet, number, wanted.key, &predicate, VertexId::new);
        }
        true
    })
}

/// See [`mangrove_graph::GraphView::scan_edges_where`].
pub(crate) fn edges_where(
    view: &StoreView<'_>,
    wanted: ValueFilter<'_>,
    share: Share,
    cursor: &mut ScanCursor,
    limit: usize,
    out: &mut Vec<EdgeId>,
) -> bool {
    let predicate = Predicate::new(wanted.range);
    scan(view, share, cursor, limit, out, |tablet, number, walk| {
        if number >= tablet.edges.count() {
            return false;
        }
        if let Some(page) = tablet.edges.get(number).filter(|page| wanted.labels.takes(page.core.label)) {
            walk.page_where(&page.core, tablet, number, wanted.key, &predicate, EdgeId::new);
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
            walk.page(&page.core, EdgeId::new(tablet.id, number as u64 * PAGE_SLOTS).to_bits(), EdgeId::from_bits);
        }
        true
    })
}

/// The state of one call of a scan.
struct PageScan<'a, T> {
    snapshot: &'a Snapshot<'a>,
    /// The next slot on the current page.
    offset: usize,
    /// How many more elements the caller wants.
    room: usize,
    /// How many more slots a predicate scan may test.
    tests_left: usize,
    out: &'a mut Vec<T>,
}

impl<T> PageScan<'_, T> {
    /// Takes the visible elements from `offset` on, until there is no room or the page is done. `base` has the bits of the id of the
    /// page's first slot, in its first generation.
    fn page(&mut self, core: &PageCore, base: u64, id: impl Fn(u64) -> T) {
        let before = self.out.len();
        if let Some(clean) = core.clean_count() {
            let end = clean.min(self.offset.saturating_add(self.room));
            if core.is_first_generation() {
                self.out.extend((self.offset..end).map(|at| id(base + at as u64)));
            } else {
                self.out.extend((self.offset..end).map(|at| id(core.slot_number(base, at))));
            }
            self.offset = end.max(self.offset);
        } else {
            let (used, pin) = (core.used(), epoch::pin());
            while self.offset < used && self.out.len() - before < self.room {
                if core.visible_under(&pin, self.offset, self.snapshot) {
                    self.out.push(id(core.slot_number(base, self.offset)));
                }
                self.offset += 1;
            }
        }
        self.room -= self.out.len() - before;
    }

    /// As [`PageScan::page`], for elements with a value that passes the predicate.
    fn page_where(
        &mut self,
        core: &PageCore,
        tablet: &Tablet,
        number: usize,
        key: KeyId,
        predicate: &Predicate<'_>,
        id: impl Fn(TabletId, u64) -> T,
    ) {
        let Some(column) = core.column(key) else { return };
        let base = number as u64 * PAGE_SLOTS;
        let (before, from) = (self.out.len(), self.offset);
        let full = before + self.room;
        let used = core.clean_count().unwrap_or_else(|| core.used());
        let id = |at: usize| id(tablet.id, core.slot_number(base, at));
        let pin = &epoch::pin();
        if let Some(plain) = column.plain() {
            match core.clean_count() {
                Some(_) => {
                    self.take_selected((used, full), id, plain, predicate);
                    self.take((used, full), id, |at| predicate.holds(plain.get(at), &tablet.values));
                }
                None => {
                    let snapshot = self.snapshot;
                    let passes =
                        |at| core.visible_under(pin, at, snapshot) && predicate.holds(plain.get(at), &tablet.values);
                    self.take((used, full), id, passes);
                }
            }
            if plain.held() {
                self.tests_left = self.tests_left.saturating_sub(self.offset - from);
                self.room -= self.out.len() - before;
                return;
            }
            self.out.truncate(before);
            self.offset = from;
        }
        let snapshot = self.snapshot;
        let cell = |at| column.read(at, snapshot, tablet.undo_under(pin));
        let passes = |at| core.visible_under(pin, at, snapshot) && predicate.holds(cell(at), &tablet.values);
        match column.few_slots() {
            Some(slots) => self.take_of(&slots, (used, full), id, passes),
            None => self.take((used, full), id, passes),
        }
        self.tests_left = self.tests_left.saturating_sub(self.offset - from);
        self.room -= self.out.len() - before;
    }

    /// As [`PageScan::take`], many slots at a time, as long as there is room if all of them pass. Takes none if the
    /// predicate cannot select among cells. The caller goes on with [`PageScan::take`] in both cases.
    fn take_selected(
        &mut self,
        (used, full): (usize, usize),
        id: impl Fn(usize) -> T,
        plain: Plain<'_>,
        predicate: &Predicate<'_>,
    ) {
        let mut passing = [0; PAGE_SLOTS as usize];
        loop {
            let end = used.min(self.offset.saturating_add(full - self.out.len()));
            if end.saturating_sub(self.offset) < SELECTED_MIN {
                return;
            }
            let (tags, words) = plain.arrays(self.offset..end);
            let Some(count) = predicate.select(tags, words, &mut passing) else { return };
            let from = self.offset;
            self.out.extend(passing[..count].iter().map(|at| id(from + usize::from(*at))));
            self.offset = end;
        }
    }

    /// As [`PageScan::take`], if only these slots can pass.
    fn take_of(
        &mut self,
        slots: &[usize],
        (used, full): (usize, usize),
        id: impl Fn(usize) -> T,
        passes: impl Fn(usize) -> bool,
    ) {
        for &at in slots.iter().filter(|&&at| at < used) {
            if self.out.len() == full {
                return;
            }
            if at >= self.offset {
                self.offset = at + 1;
                if passes(at) {
                    self.out.push(id(at));
                }
            }
        }
        if self.out.len() < full {
            self.offset = used.max(self.offset);
        }
    }

    /// Takes slots that pass, from `offset` on, until the output has `full` elements or slot `used` is reached.
    #[inline]
    fn take(&mut self, (used, full): (usize, usize), id: impl Fn(usize) -> T, passes: impl Fn(usize) -> bool) {
        while self.offset < used && self.out.len() < full {
            if passes(self.offset) {
                self.out.push(id(self.offset));
            }
            self.offset += 1;
        }
    }
}

/// Walks over the pages of a share. `each` scans the page of a number, and returns false if the tablet has no such
/// page. Returns true if the scan is complete, and false if the cursor says where it goes on.
fn scan<T>(
    view: &StoreView<'_>,
    share: Share,
    cursor: &mut ScanCursor,
    limit: usize,
    out: &mut Vec<T>,
    each: impl Fn(&Tablet, usize, &mut PageScan<'_, T>) -> bool,
) -> bool {
    let offset = cursor.offset as usize;
    let mut walk = PageScan { snapshot: &view.snapshot, offset, room: limit, tests_left: TESTED_SLOTS_MAX, out };
    while let Some(tablet) = view.store.tablets.get(cursor.tablet as usize) {
        if (cursor.tablet, cursor.page) >= cursor.until {
            break;
        }
        let more = share.takes(tablet.id) && {
            if walk.room == 0 {
                cursor.offset = walk.offset as u32;
                return false;
            }
            each(tablet, cursor.page as usize, &mut walk)
        };
        if more && walk.room == 0 {
            // The page may have more elements; the next call finds out.
            cursor.offset = walk.offset as u32;
            return false;
        }
        walk.offset = 0;
        (cursor.tablet, cursor.page) = if more { (cursor.tablet, cursor.page + 1) } else { (cursor.tablet + 1, 0) };
        if walk.tests_left == 0 {
            cursor.offset = 0;
            return false;
        }
    }
    cursor.offset = 0;
    true
}

/// The fewest pages that are left of a scan that is cut in two: the page at hand, and another one.
const SPLIT_PAGES_MIN: usize = 2;

/// The most pages whose labels are looked at to cut a scan.
const LOOKED_PAGES_MAX: usize = 512;

/// The pages that a scan of a share has left, tablet by tablet.
struct PagesLeft(Vec<(usize, std::ops::Range<usize>)>);

impl PagesLeft {
    fn new(view: &StoreView<'_>, kind: ElementKind, share: Share, cursor: &ScanCursor) -> Self {
        let (until_tablet, until_page) = cursor.until;
        let pages_of = |(number, tablet): (usize, &Tablet)| {
            let count = match kind {
                ElementKind::Vertex => tablet.vertices.count(),
                ElementKind::Edge => tablet.edges.count(),
            };
            let first = if number == cursor.tablet as usize { cursor.page as usize } else { 0 };
            let end = if number == until_tablet as usize { count.min(until_page as usize) } else { count };
            (number, if share.takes(tablet.id) { first..end.max(first) } else { 0..0 })
        };
        let tablets = view.store.tablets.iter().enumerate();
        let left = |(number, _): &(usize, &Tablet)| *number <= until_tablet as usize;
        PagesLeft(tablets.skip(cursor.tablet as usize).take_while(left).map(pages_of).collect())
    }

    fn count(&self) -> usize {
        self.0.iter().map(|(_, pages)| pages.len()).sum()
    }

    /// The tablet and the number of each `step`th page, from one on. The page at hand is number 0.
    fn every(&self, step: usize, first: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut skipped = first;
        self.0.iter().flat_map(move |(tablet, pages)| {
            let begin = pages.start + skipped;
            let taken = pages.end.saturating_sub(begin).div_ceil(step);
            skipped = (begin + taken * step).saturating_sub(pages.end);
            (0..taken).map(move |at| (*tablet, begin + at * step))
        })
    }
}

/// See [`mangrove_graph::GraphView::split_scan`]. The page at hand stays with the first part.
///
/// The labels of many pages are looked at, because the vertices of a label are often on a few pages that are neighbors.
/// To cut the others off again and again would give the other thread nothing to do.
pub(crate) fn split(
    view: &StoreView<'_>,
    kind: ElementKind,
    labels: &LabelFilter,
    share: Share,
    cursor: &mut ScanCursor,
) -> Option<ScanCursor> {
    let left = PagesLeft::new(view, kind, share, cursor);
    let count = left.count();
    if count < SPLIT_PAGES_MIN {
        return None;
    }
    let is_wanted = |(tablet, page): &(usize, usize)| {
        let Some(tablet) = view.store.tablets.get(*tablet) else { return false };
        let label = match kind {
            ElementKind::Vertex => tablet.vertices.get(*page).map(|page| page.core.label),
            ElementKind::Edge => tablet.edges.get(*page).map(|page| page.core.label),
        };
        label.is_some_and(|label| labels.takes(label))
    };
    let step = count.div_ceil(LOOKED_PAGES_MAX);
    let wanted: Vec<(usize, usize)> = match labels {
        LabelFilter::Any => Vec::new(),
        LabelFilter::Sets(_) => left.every(step, 1).filter(is_wanted).collect(),
    };
    let (tablet, page) = match wanted.get(wanted.len() / 2) {
        Some(middle) => *middle,
        // All pages were looked at.
        None if step == 1 && *labels != LabelFilter::Any => return None,
        None => left.every(1, count.div_ceil(2)).next()?,
    };
    let second = ScanCursor { tablet: tablet as u32, page: page as u32, offset: 0, until: cursor.until };
    cursor.until = (second.tablet, second.page);
    Some(second)
}

/// How many pages a count loads at a time. Counting a page costs one cache miss and little else.
const PAGES_AHEAD: usize = 32;

/// The number of visible elements on the pages of a share. Pages keep counts. A page that was changed after the
/// snapshot is counted slot by slot, and so are all pages in a transaction that may have writes of its own.
pub(crate) fn count<'a, I: Iterator<Item = &'a PageCore>>(
    view: &StoreView<'a>,
    labels: &LabelFilter,
    share: Share,
    pages: impl Fn(&'a Tablet) -> I,
) -> u64 {
    let are_kept_counts_seen = view.snapshot.txn == 0 && view.store.installing.is_idle();
    let tablets = view.store.tablets.iter().filter(|tablet| share.takes(tablet.id));
    let mut pages = tablets.flat_map(pages);
    let mut ahead: Vec<&PageCore> = Vec::with_capacity(PAGES_AHEAD);
    let mut total = 0;
    loop {
        ahead.extend(pages.by_ref().take(PAGES_AHEAD).inspect(|core| core.prefetch_counts()));
        if ahead.is_empty() {
            return total;
        }
        let taken = ahead.drain(..).filter(|core| labels.takes(core.label));
        total += taken.map(|core| count_page(core, &view.snapshot, are_kept_counts_seen)).sum::<u64>();
    }
}

/// The number of visible elements on a page. `is_kept_count_seen`: the snapshot sees every commit that the page has
/// counted, unless a later one has changed the page.
pub(super) fn count_page(core: &PageCore, snapshot: &Snapshot<'_>, is_kept_count_seen: bool) -> u64 {
    let kept = core.clean_count().or_else(|| core.count_at(snapshot.begin_ts).filter(|_| is_kept_count_seen));
    // A pin is a fence, which costs more than all the rest if the count is known.
    let count = kept.unwrap_or_else(|| {
        let pin = epoch::pin();
        (0..core.used()).filter(|at| core.visible_under(&pin, *at, snapshot)).count()
    });
    count as u64
}

/// Counts of elements by label set, from the counters of pages. They include commits of any age.
pub(crate) fn live_counts(store: &Store) -> LiveCounts {
    fn by_label<'a>(pages: impl Iterator<Item = &'a PageCore>) -> Vec<(LabelSetId, u64)> {
        let mut counts = BTreeMap::new();
        pages.for_each(|core| *counts.entry(core.label).or_default() += core.live_count());
        counts.into_iter().collect()
    }
    LiveCounts {
        vertices: by_label(store.tablets.iter().flat_map(|tablet| tablet.vertices.iter().map(|page| &page.core))),
        edges: by_label(store.tablets.iter().flat_map(|tablet| tablet.edges.iter().map(|page| &page.core))),
    }
}
