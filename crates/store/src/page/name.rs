//! The name of a page, and the position of a slot on it.

use mangrove_graph::{ElementId, ElementKind, TabletId, VertexId};

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

/// The slot of an element, and the element's generation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlotPosition {
    pub(crate) page: PageName,
    pub(crate) offset: usize,
    pub(crate) generation: u16,
}

impl SlotPosition {
    pub(crate) fn of(element: ElementId) -> Self {
        let (kind, id) = match element {
            ElementId::Vertex(id) => (ElementKind::Vertex, id),
            // Ids of both kinds have the same bits.
            ElementId::Edge(id) => (ElementKind::Edge, VertexId::from_bits(id.to_bits())),
        };
        let page = PageName { tablet: id.tablet(), kind, number: id.page() as u32 };
        SlotPosition { page, offset: id.offset(), generation: id.generation() }
    }
}

impl std::fmt::Display for SlotPosition {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "slot {}, generation {}", self.offset, self.generation)
    }
}
