//! What a transaction read and what it wrote, in one vocabulary, so that the two can be compared.
//!
//! Both sides name *items*: facts about the graph that a read may depend on and a write may change.
//!
//! | item | read by | changed by |
//! |---|---|---|
//! | existence of an element | a look at a known id; a look for an automatic one | insert, delete |
//! | id that a user chose (hashed) | look-up by id, found or not | insert, delete |
//! | cell (element, key) | values of a key | writing the property; deleting the element |
//! | all cells of an element | whole properties | the same |
//! | list (vertex, direction, edge label set, or any) | expansion, degrees | insert or delete of an edge |
//! | scan (vertices or edges, label set or any) | scans, counts | insert, delete |
//! | value (key, label set or any, value hashed) | equality look-ups by index or scan | before- and after-images |
//!
//! Ranges of values cannot be items: they are [`Predicate`]s, and are checked against the images that a write set
//! keeps for them. Items are exact; only chosen ids and values are hashed, so a conflict may be seen where two of them
//! share 64 bits, and none is ever missed.
//!
//! A writer names both the label set and "any label set", so a reader names what it asked for and the comparison is
//! plain equality. A label set that came into being after a reader fixed which sets it wants is in no item of it, nor is
//! a key that had no number yet when its name was looked up: [`WriteSet::newest`] tells that there may be one.
//!
//! What is immutable (the labels of an element, its id, the ends of an edge) is no item.
//!
//! `set` keeps many items, `writes` makes a write set of a transaction's log, `merged` keeps the write sets of many
//! transactions.

mod merged;
mod set;
mod writes;

use std::cmp::Ordering;
use std::hash::BuildHasher;

use mangrove_graph::compare::order;
use mangrove_graph::{
    Direction, EdgeId, ElementId, ElementKind, IndexRange, KeyId, LabelFilter, LabelSetId, UserId, Value, VertexId,
};

pub use merged::{MERGED_SPAN_MAX, MergedWrites, ReadTimestamps};
pub use set::ItemSet;
pub use writes::WriteSet;

use crate::index::IdKey;

/// What kind of fact an item is, and all of it that is no id: 6 bits of kind, 29 of key, 29 of label set.
///
/// A catalog with more than 2^29 keys or label sets would make two classes one, and so conflicts where there are none.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ItemClass(u64);

const PART_BITS: u32 = 29;
const PART_MASK: u32 = (1 << PART_BITS) - 1;
/// "Any label set", and the part of a class that has no use for it.
const ANY: u32 = PART_MASK;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
enum Kind {
    Vertex,
    Edge,
    VertexCell,
    EdgeCell,
    VertexCells,
    EdgeCells,
    Out,
    In,
    VertexScan,
    EdgeScan,
    /// The last four are named by hashes.
    VertexId,
    EdgeId,
    VertexValue,
    EdgeValue,
}

impl ItemClass {
    fn new(kind: Kind, key: u32, labels: u32) -> Self {
        let parts = (u64::from(key & PART_MASK) << PART_BITS) | u64::from(labels & PART_MASK);
        ItemClass(((kind as u64) << (2 * PART_BITS)) | parts)
    }

    /// Whether its ids are hashes, which lie anywhere in 64 bits.
    fn is_hashed(self) -> bool {
        self.0 >> (2 * PART_BITS) >= Kind::VertexId as u64
    }
}

impl std::fmt::Debug for ItemClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.0 >> (2 * PART_BITS), self.0 as u32 >> PART_BITS, self.0 as u32 & PART_MASK)
    }
}

/// One fact; see the module.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Item {
    class: ItemClass,
    id: u64,
}

fn pick(kind: ElementKind, vertex: Kind, edge: Kind) -> Kind {
    match kind {
        ElementKind::Vertex => vertex,
        ElementKind::Edge => edge,
    }
}

fn of_element(element: ElementId, vertex: Kind, edge: Kind, key: u32) -> Item {
    let kind = pick(element.kind(), vertex, edge);
    Item { class: ItemClass::new(kind, key, 0), id: element.to_bits() }
}

impl Item {
    /// Whether the element exists.
    pub fn existence(element: ElementId) -> Self {
        of_element(element, Kind::Vertex, Kind::Edge, 0)
    }

    /// The values of one key.
    pub fn cell(element: ElementId, key: KeyId) -> Self {
        of_element(element, Kind::VertexCell, Kind::EdgeCell, key.0)
    }

    /// The values of all keys.
    pub fn cells(element: ElementId) -> Self {
        of_element(element, Kind::VertexCells, Kind::EdgeCells, 0)
    }

    /// A list of edges, along one label set or any. `direction` is not `Both`.
    pub fn list(vertex: VertexId, direction: Direction, labels: Option<LabelSetId>) -> Self {
        let kind = if direction == Direction::In { Kind::In } else { Kind::Out };
        Item { class: ItemClass::new(kind, 0, labels.map_or(ANY, |set| set.0)), id: vertex.to_bits() }
    }

    /// The elements of one label set or any.
    pub fn scan(kind: ElementKind, labels: Option<LabelSetId>) -> Self {
        let kind = pick(kind, Kind::VertexScan, Kind::EdgeScan);
        Item { class: ItemClass::new(kind, 0, labels.map_or(ANY, |set| set.0)), id: 0 }
    }

    /// Which elements of one label set or any have this value.
    pub fn value(kind: ElementKind, key: KeyId, labels: Option<LabelSetId>, value: &Value) -> Self {
        let kind = pick(kind, Kind::VertexValue, Kind::EdgeValue);
        Item { class: ItemClass::new(kind, key.0, labels.map_or(ANY, |set| set.0)), id: hash_value(value) }
    }

