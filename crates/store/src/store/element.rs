//! Vertices and edges alike: what batched reads need to know of an element's id.

use mangrove_graph::{EdgeId, ElementId, PAGE_SLOTS, VertexId};

use crate::index::IdIndex;
use crate::page::{PageCore, Tablet};
use crate::store::Store;

/// An element's id: the bits that name its page, and its place there.
pub(crate) trait Element: Copy {
    fn bits(self) -> u64;
    fn from_bits(bits: u64) -> Self;
    fn from_external(number: i64) -> Self;
    fn reference(self) -> ElementId;

    /// The index of the ids that users chose for elements of the kind.
    fn ids(store: &Store) -> &IdIndex;

    /// The page that the id names and its tablet, whether or not the page has such a slot, and whoever is in it by now.
    fn page_of(self, store: &Store) -> Option<(&Tablet, &PageCore)>;

    /// What ids of one page and one generation have in common.
    #[inline]
    fn page(self) -> u64 {
        self.bits() / PAGE_SLOTS
    }

    /// How many elements had the place before.
    #[inline]
    fn generation(self) -> u16 {
        VertexId::from_bits(self.bits()).generation()
    }

    /// The place on the page.
    #[inline]
    fn at(self) -> usize {
        (self.bits() % PAGE_SLOTS) as usize
    }
}

macro_rules! element {
    ($id:ident, $reference:ident, $ids:ident, $pages:ident) => {
        impl Element for $id {
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
