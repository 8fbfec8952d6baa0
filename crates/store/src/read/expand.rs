//! Expanding a batch of vertices along their edges, and counting those edges.
//!
//! Memory is loaded ahead in two steps: first the descriptor of the vertex `2 × DISTANCE` rows ahead, then the run of
//! the vertex `DISTANCE` rows ahead. Its descriptor has arrived by then. Neighbors are copied without a look at them,
//! since an edge is visible only if its ends are (GRAPH-2).
//!
//! A cursor numbers the lists of a vertex by the position of the table among the tables of its direction, with bit 31
//! set for incoming edges. Positions are stable, since tables are only added (RECLAIM-8). Inside a list the cursor
//! carries the list's layout version. So a list that compaction replaces is read to its end as it was (STORE-17).

use mangrove_graph::{
    Direction, EdgeId, ExpandCursor, ExpandRequest, Expansion, LabelFilter, LabelSetId, PAGE_SLOTS, VertexId,
};
use mangrove_reclaim::{Pin, epoch};
use smallvec::SmallVec;

use crate::adjacency::{AdjacencyTable, List, clean_run_len};
use crate::page::{Tablet, VertexPage};
use crate::read::view::StoreView;

const DISTANCE: usize = 8;
const INCOMING: u32 = 1 << 31;
/// The position of the layout version in the word of a cursor. Its position in the list is below.
const LAYOUT_SHIFT: u32 = 48;
const POSITION_MASK: u64 = (1 << LAYOUT_SHIFT) - 1;

/// Calls `each` with the number of every table of a page that a request takes, and the table, outgoing ones first,
/// until it returns false. Returns true if it never did. Tables without a list are passed over.
#[inline]
fn each_table<'p>(
    page: &'p VertexPage,
    direction: Direction,
    labels: &LabelFilter,
    mut each: impl FnMut(u32, &'p AdjacencyTable) -> bool,
) -> bool {
    let mut one_way = |way, flag: u32| {
        page.tables(way).each_while(|position, label, table| {
            // A table stays when all its edges are gone.
            !labels.takes(LabelSetId(label)) || table.is_empty() || each(flag | position, table)
        })
    };
    (direction == Direction::In || one_way(Direction::Out, 0))
        && (direction == Direction::Out || one_way(Direction::In, INCOMING))
}

/// One call of an expansion.
struct Expander<'a> {
    view: &'a StoreView<'a>,
    pin: &'a Pin,
    request: &'a ExpandRequest,
}

/// The page of a vertex, found ahead of the vertex's turn.
#[derive(Clone, Copy)]
struct FoundVertex<'a> {
    tablet: &'a Tablet,
    page: &'a VertexPage,
    /// The table of the request, if there is exactly one, which is the common case.
    only: Option<(u32, &'a AdjacencyTable)>,
    /// True if the page has no table for the request.
    is_empty: bool,
}

