//! The name of a page: tablet, kind and number.

use mangrove_graph::{ElementKind, TabletId};

/// The name of a page in a store. It never changes (STORE-34).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageName {
    /// The tablet that the page is in.
    pub tablet: TabletId,
    /// The kind of its elements. Pages of vertices and pages of edges are numbered apart.
    pub kind: ElementKind,
    /// The number of the page, from 0.
    pub number: u32,
}

impl std::fmt::Display for PageName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let kind = match self.kind {
            ElementKind::Vertex => "vertices",
            ElementKind::Edge => "edges",
        };
        write!(f, "page {} of {kind} in tablet {}", self.number, self.tablet.0)
    }
}
