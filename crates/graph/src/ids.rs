//! Internal ids: how the engine names elements, labels, keys and indexes.
//!
//! Inside the engine everything is named by an integer. A vertex or an edge is named by 64 bits:
//!
//! ```text
//! tablet 16 | generation 10 | slot index 38      generation and slot index together are the slot, 48 bits
//! ```
//!
//! The tablet says which share of the graph holds the element; an edge is in the tablet of its source vertex. The slot
//! index says where in the tablet the records of the element are: on which page, and at which offset of the page. After
//! a delete, once no snapshot sees the element, another element may get its slot index, under the next *generation*.
//! After the last generation the slot index stays unused. So an id never names a second element: the id of a deleted
//! element names nothing.
//!
//! A client that did not choose an id for an element sees its *external number*: the same 64 bits in another order,
//! plus 65,536. Files contain internal ids, and clients keep external numbers, so both layouts are fixed.
//!
//! ```text
//! high slot index 11 | generation 10 | low slot index 27 | tablet 16
//! ```
//!
//! Small graphs get small numbers. A client language that keeps integers in a double (JavaScript: 53 bits) reads the
//! numbers exactly for the first 2^27 slot indexes of a tablet, whatever their generation.

use std::fmt;

const SLOT_BITS: u32 = 48;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
/// The position in a slot at which the bits of the generation begin.
pub const GENERATION_SHIFT: u32 = 38;
const INDEX_BITS: u32 = GENERATION_SHIFT;
const INDEX_MASK: u64 = (1 << INDEX_BITS) - 1;
/// The largest generation of a slot.
pub const GENERATION_MAX: u16 = (1 << (SLOT_BITS - INDEX_BITS)) - 1;
/// The bits of the slot index that lie below the generation in external numbers.
const LOW_INDEX_BITS: u32 = 27;
const LOW_INDEX_MASK: u64 = (1 << LOW_INDEX_BITS) - 1;
/// Added to external numbers, so that the numbers of the first slots are not the small ones that clients choose
/// themselves.
const EXTERNAL_BASE: u64 = 1 << 16;
/// The most slots of a page. A tablet lays out vertices and edges in pages.
pub const PAGE_SLOTS: u64 = 1024;

/// A slot as external numbers contain it: the generation lies between the high and the low bits of the slot index.
#[inline]
fn shuffle_slot(slot: u64) -> u64 {
    let (generation, index) = (slot >> INDEX_BITS, slot & INDEX_MASK);
    let high = (index >> LOW_INDEX_BITS) << (LOW_INDEX_BITS + SLOT_BITS - INDEX_BITS);
    high | (generation << LOW_INDEX_BITS) | (index & LOW_INDEX_MASK)
}

/// The inverse of [`shuffle_slot`].
#[inline]
fn unshuffle_slot(shuffled: u64) -> u64 {
    let generation = (shuffled >> LOW_INDEX_BITS) & u64::from(GENERATION_MAX);
    let high = (shuffled >> (LOW_INDEX_BITS + SLOT_BITS - INDEX_BITS)) << LOW_INDEX_BITS;
    (generation << INDEX_BITS) | high | (shuffled & LOW_INDEX_MASK)
}

/// The number of a tablet, which is a share of the graph.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TabletId(pub u16);

macro_rules! element_id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// The id of a slot in a tablet. Panics if `slot` needs more than 48 bits. Only the store makes slots, so
            /// such a slot is a bug and not the fault of a request.
            #[inline]
            pub fn new(tablet: TabletId, slot: u64) -> Self {
                assert!(slot <= SLOT_MASK, "slot {slot} needs more than 48 bits");
                Self((u64::from(tablet.0) << SLOT_BITS) | slot)
            }

            /// The tablet that holds the element.
            #[inline]
            pub fn tablet(self) -> TabletId { TabletId((self.0 >> SLOT_BITS) as u16) }

            /// The slot inside the tablet: generation and slot index.
            #[inline]
            pub fn slot(self) -> u64 { self.0 & SLOT_MASK }

            /// The number of elements that had the slot index before this one.
            #[inline]
            pub fn generation(self) -> u16 { (self.slot() >> INDEX_BITS) as u16 }

            /// The same slot index in another generation. Panics above [`GENERATION_MAX`].
            #[inline]
            pub fn with_generation(self, generation: u16) -> Self {
                assert!(generation <= GENERATION_MAX, "generation {generation} needs more than 10 bits");
                Self((self.0 & !(SLOT_MASK ^ INDEX_MASK)) | (u64::from(generation) << INDEX_BITS))
            }

            /// The number of the page: slot index divided by [`PAGE_SLOTS`].
            #[inline]
            pub fn page(self) -> usize { ((self.0 & INDEX_MASK) / PAGE_SLOTS) as usize }

            /// The offset inside the page: slot index modulo [`PAGE_SLOTS`].
            #[inline]
            pub fn offset(self) -> usize { (self.0 % PAGE_SLOTS) as usize }

            /// The 64 bits of the id.
            #[inline]
            pub fn to_bits(self) -> u64 { self.0 }

            /// The id with these bits. It need not name an element: the store decides that.
            #[inline]
            pub fn from_bits(bits: u64) -> Self { Self(bits) }

            /// The external number, which clients see if they did not choose an id.
            #[inline]
            pub fn external(self) -> i64 {
                let bits = (shuffle_slot(self.slot()) << (64 - SLOT_BITS)) | u64::from(self.tablet().0);
                bits.wrapping_add(EXTERNAL_BASE) as i64
            }

            /// The id with an external number. Every number belongs to an id, which need not name an element.
            #[inline]
            pub fn from_external(external: i64) -> Self {
                let bits = (external as u64).wrapping_sub(EXTERNAL_BASE);
                Self((bits << SLOT_BITS) | unshuffle_slot(bits >> (64 - SLOT_BITS)))
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!($letter, "[{}:{}]"), self.tablet().0, self.slot())
            }
        }
    };
}