/// See [`mangrove_graph::GraphView::expand`].
pub(crate) fn expand(
    view: &StoreView<'_>,
    vertices: &[VertexId],
    request: &ExpandRequest,
    cursor: &mut ExpandCursor,
    out: &mut Expansion,
) -> bool {
    let pin = &epoch::pin();
    let expander = Expander { view, pin, request };
    // The pages found ahead, by row modulo the size, so that a row's page is looked up once.
    let mut found: [Option<FoundVertex<'_>>; 2 * DISTANCE] = [None; 2 * DISTANCE];
    let first = cursor.row as usize;
    let rows_ahead = |from: usize, count: usize| from..(from + count).min(vertices.len());
    for row in rows_ahead(first, 2 * DISTANCE) {
        found[row % (2 * DISTANCE)] = expander.find(vertices[row]);
    }
    for row in rows_ahead(first, DISTANCE) {
        expander.prefetch_lists(vertices[row], found[row % (2 * DISTANCE)]);
    }
    while let Some(&id) = vertices.get(cursor.row as usize) {
        let row = cursor.row as usize;
        let current = found[row % (2 * DISTANCE)];
        if let Some(&ahead) = vertices.get(row + 2 * DISTANCE) {
            found[row % (2 * DISTANCE)] = expander.find(ahead);
        }
        if let Some(&ahead) = vertices.get(row + DISTANCE) {
            expander.prefetch_lists(ahead, found[(row + DISTANCE) % (2 * DISTANCE)]);
        }
        if let Some(current) = current
            && !expander.expand_one(id, &current, cursor, out)
        {
            return false;
        }
        *cursor = ExpandCursor { row: cursor.row + 1, list: 0, position: 0 };
        if out.len() >= request.limit && (cursor.row as usize) < vertices.len() {
            return false;
        }
    }
    true
}

impl<'a> Expander<'a> {
    /// Finds the page of a vertex, and starts loading the vertex's descriptors.
    #[inline]
    fn find(&self, id: VertexId) -> Option<FoundVertex<'a>> {
        let (tablet, page) = self.view.store.vertex_page_unchecked(id)?;
        let (mut count, mut only) = (0, None);
        each_table(page, self.request.direction, &self.request.labels, |number, table| {
            table.prefetch_descriptor(id.offset(), self.pin);
            count += 1;
            only = (count == 1).then_some((number, table));
            true
        });
        Some(FoundVertex { tablet, page, only, is_empty: count == 0 })
    }

    /// Calls `each` with the tables of the request until it returns false. Returns true if it never did.
    #[inline]
    fn each_found(&self, found: &FoundVertex<'a>, mut each: impl FnMut(u32, &'a AdjacencyTable) -> bool) -> bool {
        match found.only {
            Some((number, table)) => each(number, table),
            None if found.is_empty => true,
            None => each_table(found.page, self.request.direction, &self.request.labels, each),
        }
    }

    #[inline]
    fn prefetch_lists(&self, id: VertexId, found: Option<FoundVertex<'a>>) {
        if let Some(found) = found {
            self.each_found(&found, |_, table| {
                table.prefetch_list(id.offset(), self.request.edges, &found.tablet.lists, self.pin);
                true
            });
        }
    }

    /// Copies the lists of one vertex from the cursor on. Returns false if the limit was reached first.
    #[inline]
    fn expand_one(
        &self,
        id: VertexId,
        found: &FoundVertex<'a>,
        cursor: &mut ExpandCursor,
        out: &mut Expansion,
    ) -> bool {
        self.each_found(found, |number, table| {
            if number < cursor.list {
                return true;
            }
            if number > cursor.list {
                (cursor.list, cursor.position) = (number, 0);
            }
            let lists = &found.tablet.lists;
            let list = match cursor.position {
                0 if table.descriptor(id.offset(), self.pin) == 0 => return true,
                0 => table.list(id.offset(), lists, self.pin),
                position => {
                    let version = (position >> LAYOUT_SHIFT) as u32;
                    let Some(list) = table.list_of_layout(id.offset(), version, lists, self.pin) else { return true };
                    list
                }
            };
            // GRAPH-2: the visibility of the edge decides, so the neighbor is not read. GRAPH-4: the layout version
            // keeps the order.
            let (done, position) = self.copy(&list, cursor.row, cursor.position & POSITION_MASK, out);
            cursor.position = (u64::from(list.layout_version) << LAYOUT_SHIFT) | position;
            done
        })
    }

    /// Copies a list from a position on. Returns true if the list is done, and the position reached.
    fn copy(&self, list: &List<'_>, row: u32, position: u64, out: &mut Expansion) -> (bool, u64) {
        let (done, position) = if list.suspects.is_some() {
            self.copy_dirty(list, row, position, out)
        } else {
            self.copy_clean(list, row, position, out)
        };
        if done && list.tail_len > 0 { self.copy_tail(list, row, position, out) } else { (done, position) }
    }

    fn is_full(&self, out: &Expansion) -> bool {
        out.len() >= self.request.limit
    }

    /// As [`Expander::copy`], for the run of a clean list.
    #[inline]
    fn copy_clean(&self, list: &List<'_>, row: u32, position: u64, out: &mut Expansion) -> (bool, u64) {
        let from = position as usize;
        if from >= list.neighbors.len() {
            return (true, position);
        }
        let room = self.request.limit.saturating_sub(out.len()).max(1);
        let to = list.neighbors.len().min(from.saturating_add(room));
        out.neighbor.extend_from_slice(&list.neighbors[from..to]);
        out.row.resize(out.neighbor.len(), row);
        if self.request.edges {
            out.edge.extend_from_slice(&list.edges[from..to]);
        }
        (to == list.neighbors.len(), to as u64)
    }

    fn copy_dirty(&self, list: &List<'_>, row: u32, position: u64, out: &mut Expansion) -> (bool, u64) {
        let from = (position as usize).min(list.neighbors.len());
        match self.copy_visible(list.packed(from), row, out) {
            Some(number) => (false, position + number + 1),
            None => (true, position.max(list.neighbors.len() as u64)),
        }
    }

    fn copy_tail(&self, list: &List<'_>, row: u32, position: u64, out: &mut Expansion) -> (bool, u64) {
        let packed = list.neighbors.len() as u64;
        match self.copy_visible(list.checked_tail(position - packed), row, out) {
            Some(number) => (false, position + number + 1),
            None => (true, packed + list.tail_len),
        }
    }

    /// Copies the cells whose edges are visible. If the limit was reached, returns the number of the last cell copied.
    fn copy_visible(
        &self,
        cells: impl Iterator<Item = (VertexId, EdgeId, bool)>,
        row: u32,
        out: &mut Expansion,
    ) -> Option<u64> {
        let mut last = None;
        self.view.each_visible(self.pin, cells, |number, neighbor, edge| {
            out.row.push(row);
            out.neighbor.push(neighbor);
            if self.request.edges {
                out.edge.push(edge);
            }
            last = self.is_full(out).then_some(number);
            last.is_none()
        });
        last
    }
}

