//! Ids of vertices and edges behind one trait, for batched reads.

use mangrove_graph::{EdgeId, ElementId, ElementKind, PAGE_SLOTS, TabletId, VertexId};

use crate::index::IdIndex;
use crate::page::{PageCore, Tablet};
use crate::store::Store;

/// The id of a vertex or of an edge.
pub(crate) trait Element: Copy {
    /// Whether it is the id of a vertex or of an edge.
    const KIND: ElementKind;

    /// The bits of the internal id.
    fn bits(self) -> u64;
    /// The inverse of [`Element::bits`].
    fn from_bits(bits: u64) -> Self;
    /// The id of an external number.
    fn from_external(number: i64) -> Self;
    /// The id with its kind.
    fn reference(self) -> ElementId;

    /// The index of the chosen ids of this kind.
    fn ids(store: &Store) -> &IdIndex;

    /// The page of the id, and its tablet. The page need not have the slot, and another element may have it.
    fn page_of(self, store: &Store) -> Option<(&Tablet, &PageCore)>;

    /// The tablet that holds the element.
    #[inline]
    fn tablet(self) -> TabletId {
        VertexId::from_bits(self.bits()).tablet()
    }

    /// A number that ids of one page and one generation have in common, and no others.
    #[inline]
    fn page(self) -> u64 {
        self.bits() / PAGE_SLOTS
    }

    /// How many elements had the slot before.
    #[inline]
    fn generation(self) -> u16 {
        VertexId::from_bits(self.bits()).generation()
    }

    /// The offset of the slot on the page.
    #[inline]
    fn at(self) -> usize {
        (self.bits() % PAGE_SLOTS) as usize
    }
}

macro_rules! element {
    ($id:ident, $reference:ident, $ids:ident, $pages:ident) => {
        impl Element for $id {
            const KIND: ElementKind = ElementKind::$reference;

            #[inline]
            fn bits(self) -> u64 {
                self.to_bits()
            }

            #[inline]
            fn from_bits(bits: u64) -> Self {
                $id::from_bits(bits)
            }

            #[inline]
            fn from_external(number: i64) -> Self {
                $id::from_external(number)
            }

            #[inline]
            fn reference(self) -> ElementId {
                ElementId::$reference(self)
            }

            #[inline]
            fn ids(store: &Store) -> &IdIndex {
                &store.$ids
            }

            #[inline]
            fn page_of(self, store: &Store) -> Option<(&Tablet, &PageCore)> {
                let tablet = store.tablet(self.tablet())?;
                tablet.$pages.get($id::page(self)).map(|page| (tablet, &page.core))
            }
        }
    };
}

element!(VertexId, Vertex, vertex_ids, vertices);
element!(EdgeId, Edge, edge_ids, edges);