element_id! {
    /// The internal id of a vertex.
    VertexId, "v"
}
element_id! {
    /// The internal id of an edge.
    EdgeId, "e"
}

/// Vertices or edges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum ElementKind {
    /// Vertices.
    #[default]
    Vertex,
    /// Edges.
    Edge,
}

impl ElementKind {
    /// `vertex` or `edge`, as messages say it.
    pub fn name(self) -> &'static str {
        match self {
            ElementKind::Vertex => "vertex",
            ElementKind::Edge => "edge",
        }
    }

    /// `vertices` or `edges`.
    pub fn plural(self) -> &'static str {
        match self {
            ElementKind::Vertex => "vertices",
            ElementKind::Edge => "edges",
        }
    }

    /// `a vertex` or `an edge`.
    pub fn with_article(self) -> &'static str {
        match self {
            ElementKind::Vertex => "a vertex",
            ElementKind::Edge => "an edge",
        }
    }
}

/// The internal id of a vertex or of an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ElementId {
    /// A vertex.
    Vertex(VertexId),
    /// An edge.
    Edge(EdgeId),
}

impl ElementId {
    /// The element of a kind that has these bits as its id.
    #[inline]
    pub fn from_bits(kind: ElementKind, bits: u64) -> Self {
        match kind {
            ElementKind::Vertex => ElementId::Vertex(VertexId::from_bits(bits)),
            ElementKind::Edge => ElementId::Edge(EdgeId::from_bits(bits)),
        }
    }

    /// Whether the element is a vertex or an edge.
    #[inline]
    pub fn kind(self) -> ElementKind {
        match self {
            ElementId::Vertex(_) => ElementKind::Vertex,
            ElementId::Edge(_) => ElementKind::Edge,
        }
    }

    /// The 64 bits of the id. Vertices and edges are numbered apart: the same bits may name a vertex and an edge.
    #[inline]
    pub fn to_bits(self) -> u64 {
        match self {
            ElementId::Vertex(id) => id.to_bits(),
            ElementId::Edge(id) => id.to_bits(),
        }
    }
}

/// An interned label name.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelId(pub u32);

/// An interned set of labels. A vertex has one (Gremlin writes a set of two `a::b`), and so has an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelSetId(pub u32);

/// An interned property key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyId(pub u32);

/// The number of a property index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndexId(pub u32);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_round_trip_and_external_numbers_stay_small() {
        let id = VertexId::new(TabletId(3), 1025);
        assert_eq!((id.tablet().0, id.slot(), id.page(), id.offset()), (3, 1025, 1, 1));
        assert_eq!(VertexId::from_bits(id.to_bits()), id);
        assert_eq!(id.external(), 1026 * 65536 + 3);
        assert_eq!(VertexId::from_external(id.external()), id);
    }

    #[test]
    fn every_generation_of_a_slot_index_is_an_id_of_its_own_that_a_double_keeps() {
        for index in [0, 1, 1_024, (1 << 27) - 2] {
            let first = EdgeId::new(TabletId(64), index);
            for generation in [0, 1, 2, GENERATION_MAX] {
                let id = first.with_generation(generation);
                assert_eq!((id.tablet(), id.page(), id.offset()), (first.tablet(), first.page(), first.offset()));
                assert_eq!((id.generation(), id == first), (generation, generation == 0));
                assert_eq!(EdgeId::from_external(id.external()), id);
                assert!(id.external() as u64 <= 1 << 53, "{id:?} is {}", id.external());
            }
        }
        for bits in [0, 1, u64::MAX, 1 << 63, 0x0123_4567_89ab_cdef, 0xfedc_ba98_7654_3210] {
            assert_eq!(EdgeId::from_external(EdgeId::from_bits(bits).external()).to_bits(), bits);
        }
    }
}
