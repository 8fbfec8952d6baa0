//! Identifiers.
//!
//! Inside the engine everything is an integer. A vertex or an edge is named by 64 bits:
//!
//! ```text
//! tablet 16 | generation 10 | place 38        generation and place together: the slot, 48 bits
//! ```
//!
//! The tablet says where the element lives (which node serves it, which executor prefers it); an edge lives
//! in the tablet of its source vertex. The place is where its records lie: a page and an offset in it. When
//! an element is gone for everybody, another one may get its place, under the next *generation*: so no id is
//! ever given twice, and one that somebody kept from before names nothing any more.
//!
//! Users see another number, the *external* form, for elements whose id they did not choose: the same 64
//! bits in another order, from 65,536 up:
//!
//! ```text
//! high place 11 | generation 10 | low place 27 | tablet 16
//! ```
//!
//! Small graphs get small numbers, and every client language that keeps integers in a double (JavaScript:
//! 53 bits) reads them exactly for the first 2^27 places a tablet, whatever their generation.

use std::fmt;

use smol_str::SmolStr;
use uuid::Uuid;

use crate::value::Value;

const SLOT_BITS: u32 = 48;
const SLOT_MASK: u64 = (1 << SLOT_BITS) - 1;
/// Where the generation begins in a slot.
pub const GENERATION_SHIFT: u32 = 38;
const PLACE_BITS: u32 = GENERATION_SHIFT;
const PLACE_MASK: u64 = (1 << PLACE_BITS) - 1;
/// The largest generation of a slot.
pub const GENERATION_MAX: u16 = (1 << (SLOT_BITS - PLACE_BITS)) - 1;
/// Bits of the place that lie below the generation in external numbers.
const LOW_PLACE_BITS: u32 = 27;
const LOW_PLACE_MASK: u64 = (1 << LOW_PLACE_BITS) - 1;
/// Added to external numbers, so that those of the first slots are not the small numbers that users like to
/// choose themselves.
const EXTERNAL_BASE: u64 = 1 << 16;
/// Slots of one page: the unit in which a tablet lays out vertices and edges (see `store`).
pub const PAGE_SLOTS: u64 = 1024;

/// A slot as external numbers have it: the generation between the low and the high bits of the place.
#[inline]
fn shuffle_slot(slot: u64) -> u64 {
    let (generation, place) = (slot >> PLACE_BITS, slot & PLACE_MASK);
    let high = (place >> LOW_PLACE_BITS) << (LOW_PLACE_BITS + SLOT_BITS - PLACE_BITS);
    high | (generation << LOW_PLACE_BITS) | (place & LOW_PLACE_MASK)
}

/// The other way round.
#[inline]
fn unshuffle_slot(shuffled: u64) -> u64 {
    let generation = (shuffled >> LOW_PLACE_BITS) & u64::from(GENERATION_MAX);
    let high = (shuffled >> (LOW_PLACE_BITS + SLOT_BITS - PLACE_BITS)) << LOW_PLACE_BITS;
    (generation << PLACE_BITS) | high | (shuffled & LOW_PLACE_MASK)
}

/// Which share of the graph an element lives in.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct TabletId(pub u16);

macro_rules! element_id {
    ($(#[$doc:meta])* $name:ident, $letter:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(transparent)]
        pub struct $name(u64);

        impl $name {
            /// An id from its tablet and slot. Panics when `slot` needs more than 48 bits: slots are
            /// handed out by the store, never taken from outside.
            #[inline]
            pub fn new(tablet: TabletId, slot: u64) -> Self {
                assert!(slot <= SLOT_MASK, "slot {slot} needs more than 48 bits");
                Self((u64::from(tablet.0) << SLOT_BITS) | slot)
            }

            /// The tablet the element lives in.
            #[inline]
            pub fn tablet(self) -> TabletId { TabletId((self.0 >> SLOT_BITS) as u16) }

            /// The slot inside the tablet: generation and place.
            #[inline]
            pub fn slot(self) -> u64 { self.0 & SLOT_MASK }

            /// How many elements had the place before this one.
            #[inline]
            pub fn generation(self) -> u16 { (self.slot() >> PLACE_BITS) as u16 }

            /// The same place in another generation, at most [`GENERATION_MAX`].
            #[inline]
            pub fn with_generation(self, generation: u16) -> Self {
                assert!(generation <= GENERATION_MAX, "generation {generation} needs more than 10 bits");
                Self((self.0 & !(SLOT_MASK ^ PLACE_MASK)) | (u64::from(generation) << PLACE_BITS))
            }

            /// The page of the place: `place / PAGE_SLOTS`.
            #[inline]
            pub fn page(self) -> usize { ((self.0 & PLACE_MASK) / PAGE_SLOTS) as usize }

            /// The position inside the page: `place % PAGE_SLOTS`.
            #[inline]
            pub fn offset(self) -> usize { (self.0 % PAGE_SLOTS) as usize }

            /// The 64 bits as they are kept inside the engine.
            #[inline]
            pub fn to_bits(self) -> u64 { self.0 }

            /// The id with these bits; whether it names anything is for the store to say.
            #[inline]
            pub fn from_bits(bits: u64) -> Self { Self(bits) }

            /// The number a user sees when the id was not chosen by the user.
            #[inline]
            pub fn external(self) -> i64 {
                let bits = (shuffle_slot(self.slot()) << (64 - SLOT_BITS)) | u64::from(self.tablet().0);
                bits.wrapping_add(EXTERNAL_BASE) as i64
            }

            /// The id behind an external number.
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
    /// The internal id of an edge: given once, stable as long as the edge lives.
    EdgeId, "e"
}

/// Vertices or edges.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum ElementKind {
    /// Vertices.
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
}

/// The internal id of a vertex or of an edge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum ElementId {
    /// A vertex.
    Vertex(VertexId),
    /// An edge.
    Edge(EdgeId),
}

impl ElementId {
    /// Whether the element is a vertex or an edge.
    #[inline]
    pub fn kind(self) -> ElementKind {
        match self {
            ElementId::Vertex(_) => ElementKind::Vertex,
            ElementId::Edge(_) => ElementKind::Edge,
        }
    }

    /// The 64 bits of the id. Vertices and edges are numbered apart: the same bits may name one of each.
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

/// An interned set of labels. A vertex has one (Gremlin shows `a::b`), and so has an edge.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct LabelSetId(pub u32);

/// An interned property key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct KeyId(pub u32);

/// A property index.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IndexId(pub u32);

/// An id as its user knows it. Integers of every width are one number line: `1`, `1L` and `1.0` name the
/// same element, as TinkerPop's id managers have it; a string of digits is another id.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum UserId {
    /// A whole number. `narrow` says that it was given as a 32-bit integer and is shown as one; it takes
    /// no part in equality.
    Int(IntId),
    /// A string.
    String(SmolStr),
    /// A UUID.
    Uuid(Uuid),
}

/// The integer of [`UserId::Int`] with the width it is shown in.
#[derive(Clone, Copy, Debug)]
pub struct IntId {
    /// The number.
    pub number: i64,
    /// Shown as a 32-bit integer.
    pub narrow: bool,
}

impl PartialEq for IntId {
    fn eq(&self, other: &Self) -> bool {
        self.number == other.number
    }
}
impl Eq for IntId {}
impl std::hash::Hash for IntId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// How the ids that a traversal names are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum IdRule {
    /// As they are: the string `"1"` is another id than the number 1.
    #[default]
    Any,
    /// A string that spells a 64-bit integer names that integer, for clients that know ids as text only.
    Numbers,
}

