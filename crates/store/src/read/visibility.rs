//! The visibility of the edges of a list to a snapshot, many edges at a time.
//!
//! A cell of a tail or a suspect of a dirty run (STORE-15) names an edge, and the edge's version words decide. They are three steps away:
//! page, array of words, word. In a large graph each step is a cache miss, and the edges of one list lie anywhere. So
//! this module takes each step for a batch of cells before the next step, and the misses overlap.
//!
//! `version` decides whether a snapshot sees a version; here is only the order of the look-ups. Callers hold a
//! pin and pass cells of a list that they found under it.

use mangrove_graph::{EdgeId, VertexId};
use mangrove_reclaim::Pin;
use smallvec::SmallVec;

use crate::page::PageCore;
use crate::read::view::StoreView;

/// How many cells are looked up together: about as many misses as a processor core keeps in flight.
const TOGETHER: usize = 16;

/// A cell, and the page of its edge if the cell must be checked.
struct Cell<'a> {
    neighbor: VertexId,
    edge: EdgeId,
    core: Option<&'a PageCore>,
}

impl Cell<'_> {
    fn is_seen(&self, view: &StoreView<'_>, pin: &Pin) -> bool {
        self.core.is_none_or(|core| core.visible_under(pin, self.edge.offset(), &view.snapshot))
    }
}

impl StoreView<'_> {
    /// Returns true if the snapshot sees the edge of a cell, in a list that was found under the pin.
    #[inline]
    pub(crate) fn sees_edge(&self, pin: &Pin, edge: EdgeId) -> bool {
        self.store.edge_of_cell(edge).visible_under(pin, edge.offset(), &self.snapshot)
    }

    /// Calls `each` with number, neighbor and edge of the cells whose edges are visible, until it returns false. Each cell comes
    /// with the answer whether it must be checked.
    #[inline]
    pub(crate) fn each_visible(
        &self,
        pin: &Pin,
        mut cells: impl Iterator<Item = (VertexId, EdgeId, bool)>,
        mut each: impl FnMut(u64, VertexId, EdgeId) -> bool,
    ) {
        let mut batch: SmallVec<[Cell<'_>; TOGETHER]> = SmallVec::new();
        let mut number = 0;
        loop {
            batch.clear();
            for (neighbor, edge, is_checked) in cells.by_ref().take(TOGETHER) {
                let core = is_checked.then(|| self.store.edge_of_cell(edge));
                if let Some(core) = core {
                    core.prefetch();
                }
                batch.push(Cell { neighbor, edge, core });
            }
            if batch.is_empty() {
                return;
            }
            for cell in &batch {
                if let Some(core) = cell.core {
                    core.prefetch_version_words(pin, cell.edge.offset());
                }
            }
            for cell in &batch {
                if cell.is_seen(self, pin) && !each(number, cell.neighbor, cell.edge) {
                    return;
                }
                number += 1;
            }
        }
    }

    /// How many of these edges are visible.
    pub(crate) fn count_visible(&self, pin: &Pin, cells: impl Iterator<Item = (VertexId, EdgeId, bool)>) -> u64 {
        let mut count = 0;
        self.each_visible(pin, cells, |_, _, _| {
            count += 1;
            true
        });
        count
    }
}