    /// Which element has the id that a user chose.
    pub fn chosen_id(kind: ElementKind, id: &UserId) -> Self {
        let kind = pick(kind, Kind::VertexId, Kind::EdgeId);
        Item { class: ItemClass::new(kind, 0, 0), id: IdKey::of(id).hash() }
    }

    /// The items of a look for an id: the id itself and, where it is an integer, the element that would have it as its
    /// automatic id.
    pub fn look_up(kind: ElementKind, id: &UserId) -> impl Iterator<Item = Item> + use<> {
        let automatic = match id {
            UserId::Int(n) => Some(Item::existence(match kind {
                ElementKind::Vertex => ElementId::Vertex(VertexId::from_external(n.number)),
                ElementKind::Edge => ElementId::Edge(EdgeId::from_external(n.number)),
            })),
            _ => None,
        };
        std::iter::once(Item::chosen_id(kind, id)).chain(automatic)
    }

    /// The items of what a filter takes: `item` makes one of a label set.
    pub fn each_label(labels: &LabelFilter, mut item: impl FnMut(Option<LabelSetId>)) {
        match labels {
            LabelFilter::Any => item(None),
            LabelFilter::Sets(sets) => sets.iter().for_each(|set| item(Some(*set))),
        }
    }

    /// A bit for each of 256 hashes: the item's place in a signature.
    fn signature_bit(self) -> (usize, u64) {
        // A multiplication each: the high bits of the sum depend on all bits of both.
        let mixed =
            self.id.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(self.class.0.wrapping_mul(0xd6e8_feb8_6659_fd93));
        let bit = mixed >> 56;
        ((bit >> 6) as usize, 1 << (bit & 63))
    }
}

/// A hash that agrees with `compare::equal`.
fn hash_value(value: &Value) -> u64 {
    struct Equal<'a>(&'a Value);
    impl std::hash::Hash for Equal<'_> {
        fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
            mangrove_graph::compare::hash_equal(self.0, state);
        }
    }
    // In memory only, but the same in every transaction.
    foldhash::fast::FixedState::with_seed(0x7265_6164).hash_one(Equal(value))
}

/// A bloom filter of a set's items: two sets with disjoint signatures have nothing in common.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Signature(pub [u64; 4]);

impl Signature {
    fn add(&mut self, item: Item) {
        let (word, bit) = item.signature_bit();
        self.0[word] |= bit;
    }

    /// Adds another set's items.
    pub fn join(&mut self, other: &Signature) {
        self.0.iter_mut().zip(other.0).for_each(|(mine, theirs)| *mine |= theirs);
    }

    /// Whether the sets may have an item in common.
    #[inline]
    pub fn meets(&self, other: &Signature) -> bool {
        self.0.iter().zip(other.0).any(|(a, b)| a & b != 0)
    }
}

/// The youngest names among what is written: a reader who knew fewer cannot have named them.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NewestNames {
    /// The label set of a vertex.
    pub vertex: u32,
    /// The label set of an edge.
    pub edge: u32,
    /// The key of a property.
    pub key: u32,
}

impl NewestNames {
    /// The label set of one kind of element.
    pub fn of(&mut self, kind: ElementKind) -> &mut u32 {
        match kind {
            ElementKind::Vertex => &mut self.vertex,
            ElementKind::Edge => &mut self.edge,
        }
    }

    /// Takes the younger of each.
    pub fn join(&mut self, other: NewestNames) {
        self.vertex = self.vertex.max(other.vertex);
        self.edge = self.edge.max(other.edge);
        self.key = self.key.max(other.key);
    }

    /// All as two words.
    pub fn to_bits(self) -> [u64; 2] {
        [u64::from(self.vertex) << 32 | u64::from(self.edge), u64::from(self.key)]
    }

    /// From two words.
    pub fn from_bits([labels, key]: [u64; 2]) -> Self {
        NewestNames { vertex: (labels >> 32) as u32, edge: labels as u32, key: key as u32 }
    }
}

/// Which elements of some label sets have a value in a range.
#[derive(Clone, Debug, PartialEq)]
pub struct Predicate {
    /// Of vertices or of edges.
    pub kind: ElementKind,
    /// With which label sets.
    pub labels: LabelFilter,
    /// Under which key.
    pub key: KeyId,
    /// The values.
    pub range: IndexRange,
}

impl Predicate {
    fn takes(&self, kind: ElementKind, key: KeyId, labels: LabelSetId) -> bool {
        self.kind == kind && self.key == key && self.labels.takes(labels)
    }

    fn holds(&self, value: &Value) -> bool {
        // Scans and ordered indexes differ in what they think of values that are not comparable with a bound.
        self.range.holds(value) || self.may_hold_between(value, value)
    }

    /// Whether a value between these two, in the order of `compare::order`, could be in the range.
    fn may_hold_between(&self, smallest: &Value, largest: &Value) -> bool {
        let reaches = |value: &Value, bound: &Option<(Value, bool)>, beyond: Ordering| {
            bound.as_ref().is_none_or(|(bound, inclusive)| {
                let side = order(value, bound);
                side == beyond || (*inclusive && side.is_eq())
            })
        };
        match &self.range {
            IndexRange::Equal(values) => {
                values.iter().any(|value| order(value, smallest).is_ge() && order(value, largest).is_le())
            }
            IndexRange::Between { low, high } => {
                reaches(largest, low, Ordering::Greater) && reaches(smallest, high, Ordering::Less)
            }
        }
    }
}