impl IdRule {
    /// The value that a value stands for where an id is meant.
    pub fn canonical(self, value: &Value) -> Value {
        match (self, value) {
            (IdRule::Numbers, Value::String(text)) => text.parse().map_or_else(|_| value.clone(), Value::I64),
            (IdRule::Numbers, Value::List(values)) => {
                Value::list(values.iter().map(|value| self.canonical(value)).collect())
            }
            _ => value.clone(),
        }
    }

    /// The id in a value, as [`UserId::from_value`] reads it after that.
    pub fn read(self, value: &Value) -> Option<UserId> {
        match (self, value) {
            (IdRule::Numbers, Value::String(_)) => UserId::from_value(&self.canonical(value)),
            _ => UserId::from_value(value),
        }
    }
}

impl UserId {
    /// A 64-bit integer id.
    pub fn int(number: i64) -> Self {
        UserId::Int(IntId { number, narrow: false })
    }

    /// The id in a value: integers of any width, whole floats, strings and UUIDs; nothing else is an id.
    pub fn from_value(value: &Value) -> Option<Self> {
        Some(match value {
            Value::I8(n) => UserId::int(i64::from(*n)),
            Value::I16(n) => UserId::int(i64::from(*n)),
            Value::I32(n) => UserId::Int(IntId { number: i64::from(*n), narrow: true }),
            Value::I64(n) => UserId::int(*n),
            Value::F32(n) => UserId::int(whole(f64::from(*n))?),
            Value::F64(n) => UserId::int(whole(*n)?),
            Value::BigInt(n) => UserId::int(i64::try_from(n.as_ref()).ok()?),
            Value::String(s) => UserId::String(s.clone()),
            Value::Uuid(u) => UserId::Uuid(*u),
            _ => return None,
        })
    }

    /// The value a user sees.
    pub fn to_value(&self) -> Value {
        match self {
            UserId::Int(IntId { number, narrow: true }) => match i32::try_from(*number) {
                Ok(n) => Value::I32(n),
                Err(_) => Value::I64(*number),
            },
            UserId::Int(IntId { number, .. }) => Value::I64(*number),
            UserId::String(s) => Value::String(s.clone()),
            UserId::Uuid(u) => Value::Uuid(*u),
        }
    }
}

fn whole(n: f64) -> Option<i64> {
    // 2^53: beyond it a double no longer names one integer.
    (n.fract() == 0.0 && n.abs() <= 9_007_199_254_740_992.0).then_some(n as i64)
}

impl From<i64> for UserId {
    fn from(number: i64) -> Self {
        UserId::int(number)
    }
}
impl From<&str> for UserId {
    fn from(s: &str) -> Self {
        UserId::String(s.into())
    }
}

impl fmt::Display for UserId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UserId::Int(n) => write!(f, "{}", n.number),
            UserId::String(s) => write!(f, "{s}"),
            UserId::Uuid(u) => write!(f, "{u}"),
        }
    }
}

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
    fn every_generation_of_a_place_is_an_id_of_its_own_that_a_double_keeps() {
        for place in [0, 1, 1_024, (1 << 27) - 2] {
            let first = EdgeId::new(TabletId(64), place);
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

    #[test]
    fn integers_of_every_width_are_one_id() {
        assert_eq!(UserId::from_value(&Value::I32(1)), UserId::from_value(&Value::I64(1)));
        assert_eq!(UserId::from_value(&Value::F64(1.0)), Some(UserId::int(1)));
        assert_eq!(UserId::from_value(&Value::F64(1.5)), None);
        assert_ne!(UserId::from_value(&Value::I32(1)), UserId::from_value(&Value::String("1".into())));
        assert_eq!(UserId::from_value(&Value::I32(7)).unwrap().to_value(), Value::I32(7));
    }
}
