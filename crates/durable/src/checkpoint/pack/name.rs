//! Names of blocks.

use std::fmt;

use mangrove_graph::{ElementKind, TabletId};
use mangrove_store::image::PageName;

use crate::manifest::{KIND_CATALOG, KIND_EDGES, KIND_STATISTICS, KIND_TOPOLOGY, KIND_TOPOLOGY_DELTA, KIND_VERTICES};
use crate::open::runs::{KIND_HASHED, KIND_ORDERED, LookUpIndex, describe};

/// The name of a block: its kind, and of what it is. Names are ordered as in the directory of a pack.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) struct BlockName {
    pub(crate) kind: u8,
    /// The tablet; 0 for blocks of the graph.
    pub(crate) tablet: u16,
    pub(crate) number: u32,
}

impl BlockName {
    /// The block with names, indexes and rules.
    pub(crate) const CATALOG: BlockName = BlockName { kind: KIND_CATALOG, tablet: 0, number: 0 };

    /// The block with the counts of the graph.
    pub(crate) const STATISTICS: BlockName = BlockName { kind: KIND_STATISTICS, tablet: 0, number: 0 };

    /// The block with the image of a page.
    pub(crate) fn of_page(page: PageName) -> Self {
        let kind = match page.kind {
            ElementKind::Vertex => KIND_VERTICES,
            ElementKind::Edge => KIND_EDGES,
        };
        BlockName { kind, tablet: page.tablet.0, number: page.number }
    }

    /// The block with the topology of a page of vertices.
    pub(crate) fn of_topology(page: PageName) -> Self {
        debug_assert_eq!(page.kind, ElementKind::Vertex, "{page} has lists");
        BlockName { kind: KIND_TOPOLOGY, tablet: page.tablet.0, number: page.number }
    }

    /// The block with the delta of the topology of a page of vertices.
    pub(crate) fn of_delta(page: PageName) -> Self {
        BlockName { kind: KIND_TOPOLOGY_DELTA, ..BlockName::of_topology(page) }
    }

    /// The block with a run of a look-up index.
    pub(crate) fn of_run(index: &LookUpIndex) -> Self {
        BlockName { kind: index.kind(), tablet: 0, number: index.number }
    }

    /// Returns true if the block is a run of a look-up index.
    pub(crate) fn is_run(self) -> bool {
        matches!(self.kind, KIND_HASHED | KIND_ORDERED)
    }

    /// The page of vertices whose topology the block is, if it is one.
    pub(crate) fn topology_page(self) -> Option<PageName> {
        (self.kind == KIND_TOPOLOGY).then(|| self.vertex_page())
    }

    /// The page of vertices of whose topology the block is a delta, if it is one.
    pub(crate) fn delta_page(self) -> Option<PageName> {
        (self.kind == KIND_TOPOLOGY_DELTA).then(|| self.vertex_page())
    }

    fn vertex_page(self) -> PageName {
        PageName { tablet: TabletId(self.tablet), kind: ElementKind::Vertex, number: self.number }
    }

    /// The page whose image the block is, if it is one.
    pub(crate) fn page(self) -> Option<PageName> {
        let kind = match self.kind {
            KIND_VERTICES => ElementKind::Vertex,
            KIND_EDGES => ElementKind::Edge,
            _ => return None,
        };
        Some(PageName { tablet: TabletId(self.tablet), kind, number: self.number })
    }

    /// Returns true if a reader that does not know the kind may skip the block (LOG-27).
    pub(super) fn may_be_skipped(self) -> bool {
        matches!(self.kind, 3 | 4 | 5 | 7 | 8)
    }
}

impl fmt::Display for BlockName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.page() {
            Some(page) => write!(f, "the image of {page}"),
            None if self.kind == KIND_CATALOG => f.write_str("the catalog"),
            None if self.kind == KIND_TOPOLOGY => {
                write!(f, "the topology of page {} of vertices in tablet {}", self.number, self.tablet)
            }
            None if self.kind == KIND_TOPOLOGY_DELTA => {
                write!(f, "the delta of the topology of page {} of vertices in tablet {}", self.number, self.tablet)
            }
            None if self.kind == KIND_STATISTICS => f.write_str("the counts of the graph"),
            None if self.is_run() => write!(f, "a run of the look-up index of {}", describe(self.number)),
            None => write!(f, "block {} of kind {} of tablet {}", self.number, self.kind, self.tablet),
        }
    }
}
