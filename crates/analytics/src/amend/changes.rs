//! What commits have changed in a graph, by the pages of a projection.

use mangrove_graph::{Direction, EdgeChange, EdgeChangeKind, EdgeId, GraphChanges, GraphView, Result, VertexId};

use super::{CELLS_A_CHANGE, CHANGES_MIN};
use crate::choice::ProjectionOptions;
use crate::numbering::Numbering;

/// What a commit has done to an edge in a list of a page. An edge is in two lists: among the outgoing edges of one vertex, and among the incoming
/// ones of another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct ListChange {
    /// The slot, in its page, of the vertex whose list it is.
    pub(super) slot: u16,
    /// Whether it is the list of outgoing or of incoming edges; not `Both`.
    pub(super) direction: Direction,
    /// The other end of the edge.
    pub(super) neighbor: VertexId,
    pub(super) edge: EdgeId,
    pub(super) kind: EdgeChangeKind,
}

/// The changes of the lists of all pages that a numbering has.
#[derive(Debug)]
pub(crate) struct PageChanges {
    /// By the ordinals of their pages.
    changes: Vec<ListChange>,
    /// By ordinal, where the changes of a page end.
    ends: Vec<usize>,
    /// By ordinal, whether the page is to be read again: vertices came or left.
    is_read: Vec<bool>,
}

impl PageChanges {
    /// What has changed between the commit `since` and a view, for a projection with so many cells. `None` if the view does not know.
    pub(crate) fn since(
        view: &dyn GraphView,
        since: u64,
        (options, cells): (&ProjectionOptions, usize),
        numbering: &Numbering,
    ) -> Result<Option<Self>> {
        // As many as all pages together take at most. An edge changes two lists.
        let most = (cells / CELLS_A_CHANGE + CHANGES_MIN * numbering.page_count()) / 2;
        let mut found = GraphChanges::default();
        let is_known = view.changes_since(since, options.weight.is_some(), most, &mut found)?;
        Ok(is_known.then(|| PageChanges::of(&found, numbering)))
    }

    /// Sorts changes by page. Those of other pages are left out.
    fn of(found: &GraphChanges, numbering: &Numbering) -> Self {
        let mut lists = Vec::with_capacity(2 * found.edges.len());
        let mut ends = vec![0; numbering.page_count()];
        for change in &found.edges {
            let EdgeChange { edge, source, target, kind } = *change;
            for (vertex, neighbor, direction) in [(source, target, Direction::Out), (target, source, Direction::In)] {
                if let Some(ordinal) = numbering.ordinal(vertex) {
                    ends[ordinal] += 1;
                    let slot = vertex.offset() as u16;
                    lists.push((ordinal, ListChange { slot, direction, neighbor, edge, kind }));
                }
            }
        }
        let mut end = 0;
        for count in &mut ends {
            end += *count;
            // Where the changes of the page begin. When all of them have their places, it is where they end.
            *count = end - *count;
        }
        let mut order = vec![0; lists.len()];
        for (at, (ordinal, _)) in lists.iter().enumerate() {
            order[ends[*ordinal]] = at;
            ends[*ordinal] += 1;
        }
        let changes = order.into_iter().map(|at| lists[at].1).collect();
        let mut is_read = vec![false; ends.len()];
        for ordinal in found.vertices.iter().filter_map(|vertex| numbering.ordinal(*vertex)) {
            is_read[ordinal] = true;
        }
        PageChanges { changes, ends, is_read }
    }

    /// The changes of the lists of a page; `None` if the page is to be read.
    pub(crate) fn of_page(&self, ordinal: usize) -> Option<&[ListChange]> {
        let begin = if ordinal == 0 { 0 } else { self.ends[ordinal - 1] };
        (!self.is_read[ordinal]).then(|| &self.changes[begin..self.ends[ordinal]])
    }
}

#[cfg(all(test, not(feature = "model")))]
mod tests {
    use mangrove_graph::{LabelSetId, ScanCursor, TabletId, VertexPage};

    use super::*;

    #[test]
    fn changes_are_sorted_by_the_pages_of_their_vertices() {
        let vertex = |page: u64, slot: u64| VertexId::new(TabletId(1), page * 1_024 + slot);
        let page = |number| VertexPage {
            first: vertex(number, 0),
            pages: ScanCursor::default(),
            changed: None,
            edges_written: None,
        };
        // The page with number 2 has no ordinal, and that with number 1 the last one.
        let numbering = Numbering::of_pages(None, &[page(0), page(3), page(1)]).unwrap();
        let edge = |n, source, target| EdgeChange {
            edge: EdgeId::new(TabletId(1), n),
            source,
            target,
            kind: EdgeChangeKind::Added(LabelSetId(0)),
        };
        let edges = vec![
            edge(1, vertex(0, 5), vertex(1, 6)),
            edge(2, vertex(2, 7), vertex(0, 8)),
            edge(3, vertex(1, 9), vertex(1, 10)),
            edge(4, vertex(2, 11), vertex(2, 12)),
        ];
        let found = GraphChanges { edges, vertices: vec![vertex(3, 1), vertex(2, 1)] };
        let changes = PageChanges::of(&found, &numbering);
        let of_page = |ordinal| {
            let of_change = |change: &ListChange| (change.edge.slot(), change.slot, change.direction, change.neighbor);
            changes.of_page(ordinal).map(|changes| changes.iter().map(of_change).collect::<Vec<_>>())
        };
        let (out, into) = (Direction::Out, Direction::In);
        assert_eq!(of_page(0), Some(vec![(1, 5, out, vertex(1, 6)), (2, 8, into, vertex(2, 7))]));
        assert_eq!(of_page(1), None, "vertices came or left");
        let last = [(1, 6, into, vertex(0, 5)), (3, 9, out, vertex(1, 10)), (3, 10, into, vertex(1, 9))];
        assert_eq!(of_page(2), Some(last.to_vec()));
    }
}