impl StoreView<'_> {
    /// The number of visible edges in a list.
    pub(super) fn count_list(&self, pin: &Pin, list: &List<'_>) -> u64 {
        let mut suspects: SmallVec<[(VertexId, EdgeId, bool); 16]> = SmallVec::new();
        list.suspects.each(|at| suspects.push((list.neighbors[at], list.edges[at], true)));
        let others = (list.neighbors.len() - suspects.len()) as u64;
        others + self.count_visible(pin, suspects.into_iter().chain(list.checked_tail(0)))
    }
}

/// See [`mangrove_graph::GraphView::degrees`].
pub(crate) fn degrees(
    view: &StoreView<'_>,
    vertices: &[VertexId],
    direction: Direction,
    labels: &LabelFilter,
    out: &mut Vec<u64>,
) {
    let pin = &epoch::pin();
    let mut row = 0;
    while row < vertices.len() {
        let together = same_page(&vertices[row..]);
        if together >= TOGETHER_MIN
            && let Some((tablet, page)) = view.store.vertex_page_unchecked(vertices[row])
            && page.core.is_first_generation()
        {
            let degrees = PageDegrees { view, tablet, page, pin };
            degrees.add(&vertices[row..row + together], direction, labels, out);
            row += together;
            continue;
        }
        for row in row..row + together {
            if let Some(&ahead) = vertices.get(row + 2 * DISTANCE)
                && let Some((_, page)) = view.store.vertex_page_unchecked(ahead)
            {
                each_table(page, direction, labels, |_, table| {
                    table.prefetch_descriptor(ahead.offset(), pin);
                    true
                });
            }
            out.push(degree(view, vertices[row], direction, labels, pin));
        }
        row += together;
    }
}

/// Vertices of one page that follow each other share the search for page and tables, if there are at least so many.
const TOGETHER_MIN: usize = 4;

/// Returns how many vertices at the beginning lie on one page.
fn same_page(vertices: &[VertexId]) -> usize {
    let page = |id: &VertexId| id.to_bits() / PAGE_SLOTS;
    let Some(first) = vertices.first().map(page) else { return 0 };
    vertices.iter().take_while(|id| page(id) == first).count()
}

/// The degrees of the vertices of one page.
struct PageDegrees<'a> {
    view: &'a StoreView<'a>,
    tablet: &'a Tablet,
    page: &'a VertexPage,
    pin: &'a Pin,
}

impl PageDegrees<'_> {
    /// Appends the degrees of these vertices, one table after the other.
    fn add(&self, vertices: &[VertexId], direction: Direction, labels: &LabelFilter, out: &mut Vec<u64>) {
        let start = out.len();
        out.resize(start + vertices.len(), 0);
        let sums = &mut out[start..];
        each_table(self.page, direction, labels, |_, table| {
            let offsets = vertices.iter().map(|id| id.offset());
            let list = |descriptor| table.list_of(descriptor, &self.tablet.lists, self.pin);
            table.each_descriptor(offsets, self.pin, |row, descriptor| {
                sums[row] += match clean_run_len(descriptor) {
                    Some(len) => len as u64,
                    None => self.view.count_list(self.pin, &list(descriptor)),
                };
            });
            true
        });
    }
}

fn degree(view: &StoreView<'_>, id: VertexId, direction: Direction, labels: &LabelFilter, pin: &Pin) -> u64 {
    let Some((tablet, page)) = view.store.vertex_page_unchecked(id) else { return 0 };
    let mut sum = 0;
    each_table(page, direction, labels, |_, table| {
        sum += match table.clean_len(id.offset(), pin) {
            Some(len) => len as u64,
            None => view.count_list(pin, &table.list(id.offset(), &tablet.lists, pin)),
        };
        true
    });
    sum
}
