//! What a page is called: tablet, kind and number.

use mangrove_graph::{ElementKind, TabletId};

/// Which page.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct PageName {
    /// The tablet it is in.
    pub tablet: TabletId,
    /// What is on it: vertices and edges are numbered apart.
    pub kind: ElementKind,
    /// Its number.
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
